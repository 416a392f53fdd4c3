-- core.gang_queues: Gangs that wait at one place at once: what each misses there, holds, and could have.
--
-- Could have: what would be there if all else that may end ended, in whole members. All of it is
-- steps in time: what changes at a node, summed up, is what there is at the place.
with
places as (
    select
        cluster_name,
        day_on,
        needs_id,
        any_value(place_id) as place_id,
        count(*) as node_count
    from core.gang_places
    group by cluster_name, day_on, needs_id
),

waiting as (
    select
        s.*,
        p.place_id,
        p.node_count,
        coalesce(s.node_needs_json not like '%[]%', false) as is_certain
    from core.stuck_gangs as s
    inner join places as p
        on s.cluster_name = p.cluster_name and s.day_on = p.day_on and s.needs_id = p.needs_id
    qualify count(*) over (partition by s.cluster_name, s.day_on, p.place_id) > 1
),

place_nodes as (
    select distinct
        n.cluster_name,
        n.day_on,
        n.place_id,
        n.node_uid
    from core.gang_places as n
    semi join waiting as w
        on n.cluster_name = w.cluster_name and n.day_on = w.day_on and n.place_id = w.place_id
),

holds as (
    select
        n.place_id,
        h.cluster_name,
        h.day_on,
        h.attempt_id,
        h.node_uid,
        h.share_micro_gpu,
        h.bound_at,
        p.is_service,
        case when h.is_end then h.end_at else 'infinity'::timestamptz end as end_at
    from core.holds as h
    inner join place_nodes as n
        on h.cluster_name = n.cluster_name and h.day_on = n.day_on and h.node_uid = n.node_uid
    inner join core.pods as p
        on h.cluster_name = p.cluster_name and h.day_on = p.day_on and h.pod_uid = p.pod_uid
),

-- What the gangs that wait hold at the place while they do.
holdings as (
    select
        h.cluster_name,
        h.day_on,
        h.place_id,
        h.node_uid,
        h.attempt_id,
        h.is_service,
        w.since_at,
        unnest([greatest(h.bound_at, w.since_at), least(h.end_at, w.end_at)]) as edge_at,
        unnest([h.share_micro_gpu, -h.share_micro_gpu]) as step_micro_gpu
    from holds as h
    inner join waiting as w
        on
            h.cluster_name = w.cluster_name
            and h.day_on = w.day_on
            and h.place_id = w.place_id
            and h.attempt_id = w.attempt_id
            and h.bound_at < w.end_at
            and h.end_at > w.since_at
),

-- Services do not end by themselves.
services as (
    select
        cluster_name,
        day_on,
        place_id,
        node_uid,
        unnest([bound_at, end_at]) as edge_at,
        unnest([-share_micro_gpu, share_micro_gpu]) as step_micro_gpu
    from holds
    where is_service
),

-- What the spell with which the day begins says held before it, too.
spells as (
    select
        n.cluster_name,
        n.day_on,
        n.place_id,
        n.node_uid,
        unnest([
            case
                when s.begin_at <= w.begin_at then '1900-01-01'::timestamptz else s.begin_at
            end,
            s.end_at
        ]) as edge_at,
        unnest([
            s.installed_micro_gpu - s.unschedulable_micro_gpu,
            s.unschedulable_micro_gpu - s.installed_micro_gpu
        ]) as step_micro_gpu
    from core.node_spells as s
    inner join place_nodes as n
        on s.cluster_name = n.cluster_name and s.day_on = n.day_on and s.node_uid = n.node_uid
    inner join core.windows as w
        on s.cluster_name = w.cluster_name and s.day_on = w.day_on
),

changes as (
    select
        cluster_name,
        day_on,
        place_id,
        node_uid,
        edge_at,
        sum(step_micro_gpu) as step_micro_gpu
    from (
        select * from spells
        union all by name
        select * from services
        union all by name
        select
            cluster_name,
            day_on,
            place_id,
            node_uid,
            edge_at,
            -step_micro_gpu as step_micro_gpu
        from holdings
        where not is_service  -- a group of a service that waits is among those
    ) as c
    group by cluster_name, day_on, place_id, node_uid, edge_at
),

rooms as (
    select
        cluster_name,
        day_on,
        place_id,
        node_uid,
        edge_at,
        greatest(0, sum(step_micro_gpu) over (
            partition by cluster_name, day_on, place_id, node_uid order by edge_at
        )) as room_micro_gpu
    from changes
),

asks as (
    select distinct
        cluster_name,
        day_on,
        place_id,
        asked_micro_gpu
    from waiting
),

-- A member lies on one node: what is left of each node is of use in whole members only.
fits as (
    select
        a.cluster_name,
        a.day_on,
        a.place_id,
        a.asked_micro_gpu,
        r.node_uid,
        r.edge_at,
        r.room_micro_gpu // a.asked_micro_gpu * a.asked_micro_gpu as room_micro_gpu
    from rooms as r
    inner join asks as a
        on r.cluster_name = a.cluster_name and r.day_on = a.day_on and r.place_id = a.place_id
),

