-- core.gpu_owners: Who had each device, from when to when, and when it was broken: the known window, tiled.
--
-- Where several share a device, nobody's it is: what it does is then not one hold's doing.
with
devices as (
    select
        g.cluster_name,
        g.day_on,
        g.node_uid,
        g.gpu_uuid,
        g.instance_number,
        w.begin_at as window_begin_at,
        w.end_at as window_end_at
    from core.gpus as g
    inner join core.windows as w
        on g.cluster_name = w.cluster_name and g.day_on = w.day_on
),

spells as (
    select
        p.cluster_name,
        p.day_on,
        h.node_uid,
        p.gpu_uuid,
        p.instance_number,
        p.hold_id,
        h.workload_class,
        h.bound_at,
        h.begin_at,
        h.end_at
    from core.hold_parts as p
    inner join core.holds as h
        on p.cluster_name = h.cluster_name and p.day_on = h.day_on and p.hold_id = h.hold_id
    where p.gpu_uuid is not null
),

edges as (
    select
        cluster_name,
        day_on,
        node_uid,
        gpu_uuid,
        instance_number,
        unnest([begin_at, end_at]) as begin_at
    from spells
    union
    select
        d.cluster_name,
        d.day_on,
        d.node_uid,
        d.gpu_uuid,
        d.instance_number,
        unnest([f.begin_at, f.end_at]) as begin_at
    from devices as d
    inner join core.gpu_faults as f
        on
            d.cluster_name = f.cluster_name
            and d.day_on = f.day_on
            and d.node_uid = f.node_uid
            and d.gpu_uuid = f.gpu_uuid
    union
    select
        cluster_name,
        day_on,
        node_uid,
        gpu_uuid,
        instance_number,
        window_begin_at as begin_at
    from devices
),

stretches as (
    select
        e.*,
        least(
            coalesce(
                lead(e.begin_at) over (
                    partition by
                        e.cluster_name, e.day_on, e.node_uid, e.gpu_uuid, e.instance_number
                    order by e.begin_at
                ),
                d.window_end_at
            ),
            d.window_end_at
        ) as end_at
    from edges as e
    inner join devices as d
        on
            e.cluster_name = d.cluster_name
            and e.day_on = d.day_on
            and e.node_uid = d.node_uid
            and e.gpu_uuid = d.gpu_uuid
            and e.instance_number = d.instance_number
    where e.begin_at >= d.window_begin_at and e.begin_at < d.window_end_at
)

select
    t.cluster_name,
    t.day_on,
    t.node_uid,
    t.gpu_uuid,
    t.instance_number,
    t.begin_at,
    t.end_at,
    case when count(distinct s.hold_id) = 1 then any_value(s.hold_id) end as hold_id,
    arg_max(s.workload_class, (s.bound_at, s.hold_id)) as workload_class,
    count(distinct s.hold_id) as hold_count,
    bool_or(f.gpu_uuid is not null) as is_broken
from stretches as t
left join spells as s
    on
        t.cluster_name = s.cluster_name
        and t.day_on = s.day_on
        and t.node_uid = s.node_uid
        and t.gpu_uuid = s.gpu_uuid
        and t.instance_number = s.instance_number
        and t.begin_at >= s.begin_at
        and t.begin_at < s.end_at
left join core.gpu_faults as f
    on
        t.cluster_name = f.cluster_name
        and t.day_on = f.day_on
        and t.node_uid = f.node_uid
        and t.gpu_uuid = f.gpu_uuid
        and t.begin_at >= f.begin_at
        and t.begin_at < f.end_at
group by
    t.cluster_name,
    t.day_on,
    t.node_uid,
    t.gpu_uuid,
    t.instance_number,
    t.begin_at,
    t.end_at
