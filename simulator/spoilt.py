"""Readings that are none: sentinels, other fields' values, and blanks that stay for minutes.

They are laid over what a device's exporter would have told, and listed, so that who rejects them
can be held to the number.
"""

from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from simulator.exporters import Exporter
from simulator.tracks import Track
from simulator.world import World

INT32, INT64, FP64 = "2147483632", "9223372036854775794", "140737488355328.000000"
SINGLE = (
    ("util", "808334905", "out_of_range"),
    ("util", "1980", "out_of_range"),
    ("util", "4294967295", "sentinel"),
    ("used", INT32, "sentinel"),
    ("power", FP64, "sentinel"),
    ("sm", FP64, "sentinel"),
    ("dram", FP64, "sentinel"),
    ("nvlink", INT64, "sentinel"),
    ("temp", "2147483634", "sentinel"),
)
ACTIVITY = ("util", "gr", "sm", "tensor", "dram")


class Bad(NamedTuple):
    """From one scrape to another a field reads as what it is not."""

    key: str
    begin: int
    end: int
    value: str
    reason: str


@dataclass(eq=False)
class Spoilt:
    """What is spoilt of one device."""

    bad: list[Bad] = field(default_factory=list)
    blind: list[tuple[int, int]] = field(default_factory=list)
    """Scrapes from which no activity can be told."""

    def over(self, key: str, values: list[str]) -> list[str]:
        """The values as they are told."""
        for bad in self.bad:
            if bad.key == key:
                told = values[bad.begin : bad.end]
                values[bad.begin : bad.end] = [bad.value if v else v for v in told]
        return values


def spoil(world: World, found: list[tuple[Track, Exporter]]) -> dict[int, Spoilt]:
    """What is spoilt, by the identity of the track."""
    rng = Random(f"{world.seed}/{world.name}/spoilt")
    result = {id(track): Spoilt() for track, _ in found}
    whole = [(t, e) for t, e in found if not t.device.profile and e.targets]
    rich = [(t, e) for t, e in whole if e.setup.has_prof and e.setup.has_sm]
    blunt = [(t, e) for t, e in whole if not e.setup.has_prof]
    for key, value, reason in SINGLE:
        for track, exporter in rng.sample(rich, min(2, len(rich))):
            at = _moment(rng, track, exporter)
            result[id(track)].bad.append(Bad(key, at, at + 1, value, reason))
    for track, exporter in rng.sample(rich, min(2, len(rich))):  # blanks after an error
        at = _moment(rng, track, exporter)
        for key in ACTIVITY[1:]:
            result[id(track)].bad.append(Bad(key, at, at + 24, FP64, "sentinel"))
    for track, exporter in rng.sample(rich, min(1, len(rich))):  # nothing left to tell it by
        at = _moment(rng, track, exporter)
        result[id(track)].blind.append((at, at + 24))
        for key in ACTIVITY:
            text = "2619" if key == "util" else FP64
            reason = "out_of_range" if key == "util" else "sentinel"
            result[id(track)].bad.append(Bad(key, at, at + 24, text, reason))
    for track, exporter in rng.sample(blunt, min(2, len(blunt))):
        at = _moment(rng, track, exporter)
        result[id(track)].blind.append((at, at + 1))
        result[id(track)].bad.append(Bad("util", at, at + 1, "131072", "out_of_range"))
    for track, _ in found:  # over 1, but not by much: what MIG really reads now and then
        if track.device.profile.startswith("7g"):
            result[id(track)].bad.append(Bad("gr", 700, 702, "1.003906", "none"))
    return result


def _moment(rng: Random, track: Track, exporter: Exporter) -> int:
    """A scrape that works, around which all others do, and not in a stall: it would end it."""
    reader = exporter.reader
    for _ in range(200):
        at = rng.randrange(60, max(61, reader.count - 60))
        begin, end = (reader.first + (at + n) * reader.step for n in (-1, 25))
        stalls = [s for s in track.segments if s.phase.is_stalled]
        if any(s.begin < end and begin < s.end for s in stalls):
            continue
        if all(exporter.is_read(n) for n in (at - 1, at, at + 25)):
            return at
    return 0
