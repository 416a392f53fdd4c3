-- core.bookings: What of each hold is booked: stretches of constant share.
--
-- A later bind is proof that an earlier hold has ended unseen, so later ones are booked first.
with
-- Where a source has no nodes at all, installed is what is held.
inside as (
    select
        s.* exclude (begin_at, end_at),
        greatest(s.begin_at, coalesce(n.begin_at, s.begin_at)) as begin_at,
        least(s.end_at, coalesce(n.end_at, s.end_at)) as end_at,
        case when w.is_inventory_known then n.installed_count * 1000000 end as installed_micro_gpu
    from core.hold_shares as s
    inner join core.windows as w
        on s.cluster_name = w.cluster_name and s.day_on = w.day_on
    left join core.gpu_spells as n
        on
            s.cluster_name = n.cluster_name
            and s.day_on = n.day_on
            and s.node_uid = n.node_uid
    where
        greatest(s.begin_at, coalesce(n.begin_at, s.begin_at))
        < least(s.end_at, coalesce(n.end_at, s.end_at))
        and (not w.is_inventory_known or n.installed_count > 0)
),

steps as (
    select
        cluster_name,
        day_on,
        node_uid,
        installed_micro_gpu,
        begin_at as edge_at,
        share_micro_gpu as step_micro_gpu
    from inside
    where installed_micro_gpu is not null
    union all by name
    select
        cluster_name,
        day_on,
        node_uid,
        installed_micro_gpu,
        end_at as edge_at,
        -share_micro_gpu as step_micro_gpu
    from inside
    where installed_micro_gpu is not null
),

totals as (
    select
        cluster_name,
        day_on,
        node_uid,
        installed_micro_gpu,
        edge_at,
        sum(sum(step_micro_gpu)) over (
            partition by cluster_name, day_on, node_uid order by edge_at
        ) as held_micro_gpu
    from steps
    group by cluster_name, day_on, node_uid, installed_micro_gpu, edge_at
),

crowded as (
    select
        cluster_name,
        day_on,
        node_uid
    from totals
    group by cluster_name, day_on, node_uid
    having max(held_micro_gpu) > any_value(installed_micro_gpu)
),

crowded_edges as (
    select distinct
        i.cluster_name,
        i.day_on,
        i.node_uid,
        unnest([i.begin_at, i.end_at]) as edge_at
    from inside as i
    semi join crowded as c
        on i.cluster_name = c.cluster_name and i.day_on = c.day_on and i.node_uid = c.node_uid
),

crowded_stretches as (
    select
        *,
        lead(edge_at)
            over (partition by cluster_name, day_on, node_uid order by edge_at)
            as until_at
    from crowded_edges
),

ranked as (
    select
        i.* exclude (begin_at, end_at),
        s.edge_at as begin_at,
        s.until_at as end_at,
        sum(i.share_micro_gpu) over (
            partition by i.cluster_name, i.day_on, i.node_uid, s.edge_at
            order by i.bound_at desc, i.hold_id desc
            rows between unbounded preceding and current row
        ) as upto_micro_gpu
    from inside as i
    inner join crowded_stretches as s
        on
            i.cluster_name = s.cluster_name
            and i.day_on = s.day_on
            and i.node_uid = s.node_uid
            and i.begin_at <= s.edge_at
            and i.end_at >= s.until_at
)

select
    i.cluster_name,
    i.day_on,
    i.hold_id,
    i.node_uid,
    i.begin_at,
    i.end_at,
    i.share_micro_gpu,
    i.share_micro_gpu as asked_micro_gpu,
    i.device_uuid,
    i.scale_ratio
from inside as i
anti join crowded as c
    on i.cluster_name = c.cluster_name and i.day_on = c.day_on and i.node_uid = c.node_uid
union all by name
select
    cluster_name,
    day_on,
    hold_id,
    node_uid,
    begin_at,
    end_at,
    greatest(
        0, least(share_micro_gpu, installed_micro_gpu - (upto_micro_gpu - share_micro_gpu))
    )::bigint as share_micro_gpu,
    share_micro_gpu as asked_micro_gpu,
    device_uuid,
    scale_ratio
from ranked
