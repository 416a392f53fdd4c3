"""The `doctor` command: what may be wrong with configuration, sources and lake, and how to mend it.

It only looks. What a run refuses is said by the run itself.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from pipelines.cli_common import (
    REFUSED,
    UNREACHABLE,
    USAGE,
    answering,
    config_of,
    home_of,
    plain,
    progress,
)
from pipelines.cli_run import worst
from pipelines.findings import Finding

if TYPE_CHECKING:
    from lake.home import Home
    from models.config import Config


def doctor(told: Path | None) -> None:
    """Print each finding; the exit code is the worst."""
    with answering():
        config, path = config_of(told)
        home = home_of(told)
        findings = [Finding(f"configuration {path} is sound")]
        with progress("doctor") as step:
            step("looking at sources and lake", 0, 1)
            findings += _configured(config)
            for cluster in config.clusters:
                findings += _sources(config, cluster.name)
            findings += [*rules(config, home), *_home(home), *_lake(home)]
    for finding in findings:
        sign = "ok  " if not finding.mend else ("FAIL" if finding.code else "note")
        typer.echo(plain(f"{sign}  {finding.what}"))
        if finding.mend:
            typer.echo(plain(f"      mend: {finding.mend}"))
    raise typer.Exit(worst([finding.code for finding in findings]))


def _configured(config: "Config") -> Iterator[Finding]:
    if not config.clusters:
        yield Finding("no cluster is configured", "name one under clusters:, with its sources")
    if not config.teams and not config.team_rules:
        yield Finding("no team rules: all time is __unattributed__", "add teams: and team_rules:")
    if not config.prices:
        yield Finding("no prices: hours and waits work, costs are unknown", "add prices:")


def _sources(config: "Config", cluster: str) -> Iterator[Finding]:
    """Whether each source can be read, the days it knows, and what was set aside in it."""
    from collectors.source import Unreadable, settings
    from collectors.sources import ALL
    from models.config_errors import ConfigError
    from models.window import Window
    from pipelines.collect import sources_of
    from pipelines.doctor_prometheus import prometheus
    from pipelines.doctor_watch import recorder

    sources = sources_of(config, cluster)
    if not sources:
        yield Finding(f"{cluster}: no sources", "add sources: to it, or use `gpuledger import`")
    for source in sources:
        if source.kind == "prometheus":
            yield from prometheus(config, cluster, source)
            continue
        if source.kind == "kubernetes" and source.watch:
            yield from recorder(cluster, source.path)
        name = f"{cluster}: {source.kind} {source.path}"
        if not source.path.exists():
            yield Finding(f"{name} is not there", "correct its path, or mount it", UNREACHABLE)
            continue
        kind, told = ALL[source.kind], settings(config, cluster, sources)
        try:
            span = kind.span(source, told)
            if span is None:
                yield Finding(f"{name} knows no pods or nodes", "record pods and nodes", REFUSED)
                continue
            window = Window.around(cluster, span, config.lake.accounting_zone)
            yield Finding(f"{name} knows {window.begin_on} until {span[1]:%Y-%m-%d %H:%M:%S} UTC")
            yield from _contents(config, cluster, kind.collect(source, told, None))
        except PermissionError as error:
            yield Finding(f"{name}: {error.strerror}", "let this user read it", UNREACHABLE)
        except (Unreadable, ConfigError, OSError) as error:
            yield Finding(f"{name} cannot be used: {error}", "correct the file", REFUSED)


def _contents(config: "Config", cluster: str, batches: Any) -> Iterator[Finding]:
    """What kinds of rows a source gives, what it refuses, and whether its GPUs have a price."""
    counts: dict[str, int] = {}
    refused: dict[tuple[str, str], tuple[int, str]] = {}
    models: set[str] = set()
    for batch in batches:
        counts[batch.table] = counts.get(batch.table, 0) + batch.frame.height
        if batch.table == "raw.node_versions":
            with_gpus = batch.frame.filter(batch.frame["gpu_count"] > 0)
            models |= set(with_gpus["gpu_model_name"].unique().to_list())
        if batch.table == "raw.rejections":
            for row in batch.frame.iter_rows(named=True):
                key = (row["reason_name"], row["mend_text"])
                before = refused.get(key, (0, ""))[0]
                refused[key] = (before + row["rejected_count"], row["example_text"])
    kinds = ", ".join(f"{n:,} {name.removeprefix('raw.')}" for name, n in sorted(counts.items()))
    yield Finding(f"{cluster}: {kinds or 'no rows'}")
    for (reason, mend), (count, example) in sorted(refused.items()):
        yield Finding(f"{cluster}: {count:,} x {reason}, such as {example}", mend)
    yield from _prices(config, cluster, models)


def _prices(config: "Config", cluster: str, models: set[str]) -> Iterator[Finding]:
    from models.book import frames

    rows = frames(config)["raw.prices"].to_dicts() if config.prices else []
    for model in sorted(models):
        is_priced = any(
            row["gpu_model_name"] in (None, model) and row["cluster_name"] in (None, cluster)
            for row in rows
        )
        if not is_priced:
            line = f'{{valid_from: 2026-01-01, gpu_model: {model}, per_gpu_hour: ""}}'
            yield Finding(f"{cluster}: {model} has no price", f"fill in under prices: {line}")


def rules(config: "Config", home: "Home") -> Iterator[Finding]:
    """Activity rules for a GPU model that nothing knows: they would never fit."""
    from models.activity import ANY
    from models.config_errors import nearest
    from models.gpus import catalogue

    named = {place: rule.scope()[0] for place, rule in enumerate(config.activity_rules)}
    unknown = {place: model for place, model in named.items() if model not in {ANY, *catalogue()}}
    there = _models(home) if unknown else set()
    for place, model in unknown.items():
        if model not in there:
            line = f"activity_rules[{place}].gpu_model"
            yield Finding(
                f"{line}: neither the catalogue nor a node of the lake has {model}, so the rule "
                f"fits no GPU{nearest(model, {*catalogue(), *there})}",
                f"correct {line}, or leave the rule for when such a node comes",
            )


def _models(home: "Home") -> set[str]:
    """The GPU models of the nodes that the lake has; none where nothing is published."""
    from lake.errors import LakeError
    from lake.read import Door, published

    try:
        if not home.catalog.exists() or published(home) is None:
            return set()
        with Door(home) as door:
            query = "select distinct gpu_model_name from core.nodes"
            return {model for (model,) in door.query(query).fetchall()}
    except LakeError:  # told of by what looks at the lake
        return set()


SIZES = """
    select count(*), coalesce(sum(installed_gpu_seconds)::double / 86400, 0)
    from mart.fleet_coverage
