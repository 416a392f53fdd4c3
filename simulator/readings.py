"""What an exporter reads from a GPU every half minute: averages, momentary values and counters.

What the GPU did is in `tracks`; under which names and labels it is told in `dcgm`.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from math import ceil
from typing import NamedTuple

from simulator import phases
from simulator.clock import SECOND
from simulator.gpus import LAG_SECONDS, GpuCard, offset
from simulator.phases import Phase
from simulator.scope import Scope
from simulator.scripts import Segment
from simulator.tracks import Track
from simulator.world import World

STEP = 30
NOISE = tuple(n / 10 for n in (0, 4, -6, -6, 9, 1, -3, 7, 7, -9, 2, -1, 5, -4, -8, 6, -5))
"""Some neighbours are equal: now and then a collection is late, and a value is read twice."""


class Span(NamedTuple):
    """Readings from one number to another that are alike, noise apart."""

    begin: int
    end: int
    phase: Phase
    memory: float


@dataclass(eq=False)
class Reader:
    """The scrapes of one node's exporter, numbered through the recorded time."""

    first: int  # second of the collection that the first scrape reads
    count: int
    stamps: list[str] = field(default_factory=list)
    """The end of each line: when the scrape took place."""
    step: int = STEP
    """Seconds from one scrape to the next: of some collections none may ask."""

    @classmethod
    def of(cls, world: World, name: str, scope: Scope) -> "Reader":
        """The reader of a node."""
        milli = offset(world, f"dcgm/{name}")
        since, step, rest = scope.since(world), scope.step, milli % 1000
        second = since + step - STEP + milli // 1000  # the last is near the end of the record
        count = (world.end // SECOND - since) // step
        stamps = [f" {second + step * n}.{rest:03}\n" for n in range(count)]
        return cls(second - LAG_SECONDS, count, stamps, step)

    def number(self, second: int) -> int:
        """The first scrape at or after a second, inside the recorded time."""
        return min(max(0, ceil((second - self.first - LAG_SECONDS) / self.step)), self.count)

    def spans(self, segments: list[Segment]) -> list[Span]:
        """A track as this exporter reads it: each value is the average of half a minute."""
        found: list[Span] = []
        index = number = 0
        while number < self.count:
            now = self.first + number * self.step
            while index < len(segments) and segments[index].end <= now - STEP:
                index += 1
            if index == len(segments):
                break
            here = segments[index]
            if here.begin >= now:
                number += 1
                continue
            if here.begin <= now - STEP and here.end >= now:
                until = min(self.count, number + (here.end - now) // self.step + 1)
                found.append(Span(number, until, here.phase, here.memory))
                number = until
                continue
            found.append(self._mixed(segments, index, number, now))
            number += 1
        return found

    @staticmethod
    def _mixed(segments: list[Segment], index: int, number: int, now: int) -> Span:
        parts = []
        last = segments[index]
        for segment in segments[index : index + STEP]:
            if segment.begin >= now:
                break
            parts.append((min(segment.end, now) - max(segment.begin, now - STEP), segment.phase))
            last = segment
        whole = sum(seconds for seconds, _ in parts)
        mean = {
            name: sum(seconds * getattr(phase, name) for seconds, phase in parts) / whole
            for name in ("gr", "sm", "tensor", "dram", "rx", "tx", "nvlink", "power")
        }
        return Span(number, number + 1, last.phase._replace(name="mixed", **mean), last.memory)


@lru_cache(maxsize=100_000)
def _cycle(value: float, digits: int, spread: float, most: float) -> tuple[str, ...]:
    if not value:
        return ("0",)
    text = f".{digits}f"
    return tuple(format(min(value * (1 + spread * n), most), text) for n in NOISE)


def told(spans: list[Span], count: int, name: str, digits: int, spread: float) -> list[str]:
    """One value of the phases, as text, at each number; empty where there is none."""
    most = {"util": 100.0, "gr": 1.0, "sm": 1.0, "tensor": 1.0, "dram": 1.0}.get(name, 1e15)
    found: list[str] = []
    for span in spans:
        found += [""] * (span.begin - len(found))
        length = span.end - span.begin
        cycle = _cycle(getattr(span.phase, name), digits, spread, most)
        if length == 1:
            found.append(cycle[span.begin % len(cycle)])
        else:
            start = span.begin % len(cycle)
            found += (cycle * (length // len(cycle) + 2))[start : start + length]
    return found + [""] * (count - len(found))


def constant(spans: list[Span], count: int, values: list[str]) -> list[str]:
    """One text a span."""
    found: list[str] = []
    for span, value in zip(spans, values, strict=True):
        found += [""] * (span.begin - len(found))
        found += [value] * (span.end - span.begin)
    return found + [""] * (count - len(found))


def watts(card: GpuCard, tracks: list[tuple[Track, list[Span]]], count: int) -> list[float]:
    """Power of a GPU: all its instances together; they only ever read this one value."""
    draw = phases.DRAWS[card.model.name]
    own = 1 + (card.index * 7 % 11 - 5) / 120  # no two GPUs of a model rest alike
    level, context = [0.0] * count, [False] * count
    for track, spans in tracks:
        for span in spans:
            used = track.device.part * span.phase.power
            if used:
                for number in range(span.begin, span.end):
                    level[number] += used
            if span.phase.has_context:
                context[span.begin : span.end] = [True] * (span.end - span.begin)
    rest = (draw.bare * own, draw.context * own)
    room = draw.limit - draw.context
    noise = NOISE * (count // len(NOISE) + 1)
    return [
        (rest[has] + min(used, 1.0) * room) * (1 + 0.012 * n)
        for has, used, n in zip(context, level, noise, strict=False)
    ]


def millijoules(power: list[float], begin: int, step: int) -> list[str]:
    """The GPU's energy counter: it has counted since the driver was loaded."""
    steps = (watt * step * 1000 for watt in power)
    return [str(int(value)) for value in accumulate(steps, initial=begin)]
