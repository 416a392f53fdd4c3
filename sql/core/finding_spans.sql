-- core.finding_spans: The seconds of each pod that a finding is about: those of all GPUs that it then holds.
--
-- Of one pod no second is twice in findings of one name. Members that hold nothing have their own.
with
limits as (
    select
        coalesce(max(value_number) filter (where policy_name = 'slow_image_pull_seconds'), 300)
            as pull_seconds,
        coalesce(max(value_number) filter (where policy_name = 'crash_loop_seconds'), 300)
            as crash_seconds,
        coalesce(max(value_number) filter (where policy_name = 'stuck_terminating_seconds'), 600)
            as terminating_seconds,
        coalesce(max(value_number) filter (where policy_name = 'gone_node_seconds'), 30)
            as gone_seconds
    from raw.policies
),

holders as (
    select
        cluster_name,
        day_on,
        pod_uid,
        any_value(attempt_id) as attempt_id,
        any_value(team_name) as team_name,
        min(begin_at) as begin_at,
        max(end_at) as end_at
    from core.holds
    group by cluster_name, day_on, pod_uid
),

gang_attempts as (
    select
        *,
        unnest(string_split(attempt_ids_text, chr(10))) as attempt_id
    from core.gang_findings
),

-- Those that were made too late, and those that were replaced, are no members of it.
gang_members as (
    select
        g.cluster_name,
        g.day_on,
        g.finding_name,
        g.subject_text,
        g.team_name,
        g.since_at,
        g.begin_at,
        g.end_at,
        g.is_open,
        p.pod_uid,
        p.created_at,
        p.gone_at,
        p.bound_at,
        p.first_started_at,
        h.pod_uid is not null as is_holder
    from gang_attempts as g
    inner join core.pods as p
        on g.cluster_name = p.cluster_name and g.day_on = p.day_on and g.attempt_id = p.attempt_id
    left join holders as h
        on g.cluster_name = h.cluster_name and g.day_on = h.day_on and p.pod_uid = h.pod_uid
    where
        p.asked_micro_gpu > 0
        and p.created_at < g.end_at
        and (
            coalesce(p.gone_at > g.since_at, true)
            or p.phase_name = 'Succeeded'
            or (g.finding_name = 'member_lost' and p.ended_at >= g.since_at)
        )
        and (g.finding_name <> 'gang_livelock' or h.pod_uid is not null)
),

loss_edges as (
    select
        h.cluster_name,
        h.day_on,
        h.pod_uid,
        s.begin_at,
        s.end_at,
        max(s.end_at) over (
            partition by h.cluster_name, h.day_on, h.pod_uid
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
            partition by cluster_name, day_on, pod_uid
            order by begin_at, end_at
            rows between unbounded preceding and current row
        ) as loss_number
    from loss_edges
),

losses as (
    select
        cluster_name,
        day_on,
        pod_uid,
        min(begin_at) as begin_at,
        max(end_at) as end_at
    from loss_numbers
    group by cluster_name, day_on, pod_uid, loss_number
),

gangs as (
    select
        cluster_name,
        day_on,
        finding_name,
        subject_text,
        team_name,
        since_at,
        pod_uid,
        is_open,
        null::varchar as cause_name,
        case
            when not is_holder then greatest(created_at, begin_at)
            when finding_name = 'rendezvous_wait' and first_started_at < end_at
                then greatest(first_started_at, bound_at, begin_at)
            when finding_name = 'rendezvous_wait' then end_at
            when bound_at < end_at then greatest(bound_at, begin_at)
            else end_at
        end as begin_at,
        least(gone_at, end_at) as end_at
    from gang_members
    where finding_name <> 'member_lost'
    union all by name
    select
        g.cluster_name,
        g.day_on,
        g.finding_name,
        g.subject_text,
        g.team_name,
        g.since_at,
        g.pod_uid,
        g.is_open,
        'member_lost' as cause_name,
        coalesce(greatest(s.begin_at, g.begin_at), g.end_at) as begin_at,
        coalesce(least(s.end_at, g.end_at), g.end_at) as end_at
    from gang_members as g
    left join losses as s
        on
            g.cluster_name = s.cluster_name
            and g.day_on = s.day_on
            and g.pod_uid = s.pod_uid
            and s.begin_at < g.end_at
            and s.end_at > g.begin_at
    where g.finding_name = 'member_lost'
),

