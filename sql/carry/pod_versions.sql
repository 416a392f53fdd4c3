-- raw.pod_versions: The copy of each pod alive at the end of a day, for the day after.
--
-- Ended members go along while their attempt lives: a gang that lost one must still know it. So do,
-- until they are deleted, pods of which no container says when it finished: only the day that saw
-- them end knows it, and a later version would have them hold until then.
with
alive as (
    select distinct attempt_id
    from core.pods
    where ended_at is null
    union
    select attempt_id
    from core.attempts
    where ended_at is null
),

-- A later attempt must know that it is not the first: it does not wait since the submission.
tried as (
    select arg_max(pod_uid, (gone_at, pod_uid)) filter (where deleted_at is null) as pod_uid
    from core.pods
    where not is_service and submitted_at is not null
    group by workload_key_uid
    having bool_and(ended_at is not null)
)

select
    v.* exclude (
        day_on, sequence_number, observed_at, change_name, bound_at, node_name, finished_at,
        deletion_asked_at, first_started_at, first_ready_at, gang_complete_at, attempt_queued_at,
        attempt_created_at, team_name, user_name, seen_at, claims
    ),
    $next_on::date as day_on,
    row_number() over (order by v.sequence_number) - 1 as sequence_number,
    $next_at::timestamptz as observed_at,
    'CARRIED' as change_name,
    p.bound_at,
    p.node_name,
    p.ended_at as finished_at,
    p.deletion_asked_at,
    p.first_started_at,
    p.first_ready_at,
    t.complete_at as gang_complete_at,
    p.attempt_queued_at,
    p.attempt_created_at,
    case when p.bound_at is not null then p.team_name end as team_name,
    p.user_name,
    coalesce(v.seen_at, v.observed_at) as seen_at,
    coalesce(v.claims, []) as claims
from core.pods as p
inner join raw.pod_versions as v
    on p.last_sequence_number = v.sequence_number
left join core.attempts as t
    on p.attempt_id = t.attempt_id
where
    p.attempt_id in (select a.attempt_id from alive as a)
    or p.pod_uid in (select d.pod_uid from tried as d)
    or (p.deleted_at is null and (v.change_name = 'CARRIED' or v.finished_at = v.observed_at))
