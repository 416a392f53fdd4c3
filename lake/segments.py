"""Which segments of a recorder's spool the lake has, and those that a run takes into it.

What is in a segment belongs to the collectors, the commit that keeps both to `publish`.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

import polars as pl

from lake.connect import NAME, attach, literal
from lake.home import Home
from lake.run import Run
from lake.staging import SPOOLS
from lake.writer import transaction
from models.meta import SEGMENTS

FIRST_COUNT = 20
"""So many segments from the first on tell when the record of each kind began."""
MARGIN = timedelta(days=2)
"""What was observed so long before a window may still say what happened in it."""


@dataclass(frozen=True)
class Ingested:
    """What the lake has of one spool."""

    last: str = ""
    """Name of the last segment; empty where it has none."""
    newest_at: datetime | None = None
    """When its newest line was observed."""
    surveys: tuple[tuple[str, str], ...] = ()
    """Segment and its surveys: of the first ones, and of the latest before `since` and after."""


def ingested(home: Home, cluster: str, spool: str, since: datetime | None = None) -> Ingested:
    """What the lake has of a spool; `since` is a window's begin."""
    if not home.catalog.exists():
        return Ingested()
    con = attach(home, read_only=True)
    where = (
        f"from {NAME}.{SEGMENTS.name} where cluster_name = {literal(cluster)} "
        f"and spool_name = {literal(spool)}"
    )
    try:
        last, newest_at = con.execute(
            f"select max(segment_name), max(last_observed_at) {where}"
        ).fetchall()[0]
        if last is None:
            return Ingested()
        from_at = min(at for at in (since, newest_at) if at is not None) - MARGIN
        rows = con.execute(
            f"select segment_name, surveys_json {where} qualify "
            f"last_observed_at >= timestamptz {literal(from_at.isoformat())} "
            f"or row_number() over (order by segment_name) <= {FIRST_COUNT} "
            "order by segment_name"
        ).fetchall()
    finally:
        con.close()
    return Ingested(last, newest_at, tuple(rows))


def has_some(home: Home, cluster: str) -> bool:
    """Whether the lake has segments of a cluster."""
    con = attach(home, read_only=True)
    try:
        query = f"select 1 from {NAME}.{SEGMENTS.name} where cluster_name = {literal(cluster)}"
        return bool(con.execute(f"{query} limit 1").fetchall())
    finally:
        con.close()


def stage(run: Run, spool: str, last: str, folder: str, taken: pl.DataFrame) -> None:
    """Book the segments that a run takes of a spool, of which the lake had those up to `last`."""
    run.append(SEGMENTS, taken)

    def work() -> None:
        con.execute(f"insert or replace into {SPOOLS} values (?, ?, ?)", [spool, last, folder])

    with run.connect() as con:
        transaction(con, work)


def taken(run: Run) -> dict[str, str]:
    """Folder of each spool that a run reads -> the last segment that the lake then has."""
    with run.connect() as con:
        if not con.execute(f"select 1 from {SPOOLS}").fetchall():
            return {}
        rows = con.execute(
            "select k.folder_text, greatest(k.last_name, coalesce(max(s.segment_name), '')) "
            f"from {SPOOLS} as k left join {SEGMENTS.name} as s using (spool_name) "
            "group by k.folder_text, k.last_name"
        ).fetchall()
    return dict(rows)
