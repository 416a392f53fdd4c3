"""The one read door: the lake at a published snapshot, in a viewer's scope.

Pages, reports, the API and the command line all read through it. What a figure looks like belongs
to them; what a statement may ask is judged in `scope`.
"""

import json
import os
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import duckdb
import polars as pl

import sql
from lake import scope
from lake.connect import (
    CATALOGUE,
    NAME,
    attach,
    attach_to,
    listed,
    literal,
    opened_database,
    plain_database,
)
from lake.create import described, present
from lake.errors import LakeError
from lake.home import Home
from models.catalog import CATALOG
from models.table import Table

PLATFORM = "platform"
NARROWING = {"clusters": "null", "teams": "null", "kind": "'all'", "wanted": "null"}
"""What a view of sql/view takes beside its period, and what it means where it is not told."""


@dataclass(frozen=True)
class Published:
    """A published snapshot: its number, when it was committed, and the tag of that commit."""

    number: int
    committed_at: datetime
    tag: Mapping[str, Any]


def published(home: Home, snapshot: int | None = None) -> Published | None:
    """The newest published snapshot, or the one of that number; None where there is none.

    LakeError where there is no lake.
    """
    con = attach(home, read_only=True)
    try:
        return newest_published(con, snapshot)
    finally:
        con.close()


def newest_published(
    con: duckdb.DuckDBPyConnection, snapshot: int | None = None
) -> Published | None:
    """As `published`, on a connection that has the lake attached."""
    asked = "" if snapshot is None else f"and snapshot_id = {int(snapshot)}"
    rows = con.execute(
        "select snapshot_id, snapshot_time::timestamptz, commit_extra_info "
        f"from {CATALOGUE}.ducklake_snapshot "
        f"join {CATALOGUE}.ducklake_snapshot_changes using (snapshot_id) "
        # The tag is our own JSON: inside a text of it, the quotes would be escaped.
        f"""where commit_extra_info like '%"published": true%' {asked} """
        "order by snapshot_id desc limit 1"
    ).fetchall()
    return Published(rows[0][0], rows[0][1], json.loads(rows[0][2])) if rows else None


