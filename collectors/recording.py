"""A folder of recorded answers of a Kubernetes API: watch streams, and lists, as raw rows.

`*.jsonl` and `*.jsonl.gz` hold one line a version, {observed_at, type, object}; `*.json` what
`kubectl get -o json` prints. What an object says is parsed in `kubernetes`. CARRIED rows are made
in `sql/carry`: a day here holds what was observed in it.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from collectors.batches import Rows
from collectors.coverage import (
    ROOM,
    Days,
    Gap,
    Record,
    Span,
    as_instants,
    gaps_of,
    instant,
    micros_of,
    place_in_day,
    stretches,
    tiles,
    union,
)
from collectors.folders import is_metrics
from collectors.kubernetes import PARSERS
from collectors.late import Late
from collectors.rejections import Rejections
from collectors.source import Batch, Settings, Unusable, Version
from collectors.streams import KINDS, Line, Listed, Refused, Survey, lines, listed, survey
from models.window import Window, midnight

EARLIEST = 0


@dataclass
class Folder:
    """What a folder holds, as far as its files' frames tell."""

    path: Path
    streams: dict[str, dict[str, Survey]] = field(default_factory=dict)
    """Kind -> file -> survey; lists are there as if they were streams."""
    lists: dict[str, Listed] = field(default_factory=dict)
    others: list[tuple[str, int | None, str, str, int]] = field(default_factory=list)
    """File, when, reason, example and number of what is set aside."""
    listed_at: int | None = None
    record: Record | None = None


class Event(NamedTuple):
    """A line or an item of a list, in the order in which it was observed."""

    observed: int
    file: str
    number: int
    change: str
    raw: bytes | dict[str, Any]


def collect(path: Path, settings: Settings, window: Window | None = None) -> Iterator[Batch]:
    """The raw rows of the window's days, in bounded memory; of all days where it is None."""
    folder = _opened(path, settings)
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
    record = _opened(path, settings).record
    return as_instants(record.span) if record else None


def _opened(path: Path, settings: Settings) -> Folder:
    if not path.is_dir():
        raise FileNotFoundError(f"{path} is no folder of recorded answers")
    folder = Folder(path)
    newest: list[int] = []
    for file in sorted(path.rglob("*")):
        name = file.relative_to(path).as_posix()
        if path in settings.metrics_folders and is_metrics(file):
            continue  # `prometheus_recorded` reads it
        if file.name.endswith((".jsonl", ".jsonl.gz")):
            found = survey(file)
            for kind, part in found.kinds.items():
                folder.streams.setdefault(kind, {})[name] = part
            for kind, (times, first) in found.others.items():
                folder.others.append((name, first, "unknown_kind", kind, times))
            if not found.good:
                folder.others.append((name, None, found.fault, name, 1))
        elif file.suffix == ".json":
            try:
                folder.lists[name] = listed(file)
            except Unusable as error:
                folder.others.append((name, None, error.reason, error.example, 1))
                continue
            newest += [at for at in (folder.lists[name].newest,) if at is not None]
    folder.listed_at = micros_of(settings.observed_at) if settings.observed_at else None
    watched = _watched(folder)
    if folder.lists and folder.listed_at is None and newest:
        folder.listed_at = max(newest)
        if watched:  # a guess must not lead out of what is known
            folder.listed_at = min(max(folder.listed_at, watched[0]), watched[1] - 1)
    _add_lists(folder)
    folder.record = _record(folder, settings, watched)
    return folder


def _watched(folder: Folder) -> Span | None:
    """From the earliest to the latest line of Pods and Nodes, if they were watched at all."""
    parts = [s for kind in ("Pod", "Node") for s in folder.streams.get(kind, {}).values()]
    if not any(part.is_watched for part in parts):
        return None
    return min(part.first for part in parts), max(part.last for part in parts)


def _add_lists(folder: Folder) -> None:
    for name, found in folder.lists.items():
        counts: dict[str, int] = {}
        for _, kind, _ in found.items:
            counts[kind] = counts.get(kind, 0) + 1
        for kind, number in counts.items():
            if kind not in KINDS:
                folder.others.append((name, folder.listed_at, "unknown_kind", kind, number))
            elif folder.listed_at is not None:
                at = folder.listed_at
                folder.streams.setdefault(kind, {})[name] = Survey(at, at)


