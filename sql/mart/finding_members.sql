-- mart.finding_members: The pods that a finding is about: what each holds where, and what it costs meanwhile.
--
-- As the ledger counts: each of its rows, and each part of one, is rounded down.
with
spans as (
    select
        s.*,
        h.hold_id
    from core.finding_spans as s
    inner join core.holds as h
        on s.cluster_name = h.cluster_name and s.day_on = h.day_on and s.pod_uid = h.pod_uid
    where s.begin_at < s.end_at and s.begin_at < h.end_at and s.end_at > h.begin_at
),

stretches as (
    select
        s.cluster_name,
        s.day_on,
        s.finding_name,
        s.subject_text,
        s.team_name,
        s.since_at,
        s.pod_uid,
        s.hold_id,
        b.node_uid,
        t.state_name,
        t.cause_name,
        greatest(s.begin_at, b.begin_at, t.begin_at) as begin_at,
        least(s.end_at, b.end_at, t.end_at) as end_at,
        (
            b.share_micro_gpu::hugeint * p.last_unit_count // p.hold_unit_count
            - b.share_micro_gpu::hugeint * p.first_unit_count // p.hold_unit_count
        )::bigint as share_micro_gpu
    from spans as s
    inner join core.bookings as b
        on
            s.cluster_name = b.cluster_name
            and s.day_on = b.day_on
            and s.hold_id = b.hold_id
            and s.begin_at < b.end_at
            and s.end_at > b.begin_at
    inner join core.hold_states as t
        on
            s.cluster_name = t.cluster_name
            and s.day_on = t.day_on
            and s.hold_id = t.hold_id
            and greatest(s.begin_at, b.begin_at) < t.end_at
            and least(s.end_at, b.end_at) > t.begin_at
            and coalesce(s.cause_name = t.cause_name, true)
    inner join core.hold_parts as p
        on
            t.cluster_name = p.cluster_name
            and t.day_on = p.day_on
            and t.hold_id = p.hold_id
            and t.part_number = p.part_number
    where b.share_micro_gpu > 0
),

priced as (
    select
        s.* exclude (begin_at, end_at),
        p.price_id,
        p.price_micro_cost_per_gpu_hour,
        greatest(s.begin_at, p.begin_at) as begin_at,
        least(s.end_at, p.end_at) as end_at,
        timezone($zone, s.day_on::timestamp) as midnight_at
    from stretches as s
    inner join core.price_spells as p
        on
            s.cluster_name = p.cluster_name
            and s.day_on = p.day_on
            and s.node_uid = p.node_uid
            and s.begin_at < p.end_at
            and s.end_at > p.begin_at
),

hours as (
    select
        *,
        unnest(range(
            date_diff('second', midnight_at, begin_at) // 3600,
            (date_diff('second', midnight_at, end_at) - 1) // 3600 + 1
        )) as hour_number
    from priced
),

summed as (
    select
        cluster_name,
        day_on,
        finding_name,
        subject_text,
        team_name,
        since_at,
        pod_uid,
        any_value(price_micro_cost_per_gpu_hour) as price_micro_cost_per_gpu_hour,
        sum(
            share_micro_gpu::hugeint
            * date_diff(
                'second',
                greatest(begin_at, midnight_at + to_hours(hour_number)),
                least(end_at, midnight_at + to_hours(hour_number + 1))
            )
        ) as micro_gpu_seconds
    from hours
    group by
        cluster_name,
        day_on,
        finding_name,
        subject_text,
        team_name,
        since_at,
        pod_uid,
        hold_id,
        node_uid,
        hour_number,
        state_name,
        cause_name,
        price_id
),

