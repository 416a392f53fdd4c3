-- core.gang_findings: What went wrong with gangs, from when to when; whose seconds: core.finding_spans.
--
-- The names may overlap: what is a deadlock is a partial gang too, whose members may wait at a
-- rendezvous.
with
limits as (
    select
        coalesce(max(value_number) filter (where policy_name = 'gang_partial_seconds'), 120)
            as partial_seconds,
        coalesce(max(value_number) filter (where policy_name = 'gang_livelock_count'), 3)
            as livelock_count,
        coalesce(max(value_number) filter (where policy_name = 'member_lost_seconds'), 120)
            as lost_seconds,
        coalesce(max(value_number) filter (where policy_name = 'rendezvous_wait_seconds'), 300)
            as rendezvous_seconds
    from raw.policies
),

gangs as (
    select
        cluster_name,
        day_on,
        attempt_id,
        -- Each try for quota is an attempt of the same gang; so is each start of a replica.
        case
            when workload_uid is null then split_part(attempt_id, '@', 1)
            else workload_key_uid || '/' || workload_uid
        end as gang_id,
        team_name,
        gang_size_count,
        complete_at,
        started_at,
        ended_at,
        outcome_name,
        known_until_at
    from core.attempts
    where gang_size_count > 1
),

-- Of a start in which all were placed, one that failed by itself is to blame.
failures as (
    select
        cluster_name,
        day_on,
        attempt_id
    from core.pods
    where gang_size_count > 1
    group by cluster_name, day_on, attempt_id
    having bool_or(phase_name = 'Failed' and disruption_name is null)
),

-- What is complete once, or succeeds, is no livelock; siblings under one top are told apart.
livelocks as (
    select
        g.cluster_name,
        g.day_on,
        g.gang_id as subject_text,
        arg_max(g.team_name, s.since_at) as team_name,
        min(s.since_at) as since_at,
        min(s.begin_at) as begin_at,
        max(s.end_at) as end_at,
        string_agg(distinct g.attempt_id, chr(10) order by g.attempt_id) as attempt_ids_text,
        max(g.gang_size_count) as gang_size_count,
        count(*) filter (
            where
            not s.is_open and (s.most_bound_count < g.gang_size_count or f.attempt_id is null)
        ) as start_count
    from gangs as g
    inner join core.gang_stalls as s
        on
            g.cluster_name = s.cluster_name
            and g.day_on = s.day_on
            and g.attempt_id = s.attempt_id
            and s.stall_name = 'start'
    left join failures as f
        on g.cluster_name = f.cluster_name and g.day_on = f.day_on and g.attempt_id = f.attempt_id
    where not s.is_open
    group by g.cluster_name, g.day_on, g.gang_id
),

triers as (
    select
        cluster_name,
        day_on,
        gang_id as subject_text,
        bool_or(complete_at is not null or outcome_name = 'succeeded') as is_ever_complete,
        bool_or(ended_at is null) as is_trying
    from gangs
    group by cluster_name, day_on, gang_id
),

losses as (
    select
        h.cluster_name,
        h.day_on,
        h.attempt_id,
        s.begin_at,
        s.end_at,
        max(s.end_at) over (
            partition by h.cluster_name, h.day_on, h.attempt_id
            order by s.begin_at, s.end_at
            rows between unbounded preceding and 1 preceding
        ) as covered_until_at
    from core.hold_states as s
    inner join core.holds as h
        on s.cluster_name = h.cluster_name and s.day_on = h.day_on and s.hold_id = h.hold_id
    where s.state_name = 'gang_wait' and s.cause_name = 'member_lost'
),

loss_numbers as (
    select
        *,
        sum(coalesce(begin_at > covered_until_at, true)::integer) over (
            partition by cluster_name, day_on, attempt_id
            order by begin_at, end_at
            rows between unbounded preceding and current row
        ) as loss_number
    from losses
),

lost as (
    select
        cluster_name,
        day_on,
        attempt_id,
        min(begin_at) as begin_at,
        max(end_at) as end_at
    from loss_numbers
    group by cluster_name, day_on, attempt_id, loss_number
),

