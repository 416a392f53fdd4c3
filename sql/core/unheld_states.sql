-- core.unheld_states: What nobody holds on a node, second by second, and why.
--
-- Computed from the changes of what is installed, not schedulable and booked, not from the holds:
-- so the ledger's two halves meet only in the law of conservation.
with
device_steps as (
    select
        cluster_name,
        day_on,
        node_uid,
        coalesce(device_uuid, '') as device_key,
        begin_at as edge_at,
        share_micro_gpu as step_micro_gpu
    from core.bookings
    union all by name
    select
        cluster_name,
        day_on,
        node_uid,
        coalesce(device_uuid, '') as device_key,
        end_at as edge_at,
        -share_micro_gpu as step_micro_gpu
    from core.bookings
),

-- Up to the next whole GPU: of each known device, and of all others as if packed.
device_totals as (
    select
        cluster_name,
        day_on,
        node_uid,
        device_key,
        edge_at,
        sum(step_micro_gpu) as step_micro_gpu,
        (-(sum(sum(step_micro_gpu)) over devices)) % 1000000 as negative_remainder
    from device_steps
    group by cluster_name, day_on, node_uid, device_key, edge_at
    window devices as (partition by cluster_name, day_on, node_uid, device_key order by edge_at)
),

device_remainders as (
    select
        *,
        case
            when negative_remainder < 0 then negative_remainder + 1000000 else negative_remainder
        end as remainder_micro_gpu
    from device_totals
),

steps as (
    select
        cluster_name,
        day_on,
        node_uid,
        edge_at,
        0 as installed_step,
        0 as unschedulable_step,
        step_micro_gpu as booked_step,
        remainder_micro_gpu - lag(remainder_micro_gpu, 1, 0) over (
            partition by cluster_name, day_on, node_uid, device_key order by edge_at
        ) as remainder_step
    from device_remainders
    union all by name
    select
        cluster_name,
        day_on,
        node_uid,
        begin_at as edge_at,
        installed_micro_gpu as installed_step,
        unschedulable_micro_gpu as unschedulable_step,
        0 as booked_step,
        0 as remainder_step
    from core.node_spells
    union all by name
    select
        cluster_name,
        day_on,
        node_uid,
        end_at as edge_at,
        -installed_micro_gpu as installed_step,
        -unschedulable_micro_gpu as unschedulable_step,
        0 as booked_step,
        0 as remainder_step
    from core.node_spells
),

totals as (
    select
        cluster_name,
        day_on,
        node_uid,
        edge_at as begin_at,
        lead(edge_at) over nodes as end_at,
        sum(sum(installed_step)) over nodes as installed_micro_gpu,
        sum(sum(unschedulable_step)) over nodes as unschedulable_micro_gpu,
        sum(sum(booked_step)) over nodes as booked_micro_gpu,
        sum(sum(remainder_step)) over nodes as remainder_micro_gpu
    from steps
    group by cluster_name, day_on, node_uid, edge_at
    window nodes as (partition by cluster_name, day_on, node_uid order by edge_at)
),

free as (
    select
        t.cluster_name,
        t.day_on,
        t.node_uid,
        greatest(t.begin_at, c.begin_at) as begin_at,
        least(t.end_at, c.end_at) as end_at,
        t.installed_micro_gpu - t.booked_micro_gpu as free_micro_gpu,
        t.unschedulable_micro_gpu,
        case when w.is_placed then t.remainder_micro_gpu else 0 end as remainder_micro_gpu,
        case
            when c.coverage_name not in ('watched', 'sampled', 'table') then c.coverage_name
        end as unrecorded_cause_name,
        w.is_placed
    from totals as t
    inner join core.windows as w
        on t.cluster_name = w.cluster_name and t.day_on = w.day_on
    inner join (
        select
            cluster_name,
            day_on,
            date_trunc('second', begin_at) as begin_at,
            date_trunc('second', end_at) as end_at,
            coverage_name
        from raw.coverage
    ) as c
        on
            t.cluster_name = c.cluster_name
            and t.day_on = c.day_on
            and t.begin_at < c.end_at
            and t.end_at > c.begin_at
    where t.installed_micro_gpu > t.booked_micro_gpu
),