fit_steps as (
    select
        *,
        room_micro_gpu - lag(room_micro_gpu, 1, 0) over (
            partition by cluster_name, day_on, place_id, asked_micro_gpu, node_uid order by edge_at
        ) as step_micro_gpu
    from fits
),

-- Who waits, who holds what and what room there is is the same from one moment to the next.
moments as (
    select
        *,
        lead(moment_at) over (
            partition by cluster_name, day_on, place_id order by moment_at
        ) as next_at
    from (
        select
            cluster_name,
            day_on,
            place_id,
            unnest([since_at, end_at]) as moment_at
        from waiting
        union
        select
            cluster_name,
            day_on,
            place_id,
            edge_at as moment_at
        from holdings
        union
        select
            cluster_name,
            day_on,
            place_id,
            edge_at as moment_at
        from fit_steps
        where step_micro_gpu <> 0
    ) as m
),

-- The steps, and each moment whether or not there is one.
place_rooms as (
    select
        cluster_name,
        day_on,
        place_id,
        asked_micro_gpu,
        edge_at as moment_at,
        sum(sum(step_micro_gpu)) over (
            partition by cluster_name, day_on, place_id, asked_micro_gpu order by edge_at
        ) as room_micro_gpu
    from (
        select
            cluster_name,
            day_on,
            place_id,
            asked_micro_gpu,
            edge_at,
            step_micro_gpu
        from fit_steps
        union all by name
        select
            m.cluster_name,
            m.day_on,
            m.place_id,
            a.asked_micro_gpu,
            m.moment_at as edge_at,
            0 as step_micro_gpu
        from moments as m
        inner join asks as a
            on m.cluster_name = a.cluster_name and m.day_on = a.day_on and m.place_id = a.place_id
    ) as e
    group by cluster_name, day_on, place_id, asked_micro_gpu, edge_at
),

gang_steps as (
    select
        cluster_name,
        day_on,
        attempt_id,
        since_at,
        edge_at as moment_at,
        sum(step_micro_gpu) as step_micro_gpu
    from holdings
    group by cluster_name, day_on, attempt_id, since_at, edge_at
),

-- How many are placed, from the first moment on at which it is so.
placings as (
    select
        w.cluster_name,
        w.day_on,
        w.attempt_id,
        w.since_at,
        m.moment_at,
        arg_max(w.bound_count, w.begin_at) as bound_count
    from (
        select
            w.cluster_name,
            w.day_on,
            w.place_id,
            w.attempt_id,
            w.since_at,
            g.begin_at,
            g.bound_count,
            greatest(g.begin_at, w.since_at) as told_at
        from waiting as w
        inner join core.gang_spells as g
            on
                w.cluster_name = g.cluster_name
                and w.day_on = g.day_on
                and w.attempt_id = g.attempt_id
                and w.end_at > g.begin_at
    ) as w
    asof inner join moments as m
        on
            w.cluster_name = m.cluster_name
            and w.day_on = m.day_on
            and w.place_id = m.place_id
            and w.told_at <= m.moment_at
    group by w.cluster_name, w.day_on, w.attempt_id, w.since_at, m.moment_at
),

present as (
    select
        w.*,
        m.moment_at,
        m.next_at
    from waiting as w
    inner join moments as m
        on
            w.cluster_name = m.cluster_name
            and w.day_on = m.day_on
            and w.place_id = m.place_id
            and w.since_at <= m.moment_at
            and w.end_at >= m.next_at
),

followed as (
    select
        e.*,
        sum(h.step_micro_gpu) over gang as held_micro_gpu,
        last_value(g.bound_count ignore nulls) over gang as bound_count
    from present as e
    left join gang_steps as h
        on
            e.cluster_name = h.cluster_name
            and e.day_on = h.day_on
            and e.attempt_id = h.attempt_id
            and e.since_at = h.since_at
            and e.moment_at = h.moment_at
    left join placings as g
        on
            e.cluster_name = g.cluster_name
            and e.day_on = g.day_on
            and e.attempt_id = g.attempt_id
            and e.since_at = g.since_at
            and e.moment_at = g.moment_at
    window gang as (
        partition by e.cluster_name, e.day_on, e.attempt_id, e.since_at order by e.moment_at
    )
)

select
    e.cluster_name,
    e.day_on,
    e.attempt_id,
    e.place_id,
    e.moment_at,
    e.next_at,
    e.is_open and e.next_at = e.end_at as is_open,
    e.node_count,
    e.is_certain,
    ((e.gang_size_count - e.bound_count) * e.asked_micro_gpu)::bigint as missing_micro_gpu,
    r.room_micro_gpu::bigint as room_micro_gpu,
    e.held_micro_gpu::bigint as held_micro_gpu
from followed as e
inner join place_rooms as r
    on
        e.cluster_name = r.cluster_name
        and e.day_on = r.day_on
        and e.place_id = r.place_id
        and e.asked_micro_gpu = r.asked_micro_gpu
        and e.moment_at = r.moment_at
-- What holds nothing there stands in nobody's way there.
where e.held_micro_gpu > 0
