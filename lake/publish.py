"""The commit that publishes a run, and the one that records its failure.

Both work on a connection that sees the staged tables and the lake, under the writer lock; what is
staged, and when it may be published, belongs in `run` and `pipelines`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import duckdb

from lake.connect import NAME, literal
from lake.errors import LakeError
from lake.files import tables_with
from lake.staging import SPOOLS
from lake.writer import transaction
from models.catalog import CATALOG
from models.meta import SEGMENTS

AUTHOR = "gpuledger"
ERROR_LENGTH = 4000


@dataclass(frozen=True)
class Plan:
    """What one commit publishes."""

    run_id: str
    cluster: str
    begin_on: date
    end_on: date
    end_at: datetime
    began_at: datetime
    tables: tuple[str, ...]
    tag: Mapping[str, Any]


def inside(cluster: str, begin_on: date, end_on: date) -> str:
    """The condition that a row lies in a cluster's window."""
    return (
        f"cluster_name = {literal(cluster)} "
        f"and day_on >= {literal(begin_on)} and day_on < {literal(end_on)}"
    )


def swap(con: duckdb.DuckDBPyConnection, plan: Plan) -> int:
    """Replace the window in the plan's tables in one tagged commit; the number of its snapshot.

    Daily tables lose and gain the window's rows; global ones are replaced whole, if they differ.
    LakeError where the window meets a closed period.
    """
    window = inside(plan.cluster, plan.begin_on, plan.end_on)

    def work() -> None:
        _refuse_closed(con, plan)
        _tag(
            con,
            f"{plan.cluster} {plan.begin_on} to {plan.end_on}",
            {
                **plan.tag,
                "published": True,
                "cluster": plan.cluster,
                "from": plan.begin_on.isoformat(),
                "to": plan.end_on.isoformat(),
                "run": plan.run_id,
            },
        )
        _keep_segments(con, plan)
        there = tables_with(con, plan.cluster, plan.begin_on, plan.end_on)
        for name in plan.tables:
            if name == SEGMENTS.name:
                continue
            if CATALOG[name].is_daily:
                _swap_days(con, name, window, is_there=name in there)
            elif _differ(con, name):
                con.execute(f"delete from {NAME}.{name}")
                con.execute(f"insert into {NAME}.{name} by name from {name}")
        con.execute(
            # A mark made while this run was computing speaks of rows that it may not have read.
            f"delete from {NAME}.meta.dirty_days where {window} "
            f"and marked_at <= timestamptz {literal(plan.began_at.isoformat())}"
        )
        _record(con, plan.run_id, plan.cluster, plan.begin_on, plan.end_on, None, "null")

    transaction(con, work)
    [(number,)] = con.execute(f"from ducklake_last_committed_snapshot('{NAME}')").fetchall()
    return int(number)


def record_failure(
    con: duckdb.DuckDBPyConnection,
    run_id: str,
    cluster: str,
    begin_on: date,
    end_on: date,
    error_text: str,
) -> None:
    """Note in meta.runs that the cluster is stale, since its first failure, and why."""

    def work() -> None:
        rows = con.execute(
            "select stale_since_at::varchar "
            f"from {NAME}.meta.runs where cluster_name = {literal(cluster)}"
        ).fetchall()
        first = rows[0][0] if rows else None
        since = f"timestamptz {literal(first)}" if first else "date_trunc('second', now())"
        _tag(con, f"{cluster} {begin_on} to {end_on} failed", {"published": False, "run": run_id})
        _record(con, run_id, cluster, begin_on, end_on, error_text[:ERROR_LENGTH], since)

    transaction(con, work)


def _swap_days(con: duckdb.DuckDBPyConnection, name: str, window: str, *, is_there: bool) -> None:
    """The window's rows in place of those that the lake has; where it only gains some, those."""
    rows = f"from {name} where {window}"
    if is_there and CATALOG[name].layer == "raw":
        columns = ", ".join(column.name for column in CATALOG[name].columns)
        there = f"select {columns} from {NAME}.{name} where {window}"
        numbers = f"select hash(t) as number from ({there}) as t"
        staged = f"select hash(t) as number from (select {columns} {rows}) as t"
        [(lost,)] = con.execute(f"select count(*) from ({numbers} except all {staged})").fetchall()
        if not lost:
            con.execute(
                f"insert into {NAME}.{name} by name select {columns} from "
                f"(select {columns}, hash(t) as number from (select {columns} {rows}) as t) "
                f"where number not in ({numbers})"
            )
            return
    if is_there:
        con.execute(f"delete from {NAME}.{name} where {window}")
    if con.execute(f"select 1 {rows} limit 1").fetchall():
        con.execute(f"insert into {NAME}.{name} by name {rows}")


