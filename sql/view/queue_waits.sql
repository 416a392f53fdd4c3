-- queue_waits: Waits of the attempts queued in a period, by queue, team and GPU shape, three ways.
--
-- Kaplan-Meier: the smallest t with S(t) <= 1 - p; at ties served counts before censored; where S
-- stays above, the percentile is not reached. The tolerance only absorbs floating-point products.
-- Clusters, teams and the wanted grouping not told (null) are all; the kinds are 'all', 'jobs' that ask for
-- GPUs, and 'services'.
with
latest as (
    select *
    from mart.attempt_waits
    where
        queued_on >= $begin_on
        and queued_on < $end_on
        and day_on >= $begin_on  -- no attempt is seen before it queues: spares older files
        and ($clusters is null or list_contains($clusters::varchar[], cluster_name))
        and ($teams is null or list_contains($teams::varchar[], team_name))
        and ($kind = 'all' or is_service = ($kind = 'services'))
        and ($kind <> 'jobs' or is_gpu)
    qualify row_number() over (partition by cluster_name, attempt_id order by day_on desc) = 1
),

sliced as (
    select
        s.queue_name,
        s.team_name,
        s.gpu_shape_name,
        l.outcome_name,
        l.queue_wait_seconds,
        l.waited_gpu_seconds,
        l.queued_at,
        l.started_at,
        l.ended_at,
        l.is_service,
        l.is_start_known,
        l.cluster_name,
        l.workload_key_uid,
        s.grouping_name
    from latest as l
    cross join
        lateral (
            select
                unnest([null, null, l.queue_name, null, null, l.queue_name]) as queue_name,
                unnest([null, null, null, l.team_name, null, l.team_name]) as team_name,
                unnest([null, null, null, null, l.gpu_shape_name, l.gpu_shape_name])
                    as gpu_shape_name,
                unnest(['all', 'gpu', 'queue', 'team', 'shape', 'each']) as grouping_name
        ) as s
    where
        (l.is_gpu or s.grouping_name <> 'gpu')
        and ($wanted is null or s.grouping_name = $wanted)
),

counted as (
    select
        grouping_name,
        queue_name,
        team_name,
        gpu_shape_name,
        count(*) as attempt_count,
        count(*) filter (where outcome_name = 'served') as served_count,
        count(*) filter (where outcome_name = 'left') as left_count,
        count(*) filter (where outcome_name = 'waiting') as still_waiting_count,
        sum(waited_gpu_seconds)::decimal(18, 6) as waited_gpu_seconds,
        avg(queue_wait_seconds) filter (where outcome_name = 'served') as mean_wait_seconds,
        quantile_cont(queue_wait_seconds::double, [0.5, 0.75, 0.9, 0.95, 0.99])
        filter (where outcome_name = 'served') as quantiles,
        max(queue_wait_seconds) filter (where outcome_name = 'served') as max_wait_seconds
    from sliced
    group by grouping_name, queue_name, team_name, gpu_shape_name
),

instants as (
    select
        grouping_name,
        queue_name,
        team_name,
        gpu_shape_name,
        queue_wait_seconds,
        count(*) filter (where outcome_name = 'served') as served_count,
        sum(count(*)) over (
            partition by grouping_name, queue_name, team_name, gpu_shape_name
            order by queue_wait_seconds desc
        ) as risk_count
    from sliced
    group by grouping_name, queue_name, team_name, gpu_shape_name, queue_wait_seconds
),

survival as (
    select
        *,
        product(1 - served_count / risk_count) over (
            partition by grouping_name, queue_name, team_name, gpu_shape_name
            order by queue_wait_seconds
        ) as survival_ratio
    from instants
),

