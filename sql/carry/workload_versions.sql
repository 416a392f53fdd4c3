-- raw.workload_versions: The copy of each Kueue Workload at the end of a day, for the day after.
--
-- An attempt that has lost its quota goes along while it has pods, as it was when it had quota; so
-- does a Workload that is deleted. A deletion is final: another recorder's older version may have
-- been observed after it.
with
versions as (
    select
        *,
        max(sequence_number) over (partition by workload_uid) as last_sequence_number,
        bool_or(change_name = 'DELETED' or deleted_at is not null)
            over (partition by workload_uid) as is_deleted
    from raw.workload_versions
),

needed as (
    select
        workload_uid,
        attempt_number
    from core.attempts
    where ended_at is null
    union
    select
        workload_uid,
        attempt_number
    from core.pods
    where ended_at is null
),

attempts as (
    select
        a.*,
        max(a.attempt_number) over (partition by a.workload_uid) = a.attempt_number as is_current,
        max(a.deleted_at) over (partition by a.workload_uid) as workload_deleted_at,
        n.workload_uid is not null as is_needed
    from core.admissions as a
    left join needed as n
        on a.workload_uid = n.workload_uid and a.attempt_number = n.attempt_number
),

kept as (
    select
        v.* replace (a.workload_deleted_at as deleted_at),
        a.attempt_number as kept_number,
        a.queued_at as kept_queued_at,
        a.attempt_queued_at as kept_submitted_at,
        a.eligible_at as kept_eligible_at,
        a.is_queued_known as is_kept_queued_known,
        a.quota_released_at as kept_released_at,
        a.pods_ready_at as kept_pods_ready_at
    from attempts as a
    inner join versions as v
        on
            a.workload_uid = v.workload_uid
            and (
                case
                    when a.is_current then v.sequence_number = v.last_sequence_number
                    else
                        v.is_quota_reserved
                        and date_trunc('second', v.quota_reserved_at) = a.quota_reserved_at
                end
            )
    where a.is_needed or (a.is_current and not v.is_deleted)
    qualify
        row_number() over (
            partition by a.workload_uid, a.attempt_number order by v.sequence_number desc
        ) = 1
)

select
    k.* exclude (
        day_on, sequence_number, observed_at, change_name, is_deleted, last_sequence_number,
        attempt_number, attempt_queued_at, attempt_submitted_at, attempt_eligible_at,
        is_queued_known, attempt_released_at, attempt_pods_ready_at, kept_number, kept_queued_at,
        kept_submitted_at, kept_eligible_at, is_kept_queued_known, kept_released_at,
        kept_pods_ready_at
    ),
    $next_on::date as day_on,
    row_number() over (order by k.sequence_number, k.workload_uid, k.kept_number) - 1
        as sequence_number,
    $next_at::timestamptz as observed_at,
    'CARRIED' as change_name,
    k.kept_number as attempt_number,
    k.kept_queued_at as attempt_queued_at,
    k.kept_submitted_at as attempt_submitted_at,
    k.kept_eligible_at as attempt_eligible_at,
    k.is_kept_queued_known as is_queued_known,
    k.kept_released_at as attempt_released_at,
    k.kept_pods_ready_at as attempt_pods_ready_at
from kept as k
