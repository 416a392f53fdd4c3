-- core.slice_devices: What each device of the ResourceSlices is, from when on.
--
-- Of a pool only the slices of the highest generation seen so far speak. A device that shares a set
-- of counters with others is of its GPU what it takes of the scarcest of them.
with
versions as (
    select *
    from raw.slice_versions
    where change_name <> 'DELETED'
    qualify
        generation_number >= max(generation_number) over (
            partition by cluster_name, day_on, driver_name, pool_name
            order by sequence_number
            rows between unbounded preceding and current row
        )
),

counters as (
    select
        cluster_name,
        day_on,
        driver_name,
        pool_name,
        sequence_number,
        unnest(counters) as c
    from versions
),

totals as (
    select
        cluster_name,
        day_on,
        driver_name,
        pool_name,
        c.set_name,
        c.counter_name,
        arg_max(c.counter_amount, sequence_number) as counter_amount
    from counters
    where c.device_name = ''
    group by cluster_name, day_on, driver_name, pool_name, c.set_name, c.counter_name
),

-- Where a pool does not tell what a set has, the device that takes most of it is the whole.
largest as (
    select
        cluster_name,
        day_on,
        driver_name,
        pool_name,
        c.set_name,
        c.counter_name,
        max(c.counter_amount) as counter_amount
    from counters
    where c.device_name <> ''
    group by cluster_name, day_on, driver_name, pool_name, c.set_name, c.counter_name
),

takes as (
    select
        u.cluster_name,
        u.day_on,
        u.driver_name,
        u.pool_name,
        u.sequence_number,
        u.c.device_name,
        min(u.c.set_name) as set_name,
        max(
            u.c.counter_amount * 1000000::hugeint
            // coalesce(nullif(t.counter_amount, 0), nullif(l.counter_amount, 0))
        ) as share_micro_gpu
    from counters as u
    inner join largest as l
        on
            u.cluster_name = l.cluster_name
            and u.day_on = l.day_on
            and u.driver_name = l.driver_name
            and u.pool_name = l.pool_name
            and u.c.set_name = l.set_name
            and u.c.counter_name = l.counter_name
    left join totals as t
        on
            u.cluster_name = t.cluster_name
            and u.day_on = t.day_on
            and u.driver_name = t.driver_name
            and u.pool_name = t.pool_name
            and u.c.set_name = t.set_name
            and u.c.counter_name = t.counter_name
    where u.c.device_name <> ''
    group by
        u.cluster_name,
        u.day_on,
        u.driver_name,
        u.pool_name,
        u.sequence_number,
        u.c.device_name
),

devices as (
    select
        cluster_name,
        day_on,
        driver_name,
        pool_name,
        sequence_number,
        date_trunc('second', observed_at) as begin_at,
        unnest(devices) as d
    from versions
),

described as (
    select
        e.cluster_name,
        e.day_on,
        e.driver_name,
        e.pool_name,
        e.d.device_name,
        e.sequence_number,
        e.begin_at,
        e.d.is_gpu,
        coalesce(
            e.d.gpu_uuid,
            e.driver_name || '/' || e.pool_name || '/' || coalesce(t.set_name, e.d.device_name)
        ) as gpu_uuid,
        e.d.gpu_model_name,
        e.driver_name || coalesce('/mig-' || e.d.profile_name, '') as resource_name,
        e.d.memory_mib,
        least(1000000, coalesce(e.d.share_micro_gpu, t.share_micro_gpu, 1000000))::bigint
            as share_micro_gpu
    from devices as e
    left join takes as t
        on
            e.cluster_name = t.cluster_name
            and e.day_on = t.day_on
            and e.driver_name = t.driver_name
            and e.pool_name = t.pool_name
            and e.sequence_number = t.sequence_number
            and e.d.device_name = t.device_name
    -- A device stands once: of several versions in one second the last one counts.
    qualify
        row_number() over (
            partition by
                e.cluster_name,
                e.day_on,
                e.driver_name,
                e.pool_name,
                e.d.device_name,
                e.begin_at
            order by e.sequence_number desc
        ) = 1
)

select * exclude (sequence_number)
from described
-- A slice that is written again as it was tells nothing.
qualify
    coalesce(
        (is_gpu, gpu_uuid, gpu_model_name, resource_name, memory_mib, share_micro_gpu)
        is distinct from lag(
            (is_gpu, gpu_uuid, gpu_model_name, resource_name, memory_mib, share_micro_gpu)
        ) over (
            partition by cluster_name, day_on, driver_name, pool_name, device_name
            order by sequence_number
        ),
        true
    )
