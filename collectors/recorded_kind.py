"""One kind of a folder of recorded answers: its versions as rows, and what vanished in its gaps.

In which order lines are read belongs to `recording`, what an object says to `kubernetes`.
"""

from collections.abc import Iterator
from typing import Any

from collectors.batches import Rows, key_of
from collectors.coverage import ROOM, Days, Gap, Record, gaps_of, instant, micros_of
from collectors.kube_events import EventRows
from collectors.kubernetes import PARSERS
from collectors.late import Late
from collectors.owners import Unchanged
from collectors.recorded_folder import (
    Event,
    Folder,
    events,
    place_in_spool,
    sequence,
    version_of,
)
from collectors.rejections import Rejections
from collectors.source import Batch, Settings, Unusable
from collectors.streams import KINDS, OWNERS, Refused
from collectors.surveys import Survey
from models.window import Window


def read(
    folder: Folder, settings: Settings, window: Window | None, rejections: Rejections
) -> Iterator[Batch]:
    """The rows of all files that are to be read."""
    readers = {
        kind: Reader(folder, kind, settings, window, rejections)
        for kind in KINDS
        if kind in folder.streams
    }
    days = Days(settings.zone)
    for event in events(folder):
        if isinstance(event, Refused):
            _refuse(folder, event, window, days, rejections)
        else:
            yield from readers[event.kind].take(event)
    for reader in readers.values():
        yield from reader.rest()


def _refuse(
    folder: Folder, refused: Refused, window: Window | None, days: Days, rejections: Rejections
) -> None:
    at = refused.after
    when = at if at is not None else (folder.record or Record((0, 0))).span[0]
    if window is None or window.contains(instant(when)):
        file = refused.example.split(":", 1)[0]
        rejections.add(days.of(when), file, refused.reason, refused.example)


class Reader:
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
        self.key, is_event = key_of(table), kind == "Event"
        self.rows = EventRows(settings.zone) if is_event else Rows(table)
        # Of these only what changed is kept: controllers write them again and again.
        self.is_known = Unchanged() if kind in (*OWNERS, "Workload") else None
        self.begin = micros_of(window.begin) if window else 0
        self.end = micros_of(window.end) if window else 2**62
        # An event does not live: none vanishes in a gap.
        gaps = [] if is_event else gaps_of(folder.streams[kind])
        unread = [gap for gap in gaps if gap.file in folder.unread]
        asked = (gap.end for gap in unread if self.begin <= gap.begin < self.end)
        self.follows_until = max(asked, default=-1)
        self.gaps = {
            (gap.file, gap.first_line): gap for gap in unread if gap.end <= self.follows_until
        }
        record = folder.record
        known = (max(self.begin, record.span[0]), self.end) if record else (0, 0)
        self.late = None
        if record and not record.is_listed_only:
            self.late = Late(kind, gaps, settings.zone, *known)
        self.number = 0
        self.gap: Gap | None = None
        self.listing: list[tuple[int, Event]] = []
        self.alive: dict[str, dict[str, Any]] = {}
        """The last row of each object not deleted; kept only where a gap needs it."""
        self._remember(table, folder.streams[kind])

    def _remember(self, table: str, parts: dict[str, Survey]) -> None:
        """What an earlier reading left, where a gap or news of the day before may need it."""
        first = min((s.first for name, s in parts.items() if name in self.folder.unread), default=0)
        self.days.of(first)
        late = self.late
        is_late = late is not None and late.columns and first < late.until_of(self.days.begin)
        if not self.folder.is_spool or not (self.gaps or is_late):
            return
        rows = list(self.folder.memory.rows(table))
        if table == "raw.owner_versions":  # of many kinds
            rows = [row for row in rows if row["kind_name"] == self.kind]
        if self.late:
            self.late.remember(rows)
        if self.gaps:
            self.alive = {row[self.key]: row for row in rows}

    def take(self, event: Event) -> Iterator[Batch]:
        """One line more; the rows that are ready by it."""
        self.number += 1
        number = place_in_spool(event) if self.folder.is_spool else self.number
        gap = self.gap
        if gap and not (event.file == gap.file and event.number <= gap.last_line):
            yield from self._after_gap(gap)
        self.gap = self.gaps.get((event.file, event.number), self.gap)
        if self.gap:
            self.listing.append((number, event))
        else:
            self._take(number, event)
            yield from self.rows.full()

    def rest(self) -> Iterator[Batch]:
        """The rows that are left when all was read."""
        if self.gap:
            yield from self._after_gap(self.gap)
        yield from self.rows.rest()

    def _take(self, number: int, event: Event) -> None:
        """One version: a row if it lies in the window, and its news of days before."""
        if event.change in ("GAP", "BOOKMARK", "ERROR"):
            return
        is_inside = self.begin <= event.observed < self.end
        is_heard = self.late is not None and self.end <= event.observed < self.late.until
        is_followed = event.observed <= self.follows_until
        if not (is_inside or is_heard or is_followed):
            return
        row = self._row(number, event, is_inside)
        if row is None:
            return
        if is_followed:
            self.alive[row[self.key]] = row
            if event.change == "DELETED":
                del self.alive[row[self.key]]
        if is_inside and not (self.is_known and self.is_known(row[self.key], row)):
            self.rows.add(row)
        if self.late and (is_inside or is_heard):
            for heard in self.late.rows(row, event.observed):
                self.rows.add(heard)

    def _row(self, number: int, event: Event, is_noted: bool) -> dict[str, Any] | None:
        """A version's row; what cannot be used is noted on its own day."""
        day = self.days.of(event.observed)

        def note(reason: str, example: str) -> None:
            if reason == "resource_claims" and "ResourceClaim" in self.folder.knows:
                return  # the claims themselves are there
            if is_noted:
                self.rejections.add(day, event.file, reason, example)

        try:
            return self.parse(version_of(event, number, self.days), self.settings, note)
        except Unusable as error:
            note(error.reason, f"{event.file}:{event.number} {error.example}")
            return None

    def _after_gap(self, gap: Gap) -> Iterator[Batch]:
        """What the new list lacks was deleted at the gap's begin; then the list."""
        listing, self.gap, self.listing = self.listing, None, []
        told = [(number, event, *self._identity(event)) for number, event in listing]
        there = {key for _, _, key, _ in told}
        place = f"{gap.file}:{gap.first_line} lacks it"
        gone = sorted(key for key in self.alive if key not in there)
        for number, key in enumerate(gone, listing[0][0]):
            row = self.alive.pop(key)
            if self.begin <= gap.begin < self.end:
                self.rows.add(self._gone(number, row, gap.begin, place))
                yield from self.rows.full()
        for number, event, key, version in told:
            before = self.alive.get(key or "")
            if before is None or version is None or before["version_name"] != version:
                self._take(number, event)  # else it says again what was seen before the gap
            yield from self.rows.full()

    def _identity(self, event: Event) -> tuple[str | None, str | None]:
        """Which object a line is of, and its version."""
        try:
            version = version_of(event, 0, self.days)
            meta = version.object["metadata"]
            key = str(meta["name" if self.key.endswith("_name") else "uid"])
            return key, version.columns(self.settings)["version_name"]
        except (Unusable, KeyError, TypeError, AttributeError):
            return None, None  # refused where it is parsed

    def _gone(self, number: int, row: dict[str, Any], at: int, place: str) -> dict[str, Any]:
        half = ROOM // 2
        return row | {
            "sequence_number": sequence(at, half + number % half, self.days),
            "observed_at": at,
            "day_on": self.days.of(at),
            "change_name": "DELETED",
            "source_ref": f"{place}, last seen {row['source_ref']}",
        }
