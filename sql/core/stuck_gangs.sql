-- core.stuck_gangs: Gangs that long hold GPUs while others of them wait for a place, and what those need.
with
limits as (
    select coalesce(max(value_number), 120) as least_seconds
    from raw.policies
    where policy_name = 'gang_deadlock_seconds'
),

stuck as (
    select
        s.cluster_name,
        s.day_on,
        s.attempt_id,
        s.since_at,
        s.begin_at,
        s.end_at,
        s.is_open,
        s.gang_size_count
    from core.gang_stalls as s
    cross join limits as l
    where s.stall_name = 'stuck' and date_diff('second', s.since_at, s.end_at) > l.least_seconds
    qualify count(*) over (partition by s.cluster_name, s.day_on) > 1
),

-- Where nothing tells which nodes they may have: those of the model that the others have.
held_models as (
    select
        m.cluster_name,
        m.day_on,
        m.attempt_id,
        any_value(n.gpu_model_name) as gpu_model_name
    from core.pods as m
    semi join stuck as s
        on m.cluster_name = s.cluster_name and m.day_on = s.day_on and m.attempt_id = s.attempt_id
    inner join core.nodes as n
        on m.cluster_name = n.cluster_name and m.day_on = n.day_on and m.node_uid = n.node_uid
    group by m.cluster_name, m.day_on, m.attempt_id
),

-- Those that are missing are the last ones to be placed.
members as (
    select
        p.*,
        (coalesce(p.bound_at, 'infinity'::timestamptz), p.pod_uid) as latest
    from core.pods as p
    semi join stuck as s
        on p.cluster_name = s.cluster_name and p.day_on = s.day_on and p.attempt_id = s.attempt_id
),

wants as (
    select
        m.cluster_name,
        m.day_on,
        m.attempt_id,
        arg_max(m.asked_micro_gpu, m.latest) as asked_micro_gpu,
        arg_max(v.node_needs_json, m.latest) as node_needs_json,
        arg_max(v.requests[1].resource_name, m.latest) as resource_name,
        arg_max(
            coalesce(
                m.asked_gpu_model_name,
                case when v.node_needs_json is null then h.gpu_model_name end
            ),
            m.latest
        ) as gpu_model_name
    from members as m
    inner join raw.pod_versions as v
        on
            m.cluster_name = v.cluster_name
            and m.day_on = v.day_on
            and m.last_sequence_number = v.sequence_number
    left join held_models as h
        on m.cluster_name = h.cluster_name and m.day_on = h.day_on and m.attempt_id = h.attempt_id
    where m.asked_micro_gpu > 0
    group by m.cluster_name, m.day_on, m.attempt_id
)

select
    s.cluster_name,
    s.day_on,
    s.attempt_id,
    s.since_at,
    s.begin_at,
    s.end_at,
    s.is_open,
    s.gang_size_count,
    w.asked_micro_gpu,
    concat_ws('|', w.resource_name, w.gpu_model_name, w.node_needs_json) as needs_id,
    w.node_needs_json,
    w.resource_name,
    w.gpu_model_name
from stuck as s
inner join wants as w
    on s.cluster_name = w.cluster_name and s.day_on = w.day_on and s.attempt_id = w.attempt_id