def _keep_segments(con: duckdb.DuckDBPyConnection, plan: Plan) -> None:
    """Book the segments whose rows are published with them.

    LakeError where another run has taken segments of the window since this one began: its rows
    would be replaced by those of a run that does not know them.
    """
    if SEGMENTS.name not in plan.tables:
        return
    [(newer, name)] = con.execute(
        f"select count(*), min(there.segment_name) from {NAME}.{SEGMENTS.name} as there "
        f"inner join {SPOOLS} as k on k.spool_name = there.spool_name "
        f"where there.cluster_name = {literal(plan.cluster)} "
        "and there.segment_name > k.last_name "
        f"and there.first_observed_at < timestamptz {literal(plan.end_at.isoformat())} "
        f"and not exists (select 1 from {SEGMENTS.name} as mine "
        "where mine.spool_name = there.spool_name and mine.segment_name = there.segment_name)"
    ).fetchall()
    if newer:
        raise LakeError(
            f"{plan.cluster}: another run took {newer} segments from {name} on meanwhile: run again"
        )
    con.execute(
        f"insert into {NAME}.{SEGMENTS.name} by name select mine.* from {SEGMENTS.name} as mine "
        f"anti join {NAME}.{SEGMENTS.name} as there "
        "using (cluster_name, spool_name, segment_name)"
    )


def _refuse_closed(con: duckdb.DuckDBPyConnection, plan: Plan) -> None:
    closed = con.execute(
        f"select begin_on, end_on, snapshot_number from {NAME}.meta.closed_periods "
        f"where cluster_name = {literal(plan.cluster)} "
        f"and begin_on < {literal(plan.end_on)} and end_on > {literal(plan.begin_on)} "
        "order by begin_on limit 1"
    ).fetchall()
    for begin_on, end_on, number in closed:
        raise LakeError(
            f"{plan.cluster}: the period {begin_on} to {end_on} was closed at snapshot {number}; "
            f"{plan.begin_on} to {plan.end_on} cannot be replaced"
        )


def _differ(con: duckdb.DuckDBPyConnection, name: str) -> bool:
    columns = ", ".join(column.name for column in CATALOG[name].columns)
    return differ(con, f"select {columns} from {name}", f"select {columns} from {NAME}.{name}")


def differ(con: duckdb.DuckDBPyConnection, these: str, those: str) -> bool:
    """Whether two queries of the same columns do not give the same rows, in whatever order."""
    return fingerprint(con, these) != fingerprint(con, those)


def fingerprint(con: duckdb.DuckDBPyConnection, query: str) -> str:
    """What two queries have alike if they give the same multiset of rows."""
    [(text,)] = con.execute(
        f"select count(*) || ' ' || coalesce(sum(hash(t)::hugeint), 0) from ({query}) as t"
    ).fetchall()
    return text


def _tag(con: duckdb.DuckDBPyConnection, message: str, tag: dict[str, Any]) -> None:
    text = json.dumps(tag, sort_keys=True)
    con.execute(
        f"call {NAME}.set_commit_message("
        f"'{AUTHOR}', {literal(message)}, extra_info => {literal(text)})"
    )


def _record(
    con: duckdb.DuckDBPyConnection,
    run_id: str,
    cluster: str,
    begin_on: date,
    end_on: date,
    error_text: str | None,
    stale_since: str,
) -> None:
    """The cluster's row of meta.runs; `stale_since` is SQL."""
    con.execute(f"delete from {NAME}.meta.runs where cluster_name = {literal(cluster)}")
    con.execute(
        f"insert into {NAME}.meta.runs by name select {literal(cluster)} as cluster_name, "
        f"{literal(run_id)} as run_id, {literal(begin_on)} as begin_on, "
        f"{literal(end_on)} as end_on, date_trunc('second', now()) as ended_at, "
        f"{'true' if error_text is None else 'false'} as is_published, "
        f"{literal(error_text)}::varchar as error_text, "
        f"({stale_since})::timestamptz as stale_since_at"
    )