class Door:
    """The lake at one published snapshot; safe to share between threads.

    With `teams` it shows only marts that have a team, and of them only these teams' rows: they are
    copied, when first asked for, into a database that has no way to the lake or to any file.
    `clusters` narrows what is shown; it is a filter, not a fence.
    """

    def __init__(
        self,
        home: Home,
        snapshot: int | None = None,
        teams: Collection[str] | None = None,
        clusters: Collection[str] | None = None,
    ):
        """Open it; LakeError where there is no lake, no such snapshot, or a newer lake."""
        self.home = home
        self.teams = None if teams is None else frozenset(teams)
        self.clusters = None if clusters is None else frozenset(clusters)
        self._bringing = threading.Lock()
        self._brought: set[str] = set()
        self._lake = opened_database(home)
        try:
            self.snapshot = self._enter(snapshot)
            self._here = present(self._lake)
            if self.teams is None:
                self._shown = frozenset(CATALOG)
                self._con = self._lake
            else:
                self._shown = frozenset(
                    name
                    for name, table in CATALOG.items()
                    if table.layer == "mart" and table.scope not in (None, PLATFORM)
                )
                self._con = plain_database(home)
            self._furnish()
        except BaseException:
            self.close()
            raise

    def query(
        self, query: str, params: Mapping[str, Any] | Sequence[Any] | None = None
    ) -> duckdb.DuckDBPyRelation:
        """The answer to one SELECT over `layer.name` tables and the views of sql/view.

        ScopeError for any other statement, and for what is not in scope; DuckDB's own error where
        the statement is wrong.
        """
        cursor = self._con.cursor()
        found = scope.asked(cursor, query)
        scope.refuse_others(found, self._shown, self._views.keys())
        self._bring(found)
        text = query.strip().rstrip(";")
        return cursor.sql(text, params=params) if params else cursor.sql(text)

    def mart(
        self, table: Table, begin_on: date, end_on: date, clusters: Collection[str] | None = None
    ) -> pl.DataFrame:
        """The rows of the days `[begin_on, end_on)` in the order of the grain, as in the contract.

        Also answers for a view of sql/view. ScopeError where the viewer may not see the table.
        """
        if table.name in sql.VIEWS:
            if clusters is not None:
                raise LakeError(f"{table.name} is not by cluster: open the door for the clusters")
            source = f"{table.name}({literal(begin_on)}, {literal(end_on)})"
        else:
            if not table.is_daily:
                raise LakeError(f"{table.name} has no days: query it instead")
            source = (
                f"{table.name} where day_on >= {literal(begin_on)} and day_on < {literal(end_on)}"
            )
            if clusters is not None:
                source += f" and cluster_name in ({listed(clusters)})"
        columns = ", ".join(column.name for column in table.columns)
        rows = self.query(f"select {columns} from {source} order by {', '.join(table.grain)}")
        return table.conform(rows.pl())

    def stale(self) -> pl.DataFrame:
        """The clusters whose last run was not published: since when, and why.

        As of now, not of the snapshot: a failure publishes nothing.
        """
        kept = "" if self.clusters is None else f"and cluster_name in ({listed(self.clusters)})"
        con = attach(self.home, read_only=True)
        try:
            return con.sql(
                "select cluster_name, stale_since_at, error_text, run_id, begin_on, end_on, "
                f"ended_at from {NAME}.meta.runs where not is_published {kept} "
                "order by cluster_name"
            ).pl()
        finally:
            con.close()

    def days(self, cluster: str | None = None) -> tuple[date, date] | None:
        """The first and the last published day, both included; None where there is none."""
        wanted = [] if cluster is None else [f"cluster_name = {literal(cluster)}"]
        if self.clusters is not None:
            wanted.append(f"cluster_name in ({listed(self.clusters)})")
        where = f"where {' and '.join(wanted)}" if wanted else ""
        cursor = self._lake.cursor()
        for name in ("mart.fleet_coverage", "core.windows"):
            if name in self._here:
                [(first, last)] = cursor.execute(
                    f"select min(day_on), max(day_on) from {NAME}.{name} {where}"
                ).fetchall()
                if first is not None:
                    return first, last
        return None

    def close(self) -> None:
        """Let go of the lake's files; answers that were not read yet are lost."""
        for con in {getattr(self, "_con", self._lake), self._lake}:
            con.close()

    def __enter__(self) -> "Door":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _enter(self, snapshot: int | None) -> Published:
        """Attach the lake at the published snapshot."""
        attach_to(self._lake, self.home, read_only=True)
        described(self._lake, self.home)
        found = newest_published(self._lake, snapshot)
        if found is None:
            if snapshot is None:
                raise LakeError(f"no published snapshot in the lake in {self.home.path}")
            raise LakeError(
                f"snapshot {snapshot} is none of the published ones in the lake in "
                f"{self.home.path}: expired, or never published"
            )
        self._lake.execute(f"detach {NAME}")
        attach_to(self._lake, self.home, read_only=True, snapshot=found.number)
        return found

    def _furnish(self) -> None:
        """Prepare what a query may name, then shut the way to files and settings."""
        for layer in sorted({CATALOG[name].layer for name in self._shown}):
            self._con.execute(f"create schema {layer}")
        self._views = {
            name: tables
            for name, text in sql.VIEWS.items()
            if (tables := scope.asked(self._con, text).tables) <= self._shown
        }
        data = literal(f"{self.home.data}{os.sep}")
        self._lake.execute(f"set allowed_directories = [{data}]")
        for con in {self._con, self._lake}:
            con.execute("set enable_external_access = false")
            con.execute("set lock_configuration = true")

    def _select(self, table: Table) -> str:
        """The table's rows in scope; what an older snapshot does not have is null or empty."""
        here = self._here.get(table.name)
        columns = ", ".join(
            c.name if here and c.name in here else f"null::{c.kind.sql} as {c.name}"
            for c in table.columns
        )
        if not here:
            return f"select {columns} where false"
        wanted = []
        if self.clusters is not None and "cluster_name" in here:
            wanted.append(f"cluster_name in ({listed(self.clusters)})")
        if self.teams is not None:
            wanted.append(f"{table.scope} in ({listed(self.teams)})")
        where = f" where {' and '.join(wanted)}" if wanted else ""
        return f"select {columns} from {NAME}.{table.name}{where}"

    def _bring(self, found: scope.Asked) -> None:
        """Make readable what a query asks for; making all there is would outlast most answers."""
        views = [name for name in self._views if name in found.functions]
        tables = found.tables.union(*(self._views[name] for name in views))
        with self._bringing:
            for name in sorted(tables - self._brought):
                self._bring_table(CATALOG[name])
                self._brought.add(name)
            for name in sorted(set(views) - self._brought):
                text = sql.VIEWS[name].strip().rstrip(";")
                for parameter in ("begin_on", "end_on"):
                    text = text.replace(f"${parameter}", f"cast({parameter} as date)")
                for parameter in NARROWING:
                    text = text.replace(f"${parameter}", parameter)
                narrowing = ", ".join(f"{key} := {value}" for key, value in NARROWING.items())
                self._con.cursor().execute(
                    f"create macro {name}(begin_on, end_on, {narrowing}) as table\n{text}"
                )
                self._brought.add(name)

    def _bring_table(self, table: Table) -> None:
        """A view of the lake's table, or for a viewer a copy of the rows in scope."""
        query, cursor = self._select(table), self._con.cursor()
        if self.teams is None:
            cursor.execute(f"create view {table.name} as {query}")
            return
        cursor.register("rows_brought", self._lake.cursor().sql(query).to_arrow_table())
        cursor.execute(f"create table {table.name} as from rows_brought")
        cursor.unregister("rows_brought")
