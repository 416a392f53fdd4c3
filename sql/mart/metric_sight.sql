-- mart.metric_sight: What we see and are blind to: each quantity on each node with GPUs, by day.
--
-- Each sample that has a reading of a quantity counts for the device's interval.
with
nodes as (
    select
        cluster_name,
        day_on,
        node_uid,
        node_name,
        gpu_model_name,
        installed_count,
        date_diff('second', begin_at, end_at) as node_seconds
    from core.nodes
    where installed_count > 0 and begin_at < end_at
),

devices as (
    select
        cluster_name,
        day_on,
        node_uid,
        count(*) as device_count,
        bool_or(instance_number >= 0) as is_mig
    from core.gpus
    group by cluster_name, day_on, node_uid
),

readings as (
    select
        cluster_name,
        day_on,
        node_name,
        gpu_uuid,
        instance_number,
        sampled_at,
        true as "any",
        utilisation_ratio,
        gr_engine_ratio,
        sm_ratio,
        tensor_ratio,
        dram_ratio,
        memory_used_mib,
        power_watts,
        pcie_received_bytes_per_second,
        nvlink_bytes_per_second,
        throttle_number,
        xid_number,
        temperature_celsius,
        uncorrectable_remapped_row_count
    from raw.gpu_samples
),

-- When each quantity was told, under its name.
times as (
    select
        cluster_name,
        day_on,
        node_name,
        gpu_uuid,
        instance_number,
        case
            when
                columns(* exclude (
                    cluster_name, day_on, node_name, gpu_uuid, instance_number, sampled_at
                )) is not null
                then sampled_at
        end
    from readings
),

-- What each device told of each quantity.
samples as (
    select
        cluster_name,
        day_on,
        node_name,
        gpu_uuid,
        instance_number,
        {
            'sample_count': count(columns(* exclude (
                cluster_name, day_on, node_name, gpu_uuid, instance_number
            ))),
            'since': min(columns(* exclude (
                cluster_name, day_on, node_name, gpu_uuid, instance_number
            ))),
            'until': max(columns(* exclude (
                cluster_name, day_on, node_name, gpu_uuid, instance_number
            )))
        }
    from times
    group by cluster_name, day_on, node_name, gpu_uuid, instance_number
),

parts as (
    select
        g.cluster_name,
        g.day_on,
        g.node_uid,
        g.sample_seconds,
        s.metric_name,
        s.metric
    from (
        unpivot samples
        on columns(* exclude (cluster_name, day_on, node_name, gpu_uuid, instance_number))
        into name metric_name value metric
    ) as s
    inner join core.gpus as g
        on
            s.cluster_name = g.cluster_name
            and s.day_on = g.day_on
            and s.node_name = g.node_name
            and s.gpu_uuid = g.gpu_uuid
            and s.instance_number = g.instance_number
),

told as (
    select
        cluster_name,
        day_on,
        node_uid,
        metric_name,
        min(metric.since) as first_told_at,
        max(metric.until) as last_told_at,
        sum(metric.sample_count * sample_seconds) as told_seconds
    from parts
    where metric.sample_count > 0
    group by cluster_name, day_on, node_uid, metric_name
),

refused as (
    select
        g.cluster_name,
        g.day_on,
        g.node_uid,
        sum(s.rejected_count) as rejected_count
    from raw.gpu_samples as s
    inner join core.gpus as g
        on
            s.cluster_name = g.cluster_name
            and s.day_on = g.day_on
            and s.node_name = g.node_name
            and s.gpu_uuid = g.gpu_uuid
            and s.instance_number = g.instance_number
    where s.rejected_count > 0
    group by g.cluster_name, g.day_on, g.node_uid
),

metrics (metric_name, group_name) as (
    values
    ('any', 'any'),
    ('utilisation_ratio', 'whole'),
    ('gr_engine_ratio', 'prof'),
    ('sm_ratio', 'sm'),
    ('tensor_ratio', 'prof'),
    ('dram_ratio', 'prof'),
    ('memory_used_mib', 'base'),
    ('power_watts', 'base'),
    ('pcie_received_bytes_per_second', 'prof'),
    ('nvlink_bytes_per_second', 'base'),
    ('throttle_number', 'rare'),
    ('xid_number', 'base'),
    ('temperature_celsius', 'base'),
    ('uncorrectable_remapped_row_count', 'base')
),

sums as (
    select
        n.*,
        m.metric_name,
        m.group_name,
        coalesce(d.is_mig, false) as is_mig,
        greatest(n.installed_count, d.device_count) * n.node_seconds as expected_seconds,
        coalesce(t.told_seconds, 0) as told_seconds,
        t.first_told_at,
        t.last_told_at,
        a.metric_name is not null as is_read,
        coalesce(r.rejected_count, 0) as rejected_count
    from nodes as n
    cross join metrics as m
    left join devices as d
        on n.cluster_name = d.cluster_name and n.day_on = d.day_on and n.node_uid = d.node_uid
    left join told as t
        on
            n.cluster_name = t.cluster_name
            and n.day_on = t.day_on
            and n.node_uid = t.node_uid
            and m.metric_name = t.metric_name
    left join told as a
        on
            n.cluster_name = a.cluster_name
            and n.day_on = a.day_on
            and n.node_uid = a.node_uid
            and a.metric_name = 'any'
    left join refused as r
        on
            n.cluster_name = r.cluster_name
            and n.day_on = r.day_on
            and n.node_uid = r.node_uid
            and m.metric_name = 'any'
)

select
    cluster_name,
    day_on,
    node_uid,
    node_name,
    gpu_model_name,
    metric_name,
    expected_seconds::bigint as expected_seconds,
    least(round(told_seconds), expected_seconds)::bigint as told_seconds,
    first_told_at,
    last_told_at,
    rejected_count::bigint as rejected_count,
    case
        when not is_read then 'no series of the node: no exporter there, or it is not scraped'
        when told_seconds > 0 then null
        when is_mig and group_name = 'whole' then 'not told of GPU instances'
        when group_name = 'sm' then 'DCGM_FI_PROF_SM_ACTIVE is not in the exporter''s list'
        when group_name = 'prof' then 'profiling metrics (DCGM_FI_PROF_*) are off'
        when group_name = 'rare'
            then 'DCGM_FI_DEV_CLOCKS_EVENT_REASONS is not in the exporter''s list'
        else 'the exporter does not tell it'
    end as reason_text
from sums
