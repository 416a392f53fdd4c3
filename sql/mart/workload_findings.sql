-- mart.workload_findings: What went wrong with workloads on a day while it held GPUs up, and what that cost.
--
-- A gang of another team in a deadlock is told by its team alone.
with
counts as (
    select
        cluster_name,
        day_on,
        finding_name,
        subject_text,
        team_name,
        since_at,
        count(*) as member_count,
        count(*) filter (where member_state_name in ('running', 'succeeded')) as whole_count,
        count(*) filter (
            where member_state_name in ('running', 'starting', 'succeeded', 'terminating')
        ) as placed_count,
        count(*) filter (where member_state_name = 'pending') as pending_count,
        count(*) filter (where member_state_name = 'lost') as lost_count,
        min(state_since_at) filter (where member_state_name = 'pending') as pending_since_at,
        string_agg(pod_name, ', ' order by pod_name) filter (where member_state_name = 'lost')
            as lost_text,
        min(pod_name) as pod_name,
        coalesce(sum(asked_micro_gpu) filter (where is_holding), 0) as held_micro_gpu,
        list_sort(list(distinct node_name) filter (where is_holding)) as node_names,
        sum(gpu_seconds) as gpu_seconds,
        sum(unpriced_gpu_seconds) as unpriced_gpu_seconds,
        sum(member_cost) filter (where gpu_seconds > 0) as finding_cost,
        sum(beside_gpu_seconds) as beside_gpu_seconds
    from (
        select
            *,
            -- What a member of a gang held that is over, it holds no more as the finding ends.
            node_name is not null
            and (
                finding_name in ('slow_image_pull', 'crash_loop', 'stuck_terminating')
                or member_state_name not in ('lost', 'succeeded')
            ) as is_holding
        from mart.finding_members
    ) as m
    group by cluster_name, day_on, finding_name, subject_text, team_name, since_at
),

pod_findings as (
    select
        s.cluster_name,
        s.day_on,
        s.finding_name,
        s.subject_text,
        s.team_name,
        s.since_at,
        min(s.begin_at) as begin_at,
        max(s.end_at) as end_at,
        bool_or(s.is_open) as is_open,
        sum(date_diff('second', s.begin_at, s.end_at)) as pod_seconds,
        -- One workload's, or nobody's alone.
        case when count(distinct p.workload_key_uid) = 1 then any_value(p.workload_key_uid) end
            as workload_key_uid,
        sum(p.restart_count) as restart_count,
        any_value(n.node_name) as gone_node_name
    from core.finding_spans as s
    inner join core.pods as p
        on s.cluster_name = p.cluster_name and s.day_on = p.day_on and s.pod_uid = p.pod_uid
    left join core.nodes as n
        on
            s.cluster_name = n.cluster_name
            and s.day_on = n.day_on
            and s.subject_text = n.node_uid
    where
        s.finding_name in (
            'slow_image_pull', 'crash_loop', 'stuck_terminating', 'hold_on_gone_node'
        )
    group by s.cluster_name, s.day_on, s.finding_name, s.subject_text, s.team_name, s.since_at
),

gang_findings as (
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
        a.workload_key_uid,
        g.deadlock_id,
        g.gang_size_count,
        g.start_count,
        g.is_certain
    from core.gang_findings as g
    inner join core.attempts as a
        on
            g.cluster_name = a.cluster_name
            and g.day_on = a.day_on
            and string_split(g.attempt_ids_text, chr(10))[1] = a.attempt_id
),

findings as (
    select * from gang_findings
    union all by name
    select
        *,
        true as is_certain
    from pod_findings
),

told as (
    select
        f.*,
        w.namespace_name,
        w.workload_name,
        c.* exclude (cluster_name, day_on, finding_name, subject_text, team_name, since_at),
        strftime(timezone('UTC', f.since_at), '%Y-%m-%d %H:%M:%S UTC') as since_text,
        date_diff('second', f.since_at, f.end_at) as lasting_seconds,
        c.member_count || case when c.member_count = 1 then ' pod' else ' pods' end as pods_text,
        format('{:g}', c.held_micro_gpu / 1000000)
        || case when c.held_micro_gpu = 1000000 then ' GPU on ' else ' GPUs on ' end
        || coalesce(
            list_aggregate(c.node_names[:8], 'string_agg', ', ')
            || case
                when len(c.node_names) > 8 then ' and ' || len(c.node_names) - 8 || ' more'
                else ''
            end,
            'no node'
        ) as held_text
    from findings as f
    inner join counts as c
        on
            f.cluster_name = c.cluster_name
            and f.day_on = c.day_on
            and f.finding_name = c.finding_name
            and f.subject_text = c.subject_text
            and f.team_name = c.team_name
            and f.since_at = c.since_at
    left join core.workloads as w
        on
            f.cluster_name = w.cluster_name
            and f.day_on = w.day_on
            and f.workload_key_uid = w.workload_key_uid
),

