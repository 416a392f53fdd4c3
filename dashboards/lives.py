"""What is read of a workload, a node, or what a reader looks for: the queries of their pages.

They read the core tables: a life is told step by step, which no mart keeps. Drawing belongs to the
views.
"""

from dashboards.conditions import HERE, TEAMS

ITS = f"{HERE} and workload_key_uid = $workload"

FOUND = f"""
with found as (
    select
        'workload' as kind_name,
        workload_key_uid as found_uid,
        workload_key_uid as about_uid,
        workload_kind_name || ' ' || namespace_name || '/' || workload_name as found_text,
        cluster_name,
        team_name,
        day_on,
        workload_name = $wanted or workload_key_uid = $wanted as is_exact
    from core.workloads
    where {HERE} and (contains(lower(workload_name), lower($wanted)) or workload_key_uid = $wanted)
    union all
    select
        'pod',
        pod_uid,
        workload_key_uid,
        'Pod ' || namespace_name || '/' || pod_name || coalesce(' on ' || node_name, ''),
        cluster_name,
        team_name,
        day_on,
        pod_name = $wanted or pod_uid = $wanted
    from core.pods
    where {HERE} and (contains(lower(pod_name), lower($wanted)) or pod_uid = $wanted)
    union all
    select
        'node',
        node_uid,
        node_uid,
        'Node ' || node_name || ', ' || installed_count || ' x ' || gpu_model_name,
        cluster_name,
        null,
        day_on,
        node_name = $wanted or node_uid = $wanted
    from core.nodes
    where {HERE} and (contains(lower(node_name), lower($wanted)) or node_uid = $wanted)
    union all
    select
        'gpu',
        gpu_uuid,
        node_uid,
        'GPU ' || gpu_uuid || ' on ' || node_name || ', ' || gpu_model_name,
        cluster_name,
        null,
        day_on,
        lower(gpu_uuid) = lower($wanted)
    from core.gpus
    where {HERE} and contains(lower(gpu_uuid), lower($wanted))
)

select
    kind_name,
    found_uid,
    arg_max(about_uid, day_on) as about_uid,
    arg_max(found_text, day_on) as found_text,
    arg_max(team_name, day_on) as team_name,
    cluster_name,
    min(day_on) as first_on,
    max(day_on) as last_on,
    bool_or(is_exact) as is_exact
from found
group by kind_name, found_uid, cluster_name
order by is_exact desc, last_on desc, found_text, found_uid
limit 200
"""
"""`wanted` is what was typed: a part of a name, or a uid."""

HEAD = f"""
select
    *
from core.workloads
where {ITS}
order by day_on desc
limit 1
"""

MONEY = f"""
select
    state_name,
    cause_name,
    sum(gpu_seconds)::decimal(18, 6) as gpu_seconds,
    sum(gpu_seconds) filter (where price_id is null) as unpriced_gpu_seconds,
    sum(ledger_cost)::decimal(18, 6) as state_cost
from core.ledger
where {ITS}
group by state_name, cause_name
order by sum(gpu_seconds) desc, state_name, cause_name
"""

PODS = f"""
select
    pod_uid,
    arg_max(pod_name, day_on) as pod_name,
    arg_max(node_name, day_on) as node_name,
    arg_max(attempt_id, day_on) as attempt_id,
    max(asked_micro_gpu) as asked_micro_gpu,
    min(created_at) as created_at,
    min(bound_at) as bound_at,
    max(ended_at) as ended_at,
    arg_max(phase_name, day_on) as phase_name,
    arg_max(reason_name, day_on) as reason_name,
    arg_max(disruption_name, day_on) as disruption_name,
    max(restart_count) as restart_count,
    arg_max(cluster_name, day_on) as cluster_name
from core.pods
where {ITS}
group by pod_uid
order by created_at, pod_name, pod_uid
"""

PHASES = f"""
with mine as (
    select
        pod_uid,
        cluster_name,
        day_on,
        created_at,
        bound_at,
        ended_at
    from core.pods
    where {ITS}
)

select
    pod_uid,
    'waiting' as state_name,
    'none' as cause_name,
    min(m.created_at) as begin_at,
    max(coalesce(m.bound_at, m.ended_at, w.end_at)) as end_at
from mine as m
inner join core.windows as w
    on m.cluster_name = w.cluster_name and m.day_on = w.day_on
group by pod_uid
having min(m.created_at) < max(coalesce(m.bound_at, m.ended_at, w.end_at))
union all
select
    s.pod_uid,
    s.state_name,
    s.cause_name,
    s.begin_at,
    s.end_at
from core.pod_states as s
inner join mine as m
    on s.cluster_name = m.cluster_name and s.day_on = m.day_on and s.pod_uid = m.pod_uid
order by pod_uid, begin_at
"""
"""Of each pod the time before it had a node, and then its states, as far as no GPU decides them."""

