-- raw.node_versions: The copy of each node that stands at the end of a day, for the day after.
--
-- A deletion is final: another recorder's older version may have been observed after it.
with
sliced as (
    select distinct node_uid
    from core.slice_spells
    where schedulable_count > 0
),

latest as (
    select *
    from raw.node_versions
    qualify row_number() over (partition by node_uid order by sequence_number desc) = 1
),

memories as (
    select
        node_uid,
        max(greatest(gpu_count, largest_gpu_count)) as largest_gpu_count,
        -- Also by what ResourceSlices offered while it was Ready.
        bool_or(is_ever_ready or (is_ready and node_uid in (select s.node_uid from sliced as s)))
            as is_ever_ready,
        bool_or(change_name = 'DELETED') as is_deleted
    from raw.node_versions
    group by node_uid
)

select
    v.* exclude (
        day_on, sequence_number, observed_at, change_name, gpu_model_name, largest_gpu_count,
        is_ever_ready, count_source_name
    ),
    $next_on::date as day_on,
    row_number() over (order by v.sequence_number) - 1 as sequence_number,
    $next_at::timestamptz as observed_at,
    'CARRIED' as change_name,
    n.gpu_model_name,
    greatest(m.largest_gpu_count, n.installed_count) as largest_gpu_count,
    case
        when n.count_source_name = 'resource_slices' then n.count_source_name
        else v.count_source_name
    end as count_source_name,
    m.is_ever_ready
from latest as v
inner join memories as m
    on v.node_uid = m.node_uid
inner join core.nodes as n
    on v.node_uid = n.node_uid
where not m.is_deleted