kaplan_meier as (
    select
        grouping_name,
        queue_name,
        team_name,
        gpu_shape_name,
        min(queue_wait_seconds) filter (where survival_ratio <= 0.5 + 1e-12) as p50,
        min(queue_wait_seconds) filter (where survival_ratio <= 0.25 + 1e-12) as p75,
        min(queue_wait_seconds) filter (where survival_ratio <= 0.1 + 1e-12) as p90,
        min(queue_wait_seconds) filter (where survival_ratio <= 0.05 + 1e-12) as p95,
        min(queue_wait_seconds) filter (where survival_ratio <= 0.01 + 1e-12) as p99,
        max(queue_wait_seconds) as longest
    from survival
    group by grouping_name, queue_name, team_name, gpu_shape_name
),

-- A person waits from the submission of a workload to its first start; services are apart.
headline as (
    select
        grouping_name,
        queue_name,
        team_name,
        gpu_shape_name,
        cluster_name,
        workload_key_uid,
        min(queued_at) as submitted_at,
        min(started_at) as started_at,
        date_diff('second', min(queued_at), min(started_at)) as wait_seconds,
        -- Placed and not yet started is still a wait for the start.
        bool_or(started_at is null and ended_at is null) as is_waiting,
        sum(waited_gpu_seconds) as waited_gpu_seconds
    from sliced
    where not is_service and is_start_known
    group by
        grouping_name, queue_name, team_name, gpu_shape_name, cluster_name, workload_key_uid
),

headlines as (
    select
        grouping_name,
        queue_name,
        team_name,
        gpu_shape_name,
        count(*) as attempt_count,
        count(wait_seconds) as served_count,
        count(*) filter (where wait_seconds is null and not is_waiting) as left_count,
        count(*) filter (where wait_seconds is null and is_waiting) as still_waiting_count,
        sum(waited_gpu_seconds)::decimal(18, 6) as waited_gpu_seconds,
        avg(wait_seconds) as mean_wait_seconds,
        quantile_cont(wait_seconds::double, [0.5, 0.75, 0.9, 0.95, 0.99]) as quantiles,
        max(wait_seconds) as max_wait_seconds
    from headline
    group by grouping_name, queue_name, team_name, gpu_shape_name
)

select
    'served' as method_name,
    grouping_name,
    queue_name,
    team_name,
    gpu_shape_name,
    attempt_count,
    served_count,
    left_count,
    still_waiting_count,
    mean_wait_seconds,
    quantiles[1] as p50_wait_seconds,
    quantiles[2] as p75_wait_seconds,
    quantiles[3] as p90_wait_seconds,
    quantiles[4] as p95_wait_seconds,
    case when served_count >= 100 then quantiles[5] end as p99_wait_seconds,
    max_wait_seconds::double as max_wait_seconds,
    waited_gpu_seconds
from counted
union all by name
select
    'kaplan_meier' as method_name,
    c.grouping_name,
    c.queue_name,
    c.team_name,
    c.gpu_shape_name,
    c.attempt_count,
    c.served_count,
    c.left_count,
    c.still_waiting_count,
    null::double as mean_wait_seconds,
    k.p50::double as p50_wait_seconds,
    k.p75::double as p75_wait_seconds,
    k.p90::double as p90_wait_seconds,
    k.p95::double as p95_wait_seconds,
    case when c.attempt_count >= 100 then k.p99::double end as p99_wait_seconds,
    k.longest::double as max_wait_seconds,
    c.waited_gpu_seconds
from counted as c
inner join kaplan_meier as k
    on
        c.grouping_name = k.grouping_name
        and c.queue_name is not distinct from k.queue_name
        and c.team_name is not distinct from k.team_name
        and c.gpu_shape_name is not distinct from k.gpu_shape_name
union all by name
select
    'submission_to_start' as method_name,
    grouping_name,
    queue_name,
    team_name,
    gpu_shape_name,
    attempt_count,
    served_count,
    left_count,
    still_waiting_count,
    mean_wait_seconds,
    quantiles[1] as p50_wait_seconds,
    quantiles[2] as p75_wait_seconds,
    quantiles[3] as p90_wait_seconds,
    quantiles[4] as p95_wait_seconds,
    case when served_count >= 100 then quantiles[5] end as p99_wait_seconds,
    max_wait_seconds::double as max_wait_seconds,
    waited_gpu_seconds
from headlines
