"""A folder of recorded answers of a Kubernetes API: watch streams, and lists, as raw rows.

`*.jsonl` and `*.jsonl.gz` hold one line a version, {observed_at, type, object}; `*.json` what
`kubectl get -o json` prints. What an object says is parsed in `kubernetes`. CARRIED rows are made
in `sql/carry`: a day here holds what was observed in it.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

from collectors.audit import creations
from collectors.batches import Rows
from collectors.coverage import (
    Days,
    Record,
    as_instants,
    instant,
    micros_of,
    stretches,
    tiles,
)
from collectors.kubernetes import PARSERS
from collectors.recorded_folder import Folder, events, opened, version_of
from collectors.recorded_kind import read
from collectors.rejections import Rejections
from collectors.source import Batch, Settings, Unusable
from collectors.spooled import segments
from collectors.streams import Refused
from models.window import Window, midnight


def collect(path: Path, settings: Settings, window: Window | None = None) -> Iterator[Batch]:
    """The raw rows of the window's days, in bounded memory; of all days where it is None."""
    folder = opened(path, settings, window)
    rejections = Rejections(settings)
    _note_others(folder, rejections, settings, window)
    if folder.is_spool:
        yield from segments(folder, settings, window, rejections)
    else:
        yield from read(folder, settings, window, rejections)
    if folder.record and folder.record.is_listed_only:
        yield from _copies_back(folder, settings, window)
    if folder.record:
        parts = stretches(folder.record)
        record = folder.record
        yield from tiles(parts, window, settings, record.place, nodes_from=record.nodes_from)
    yield from creations(path, settings, window, rejections)
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


def _copies_back(folder: Folder, settings: Settings, window: Window | None) -> Iterator[Batch]:
    """For lists alone: each earlier day of the known window gets what was there by its end.

    No day but the list's own has an observation, yet the window reaches back to the earliest
    bind; the copies say by `observed_at` when the list was really read.
    """
    days = Days(settings.zone)
    begin = micros_of(window.begin) if window else 0
    end = micros_of(window.end) if window else 2**62
    first, last = (days.of(at) for at in (folder.record or Record((0, 0))).span)
    earlier = Window(settings.cluster, first, last, settings.zone)
    rows = {table: Rows(table) for table, _ in PARSERS.values()}
    for number, event in enumerate(events(folder)):
        if isinstance(event, Refused) or event.kind == "Event":
            continue  # an event was not there on the days before
        table, parse = PARSERS[event.kind]
        try:
            row = parse(version_of(event, number, days), settings)
        except Unusable:
            continue  # it was refused on the list's own day
        for day in earlier.days():
            over = micros_of(midnight(day + timedelta(days=1), settings.zone))
            if begin < over <= end and (row.get("created_at") or 0) < over:
                rows[table].add(row | {"day_on": day})
                yield from rows[table].full()
    for each in rows.values():
        yield from each.rest()
