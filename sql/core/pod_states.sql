-- core.pod_states: The state of each pod that holds GPUs, as far as no reading of a GPU decides it.
--
-- The first that applies: terminating, starting, gang_wait, loading, unobserved.
with
at_work as (
    select
        *,
        kind_name in ('active', 'stalled', 'suspected') as is_work,
        lag(kind_name in ('active', 'stalled', 'suspected')) over device_time as was_work
    from core.gpu_stretches
    window device_time as (
        partition by cluster_name, day_on, node_uid, gpu_uuid, instance_number order by begin_at
    )
),

-- When a pod first worked, as devices tell that it has alone. Two samples may still tell of the one
-- before it: a reading is as old as the exporter's own round.
starts as (
    select
        p.cluster_name,
        p.day_on,
        p.hold_id,
        p.part_number,
        count(w.begin_at) = 0 as is_fresh
    from core.hold_parts as p
    inner join core.holds as h
        on p.cluster_name = h.cluster_name and p.day_on = h.day_on and p.hold_id = h.hold_id
    inner join core.pods as o
        on h.cluster_name = o.cluster_name and h.day_on = o.day_on and h.pod_uid = o.pod_uid
    left join core.gpu_owners as w
        on
            h.cluster_name = w.cluster_name
            and h.day_on = w.day_on
            and h.node_uid = w.node_uid
            and p.gpu_uuid = w.gpu_uuid
            and p.instance_number = w.instance_number
            and w.hold_count > 0
            and w.hold_id is distinct from p.hold_id
            and w.begin_at < o.first_started_at
            and w.end_at > o.first_started_at - interval 60 second
    group by p.cluster_name, p.day_on, p.hold_id, p.part_number
),

works as (
    select
        h.cluster_name,
        h.day_on,
        h.pod_uid,
        min(greatest(g.begin_at, o.first_started_at)) filter (
            where
            g.is_work
            and (
                (
                    not coalesce(g.was_work, false)
                    and (g.begin_at >= o.first_started_at or b.is_fresh)
                )
                or date_diff('second', o.first_started_at, g.end_at) * g.sample_count
                > 2 * date_diff('second', g.begin_at, g.end_at)
            )
        ) as first_worked_at
    from core.hold_parts as p
    inner join core.holds as h
        on p.cluster_name = h.cluster_name and p.day_on = h.day_on and p.hold_id = h.hold_id
    inner join at_work as g
        on p.cluster_name = g.cluster_name and p.day_on = g.day_on and p.hold_id = g.hold_id
    inner join core.pods as o
        on h.cluster_name = o.cluster_name and h.day_on = o.day_on and h.pod_uid = o.pod_uid
    inner join starts as b
        on
            p.cluster_name = b.cluster_name
            and p.day_on = b.day_on
            and p.hold_id = b.hold_id
            and p.part_number = b.part_number
    where g.sample_count > 0 and g.end_at > o.first_started_at
    group by h.cluster_name, h.day_on, h.pod_uid
),

-- One pod, one state: all its holds share it.
pieces as (
    select
        h.cluster_name,
        h.day_on,
        h.pod_uid,
        any_value(h.node_uid) as node_uid,
        any_value(h.attempt_id) as attempt_id,
        any_value(h.workload_class) as workload_class,
        min(h.begin_at) as begin_at,
        max(h.end_at) as end_at
    from core.holds as h
    group by h.cluster_name, h.day_on, h.pod_uid
),

pods as (
    select
        h.*,
        p.deletion_asked_at,
        p.first_started_at,
        p.is_start_known,
        case
            when h.workload_class = 'inference' and p.first_started_at is not null
                then
                    least(
                        coalesce(p.first_ready_at, 'infinity'::timestamptz),
                        coalesce(
                            p.first_started_at + to_seconds(l.value_number), 'infinity'::timestamptz
                        )
                    )
            -- Whether what started on an earlier day had worked then is not known: it counts so.
            when k.pod_uid is not null and p.first_started_at >= h.begin_at then least(
                k.first_worked_at,
                coalesce(
                    p.first_started_at + to_seconds(l.value_number), 'infinity'::timestamptz
                )
            )
        end as loaded_at,
        case when p.gang_size_count > 1 then p.gang_size_count end as gang_size_count,
        a.complete_at
    from pieces as h
    inner join core.pods as p
        on h.cluster_name = p.cluster_name and h.day_on = p.day_on and h.pod_uid = p.pod_uid
    left join (
        select value_number
        from raw.policies
        where policy_name = 'loading_max_seconds'
    ) as l on true
    left join works as k
        on h.cluster_name = k.cluster_name and h.day_on = k.day_on and h.pod_uid = k.pod_uid
    left join core.attempts as a
        on
            h.cluster_name = a.cluster_name
            and h.day_on = a.day_on
            and h.attempt_id = a.attempt_id
),

gangs as (
    select
        p.cluster_name,
        p.day_on,
        p.pod_uid,
        g.begin_at as edge_at
    from pods as p
    inner join core.gang_spells as g
        on p.cluster_name = g.cluster_name and p.day_on = g.day_on and p.attempt_id = g.attempt_id
    where p.gang_size_count is not null
),

readiness as (
    select
        cluster_name,
        day_on,
        node_uid,
        begin_at,
        is_ready
    from core.node_spells
    qualify
        is_ready is distinct from lag(is_ready) over (
            partition by cluster_name, day_on, node_uid order by begin_at
        )
),

