-- raw.slice_versions: The copy of each ResourceSlice at the end of a day, for the day after.
--
-- A deletion is final: another recorder's older version may have been observed after it.
with
latest as (
    select
        *,
        bool_or(change_name = 'DELETED') over (partition by slice_uid) as is_deleted
    from raw.slice_versions
    qualify row_number() over (partition by slice_uid order by sequence_number desc) = 1
)

select
    v.* exclude (day_on, sequence_number, observed_at, change_name, is_deleted),
    $next_on::date as day_on,
    row_number() over (order by v.sequence_number) - 1 as sequence_number,
    $next_at::timestamptz as observed_at,
    'CARRIED' as change_name
from latest as v
where not v.is_deleted
