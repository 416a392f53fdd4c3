-- raw.owner_versions: The copy of each object that owns pods, at the end of a day, for the day after.
--
-- One that is deleted goes along while a pod under it does: the pod must still find its top.
with
latest as (
    select *
    from raw.owner_versions
    qualify row_number() over (partition by object_uid order by sequence_number desc) = 1
),

memories as (
    select
        object_uid,
        bool_or(is_creation_seen) as is_creation_seen
    from raw.owner_versions
    group by object_uid
),

tried as (
    select
        workload_key_uid,
        min(queued_at) as first_queued_at
    from core.attempts
    group by workload_key_uid
),

needed as (
    select unnest(list_transform(p.owners, lambda o: o.object_uid)) as object_uid
    from core.pods as q
    inner join core.pod_lives as p
        on q.pod_uid = p.pod_uid
    left join core.attempts as t
        on q.attempt_id = t.attempt_id
    where q.deleted_at is null and (q.ended_at is null or t.ended_at is null)
)

select
    v.* exclude (
        day_on, sequence_number, observed_at, change_name, is_creation_seen, deleted_at,
        creator_name, first_queued_at
    ),
    $next_on::date as day_on,
    row_number() over (order by v.kind_name, v.sequence_number) - 1 as sequence_number,
    $next_at::timestamptz as observed_at,
    'CARRIED' as change_name,
    m.is_creation_seen,
    o.deleted_at,
    o.creator_name,
    coalesce(v.first_queued_at, t.first_queued_at) as first_queued_at
from latest as v
inner join memories as m
    on v.object_uid = m.object_uid
inner join core.owners as o
    on v.object_uid = o.object_uid
left join tried as t
    on v.workload_key_uid = t.workload_key_uid
where o.deleted_at is null or v.object_uid in (select n.object_uid from needed as n)