edges as (
    select
        cluster_name,
        day_on,
        pod_uid,
        unnest([
            begin_at,
            deletion_asked_at,
            loaded_at,
            case when gang_size_count is not null then complete_at end
        ]) as edge_at
    from pods
    union all by name
    select
        cluster_name,
        day_on,
        pod_uid,
        unnest([begin_at, end_at]) as edge_at
    from core.runs
    union all by name
    select
        cluster_name,
        day_on,
        pod_uid,
        begin_at as edge_at
    from core.start_causes
    union all by name
    select
        cluster_name,
        day_on,
        pod_uid,
        edge_at
    from gangs
    union all by name
    select
        p.cluster_name,
        p.day_on,
        p.pod_uid,
        r.begin_at as edge_at
    from pods as p
    inner join readiness as r
        on p.cluster_name = r.cluster_name and p.day_on = r.day_on and p.node_uid = r.node_uid
),

cuts as (
    select distinct
        p.cluster_name,
        p.day_on,
        p.pod_uid,
        e.edge_at
    from pods as p
    inner join edges as e
        on
            p.cluster_name = e.cluster_name
            and p.day_on = e.day_on
            and p.pod_uid = e.pod_uid
            and p.begin_at <= e.edge_at
            and p.end_at > e.edge_at
),

stretches as (
    select
        c.cluster_name,
        c.day_on,
        c.pod_uid,
        c.edge_at as begin_at,
        coalesce(
            lead(c.edge_at)
                over (partition by c.cluster_name, c.day_on, c.pod_uid order by c.edge_at),
            p.end_at
        ) as end_at,
        p.node_uid,
        p.attempt_id,
        p.deletion_asked_at,
        p.first_started_at,
        p.is_start_known,
        p.loaded_at,
        p.gang_size_count,
        p.complete_at
    from cuts as c
    inner join pods as p
        on c.cluster_name = p.cluster_name and c.day_on = p.day_on and c.pod_uid = p.pod_uid
),

facts as (
    select
        s.*,
        coalesce(not s.is_start_known or s.begin_at < r.end_at, false) as is_running,
        c.cause_name,
        c.told_at,
        c.told_cause_name,
        r.end_at as run_end_at,
        g.created_count,
        g.bound_count,
        g.whole_count,
        coalesce(n.is_ready, true) as is_ready
    from stretches as s
    asof left join core.runs as r
        on
            s.cluster_name = r.cluster_name
            and s.day_on = r.day_on
            and s.pod_uid = r.pod_uid
            and s.begin_at >= r.begin_at
    asof left join core.start_causes as c
        on
            s.cluster_name = c.cluster_name
            and s.day_on = c.day_on
            and s.pod_uid = c.pod_uid
            and s.begin_at >= c.begin_at
    asof left join core.gang_spells as g
        on
            s.cluster_name = g.cluster_name
            and s.day_on = g.day_on
            and s.attempt_id = g.attempt_id
            and s.begin_at >= g.begin_at
    asof left join readiness as n
        on
            s.cluster_name = n.cluster_name
            and s.day_on = n.day_on
            and s.node_uid = n.node_uid
            and s.begin_at >= n.begin_at
),

judged as (
    select
        *,
        case
            when begin_at >= deletion_asked_at then 'terminating'
            when not is_running then 'starting'
            when
                gang_size_count is not null
                and (
                    complete_at is null
                    or begin_at < complete_at
                    or coalesce(whole_count, 0) < gang_size_count
                )
                then 'gang_wait'
            when begin_at < loaded_at then 'loading'
            else 'unobserved'
        end as state_name
    from facts
),

caused as (
    select
        *,
        case state_name
            when 'starting'
                then
                    case
                        when first_started_at is null or begin_at < first_started_at
                            then coalesce(cause_name, 'undetermined')
                        when
                            told_cause_name = 'crash_loop'
                            and told_at >= coalesce(run_end_at, told_at)
                            then 'crash_loop'
                        else 'restart'
                    end
            when 'gang_wait'
                then
                    case
                        when complete_at is not null and begin_at >= complete_at then 'member_lost'
                        when coalesce(created_count, 0) < gang_size_count then 'member_not_created'
                        when coalesce(bound_count, 0) < gang_size_count then 'member_unplaced'
                        else 'member_starting'
                    end
            when 'unobserved' then case when is_ready then 'no_series' else 'node_not_ready' end
            else 'none'
        end as cause_name_found
    from judged
),

-- Neighbours alike become one row.
marked as (
    select
        *,
        coalesce(
            state_name is distinct from lag(state_name) over pod_time
            or cause_name_found is distinct from lag(cause_name_found) over pod_time,
            true
        )::integer as is_change
    from caused
    window pod_time as (partition by cluster_name, day_on, pod_uid order by begin_at)
),

numbered as (
    select
        *,
        sum(is_change) over (
            partition by cluster_name, day_on, pod_uid order by begin_at
        ) as spell_number
    from marked
)

select
    cluster_name,
    day_on,
    pod_uid,
    state_name,
    cause_name_found as cause_name,
    min(begin_at) as begin_at,
    max(end_at) as end_at
from numbered
group by cluster_name, day_on, pod_uid, spell_number, state_name, cause_name_found
