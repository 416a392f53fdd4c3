-- mart.gpu_events: Each XID that a GPU was seen to report: a lower bound, for a repeat is not seen.
--
-- Where several hold parts of the GPU nobody is named: whose doing it was is not told.
select
    e.cluster_name,
    e.day_on,
    e.node_uid,
    coalesce(n.node_name, e.node_uid) as node_name,
    e.gpu_uuid,
    e.gpu_model_name,
    e.seen_at,
    e.xid_number,
    e.kind_name,
    e.meaning_text,
    e.is_first_sample,
    case when count(distinct h.hold_id) = 1 then any_value(h.team_name) end as team_name,
    case when count(distinct h.hold_id) = 1 then any_value(w.workload_name) end as workload_name,
    case when count(distinct h.hold_id) = 1 then any_value(p.pod_name) end as pod_name
from core.gpu_errors as e
left join core.nodes as n
    on e.cluster_name = n.cluster_name and e.day_on = n.day_on and e.node_uid = n.node_uid
left join core.gpu_owners as o
    on
        e.cluster_name = o.cluster_name
        and e.day_on = o.day_on
        and e.node_uid = o.node_uid
        and e.gpu_uuid = o.gpu_uuid
        -- It is seen up to a scrape after it happened.
        and e.seen_at > o.begin_at
        and e.seen_at <= o.end_at
left join core.holds as h
    on o.cluster_name = h.cluster_name and o.day_on = h.day_on and o.hold_id = h.hold_id
left join core.pods as p
    on h.cluster_name = p.cluster_name and h.day_on = p.day_on and h.pod_uid = p.pod_uid
left join core.workloads as w
    on
        h.cluster_name = w.cluster_name
        and h.day_on = w.day_on
        and h.workload_key_uid = w.workload_key_uid
group by
    e.cluster_name,
    e.day_on,
    e.node_uid,
    n.node_name,
    e.gpu_uuid,
    e.gpu_model_name,
    e.seen_at,
    e.xid_number,
    e.kind_name,
    e.meaning_text,
    e.is_first_sample
