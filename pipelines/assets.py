"""The assets: the raw rows, one for each computed table, and the publication of a run.

The work is plain functions of `collect` and `compute`; the laws are in `checks`, the times in
`schedule`.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import dagster as dg

import sql
from lake.create import create
from lake.home import Home
from lake.run import Run
from models import raw
from models.catalog import CATALOG
from models.config import Config
from models.config_errors import ConfigError
from models.table import Table
from models.window import Window
from pipelines.carry import publish
from pipelines.cli_common import config_of, home_of
from pipelines.collect import counts, gather, reachable, sources_of, widened
from pipelines.compute import compute_table
from pipelines.graph import order, tables_read
from pipelines.spools import is_lost, tell_recorders

FIRST_ON = "2023-01-01"
FRESH = dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=30))


def zone() -> str:
    """The accounting zone of the configuration in force; UTC where there is none."""
    try:
        return config_of(None)[0].lake.accounting_zone
    except ConfigError:
        return "UTC"


ZONE = zone()
"""Fixed when the definitions are loaded, as partitions and schedules are."""
clusters = dg.DynamicPartitionsDefinition(name="cluster")
days = dg.DailyPartitionsDefinition(start_date=FIRST_ON, timezone=ZONE, end_offset=1)
partitions = dg.MultiPartitionsDefinition({"cluster": clusters, "day": days})


@dataclass
class Step:
    """What a step of a run needs."""

    run: Run
    config: Config


class Ledger(dg.ConfigurableResource):
    """The lake and the configuration that a run works with; both from the environment."""

    home: str = ""
    config: str = ""

    def opened(self) -> tuple[Home, Config]:
        """The home and the configuration; ConfigError where that is missing or wrong."""
        told = Path(self.config) if self.config else None
        home = Home(Path(self.home)) if self.home else home_of(told)
        return home, config_of(told)[0]

    @contextmanager
    def step(self, context: Any) -> Iterator[Step]:
        """The run that all steps of a Dagster run share; a step that fails marks it as failed."""
        home, config = self.opened()
        run = Run(home, context.run.run_id, window_of(context, config.lake.accounting_zone))
        try:
            yield Step(run, config)
        except Exception as error:
            run.fail(f"{type(error).__name__}: {error}")
            raise


def ledger() -> Ledger:
    """The resource, as GPULEDGER_HOME and GPULEDGER_CONFIG say."""
    return Ledger(
        home=os.environ.get("GPULEDGER_HOME", ""), config=os.environ.get("GPULEDGER_CONFIG", "")
    )


def window_of(context: Any, zone: str) -> Window:
    """The days of one cluster that the run was asked for: one partition, or a range of them."""
    keys = [_multi(key) for key in _keys(context)]
    names = {key.keys_by_dimension["cluster"] for key in keys}
    if len(names) != 1:
        raise dg.Failure(f"one run is of one cluster, not of {', '.join(sorted(names)) or 'none'}")
    found = sorted(date.fromisoformat(key.keys_by_dimension["day"]) for key in keys)
    end_on = found[-1] + timedelta(days=1)
    if (end_on - found[0]).days != len(found):
        raise dg.Failure(f"the days {found[0]} to {found[-1]} have gaps: run each stretch alone")
    return Window(names.pop(), found[0], end_on, zone)


def _keys(context: Any) -> list[str]:
    """The run's partitions; from its tags where the step itself does not know them (checks)."""
    tags = context.run.tags if hasattr(context, "run") else context.dagster_run.tags
    begin, end = tags.get(RANGE_BEGIN), tags.get(RANGE_END)
    if begin is None or end is None:
        return [tags[PARTITION]] if PARTITION in tags else []
    first, last = _multi(begin).keys_by_dimension, _multi(end).keys_by_dimension
    if first["cluster"] != last["cluster"]:
        raise dg.Failure(
            f"one run is of one cluster, not of {first['cluster']} to {last['cluster']}"
        )
    day, found = date.fromisoformat(first["day"]), []
    while day <= date.fromisoformat(last["day"]):
        found.append(f"{first['cluster']}|{day}")
        day += timedelta(days=1)
    return found


PARTITION = "dagster/partition"
RANGE_BEGIN = "dagster/asset_partition_range_start"
RANGE_END = "dagster/asset_partition_range_end"
"""The tags by which Dagster tells a run its partitions."""


