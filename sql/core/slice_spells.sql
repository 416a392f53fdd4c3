-- core.slice_spells: The physical GPUs of each node that complete pools of ResourceSlices tell, from when on.
--
-- A pool counts while all slices of its highest generation are there, as the scheduler has it.
with
nodes as (
    select
        cluster_name,
        day_on,
        node_name,
        node_uid,
        coalesce(min(created_at), '1900-01-01'::timestamptz) as created_at
    from raw.node_versions
    group by cluster_name, day_on, node_name, node_uid
),

versions as (
    select
        v.*,
        date_trunc('second', v.observed_at) as seen_at,
        -- What the first list shows was there before it.
        case
            when
                v.change_name in ('LISTED', 'CARRIED')
                and row_number() over slices = 1
                then w.begin_at
            else date_trunc('second', v.observed_at)
        end as begin_at,
        lead(date_trunc('second', v.observed_at)) over slices as end_at
    from raw.slice_versions as v
    inner join core.windows as w
        on v.cluster_name = w.cluster_name and v.day_on = w.day_on
    window slices as (
        partition by v.cluster_name, v.day_on, v.slice_uid order by v.sequence_number
    )
),

edges as (
    select
        cluster_name,
        day_on,
        driver_name,
        pool_name,
        begin_at as edge_at
    from versions
    union
    select
        cluster_name,
        day_on,
        driver_name,
        pool_name,
        end_at as edge_at
    from versions
    where end_at is not null
),

there as (
    select
        e.edge_at,
        v.*
    from edges as e
    inner join versions as v
        on
            e.cluster_name = v.cluster_name
            and e.day_on = v.day_on
            and e.driver_name = v.driver_name
            and e.pool_name = v.pool_name
            and e.edge_at >= v.begin_at
            and (e.edge_at < v.end_at or v.end_at is null)
    where v.change_name <> 'DELETED'
    qualify
        v.generation_number = max(v.generation_number) over (
            partition by e.cluster_name, e.day_on, e.driver_name, e.pool_name, e.edge_at
        )
),

complete as (
    select *
    from there
    qualify
        count(*) over (
            partition by cluster_name, day_on, driver_name, pool_name, edge_at
        ) = slice_count
),

devices as (
    select
        cluster_name,
        day_on,
        driver_name,
        pool_name,
        edge_at,
        seen_at,
        node_uid,
        node_name,
        unnest(devices) as d
    from complete
),

placed as (
    select
        v.cluster_name,
        v.day_on,
        v.driver_name,
        v.pool_name,
        v.edge_at,
        coalesce(v.node_uid, n.node_uid) as node_uid,
        k.gpu_uuid,
        k.gpu_model_name,
        v.d.is_tainted
    from (
        select
            * exclude (node_name),
            coalesce(d.node_name, node_name) as node_name
        from devices
        where d.is_gpu
    ) as v
    inner join core.slice_devices as k
        on
            v.cluster_name = k.cluster_name
            and v.day_on = k.day_on
            and v.driver_name = k.driver_name
            and v.pool_name = k.pool_name
            and v.d.device_name = k.device_name
    asof left join nodes as n
        on
            v.cluster_name = n.cluster_name
            and v.day_on = n.day_on
            and v.node_name = n.node_name
            and v.seen_at >= n.created_at
    qualify
        row_number() over (
            partition by
                v.cluster_name,
                v.day_on,
                v.driver_name,
                v.pool_name,
                v.edge_at,
                v.d.device_name
            order by (k.begin_at <= v.edge_at) desc, abs(epoch(k.begin_at) - epoch(v.edge_at))
        ) = 1
),

counted as (
    select
        cluster_name,
        day_on,
        driver_name,
        pool_name,
        edge_at,
        node_uid,
        count(distinct gpu_uuid) as gpu_count,
        count(distinct gpu_uuid) filter (where not is_tainted) as schedulable_count,
        any_value(gpu_model_name) filter (where gpu_model_name <> '__unknown__') as gpu_model_name
    from placed
    where node_uid is not null
    group by cluster_name, day_on, driver_name, pool_name, edge_at, node_uid
),

-- A node may have several pools: each is what it is until it changes.
pool_steps as (
    select
        e.cluster_name,
        e.day_on,
        p.node_uid,
        e.edge_at,
        p.gpu_model_name,
        coalesce(c.gpu_count, 0)
        - lag(coalesce(c.gpu_count, 0), 1, 0) over pool_time as gpu_step,
        coalesce(c.schedulable_count, 0)
        - lag(coalesce(c.schedulable_count, 0), 1, 0) over pool_time as schedulable_step
    from edges as e
    inner join (
        select
            cluster_name,
            day_on,
            driver_name,
            pool_name,
            node_uid,
            any_value(gpu_model_name) as gpu_model_name
        from counted
        group by cluster_name, day_on, driver_name, pool_name, node_uid
    ) as p
        on
            e.cluster_name = p.cluster_name
            and e.day_on = p.day_on
            and e.driver_name = p.driver_name
            and e.pool_name = p.pool_name
    left join counted as c
        on
            e.cluster_name = c.cluster_name
            and e.day_on = c.day_on
            and e.driver_name = c.driver_name
            and e.pool_name = c.pool_name
            and e.edge_at = c.edge_at
            and p.node_uid = c.node_uid
    window pool_time as (
        partition by e.cluster_name, e.day_on, e.driver_name, e.pool_name, p.node_uid
        order by e.edge_at
    )
)

select
    cluster_name,
    day_on,
    node_uid,
    edge_at as begin_at,
    (sum(sum(gpu_step)) over node_time)::bigint as gpu_count,
    (sum(sum(schedulable_step)) over node_time)::bigint as schedulable_count,
    coalesce(max(max(gpu_model_name)) over node_time, '__unknown__') as gpu_model_name
from pool_steps
group by cluster_name, day_on, node_uid, edge_at
window node_time as (partition by cluster_name, day_on, node_uid order by edge_at)
