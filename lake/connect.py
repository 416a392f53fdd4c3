"""Connections: DuckDB with our two extensions, and the lake attached to it.

Nothing is downloaded: the extensions are files inside Python packages. Which tables there are
belongs in `create`; who may write, and when, in `writer`.
"""

import os
import secrets
from collections.abc import Iterable
from datetime import date, datetime
from pathlib import Path

import duckdb
import duckdb_extension_ducklake
import duckdb_extension_sqlite_scanner

from lake.errors import LakeError
from lake.home import Home

BUSY_MILLISECONDS = 60_000
"""How long SQLite itself waits for another process's lock before it says so."""

NAME = "lake"
"""What the attached lake is called in every connection."""

CATALOGUE = f"__ducklake_metadata_{NAME}"
"""What DuckLake calls the attached catalogue."""


def literal(value: str | int | date | datetime | None) -> str:
    """The value as SQL.

    DuckDB's Python client imports pandas, where that is installed, with the first bound
    parameter: more than a second, which a light command does not have.
    """
    if value is None:
        return "null"
    if isinstance(value, datetime):  # which is a date, too
        return f"timestamptz '{value.isoformat()}'"
    if isinstance(value, date):
        return f"date '{value.isoformat()}'"
    if isinstance(value, int):
        return str(value)
    return "'" + value.replace("'", "''") + "'"


def listed(values: Iterable[str]) -> str:
    """The values as the inside of an SQL list, sorted; never empty, so that `in ()` cannot be."""
    return ", ".join(literal(value) for value in sorted(values)) or "null"


def extension_paths() -> list[Path]:
    """The extensions' files, in the order in which they must be loaded.

    LakeError where a package holds none for this DuckDB.
    """
    found = []
    for package in (duckdb_extension_sqlite_scanner, duckdb_extension_ducklake):
        folder = Path(str(package.__file__)).parent / "extensions" / f"v{duckdb.__version__}"
        files = list(folder.glob("*.duckdb_extension"))
        if not files:
            raise LakeError(
                f"{package.__name__} holds no extension for DuckDB {duckdb.__version__}"
            )
        found += files
    return found


_verified = False
"""Whether this process has had the extensions' signatures checked: 0.15 s, so once."""


def opened_database(home: Home, path: Path | None = None) -> duckdb.DuckDBPyConnection:
    """DuckDB with the extensions loaded: in memory, or the file at `path`."""
    global _verified
    con = plain_database(home, path)
    for extension in extension_paths():
        con.execute(f"load {literal(str(extension))}")
    _verified = True
    return con


def plain_database(home: Home, path: Path | None = None) -> duckdb.DuckDBPyConnection:
    """DuckDB that has no way to a lake."""
    con = duckdb.connect(str(path) if path else ":memory:", config=_settings(home))
    con.execute("set global TimeZone = 'UTC'")  # global: for the cursors too
    return con


def _settings(home: Home) -> dict[str, str | bool | int | float | list[str]]:
    """What every connection is set to."""
    found: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "allow_unsigned_extensions": "true" if _verified else "false",
        "preserve_insertion_order": "false",
        # Where DuckDB expects few rows, it would compare each with all others; its guesses err.
        "asof_loop_join_threshold": 0,
        # Staged rows come in thousands of small batches: at 16 MB it would do little else.
        "checkpoint_threshold": "256MB",
        "python_enable_replacements": "false",
        # DuckDB would spill into the working folder; the name is new, for processes share this one.
        "temp_directory": str(home.runs / f"spill-{os.getpid()}-{secrets.token_hex(4)}"),
    }
    if memory := os.environ.get("GPULEDGER_MEMORY"):
        found["memory_limit"] = memory
    if threads := os.environ.get("GPULEDGER_THREADS"):
        found["threads"] = threads
    return found


def attach_to(
    con: duckdb.DuckDBPyConnection, home: Home, *, read_only: bool, snapshot: int | None = None
) -> None:
    """Attach the lake to a connection; LakeError where there is none to read, or no such snapshot.

    OVERRIDE_DATA_PATH: a home that was moved, or is mounted elsewhere, stays readable.
    """
    if read_only and not home.catalog.exists():
        raise LakeError(f"there is no lake in {home.path}")
    options = [
        f"data_path {literal(str(home.data) + os.sep)}",
        "override_data_path true",
        "meta_journal_mode 'WAL'",
        f"meta_busy_timeout {BUSY_MILLISECONDS}",
        *(["read_only"] if read_only else []),
        *([f"snapshot_version {int(snapshot)}"] if snapshot is not None else []),
    ]
    source = literal(f"ducklake:sqlite:{home.catalog}")
    try:
        con.execute(f"attach {source} as {NAME} ({', '.join(options)})")
    except duckdb.Error as error:
        if snapshot is not None and "snapshot" in str(error).lower():
            raise LakeError(
                f"snapshot {snapshot} is not in the lake: never made or expired"
            ) from error
        raise LakeError(f"the lake in {home.path} cannot be opened: {error}") from error


def attach(
    home: Home, *, read_only: bool, snapshot: int | None = None
) -> duckdb.DuckDBPyConnection:
    """A connection in memory with the lake attached as `lake`; errors as in `attach_to`."""
    if not read_only:
        home.make()
    con = opened_database(home)
    try:
        attach_to(con, home, read_only=read_only, snapshot=snapshot)
    except BaseException:
        con.close()
        raise
    return con
