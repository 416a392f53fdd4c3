"""What a process does with its GPUs while it runs: phase after phase, and where it goes wrong.

Which pod plays which part is in `casting`; what the phases are in `phases`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from simulator import phases
from simulator.clock import DAY, SECOND
from simulator.phases import Phase
from simulator.tenants import busy

Step = tuple[float, Phase, float]
"""Seconds, what is done, and the part of the device's memory that is taken."""


class Segment(NamedTuple):
    """One phase on one device, in whole seconds."""

    begin: int
    end: int
    phase: Phase
    memory: float  # part of the device's memory


@dataclass(frozen=True)
class Change:
    """From when to when a process does something else than its script says."""

    begin: int
    end: int
    phase: Phase
    memory: float
    cause: str = ""  # why the GPU is idle, where it is
    only: range | None = None  # of the pod's GPUs; else all


def training(rng: Random, phase: Phase) -> Iterator[Step]:
    """Start-up, loading, steps with pauses for checkpoints, now and then an evaluation."""
    yield rng.uniform(15, 60), phases.IMPORTS, 0.0
    yield rng.uniform(30, 140), phases.WEIGHTS, 0.5
    while True:
        yield rng.uniform(600, 1500), phase, 0.86
        yield rng.uniform(25, 130), phases.CHECKPOINT, 0.86
        if rng.random() < 0.3:
            yield rng.uniform(80, 200), phases.EVALUATE, 0.8


def batch(rng: Random) -> Iterator[Step]:
    """A short start, then work with short pauses."""
    yield rng.uniform(5, 30), phases.IMPORTS, 0.0
    while True:
        yield rng.uniform(300, 1400), phases.BATCH, 0.45
        yield rng.uniform(10, 100), phases.HELD, 0.45


def serving(rng: Random, begin: int, load: float, memory: float = 0.9) -> Iterator[Step]:
    """Weights first, then requests by the hour of the day; some nights, none at all."""
    yield load * 0.15, phases.IMPORTS, 0.0
    yield load * 0.85 + rng.uniform(5, 20), phases.WEIGHTS, 0.7
    now = begin + load + 20
    while True:
        level = busy(int(now) * SECOND)
        hour = int(now) * SECOND % DAY / (DAY / 24)
        if (hour < 5 or hour > 22) and rng.random() < 0.5:
            seconds, phase = rng.uniform(2600, 7800), phases.NO_REQUESTS
            yield seconds, phase, memory
            now += seconds
        seconds = rng.uniform(900, 2400)
        yield seconds, phases.SERVE[min(5, int(level * rng.uniform(4, 7)))], memory
        now += seconds


def notebook(rng: Random) -> Iterator[Step]:
    """Someone works for a while, cell by cell, and then does not for hours."""
    yield rng.uniform(60, 200), phases.EMPTY, 0.0
    while True:
        for _ in range(rng.randrange(8, 16)):
            yield rng.uniform(90, 300), phases.CELL, 0.3
            yield rng.uniform(20, 150), phases.HELD, 0.3
        yield rng.uniform(2700, 9000), phases.HELD, 0.3


def follow(steps: Iterator[Step], begin: int, end: int) -> list[Segment]:
    """A script over one run of a process."""
    found: list[Segment] = []
    now = begin
    while now < end:
        seconds, phase, memory = next(steps)
        until = min(end, now + max(2, round(seconds)))
        found.append(Segment(now, until, phase, memory))
        now = until
    return found


def changed(segments: list[Segment], change: Change) -> list[Segment]:
    """The same with a change laid over it."""
    found: list[Segment] = []
    for segment in segments:
        if segment.end <= change.begin or segment.begin >= change.end:
            found.append(segment)
            continue
        if segment.begin < change.begin:
            found.append(segment._replace(end=change.begin))
        begin, end = max(segment.begin, change.begin), min(segment.end, change.end)
        found.append(Segment(begin, end, change.phase, change.memory))
        if segment.end > change.end:
            found.append(segment._replace(begin=change.end))
    return found
