"""A folder of recorded answers of a Kubernetes API: watch streams, and lists, as raw rows.

`*.jsonl` and `*.jsonl.gz` hold one line a version, {observed_at, type, object}; `*.json` what
`kubectl get -o json` prints. What an object says is parsed in `kubernetes`. CARRIED rows are made
in `sql/carry`: a day here holds what was observed in it.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from collectors.batches import Rows
from collectors.coverage import (
    ROOM,
    Days,
    Gap,
    Record,
    as_instants,
    gaps_of,
    instant,
    micros_of,
    stretches,
    tiles,
)
from collectors.kubernetes import PARSERS
from collectors.late import Late
from collectors.recorded_folder import Event, Folder, events, opened, sequence, version_of
from collectors.rejections import Rejections
from collectors.source import Batch, Settings, Unusable
from collectors.streams import KINDS, Refused
from models.window import Window, midnight


def collect(path: Path, settings: Settings, window: Window | None = None) -> Iterator[Batch]:
    """The raw rows of the window's days, in bounded memory; of all days where it is None."""
    folder = opened(path, settings)
    rejections = Rejections(settings)
    _note_others(folder, rejections, settings, window)
    for kind in KINDS:
        if kind in folder.streams:
            yield from _Reader(folder, kind, settings, window, rejections).batches()
    if folder.record:
        parts = stretches(folder.record)
        record = folder.record
        yield from tiles(parts, window, settings, record.place, nodes_from=record.nodes_from)
    yield from rejections.batches()


def span(path: Path, settings: Settings) -> tuple[datetime, datetime] | None:
    """The known window of a folder; None where it holds neither pods nor nodes."""
    record = opened(path, settings).record
    return as_instants(record.span) if record else None


def _note_others(
    folder: Folder, rejections: Rejections, settings: Settings, window: Window | None
) -> None:
    """Whole files and kinds that are set aside, on the day where they begin."""
    known = folder.record.span[0] if folder.record else None
    days = Days(settings.zone)
    for name, at, reason, example, times in folder.others:
        when = at if at is not None else known
        if when is None:
            when = micros_of(window.begin) if window else 0
        if window is None or window.contains(instant(when)):
            rejections.add(days.of(when), name, reason, example, times)


