-- start_waits: How long the pods bound in a period took to start, by image, node, GPU model and team.
--
-- Percentiles are of the started alone; who has not started, or left, is counted apart. A kind is a
-- class of workload; clusters, teams and the wanted grouping not told (null) are all.
with
latest as (
    select *
    from mart.pod_starts
    where
        bound_on >= $begin_on
        and bound_on < $end_on
        and day_on >= $begin_on  -- no pod starts before its bind: spares older files
        and ($clusters is null or list_contains($clusters::varchar[], cluster_name))
        and ($teams is null or list_contains($teams::varchar[], team_name))
        and ($kind = 'all' or workload_class = $kind)
    qualify row_number() over (partition by cluster_name, pod_uid order by day_on desc) = 1
),

sliced as (
    select
        s.*,
        l.outcome_name,
        case when l.outcome_name = 'started' then l.start_seconds end as start_seconds
    from latest as l
    cross join
        lateral (
            select
                unnest(['all', 'image', 'node', 'model', 'team']) as grouping_name,
                unnest([null, null, l.cluster_name, null, null]) as cluster_name,
                unnest([null, l.image_name, null, null, null]) as image_name,
                unnest([null, null, l.node_uid, null, null]) as node_uid,
                unnest([null, null, null, l.gpu_model_name, null]) as gpu_model_name,
                unnest([null, null, null, null, l.team_name]) as team_name
        ) as s
    where $wanted is null or s.grouping_name = $wanted
),

counted as (
    select
        grouping_name,
        cluster_name,
        image_name,
        node_uid,
        gpu_model_name,
        team_name,
        count(*) as pod_count,
        count(*) filter (where outcome_name = 'started') as started_count,
        count(*) filter (where outcome_name = 'starting') as starting_count,
        count(*) filter (where outcome_name = 'left') as left_count,
        count(*) filter (where outcome_name = 'disordered') as disordered_count,
        count(*) filter (where outcome_name = 'unknown') as unknown_count,
        avg(start_seconds) as mean_start_seconds,
        quantile_cont(start_seconds::double, [0.5, 0.75, 0.9, 0.95, 0.99]) as quantiles,
        max(start_seconds)::double as max_start_seconds
    from sliced
    group by grouping_name, cluster_name, image_name, node_uid, gpu_model_name, team_name
)

select
    grouping_name,
    cluster_name,
    image_name,
    node_uid,
    gpu_model_name,
    team_name,
    pod_count,
    started_count,
    starting_count,
    left_count,
    disordered_count,
    unknown_count,
    mean_start_seconds,
    quantiles[1] as p50_start_seconds,
    quantiles[2] as p75_start_seconds,
    quantiles[3] as p90_start_seconds,
    quantiles[4] as p95_start_seconds,
    case when started_count >= 100 then quantiles[5] end as p99_start_seconds,
    max_start_seconds
from counted