split as (
    select
        f.cluster_name,
        f.day_on,
        f.node_uid,
        f.begin_at,
        f.end_at,
        f.unrecorded_cause_name,
        n.cause_name as unavailable_cause_name,
        f.is_placed,
        case when f.unrecorded_cause_name is not null then f.free_micro_gpu else 0 end
            as unrecorded_micro_gpu,
        case
            when f.unrecorded_cause_name is not null then 0
            else least(f.free_micro_gpu, f.unschedulable_micro_gpu)
        end as unavailable_micro_gpu,
        case
            when f.unrecorded_cause_name is not null then 0
            else least(
                greatest(f.free_micro_gpu - f.unschedulable_micro_gpu, 0), f.remainder_micro_gpu
            )
        end as remainder_micro_gpu,
        case
            when f.unrecorded_cause_name is not null then 0
            else greatest(
                f.free_micro_gpu - f.unschedulable_micro_gpu - f.remainder_micro_gpu, 0
            )
        end as rest_micro_gpu
    from free as f
    asof left join core.node_spells as n
        on
            f.cluster_name = n.cluster_name
            and f.day_on = n.day_on
            and f.node_uid = n.node_uid
            and f.begin_at >= n.begin_at
),

-- When any pod that asks for GPUs was pending, in the whole cluster.
pending as (
    select
        p.cluster_name,
        p.day_on,
        greatest(p.created_at, w.begin_at) as begin_at,
        least(coalesce(least(p.bound_at, p.ended_at), w.end_at), w.end_at) as end_at
    from core.pods as p
    inner join core.windows as w
        on p.cluster_name = w.cluster_name and p.day_on = w.day_on
    where p.asked_micro_gpu > 0
),

demand_steps as (
    select
        cluster_name,
        day_on,
        begin_at as edge_at,
        1 as step_count
    from pending
    where begin_at < end_at
    union all by name
    select
        cluster_name,
        day_on,
        end_at as edge_at,
        -1 as step_count
    from pending
    where begin_at < end_at
    union all by name
    select
        cluster_name,
        day_on,
        begin_at as edge_at,
        0 as step_count
    from core.windows
),

demand_totals as (
    select
        cluster_name,
        day_on,
        edge_at,
        sum(sum(step_count)) over (partition by cluster_name, day_on order by edge_at)
        > 0 as is_pending
    from demand_steps
    group by cluster_name, day_on, edge_at
),

demand_changes as (
    select *
    from demand_totals
    qualify
        is_pending is distinct from lag(is_pending) over (
            partition by cluster_name, day_on order by edge_at
        )
),

demand as (
    select
        d.cluster_name,
        d.day_on,
        d.is_pending,
        d.edge_at as begin_at,
        coalesce(
            lead(d.edge_at) over (partition by d.cluster_name, d.day_on order by d.edge_at),
            w.end_at
        ) as end_at
    from demand_changes as d
    inner join core.windows as w
        on d.cluster_name = w.cluster_name and d.day_on = w.day_on
)

select
    cluster_name,
    day_on,
    node_uid,
    '__unknown__' as team_name,
    'unrecorded' as state_name,
    unrecorded_cause_name as cause_name,
    begin_at,
    end_at,
    unrecorded_micro_gpu::bigint as share_micro_gpu
from split
where unrecorded_micro_gpu > 0
union all by name
select
    cluster_name,
    day_on,
    node_uid,
    '__unavailable__' as team_name,
    'unavailable' as state_name,
    unavailable_cause_name as cause_name,
    begin_at,
    end_at,
    unavailable_micro_gpu::bigint as share_micro_gpu
from split
where unavailable_micro_gpu > 0
union all by name
select
    cluster_name,
    day_on,
    node_uid,
    '__unallocated__' as team_name,
    'unallocated' as state_name,
    'partition_remainder' as cause_name,
    begin_at,
    end_at,
    remainder_micro_gpu::bigint as share_micro_gpu
from split
where remainder_micro_gpu > 0
union all by name
select
    s.cluster_name,
    s.day_on,
    s.node_uid,
    '__unallocated__' as team_name,
    'unallocated' as state_name,
    case when s.is_placed and not d.is_pending then 'no_demand' else 'undetermined' end
        as cause_name,
    greatest(s.begin_at, d.begin_at) as begin_at,
    least(s.end_at, d.end_at) as end_at,
    s.rest_micro_gpu::bigint as share_micro_gpu
from split as s
inner join demand as d
    on
        s.cluster_name = d.cluster_name
        and s.day_on = d.day_on
        and s.begin_at < d.end_at
        and s.end_at > d.begin_at
where s.rest_micro_gpu > 0
