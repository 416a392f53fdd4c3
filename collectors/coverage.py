"""What a record covers: its known window, its gaps, and the stretches of raw.coverage of each day.

How lines are read belongs to `streams`; what an uncovered second becomes to `sql`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import NamedTuple
from zoneinfo import ZoneInfo

from collectors.batches import Rows
from collectors.quantities import EPOCH, MICROSECOND
from collectors.source import Batch, Settings
from collectors.surveys import Survey
from models.window import Window, midnight

Span = tuple[int, int]
"""Begin and end, in microseconds since 1970."""


ROOM = 100_000_000
"""Sequence numbers are the day's microseconds times this, for lines may lie in any order in a file;
among what was observed at once, lines count in the lower half and what vanished in the upper."""


def place_in_day(observed: int, begin: int, number: int) -> int:
    """The place of what was observed in its day, which began at `begin`."""
    return (observed - begin + 1) * ROOM + number


class Gap(NamedTuple):
    """A gap of a stream: from the last line before a list to that list."""

    begin: int
    end: int
    file: str
    first_line: int
    last_line: int


@dataclass
class Record:
    """What a record covers."""

    span: Span
    is_listed_only: bool = False
    before: int = 0
    """Until then not all of its streams had begun."""
    gaps: list[Span] = field(default_factory=list)
    place: str = ""
    nodes_from: int | None = None
    """Since when nodes are told of; a day without any is then one on which none was there."""


def instant(micros: int) -> datetime:
    """Microseconds since 1970 as an instant."""
    return EPOCH + timedelta(microseconds=micros)


def micros_of(moment: datetime) -> int:
    """An instant as microseconds since 1970."""
    return (moment - EPOCH) // MICROSECOND


class Days:
    """Which day of the zone an instant lies in, asked mostly in order."""

    def __init__(self, zone: str):
        self.zone = zone
        self.begin = self.end = 0
        self.day = date(1970, 1, 1)

    def of(self, micros: int) -> date:
        """The day of an instant."""
        if not self.begin <= micros < self.end:
            self.day = instant(micros).astimezone(ZoneInfo(self.zone)).date()
            self.begin = micros_of(midnight(self.day, self.zone))
            self.end = micros_of(midnight(self.day + timedelta(days=1), self.zone))
        return self.day


def gaps_of(streams: dict[str, Survey]) -> list[Gap]:
    """The gaps of one kind, file -> survey: lists that follow other lines of the kind."""
    found = []
    for file, survey in streams.items():
        for run in survey.runs:
            ends = [] if run.before is None else [run.before]
            for other, beside in streams.items():
                if other != file and beside.first < run.begin:
                    ends.append(min(beside.last, run.begin))
            if ends and max(ends) < run.begin:
                found.append(Gap(max(ends), run.begin, file, run.first, run.last))
    return sorted(found)


def union(spans: Iterable[Span]) -> list[Span]:
    """The spans, those that overlap or touch as one."""
    found: list[Span] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((begin, end))
    return found


def stretches(record: Record) -> Iterator[tuple[int, int, str]]:
    """The known window, tiled by how it was observed."""
    begin, end = record.span
    if record.is_listed_only:
        if begin < end:
            yield begin, end, "list_only"
        return
    before = min(max(record.before, begin), end)
    if begin < before:
        yield begin, before, "before_first_seen"
    now = before
    for gap_begin, gap_end in record.gaps:
        gap_begin, gap_end = max(gap_begin, now), min(gap_end, end)
        if gap_begin >= gap_end:
            continue
        if now < gap_begin:
            yield now, gap_begin, "watched"
        yield gap_begin, gap_end, "recorder_gap"
        now = gap_end
    if now < end:
        yield now, end, "watched"


def tiles(
    parts: Iterable[tuple[int, int, str]],
    window: Window | None,
    settings: Settings,
    place: str,
    is_placed: bool = True,
    nodes_from: int | None = None,
) -> Iterator[Batch]:
    """The stretches cut at midnight, those of the window's days, as rows of raw.coverage."""
    rows = Rows("raw.coverage")
    zone = ZoneInfo(settings.zone)
    for begin, end, name in parts:
        day = instant(begin).astimezone(zone).date()
        cuts = [begin]
        while (edge := micros_of(midnight(day + timedelta(days=1), settings.zone))) < end:
            cuts.append(edge)
            day += timedelta(days=1)
        for piece_begin, piece_end in pairwise([*cuts, end]):
            if window and not window.contains(instant(piece_begin)):
                continue
            day = instant(piece_begin).astimezone(zone).date()
            over = micros_of(midnight(day + timedelta(days=1), settings.zone))
            rows.add(
                {
                    "cluster_name": settings.cluster,
                    "day_on": day,
                    "begin_at": piece_begin,
                    "end_at": piece_end,
                    "coverage_name": name,
                    "source_ref": place,
                    "is_placed": is_placed,
                    "is_inventory_known": nodes_from is not None and nodes_from < over,
                }
            )
    yield from rows.rest()


def as_instants(span: Span) -> tuple[datetime, datetime]:
    """A span as two instants in UTC."""
    return instant(span[0]).astimezone(UTC), instant(span[1]).astimezone(UTC)