"""


def _home(home: "Home") -> Iterator[Finding]:
    """Whether the home can be written, or made where it is not there yet."""
    there = next(path for path in (home.path, *home.path.parents) if path.exists())
    if not (there.is_dir() and os.access(there, os.W_OK)):
        mend = "let this user write there, or name another GPULEDGER_HOME"
        yield Finding(f"{home.path} is no folder that can be written", mend, USAGE)


def _lake(home: "Home") -> Iterator[Finding]:
    """What the lake holds, what it weighs, and what is stale."""
    from lake.create import opened
    from lake.errors import LakeError
    from lake.maintain import layer_bytes
    from lake.read import Door, published
    from lake.run import dirty_days

    if not home.catalog.exists():
        yield Finding(f"no lake yet in {home.path}", "gpuledger run makes it")
        return
    try:
        lake = opened(home)
        yield Finding(f"lake {home.path}: days of {lake.zone}, money in {lake.currency}")
        if published(home) is None:
            yield Finding("nothing is published yet", "gpuledger run")
            return
        with Door(home) as door:
            [(_, gpu_days)] = door.query(SIZES).fetchall()
            stale = door.stale().to_dicts()
            number = door.snapshot.number
        dirty = dirty_days(home).height
    except LakeError as error:
        yield Finding(str(error), "upgrade gpuledger, or name another GPULEDGER_HOME", REFUSED)
        return
    yield Finding(f"published snapshot {number}")
    size = sum(layer_bytes(home).values())
    each = f", {size / gpu_days:,.0f} bytes per GPU-day" if gpu_days else ""
    yield Finding(f"{size:,} bytes on disk{each}")
    if dirty:
        yield Finding(
            f"{dirty} days are to be computed again", "gpuledger run, or wait for tonight"
        )
    for row in stale:
        since = f"{row['cluster_name']} is stale since {row['stale_since_at']}"
        yield Finding(f"{since}: {row['error_text']}", "mend that, then gpuledger run", REFUSED)
