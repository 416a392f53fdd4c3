-- core.gang_stalls: Stretches in which a gang that was never complete in its attempt holds GPUs.
--
-- Who is asked to go stands for the gang no longer. Times before the day are those that pods tell.
with
gangs as (
    select
        cluster_name,
        day_on,
        attempt_id,
        gang_size_count,
        complete_at,
        known_until_at
    from core.attempts
    where gang_size_count > 1 and pod_count > 0
),

holders as (
    select distinct
        cluster_name,
        day_on,
        pod_uid
    from core.holds
),

-- Whom a queue holds back does not wait for a place yet.
gated as (
    select
        cluster_name,
        day_on,
        pod_uid,
        date_trunc('second', min(observed_at) filter (where not is_gated)) as freed_at
    from raw.pod_versions
    where is_gated is not null
    group by cluster_name, day_on, pod_uid
    having bool_or(is_gated)
),

members as (
    select
        p.cluster_name,
        p.day_on,
        p.attempt_id,
        case when h.pod_uid is not null then p.bound_at end as held_at,
        coalesce(p.gone_at, 'infinity'::timestamptz) as gone_at,
        case
            when p.asked_micro_gpu = 0 or p.is_refused then null
            when t.pod_uid is null then p.created_at
            when t.freed_at is not null then greatest(p.created_at, t.freed_at)
        end as waits_at,
        least(p.bound_at, p.gone_at, 'infinity'::timestamptz) as waited_at
    from core.pods as p
    inner join gangs as g
        on p.cluster_name = g.cluster_name and p.day_on = g.day_on and p.attempt_id = g.attempt_id
    left join holders as h
        on p.cluster_name = h.cluster_name and p.day_on = h.day_on and p.pod_uid = h.pod_uid
    left join gated as t
        on p.cluster_name = t.cluster_name and p.day_on = t.day_on and p.pod_uid = t.pod_uid
),

edges as (
    select
        cluster_name,
        day_on,
        attempt_id,
        unnest([held_at, gone_at]) as edge_at,
        unnest([1, -1]) as held,
        0 as waiting
    from members
    where held_at < gone_at
    union all by name
    select
        cluster_name,
        day_on,
        attempt_id,
        unnest([waits_at, waited_at]) as edge_at,
        0 as held,
        unnest([1, -1]) as waiting
    from members
    where waits_at < waited_at
    union all by name
    select
        cluster_name,
        day_on,
        attempt_id,
        begin_at as edge_at,
        0 as held,
        0 as waiting
    from core.gang_spells
),

steps as (
    select
        cluster_name,
        day_on,
        attempt_id,
        edge_at,
        sum(sum(held)) over timeline as held,
        sum(sum(waiting)) over timeline as waiting,
        lead(edge_at) over timeline as next_at
    from edges
    where edge_at < 'infinity'::timestamptz
    group by cluster_name, day_on, attempt_id, edge_at
    window timeline as (partition by cluster_name, day_on, attempt_id order by edge_at)
),

-- What the steps after the end of what is known say is not known.
told as (
    select
        s.cluster_name,
        s.day_on,
        s.attempt_id,
        g.gang_size_count,
        b.bound_count,
        s.edge_at as begin_at,
        least(s.next_at, g.complete_at, g.known_until_at) as end_at,
        s.next_at is null and g.complete_at is null as is_open,
        unnest([
            'start',
            case when b.bound_count < g.gang_size_count then 'partial' end,
            case when b.bound_count < g.gang_size_count and s.waiting > 0 then 'stuck' end
        ]) as stall_name
    from steps as s
    inner join gangs as g
        on s.cluster_name = g.cluster_name and s.day_on = g.day_on and s.attempt_id = g.attempt_id
    asof left join core.gang_spells as b
        on
            s.cluster_name = b.cluster_name
            and s.day_on = b.day_on
            and s.attempt_id = b.attempt_id
            and s.edge_at >= b.begin_at
    where s.held > 0 and s.edge_at < least(g.complete_at, g.known_until_at)
),

marked as (
    select
        *,
        coalesce(
            begin_at > lag(end_at) over (
                partition by cluster_name, day_on, attempt_id, stall_name order by begin_at
            ),
            true
        )::integer as is_new
    from told
    where stall_name is not null
),

numbered as (
    select
        *,
        sum(is_new) over (
            partition by cluster_name, day_on, attempt_id, stall_name order by begin_at
        ) as stall_number
    from marked
),

stalls as (
    select
        cluster_name,
        day_on,
        attempt_id,
        stall_name,
        min(begin_at) as since_at,
        max(end_at) as end_at,
        bool_or(is_open) as is_open,
        any_value(gang_size_count) as gang_size_count,
        max(coalesce(bound_count, 0)) as most_bound_count
    from numbered
    group by cluster_name, day_on, attempt_id, stall_name, stall_number
)

select
    s.cluster_name,
    s.day_on,
    s.attempt_id,
    s.stall_name,
    s.since_at,
    greatest(s.since_at, w.begin_at) as begin_at,
    s.end_at,
    s.is_open,
    s.gang_size_count,
    s.most_bound_count
from stalls as s
inner join core.windows as w
    on s.cluster_name = w.cluster_name and s.day_on = w.day_on
where s.end_at > w.begin_at
