"""Kube-state-metrics read as a run reads it, for tests: from text, hour by hour, to all tables.

Nothing is published: the rows go through the queries in memory. What must hold is for the tests.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import polars as pl

import sql
from collectors.families import KUBE_STATE
from collectors.kube_state import Known, KubeState
from collectors.prometheus import Fetched
from collectors.prometheus_recorded import Recorded
from collectors.prometheus_segments import HOUR, Segment
from collectors.prometheus_selectors import Group
from collectors.source import Batch, Settings
from models.book import frames
from models.catalog import CATALOG
from models.config import Config
from models.raw import TABLES
from models.window import Window
from pipelines.graph import order
from pipelines.laws import LAWS


def fetched(source: Recorded, begin: int, end: int) -> Iterator[Fetched]:
    """All metrics of the family over (begin, end], each by itself."""
    for metric, matchers in KUBE_STATE.items():
        yield from source.collect([Segment(Group.of(metric, *matchers), begin, end)])


def hours(begin: int, end: int) -> Iterator[tuple[int, int]]:
    """The stretch cut at full hours; milliseconds."""
    while begin < end:
        yield begin, min(end, begin - begin % HOUR + HOUR)
        begin = begin - begin % HOUR + HOUR


def collected(
    source: Recorded, settings: Settings, window: Window, known: Known | None = None
) -> list[Batch]:
    """The raw rows of a window, in hours."""
    reader = KubeState(settings, "prometheus", window, known)
    begin, end = (int(moment.timestamp() * 1000) for moment in (window.begin, window.end))
    found: list[Batch] = []
    for hour in hours(begin, end):
        found += reader.read(*hour, fetched(source, *hour))
    return [*found, *reader.rest()]


def tables(batches: Iterable[Batch]) -> dict[str, pl.DataFrame]:
    """The rows of each raw table; empty where none were made."""
    rows: dict[str, list[pl.DataFrame]] = defaultdict(list)
    for batch in batches:
        rows[batch.table].append(batch.frame)
    return {
        t.name: pl.concat([t.conform(pl.DataFrame(schema=t.schema)), *rows[t.name]]) for t in TABLES
    }


def computed(config: Config, rows: dict[str, pl.DataFrame]) -> duckdb.DuckDBPyConnection:
    """All tables of one cluster, in memory."""
    con = duckdb.connect()
    con.execute("set TimeZone = 'UTC'")
    con.execute("create schema raw; create schema core; create schema mart")
    for name, frame in {**rows, **frames(config)}.items():
        con.execute(CATALOG[name].ddl(strict=False))
        con.register("given", frame)
        con.execute(f"insert into {name} by name from given")
        con.unregister("given")
    for name in order():
        [statement] = duckdb.extract_statements(sql.QUERIES[name])
        told = {"zone": "UTC"} if "zone" in statement.named_parameters else None
        con.execute(f"create table {name} as {sql.QUERIES[name]}", told)
    return con


def broken(con: duckdb.DuckDBPyConnection) -> list[str]:
    """The laws that do not hold, and the contracts of raw tables that rows break."""
    checks: dict[str, str] = {law.name: law.breaches for law in LAWS}
    for table in TABLES:
        checks |= {f"{table.name}.{name}": query for name, query in table.checks().items()}
    found = []
    for name, query in checks.items():
        [statement] = duckdb.extract_statements(query)
        told = {"zone": "UTC"} if "zone" in statement.named_parameters else None
        [(breaches,)] = con.execute(query, told).fetchall()
        found += [name] if breaches else []
    return found


def written(path: Path, lines: Iterable[str]) -> Path:
    """A folder with one file of OpenMetrics text."""
    path.mkdir(parents=True, exist_ok=True)
    (path / "kube.om").write_text("".join(f"{line}\n" for line in (*lines, "# EOF")))
    return path


def rows_of(frame: pl.DataFrame, *names: str) -> list[Any]:
    """Some columns of each row, in the order observed."""
    return frame.sort("sequence_number").select(names).rows()
