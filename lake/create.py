"""Making a lake and keeping its tables at the contracts: migrations only add.

What the tables are belongs in `models`; their rows come through `run`.
"""

from dataclasses import dataclass
from zoneinfo import ZoneInfo

import duckdb

from lake.connect import NAME, attach, literal
from lake.errors import LakeError
from lake.home import Home
from lake.writer import transaction, writer
from models.catalog import CATALOG
from models.table import Column, Table

SCHEMA_NUMBER = 1
"""Version of the tables that this code reads and writes."""


@dataclass(frozen=True)
class Lake:
    """What was fixed when the lake was made."""

    schema_number: int
    zone: str
    currency: str


def create(home: Home, zone: str, currency: str) -> Lake:
    """Make the lake, or bring an older one to the contracts; a second time changes nothing.

    LakeError for an unknown zone, for another zone or currency than the lake's, for a newer lake.
    """
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError) as error:
        raise LakeError(f"{zone!r} is no IANA time zone") from error
    with writer(home) as con:
        transaction(con, lambda: _complete(con, home, zone, currency))
        lake = described(con, home)
    for what, asked, fixed in (
        ("accounting zone", zone, lake.zone),
        ("currency", currency, lake.currency),
    ):
        if asked != fixed:
            raise LakeError(
                f"the {what} of the lake in {home.path} is {fixed} and cannot become {asked}: "
                "make another lake"
            )
    return lake


def opened(home: Home) -> Lake:
    """Check that this code may use the lake, and add what the contracts have and it has not.

    LakeError where there is no lake, where it was never finished, or where it is newer.
    """
    con = attach(home, read_only=True)
    try:
        lake = described(con, home)
        is_complete = not _missing(con)
    finally:
        con.close()
    if not is_complete:
        with writer(home) as con:
            transaction(con, lambda: _complete(con, home, lake.zone, lake.currency))
    return lake


def described(con: duckdb.DuckDBPyConnection, home: Home) -> Lake:
    """What was fixed when the attached lake was made; LakeError if unfinished or newer."""
    lake = _recorded(con)
    if lake is None:
        raise LakeError(f"the lake in {home.path} was never finished: create it again")
    if lake.schema_number > SCHEMA_NUMBER:
        raise LakeError(
            f"the lake in {home.path} has schema {lake.schema_number}, newer than this "
            f"gpuledger's {SCHEMA_NUMBER}: upgrade gpuledger"
        )
    return lake


def _recorded(con: duckdb.DuckDBPyConnection) -> Lake | None:
    """The lake's row of meta.lake."""
    try:
        rows = con.execute(
            "select schema_number, accounting_zone_name, currency_name "
            f"from {NAME}.meta.lake order by schema_number desc limit 1"
        ).fetchall()
    except duckdb.CatalogException:
        return None
    return Lake(*rows[0]) if rows else None


def present(con: duckdb.DuckDBPyConnection) -> dict[str, dict[str, str]]:
    """The attached lake's tables: name -> column -> type."""
    found: dict[str, dict[str, str]] = {}
    for table, column, kind in con.execute(
        "select schema_name || '.' || table_name, column_name, data_type "
        f"from duckdb_columns() where database_name = '{NAME}'"
    ).fetchall():
        found.setdefault(table, {})[column] = kind
    return found


def _missing(con: duckdb.DuckDBPyConnection) -> list[tuple[Table, Column | None]]:
    """What the contracts have and the lake has not: whole tables (None), or columns.

    LakeError where a column has another type: a migration only adds.
    """
    here = present(con)
    missing: list[tuple[Table, Column | None]] = []
    for table in CATALOG.values():
        columns = here.get(table.name)
        if columns is None:
            missing.append((table, None))
            continue
        for column in table.columns:
            kind = columns.get(column.name)
            if kind is None:
                missing.append((table, column))
            elif kind.replace(", ", ",") != column.kind.sql.replace(", ", ","):
                raise LakeError(
                    f"{table.name}.{column.name} is {kind} in the lake, "
                    f"and {column.kind.sql} in this gpuledger"
                )
    return missing


def _complete(con: duckdb.DuckDBPyConnection, home: Home, zone: str, currency: str) -> None:
    """Add what is missing, and the lake's row if it has none; LakeError for a newer lake."""
    if _recorded(con):
        described(con, home)
    # A few rows would be kept in the catalogue, where deleting them leaves work for later.
    con.execute(f"call {NAME}.set_option('data_inlining_row_limit', 0)")
    for layer in sorted({table.layer for table in CATALOG.values()}):
        con.execute(f"create schema if not exists {NAME}.{layer}")
    for table, column in _missing(con):
        if column is not None:
            con.execute(
                f"alter table {NAME}.{table.name} add column {column.name} {column.kind.sql}"
            )
            continue
        con.execute(table.ddl(f"{NAME}."))
        if table.is_daily:
            con.execute(
                f"alter table {NAME}.{table.name} set partitioned by (cluster_name, day_on)"
            )
    con.execute(
        f"insert into {NAME}.meta.lake by name select {SCHEMA_NUMBER} as schema_number, "
        f"{literal(zone)} as accounting_zone_name, {literal(currency)} as currency_name, "
        f"date_trunc('second', now()) as created_at where not exists (from {NAME}.meta.lake)"
    )
