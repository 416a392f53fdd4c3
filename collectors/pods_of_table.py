"""Rows of a trace as versions of pods and nodes, with every column that their contracts ask for.

Reading and checking the trace belongs to `table`.
"""

from datetime import datetime, timedelta

import polars as pl

from collectors.columns import PLACE
from collectors.source import Settings
from models import raw
from models.states import UNKNOWN
from models.table import INSTANT, Table

POD_TABLE, NODE_TABLE = raw.POD_VERSIONS, raw.NODE_VERSIONS
RESOURCE = "milli-gpu"
"""The resource of a table: thousandths of a GPU."""
MICRO_OF_MILLI = 1000
FIRST_SEQUENCE = 1_000_000
STEPS = 10
"""Versions of one row are numbered within this many."""


def _nulls(table: Table, given: list[str]) -> list[pl.Expr]:
    """Null for the columns that a table's rows cannot know."""
    return [
        pl.lit(None, column.kind.polars).alias(column.name)
        for column in table.columns
        if column.name not in given
    ]


def _empty(table: Table, name: str) -> pl.Expr:
    dtype = table.column(name).kind.polars
    return pl.lit(pl.Series([[]], dtype=dtype)).first().alias(name)


def _at(column: str) -> pl.Expr:
    return pl.col(column).cast(INSTANT)


def versions_of(
    pods: pl.DataFrame,
    settings: Settings,
    file: str,
    is_start_known: bool,
    begin: datetime,
    end: datetime,
) -> pl.DataFrame:
    """Each pod as it was made, bound, started and ended, those inside the known window.

    What happened before the window is seen at its begin, what comes after its end not at all.
    """
    none = pl.lit(None, INSTANT)
    is_over = pl.col("phase").is_in(["Succeeded", "Failed"]).fill_null(False)
    is_placed = pl.col("bound_at").is_not_null()
    running = "Pending" if is_start_known else "Running"
    bound = {"node_name": pl.col("node"), "bound_at": _at("bound_at")}
    unbound = {"node_name": pl.lit(None, pl.String()), "bound_at": none}
    started = {"running_since_at": _at("started_at")}
    waiting = {"running_since_at": none, "stopped_at": none, "finished_at": none}
    ended = {
        "node_name": pl.when(is_placed).then("node"),
        "bound_at": _at("bound_at"),
        "running_since_at": _at("started_at"),
        "stopped_at": pl.when(pl.col("started_at").is_not_null()).then(_at("ended_at")),
        "finished_at": pl.when(is_over).then(_at("ended_at")),
        "phase_name": pl.coalesce("phase", pl.lit("Unknown")),
    }
    change = pl.when(is_over).then(pl.lit("MODIFIED")).otherwise(pl.lit("DELETED"))
    steps = [
        ("created_at", pl.lit("ADDED"), {**unbound, **waiting, "phase_name": pl.lit("Pending")}),
        ("bound_at", pl.lit("MODIFIED"), {**waiting, **bound, "phase_name": pl.lit(running)}),
        (
            "started_at",
            pl.lit("MODIFIED"),
            {**waiting, **bound, **started, "phase_name": pl.lit("Running")},
        ),
        ("ended_at", change, ended),
    ]
    last = end - timedelta(microseconds=1)
    frames = []
    for number, (instant, what, columns) in enumerate(steps, 1):
        rows = pods.filter(pl.col(instant).is_not_null() & (pl.col(instant) <= end))
        seen = pl.max_horizontal(_at(instant), pl.lit(begin, INSTANT))
        made = rows.select(
            seen.alias("observed_at"),
            # What happens at the window's very end still belongs to its last day.
            pl.min_horizontal(seen, pl.lit(last, INSTANT))
            .dt.convert_time_zone(settings.zone)
            .dt.date()
            .alias("day_on"),
            (FIRST_SEQUENCE + pl.col(PLACE).cast(pl.Int64()) * STEPS + number).alias(
                "sequence_number"
            ),
            what.alias("change_name"),
            *_constant(settings, file, is_start_known),
            **columns,
        )
        frames.append(made)
    rows = pl.concat(frames, how="diagonal").sort("observed_at", "sequence_number")
    return rows.select(*rows.columns, *_nulls(POD_TABLE, rows.columns)).select(
        column.name for column in POD_TABLE.columns
    )