def _multi(key: str) -> dg.MultiPartitionKey:
    if isinstance(key, dg.MultiPartitionKey):
        return key
    cluster, _, day = key.rpartition("|")
    return dg.MultiPartitionKey({"cluster": cluster, "day": day})


def key(name: str) -> dg.AssetKey:
    """The asset of a table."""
    return dg.AssetKey(name.split("."))


def describe(table: Table) -> dict[str, Any]:
    """A table's columns, as Dagster's catalogue shows them."""
    columns = [
        dg.TableColumn(
            c.name,
            c.kind.sql,
            description=c.doc,
            constraints=dg.TableColumnConstraints(nullable=c.nullable),
        )
        for c in table.columns
    ]
    return {"dagster/column_schema": dg.TableSchema(columns=columns)}


@dg.multi_asset(
    name="raw",
    specs=[
        dg.AssetSpec(key(t.name), description=t.doc, group_name="raw", metadata=describe(t))
        for t in raw.TABLES
    ],
    partitions_def=partitions,
    backfill_policy=dg.BackfillPolicy.single_run(),
)
def raw_tables(context: dg.AssetExecutionContext, ledger: Ledger) -> Iterator[dg.MaterializeResult]:
    """What the cluster's sources said in the window; from the lake where it has none."""
    home, config = ledger.opened()
    create(home, config.lake.accounting_zone, config.lake.currency)
    with ledger.step(context) as step:
        run, cluster = step.run, step.run.window.cluster
        given = sources_of(config, cluster)
        there, missing = reachable(given)
        if (given and not there) or is_lost(home, cluster, given, there):
            raise dg.Failure("; ".join(missing))
        run.widen(widened(home, config, cluster, run.window, there))
        missing += gather(run, config, there).unreachable
        staged = counts(run)
    for table in raw.TABLES:
        metadata = {
            "dagster/partition_row_count": staged.get(table.name, 0),
            "unreachable": "; ".join(missing) or "none",
        }
        yield dg.MaterializeResult(asset_key=key(table.name), metadata=metadata)


def computed(name: str, query: str) -> dg.AssetsDefinition:
    """The asset that one file of sql/ fills."""
    table = CATALOG[name]

    @dg.asset(
        key=key(name),
        deps=[key(read) for read in sorted(tables_read(query))],
        group_name=table.layer,
        description=f"{table.doc}\n\n```sql\n{query}\n```",
        metadata=describe(table),
        code_version=sha256(query.encode()).hexdigest()[:12],
        partitions_def=partitions,
        backfill_policy=dg.BackfillPolicy.single_run(),
        freshness_policy=FRESH if table.layer == "mart" else None,
        kinds={"duckdb", "sql"},
    )
    def asset(context: dg.AssetExecutionContext, ledger: Ledger) -> dg.MaterializeResult:
        with ledger.step(context) as step:
            rows = compute_table(step.run, name)
        return dg.MaterializeResult(metadata={"dagster/partition_row_count": rows})

    return asset


COVERAGE = """
    select sum(observed_gpu_seconds)::double / nullif(sum(held_gpu_seconds)::double, 0),
        1 - sum(unrecorded_gpu_seconds)::double / nullif(sum(installed_gpu_seconds)::double, 0),
        1 - sum(unpriced_gpu_seconds)::double / nullif(sum(installed_gpu_seconds)::double, 0)
    from mart.fleet_coverage
"""


@dg.asset(
    key=dg.AssetKey("published"),
    deps=[key(name) for name in (*(t.name for t in raw.TABLES), *order())],
    group_name="published",
    partitions_def=partitions,
    backfill_policy=dg.BackfillPolicy.single_run(),
    freshness_policy=FRESH,
)
def published(context: dg.AssetExecutionContext, ledger: Ledger) -> dg.MaterializeResult:
    """The window in all tables, swapped in one commit; only reached if every law holds."""
    with ledger.step(context) as step:
        with step.run.connect() as con:
            [shares] = con.execute(COVERAGE).fetchall()
        number = publish(step.run)
        for note in tell_recorders(step.run):
            context.log.warning(note)
    step.run.discard()
    names = ("observed_ratio", "recorded_ratio", "priced_ratio")
    coverage = {n: share for n, share in zip(names, shares, strict=True) if share is not None}
    return dg.MaterializeResult(metadata={"snapshot_number": number, **coverage})


ASSETS: list[dg.AssetsDefinition] = [
    raw_tables,
    *(computed(name, sql.QUERIES[name]) for name in order()),
    published,
]
