-- core.label_strangers: When the labels of a GPU or GPU instance named a pod that has no hold there.
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
        h.end_at
    from core.holds as h
    inner join core.pods as p
        on h.cluster_name = p.cluster_name and h.day_on = p.day_on and h.pod_uid = p.pod_uid
    inner join nodes as n
        on h.cluster_name = n.cluster_name and h.day_on = n.day_on and h.node_uid = n.node_uid
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
    anti join holds as h
        on
            s.cluster_name = h.cluster_name
            and s.day_on = h.day_on
            and s.recorded_name = h.node_name
            and s.pod_namespace_name = h.namespace_name
            and s.pod_name = h.pod_name
            and s.begin_at < h.end_at
            and s.end_at > h.begin_at
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
)

select
    cluster_name,
    day_on,
    node_uid,
    gpu_uuid,
    instance_number,
    pod_namespace_name,
    pod_name,
    date_trunc('second', min(told_at)) as begin_at,
    date_trunc('second', max(end_at)) as end_at,
    sum(sample_count)::bigint as sample_count,
    sum(sample_count * sample_seconds)::double as told_seconds
from numbered
group by
    cluster_name, day_on, node_uid, gpu_uuid, instance_number, pod_namespace_name, pod_name,
    piece_number
