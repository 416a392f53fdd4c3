-- core.hold_states: The state of each part of a hold, second by second: its piece of the day, tiled.
--
-- A broken GPU before all; else the pod's state, and where that is for a reading to say, what the
-- device was measured doing. A member's loss yields to what is measured active.
with
parts as (
    select
        h.cluster_name,
        h.day_on,
        h.hold_id,
        h.node_uid,
        p.part_number,
        p.gpu_uuid,
        p.instance_number,
        p.is_shared,
        d.gpu_uuid is not null as is_measured,
        s.state_name,
        s.cause_name,
        greatest(s.begin_at, h.begin_at) as begin_at,
        least(s.end_at, h.end_at) as end_at
    from core.holds as h
    inner join core.pod_states as s
        on
            h.cluster_name = s.cluster_name
            and h.day_on = s.day_on
            and h.pod_uid = s.pod_uid
            and h.begin_at < s.end_at
            and h.end_at > s.begin_at
    inner join core.hold_parts as p
        on h.cluster_name = p.cluster_name and h.day_on = p.day_on and h.hold_id = p.hold_id
    left join core.gpus as d
        on
            h.cluster_name = d.cluster_name
            and h.day_on = d.day_on
            and h.node_uid = d.node_uid
            and p.gpu_uuid = d.gpu_uuid
            and p.instance_number = d.instance_number
),

-- Holds of which it is not known on which device of the node they lie.
strays as (
    select
        h.cluster_name,
        h.day_on,
        h.node_uid,
        h.begin_at,
        h.end_at
    from core.hold_parts as p
    inner join core.holds as h
        on p.cluster_name = h.cluster_name and p.day_on = h.day_on and p.hold_id = h.hold_id
    where p.is_shared and p.gpu_uuid is null
),

measured as (
    select
        p.cluster_name,
        p.day_on,
        p.hold_id,
        p.node_uid,
        p.part_number,
        (p.is_shared and (g.hold_id is null or g.hold_id <> p.hold_id)) as is_together,
        p.is_shared,
        p.state_name,
        p.cause_name,
        g.activity_name,
        g.cause_name as measured_cause_name,
        greatest(p.begin_at, g.begin_at) as begin_at,
        least(p.end_at, g.end_at) as end_at
    from parts as p
    inner join core.gpu_states as g
        on
            p.cluster_name = g.cluster_name
            and p.day_on = g.day_on
            and p.node_uid = g.node_uid
            and p.gpu_uuid = g.gpu_uuid
            and p.instance_number = g.instance_number
            and p.begin_at < g.end_at
            and p.end_at > g.begin_at
    where p.is_measured
),

-- A piece is cut where such a hold begins or ends.
cuts as (
    select
        cluster_name,
        day_on,
        hold_id,
        part_number,
        begin_at as piece_at,
        begin_at as cut_at
    from measured
    union
    select
        m.cluster_name,
        m.day_on,
        m.hold_id,
        m.part_number,
        m.begin_at as piece_at,
        unnest([s.begin_at, s.end_at]) as cut_at
    from measured as m
    inner join strays as s
        on
            m.cluster_name = s.cluster_name
            and m.day_on = s.day_on
            and m.node_uid = s.node_uid
            and m.begin_at < s.end_at
            and m.end_at > s.begin_at
    where m.is_shared
),

slices as (
    select
        m.* exclude (begin_at, end_at),
        c.cut_at as begin_at,
        coalesce(
            lead(c.cut_at) over (
                partition by m.cluster_name, m.day_on, m.hold_id, m.part_number, m.begin_at
                order by c.cut_at
            ),
            m.end_at
        ) as end_at
    from measured as m
    inner join cuts as c
        on
            m.cluster_name = c.cluster_name
            and m.day_on = c.day_on
            and m.hold_id = c.hold_id
            and m.part_number = c.part_number
            and m.begin_at = c.piece_at
            and m.begin_at <= c.cut_at
            and m.end_at > c.cut_at
),

-- Of a GPU at work nothing tells who works, where several may; that it is idle holds for all.
crowded as (
    select
        *,
        is_together or (
            is_shared and exists (
                select 1
                from strays as s
                where
                    s.cluster_name = m.cluster_name
                    and s.day_on = m.day_on
                    and s.node_uid = m.node_uid
                    and s.begin_at < m.end_at
                    and s.end_at > m.begin_at
            )
        ) as is_crowded
    from slices as m
),

answered as (
    select
        *,
        case
            when activity_name = 'broken' then 'unavailable'
            when
                state_name = 'gang_wait'
                and cause_name = 'member_lost'
                and activity_name = 'active'
                and not is_crowded
                then 'active'
            when state_name <> 'unobserved' then state_name
            when is_crowded and activity_name <> 'idle' then 'unobserved'
            else activity_name
        end as found_name
    from crowded
),

tiles as (
    select
        cluster_name,
        day_on,
        hold_id,
        part_number,
        begin_at,
        end_at,
        state_name,
        cause_name
    from parts
    where not is_measured
    union all by name
    select
        cluster_name,
        day_on,
        hold_id,
        part_number,
        begin_at,
        end_at,
        found_name as state_name,
        case
            when found_name = 'unavailable' then 'gpu_unhealthy'
            when found_name = 'active' or found_name = 'stalled' then 'none'
            when found_name = 'idle' then measured_cause_name
            when found_name <> 'unobserved' then cause_name
            when is_crowded and activity_name <> 'unobserved' then 'no_series'
            when cause_name = 'node_not_ready' then 'node_not_ready'
            else measured_cause_name
        end as cause_name
    from answered
),

tile_changes as (
    select
        *,
        coalesce(
            state_name is distinct from lag(state_name) over part_time
            or cause_name is distinct from lag(cause_name) over part_time,
            true
        )::integer as is_change
    from tiles
    window part_time as (
        partition by cluster_name, day_on, hold_id, part_number order by begin_at
    )
),

tile_numbers as (
    select
        *,
        sum(is_change) over (
            partition by cluster_name, day_on, hold_id, part_number order by begin_at
        ) as tile_number
    from tile_changes
)

select
    cluster_name,
    day_on,
    hold_id,
    part_number,
    any_value(state_name) as state_name,
    any_value(cause_name) as cause_name,
    min(begin_at) as begin_at,
    max(end_at) as end_at
from tile_numbers
group by cluster_name, day_on, hold_id, part_number, tile_number