class _Reader:
    """Reads one kind: its versions in the window, and what vanished in its gaps."""

    def __init__(
        self,
        folder: Folder,
        kind: str,
        settings: Settings,
        window: Window | None,
        rejections: Rejections,
    ):
        self.folder, self.kind, self.settings = folder, kind, settings
        self.rejections, self.days = rejections, Days(settings.zone)
        table, self.parse = PARSERS[kind]
        self.rows = Rows(table)
        self.begin = micros_of(window.begin) if window else 0
        self.end = micros_of(window.end) if window else 2**62
        gaps = gaps_of(folder.streams[kind])
        asked = (gap.end for gap in gaps if self.begin <= gap.begin < self.end)
        self.follows_until = max(asked, default=-1)
        self.gaps = {
            (gap.file, gap.first_line): gap for gap in gaps if gap.end <= self.follows_until
        }
        record = folder.record
        known = (max(self.begin, record.span[0]), self.end) if record else (0, 0)
        self.late = None
        if record and not record.is_listed_only:
            self.late = Late(kind, gaps, settings.zone, *known)
        self.alive: dict[str, Event] = {}
        """The last version of each object not deleted; kept only where a gap needs it."""

    def batches(self) -> Iterator[Batch]:
        """The rows of the kind's table."""
        number, gap, listing = 0, None, []
        for event in events(self.folder, self.kind):
            if isinstance(event, Refused):
                self._refuse(event.after, event.example.split(":", 1)[0], event)
                continue
            number += 1
            if gap and not (event.file == gap.file and event.number <= gap.last_line):
                yield from self._after_gap(gap, listing)
                gap, listing = None, []
            gap = self.gaps.get((event.file, event.number), gap)
            if gap:
                listing.append((number, event))
            else:
                self._take(number, event)
                yield from self.rows.full()
        yield from self._after_gap(gap, listing) if gap else ()
        yield from self._copies_back()
        yield from self.rows.rest()

    def _refuse(self, at: int | None, file: str, refused: Refused) -> None:
        when = at if at is not None else (self.folder.record or Record((0, 0))).span[0]
        if self.begin <= when < self.end:
            self.rejections.add(self.days.of(when), file, refused.reason, refused.example)

    def _take(self, number: int, event: Event) -> None:
        """One version: a row if it lies in the window, and its news of days before."""
        if event.change in ("GAP", "BOOKMARK", "ERROR"):
            return
        if event.observed <= self.follows_until:
            self._follow(event)
        is_inside = self.begin <= event.observed < self.end
        if not (is_inside or (self.late and self.end <= event.observed < self.late.until)):
            return
        row = self._row(number, event, is_inside)
        if row is None:
            return
        if is_inside:
            self.rows.add(row)
        if self.late:
            for heard in self.late.rows(row, event.observed):
                self.rows.add(heard)

    def _follow(self, event: Event) -> None:
        if (uid := self._uid(event)) is None:
            return
        self.alive[uid] = event
        if event.change == "DELETED":
            del self.alive[uid]

    def _uid(self, event: Event) -> str | None:
        try:
            meta = version_of(event, 0, self.days).object["metadata"]
            return str(meta["uid"] if self.kind != "Namespace" else meta["name"])
        except (Unusable, KeyError, TypeError, AttributeError):
            return None  # refused where it is parsed

    def _row(self, number: int, event: Event, is_noted: bool) -> dict[str, Any] | None:
        """A version's row; what cannot be used is noted on its own day."""
        day = self.days.of(event.observed)

        def note(reason: str, example: str) -> None:
            if is_noted:
                self.rejections.add(day, event.file, reason, example)

        try:
            return self.parse(version_of(event, number, self.days), self.settings, note)
        except Unusable as error:
            note(error.reason, f"{event.file}:{event.number} {error.example}")
            return None

    def _after_gap(self, gap: Gap, listing: list[tuple[int, Event]]) -> Iterator[Batch]:
        """What the new list lacks was deleted at the gap's begin; then the list."""
        there = {self._uid(event) for _, event in listing}
        gone = [uid for uid in self.alive if uid not in there]
        place = f"{gap.file}:{gap.first_line} lacks it"
        for number, uid in enumerate(gone, listing[0][0]):
            event = self.alive.pop(uid)
            if self.begin <= gap.begin < self.end:
                self._add_gone(number, event, gap.begin, place)
                yield from self.rows.full()
        for number, event in listing:
            if not self._is_known(event):
                self._take(number, event)
            yield from self.rows.full()

    def _is_known(self, event: Event) -> bool:
        """Whether a list says again what was seen before its gap."""
        before = self.alive.get(self._uid(event) or "")
        try:
            metas = [version_of(e, 0, self.days).object["metadata"] for e in (before, event) if e]
            return len({meta["resourceVersion"] for meta in metas}) == 1 < len(metas)
        except (Unusable, KeyError, TypeError, AttributeError):
            return False

    def _add_gone(self, number: int, event: Event, at: int, place: str) -> None:
        half = ROOM // 2
        try:
            version = version_of(event, 0, self.days)
            version = version._replace(
                sequence=sequence(at, half + number % half, self.days),
                observed=at,
                day=self.days.of(at),
                change="DELETED",
                ref=f"{place}, last seen {version.ref}",
            )
            self.rows.add(self.parse(version, self.settings))
        except Unusable:
            return  # it was refused when it was seen

    def _copies_back(self) -> Iterator[Batch]:
        """For lists alone: each earlier day of the known window gets what was there by its end.

        No day but the list's own has an observation, yet the window reaches back to the earliest
        bind; the copies say by `observed_at` when the list was really read.
        """
        record = self.folder.record
        if not (record and record.is_listed_only):
            return
        first, last = (self.days.of(at) for at in record.span)
        earlier = Window(self.settings.cluster, first, last, self.settings.zone)
        for number, event in enumerate(events(self.folder, self.kind)):
            if isinstance(event, Refused):
                continue
            try:
                row = self.parse(version_of(event, number, self.days), self.settings)
            except Unusable:
                continue  # it was refused on the list's own day
            for day in earlier.days():
                over = micros_of(midnight(day + timedelta(days=1), self.settings.zone))
                if self.begin < over <= self.end and (row.get("created_at") or 0) < over:
                    self.rows.add(row | {"day_on": day})
                    yield from self.rows.full()
