-- mart.gpu_health: The health of each physical GPU by day; null: its exporter does not tell.
--
-- What belongs to the board is told by each instance of it alike. Bits of the clock event reasons:
-- 4 power cap in software; 32, 64 heat; 8, 128 slowed by hardware or power brake.
with
gpus as (
    select
        g.cluster_name,
        g.day_on,
        g.node_uid,
        g.gpu_uuid,
        any_value(g.node_name) as exporter_node_name,
        any_value(g.gpu_model_name) as gpu_model_name,
        max(g.sample_seconds) as sample_seconds
    from core.gpus as g
    group by g.cluster_name, g.day_on, g.node_uid, g.gpu_uuid
),

-- Of most GPUs one series tells: there each sample is a moment of the board.
several as (
    select
        cluster_name,
        day_on,
        gpu_uuid
    from raw.gpu_series
    group by cluster_name, day_on, gpu_uuid
    having count(distinct node_name) > 1 or max(instance_number) >= 0
),

moments as (
    select
        cluster_name,
        day_on,
        gpu_uuid,
        throttle_number,
        xid_number,
        temperature_celsius,
        uncorrectable_remapped_row_count as uncorrectable_count,
        correctable_remapped_row_count as correctable_count,
        row_remap_failure_count as failure_count
    from raw.gpu_samples as s
    anti join several as m
        on s.cluster_name = m.cluster_name and s.day_on = m.day_on and s.gpu_uuid = m.gpu_uuid
    union all by name
    select
        s.cluster_name,
        s.day_on,
        s.gpu_uuid,
        max(s.throttle_number) as throttle_number,
        max(s.xid_number) as xid_number,
        max(s.temperature_celsius) as temperature_celsius,
        max(s.uncorrectable_remapped_row_count) as uncorrectable_count,
        max(s.correctable_remapped_row_count) as correctable_count,
        max(s.row_remap_failure_count) as failure_count
    from raw.gpu_samples as s
    semi join several as m
        on s.cluster_name = m.cluster_name and s.day_on = m.day_on and s.gpu_uuid = m.gpu_uuid
    group by s.cluster_name, s.day_on, s.gpu_uuid, s.sampled_at
),

sums as (
    select
        cluster_name,
        day_on,
        gpu_uuid,
        count(xid_number) > 0 as is_xid_told,
        count(throttle_number) as told_count,
        count(*) filter (where throttle_number & 4 > 0) as power_count,
        count(*) filter (where throttle_number & 96 > 0) as thermal_count,
        count(*) filter (where throttle_number & 136 > 0) as hardware_count,
        max(temperature_celsius) as most_celsius,
        max(uncorrectable_count) as uncorrectable_count,
        max(correctable_count) as correctable_count,
        max(failure_count) as failure_count
    from moments
    group by cluster_name, day_on, gpu_uuid
),

errors as (
    select
        cluster_name,
        day_on,
        node_uid,
        gpu_uuid,
        count(*) filter (where kind_name = 'fatal') as fatal_count,
        count(*) filter (where kind_name = 'cleanup') as noise_count,
        count(*) filter (where kind_name not in ('fatal', 'cleanup')) as other_count
    from core.gpu_errors
    group by cluster_name, day_on, node_uid, gpu_uuid
),

faults as (
    select
        cluster_name,
        day_on,
        node_uid,
        gpu_uuid,
        sum(date_diff('second', begin_at, end_at)) as faulty_seconds
    from core.gpu_faults
    group by cluster_name, day_on, node_uid, gpu_uuid
)

select
    g.cluster_name,
    g.day_on,
    g.node_uid,
    coalesce(n.node_name, g.exporter_node_name) as node_name,
    g.gpu_uuid,
    g.gpu_model_name,
    coalesce(s.is_xid_told, false) as is_xid_told,
    case when s.is_xid_told then coalesce(e.fatal_count, 0) end as fatal_count,
    case when s.is_xid_told then coalesce(e.noise_count, 0) end as noise_count,
    case when s.is_xid_told then coalesce(e.other_count, 0) end as other_count,
    coalesce(f.faulty_seconds, 0)::bigint as faulty_seconds,
    case when s.told_count > 0 then round(s.power_count * g.sample_seconds)::bigint end
        as power_capped_seconds,
    case when s.told_count > 0 then round(s.thermal_count * g.sample_seconds)::bigint end
        as thermal_seconds,
    case when s.told_count > 0 then round(s.hardware_count * g.sample_seconds)::bigint end
        as hardware_slowed_seconds,
    round(coalesce(s.told_count, 0) * g.sample_seconds)::bigint as told_seconds,
    s.most_celsius,
    s.uncorrectable_count as uncorrectable_remapped_row_count,
    s.correctable_count as correctable_remapped_row_count,
    case when s.failure_count is not null then s.failure_count > 0 end as is_row_remap_failed
from gpus as g
left join sums as s
    on g.cluster_name = s.cluster_name and g.day_on = s.day_on and g.gpu_uuid = s.gpu_uuid
left join errors as e
    on
        g.cluster_name = e.cluster_name
        and g.day_on = e.day_on
        and g.node_uid = e.node_uid
        and g.gpu_uuid = e.gpu_uuid
left join faults as f
    on
        g.cluster_name = f.cluster_name
        and g.day_on = f.day_on
        and g.node_uid = f.node_uid
        and g.gpu_uuid = f.gpu_uuid
left join core.nodes as n
    on g.cluster_name = n.cluster_name and g.day_on = n.day_on and g.node_uid = n.node_uid
