"""Keeping the lake small: few files, few snapshots, no files that nothing names any more.

Readers go on meanwhile; writers queue. What a reader may still be reading is never taken away:
snapshots and files stay for at least 48 hours. When it runs belongs in `pipelines`.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta

import duckdb

from lake.connect import CATALOGUE, NAME, literal
from lake.errors import LakeError
from lake.home import Home
from lake.publish import AUTHOR
from lake.read import newest_published
from lake.sent import named_snapshots
from lake.writer import transaction, writer
from models.catalog import CATALOG

LEAST_HOURS = 48
"""A page or a report may hold a snapshot open this long."""


@dataclass(frozen=True)
class Report:
    """What one maintenance did."""

    merged_count: int = 0
    """Files that were merged with others, or rewritten without their deleted rows."""
    expired_count: int = 0
    """Snapshots that can no longer be read."""
    removed_count: int = 0
    """Files that were removed from the disk."""
    raw_row_count: int = 0
    """Raw rows deleted because they were past their retention."""
    layer_bytes: dict[str, int] = field(default_factory=dict)
    """Bytes on disk by layer, and of the catalogue."""


def maintain(
    home: Home,
    keep_hours: float = LEAST_HOURS,
    raw_retention_days: int | None = None,
    timeout_seconds: float = 600,
) -> Report:
    """Merge small files, expire old snapshots, remove files that nothing needs; what was done.

    Kept are snapshots younger than `keep_hours`, the newest published one, and those that a closed
    period or a mail names. Raw rows go only if their retention is told. LakeError for less than
    48 hours, where there is no lake, or when the writer lock is not to be had.
    """
    if keep_hours < LEAST_HOURS:
        raise LakeError(f"snapshots are kept for at least {LEAST_HOURS} hours, not {keep_hours:g}")
    if not home.catalog.exists():
        raise LakeError(f"there is no lake in {home.path}")
    now = datetime.now(UTC)
    before = now - timedelta(hours=keep_hours)
    with writer(home, timeout_seconds) as con:
        raw_row_count = 0
        if raw_retention_days is not None:
            days = raw_retention_days
            raw_row_count = transaction(con, lambda: _delete_raw(con, now.date(), days))
        merged_count = 0
        for task in ("rewrite_data_files", "merge_adjacent_files"):
            rows = con.execute(f"select files_processed from ducklake_{task}('{NAME}')").fetchall()
            merged_count += sum(count for (count,) in rows)
        expired = _expire(con, before, named_snapshots(home))
        removed_count = 0
        older = f"older_than => timestamptz {literal(before.isoformat())}"
        for task in ("cleanup_old_files", "delete_orphaned_files"):
            removed_count += len(con.execute(f"from ducklake_{task}('{NAME}', {older})").fetchall())
    return Report(
        merged_count=merged_count,
        expired_count=expired,
        removed_count=removed_count,
        raw_row_count=raw_row_count,
        layer_bytes=layer_bytes(home),
    )


def layer_bytes(home: Home) -> dict[str, int]:
    """Bytes on disk by layer, files of older snapshots included, and of the catalogue."""
    found = {
        layer: sum(path.stat().st_size for path in (home.data / layer).rglob("*.parquet"))
        for layer in sorted({table.layer for table in CATALOG.values()})
    }
    found["catalog"] = sum(
        path.stat().st_size for path in home.catalog.parent.glob(f"{home.catalog.name}*")
    )
    return found


def _delete_raw(con: duckdb.DuckDBPyConnection, today: date, retention_days: int) -> int:
    """Delete the raw rows that are past their retention; their number.

    It counts back from the newest day that a table knows of a cluster, not from today: a trace of
    years ago would else lose its sources the moment it is imported.
    """
    con.execute(
        f"call {NAME}.set_commit_message("
        f"'{AUTHOR}', {literal(f'raw rows past their retention of {retention_days} days')})"
    )
    count = 0
    for table in CATALOG.values():
        if table.layer != "raw" or not table.is_daily:
            continue
        name = f"{NAME}.{table.name}"
        newest = con.execute(f"select cluster_name, max(day_on) from {name} group by all")
        for cluster, day in newest.fetchall():
            cutoff = min(today, day) - timedelta(days=retention_days)
            [(deleted,)] = con.execute(
                f"delete from {name} where cluster_name = {literal(cluster)} "
                f"and day_on < {literal(cutoff)}"
            ).fetchall()
            count += deleted
    return count


def _expire(con: duckdb.DuckDBPyConnection, before: datetime, named: Collection[int]) -> int:
    """Expire, each by its number, the snapshots that are old and needed by nobody."""
    newest = newest_published(con)
    rows = con.execute(
        f"select snapshot_id from {CATALOGUE}.ducklake_snapshot "
        f"where snapshot_time::timestamptz < timestamptz {literal(before.isoformat())} "
        f"and snapshot_id < (select max(snapshot_id) from {CATALOGUE}.ducklake_snapshot) "
        f"and snapshot_id <> {newest.number if newest else -1} "
        f"and snapshot_id not in (select snapshot_number from {NAME}.meta.closed_periods) "
        f"and not list_contains({sorted(named)}::bigint[], snapshot_id) "
        "order by snapshot_id"
    ).fetchall()
    if rows:
        versions = ", ".join(str(number) for (number,) in rows)
        con.execute(
            f"from ducklake_expire_snapshots('{NAME}', versions => [{versions}])"
        ).fetchall()
    return len(rows)
