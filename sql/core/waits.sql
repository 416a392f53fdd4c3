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
        admitted_at,
        placed_at,
        started_at,
        is_start_known,
        is_in_pod_group and admitted_at is null and placed_at is null as is_held_back,
        greatest(queued_at, coalesce(ended_at, known_until_at)) as until_at
    from core.attempts
),

waits as (
    select
        cluster_name,
        day_on,
        attempt_id,
        'quota' as wait_name,
        queued_at as begin_at,
        coalesce(admitted_at, until_at) as end_at,
        is_held_back as is_censored
    from steps
    where admitted_at is not null or is_held_back
    union all by name
    select
        cluster_name,
        day_on,
        attempt_id,
        'placement' as wait_name,
        coalesce(admitted_at, queued_at) as begin_at,
        coalesce(placed_at, greatest(until_at, coalesce(admitted_at, queued_at))) as end_at,
        placed_at is null as is_censored
    from steps
    where not is_held_back
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