def _record(folder: Folder, settings: Settings, watched: Span | None) -> Record | None:
    main = {kind: folder.streams[kind] for kind in ("Pod", "Node") if kind in folder.streams}
    if not main:
        return None
    firsts = [min(part.first for part in parts.values()) for parts in main.values()]
    place = ", ".join(sorted(name for parts in main.values() for name in parts))
    if watched:
        before = max(firsts) if "Pod" in main else watched[1]
        gaps = union((g.begin, g.end) for parts in main.values() for g in gaps_of(parts))
        first = min((part.first for part in main.get("Node", {}).values()), default=None)
        return Record(watched, False, before, gaps, place, first)
    last = max(part.last for parts in main.values() for part in parts.values())
    begin = _earliest_bind(folder, settings, last)
    return Record((begin, last), True, 0, [], place, begin if "Node" in main else None)


def _earliest_bind(folder: Folder, settings: Settings, last: int) -> int:
    """The earliest bind of a listed pod that still holds a GPU."""
    found, days = last, Days(settings.zone)
    for event in _events(folder, "Pod"):
        if isinstance(event, Refused):
            continue
        try:
            row = PARSERS["Pod"][1](_version(event, 0, days), settings)
        except Unusable:
            continue
        is_held = row["requests"] and row["node_name"] and row["finished_at"] is None
        if is_held and row["bound_at"] is not None:
            found = min(found, row["bound_at"])
    return found


def _events(folder: Folder, kind: str) -> Iterator[Event | Refused]:
    """All of a kind, in the order observed; the lines of a file stay in theirs."""
    files = [_of_file(folder, name, kind) for name in sorted(folder.streams.get(kind, {}))]
    if len(files) == 1:
        return files[0]
    return heapq.merge(
        *files, key=lambda e: (e.after or EARLIEST) if isinstance(e, Refused) else e.observed
    )


def _of_file(folder: Folder, name: str, kind: str) -> Iterator[Event | Refused]:
    if found := folder.lists.get(name):
        for place, item_kind, item in found.items:
            if item_kind == kind:
                yield Event(folder.listed_at or 0, name, place, "LISTED", item)
        return
    for line in lines(folder.path / name):
        if isinstance(line, Line):
            if line.kind == kind:
                yield Event(line.observed, name, line.number, line.change, line.raw)
        elif kind == _first_kind(folder, name):  # once, however many kinds a file holds
            yield line._replace(example=f"{name}:{line.number} {line.example}")


def _first_kind(folder: Folder, name: str) -> str:
    return next(kind for kind in KINDS if name in folder.streams.get(kind, {}))


def _sequence(observed: int, number: int, days: Days) -> int:
    days.of(observed)
    return place_in_day(observed, days.begin, number)


def _version(event: Event, number: int, days: Days) -> Version:
    item = event.raw
    if isinstance(item, bytes):
        try:
            item = orjson.loads(item)["object"]
        except (orjson.JSONDecodeError, KeyError, TypeError):
            raise Unusable("bad_json", item[:120].decode("utf-8", "replace")) from None
    place = f"{event.file}:{event.number}"
    sequence = _sequence(event.observed, number % (ROOM // 2), days)
    return Version(sequence, event.observed, days.of(event.observed), event.change, place, item)


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
        for event in _events(self.folder, self.kind):
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
        if gap:
            yield from self._after_gap(gap, listing)
        yield from self._copies_back()
        yield from self.rows.rest()

    def _refuse(self, at: int | None, file: str, refused: Refused) -> None:
        when = at if at is not None else (self.folder.record or Record((0, 0))).span[0]
        if self.begin <= when < self.end:
            self.rejections.add(self.days.of(when), file, refused.reason, refused.example)

    def _take(self, number: int, event: Event) -> None:
        """One version: a row if it lies in the window, and its news of days before."""
        if event.change in ("BOOKMARK", "ERROR"):
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
        uid = self._uid(event)
        if uid is None:
            return
        if event.change == "DELETED":
            self.alive.pop(uid, None)
        else:
            self.alive[uid] = event

    def _uid(self, event: Event) -> str | None:
        try:
            meta = _version(event, 0, self.days).object["metadata"]
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
            return self.parse(_version(event, number, self.days), self.settings, note)
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
            self._take(number, event)
            yield from self.rows.full()

    def _add_gone(self, number: int, event: Event, at: int, place: str) -> None:
        half = ROOM // 2
        try:
            version = _version(event, 0, self.days)
            version = version._replace(
                sequence=_sequence(at, half + number % half, self.days),
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
        for number, event in enumerate(_events(self.folder, self.kind)):
            if isinstance(event, Refused):
                continue
            try:
                row = self.parse(_version(event, number, self.days), self.settings)
            except Unusable:
                continue  # it was refused on the list's own day
            for day in earlier.days():
                over = micros_of(midnight(day + timedelta(days=1), self.settings.zone))
                if self.begin < over <= self.end and (row.get("created_at") or 0) < over:
                    self.rows.add(row | {"day_on": day})
                    yield from self.rows.full()
