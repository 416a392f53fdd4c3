"""Allocated against used: what is read of it, and its ratios, always sums over sums.

Drawing belongs to the view; which second counts as active is said in sql/.
"""

from dataclasses import dataclass

import polars as pl

from dashboards.conditions import HERE, TEAMS
from dashboards.data import Reading
from models.mart_gpus import USE
from models.table import Column, Kind

HOURLY = 7  # days up to which an hour is wide enough to be seen
SUMS = ",\n    ".join(f"sum({column.name}) as {column.name}" for column in USE)
HELD_SUMS = ",\n    ".join(
    f"sum({column.name}) as {column.name}"
    for column in USE
    if not column.name.startswith(("installed", "available"))
)
AT = "case when $is_hourly then hour_at else timezone($zone, day_on::timestamp) end as begin_at"

FLEET = f"""
select
    {AT},
    sum(installed_gpu_seconds) as installed_gpu_seconds,
    sum(available_gpu_seconds) as available_gpu_seconds,
    sum(available_cost) as available_cost,
    sum(case when team_name = '__unknown__' then installed_gpu_seconds else 0 end)
        as unrecorded_gpu_seconds
from mart.use_hours
where {HERE}
group by begin_at
order by begin_at
"""
"""What there was for everybody: a team's part is compared with it."""

HELD = f"""
select
    {AT},
    sum(installed_gpu_seconds) as own_gpu_seconds,
    {HELD_SUMS}
from mart.use_hours
where {HERE} and {TEAMS}
group by begin_at
order by begin_at
"""
"""What was held of it by the chosen teams, or by all."""

HELD_BY_ONE = f"""
select
    timezone($zone, day_on::timestamp) as begin_at,
    sum(held_gpu_seconds) as own_gpu_seconds,
    {HELD_SUMS},
    any_value(workload_name) as workload_name,
    any_value(workload_kind_name) as workload_kind_name,
    any_value(namespace_name) as namespace_name,
    any_value(team_name) as team_name,
    any_value(cluster_name) as cluster_name
from mart.use_workloads
where {HERE} and workload_key_uid = $workload
group by day_on
order by day_on
"""

PARTS = f"""
select
    case $by
        when 'team_name' then any_value(team_name)
        when 'gpu_model_name' then any_value(gpu_model_name)
        when 'node_name' then any_value(node_name)
        else any_value(cluster_name)
    end as subject_name,
    case when $by in ('node_name', 'cluster_name') then cluster_name end as cluster_name,
    case when $by = 'node_name' then node_uid end as node_uid,
    {SUMS}
from mart.use_hours
where {HERE} and {TEAMS}
group by
    case when $by = 'team_name' then team_name end,
    case when $by = 'gpu_model_name' then gpu_model_name end,
    case when $by in ('node_name', 'cluster_name') then cluster_name end,
    case when $by = 'node_name' then node_uid end
order by sum(held_gpu_seconds) desc, subject_name
"""

WORKLOADS = f"""
select
    cluster_name,
    team_name,
    namespace_name,
    workload_key_uid,
    arg_max(workload_name, day_on) as workload_name,
    any_value(workload_kind_name) as workload_kind_name,
    {HELD_SUMS}
from mart.use_workloads
where {HERE} and {TEAMS}
group by cluster_name, team_name, namespace_name, workload_key_uid
order by sum(held_gpu_seconds) desc, workload_key_uid
limit 500
"""

NODES = f"""
select
    cluster_name,
    node_uid,
    any_value(node_name) as node_name,
    {AT},
    {SUMS}
from mart.use_hours
where {HERE} and {TEAMS}
group by cluster_name, node_uid, begin_at
"""

DEVICES = f"""
select
    cluster_name,
    node_name,
    gpu_uuid,
    instance_number,
    any_value(gpu_number) as gpu_number,
    {AT},
    sum(known_seconds)::double as available_gpu_seconds,
    sum(held_seconds)::double as held_gpu_seconds,
    sum(active_seconds)::double as active_gpu_seconds,
    sum(idle_seconds)::double as idle_gpu_seconds,
    sum(stalled_seconds)::double as stalled_gpu_seconds,
    sum(unobserved_seconds)::double as unobserved_gpu_seconds,
    sum(held_seconds) filter (where sm_ratio is not null)::double as sm_observed_gpu_seconds,
    sum(held_seconds * sm_ratio)::double as effective_gpu_seconds,
    arg_max(team_name, held_seconds) as team_name,
    arg_max(workload_name, held_seconds) as workload_name
from mart.device_hours
where
    {HERE}
    and ($node = '' or node_uid = $node)
    and ($workload = '' or (workload_name = $workload and team_name = $team))
group by cluster_name, node_name, gpu_uuid, instance_number, begin_at
"""

