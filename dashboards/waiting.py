"""What the page of waits reads: the published view, narrowed to the page's filters.

The rules of the percentiles are in sql/view/queue_waits.sql, and nowhere else.
"""

from dataclasses import dataclass

import polars as pl

from dashboards.data import Reading

# An attempt has one row a day: those before the period are of attempts queued before it.
COHORT = """
with
latest as (
    select *
    from mart.attempt_waits
    where
        queued_on >= $begin_on
        and queued_on < $end_on
        and day_on >= $begin_on
        and list_contains($clusters::varchar[], cluster_name)
        and (len($teams::varchar[]) = 0 or list_contains($teams::varchar[], team_name))
        and ($kind = 'all' or is_service = ($kind = 'services'))
        and ($kind <> 'jobs' or is_gpu)
    qualify row_number() over (partition by cluster_name, attempt_id order by day_on desc) = 1
)
"""
WAITS = """
from queue_waits(
    $begin_on,
    $end_on,
    clusters := $clusters::varchar[],
    teams := case when len($teams::varchar[]) > 0 then $teams::varchar[] end,
    kind := $kind,
    wanted := $grouping
)
"""
"""Waits of one grouping: 'all', 'queue', 'team' or 'shape'."""

BINS = (
    COHORT
    + """,
bins as (
    select *
    from (
        values
        (1, 'under 10 s', 0, 10),
        (2, '10–60 s', 10, 60),
        (3, '1–5 min', 60, 300),
        (4, '5–30 min', 300, 1800),
        (5, '30–60 min', 1800, 3600),
        (6, '1–4 h', 3600, 14400),
        (7, '4–12 h', 14400, 43200),
        (8, '12–24 h', 43200, 86400),
        (9, '1–3 d', 86400, 259200),
        (10, 'over 3 d', 259200, null)
    ) as v (bin_number, bin_name, least_seconds, below_seconds)
)
select
    b.bin_number,
    b.bin_name,
    o.outcome_name,
    count(l.attempt_id) as attempt_count
from bins as b
cross join (values ('served'), ('left'), ('waiting')) as o (outcome_name)
left join latest as l
    on
        l.outcome_name = o.outcome_name
        and l.queue_wait_seconds >= b.least_seconds
        and (b.below_seconds is null or l.queue_wait_seconds < b.below_seconds)
group by b.bin_number, b.bin_name, o.outcome_name
order by b.bin_number, o.outcome_name
"""
)
"""How many waited how long, by outcome."""

CURVE = (
    COHORT
    + """,
instants as (
    select
        queue_wait_seconds,
        count(*) filter (where outcome_name = 'served') as served_count,
        count(*) filter (where outcome_name = 'left') as left_count,
        count(*) filter (where outcome_name = 'waiting') as still_waiting_count,
        sum(count(*)) over (order by queue_wait_seconds desc) as risk_count
    from latest
    group by queue_wait_seconds
),
curve as (
    select
        *,
        product(1 - served_count / risk_count) over (order by queue_wait_seconds) as survival_ratio,
        row_number() over (order by queue_wait_seconds) as instant_number,
        count(*) over () as instant_count
    from instants
)
-- A chart has no more than some hundred points across; the ends and the unserved are kept.
select
    queue_wait_seconds,
    survival_ratio,
    left_count,
    still_waiting_count
from curve
where
    instant_count <= 400
    or instant_number % (instant_count // 400 + 1) = 0
    or instant_number in (1, instant_count)
    or (left_count + still_waiting_count > 0 and instant_number % (instant_count // 2000 + 1) = 0)
order by queue_wait_seconds
"""
)
"""Share not yet placed after each length of wait, as if nobody had left."""

LONGEST = """
with
latest as (
    select
        cluster_name,
        max(day_on) as day_on
    from mart.fleet_coverage
    where list_contains($clusters::varchar[], cluster_name)
    group by cluster_name
)

select
    w.cluster_name,
    w.workload_key_uid,
    w.workload_name,
    w.team_name,
    w.queue_name,
    w.gpu_shape_name,
    -- Of an attempt without pods it is not known how many GPUs it asks for.
    (nullif(w.asked_micro_gpu, 0) / 1000000)::double as gpu_share,
    w.queued_at,
    w.queue_wait_seconds,
    case when w.asked_micro_gpu > 0 or not w.is_gpu then w.waited_gpu_seconds end
        as waited_gpu_seconds
from mart.attempt_waits as w
inner join latest as l on w.cluster_name = l.cluster_name and w.day_on = l.day_on
where
    w.outcome_name = 'waiting'
    and (len($teams::varchar[]) = 0 or list_contains($teams::varchar[], w.team_name))
    and ($kind = 'all' or w.is_service = ($kind = 'services'))
    and ($kind <> 'jobs' or w.is_gpu)
order by w.queue_wait_seconds desc, w.asked_micro_gpu desc, w.workload_name
limit 100
"""
"""The attempts that wait as of each cluster's last published day."""


@dataclass(frozen=True)
class Slice:
    """One kind of attempts ('jobs', 'services', 'all') of what a page reads."""

    reading: Reading
    kind: str

    def rows(self, query: str, *, before: bool = False, **more: str) -> pl.DataFrame:
        """The answer of a query for this kind."""
        return self.reading.rows(query, before=before, kind=self.kind, **more)

    def waits(self, grouping: str, *, before: bool = False) -> pl.DataFrame:
        """The waits of one grouping, in all three ways."""
        return self.rows(WAITS, before=before, grouping=grouping)
