"""The metrics of one Prometheus for a window of days: what is read now, and what is known then.

Which metrics make a family belongs to `families`, when a stretch is due to `prometheus_segments`,
what samples mean to the parser of each family, and where rows go to `pipelines`.
"""

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import polars as pl

from collectors.families import FAMILIES, KUBE_STATE, asked, groups
from collectors.metrics_joined import MOST_SIGNS, joined, parted
from collectors.metrics_known import Known, mark
from collectors.prometheus import Fetched, Prometheus
from collectors.prometheus_discovery import Told
from collectors.prometheus_http import Fault, Patience
from collectors.prometheus_recorded import Recorded
from collectors.prometheus_segments import Segment, State, Stretch, plan
from collectors.prometheus_selectors import Group
from collectors.source import Settings
from collectors.tallies import Counts, kept
from models.prometheus import PrometheusSource
from models.window import Window, midnight

MOST_FAULTS = 2
"""Discoveries in a row that failed: then no more are tried in this run."""


class Planned(NamedTuple):
    """A stretch of a family that will be read."""

    family: str
    begin: int
    end: int


class Asked(NamedTuple):
    """What is asked for on a day, or why nothing is."""

    metrics: tuple[str, ...]
    groups: list[Group]
    reason: str = ""
    """Why the metrics may not be all, or why there are none."""


class Reading:
    """One source and window. Read `fetched`, count what became of each, then ask for `coverage`."""

    def __init__(
        self,
        source: PrometheusSource,
        settings: Settings,
        window: Window,
        known: pl.DataFrame,
        now: datetime,
        families: Collection[str] = tuple(FAMILIES),
        patience: Patience | None = None,
        at_once: bool = False,
    ):
        self.source, self.settings, self.window = source, settings, window
        self.now = milliseconds(now)
        self.families = tuple(families)
        self.patience = patience
        self.at_once = at_once
        """Whether what failed is asked for again now, because somebody wants it."""
        self.known = Known(known, self.families, place_of(source), settings, self.now)
        self.segments = sorted(self._planned(), key=lambda planned: planned.begin)
        """What will be read now, oldest first."""
        self.notices: dict[str, tuple[int, str]] = {}
        """What was left aside while a folder was read: reason -> how often, and an example."""
        self._found: dict[int, Told] = {}
        self._faults = 0

    def fetched(self) -> Iterator[tuple[str, Fetched]]:
        """Each stretch that was read, in one state, and its family; `counted` must hear of it."""
        if not self.segments:
            return
        with self._client() as client:
            waiting: deque[tuple[Planned, Asked]] = deque()

            def wanted() -> Iterator[Segment]:
                for planned in self.segments:
                    told = self._asked_on(client, planned)
                    waiting.append((planned, told))
                    for group in told.groups:
                        yield Segment(group, planned.begin, planned.end)

            parts: list[Fetched] = []
            for one in client.collect(wanted()):
                while not waiting[0][1].groups:
                    yield from self._told(*waiting.popleft(), [])
                parts.append(one)
                if len(parts) == len(waiting[0][1].groups):
                    yield from self._told(*waiting.popleft(), parts)
                    parts = []
            while waiting:
                yield from self._told(*waiting.popleft(), [])

    def counted(self, fetched: Fetched, counts: Counts) -> None:
        """Takes what became of the samples of a stretch."""
        if counts.kept != kept(fetched):
            raise ValueError(f"{fetched.segment}: {counts.kept} counted of {kept(fetched)}")
        self.known.count(fetched.segment, counts)

    def coverage(self) -> pl.DataFrame:
        """The rows of raw.metric_coverage of the whole window, as far as it is over by now."""
        return self.known.rows(self._days())

    def _days(self) -> Iterator[tuple[int, int]]:
        for day in self.window.days():
            next_day = midnight(day + timedelta(days=1), self.window.zone)
            yield milliseconds(midnight(day, self.window.zone)), milliseconds(next_day)

    def _planned(self) -> Iterator[Planned]:
        marks = {mark(family): family for family in self.families}
        known = self.known.stretches
        if self.at_once:
            known = [stretch._replace(tries=0) for stretch in known]
        for begin, end in self._days():
            planned = plan(marks, begin, end, known, self.now)
            for segment in (*planned, *beside(planned, begin, end, known)):
                for first, last in self.known.cut(segment):
                    yield Planned(marks[segment.group], first, last)

    def _client(self) -> Prometheus | Recorded:
        if self.source.path is None:
            return Prometheus(self.source, self.patience)
        zone = self.settings.zone
        recorded = Recorded(self.source.path, self.source.observed_at, zone)
        for reason, times in recorded.notices.items():
            self.notices[reason] = (times, recorded.examples.get(reason, ""))
        return recorded

    def _asked_on(self, client: Prometheus | Recorded, planned: Planned) -> Asked:
        """The metrics of a family that have series in what is read of the day."""
        begin, end = next(day for day in self._days() if day[0] <= planned.begin < day[1])
        if begin not in self._found:
            mine = [s for s in self.segments if begin <= s.begin < end]
            span = (mine[0].begin, max(s.end for s in mine))
            self._found[begin] = self._discovered(client, span)
        told = self._found[begin]
        metrics = asked(planned.family, told.result)
        warning = "; ".join(told.warnings)[:MOST_SIGNS]
        reason = warning or ("" if metrics else f"no_{planned.family}_metrics")
        return Asked(metrics, groups(planned.family, told.result), reason)

    def _discovered(self, client: Prometheus | Recorded, span: tuple[int, int]) -> Told:
        if self._faults >= MOST_FAULTS:
            return Told([], ["discovery failed several times in a row: not asked"])
        try:
            told = client.metrics(*span)
        except Fault as fault:
            self._faults += 1
            return Told([], [str(fault)])
        self._faults = 0
        return told

    def _told(
        self, planned: Planned, told: Asked, parts: list[Fetched]
    ) -> Iterator[tuple[str, Fetched]]:
        segment = Segment(mark(planned.family), planned.begin, planned.end)
        if parts:
            whole = joined(segment, parts, told.reason)
        else:
            whole = Fetched(segment, [Stretch(*segment, State.MISSING, told.reason)])
        if not self.known.learn(whole):
            return
        for part in parted(whole):
            self.known.hand(part, told.metrics)
            yield planned.family, part


def beside(
    planned: Sequence[Segment], begin: int, end: int, known: Sequence[Stretch]
) -> list[Segment]:
    """What is read of objects once more: the hours at both sides of one that comes late.

    What vanished in a gap is told by the first scrape after it, as of the last one before it.
    """
    read = [
        Segment(s.group, s.begin, s.end)
        for s in known
        if s.state is State.COMPLETE
        and s.group == mark(KUBE_STATE)
        and begin <= s.begin
        and s.end <= end
    ]
    late = [
        segment
        for segment in planned
        if any(segment.group == s.group and segment.end <= s.begin for s in read)
    ]
    edges = {(s.begin, s.end) for s in late}
    return [s for s in read if any(s.end == a or s.begin == b for a, b in edges)]


def milliseconds(moment: datetime) -> int:
    """An instant as milliseconds since 1970."""
    return round(moment.timestamp() * 1000)


def place_of(source: PrometheusSource) -> str:
    """The address of a server, in which no secret can stand, or the folder."""
    return source.url.rstrip("/") if source.url is not None else str(source.path)
