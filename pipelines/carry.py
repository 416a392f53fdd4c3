"""What one day hands to the next: the CARRIED rows, folded day by day.

The day's facts are computed by the same queries as in `compute`, on that day alone; which
objects are carried is said in sql/carry.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta

import duckdb

import sql
from lake.publish import differ
from lake.run import Run, mark_dirty
from models.catalog import CATALOG
from models.raw import COVERAGE
from models.table import Table
from models.window import midnight
from pipelines.graph import needed_for, tables_read

FOLDED = needed_for(
    frozenset(
        name for text in sql.CARRIES.values() for name in tables_read(text) if name in sql.QUERIES
    )
)
READ = sorted(
    {name for folded in FOLDED for name in tables_read(sql.QUERIES[folded])} - set(FOLDED)
)


def carry(run: Run, first_on: date) -> None:
    """Add the CARRIED rows of each day of the run's window, folding from `first_on` on."""
    with run.connect() as con, _scratch(con) as staged:
        day = first_on
        while day + timedelta(days=1) < run.window.end_on:
            for name in _folded(con, staged, day, run.window.zone):
                con.execute(f"insert into {staged}.{name} by name from carried")
            day += timedelta(days=1)


def publish(run: Run) -> int:
    """Publish the run's window; the day after it is dirty if it was carried something else.

    The number of the snapshot; LakeError as `Run.publish` says.
    """
    if _is_next_day_stale(run):
        reason = f"what {run.window.end_on - timedelta(days=1)} hands on to it changed"
        mark_dirty(run.home, run.window.cluster, [run.window.end_on], reason)
    return run.publish()


def _is_next_day_stale(run: Run) -> bool:
    next_on = run.window.end_on
    last_on, over_on = next_on - timedelta(days=1), next_on + timedelta(days=1)
    is_there = run.load(COVERAGE, begin_on=next_on, end_on=over_on) > 0
    run.trim(COVERAGE)
    if not is_there:
        return False
    tables = [CATALOG[name] for name in sql.CARRIES]
    run.load(*tables, begin_on=next_on, end_on=over_on)
    with run.connect() as con, _scratch(con) as staged:
        is_stale = any(
            differ(con, *_both(CATALOG[name], f"{staged}.{name}", next_on))
            for name in _folded(con, staged, last_on, run.window.zone)
        )
    for table in tables:
        run.trim(table)
    return is_stale


def _both(table: Table, stored: str, day: date) -> tuple[str, str]:
    """The rows in `carried`, and the CARRIED ones of that day, both without their numbers."""
    columns = ", ".join(c.name for c in table.columns if c.name != "sequence_number")
    is_carried = f"day_on = date '{day}' and change_name = 'CARRIED'"
    return f"select {columns} from carried", f"select {columns} from {stored} where {is_carried}"


@contextmanager
def _scratch(con: duckdb.DuckDBPyConnection) -> Iterator[str]:
    """A database beside the staged one, in which raw.x is the day's rows only; yields the other."""
    [(name,)] = con.execute("select current_database()").fetchall()
    staged = f'"{name}"'
    con.execute("attach ':memory:' as fold")
    con.execute("create schema fold.raw; create schema fold.core; use fold")
    try:
        yield staged
    finally:
        con.execute(f"use {staged}")
        con.execute("detach fold")


def _folded(con: duckdb.DuckDBPyConnection, staged: str, day: date, zone: str) -> Iterator[str]:
    """Each raw table that hands on rows of that day, while they are the table `carried`."""
    next_on = day + timedelta(days=1)
    for name in READ:
        rows = f"from {staged}.{name}"
        if CATALOG[name].is_daily:
            rows += f" where day_on = date '{day}'"
        con.execute(f"create or replace view {name} as select * {rows}")
    for name in FOLDED:
        con.execute(f"create or replace table {name} as {sql.QUERIES[name]}")
    values = {"next_on": next_on, "next_at": midnight(next_on, zone)}
    for name, query in sql.CARRIES.items():
        empty = f"select * from {staged}.{name} limit 0"
        con.execute(f"create or replace temp table carried as {empty}")
        con.execute(f"insert into carried by name {query}", values)
        yield name
