-- mart.startups: What is held before it works, by day, team, class, node, GPU model, image and cause.
--
-- Of the ledger's hours one row for each hold is enough: what belongs to a hold is joined to few.
with
held as (
    select
        cluster_name,
        day_on,
        hold_id,
        node_uid,
        gpu_model_name,
        team_name,
        state_name,
        cause_name,
        sum(gpu_seconds) as gpu_seconds,
        sum(gpu_seconds) filter (where price_id is null) as unpriced_gpu_seconds,
        sum(ledger_cost) as startup_cost
    from core.ledger
    where hold_id is not null and state_name in ('starting', 'gang_wait', 'loading')
    group by
        cluster_name,
        day_on,
        hold_id,
        node_uid,
        gpu_model_name,
        team_name,
        state_name,
        cause_name
),

nodes as (
    select
        cluster_name,
        day_on,
        node_uid,
        any_value(node_name) as node_name
    from core.nodes
    group by cluster_name, day_on, node_uid
)

select
    l.cluster_name,
    l.day_on,
    l.team_name,
    h.workload_class,
    l.node_uid,
    coalesce(any_value(n.node_name), l.node_uid) as node_name,
    l.gpu_model_name,
    coalesce(v.image_name, '__unknown__') as image_name,
    l.state_name,
    l.cause_name,
    count(distinct h.pod_uid) as pod_count,
    sum(l.gpu_seconds)::decimal(18, 6) as gpu_seconds,
    coalesce(sum(l.unpriced_gpu_seconds), 0)::decimal(18, 6) as unpriced_gpu_seconds,
    sum(l.startup_cost)::decimal(18, 6) as startup_cost
from held as l
inner join core.holds as h
    on l.cluster_name = h.cluster_name and l.day_on = h.day_on and l.hold_id = h.hold_id
inner join core.pods as p
    on h.cluster_name = p.cluster_name and h.day_on = p.day_on and h.pod_uid = p.pod_uid
inner join raw.pod_versions as v
    on
        p.cluster_name = v.cluster_name
        and p.day_on = v.day_on
        and p.last_sequence_number = v.sequence_number
left join nodes as n
    on l.cluster_name = n.cluster_name and l.day_on = n.day_on and l.node_uid = n.node_uid
group by
    l.cluster_name,
    l.day_on,
    l.team_name,
    h.workload_class,
    l.node_uid,
    l.gpu_model_name,
    coalesce(v.image_name, '__unknown__'),
    l.state_name,
    l.cause_name