others as (
    select
        a.cluster_name,
        a.day_on,
        a.subject_text,
        a.since_at,
        string_agg(
            case
                when a.team_name = b.team_name
                    then b.namespace_name || '/' || b.workload_name || ' holds ' || b.held_text
                else
                    'a gang of team ' || b.team_name || ' holds '
                    || format('{:g}', b.held_micro_gpu / 1000000) || ' GPUs'
            end
            || ' (' || b.placed_count || ' of ' || b.gang_size_count || ' members)',
            '; '
            order by b.namespace_name, b.workload_name, b.subject_text
        ) as others_text
    from told as a
    inner join told as b
        on
            a.cluster_name = b.cluster_name
            and a.day_on = b.day_on
            and a.deadlock_id = b.deadlock_id
            and a.subject_text <> b.subject_text
    group by a.cluster_name, a.day_on, a.subject_text, a.since_at
),

pulls as (
    select
        i.cluster_name,
        i.day_on,
        i.image_name || ' on ' || i.node_name as subject_text,
        m.team_name,
        count(*) as pull_count,
        max(i.total_seconds) as longest_seconds,
        sum(i.queue_seconds) as queue_seconds,
        sum(i.pull_seconds) as pull_seconds,
        count(i.queue_seconds) as told_count,
        count(*) filter (where i.pulled_at is null) as undone_count,
        sum(i.failed_count) as failed_count
    from core.image_pulls as i
    inner join mart.finding_members as m
        on
            i.cluster_name = m.cluster_name
            and i.day_on = m.day_on
            and i.pod_uid = m.pod_uid
            and i.image_name || ' on ' || i.node_name = m.subject_text
            and m.finding_name = 'slow_image_pull'
    where not i.is_cached and i.begun_at is not null
    group by i.cluster_name, i.day_on, i.image_name, i.node_name, m.team_name
),

worded as (
    select
        t.*,
        case
            when t.finding_name in ('gang_partial', 'gang_deadlock')
                then greatest(0, t.gang_size_count - t.placed_count)
            when t.finding_name in ('member_lost', 'rendezvous_wait')
                then greatest(0, t.gang_size_count - t.whole_count)
        end as missing_count,
        case t.finding_name
            when 'gang_partial'
                then
                    t.placed_count || ' of ' || t.gang_size_count || ' members are placed and hold '
                    || t.held_text || ' since ' || t.since_text || ', ' || t.lasting_seconds
                    || ' s; '
            when 'gang_deadlock'
                then
                    case when t.is_certain then '' else 'suspected: ' end
                    || t.placed_count || ' of ' || t.gang_size_count || ' members hold '
                    || t.held_text || '; cannot be complete since ' || t.since_text || ', '
                    || t.lasting_seconds || ' s, unless another gives up: ' || o.others_text || '; '
            when 'gang_livelock'
                then
                    t.start_count || ' starts given up since ' || t.since_text
                    || ', none complete: ' || t.pods_text || ' of a gang of '
                    || t.gang_size_count || ' held GPUs in them'
            when 'member_lost'
                then
                    t.whole_count || ' of ' || t.gang_size_count || ' members run since '
                    || t.since_text || ', ' || t.lasting_seconds || ' s; the others hold '
                    || t.held_text || coalesce('; lost: ' || t.lost_text, '')
            when 'rendezvous_wait'
                then
                    t.whole_count || ' of ' || t.gang_size_count
                    || ' members run as it ends; the first ran at ' || t.since_text
                    || ', and others were waited for up to ' || t.lasting_seconds || ' s'
            when 'slow_image_pull'
                then
                    t.pods_text || ' with ' || t.held_text || ' waited, since '
                    || t.since_text || ', for ' || p.pull_count
                    || case when p.pull_count = 1 then ' pull of ' else ' pulls of ' end
                    || coalesce(round(p.longest_seconds)::bigint || ' s at most', 'unknown length')
                    || case
                        when p.told_count = 0 then ''
                        else
                            ', in all ' || round(p.queue_seconds)::bigint
                            || ' s in the queue of the node and ' || round(p.pull_seconds)::bigint
                            || ' s pulling'
                    end
                    || case when p.undone_count > 0 then ', not all done' else '' end
                    || case
                        when p.failed_count > 0 then ', ' || p.failed_count || ' tries failed'
                        else ''
                    end
            when 'crash_loop'
                then
                    t.held_text || ' held by ' || t.pods_text || ' crashing again and again '
                    || 'since ' || t.since_text || ': ' || t.pod_seconds
                    || ' s between tries'
            when 'stuck_terminating'
                then
                    t.pod_name || ' holds ' || t.held_text || ' ' || t.lasting_seconds
                    || ' s after its deletion was asked for at ' || t.since_text
            when 'hold_on_gone_node'
                then
                    t.pods_text || ' still there on '
                    || coalesce(t.gone_node_name, '?')
                    || ', gone since ' || t.since_text || ', for up to ' || t.lasting_seconds
                    || ' s: nobody pays for that'
        end as begun_text,
        case
            when t.finding_name in ('gang_partial', 'gang_deadlock')
                then
                    concat_ws(
                        ', ',
                        case
                            when t.pending_count > 0
                                then
                                    t.pending_count || ' pending since '
                                    || strftime(
                                        timezone('UTC', t.pending_since_at), '%Y-%m-%d %H:%M:%S UTC'
                                    )
                        end,
                        case
                            when t.gang_size_count > t.placed_count + t.pending_count
                                then
                                    t.gang_size_count - t.placed_count - t.pending_count
                                    || ' not there'
                        end
                    )
            else ''
        end as missing_text
    from told as t
    left join others as o
        on
            t.cluster_name = o.cluster_name
            and t.day_on = o.day_on
            and t.subject_text = o.subject_text
            and t.since_at = o.since_at
            and t.finding_name = 'gang_deadlock'
    left join pulls as p
        on
            t.cluster_name = p.cluster_name
            and t.day_on = p.day_on
            and t.subject_text = p.subject_text
            and t.team_name = p.team_name
            and t.finding_name = 'slow_image_pull'
)

