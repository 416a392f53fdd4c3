"""What is read of one node, and which there are; of workloads and searches it is in `lives`."""

from dashboards.conditions import HERE

NODE = f"""
select
    *
from core.nodes
where {HERE} and node_uid = $node
order by day_on desc
limit 1
"""

HOLDERS = """
select
    coalesce(nullif(p.gpu_uuid, ''), '') as gpu_uuid,
    h.hold_id || '/' || coalesce(p.part_number, 0) as lane_name,
    h.share_micro_gpu,
    h.workload_key_uid,
    any_value(w.workload_kind_name) as workload_kind_name,
    any_value(w.workload_name) as workload_name,
    any_value(h.team_name) as team_name,
    any_value(o.pod_name) as pod_name,
    min(h.begin_at) as begin_at,
    max(h.end_at) as end_at
from core.holds as h
left join core.hold_parts as p
    on h.cluster_name = p.cluster_name and h.day_on = p.day_on and h.hold_id = p.hold_id
left join core.workloads as w
    on
        h.cluster_name = w.cluster_name
        and h.day_on = w.day_on
        and h.workload_key_uid = w.workload_key_uid
left join core.pods as o
    on h.cluster_name = o.cluster_name and h.day_on = o.day_on and h.pod_uid = o.pod_uid
where
    h.day_on >= $begin_on
    and h.day_on < $end_on
    and list_contains($clusters::varchar[], h.cluster_name)
    and h.node_uid = $node
group by all
order by begin_at, lane_name
"""

UNUSABLE = f"""
select
    cause_name,
    begin_at,
    end_at,
    unschedulable_micro_gpu
from core.node_spells
where {HERE} and node_uid = $node and unschedulable_micro_gpu > 0
order by begin_at
"""

NODE_STATES = f"""
select
    team_name,
    state_name,
    cause_name,
    sum(gpu_seconds)::decimal(18, 6) as gpu_seconds,
    sum(ledger_cost)::decimal(18, 6) as state_cost
from core.ledger
where {HERE} and node_uid = $node and state_name <> 'rounding'
group by team_name, state_name, cause_name
order by sum(gpu_seconds) desc, team_name, state_name, cause_name
"""

FAULTS = f"""
select
    gpu_uuid,
    xid_number,
    basis_name,
    min(begin_at) as begin_at,
    max(end_at) as end_at,
    bool_and(is_ended) as is_ended
from core.gpu_faults
where {HERE} and node_uid = $node
group by gpu_uuid, xid_number, basis_name, date_trunc('day', begin_at)
order by begin_at desc
"""

NODE_EVENTS = f"""
select
    reason_name,
    type_name,
    component_name,
    sum(event_count)::bigint as event_count,
    min(first_at) as first_at,
    max(last_at) as last_at,
    arg_max(latest_text, last_at) as latest_text
from core.events
where {HERE} and object_kind_name = 'Node' and object_name = $name
group by reason_name, type_name, component_name, text_pattern_name
order by max(last_at) desc, reason_name
limit 500
"""

NODES = f"""
select
    node_uid,
    arg_max(node_name, day_on) as node_name,
    cluster_name,
    arg_max(gpu_model_name, day_on) as gpu_model_name,
    max(installed_count) as installed_count,
    min(day_on) as first_on,
    max(day_on) as last_on
from core.nodes
where {HERE} and installed_count > 0
group by node_uid, cluster_name
order by node_name, cluster_name
limit 500
"""
