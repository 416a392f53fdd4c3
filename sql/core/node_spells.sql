-- core.node_spells: Stretches in which a node's installed and schedulable GPUs do not change.
with
observed as (
    select
        cluster_name,
        day_on,
        node_uid,
        sequence_number,
        date_trunc('second', observed_at) as seen_at,
        is_ready,
        is_ever_ready,
        is_cordoned,
        maintenance_name,
        allocatable_micro_gpu
    from raw.node_versions
),

-- What ResourceSlices offer can be allocated, too: where they change, the node does.
offered as (
    select
        o.*,
        0 as slice_number,
        coalesce(s.schedulable_count, 0) * 1000000 as offered_micro_gpu
    from observed as o
    asof left join core.slice_spells as s
        on
            o.cluster_name = s.cluster_name
            and o.day_on = s.day_on
            and o.node_uid = s.node_uid
            and o.seen_at >= s.begin_at
    union all by name
    select
        o.* exclude (seen_at),
        s.begin_at as seen_at,
        row_number() over (
            partition by o.cluster_name, o.day_on, o.node_uid order by s.begin_at
        ) as slice_number,
        s.schedulable_count * 1000000 as offered_micro_gpu
    from core.slice_spells as s
    asof inner join (
        select *
        from observed
        qualify
            row_number() over (
                partition by cluster_name, day_on, node_uid, seen_at order by sequence_number desc
            ) = 1
    ) as o
        on
            s.cluster_name = o.cluster_name
            and s.day_on = o.day_on
            and s.node_uid = o.node_uid
            and s.begin_at > o.seen_at
),

versions as (
    select
        cluster_name,
        day_on,
        node_uid,
        sequence_number,
        slice_number,
        seen_at,
        is_ready,
        bool_or(is_ever_ready or (is_ready and offered_micro_gpu > 0)) over (
            partition by cluster_name, day_on, node_uid order by sequence_number, slice_number
        ) as is_ever_ready,
        is_cordoned,
        maintenance_name,
        greatest(allocatable_micro_gpu, offered_micro_gpu) as allocatable_micro_gpu
    from offered
),

-- The first version, be it the deletion, speaks for the time before it; of several in one second
-- the last one counts.
settled as (
    select
        v.*,
        g.gpu_model_name,
        g.installed_count * 1000000 as installed_micro_gpu,
        g.end_at as node_end_at,
        case
            when
                row_number() over (
                    partition by v.cluster_name, v.day_on, v.node_uid
                    order by v.sequence_number, v.slice_number
                ) = 1 then g.begin_at
            else greatest(v.seen_at, g.begin_at)
        end as begin_at
    from versions as v
    inner join core.gpu_spells as g
        on v.cluster_name = g.cluster_name and v.day_on = g.day_on and v.node_uid = g.node_uid
),

spelled as (
    select
        *,
        least(
            coalesce(
                lead(begin_at) over (
                    partition by cluster_name, day_on, node_uid
                    order by sequence_number, slice_number
                ),
                node_end_at
            ),
            node_end_at
        ) as end_at
    from settled
),

caused as (
    select
        *,
        case
            when installed_micro_gpu = 0 then null
            when not is_ever_ready then 'provisioning'
            when not is_ready then 'node_not_ready'
            when maintenance_name is not null then maintenance_name
            when is_cordoned then 'cordoned'
            when allocatable_micro_gpu < installed_micro_gpu then 'missing_from_allocatable'
        end as cause_name
    from spelled
    where begin_at < end_at
),

-- A source without nodes: installed is what is held.
steps as (
    select
        s.cluster_name,
        s.day_on,
        s.begin_at as edge_at,
        s.share_micro_gpu as step_micro_gpu
    from core.bookings as s
    inner join core.windows as w
        on s.cluster_name = w.cluster_name and s.day_on = w.day_on
    where not w.is_inventory_known
    union all by name
    select
        s.cluster_name,
        s.day_on,
        s.end_at as edge_at,
        -s.share_micro_gpu as step_micro_gpu
    from core.bookings as s
    inner join core.windows as w
        on s.cluster_name = w.cluster_name and s.day_on = w.day_on
    where not w.is_inventory_known
),

held as (
    select
        cluster_name,
        day_on,
        edge_at as begin_at,
        lead(edge_at) over days as end_at,
        sum(sum(step_micro_gpu)) over days as installed_micro_gpu
    from steps
    group by cluster_name, day_on, edge_at
    window days as (partition by cluster_name, day_on order by edge_at)
)

select
    cluster_name,
    day_on,
    node_uid,
    gpu_model_name,
    begin_at,
    end_at,
    installed_micro_gpu,
    (case
        when cause_name is null then 0
        when cause_name = 'missing_from_allocatable'
            then installed_micro_gpu - allocatable_micro_gpu
        else installed_micro_gpu
    end)::bigint as unschedulable_micro_gpu,
    cause_name,
    is_ready
from caused
union all by name
select
    cluster_name,
    day_on,
    node_uid,
    gpu_model_name,
    begin_at,
    end_at,
    installed_count * 1000000 as installed_micro_gpu,
    case
        when node_uid = '__unplaced__' then 0 else installed_count * 1000000
    end as unschedulable_micro_gpu,
    case when node_uid <> '__unplaced__' then 'not_in_cluster' end as cause_name,
    true as is_ready
from core.gpu_spells
where node_uid = '__unplaced__' or node_uid like '\_\_not\_in\_cluster\_\_/%' escape '\'
union all by name
select
    cluster_name,
    day_on,
    '__unplaced__' as node_uid,
    '__unknown__' as gpu_model_name,
    begin_at,
    end_at,
    installed_micro_gpu::bigint as installed_micro_gpu,
    0::bigint as unschedulable_micro_gpu,
    null::varchar as cause_name,
    true as is_ready
from held
where installed_micro_gpu > 0 and begin_at < end_at