-- From the first one that ran until as many as are needed have, or none of them waits any more. A
-- gang that was complete has had them, though this day may know them no more.
meetings as (
    select
        g.cluster_name,
        g.day_on,
        g.attempt_id,
        min(greatest(p.first_started_at, p.bound_at)) as since_at,
        coalesce(
            any_value(g.started_at),
            any_value(g.complete_at),
            max(coalesce(p.gone_at, g.known_until_at))
        ) as end_at,
        any_value(coalesce(g.started_at, g.complete_at)) is null
        and bool_or(p.gone_at is null) as is_open
    from gangs as g
    inner join core.pods as p
        on g.cluster_name = p.cluster_name and g.day_on = p.day_on and g.attempt_id = p.attempt_id
    where
        p.is_start_known
        and p.first_started_at is not null
        and p.asked_micro_gpu > 0
    group by g.cluster_name, g.day_on, g.attempt_id
),

found as (
    select
        'gang_partial' as finding_name,
        s.cluster_name,
        s.day_on,
        s.attempt_id,
        s.since_at,
        s.begin_at,
        s.end_at,
        s.is_open,
        null::varchar as deadlock_id,
        true as is_certain
    from core.gang_stalls as s
    cross join limits as l
    where
        s.stall_name = 'partial'
        and date_diff('second', s.since_at, s.end_at) > l.partial_seconds
    union all by name
    select
        'gang_deadlock' as finding_name,
        cluster_name,
        day_on,
        attempt_id,
        since_at,
        begin_at,
        end_at,
        is_open,
        deadlock_id,
        is_certain
    from core.gang_deadlocks
    union all by name
    select
        'member_lost' as finding_name,
        s.cluster_name,
        s.day_on,
        s.attempt_id,
        s.begin_at as since_at,
        s.begin_at,
        s.end_at,
        s.end_at = w.end_at as is_open,
        null::varchar as deadlock_id,
        true as is_certain
    from lost as s
    inner join core.windows as w
        on s.cluster_name = w.cluster_name and s.day_on = w.day_on
    cross join limits as l
    where date_diff('second', s.begin_at, s.end_at) > l.lost_seconds
    union all by name
    select
        'rendezvous_wait' as finding_name,
        m.cluster_name,
        m.day_on,
        m.attempt_id,
        m.since_at,
        greatest(m.since_at, w.begin_at) as begin_at,
        least(m.end_at, w.end_at) as end_at,
        m.is_open,
        null::varchar as deadlock_id,
        true as is_certain
    from meetings as m
    inner join core.windows as w
        on m.cluster_name = w.cluster_name and m.day_on = w.day_on
    cross join limits as l
    where
        date_diff('second', m.since_at, least(m.end_at, w.end_at)) > l.rendezvous_seconds
        and m.end_at > w.begin_at
)

select
    f.cluster_name,
    f.day_on,
    f.finding_name,
    f.attempt_id as subject_text,
    g.team_name,
    f.since_at,
    f.begin_at,
    f.end_at,
    f.is_open,
    f.attempt_id as attempt_ids_text,
    f.deadlock_id,
    g.gang_size_count,
    null::bigint as start_count,
    f.is_certain
from found as f
inner join gangs as g
    on f.cluster_name = g.cluster_name and f.day_on = g.day_on and f.attempt_id = g.attempt_id
union all by name
select
    v.cluster_name,
    v.day_on,
    'gang_livelock' as finding_name,
    v.subject_text,
    v.team_name,
    v.since_at,
    v.begin_at,
    v.end_at,
    t.is_trying as is_open,
    v.attempt_ids_text,
    null::varchar as deadlock_id,
    v.gang_size_count,
    v.start_count,
    true as is_certain
from livelocks as v
inner join triers as t
    on
        v.cluster_name = t.cluster_name
        and v.day_on = t.day_on
        and v.subject_text = t.subject_text
cross join limits as l
where v.start_count >= l.livelock_count and not t.is_ever_complete
