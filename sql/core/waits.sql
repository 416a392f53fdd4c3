-- core.waits: What each attempt waited for, tiling the time from queued to started.
--
-- A wait that has not ended is censored at the attempt's end or at what is known, not left out.
with
steps as (
    select
        cluster_name,
        day_on,
        attempt_id,
        queued_at,
        case when workload_uid is not null then eligible_at else queued_at end as eligible_at,
        quota_reserved_at,
        admitted_at,
        placed_at,
        started_at,
        is_start_known,
        -- Kueue keeps quota and checks apart; a PodGroup's admission is both.
        coalesce(quota_reserved_at, case when workload_uid is null then admitted_at end)
            as given_at,
        coalesce(admitted_at, quota_reserved_at, eligible_at, queued_at) as waited_until_at,
        workload_uid is not null or is_in_pod_group as is_for_quota,
        workload_uid is not null as is_for_check,
        greatest(queued_at, coalesce(ended_at, known_until_at)) as until_at
    from core.attempts
),

waits as (
    select
        cluster_name,
        day_on,
        attempt_id,
        'dependency' as wait_name,
        queued_at as begin_at,
        coalesce(eligible_at, until_at) as end_at,
        eligible_at is null as is_censored
    from steps
    where
        eligible_at > queued_at
        or (eligible_at is null and given_at is null and placed_at is null)
    union all by name
    select
        cluster_name,
        day_on,
        attempt_id,
        'quota' as wait_name,
        coalesce(eligible_at, queued_at) as begin_at,
        coalesce(given_at, greatest(until_at, eligible_at)) as end_at,
        given_at is null as is_censored
    from steps
    where given_at is not null or (is_for_quota and placed_at is null and eligible_at is not null)
    union all by name
    select
        cluster_name,
        day_on,
        attempt_id,
        'check' as wait_name,
        quota_reserved_at as begin_at,
        coalesce(admitted_at, greatest(until_at, quota_reserved_at)) as end_at,
        admitted_at is null as is_censored
    from steps
    where
        is_for_check
        and quota_reserved_at is not null
        and (admitted_at is not null or placed_at is null)
    union all by name
    select
        cluster_name,
        day_on,
        attempt_id,
        'placement' as wait_name,
        waited_until_at as begin_at,
        coalesce(placed_at, greatest(until_at, waited_until_at)) as end_at,
        placed_at is null as is_censored
    from steps
    where admitted_at is not null or placed_at is not null or not is_for_quota
    union all by name
    select
        cluster_name,
        day_on,
        attempt_id,
        'start' as wait_name,
        placed_at as begin_at,
        coalesce(started_at, greatest(until_at, placed_at)) as end_at,
        started_at is null as is_censored
    from steps
    where placed_at is not null and is_start_known
)

select
    cluster_name,
    day_on,
    attempt_id,
    wait_name,
    begin_at,
    end_at,
    date_diff('second', begin_at, end_at) as wait_seconds,
    is_censored
from waits