ACTIVITY = """
with parts as (
    select
        s.state_name,
        epoch(s.begin_at) as begin_second,
        epoch(s.end_at) as end_second,
        h.share_micro_gpu / 1e6
        * coalesce((p.last_unit_count - p.first_unit_count) / nullif(p.hold_unit_count, 0), 1)
            as gpu_share
    from core.holds as h
    inner join core.hold_states as s
        on h.cluster_name = s.cluster_name and h.day_on = s.day_on and h.hold_id = s.hold_id
    left join core.hold_parts as p
        on
            s.cluster_name = p.cluster_name
            and s.day_on = p.day_on
            and s.hold_id = p.hold_id
            and s.part_number = p.part_number
    where
        h.day_on >= $begin_on
        and h.day_on < $end_on
        and list_contains($clusters::varchar[], h.cluster_name)
        and ($workload = '' or h.workload_key_uid = $workload)
        and ($node = '' or h.node_uid = $node)
),

span as (
    select
        min(begin_second) as first_second,
        greatest(max(end_second) - min(begin_second), 120) / 120 as step_seconds
    from parts
),

steps as (
    select
        first_second + number * step_seconds as begin_second,
        step_seconds
    from span
    cross join lateral (select unnest(range(120)) as number) as n
)

select
    to_timestamp(t.begin_second) as begin_at,
    p.state_name,
    sum(
        p.gpu_share * greatest(
            least(p.end_second, t.begin_second + t.step_seconds)
            - greatest(p.begin_second, t.begin_second),
            0
        )
    ) / any_value(t.step_seconds) as gpu_share
from steps as t
inner join parts as p
    on p.begin_second < t.begin_second + t.step_seconds and p.end_second > t.begin_second
group by t.begin_second, p.state_name
order by t.begin_second, p.state_name
"""
"""GPUs by state, in 120 steps of time."""

STEPS = """
select distinct
    p.pod_name,
    t.stage_name,
    t.container_name,
    t.stage_at,
    t.source_name,
    t.detail_text,
    t.is_disordered
from core.timelines as t
inner join core.pods as p
    on t.cluster_name = p.cluster_name and t.day_on = p.day_on and t.pod_uid = p.pod_uid
where
    t.day_on >= $begin_on
    and t.day_on < $end_on
    and list_contains($clusters::varchar[], t.cluster_name)
    and t.workload_key_uid = $workload
    and ($pod = '' or t.pod_uid = $pod)
order by t.stage_at desc, p.pod_name, t.stage_name
limit 1000
"""

EVENTS = f"""
with uids as (
    select pod_uid as object_uid
    from core.pods
    where {ITS}
    union
    select workload_uid
    from core.pods
    where {ITS} and workload_uid is not null
    union
    select $workload
)

select
    object_kind_name,
    object_name,
    reason_name,
    type_name,
    component_name,
    sum(event_count)::bigint as event_count,
    min(first_at) as first_at,
    max(last_at) as last_at,
    arg_max(latest_text, last_at) as latest_text
from core.events as e
where
    {HERE}
    and (
        object_uid in (select u.object_uid from uids as u)
        or (object_kind_name = $kind and object_namespace_name = $space and object_name = $name)
    )
group by
    object_kind_name, object_name, object_uid, reason_name, type_name, component_name,
    text_pattern_name
order by max(last_at) desc, object_name, reason_name
limit 1000
"""

REASONS = f"""
select
    object_kind_name,
    object_name,
    reason_name,
    resource_name,
    arg_max(node_count, last_at) as node_count,
    arg_max(total_node_count, last_at) as total_node_count,
    sum(told_count)::bigint as told_count,
    min(first_at) as first_at,
    max(last_at) as last_at,
    arg_max(latest_text, last_at) as latest_text
from core.scheduling_reasons
where {ITS} and not is_preemption
group by object_kind_name, object_name, reason_name, resource_name
order by max(last_at) desc, object_name, reason_name
limit 200
"""

ATTEMPTS = f"""
with latest as (
    select *
    from core.attempts
    where {ITS}
    qualify row_number() over (partition by attempt_id order by day_on desc) = 1
),

waits as (
    select
        attempt_id,
        sum(wait_seconds) filter (where wait_name = 'dependency')::bigint as dependency_seconds,
        sum(wait_seconds) filter (where wait_name = 'quota')::bigint as quota_seconds,
        sum(wait_seconds) filter (where wait_name = 'check')::bigint as check_seconds,
        sum(wait_seconds) filter (where wait_name = 'placement')::bigint as placement_seconds,
        sum(wait_seconds) filter (where wait_name = 'start')::bigint as start_seconds
    from (
        select w.*
        from core.waits as w
        inner join latest as l
            on
                w.cluster_name = l.cluster_name
                and w.day_on = l.day_on
                and w.attempt_id = l.attempt_id
    ) as mine
    group by attempt_id
)

select
    l.queued_at,
    l.outcome_name,
    l.gpu_shape_name,
    l.pod_count,
    w.* exclude (attempt_id),
    l.started_at,
    l.ended_at
from latest as l
left join waits as w
    on l.attempt_id = w.attempt_id
order by l.queued_at, l.attempt_id
"""

LARGEST = f"""
select
    workload_key_uid,
    arg_max(workload_kind_name, day_on) as workload_kind_name,
    arg_max(namespace_name, day_on) as namespace_name,
    arg_max(workload_name, day_on) as workload_name,
    arg_max(team_name, day_on) as team_name,
    cluster_name,
    sum(gpu_seconds)::decimal(18, 6) as gpu_seconds,
    sum(waste_gpu_seconds)::decimal(18, 6) as waste_gpu_seconds,
    sum(workload_cost)::decimal(18, 6) as workload_cost
from mart.workload_days
where
    {HERE} and {TEAMS}
group by workload_key_uid, cluster_name
order by sum(gpu_seconds) desc, workload_name
limit 100
"""
