"""A recorder's spool in a run: what the lake has of it is kept, what is new is read and booked.

How segments are written and read belongs to `collectors`, the booking's commit to `lake`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl

from collectors.batches import key_of, rows_of
from collectors.coverage import gaps_of, instant, micros_of
from collectors.kubernetes import PARSERS
from collectors.late import LATE_SECONDS
from collectors.recorded_folder import MAIN, opened
from collectors.source import Settings
from collectors.spool_files import SpoolError, spool_name, tell_ingested
from collectors.surveys import Memory, packed, unpacked
from lake import segments
from lake.home import Home
from lake.run import Run
from models import raw
from models.catalog import CATALOG
from models.meta import SEGMENTS
from models.window import Window, day_of

VERSIONS = tuple(CATALOG[name] for name in sorted({table for table, _ in PARSERS.values()}))
OF_SEGMENTS = r"regexp_matches(source_ref, '^\d{12}-[0-9TZ]{16}\.jsonl\.gz')"
"""Which rows came from a spool."""


def remembered(
    home: Home, settings: Settings, sources: Sequence[Any], window: Window | None = None
) -> Settings:
    """The settings, with what the lake has of the spools among the sources."""
    since = window.begin if window else None
    spools = {}
    for source in sources:
        if source.kind == "kubernetes" and (name := spool_name(source.path)) is not None:
            known = segments.ingested(home, settings.cluster, name, since)
            surveys = {segment: unpacked(text) for segment, text in known.surveys}
            newest = micros_of(known.newest_at) if known.newest_at else 0
            spools[source.path] = Memory(name, known.last, newest, surveys)
    return replace(settings, spools=spools)


def first_day(settings: Settings, zone: str) -> date | None:
    """The first day that must be computed anew for what is new; None where the lake has none.

    A day takes up news of the day before, and is folded from it: none may be left out since the
    last one that the lake has.
    """
    found = []
    for path, memory in settings.spools.items():
        if not memory.last:
            return None
        found.append(memory.newest)
        folder = opened(path, settings)
        found += [s.first for s in folder.memory.taken.values() if s.first is not None]
        for kind, parts in folder.streams.items():  # a kind may have been silent for long
            found += [gap.begin for gap in gaps_of(parts) if gap.file in folder.unread]
            # Of pods or nodes that come later than the others it is told since when none is known.
            if kind in MAIN and folder.record and not {*parts} - {*folder.unread}:
                found.append(folder.record.span[0])
    if not found:
        return None
    return day_of(instant(min(found)) - timedelta(seconds=LATE_SECONDS), zone)


def is_lost(home: Home, cluster: str, given: Sequence[Any], there: Sequence[Any]) -> bool:
    """Whether a spool is not to be found that the lake has segments of.

    To publish what the other sources say would take its rows out of the lake.
    """
    lost = [s for s in given if s not in there and s.kind == "kubernetes"]
    return bool(lost) and segments.has_some(home, cluster)


def load(run: Run, settings: Settings) -> None:
    """Stage the lake's rows of segments that are not read again, and tell who was alive."""
    if any(memory.last for memory in settings.spools.values()):
        _load_rows(run)

    def rows(table: str) -> Iterator[dict[str, Any]]:
        query = (
            f"select * from {table} where {OF_SEGMENTS} and change_name <> 'HEARD' "
            f"qualify row_number() over (partition by {key_of(table)} "
            "order by day_on desc, sequence_number desc) = 1"
        )
        with run.connect() as con:
            frame = CATALOG[table].conform(con.sql(query).pl())
        yield from rows_of(frame.filter(pl.col("change_name") != "DELETED"), table)

    for memory in settings.spools.values():
        memory.rows = rows


def _load_rows(run: Run) -> None:
    window = run.window
    run.load(*VERSIONS, raw.REJECTIONS)
    inside = f"day_on >= date '{window.begin_on}' and day_on < date '{window.end_on}'"
    with run.connect() as con:
        for table in VERSIONS:
            kept = f"({OF_SEGMENTS} and change_name <> 'CARRIED')"
            con.execute(f"delete from {table.name} where {inside} and not {kept}")
        con.execute(f"delete from raw.rejections where {inside} and not {OF_SEGMENTS}")


def book(run: Run, settings: Settings) -> None:
    """Stage which segments were read, to be kept with their rows."""
    now = datetime.now(UTC).replace(microsecond=0)
    for path, memory in settings.spools.items():
        rows = [
            {
                "cluster_name": run.window.cluster,
                "spool_name": memory.spool,
                "segment_name": name,
                "line_count": found.good,
                "first_observed_at": None if found.first is None else instant(found.first),
                "last_observed_at": None if found.last is None else instant(found.last),
                "surveys_json": packed(found.kinds),
                "ingested_at": now,
            }
            for name, found in memory.taken.items()
        ]
        frame = pl.DataFrame(rows, schema=SEGMENTS.schema)
        segments.stage(run, memory.spool, memory.last, str(path), frame)


def tell_recorders(run: Run) -> list[str]:
    """Let recorders remove what the lake has, in time; what could not be told them."""
    notes = []
    for folder, last in segments.taken(run).items():
        if last:
            try:
                tell_ingested(Path(folder), last)
            except OSError as error:
                notes.append(
                    f"{folder} cannot be written ({error.strerror}): its recorder does not learn "
                    "which segments the lake has, and removes none"
                )
            except SpoolError as error:
                notes.append(str(error))
    return notes
