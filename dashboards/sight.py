"""What is not measured: what the page of blind spots reads, and what each blind spot costs.

Which readings are refused is said in collectors/; how a day's sight is counted, in sql/.
"""

import polars as pl

from dashboards.conditions import HERE
from dashboards.use import over
from models.mart_gpus import USE_HOURS
from models.mart_sight import METRIC_READS, REFUSALS
from models.table import Column, Kind

SIGHT = f"""
with
latest as (
    select
        cluster_name,
        max(known_until_at) as known_until_at
    from mart.fleet_coverage
    where {HERE}
    group by cluster_name
)

select
    s.cluster_name,
    s.node_uid,
    s.metric_name,
    arg_max(s.node_name, s.day_on) as node_name,
    arg_max(s.gpu_model_name, s.day_on) as gpu_model_name,
    sum(s.expected_seconds)::double as expected_gpu_seconds,
    sum(s.told_seconds)::double as told_gpu_seconds,
    min(s.first_told_at) as first_told_at,
    max(s.last_told_at) as last_told_at,
    sum(s.rejected_count)::bigint as rejected_count,
    arg_max(s.reason_text, s.day_on) as reason_text,
    coalesce(max(s.last_told_at) < any_value(l.known_until_at) - interval 15 minute, true)
        as is_blind_now
from mart.metric_sight as s
inner join latest as l on s.cluster_name = l.cluster_name
where
    s.day_on >= $begin_on
    and s.day_on < $end_on
    and list_contains($clusters::varchar[], s.cluster_name)
group by s.cluster_name, s.node_uid, s.metric_name
order by s.cluster_name, node_name, s.metric_name
"""
"""Each quantity on each node; blind now: not told in the last quarter of an hour that is known."""

NODES = f"""
select
    cluster_name,
    node_uid,
    arg_max(node_name, hour_at) as node_name,
    any_value(gpu_model_name) as gpu_model_name,
    sum(held_gpu_seconds) as held_gpu_seconds,
    sum(unobserved_gpu_seconds) as unobserved_gpu_seconds,
    sum(sm_observed_gpu_seconds) as sm_observed_gpu_seconds
from mart.use_hours
where {HERE}
group by cluster_name, node_uid
order by sum(unobserved_gpu_seconds) desc, node_name
"""
READS = f"""
select *
from mart.metric_reads
where {HERE}
order by begin_at desc, family_name
"""
REFUSED = f"""
select
    cluster_name,
    reason_name,
    is_row_lost,
    sum(rejected_count)::bigint as rejected_count,
    min(day_on) as first_on,
    max(day_on) as last_on,
    arg_max(source_ref, rejected_count) as source_ref,
    arg_max(example_text, rejected_count) as example_text,
    any_value(mend_text) as mend_text
from mart.refusals
where {HERE}
group by cluster_name, reason_name, is_row_lost
order by is_row_lost desc, sum(rejected_count) desc, reason_name
"""

METRICS = {
    "any": ("exporter", "Nothing is measured: held time is unobserved, idle cannot be told."),
    "sm_ratio": (
        "SM activity",
        "No utilisation ratio; active is told by the GR engine or GPU_UTIL, more coarsely.",
    ),
    "gr_engine_ratio": ("GR engine", "Without SM activity too, GPU_UTIL alone decides."),
    "utilisation_ratio": ("GPU_UTIL", "Stalled cannot be told."),
    "tensor_ratio": ("tensor", "Stalled is only suspected."),
    "dram_ratio": ("DRAM", "Stalled is only suspected."),
    "memory_used_mib": ("memory used", "Idle with and without memory held are not told apart."),
    "memory_free_mib": ("memory free", "The size of memory is the catalogue's."),
    "power_watts": ("power", "Stalled cannot be told, nor rest power learned."),
    "energy_joules": ("energy", "Energy is estimated from power."),
    "temperature_celsius": ("temperature", "Heat is unknown."),
    "throttle_number": ("throttling", "Whether and why it is slowed is unknown."),
    "xid_number": ("XIDs", "Health is unknown: a broken GPU looks like a silent one."),
    "uncorrectable_remapped_row_count": ("remapped rows", "Failing memory is not seen."),
    "correctable_remapped_row_count": ("correctable rows", "Ageing memory is not seen."),
    "row_remap_failure_count": ("row remap", "A failed remap is not seen."),
    "nvlink_bytes_per_second": ("NVLink", "A silent NVLink cannot be told."),
    "pcie_received_bytes_per_second": ("PCIe received", "Traffic past NVLink cannot be told."),
    "pcie_sent_bytes_per_second": ("PCIe sent", "Traffic past NVLink cannot be told."),
    "sm_clock_mhz": ("SM clock", "Slowing is told by its reasons only."),
    "memory_clock_mhz": ("memory clock", "Slowing is told by its reasons only."),
}
"""Column of raw.gpu_samples -> what it is called, and what is not known without it."""

