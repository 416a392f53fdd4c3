"""The command line: which commands there are and what each may be told.

Each command's work is in a module of its own, imported when it is called: `query`, `explain` and
`status` must start fast, and never load Dagster.
"""

import sys
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="gpuledger",
    help="The ledger of GPU platforms: every GPU-second accounted for exactly once.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

ConfigPath = Annotated[
    Path | None,
    typer.Option(
        "--config", help="The configuration; else GPULEDGER_CONFIG, else gpuledger.yaml upward."
    ),
]
SnapshotNumber = Annotated[
    int | None, typer.Option("--snapshot", help="A published snapshot; else the newest.")
]
DAY = ["%Y-%m-%d"]


class Format(str, Enum):  # noqa: UP042 - typer shows the values of a str-Enum as they are
    """How `query` writes its answer."""

    table = "table"
    csv = "csv"
    json = "json"


@app.command()
def demo(
    serve: Annotated[bool, typer.Option(help="Open the dashboard when done.")] = True,
    seed: Annotated[int, typer.Option(help="Another fleet for another seed.")] = 1,
    days: Annotated[int, typer.Option(min=1, max=31, help="Days of the fleet's life.")] = 7,
    home: Annotated[Path | None, typer.Option(help="Folder; default .gpuledger/demo.")] = None,
    port: Annotated[int, typer.Option(help="Port of the dashboard.")] = 8501,
) -> None:
    """Build a lake from a simulated fleet, check the laws, open the dashboard."""
    from pipelines.demo import demo as work

    work(serve=serve, seed=seed, days=days, folder=home, port=port)


@app.command()
def init(
    path: Annotated[Path, typer.Argument(help="The file to write.")] = Path("gpuledger.yaml"),
) -> None:
    """Write a commented configuration; never over an existing one."""
    from pipelines.starter import write

    write(path)


@app.command()
def doctor(config: ConfigPath = None) -> None:
    """Check the configuration, every source and the lake, and say how to mend each."""
    from pipelines.doctor import doctor as work

    work(config)


@app.command()
def run(
    begin: Annotated[
        datetime | None, typer.Option("--from", formats=DAY, help="First day.")
    ] = None,
    end: Annotated[
        datetime | None, typer.Option("--to", formats=DAY, help="Last day, included.")
    ] = None,
    cluster: Annotated[str | None, typer.Option(help="Only this cluster.")] = None,
    config: ConfigPath = None,
) -> None:
    """Collect and compute a window of each cluster, check the laws, publish."""
    from pipelines.cli_run import run as work

    work(config, begin.date() if begin else None, end.date() if end else None, cluster)


@app.command(name="import")
def import_(
    folder: Annotated[Path, typer.Argument(help="Recorded lists, streams or metrics, or a trace.")],
    mapping: Annotated[Path | None, typer.Option(help="What a trace's columns mean.")] = None,
    cluster: Annotated[str | None, typer.Option(help="Its name; else the folder's.")] = None,
    observed_at: Annotated[
        str | None, typer.Option(help="When lists, or metrics without times, were read (ISO 8601).")
    ] = None,
    config: ConfigPath = None,
) -> None:
    """Bring recorded input of any kind into the lake, through the whole pipeline."""
    from pipelines.cli_run import import_folder

    import_folder(config, folder, mapping, cluster, observed_at)


@app.command()
def up(
    port: Annotated[int, typer.Option(help="Port of the Dagster UI.")] = 3000,
    dashboard_port: Annotated[int, typer.Option(help="Port of the dashboard.")] = 8501,
    config: ConfigPath = None,
) -> None:
    """Run the scheduler, the Dagster UI and the dashboard until Ctrl-C."""
    from pipelines.up import up as work

    work(config, port, dashboard_port)


@app.command()
def watch(
    config: ConfigPath = None,
    cluster: Annotated[
        list[str] | None, typer.Option(help="Only this cluster; may be given more than once.")
    ] = None,
) -> None:
    """Record the clusters' objects and events into their spools, until told to end."""
    from pipelines.watch import watch as work

    work(config, cluster or [])


@app.command()
def query(
    sql: Annotated[str, typer.Argument(help='One SELECT, such as "from mart.team_days".')],
    format: Annotated[Format, typer.Option(help="How to write the answer.")] = Format.table,
    snapshot: SnapshotNumber = None,
    config: ConfigPath = None,
) -> None:
    """Answer one SELECT from the published snapshot."""
    from pipelines.cli_read import query as work

    work(config, sql, format.value, snapshot)


@app.command()
def explain(
    table: Annotated[str, typer.Argument(help="Such as mart.team_days.")],
    column: Annotated[str, typer.Argument(help="Such as team_cost.")],
    keys: Annotated[list[str], typer.Argument(help="key=value of the rows that make the figure.")],
    snapshot: SnapshotNumber = None,
    config: ConfigPath = None,
) -> None:
    """Follow a figure down to the ledger, the holds and the raw rows it was read from."""
    from pipelines.explain import explain as work

    work(config, table, column, keys, snapshot)


@app.command()
def report(
    name: Annotated[str, typer.Argument(help="A report of the configuration.")],
    end: Annotated[
        datetime | None,
        typer.Option("--to", formats=DAY, help="Last day of the seven; else the last full week."),
    ] = None,
    team: Annotated[str | None, typer.Option(help="Of a report by team only this one.")] = None,
    snapshot: SnapshotNumber = None,
    recipient: Annotated[
        list[str] | None, typer.Option(help="An address in place of the configured ones.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print it, send nothing.")] = False,
    html: Annotated[
        Path | None, typer.Option(help="With --dry-run: also write the HTML to this file.")
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Also to those who have it.")] = False,
    config: ConfigPath = None,
) -> None:
    """Send a weekly report by mail, or print it."""
    from pipelines.cli_report import report as work

    last_on = end.date() if end else None
    work(config, name, last_on, team, snapshot, recipient or [], dry_run, html, again)


@app.command()
def status(config: ConfigPath = None) -> None:
    """Say what is published, how much of it is known, and what is stale or dirty."""
    from pipelines.cli_read import status as work

    work(config)


@app.command()
def maintain(
    keep_hours: Annotated[
        float, typer.Option(help="Snapshots are kept so long, 48 at least.")
    ] = 48,
    config: ConfigPath = None,
) -> None:
    """Merge small files, expire old snapshots and raw rows, remove what nothing needs."""
    from pipelines.cli_run import maintain as work

    work(config, keep_hours)


def main() -> None:
    """Run the command line."""
    from pipelines.cli_common import plain

    try:
        app()
    except KeyboardInterrupt:
        print(plain("gpuledger: interrupted"), file=sys.stderr)
        sys.exit(130)
