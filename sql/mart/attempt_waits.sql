-- mart.attempt_waits: The waits of each attempt as known at the day's end; its latest row is current.
with
waits as (
    select
        cluster_name,
        day_on,
        attempt_id,
        sum(wait_seconds) filter (where wait_name <> 'start') as queue_wait_seconds,
        sum(wait_seconds) filter (where wait_name = 'start' and not is_censored)
            as start_wait_seconds,
        sum(wait_seconds) filter (where wait_name = 'quota') as quota_wait_seconds
    from core.waits
    group by cluster_name, day_on, attempt_id
)

select
    a.cluster_name,
    a.day_on,
    a.attempt_id,
    a.workload_key_uid,
    l.workload_name,
    a.team_name,
    a.queue_name,
    a.gpu_shape_name,
    a.is_service,
    a.gpu_shape_name <> 'cpu' as is_gpu,
    a.is_start_known,
    a.queued_at,
    timezone($zone, a.queued_at)::date as queued_on,
    a.placed_at,
    a.started_at,
    a.ended_at,
    a.known_until_at,
    case
        when a.placed_at is not null then 'served'
        when a.ended_at is not null then 'left'
        else 'waiting'
    end as outcome_name,
    w.queue_wait_seconds::bigint as queue_wait_seconds,
    w.start_wait_seconds::bigint as start_wait_seconds,
    coalesce(w.quota_wait_seconds, 0)::bigint as quota_wait_seconds,
    a.asked_micro_gpu,
    (
        (a.asked_micro_gpu::hugeint * w.queue_wait_seconds)::decimal(24, 0)
        * 0.000001::decimal(7, 6)
    )::decimal(18, 6) as waited_gpu_seconds
from core.attempts as a
inner join waits as w
    on a.cluster_name = w.cluster_name and a.day_on = w.day_on and a.attempt_id = w.attempt_id
inner join core.workloads as l
    on
        a.cluster_name = l.cluster_name
        and a.day_on = l.day_on
        and a.workload_key_uid = l.workload_key_uid
