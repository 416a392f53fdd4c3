-- mart.image_pulls: Each pull of an image for a pod that holds GPUs: what was there already is none.
select
    i.cluster_name,
    i.day_on,
    i.pod_uid,
    p.namespace_name,
    p.pod_name,
    p.team_name,
    p.workload_key_uid,
    p.workload_name,
    coalesce(p.node_name, i.node_name, '__unknown__') as node_name,
    p.asked_micro_gpu,
    i.container_name,
    i.image_name,
    i.pull_number,
    i.begun_at,
    i.pulled_at,
    i.pull_seconds,
    i.queue_seconds,
    i.total_seconds,
    i.image_bytes,
    i.failed_count
from core.image_pulls as i
inner join core.pods as p
    on i.cluster_name = p.cluster_name and i.day_on = p.day_on and i.pod_uid = p.pod_uid
semi join core.holds as h
    on i.cluster_name = h.cluster_name and i.day_on = h.day_on and i.pod_uid = h.pod_uid
where not i.is_cached