charged as (
    select
        cluster_name,
        day_on,
        finding_name,
        subject_text,
        team_name,
        since_at,
        pod_uid,
        sum(micro_gpu_seconds) as micro_gpu_seconds,
        coalesce(
            sum(micro_gpu_seconds) filter (where price_micro_cost_per_gpu_hour is null), 0
        ) as unpriced_micro_gpu_seconds,
        sum(micro_gpu_seconds * price_micro_cost_per_gpu_hour // 3600000000) as micro_cost
    from summed
    group by cluster_name, day_on, finding_name, subject_text, team_name, since_at, pod_uid
),

beside as (
    select
        h.cluster_name,
        h.day_on,
        h.pod_uid,
        sum(u.gpu_seconds) as gpu_seconds
    from core.unbooked as u
    inner join core.holds as h
        on u.cluster_name = h.cluster_name and u.day_on = h.day_on and u.hold_id = h.hold_id
    where u.reason_name = 'node_gone'
    group by h.cluster_name, h.day_on, h.pod_uid
),

members as (
    select
        cluster_name,
        day_on,
        finding_name,
        subject_text,
        team_name,
        since_at,
        pod_uid,
        min(begin_at) as begin_at,
        -- What they do is what they do as it ends, for all of them at once.
        max(max(end_at)) over (
            partition by cluster_name, day_on, finding_name, subject_text, team_name, since_at
        ) as end_at
    from core.finding_spans
    group by cluster_name, day_on, finding_name, subject_text, team_name, since_at, pod_uid
),

facts as (
    select
        m.*,
        p.namespace_name,
        p.pod_name,
        p.node_uid,
        p.node_name,
        p.asked_micro_gpu,
        p.created_at,
        p.ended_at,
        p.deletion_asked_at,
        p.phase_name,
        p.is_start_known,
        p.bound_at,
        r.begin_at as run_begin_at,
        r.end_at as run_end_at
    from members as m
    inner join core.pods as p
        on m.cluster_name = p.cluster_name and m.day_on = p.day_on and m.pod_uid = p.pod_uid
    asof left join core.runs as r
        on
            m.cluster_name = r.cluster_name
            and m.day_on = r.day_on
            and m.pod_uid = r.pod_uid
            and m.end_at > r.begin_at
),

stated as (
    select
        *,
        case
            when ended_at < end_at and phase_name = 'Succeeded' then 'succeeded'
            when ended_at < end_at then 'lost'
            when deletion_asked_at < end_at then 'terminating'
            when finding_name = 'slow_image_pull' then 'pulling'
            when finding_name = 'crash_loop' then 'crash_looping'
            when bound_at is null or bound_at >= end_at then 'pending'
            when run_end_at >= end_at or not is_start_known then 'running'
            else 'starting'
        end as member_state_name
    from facts
)

select
    s.cluster_name,
    s.day_on,
    s.finding_name,
    s.subject_text,
    s.team_name,
    s.since_at,
    s.pod_uid,
    s.namespace_name,
    s.pod_name,
    case when s.member_state_name <> 'pending' then s.node_uid end as node_uid,
    case when s.member_state_name <> 'pending' then s.node_name end as node_name,
    s.asked_micro_gpu,
    s.member_state_name,
    case s.member_state_name
        when 'succeeded' then s.ended_at
        when 'lost' then s.ended_at
        when 'terminating' then s.deletion_asked_at
        when 'pulling' then s.begin_at
        when 'crash_looping' then s.begin_at
        when 'pending' then s.created_at
        when 'running' then coalesce(s.run_begin_at, s.bound_at)
        else greatest(s.bound_at, s.run_end_at)
    end as state_since_at,
    (coalesce(c.micro_gpu_seconds, 0)::decimal(24, 0) * 0.000001::decimal(7, 6))::decimal(18, 6)
        as gpu_seconds,
    (
        coalesce(c.unpriced_micro_gpu_seconds, 0)::decimal(24, 0) * 0.000001::decimal(7, 6)
    )::decimal(18, 6) as unpriced_gpu_seconds,
    (
        (case when c.pod_uid is null then 0 else c.micro_cost end)::decimal(24, 0)
        * 0.000001::decimal(7, 6)
    )::decimal(18, 6) as member_cost,
    (case when s.finding_name = 'hold_on_gone_node' then coalesce(b.gpu_seconds, 0) else 0 end)
    ::decimal(18, 6) as beside_gpu_seconds
from stated as s
left join charged as c
    on
        s.cluster_name = c.cluster_name
        and s.day_on = c.day_on
        and s.finding_name = c.finding_name
        and s.subject_text = c.subject_text
        and s.team_name = c.team_name
        and s.since_at = c.since_at
        and s.pod_uid = c.pod_uid
left join beside as b
    on s.cluster_name = b.cluster_name and s.day_on = b.day_on and s.pod_uid = b.pod_uid
