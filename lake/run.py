"""One run: its tables are staged aside, checked there, and published in one commit.

How rows are collected or computed belongs in `collectors` and `sql`, which laws must hold in
`pipelines`; what the commit does is in `publish`.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from typing import Any

import duckdb
import polars as pl

from lake import publish
from lake.connect import NAME, attach, literal
from lake.create import opened
from lake.errors import LakeError, StrayRowsError
from lake.files import tables_with
from lake.home import Home
from lake.staging import BOOK, staging, sweep
from lake.writer import locked, transaction, writer
from models.meta import DIRTY_DAYS
from models.table import Table
from models.window import Window

__all__ = ["Breach", "Run", "dirty_days", "mark_dirty", "sweep"]


@dataclass(frozen=True)
class Breach:
    """A rule that some rows of a staged table do not keep."""

    table: str
    rule: str
    count: int


class Run:
    """One run of one window of one cluster.

    All objects with the same run id in one process share what is staged. The files of a process
    that died are removed when the next run begins.
    """

    def __init__(self, home: Home, run_id: str, window: Window):
        if window.begin_on >= window.end_on:
            raise LakeError(f"the window {window.begin_on} to {window.end_on} holds no day")
        self.home = home
        self.run_id = run_id
        self._staging = staging(home, run_id)
        self.window = self._staging.window or window

    def widen(self, window: Window) -> None:
        """Take another window before anything is staged, all objects of the run with it."""
        self._staging.window = self.window = window

    @contextmanager
    def connect(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection in which `raw.pod_versions` is the staged table; the lake is not there."""
        cursor = self._staging.cursor()
        try:
            yield cursor
        finally:
            cursor.close()

    def begin(self, table: Table) -> None:
        """Stage the table with no rows: the window will be published empty unless some come."""
        with self.connect() as con:
            transaction(con, lambda: self._emptied(con, table))

    def append(self, table: Table, frame: pl.DataFrame) -> int:
        """Add rows to the staged table; the number of rows.

        StrayRowsError for rows of another cluster or day; Polars' SchemaError where the frame's
        columns are not the contract's.
        """
        frame = table.conform(frame)
        self._refuse(table, frame.filter(self._stray_rows()).height if table.is_daily else 0)

        def work() -> None:
            con.execute(table.ddl(strict=False))
            self._note(con, table)
            con.execute(f"insert into {table.name} by name from rows_to_append")

        with self.connect() as con:
            con.register("rows_to_append", frame)
            transaction(con, work)
            con.unregister("rows_to_append")
        return frame.height

    def replace(self, table: Table, frame: pl.DataFrame) -> int:
        """Stage these rows of the window in place of those staged; rows of other days stay."""
        with self.connect() as con:
            con.execute(table.ddl(strict=False))
            con.execute(f"delete from {table.name} where {self._inside()}")
        return self.append(table, frame)

    def fill(self, table: Table, query: str, params: Mapping[str, Any] | None = None) -> int:
        """Stage what a SELECT over the staged tables gives, in place of what was staged; its rows.

        `params` may hold more names than the query has. StrayRowsError for rows of another cluster
        or day; LakeError where the columns or their types are not the contract's, or where memory
        is short.
        """
        [statement] = duckdb.extract_statements(query)
        given = {name: (params or {})[name] for name in statement.named_parameters}
        text = query.strip().rstrip(";")

        def work() -> int:
            self._emptied(con, table)
            self._compare(con, table, text, given)
            con.execute(f"insert into {table.name} by name\n{text}", given)
            if table.is_daily:
                outside = f"select count(*) from {table.name} where not ({self._inside()})"
                self._refuse(table, _number(con, outside))
            return _number(con, f"select count(*) from {table.name}")

        with self.connect() as con, _within_means(table):
            return transaction(con, work)

    def load(self, *tables: Table, begin_on: date | None = None, end_on: date | None = None) -> int:
        """Stage the lake's rows of the window, or of other days of its cluster; their number.

        They replace what is staged of those days. A table of which nothing else is staged is not
        published again.
        """
        inside = self._inside(begin_on, end_on)

        def work(table: Table) -> int:
            rows = f"where {inside}" if table.is_daily else ""
            con.execute(table.ddl(strict=False))
            is_untouched = self._is_loaded(con, table) or table.name not in _staged(con)
            con.execute(f"delete from {table.name} {rows}")
            if not table.is_daily or table.name in there:
                con.execute(f"insert into {table.name} by name from {NAME}.{table.name} {rows}")
            self._note(con, table, _fingerprint(con, table) if is_untouched else None)
            return _number(con, f"select count(*) from {table.name} {rows}")

        begin, end = begin_on or self.window.begin_on, end_on or self.window.end_on
        with self._staging.with_lake(read_only=True) as con:
            there = tables_with(con, self.window.cluster, begin, end)
            return transaction(con, lambda: sum(work(table) for table in tables))

    def trim(self, table: Table) -> int:
        """Drop staged rows outside the window, such as a loaded day before; their number."""

        def work() -> int:
            is_untouched = self._is_loaded(con, table)
            outside = f"from {table.name} where not ({self._inside()})"
            count = _number(con, f"select count(*) {outside}")
            con.execute(f"delete {outside}")
            self._note(con, table, _fingerprint(con, table) if is_untouched else None)
            return count

        with self.connect() as con:
            return transaction(con, work) if table.is_daily else 0

    def audit(self, table: Table) -> list[Breach]:
        """The contract's rules that the staged table breaks."""
        with self.connect() as con, _within_means(table):
            if not con.execute(f"select 1 from {table.name} limit 1").fetchall():
                return []
            counts = {rule: _number(con, query) for rule, query in table.checks().items()}
        return [Breach(table.name, rule, count) for rule, count in counts.items() if count]

    def staged(self) -> list[str]:
        """Names of the staged tables."""
        with self.connect() as con:
            return _staged(con)

    def publish(self, tag: Mapping[str, Any] | None = None, timeout_seconds: float = 600) -> int:
        """Swap the window in all staged tables in one commit; its snapshot is what readers see.

        LakeError where the window meets a closed period, where the lake is newer than this code,
        or when the lock is not to be had.
        """
        opened(self.home)
        with (
            locked(self.home, timeout_seconds),
            self._staging.with_lake(read_only=False) as con,
        ):
            changed = [name for name in _staged(con) if not self._is_loaded(con, name)]
            plan = publish.Plan(
                run_id=self.run_id,
                cluster=self.window.cluster,
                begin_on=self.window.begin_on,
                end_on=self.window.end_on,
                end_at=self.window.end,
                began_at=self._staging.began_at,
                tables=tuple(changed),
                tag=dict(tag or {}),
            )
            return publish.swap(con, plan)

    def fail(self, error_text: str) -> None:
        """Record that the run was not published, and why; its cluster's rows stay, as stale."""
        window = self.window
        with writer(self.home) as con:
            publish.record_failure(
                con, self.run_id, window.cluster, window.begin_on, window.end_on, error_text
            )

    def discard(self) -> None:
        """Remove the run's files: after publishing, or after giving up."""
        self._staging.discard()

    def _inside(self, begin_on: date | None = None, end_on: date | None = None) -> str:
        return publish.inside(
            self.window.cluster, begin_on or self.window.begin_on, end_on or self.window.end_on
        )

    def _stray_rows(self) -> pl.Expr:
        cluster, day = pl.col("cluster_name"), pl.col("day_on")
        return (
            cluster.ne_missing(self.window.cluster)
            | day.is_null()
            | (day < self.window.begin_on)
            | (day >= self.window.end_on)
        )

    def _refuse(self, table: Table, stray_count: int) -> None:
        if stray_count:
            window = self.window
            span = f"{window.cluster} {window.begin_on} to {window.end_on}"
            raise StrayRowsError(table.name, stray_count, span)

    def _emptied(self, con: duckdb.DuckDBPyConnection, table: Table) -> None:
        con.execute(f"drop table if exists {table.name}")
        con.execute(table.ddl(strict=False))
        self._note(con, table)

    def _compare(
        self, con: duckdb.DuckDBPyConnection, table: Table, query: str, given: dict[str, Any]
    ) -> None:
        found = _columns(con, f"describe {query}", given)
        promised = _columns(con, f"describe {table.name}", None)
        if found != promised:
            wrong = sorted(found.items() ^ promised.items())
            words = ", ".join(
                f"{name} {kind} {'returned' if (name, kind) in found.items() else 'promised'}"
                for name, kind in wrong
            )
            raise LakeError(f"{table.name}: the query and the contract differ: {words}")

    def _note(
        self, con: duckdb.DuckDBPyConnection, table: Table, fingerprint: str | None = None
    ) -> None:
        """Book the table as staged; without a fingerprint it is published whatever it holds."""
        con.execute(
            f"insert or replace into {BOOK} values ({literal(table.name)}, {literal(fingerprint)})"
        )

    def _is_loaded(self, con: duckdb.DuckDBPyConnection, table: Table | str) -> bool:
        """Whether the staged table holds what was loaded from the lake, and nothing else."""
        name = table if isinstance(table, str) else table.name
        rows = con.execute(
            f"select fingerprint_text from {BOOK} where table_name = {literal(name)}"
        ).fetchall()
        return bool(rows) and rows[0][0] is not None and rows[0][0] == _fingerprint(con, name)


