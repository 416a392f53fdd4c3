-- raw.namespace_versions: The copy of each namespace at the end of a day, for the day after.
with
latest as (
    select *
    from raw.namespace_versions
    qualify row_number() over (partition by namespace_name order by sequence_number desc) = 1
)

select
    v.* exclude (day_on, sequence_number, observed_at, change_name),
    $next_on::date as day_on,
    row_number() over (order by v.sequence_number) - 1 as sequence_number,
    $next_at::timestamptz as observed_at,
    'CARRIED' as change_name
from latest as v
where v.change_name <> 'DELETED'
