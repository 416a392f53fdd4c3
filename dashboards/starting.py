"""What the page of startup reads, and its parts: the causes of what is held before it works.

Which second has which cause is said in sql/; drawing belongs to the view.
"""

from dataclasses import dataclass
from datetime import timedelta

import polars as pl

from dashboards.conditions import HERE, TEAMS
from dashboards.data import Reading
from models.mart_workloads import STARTUPS
from models.states import RESERVED, UNATTRIBUTED
from models.table import Column, Kind

UNITS = {"hours": "GPU-hours", "money": "money"}
BY = {"image": "image", "node": "node", "model": "GPU model", "team": "team"}
SUBJECTS = {
    "image": "image_name",
    "node": "node_name",
    "model": "gpu_model_name",
    "team": "team_name",
}
PARTS = {
    "image_pull_queue": ("pull queue", "#2B5784"),
    "image_pull": ("image pull", "#6C9BC4"),
    "volume": ("volume", "#4FA3A5"),
    "init": ("init containers", "#7A5C99"),
    "container_start": ("container start", "#C9A227"),
    "undetermined": ("no event tells", "#F2B84B"),
    "restart": ("restart", "#DD6A5B"),
    "crash_loop": ("crash loop", "#B5342D"),
    "member_not_created": ("gang: not created", "#F6C9A3"),
    "member_unplaced": ("gang: not placed", "#E8893A"),
    "member_starting": ("gang: starting", "#C96A1E"),
    "member_lost": ("gang: member lost", "#8D4A12"),
    "loading": ("loading", "#8CC3A5"),
}
"""Cause (of loading the state) -> what it is called, and its colour; in the order of a start."""
LABELS = {name: label for name, (label, _) in PARTS.items()}
COLOURS = dict(PARTS.values())
MEANINGS = {
    "pull queue, image pull": "the kubelet waits for other pulls of the node, or pulls an image",
    "volume": "a volume is attached or mounted",
    "init containers": "an init container has not finished",
    "container start": "the image is there, and the container does not run yet",
    "no event tells": "held and not running, and nothing that was recorded says why",
    "restart, crash loop": "it ran before, and its containers do not run now",
    "gang": "it runs, and another member of its job is not created, placed or started, or is lost",
    "loading": "it runs, and is not ready (a service) or not at work yet (all else)",
}
BACK = timedelta(days=30)
"""How far back the cost of a pod that still starts is followed."""

PART = "case when state_name = 'loading' then 'loading' else cause_name end as part_name"
SUMS = """
    sum(gpu_seconds)::double as gpu_seconds,
    sum(unpriced_gpu_seconds)::double as unpriced_gpu_seconds,
    sum(startup_cost)::double as startup_cost
"""

DAYS = f"""
select
    day_on,
    {PART},
    {SUMS}
from mart.startups
where {HERE} and {TEAMS}
group by day_on, part_name
order by day_on, part_name
"""

BY_SUBJECT = f"""
select
    case when $by = 'node' then cluster_name end as cluster_name,
    case $by
        when 'image' then image_name
        when 'node' then node_uid
        when 'model' then gpu_model_name
        else team_name
    end as subject_uid,
    case when $by = 'node' then any_value(node_name) else subject_uid end as subject_name,
    {PART},
    {SUMS}
from mart.startups
where {HERE} and {TEAMS}
group by
    case when $by = 'node' then cluster_name end,
    subject_uid,
    part_name
"""

HELD = f"""
select
    coalesce(sum(gpu_seconds), 0)::double as held_gpu_seconds,
    coalesce(sum(starting_gpu_seconds + gang_wait_gpu_seconds + loading_gpu_seconds), 0)::double
        as before_gpu_seconds
from mart.team_days
where {HERE} and {TEAMS} and not list_contains($apart::varchar[], team_name)
"""
"""What teams held at all, and what of it before it worked, whether its cause is computed or not."""

STARTS = """
from start_waits(
    $begin_on,
    $end_on,
    clusters := $clusters::varchar[],
    teams := case when len($teams::varchar[]) > 0 then $teams::varchar[] end,
    wanted := $by
)
"""

TOLD = f"""
select
    count(distinct pod_uid) as pod_count,
    count(distinct pod_uid) filter (where is_told) as told_count
from mart.pod_starts
where {HERE} and {TEAMS}
"""
"""Of how many pods that start events tell of images or volumes."""

PULLS = f"""
select
    *,
    asked_micro_gpu / 1000000 as gpu_share,
    image_bytes // 1048576 as image_mib
from mart.image_pulls
where {HERE} and {TEAMS} and coalesce(total_seconds, pull_seconds) is not null
order by coalesce(total_seconds, pull_seconds) desc, begun_at, pod_uid, container_name
limit 100
"""