def mark_dirty(home: Home, cluster: str, days: Iterable[date], reason: str) -> None:
    """Note that the raw rows of these days changed after they were last computed."""
    marked = sorted(set(days))
    if not marked:
        return
    listed = ", ".join(literal(day) for day in marked)

    def work() -> None:
        con.execute(
            f"delete from {NAME}.meta.dirty_days "
            f"where cluster_name = {literal(cluster)} and day_on in ({listed})"
        )
        con.execute(
            f"insert into {NAME}.meta.dirty_days by name "
            f"select {literal(cluster)} as cluster_name, unnest([{listed}]) as day_on, "
            f"now() as marked_at, {literal(reason)} as reason_text"
        )

    with writer(home) as con:
        transaction(con, work)


def dirty_days(home: Home) -> pl.DataFrame:
    """The days to compute again, as in meta.dirty_days, in order."""
    con = attach(home, read_only=True)
    try:
        query = f"from {NAME}.{DIRTY_DAYS.name} order by cluster_name, day_on"
        return DIRTY_DAYS.conform(con.sql(query).pl())
    finally:
        con.close()


@contextmanager
def _within_means(table: Table) -> Iterator[None]:
    """LakeError that names the table where its query takes more memory than DuckDB may have."""
    try:
        yield
    except duckdb.OutOfMemoryException as error:
        [text, *_] = str(error).splitlines()
        raise LakeError(
            f"{table.name}: its query takes more memory than DuckDB may have ({text}); "
            "raise GPULEDGER_MEMORY, or run fewer days at once"
        ) from error


def _number(con: duckdb.DuckDBPyConnection, query: str) -> int:
    [(number,)] = con.execute(query).fetchall()
    return number


def _staged(con: duckdb.DuckDBPyConnection) -> list[str]:
    query = f"select table_name from {BOOK} order by table_name"
    return [name for (name,) in con.execute(query).fetchall()]


def _columns(
    con: duckdb.DuckDBPyConnection, query: str, given: dict[str, Any] | None
) -> dict[str, str]:
    rows = con.execute(query, given) if given else con.execute(query)
    return {name: kind for name, kind, *_ in rows.fetchall()}


def _fingerprint(con: duckdb.DuckDBPyConnection, table: Table | str) -> str:
    return publish.fingerprint(con, f"from {table if isinstance(table, str) else table.name}")
