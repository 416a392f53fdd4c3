-- mart.fleet_coverage: How much of each day is known: window, recorded share, observed share, priced share.
with
time_sums as (
    select
        cluster_name,
        day_on,
        sum(gpu_seconds) as installed_gpu_seconds,
        sum(gpu_seconds) filter (
            where state_name not in ('unrecorded', 'unavailable', 'unallocated', 'rounding')
        ) as held_gpu_seconds,
        sum(gpu_seconds) filter (
            where
            state_name not in (
                'unrecorded', 'unavailable', 'unallocated', 'rounding', 'unobserved'
            )
        ) as observed_gpu_seconds,
        sum(gpu_seconds) filter (where state_name = 'unrecorded') as unrecorded_gpu_seconds,
        sum(unpriced_gpu_seconds) as unpriced_gpu_seconds
    from core.gpu_hours
    group by cluster_name, day_on
),

unbooked as (
    select
        cluster_name,
        day_on,
        sum(gpu_seconds) as unbooked_gpu_seconds
    from core.unbooked
    group by cluster_name, day_on
),

rejected as (
    select
        cluster_name,
        day_on,
        sum(rejected_count) as rejected_count
    from raw.rejections
    where is_row_lost
    group by cluster_name, day_on
)

select
    w.cluster_name,
    w.day_on,
    w.end_at as known_until_at,
    w.known_seconds,
    w.watched_seconds,
    coalesce(t.installed_gpu_seconds, 0)::decimal(18, 6) as installed_gpu_seconds,
    coalesce(t.held_gpu_seconds, 0)::decimal(18, 6) as held_gpu_seconds,
    coalesce(t.observed_gpu_seconds, 0)::decimal(18, 6) as observed_gpu_seconds,
    coalesce(t.unrecorded_gpu_seconds, 0)::decimal(18, 6) as unrecorded_gpu_seconds,
    coalesce(t.unpriced_gpu_seconds, 0)::decimal(18, 6) as unpriced_gpu_seconds,
    coalesce(u.unbooked_gpu_seconds, 0)::decimal(18, 6) as unbooked_gpu_seconds,
    coalesce(r.rejected_count, 0)::bigint as rejected_count,
    w.is_inventory_known
from core.windows as w
left join time_sums as t
    on w.cluster_name = t.cluster_name and w.day_on = t.day_on
left join unbooked as u
    on w.cluster_name = u.cluster_name and w.day_on = u.day_on
left join rejected as r
    on w.cluster_name = r.cluster_name and w.day_on = r.day_on