-- One that is not done is over when the containers run, for the first time or again.
pulls as (
    select
        i.cluster_name,
        i.day_on,
        i.image_name || ' on ' || coalesce(i.node_name, p.node_name) as subject_text,
        h.team_name,
        i.pod_uid,
        greatest(date_trunc('second', i.begun_at), h.begin_at) as begin_at,
        least(
            coalesce(date_trunc('second', i.pulled_at), r.begin_at, h.end_at), h.end_at
        ) as end_at,
        i.pulled_at is null and h.end_at = w.end_at and r.begin_at is null as is_open,
        coalesce(
            i.total_seconds, date_diff('second', i.begun_at, coalesce(r.begin_at, h.end_at))
        ) as taken_seconds
    from core.image_pulls as i
    inner join core.pods as p
        on i.cluster_name = p.cluster_name and i.day_on = p.day_on and i.pod_uid = p.pod_uid
    inner join holders as h
        on i.cluster_name = h.cluster_name and i.day_on = h.day_on and i.pod_uid = h.pod_uid
    inner join core.windows as w
        on i.cluster_name = w.cluster_name and i.day_on = w.day_on
    asof left join core.runs as r
        on
            i.cluster_name = r.cluster_name
            and i.day_on = r.day_on
            and i.pod_uid = r.pod_uid
            and date_trunc('second', i.begun_at) <= r.begin_at
    where not i.is_cached and i.begun_at is not null
),

-- What several pulls of a pod take at once is the first one's.
slow_pulls as (
    select
        p.* replace (
            greatest(
                p.begin_at,
                max(p.end_at) over (
                    partition by p.cluster_name, p.day_on, p.pod_uid
                    order by p.begin_at, p.end_at, p.subject_text
                    rows between unbounded preceding and 1 preceding
                )
            ) as begin_at
        )
    from pulls as p
    cross join limits as l
    where p.taken_seconds > l.pull_seconds and p.begin_at < p.end_at
),

crashes as (
    select
        s.cluster_name,
        s.day_on,
        h.attempt_id as subject_text,
        h.team_name,
        s.pod_uid,
        s.begin_at,
        s.end_at,
        s.end_at = w.end_at as is_open
    from core.pod_states as s
    inner join holders as h
        on s.cluster_name = h.cluster_name and s.day_on = h.day_on and s.pod_uid = h.pod_uid
    inner join core.windows as w
        on s.cluster_name = w.cluster_name and s.day_on = w.day_on
    cross join limits as l
    where s.state_name = 'starting' and s.cause_name = 'crash_loop'
    qualify
        sum(date_diff('second', s.begin_at, s.end_at)) over (
            partition by s.cluster_name, s.day_on, s.pod_uid
        ) > max(l.crash_seconds) over ()
),

endings as (
    select
        p.cluster_name,
        p.day_on,
        p.pod_uid as subject_text,
        h.team_name,
        p.deletion_asked_at as since_at,
        p.pod_uid,
        greatest(p.deletion_asked_at, h.begin_at) as begin_at,
        h.end_at,
        p.ended_at is null as is_open
    from core.pods as p
    inner join holders as h
        on p.cluster_name = h.cluster_name and p.day_on = h.day_on and p.pod_uid = h.pod_uid
    cross join limits as l
    where date_diff('second', p.deletion_asked_at, h.end_at) > l.terminating_seconds
),

leftovers as (
    select
        u.cluster_name,
        u.day_on,
        u.node_uid as subject_text,
        u.team_name,
        h.pod_uid,
        min(u.begin_at) as begin_at,
        max(u.end_at) as end_at,
        max(u.end_at) = any_value(w.end_at) and not bool_or(h.is_end) as is_open
    from core.unbooked as u
    inner join core.holds as h
        on u.cluster_name = h.cluster_name and u.day_on = h.day_on and u.hold_id = h.hold_id
    inner join core.windows as w
        on u.cluster_name = w.cluster_name and u.day_on = w.day_on
    where u.reason_name = 'node_gone'
    group by u.cluster_name, u.day_on, u.node_uid, u.team_name, h.pod_uid
    having
        date_diff('second', min(u.begin_at), max(u.end_at))
        > (select l.gone_seconds from limits as l)
),

pods as (
    select
        'slow_image_pull' as finding_name,
        *
    from slow_pulls
    where begin_at < end_at
    union all by name
    select
        'crash_loop' as finding_name,
        'crash_loop' as cause_name,
        *
    from crashes
    union all by name
    select
        'stuck_terminating' as finding_name,
        *
    from endings
    union all by name
    select
        'hold_on_gone_node' as finding_name,
        *
    from leftovers
)

select
    cluster_name,
    day_on,
    finding_name,
    subject_text,
    team_name,
    since_at,
    pod_uid,
    least(begin_at, end_at) as begin_at,
    end_at,
    cause_name,
    is_open
from gangs
union all by name
select
    cluster_name,
    day_on,
    finding_name,
    subject_text,
    team_name,
    coalesce(
        since_at,
        min(begin_at) over (
            partition by cluster_name, day_on, finding_name, subject_text, team_name
        )
    ) as since_at,
    pod_uid,
    begin_at,
    end_at,
    cause_name,
    is_open
from pods
