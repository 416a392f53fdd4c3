"""The commands that only read: `query` and `status`, and how rows are written as text.

Where a figure comes from is `explain`'s; nothing here may reach Dagster.
"""

import csv
import json
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from models.cells import FORMULA_STARTS
from pipelines.cli_common import answering, home_of, note, plain, stop

if TYPE_CHECKING:
    from lake.read import Door


def text(value: Any) -> str:
    """A value as text: decimals to the last digit, instants in UTC, null as nothing."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case Decimal():
            return format(value, "f")
        case datetime():
            moment = value.astimezone(UTC) if value.tzinfo else value
            return moment.isoformat().replace("+00:00", "Z")
        case date():
            return value.isoformat()
        case dict() | list():
            return json.dumps(value, default=text, ensure_ascii=False)
        case _:
            return str(value)


def safe(value: Any) -> str:
    """A cell of a CSV file that no spreadsheet takes for a formula; numbers stay numbers."""
    # A carriage return alone is written without quotes, and would begin a row.
    cell = text(value).replace("\r\n", "\n").replace("\r", "\n")
    is_number = isinstance(value, int | float | Decimal)
    return f"'{cell}" if not is_number and cell.lstrip(" ").startswith(FORMULA_STARTS) else cell


def write_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str = "") -> None:
    """Print rows as a table; figures to the right."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    found = list(rows)
    table = Table(box=SIMPLE_HEAD, title=title or None, title_justify="left")
    for place, column in enumerate(columns):
        is_figure = any(isinstance(row[place], int | float | Decimal) for row in found)
        table.add_column(Text(column), justify="right" if is_figure else "left", overflow="fold")
    for row in found:
        table.add_row(*(Text(plain(text(value)).replace("\n", " ")) for value in row))
    console = Console(soft_wrap=False)
    if not console.is_terminal:
        width = max(console.measure(table).maximum, 80)
        console = Console(width=max(width, 400))
        table.expand = False
    console.print(table)


def write(columns: Sequence[str], rows: list[tuple[Any, ...]], kind: str) -> None:
    """Print rows as a table, as CSV or as JSON (decimals are strings there, to stay exact)."""
    if kind == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow([safe(column) for column in columns])
        writer.writerows([safe(value) for value in row] for row in rows)
    elif kind == "json":
        found = [dict(zip(columns, map(_json, row), strict=True)) for row in rows]
        typer.echo(json.dumps(found, default=text, ensure_ascii=False, indent=1))
    else:
        write_table(columns, rows)


def _json(value: Any) -> Any:
    return value if isinstance(value, None | bool | int | float | dict | list) else text(value)


def named(door: "Door") -> str:
    """Which snapshot an answer comes from."""
    return f"snapshot {door.snapshot.number}, published {text(door.snapshot.committed_at)}"


def query(config: Path | None, statement: str, kind: str, snapshot: int | None) -> None:
    """Answer one SELECT from the published snapshot, which is named on stderr."""
    with answering():
        from lake.read import Door

        with Door(home_of(config), snapshot) as door:
            answer = door.query(statement)
            write(answer.columns, answer.fetchall(), kind)
            note(named(door))


COVERAGE = """
    select cluster_name as cluster, min(day_on) as first_day, max(day_on) as last_day,
        max(known_until_at) as known_until,
        sum(observed_gpu_seconds) / nullif(sum(held_gpu_seconds), 0) as observed,
        1 - sum(unrecorded_gpu_seconds) / nullif(sum(installed_gpu_seconds), 0) as recorded,
        1 - sum(unpriced_gpu_seconds) / nullif(sum(installed_gpu_seconds), 0) as priced,
        sum(rejected_count)::bigint as rejected
    from mart.fleet_coverage group by cluster_name order by cluster_name
"""


def status(config: Path | None) -> None:
    """Say what is published, what is known of it, and what waits to be computed again."""
    with answering():
        from lake.errors import LakeError
        from lake.read import Door, published
        from lake.run import dirty_days

        home = home_of(config)
        if not home.catalog.exists():
            stop(f"there is no lake in {home.path}: `gpuledger run` or `gpuledger demo` makes one")
        typer.echo(f"lake       {home.path}")
        if published(home) is None:
            typer.echo("published  nothing yet: `gpuledger run` publishes")
        else:
            with Door(home) as door:
                typer.echo(f"published  {named(door)}")
                answer = door.query(COVERAGE)
                rows = [tuple(map(_percent, row)) for row in answer.fetchall()]
                write_table(answer.columns, rows)
        try:
            dirty = dirty_days(home).rows()
        except LakeError as error:
            stop(str(error))
        for cluster, day, _, reason in dirty:
            typer.echo(plain(f"dirty      {cluster} {day}: {reason}"))
        failed = _failed(home)
        for cluster, since, error in failed:
            typer.echo(plain(f"stale      {cluster} since {text(since)}: {error}"))
        if not dirty and not failed:
            typer.echo("dirty, stale: none")


def _percent(value: Any) -> Any:
    return f"{value:.1%}" if isinstance(value, float) else value


def _failed(home: Any) -> list[tuple[Any, ...]]:
    """The clusters whose last run was not published, also where nothing ever was."""
    from lake.connect import NAME, attach

    con = attach(home, read_only=True)
    try:
        return con.execute(
            f"select cluster_name, stale_since_at, error_text from {NAME}.meta.runs "
            "where not is_published order by cluster_name"
        ).fetchall()
    finally:
        con.close()