def _constant(settings: Settings, file: str, is_start_known: bool) -> list[pl.Expr]:
    """The columns that are the same in all versions of a pod."""
    entry = pl.struct(
        pl.lit(RESOURCE).alias("resource_name"), pl.col("milli_gpu").alias("request_count")
    )
    some = pl.concat_list(entry).cast(POD_TABLE.column("requests").kind.polars)
    key = pl.format("{}/{}/{}", "kind", "namespace", "workload")
    return [
        pl.lit(settings.cluster).alias("cluster_name"),
        pl.format("{}:{}", pl.lit(file), PLACE).alias("source_ref"),
        pl.col("id").alias("pod_uid"),
        pl.col("namespace").alias("namespace_name"),
        pl.col("name").alias("pod_name"),
        _at("created_at").alias("created_at"),
        pl.lit(is_start_known).alias("is_start_known"),
        pl.lit(0, pl.Int64()).alias("restart_count"),
        pl.when(pl.col("milli_gpu") > 0)
        .then(some)
        .otherwise(_empty(POD_TABLE, "requests"))
        .alias("requests"),
        _empty(POD_TABLE, "devices"),
        _empty(POD_TABLE, "claims"),
        pl.col("asked_model").alias("asked_gpu_model_name"),
        pl.col("cpu").alias("cpu_milli_count"),
        pl.col("labels").alias("labels_json"),
        _empty(POD_TABLE, "owners"),
        pl.col("kind").alias("workload_kind_name"),
        pl.coalesce("workload", "name").alias("workload_name"),
        pl.coalesce(key, "id").alias("workload_key_uid"),
        pl.col("class").alias("workload_class"),
        pl.col("is_service"),
        pl.col("queue").alias("queue_name"),
        pl.col("user").alias("user_name"),
        pl.col("account").alias("account_name"),
        pl.col("team").alias("team_name"),
    ]


def nodes_of(nodes: pl.DataFrame, settings: Settings, file: str, begin: datetime) -> pl.DataFrame:
    """Each node as it stands from the known window's begin on."""
    milli = pl.col("milli_gpu")
    unit = pl.struct(
        pl.lit(RESOURCE).alias("resource_name"),
        milli.alias("capacity_count"),
        milli.alias("allocatable_count"),
        pl.lit(MICRO_OF_MILLI, pl.Int64()).alias("share_micro_gpu"),
    )
    some = pl.concat_list(unit).cast(NODE_TABLE.column("resources").kind.polars)
    rows = nodes.select(
        pl.lit(settings.cluster).alias("cluster_name"),
        pl.lit(begin, INSTANT).dt.convert_time_zone(settings.zone).dt.date().alias("day_on"),
        (FIRST_SEQUENCE + pl.col(PLACE).cast(pl.Int64()) * STEPS).alias("sequence_number"),
        pl.lit(begin, INSTANT).alias("observed_at"),
        pl.lit("LISTED").alias("change_name"),
        pl.format("{}:{}", pl.lit(file), PLACE).alias("source_ref"),
        pl.col("id").alias("node_uid"),
        pl.col("name").alias("node_name"),
        pl.col("model").fill_null(UNKNOWN).alias("gpu_model_name"),
        pl.col("product").alias("gpu_product_name"),
        (milli // 1000).alias("gpu_count"),
        (milli * MICRO_OF_MILLI).alias("allocatable_micro_gpu"),
        (milli // 1000).alias("largest_gpu_count"),
        pl.lit("table").alias("count_source_name"),
        pl.lit(True).alias("is_ready"),
        (milli > 0).alias("is_ever_ready"),
        pl.lit(False).alias("is_cordoned"),
        pl.col("capacity_type").fill_null("unknown").alias("capacity_type_name"),
        pl.lit(1.0).alias("share_scale_ratio"),
        pl.when(milli > 0).then(some).otherwise(_empty(NODE_TABLE, "resources")).alias("resources"),
        _empty(NODE_TABLE, "devices"),
        pl.col("cpu").alias("cpu_milli_count"),
        pl.col("memory").alias("memory_mib"),
        pl.lit("{}").alias("labels_json"),
    )
    return rows.select(*rows.columns, *_nulls(NODE_TABLE, rows.columns)).select(
        column.name for column in NODE_TABLE.columns
    )
