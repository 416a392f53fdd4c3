-- raw.pod_group_versions: The copy of each PodGroup at the end of a day, for the day after.
--
-- A deletion is final: another recorder's older version may have been observed after it.
with
latest as (
    select
        *,
        bool_or(change_name = 'DELETED') over (partition by pod_group_uid) as is_deleted
    from raw.pod_group_versions
    qualify row_number() over (partition by pod_group_uid order by sequence_number desc) = 1
),

tries as (
    select
        namespace_name,
        gang_name,
        max(attempt_queued_at) as queued_at,
        case when bool_and(ended_at is not null) then max(gone_at) end as requeued_at
    from core.pods
    where gang_name is not null
    group by namespace_name, gang_name
),

admissions as (
    select
        v.pod_group_uid,
        min(coalesce(v.admitted_at, v.observed_at)) as admitted_at
    from raw.pod_group_versions as v
    left join tries as t
        on v.namespace_name = t.namespace_name and v.pod_group_name = t.gang_name
    where
        v.phase_name in ('Inqueue', 'Running')
        and (v.change_name <> 'CARRIED' or v.admitted_at is not null)
        and date_trunc('second', coalesce(v.admitted_at, v.observed_at))
        >= coalesce(t.queued_at, '-infinity'::timestamptz)
    group by v.pod_group_uid
)

select
    v.* exclude (
        day_on, sequence_number, observed_at, change_name, admitted_at, requeued_at, is_deleted
    ),
    $next_on::date as day_on,
    row_number() over (order by v.sequence_number) - 1 as sequence_number,
    $next_at::timestamptz as observed_at,
    'CARRIED' as change_name,
    a.admitted_at,
    case when t.queued_at is null then v.requeued_at else t.requeued_at end as requeued_at
from latest as v
left join tries as t
    on v.namespace_name = t.namespace_name and v.pod_group_name = t.gang_name
left join admissions as a
    on v.pod_group_uid = a.pod_group_uid
where not v.is_deleted