NAMES = {name: words for name, (words, _) in METRICS.items()}
TOLD_OF_EXPECTED = over(pl.col("told_gpu_seconds"), pl.col("expected_gpu_seconds"))

FAMILIES = {
    "dcgm": "GPUs (DCGM)",
    "kube_state": "objects (kube-state-metrics)",
    "cadvisor": "containers (cAdvisor)",
}
TOLD = Column("told_ratio", Kind.RATIO, "Of the device-time in which it could be told.")
BLIND_COLUMNS = (
    Column("quantity_text", Kind.TEXT, "What is not told."),
    Column("nodes_text", Kind.TEXT, "On how many of the nodes with GPUs."),
    Column("since_text", Kind.TEXT, "Since when."),
    Column("reason_text", Kind.TEXT, "Why."),
    Column("evidence_text", Kind.TEXT, "What is therefore not known."),
    TOLD,
    Column("names_text", Kind.TEXT, "The nodes."),
)
NODE_COLUMNS = (
    USE_HOURS.column("node_name"),
    USE_HOURS.column("gpu_model_name"),
    USE_HOURS.column("held_gpu_seconds"),
    USE_HOURS.column("unobserved_gpu_seconds"),
    Column("observed_ratio", Kind.RATIO, "Held time that was measured."),
    Column("sm_known_ratio", Kind.RATIO, "Held time whose SM activity is known."),
)
READ_COLUMNS = tuple(
    METRIC_READS.column(n)
    for n in ("family_name", "read_name", "begin_at", "end_at", "stretch_seconds", "reason_text",
              "try_count", "source_ref")
)  # fmt: skip
REFUSED_COLUMNS = (
    REFUSALS.column("reason_name"),
    Column(
        "kind_text", Kind.TEXT, "Whether the row was lost by it, or stands without the reading."
    ),
    REFUSALS.column("rejected_count"),
    Column("first_on", Kind.DAY, "First day."),
    Column("last_on", Kind.DAY, "Last day."),
    *(REFUSALS.column(n) for n in ("mend_text", "example_text", "source_ref")),
)


def said_once(short: pl.DataFrame, enough: float) -> pl.DataFrame:
    """Blind spots without those that are no more than the exporter's own on the same node.

    While there is no exporter each single quantity is missing too.
    """
    exporters = short.filter(metric_name="any").select(
        "cluster_name", "node_uid", most=pl.col("told_gpu_seconds") * enough
    )
    return short.join(
        exporters, on=["cluster_name", "node_uid"], how="left", maintain_order="left"
    ).filter(
        pl.col("most").is_null()
        | (pl.col("metric_name") == "any")
        | (pl.col("told_gpu_seconds") < pl.col("most"))
    )


def as_one(rows: pl.DataFrame) -> pl.DataFrame:
    """Stretches that follow one another and were read alike, as one; the latest first."""
    alike = ("cluster_name", "source_ref", "family_name", "read_name", "reason_text", "try_count")
    rows = rows.sort(*alike, "begin_at")
    begins = pl.col("begin_at").ne_missing(pl.col("end_at").shift().over(alike))
    runs = rows.with_columns(number=begins.cum_sum()).group_by(*alike, "number").agg(
        pl.col("begin_at").min(), pl.col("end_at").max(), pl.col("stretch_seconds").sum()
    )  # fmt: skip
    return runs.sort("begin_at", "family_name", descending=[True, False])
