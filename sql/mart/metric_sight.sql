-- mart.metric_sight: What we see and are blind to: each quantity on each node with GPUs, by day.
--
-- By the hour: a quantity that a device told at all in an hour counts for the samples of it.
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

series as (
    select
        g.cluster_name,
        g.day_on,
        g.node_uid,
        g.gpu_uuid,
        g.instance_number,
        g.sample_seconds,
        date_trunc('hour', s.end_at - interval 1 microsecond) as hour_at,
        s.begin_at,
        s.end_at,
        s.sample_count,
        s.metrics_text
    from raw.gpu_series as s
    inner join core.gpus as g
        on
            s.cluster_name = g.cluster_name
            and s.day_on = g.day_on
            and s.node_name = g.node_name
            and s.gpu_uuid = g.gpu_uuid
            and s.instance_number = g.instance_number
),

-- Copies for pods that share a device are told at once: they count no longer than the hour's span.
hours as (
    select
        cluster_name,
        day_on,
        node_uid,
        gpu_uuid,
        instance_number,
        hour_at,
        any_value(sample_seconds) as sample_seconds,
        any_value(metrics_text) as metrics_text,
        min(metrics_text) < max(metrics_text) as is_mixed,
        min(begin_at) as begin_at,
        max(end_at) as end_at,
        sum(sample_count) as sample_count
    from series
    group by cluster_name, day_on, node_uid, gpu_uuid, instance_number, hour_at
),

-- Where all of an hour tells the same quantities, each of them was told as long.
alike as (
    select
        cluster_name,
        day_on,
        node_uid,
        metrics_text,
        min(begin_at) as first_told_at,
        max(end_at) as last_told_at,
        sum(least(
            sample_count * sample_seconds,
            date_diff('millisecond', begin_at, end_at) / 1000.0 + sample_seconds
        )) as told_seconds
    from hours
    where not is_mixed
    group by cluster_name, day_on, node_uid, metrics_text
),

mixed as (
    select
        s.* exclude (metrics_text),
        unnest(string_split('any,' || s.metrics_text, ',')) as metric_name
    from series as s
    semi join (select * from hours where is_mixed) as h
        on
            s.cluster_name = h.cluster_name
            and s.day_on = h.day_on
            and s.node_uid = h.node_uid
            and s.gpu_uuid = h.gpu_uuid
            and s.instance_number = h.instance_number
            and s.hour_at = h.hour_at
),

parts as (
    select
        cluster_name,
        day_on,
        node_uid,
        unnest(string_split('any,' || metrics_text, ',')) as metric_name,
        first_told_at,
        last_told_at,
        told_seconds
    from alike
    union all by name
    select
        cluster_name,
        day_on,
        node_uid,
        metric_name,
        min(begin_at) as first_told_at,
        max(end_at) as last_told_at,
        least(
            sum(sample_count) * any_value(sample_seconds),
            date_diff('millisecond', min(begin_at), max(end_at)) / 1000.0
            + any_value(sample_seconds)
        ) as told_seconds
    from mixed
    group by
        cluster_name, day_on, node_uid, gpu_uuid, instance_number, hour_at, metric_name
),

told as (
    select
        cluster_name,
        day_on,
        node_uid,
        metric_name,
        min(first_told_at) as first_told_at,
        max(last_told_at) as last_told_at,
        sum(told_seconds) as told_seconds
    from parts
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
