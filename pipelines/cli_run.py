"""The commands that write: `run`, `import` and `maintain`, and what they print of a run.

What a run does, step by step, belongs in `process`.
"""

import re
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from pipelines.cli_common import (
    DONE,
    REFUSED,
    USAGE,
    answering,
    config_of,
    config_path,
    home_of,
    plain,
    progress,
    stop,
)

if TYPE_CHECKING:
    from lake.home import Home
    from models.config import Config
    from models.window import Window
    from pipelines.process import Outcome


def run(
    told: Path | None, begin_on: date | None, last_on: date | None, cluster: str | None
) -> None:
    """Process the clusters' windows; the exit code is the worst of them."""
    if begin_on and last_on and last_on < begin_on:
        stop(f"--to {last_on} is before --from {begin_on}")
    with answering():
        config, path = config_of(told)
        known = [each.name for each in config.clusters]
        if not known:
            stop(f"{path}: clusters: none; name one with its sources, or use `gpuledger import`")
        if cluster is not None and cluster not in known:
            stop(f"{cluster} is no cluster of {path}; known: {', '.join(known)}")
        home = home_of(told)
        codes = [
            one(home, config, name, begin_on, last_on) for name in known if cluster in (None, name)
        ]
    raise typer.Exit(worst(codes))


def worst(codes: Sequence[int]) -> int:
    """The code to end with: the lower, the worse."""
    return min((code for code in codes if code != DONE), default=DONE)


def one(
    home: "Home",
    config: "Config",
    cluster: str,
    begin_on: date | None = None,
    last_on: date | None = None,
    sources: Sequence[Any] | None = None,
) -> int:
    """Process one cluster and print what came of it; its exit code."""
    from lake.errors import LakeError
    from models.config_errors import ConfigError
    from pipelines.process import process

    with progress(plain(cluster)) as step:
        try:
            window = _window(home, config, cluster, begin_on, last_on)
            outcome = process(
                home, config, cluster, window, sources=sources, progress=step, at_once=True
            )
        except LakeError as error:
            typer.echo(plain(f"{cluster}: {error}"), err=True)
            return REFUSED
        except ConfigError as error:  # of a mapping: the other clusters can do without it
            typer.echo(plain(f"{cluster}: {error}"), err=True)
            return USAGE
    tell(outcome)
    return outcome.exit_code


def _window(
    home: "Home", config: "Config", cluster: str, begin_on: date | None, last_on: date | None
) -> "Window | None":
    """The days asked for; an end that is not told is that of the sources."""
    from collectors.source import Unreadable
    from lake.create import create
    from models.window import Window
    from pipelines.collect import reachable, sources_of, window_of

    if begin_on is None and last_on is None:
        return None
    if begin_on is None or last_on is None:
        sources, _ = reachable(sources_of(config, cluster))
        try:
            create(home, config.lake.accounting_zone, config.lake.currency)
            known = window_of(home, config, cluster, sources) if sources else None
        except Unreadable:
            return None  # `process` says so
        if known is None:
            stop(f"{cluster}: tell both --from and --to, its sources do not say which days")
        begin_on = begin_on or known.begin_on
        last_on = last_on or known.end_on - timedelta(days=1)
        if last_on < begin_on:
            last = known.end_on - timedelta(days=1)
            stop(f"{cluster}: its sources know {known.begin_on} to {last} only")
    end_on = last_on + timedelta(days=1)
    return Window(cluster, begin_on, end_on, config.lake.accounting_zone)


def tell(outcome: "Outcome") -> None:
    """Print what a run came to: published or not, which law, which source."""
    days = ""
    if outcome.window:
        days = f" {outcome.window.begin_on} to {outcome.window.end_on - timedelta(days=1)}"
    name = f"{outcome.cluster}{days}"
    for text in outcome.unreachable:
        typer.echo(plain(f"{name}: unreachable: {text}"), err=True)
    if outcome.error:
        typer.echo(plain(f"{name}: {outcome.error}"), err=True)
    for law in outcome.broken:
        typer.echo(plain(f"{name}: broken: {law}"), err=True)
    if outcome.snapshot is None:
        typer.echo(plain(f"{name}: nothing published"), err=True)
        return
    refused = f", {outcome.rejected_count:,} rows refused" if outcome.rejected_count else ""
    typer.echo(
        plain(
            f"{name}: published as snapshot {outcome.snapshot}, "
            f"{outcome.row_count:,} rows read{refused}, all laws hold"
        )
    )
    for text in outcome.notes:
        typer.echo(plain(f"  note: {text}"))
    if outcome.rejected_count:
        typer.echo(
            '  why: gpuledger query "select reason_name, source_ref, rejected_count, example_text, '
            f"mend_text from raw.rejections where cluster_name = '{plain(outcome.cluster)}'\""
        )


def import_folder(
    told: Path | None,
    folder: Path,
    mapping: Path | None,
    cluster: str | None,
    observed_at: str | None,
) -> None:
    """Process a folder of what was recorded, or a trace with its mapping, as a cluster."""
    from pydantic import TypeAdapter, ValidationError

    from collectors.folders import kinds
    from models.config import NAME, Config, Source

    with answering():
        if not folder.exists():
            stop(f"{folder} is not there")
        name = cluster or _name(folder)
        if not re.fullmatch(NAME, name):
            stop(f"--cluster {name}: letters, digits, '.', '_' and '-' only")
        if mapping is not None and observed_at is not None:
            stop("--observed-at is for what was recorded; a trace tells its times by its mapping")
        given: list[dict[str, Any]]
        if mapping is not None:
            if not mapping.is_file():
                stop(f"--mapping {mapping} is not there")
            given = [{"kind": "table", "mapping": mapping.absolute()}]
        elif not folder.is_dir():
            stop(f"{folder} is no folder; a table needs --mapping")
        else:
            at = {} if observed_at is None else {"observed_at": observed_at}
            given = [{"kind": kind, **at} for kind in kinds(folder)]
        path = {"path": folder.absolute()}
        try:
            sources = TypeAdapter(list[Source]).validate_python([one | path for one in given])
        except ValidationError as error:
            stop("; ".join(f"{e['loc'][-1]}: {e['msg']}" for e in error.errors()))
        config = config_of(told)[0] if config_path(told) else Config()
        if not config.prices:
            typer.echo("no prices configured: hours, states and waits only", err=True)
        code = one(home_of(told), config, name, sources=sources)
    raise typer.Exit(code)


def _name(folder: Path) -> str:
    """A cluster's name after a folder."""
    stem = folder.resolve().name or "imported"
    return re.sub(r"[^A-Za-z0-9._-]+", "-", stem).lstrip("._-") or "imported"


def maintain(told: Path | None, keep_hours: float) -> None:
    """Keep the lake small, and say what was done."""
    from lake.maintain import maintain as work
    from models.config import Config

    with answering():
        config = config_of(told)[0] if config_path(told) else Config()
        with progress("maintain") as step:
            step("merging, expiring, cleaning", 0, 1)
            report = work(home_of(told), keep_hours, config.policies.raw_retention_days)
    typer.echo(f"merged files       {report.merged_count:,}")
    typer.echo(f"expired snapshots  {report.expired_count:,}")
    typer.echo(f"removed files      {report.removed_count:,}")
    typer.echo(f"expired raw rows   {report.raw_row_count:,}")
    for layer, size in report.layer_bytes.items():
        typer.echo(f"{layer:<18} {size:,} bytes")
