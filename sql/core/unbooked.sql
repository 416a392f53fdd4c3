-- core.unbooked: What of each hold is not booked, and why: nobody holds what is not there.
with
-- What lies before or after the node's existence, or on a node without GPUs.
outside as (
    select
        s.cluster_name,
        s.day_on,
        s.hold_id,
        s.node_uid,
        s.begin_at,
        s.end_at,
        s.share_micro_gpu,
        n.begin_at as node_begin_at,
        n.end_at as node_end_at
    from core.hold_shares as s
    inner join core.windows as w
        on s.cluster_name = w.cluster_name and s.day_on = w.day_on
    left join (select * from core.gpu_spells where installed_count > 0) as n
        on
            s.cluster_name = n.cluster_name
            and s.day_on = n.day_on
            and s.node_uid = n.node_uid
    where w.is_inventory_known
),

pieces as (
    select
        o.cluster_name,
        o.day_on,
        o.hold_id,
        o.node_uid,
        case
            when k.node_uid is null or k.installed_count = 0 then 'not_installed' else 'node_gone'
        end as reason_name,
        o.begin_at,
        o.end_at,
        o.share_micro_gpu
    from outside as o
    left join core.nodes as k
        on o.cluster_name = k.cluster_name and o.day_on = k.day_on and o.node_uid = k.node_uid
    where o.node_begin_at is null
    union all by name
    select
        cluster_name,
        day_on,
        hold_id,
        node_uid,
        'not_installed' as reason_name,
        begin_at,
        least(end_at, node_begin_at) as end_at,
        share_micro_gpu
    from outside
    where begin_at < node_begin_at
    union all by name
    select
        cluster_name,
        day_on,
        hold_id,
        node_uid,
        'node_gone' as reason_name,
        greatest(begin_at, node_end_at) as begin_at,
        end_at,
        share_micro_gpu
    from outside
    where end_at > node_end_at
    union all by name
    select
        cluster_name,
        day_on,
        hold_id,
        node_uid,
        'overlap' as reason_name,
        begin_at,
        end_at,
        asked_micro_gpu - share_micro_gpu as share_micro_gpu
    from core.bookings
    where asked_micro_gpu > share_micro_gpu
)

select
    p.cluster_name,
    p.day_on,
    p.hold_id,
    h.team_name,
    p.node_uid,
    p.reason_name,
    p.begin_at,
    p.end_at,
    p.share_micro_gpu,
    (
        (p.share_micro_gpu * date_diff('second', p.begin_at, p.end_at))::decimal(24, 0)
        * 0.000001::decimal(7, 6)
    )::decimal(18, 6) as gpu_seconds
from pieces as p
inner join core.holds as h
    on p.cluster_name = h.cluster_name and p.day_on = h.day_on and p.hold_id = h.hold_id