select
    cluster_name,
    day_on,
    finding_name,
    subject_text,
    team_name,
    since_at,
    begin_at,
    end_at,
    is_open,
    workload_key_uid,
    namespace_name,
    workload_name,
    deadlock_id,
    member_count,
    missing_count,
    gpu_seconds::decimal(18, 6) as gpu_seconds,
    unpriced_gpu_seconds::decimal(18, 6) as unpriced_gpu_seconds,
    (case when gpu_seconds = 0 then 0 else finding_cost end)::decimal(18, 6) as finding_cost,
    beside_gpu_seconds::decimal(18, 6) as beside_gpu_seconds,
    is_certain,
    begun_text || missing_text as evidence_text
from worded
union all by name
select
    r.cluster_name,
    r.day_on,
    'stale_reservation' as finding_name,
    r.object_uid as subject_text,
    coalesce(w.team_name, '__unattributed__') as team_name,
    r.stale_since_at as since_at,
    r.begin_at,
    r.end_at,
    not r.is_ended as is_open,
    r.workload_key_uid,
    r.namespace_name,
    w.workload_name,
    null::varchar as deadlock_id,
    0::bigint as member_count,
    null::bigint as missing_count,
    0::decimal(18, 6) as gpu_seconds,
    0::decimal(18, 6) as unpriced_gpu_seconds,
    0::decimal(18, 6) as finding_cost,
    (
        (coalesce(r.asked_micro_gpu, 0) * date_diff('second', r.begin_at, r.end_at))
        ::decimal(24, 0) * 0.000001::decimal(7, 6)
    )::decimal(18, 6) as beside_gpu_seconds,
    true as is_certain,
    r.object_kind_name || ' ' || r.namespace_name || '/' || r.object_name || ' keeps quota for '
    || coalesce(format('{:g}', r.asked_micro_gpu / 1000000) || ' GPUs', 'an unknown share')
    || coalesce(' of ' || r.queue_name, '') || ' with no pod left since '
    || strftime(timezone('UTC', r.stale_since_at), '%Y-%m-%d %H:%M:%S UTC') || ', '
    || date_diff('second', r.stale_since_at, r.end_at) || ' s'
    || coalesce('; evicted: ' || r.eviction_reason_name, '') as evidence_text
from core.stale_reservations as r
left join core.workloads as w
    on
        r.cluster_name = w.cluster_name
        and r.day_on = w.day_on
        and r.workload_key_uid = w.workload_key_uid
