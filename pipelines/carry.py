"""What one day hands to the next: the CARRIED rows, folded day by day.

The day's facts are computed by the same queries as in `compute`, on that day alone; which
objects are carried is said in sql/carry.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta

import duckdb

import sql
from lake.run import Run
from models.catalog import CATALOG
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
            _fold(con, staged, day, run.window.zone)
            day += timedelta(days=1)


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


def _fold(con: duckdb.DuckDBPyConnection, staged: str, day: date, zone: str) -> None:
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
        con.execute(f"create or replace temp table carried as {query}", values)
        con.execute(f"insert into {staged}.{name} by name from carried")
