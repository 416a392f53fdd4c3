-- core.label_strangers: When the labels of a GPU or GPU instance named a pod that has no hold there.
--
-- Which GPU a pod has is known against its labels only where the scheduler names it.
with
nodes as (
    select
        cluster_name,
        day_on,
        node_uid,
        node_name,
        begin_at,
        end_at
    from core.nodes
),

-- The node of a GPU may not be known.
devices as (
    select
        g.cluster_name,
        g.day_on,
        g.node_uid,
        g.gpu_uuid,
        g.instance_number,
        g.node_name,
        g.sample_seconds,
        n.node_name as recorded_name,
        n.begin_at as node_begin_at,
        n.end_at as node_end_at
    from core.gpus as g
    left join nodes as n
        on g.cluster_name = n.cluster_name and g.day_on = n.day_on and g.node_uid = n.node_uid
),

named as (
    select
        s.cluster_name,
        s.day_on,
        s.gpu_uuid,
        s.instance_number,
        s.pod_namespace_name,
        s.pod_name,
        s.begin_at,
        s.end_at,
        s.sample_count,
        g.node_uid,
        g.recorded_name,
        g.sample_seconds,
        -- A sample speaks for the time before it.
        greatest(
            s.begin_at - to_seconds(g.sample_seconds::integer), g.node_begin_at
        ) as told_at
    from raw.gpu_series as s
    inner join devices as g
        on
            s.cluster_name = g.cluster_name
            and s.day_on = g.day_on
            and s.node_name = g.node_name
            and s.gpu_uuid = g.gpu_uuid
            and s.instance_number = g.instance_number
            and coalesce(s.begin_at < g.node_end_at and s.end_at > g.node_begin_at, true)
    where s.pod_name <> '' and s.sample_count > 3
),

holds as (
    select
        h.cluster_name,
        h.day_on,
        n.node_name,
        p.namespace_name,
        p.pod_name,
        h.begin_at,
        h.end_at,
        g.gpu_uuid
    from core.holds as h
    inner join core.pods as p
        on h.cluster_name = p.cluster_name and h.day_on = p.day_on and h.pod_uid = p.pod_uid
    inner join nodes as n
        on h.cluster_name = n.cluster_name and h.day_on = n.day_on and h.node_uid = n.node_uid
    left join (
        select distinct
            cluster_name,
            day_on,
            node_uid,
            gpu_uuid
        from devices
    ) as g
        on
            h.cluster_name = g.cluster_name
            and h.day_on = g.day_on
            and h.node_uid = g.node_uid
            and h.device_uuid = g.gpu_uuid
),

strangers as (
    select
        s.*,
        coalesce(
            s.begin_at > lag(s.end_at) over (
                partition by
                    s.cluster_name, s.day_on, s.node_uid, s.gpu_uuid, s.instance_number,
                    s.pod_namespace_name, s.pod_name
                order by s.begin_at
            ) + to_seconds(3 * s.sample_seconds::integer),
            true
        )::integer as is_other
    from named as s
    anti join (
        select * from holds where gpu_uuid is null
    ) as h
        on
            s.cluster_name = h.cluster_name
            and s.day_on = h.day_on
            and s.recorded_name = h.node_name
            and s.pod_namespace_name = h.namespace_name
            and s.pod_name = h.pod_name
            and s.begin_at < h.end_at
            and s.end_at > h.begin_at
    anti join holds as d
        on
            s.cluster_name = d.cluster_name
            and s.day_on = d.day_on
            and s.recorded_name = d.node_name
            and s.pod_namespace_name = d.namespace_name
            and s.pod_name = d.pod_name
            and s.gpu_uuid = d.gpu_uuid
            and s.begin_at < d.end_at
            and s.end_at > d.begin_at
),

numbered as (
    select
        *,
        sum(is_other) over (
            partition by
                cluster_name, day_on, node_uid, gpu_uuid, instance_number,
                pod_namespace_name, pod_name
            order by begin_at
        ) as piece_number
    from strangers
),

stretches as (
    select
        cluster_name,
        day_on,
        node_uid,
        gpu_uuid,
        instance_number,
        pod_namespace_name,
        pod_name,
        any_value(recorded_name) as recorded_name,
        date_trunc('second', min(told_at)) as begin_at,
        date_trunc('second', max(end_at)) as end_at,
        sum(sample_count)::bigint as sample_count,
        sum(sample_count * sample_seconds)::double as told_seconds
    from numbered
    group by
        cluster_name, day_on, node_uid, gpu_uuid, instance_number, pod_namespace_name, pod_name,
        piece_number
)

select
    s.cluster_name,
    s.day_on,
    s.node_uid,
    s.gpu_uuid,
    s.instance_number,
    s.pod_namespace_name,
    s.pod_name,
    s.begin_at,
    s.end_at,
    s.sample_count,
    s.told_seconds,
    string_agg(distinct h.gpu_uuid, ' ' order by h.gpu_uuid) as held_uuids_text
from stretches as s
left join holds as h
    on
        s.cluster_name = h.cluster_name
        and s.day_on = h.day_on
        and s.recorded_name = h.node_name
        and s.pod_namespace_name = h.namespace_name
        and s.pod_name = h.pod_name
        and s.begin_at < h.end_at
        and s.end_at > h.begin_at
group by all
