"""Which recorded files a folder holds, and all that they tell of a kind in the order observed.

A folder is what somebody collected, or a recorder's spool. What becomes of the lines belongs to
`recording`, how one file is read to `streams`.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from collectors.coverage import ROOM, Days, Record, Span, gaps_of, micros_of, place_in_day, union
from collectors.folders import is_metrics
from collectors.kubernetes import PARSERS
from collectors.source import Settings, Unusable, Version
from collectors.spool_files import SEALED, STATE, number_of
from collectors.streams import KINDS, Listed, Refused, lines, listed, survey, surveys
from collectors.surveys import Memory, Survey, Surveyed
from models.window import Window

EARLIEST = 0
MAIN = ("Pod", "Node")
"""The kinds whose record is what is known of a cluster."""
LINES = 500_000
"""More lines than a segment has: so a line of a spool has a place of its own, whoever reads it."""


@dataclass
class Folder:
    """What a folder holds, as far as its files' frames tell."""

    path: Path
    is_spool: bool = False
    """Whether a recorder writes it: segments in order, of more kinds than are read."""
    streams: dict[str, dict[str, Survey]] = field(default_factory=dict)
    """Kind -> file -> survey; lists are there as if they were streams."""
    lists: dict[str, Listed] = field(default_factory=dict)
    others: list[tuple[str, int | None, str, str, int]] = field(default_factory=list)
    """File, when, reason, example and number of what is set aside."""
    listed_at: int | None = None
    record: Record | None = None
    memory: Memory = field(default_factory=Memory)
    """What was read of it before; it is not read again."""
    unread: list[str] = field(default_factory=list)
    """The files of streams and lists to read, in order."""
    knows: frozenset[str] = frozenset()
    """The kinds that it tells of, whatever is read now."""


class Event(NamedTuple):
    """A line or an item of a list, in the order in which it was observed."""

    observed: int
    file: str
    number: int
    kind: str
    change: str
    raw: bytes | dict[str, Any]


def opened(path: Path, settings: Settings, window: Window | None = None) -> Folder:
    """Survey a folder; FileNotFoundError where it is none.

    Of a spool those segments are left for later that lead out of the window.
    """
    if not path.is_dir():
        raise FileNotFoundError(f"{path} is no folder of recorded answers")
    if (path / STATE).exists():
        return _opened_spool(path, settings, window)
    folder = Folder(path)
    newest: list[int] = []
    for file in sorted(path.rglob("*")):
        name = file.relative_to(path).as_posix()
        if path in settings.metrics_folders and is_metrics(file):
            continue  # `prometheus_recorded` reads it
        if file.name.endswith((".jsonl", ".jsonl.gz")):
            found = survey(file)
            _add(folder, name, found)
            for kind, (times, first) in found.others.items():
                folder.others.append((name, first, "unknown_kind", kind, times))
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
    folder.knows = frozenset(folder.streams)
    folder.record = _record(folder, settings, watched)
    return folder


def _opened_spool(path: Path, settings: Settings, window: Window | None) -> Folder:
    """A recorder keeps more kinds than are read, and files of its own: neither is told."""
    folder = Folder(path, is_spool=True, memory=settings.spools.get(path, Memory()))
    for name, kinds in folder.memory.surveys.items():
        for kind, part in kinds.items():
            folder.streams.setdefault(kind, {})[name] = part
    folder.memory.taken = {}
    until = micros_of(window.end) if window else 2**62
    files = sorted(f for f in path.glob(f"*{SEALED}") if f.name > folder.memory.last)
    for file, found in zip(files, surveys(files), strict=True):
        if found.last is not None and found.last >= until:
            break
        _add(folder, file.name, found)
        folder.memory.taken[file.name] = found
    folder.knows = frozenset(folder.streams)
    folder.record = _record(folder, settings, _watched(folder))
    return folder


def _add(folder: Folder, name: str, found: Surveyed) -> None:
    for kind, part in found.kinds.items():
        folder.streams.setdefault(kind, {})[name] = part
    if found.kinds:
        folder.unread.append(name)
    if not found.good:
        folder.others.append((name, None, found.fault, name, 1))


def _watched(folder: Folder) -> Span | None:
    """From the earliest to the latest line of Pods and Nodes, if they were watched at all.

    A spool's were, also where it has had nothing but lists yet.
    """
    parts = [s for kind in MAIN for s in folder.streams.get(kind, {}).values()]
    if not parts or not (folder.is_spool or any(part.is_watched for part in parts)):
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
                if name not in folder.unread:
                    folder.unread.append(name)


def _record(folder: Folder, settings: Settings, watched: Span | None) -> Record | None:
    main = {kind: folder.streams[kind] for kind in MAIN if kind in folder.streams}
    if not main:
        return None
    firsts = [min(part.first for part in parts.values()) for parts in main.values()]
    names = sorted({name for parts in main.values() for name in parts})
    place = f"{names[0]} to {names[-1]}" if folder.is_spool else ", ".join(names)
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
    for event in events(folder):
        if isinstance(event, Refused) or event.kind != "Pod":
            continue
        try:
            row = PARSERS["Pod"][1](version_of(event, 0, days), settings)
        except Unusable:
            continue
        is_asking = row["requests"] or row["claims"]
        is_held = is_asking and row["node_name"] and row["finished_at"] is None
        if is_held and row["bound_at"] is not None:
            found = min(found, row["bound_at"])
    return found


def events(folder: Folder) -> Iterator[Event | Refused]:
    """All that is to be read, in the order observed; the lines of a file stay in theirs."""
    files = [_of_file(folder, name) for name in sorted(folder.unread)]
    if folder.is_spool or len(files) == 1:  # a segment begins where the one before it ends
        return chain.from_iterable(files)
    return heapq.merge(
        *files, key=lambda e: (e.after or EARLIEST) if isinstance(e, Refused) else e.observed
    )


def _of_file(folder: Folder, name: str) -> Iterator[Event | Refused]:
    if found := folder.lists.get(name):
        for place, kind, item in found.items:
            if kind in KINDS:
                yield Event(folder.listed_at or 0, name, place, kind, "LISTED", item)
        return
    for line in lines(folder.path / name):
        if isinstance(line, Refused):
            yield line._replace(example=f"{name}:{line.number} {line.example}")
        elif line.kind in KINDS:
            yield Event(line.observed, name, line.number, line.kind, line.change, line.raw)


def place_in_spool(event: Event) -> int:
    """The place of a segment's line among those that were observed at once."""
    return number_of(event.file) % (ROOM // 2 // LINES) * LINES + event.number % LINES


def sequence(observed: int, number: int, days: Days) -> int:
    """The place of the number-th line in the day of an instant."""
    days.of(observed)
    return place_in_day(observed, days.begin, number)


def version_of(event: Event, number: int, days: Days) -> Version:
    """An event as the number-th version; Unusable where it is no JSON."""
    item = event.raw
    if isinstance(item, bytes):
        try:
            item = orjson.loads(item)["object"]
        except (orjson.JSONDecodeError, KeyError, TypeError):
            raise Unusable("bad_json", item[:120].decode("utf-8", "replace")) from None
    place = f"{event.file}:{event.number}"
    place_there = sequence(event.observed, number % (ROOM // 2), days)
    return Version(place_there, event.observed, days.of(event.observed), event.change, place, item)