ALLOCATION = Column("allocation_ratio", Kind.RATIO, "Held / available.")
UTILISATION = Column(
    "utilisation_ratio",
    Kind.RATIO,
    "Effective / held, over the held time whose SM activity is known. Never GPU_UTIL.",
)
SM_KNOWN = Column("sm_known_ratio", Kind.RATIO, "Held time whose SM activity is known.")
ACTIVE = Column(
    "active_ratio",
    Kind.RATIO,
    "Active / held, over the held time that was measured; none where nothing that ran was.",
)
MEASURED = Column("measured_ratio", Kind.RATIO, "Held time that was measured at all.")
PRICED = Column("priced_ratio", Kind.RATIO, "GPU-time that has a price.")
RATIOS = (ALLOCATION, UTILISATION, SM_KNOWN, ACTIVE, MEASURED)


def over(part: pl.Expr, whole: pl.Expr) -> pl.Expr:
    """Part of whole; null where there is no whole: nothing is not a share of nothing."""
    whole = whole.cast(pl.Float64)
    return pl.when(whole > 0).then(part.cast(pl.Float64) / whole)


def with_ratios(rows: pl.DataFrame, unit: str = "hours") -> pl.DataFrame:
    """The rows with their ratios, in hours or in money."""

    def of(name: str) -> pl.Expr:
        # Time of which nothing is unobserved has a null cost where nothing of it has a price.
        return pl.col(f"{name}_cost" if unit == "money" else f"{name}_gpu_seconds")

    held, unobserved = of("held"), of("unobserved").fill_null(0)
    # Starting and loading need no reading: beside them, what runs may all be unseen.
    running = pl.sum_horizontal(pl.col(f"{n}_gpu_seconds") for n in ("active", "idle", "stalled"))
    is_unseen = (running == 0) & (pl.col("unobserved_gpu_seconds") > 0)
    # Active by GPU_UTIL alone: 0 % of what else has a reading would be told as 0 % of all.
    is_unweighed = (pl.col("active_gpu_seconds") > 0) & (pl.col("effective_gpu_seconds") == 0)
    found = {
        "utilisation_ratio": pl.when(~is_unweighed).then(over(of("effective"), of("sm_observed"))),
        "sm_known_ratio": over(of("sm_observed").fill_null(0), held),
        "active_ratio": pl.when(~is_unseen).then(over(of("active"), held - unobserved)),
        "measured_ratio": over(held - unobserved, held),
    }
    if "available_gpu_seconds" in rows.columns:
        found["allocation_ratio"] = over(held, of("available"))
    return rows.with_columns(**found)


@dataclass(frozen=True)
class Use:
    """What was held and used in the period, in buckets of an hour or a day."""

    reading: Reading
    workload: str | None

    @property
    def is_hourly(self) -> bool:
        """Whether a bucket is an hour; of single workloads only days are kept."""
        return self.workload is None and self.reading.period.days <= HOURLY

    def rows(self, query: str, *, before: bool = False, **more: str) -> pl.DataFrame:
        """The answer of a query of this module."""
        hourly = self.reading.period.days <= HOURLY
        if query in (FLEET, HELD):
            hourly = self.is_hourly
        return self.reading.rows(
            query,
            before=before,
            **{"zone": self.reading.zone, "is_hourly": hourly, "workload": "", **more},
        )

    def series(self, *, before: bool = False) -> pl.DataFrame:
        """What there was and what was held of it, bucket by bucket."""
        fleet = self.rows(FLEET, before=before)
        if self.workload is None:
            held = self.rows(HELD, before=before)
        else:
            held = self.rows(HELD_BY_ONE, before=before, workload=self.workload)
        return fleet.join(held, on="begin_at", how="left")


def total(rows: pl.DataFrame) -> pl.DataFrame:
    """One row with the sums; a cost of which nothing is known stays null."""
    names = [n for n in rows.columns if n.endswith(("_gpu_seconds", "_cost"))]
    return rows.select(
        pl.when(pl.col(name).count() > 0).then(pl.col(name).cast(pl.Float64).sum()).alias(name)
        for name in names
    )
