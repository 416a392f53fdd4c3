-- mart.gpu_faults: When a GPU was broken: the day's stretches, and what says so.
with
gpus as (
    select
        cluster_name,
        day_on,
        node_uid,
        gpu_uuid,
        any_value(node_name) as node_name,
        any_value(gpu_model_name) as gpu_model_name
    from core.gpus
    group by cluster_name, day_on, node_uid, gpu_uuid
)

-- A GPU that is broken all day tells nothing of itself on that day.
select
    f.cluster_name,
    f.day_on,
    f.node_uid,
    coalesce(g.node_name, n.node_name) as node_name,
    f.gpu_uuid,
    coalesce(g.gpu_model_name, '__unknown__') as gpu_model_name,
    f.begin_at,
    f.end_at,
    f.is_ended,
    f.xid_number,
    f.basis_name
from core.gpu_faults as f
left join gpus as g
    on
        f.cluster_name = g.cluster_name
        and f.day_on = g.day_on
        and f.node_uid = g.node_uid
        and f.gpu_uuid = g.gpu_uuid
left join (
    select
        cluster_name,
        day_on,
        node_uid,
        any_value(node_name) as node_name
    from core.nodes
    group by cluster_name, day_on, node_uid
) as n
    on
        f.cluster_name = n.cluster_name
        and f.day_on = n.day_on
        and f.node_uid = n.node_uid
