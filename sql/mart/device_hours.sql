-- mart.device_hours: What each GPU or GPU instance did in each hour, and who had it longest.
with
spans as (
    select
        g.*,
        n.node_name as known_node_name,
        -- An instance was there while it was read; a GPU as long as its node.
        case
            when g.instance_number >= 0 then date_trunc('second', g.first_sampled_at)
            else coalesce(n.begin_at, w.begin_at)
        end as there_begin_at,
        case
            when g.instance_number >= 0 then date_trunc('second', g.last_sampled_at)
            else coalesce(n.end_at, w.end_at)
        end as there_end_at
    from core.gpus as g
    inner join core.windows as w
        on g.cluster_name = w.cluster_name and g.day_on = w.day_on
    left join core.nodes as n
        on g.cluster_name = n.cluster_name and g.day_on = n.day_on and g.node_uid = n.node_uid
),

pieces as (
    select
        s.cluster_name,
        s.day_on,
        s.node_uid,
        s.gpu_uuid,
        s.instance_number,
        s.activity_name,
        s.sm_seconds / date_diff('second', s.begin_at, s.end_at) as sm_share,
        s.sm_active_seconds / date_diff('second', s.begin_at, s.end_at) as sm_weight,
        s.power_watts,
        false as is_hold,
        null::varchar as hold_id,
        greatest(s.begin_at, g.there_begin_at) as begin_at,
        least(s.end_at, g.there_end_at) as end_at
    from core.gpu_states as s
    inner join spans as g
        on
            s.cluster_name = g.cluster_name
            and s.day_on = g.day_on
            and s.node_uid = g.node_uid
            and s.gpu_uuid = g.gpu_uuid
            and s.instance_number = g.instance_number
            and s.begin_at < g.there_end_at
            and s.end_at > g.there_begin_at
    union all by name
    select
        o.cluster_name,
        o.day_on,
        o.node_uid,
        o.gpu_uuid,
        o.instance_number,
        true as is_hold,
        o.hold_id,
        greatest(o.begin_at, g.there_begin_at) as begin_at,
        least(o.end_at, g.there_end_at) as end_at
    from core.gpu_owners as o
    inner join spans as g
        on
            o.cluster_name = g.cluster_name
            and o.day_on = g.day_on
            and o.node_uid = g.node_uid
            and o.gpu_uuid = g.gpu_uuid
            and o.instance_number = g.instance_number
            and o.begin_at < g.there_end_at
            and o.end_at > g.there_begin_at
    where o.hold_count > 0
),

hours as (
    select
        *,
        timezone($zone, day_on::timestamp) as midnight_at,
        unnest(range(
            date_diff('second', midnight_at, begin_at) // 3600,
            (date_diff('second', midnight_at, end_at) - 1) // 3600 + 1
        )) as hour_number
    from pieces
),

parts as (
    select
        *,
        midnight_at + to_hours(hour_number) as hour_at,
        date_diff(
            'second',
            greatest(begin_at, midnight_at + to_hours(hour_number)),
            least(end_at, midnight_at + to_hours(hour_number + 1))
        ) as part_seconds
    from hours
),

by_hold as (
    select
        cluster_name,
        day_on,
        node_uid,
        gpu_uuid,
        instance_number,
        hour_at,
        hold_id,
        sum(part_seconds) as part_seconds
    from parts
    where is_hold
    group by cluster_name, day_on, node_uid, gpu_uuid, instance_number, hour_at, hold_id
),

holders as (
    select
        b.cluster_name,
        b.day_on,
        b.node_uid,
        b.gpu_uuid,
        b.instance_number,
        b.hour_at,
        sum(b.part_seconds) as held_seconds,
        arg_max(h.team_name, (b.part_seconds, b.hold_id)) as team_name,
        arg_max(w.workload_name, (b.part_seconds, b.hold_id)) as workload_name
    from by_hold as b
    inner join core.holds as h
        on b.cluster_name = h.cluster_name and b.day_on = h.day_on and b.hold_id = h.hold_id
    left join core.workloads as w
        on
            h.cluster_name = w.cluster_name
            and h.day_on = w.day_on
            and h.workload_key_uid = w.workload_key_uid
    group by b.cluster_name, b.day_on, b.node_uid, b.gpu_uuid, b.instance_number, b.hour_at
),

sums as (
    select
        cluster_name,
        day_on,
        node_uid,
        gpu_uuid,
        instance_number,
        hour_at,
        sum(part_seconds) as known_seconds,
        sum(part_seconds) filter (where activity_name = 'active') as active_seconds,
        sum(part_seconds) filter (where activity_name = 'idle') as idle_seconds,
        sum(part_seconds) filter (where activity_name = 'stalled') as stalled_seconds,
        sum(part_seconds) filter (where activity_name = 'unobserved') as unobserved_seconds,
        sum(part_seconds) filter (where activity_name = 'broken') as faulty_seconds,
        sum(part_seconds * sm_weight) / nullif(sum(part_seconds * sm_share), 0) as sm_ratio,
        sum(part_seconds * power_watts)
        / sum(part_seconds) filter (where power_watts is not null) as power_watts
    from parts
    where not is_hold
    group by cluster_name, day_on, node_uid, gpu_uuid, instance_number, hour_at
)

select
    s.cluster_name,
    s.day_on,
    s.hour_at,
    s.node_uid,
    coalesce(g.known_node_name, g.node_name) as node_name,
    s.gpu_uuid,
    s.instance_number,
    g.gpu_number,
    g.gpu_model_name,
    h.team_name,
    h.workload_name,
    s.known_seconds::bigint as known_seconds,
    coalesce(h.held_seconds, 0)::bigint as held_seconds,
    coalesce(s.active_seconds, 0)::bigint as active_seconds,
    coalesce(s.idle_seconds, 0)::bigint as idle_seconds,
    coalesce(s.stalled_seconds, 0)::bigint as stalled_seconds,
    coalesce(s.unobserved_seconds, 0)::bigint as unobserved_seconds,
    coalesce(s.faulty_seconds, 0)::bigint as faulty_seconds,
    s.sm_ratio::double as sm_ratio,
    s.power_watts::double as power_watts
from sums as s
inner join spans as g
    on
        s.cluster_name = g.cluster_name
        and s.day_on = g.day_on
        and s.node_uid = g.node_uid
        and s.gpu_uuid = g.gpu_uuid
        and s.instance_number = g.instance_number
left join holders as h
    on
        s.cluster_name = h.cluster_name
        and s.day_on = h.day_on
        and s.node_uid = h.node_uid
        and s.gpu_uuid = h.gpu_uuid
        and s.instance_number = h.instance_number
        and s.hour_at = h.hour_at
