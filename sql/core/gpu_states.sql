-- core.gpu_states: What each GPU or GPU instance did: the day's known window, tiled, cut by hour and hold.
--
-- Whether a quiet stretch is long enough to be idle, or a spinning one to be stalled, is asked of the
-- device's whole stretch, whoever held it; what is too short is active. A silence in it neither ends
-- the stretch nor adds to it.
with
kinds as (
    select
        *,
        case
            when kind_name = 'suspected' then 'stalled'
            when kind_name in ('active', 'idle', 'stalled', 'broken') then kind_name
        end as observed_name,
        coalesce(observed_name, kind_name) as run_name
    from core.gpu_stretches
),

changes as (
    select
        *,
        coalesce(run_name <> lag(run_name) over device_time, true)::integer as is_other,
        (
            observed_name is not null
            and observed_name is distinct from lag(observed_name ignore nulls) over device_time
        )::integer as is_other_observed
    from kinds
    window device_time as (
        partition by cluster_name, day_on, node_uid, gpu_uuid, instance_number order by begin_at
    )
),

runs as (
    select
        *,
        sum(is_other) over (
            partition by cluster_name, day_on, node_uid, gpu_uuid, instance_number
            order by begin_at
        ) as run_number,
        sum(is_other_observed) over (
            partition by cluster_name, day_on, node_uid, gpu_uuid, instance_number
            order by begin_at
        ) as observed_number
    from changes
),

-- How long it was seen to do so, silences apart.
observed as (
    select
        cluster_name,
        day_on,
        node_uid,
        gpu_uuid,
        instance_number,
        observed_number,
        sum(date_diff('second', begin_at, end_at)) as observed_seconds,
        max(idle_least_seconds) as least_idle_seconds,
        max(stalled_least_seconds) as least_stalled_seconds
    from runs
    where observed_name in ('idle', 'stalled')
    group by cluster_name, day_on, node_uid, gpu_uuid, instance_number, observed_number
),

lengths as (
    select
        r.*,
        o.observed_seconds,
        o.least_idle_seconds,
        o.least_stalled_seconds,
        min(r.begin_at) over (
            partition by
                r.cluster_name, r.day_on, r.node_uid, r.gpu_uuid, r.instance_number, r.run_number
        ) as run_begin_at
    from runs as r
    left join observed as o
        on
            r.cluster_name = o.cluster_name
            and r.day_on = o.day_on
            and r.node_uid = o.node_uid
            and r.gpu_uuid = o.gpu_uuid
            and r.instance_number = o.instance_number
            and r.observed_number = o.observed_number
),

named as (
    select
        *,
        case
            when observed_name = 'idle' and observed_seconds < least_idle_seconds then 'active'
            when
                observed_name = 'stalled' and observed_seconds < least_stalled_seconds
                then 'active'
            else coalesce(observed_name, 'unobserved')
        end as activity_name
    from lengths
),

caused as (
    select
        *,
        case activity_name
            when 'idle' then memory_name
            when 'broken' then 'gpu_unhealthy'
            when 'unobserved' then run_name
            else 'none'
        end as cause_name
    from named
),

marked as (
    select
        *,
        coalesce(
            activity_name <> lag(activity_name) over device_time
            or cause_name <> lag(cause_name) over device_time
            or hold_id is distinct from lag(hold_id) over device_time
            or date_trunc('hour', end_at - interval 1 second)
            <> date_trunc('hour', lag(end_at) over device_time - interval 1 second),
            true
        )::integer as is_change
    from caused
    window device_time as (
        partition by cluster_name, day_on, node_uid, gpu_uuid, instance_number order by begin_at
    )
),

numbered as (
    select
        *,
        sum(is_change) over (
            partition by cluster_name, day_on, node_uid, gpu_uuid, instance_number
            order by begin_at
        ) as piece_number
    from marked
)

select
    cluster_name,
    day_on,
    node_uid,
    gpu_uuid,
    instance_number,
    min(begin_at) as begin_at,
    max(end_at) as end_at,
    any_value(activity_name) as activity_name,
    any_value(cause_name) as cause_name,
    any_value(hold_id) as hold_id,
    case when any_value(activity_name) = 'idle' then min(run_begin_at) end as quiet_since_at,
    sum(sample_count)::bigint as sample_count,
    sum(sm_seconds)::bigint as sm_seconds,
    sum(sm_active_seconds)::double as sm_active_seconds,
    max(sm_ratio)::double as sm_ratio,
    (
        sum(utilisation_ratio * sample_count)
        / sum(sample_count) filter (where utilisation_ratio is not null)
    )::double as utilisation_ratio,
    max(tensor_ratio)::double as tensor_ratio,
    max(dram_ratio)::double as dram_ratio,
    max(memory_used_mib)::double as memory_used_mib,
    (
        sum(power_watts * sample_count)
        / sum(sample_count) filter (where power_watts is not null)
    )::double as power_watts,
    (
        sum(nvlink_bytes_per_second * sample_count)
        / sum(sample_count) filter (where nvlink_bytes_per_second is not null)
    )::double as nvlink_bytes_per_second,
    (
        sum(pcie_bytes_per_second * sample_count)
        / sum(sample_count) filter (where pcie_bytes_per_second is not null)
    )::double as pcie_bytes_per_second,
    bool_and(activity_name <> 'stalled' or kind_name = 'stalled') as is_certain
from numbered
group by cluster_name, day_on, node_uid, gpu_uuid, instance_number, piece_number