STILL = f"""
with
latest as (
    select
        cluster_name,
        max(day_on) as day_on
    from mart.fleet_coverage
    where list_contains($clusters::varchar[], cluster_name)
    group by cluster_name
),

spent as (
    select
        cluster_name,
        pod_uid,
        sum(gpu_seconds)::double as gpu_seconds,
        sum(start_cost)::double as start_cost
    from mart.pod_starts
    where day_on >= $since_on and list_contains($clusters::varchar[], cluster_name)
    group by cluster_name, pod_uid
)

select
    p.* exclude (gpu_seconds, start_cost),
    p.asked_micro_gpu / 1000000 as gpu_share,
    s.gpu_seconds,
    s.start_cost
from mart.pod_starts as p
inner join latest as l on p.cluster_name = l.cluster_name and p.day_on = l.day_on
inner join spent as s on p.cluster_name = s.cluster_name and p.pod_uid = s.pod_uid
where p.outcome_name = 'starting' and {TEAMS}
order by p.start_seconds desc, p.pod_uid
limit 100
"""
"""The pods that have not started as of each cluster's last published day."""


def known_sum(name: str, of: pl.Expr | None = None) -> pl.Expr:
    """A sum over some of the rows; of costs, null where there are rows and none has a price."""
    values = pl.col(name) if of is None else pl.col(name).filter(of)
    return pl.when((values.len() == 0) | (values.count() > 0)).then(values.sum()).alias(name)


def totals(rows: pl.DataFrame) -> dict[str, float | None]:
    """GPU-seconds, those without a price, and the cost of all rows."""
    names = ("gpu_seconds", "unpriced_gpu_seconds", "startup_cost")
    return rows.select(known_sum(name) for name in names).row(0, named=True)


def part_columns(rows: pl.DataFrame, unit: str) -> list[Column]:
    """A column for each part that occurs in the rows, in the order of a start."""
    there = set(rows["part_name"])
    ending, kind = ("cost", Kind.DECIMAL) if unit == "money" else ("gpu_seconds", Kind.DECIMAL)
    return [
        Column(f"{name}_{ending}", kind, f"Held: {label}.", nullable=True)
        for name, label in LABELS.items()
        if name in there
    ]


@dataclass(frozen=True)
class Startup:
    """What was held before it worked in the period."""

    reading: Reading

    def days(self, *, before: bool = False) -> pl.DataFrame:
        """By day and part."""
        return self.reading.rows(DAYS, before=before)

    def held(self, *, before: bool = False) -> dict[str, float]:
        """What was held at all, and before it worked."""
        apart = tuple(name for name in RESERVED if name != UNATTRIBUTED)
        return self.reading.rows(HELD, before=before, apart=apart).row(0, named=True)

    def starts(self, by: str = "all", *, before: bool = False) -> pl.DataFrame:
        """How long starts took, by one of `BY` or in all."""
        return self.reading.rows(STARTS, before=before, by=by)

    def told(self) -> tuple[int, int]:
        """How many pods started or did not, and of how many of them events tell."""
        pods, told = self.reading.rows(TOLD).row(0)
        return pods, told

    def subjects(self, by: str, unit: str) -> tuple[pl.DataFrame, list[Column]]:
        """One row for each image, node, model or team: its parts, and what its starts took.

        In the order of the unit's total; the columns are those of the parts.
        """
        rows = self.reading.rows(BY_SUBJECT, by=by)
        specs = part_columns(rows, unit)
        value = "startup_cost" if unit == "money" else "gpu_seconds"
        suffix = "_cost" if unit == "money" else "_gpu_seconds"
        key = ["cluster_name", "subject_uid"]
        found = rows.group_by(key).agg(
            pl.col("subject_name").first(),
            known_sum("gpu_seconds"),
            known_sum("unpriced_gpu_seconds"),
            known_sum("startup_cost"),
            *(
                known_sum(value, pl.col("part_name") == spec.name.removesuffix(suffix)).alias(
                    spec.name
                )
                for spec in specs
            ),
        )
        named = SUBJECTS[by]
        uid = "node_uid" if by == "node" else named
        taken = self.starts(by).select(
            "cluster_name",
            pl.col(uid).alias("subject_uid"),
            pl.selectors.ends_with("_count"),
            pl.selectors.ends_with("_start_seconds"),
        )
        found = found.join(taken, on=key, how="left", nulls_equal=True).rename(
            {"subject_name": named}
        )
        order = [value, "gpu_seconds", named] if value != "gpu_seconds" else [value, named]
        return found.sort(
            order, descending=[True] * (len(order) - 1) + [False], nulls_last=True
        ), specs

    def pulls(self) -> pl.DataFrame:
        """The longest."""
        return self.reading.rows(PULLS)

    def still(self) -> pl.DataFrame:
        """The pods that start as of the snapshot, the longest first."""
        return self.reading.rows(STILL, since_on=self.reading.last_on - BACK)


SUBJECT_COLUMNS = {by: STARTUPS.column(name) for by, name in SUBJECTS.items()}
