-- core.overlays: What holds' time was worth, beside the ledger: by hold, hour and overlay.
with
pieces as (
    select
        b.cluster_name,
        b.day_on,
        b.hold_id,
        b.node_uid,
        p.gpu_uuid,
        p.instance_number,
        s.state_name = 'active' as is_active,
        greatest(b.begin_at, s.begin_at) as begin_at,
        least(b.end_at, s.end_at) as end_at,
        b.share_micro_gpu::hugeint * p.last_unit_count // p.hold_unit_count
        - b.share_micro_gpu::hugeint * p.first_unit_count // p.hold_unit_count as share_micro_gpu
    from core.bookings as b
    inner join core.hold_states as s
        on
            b.cluster_name = s.cluster_name
            and b.day_on = s.day_on
            and b.hold_id = s.hold_id
            and b.begin_at < s.end_at
            and b.end_at > s.begin_at
    inner join core.hold_parts as p
        on
            s.cluster_name = p.cluster_name
            and s.day_on = p.day_on
            and s.hold_id = p.hold_id
            and s.part_number = p.part_number
    where p.gpu_uuid is not null and s.state_name <> 'unavailable' and b.share_micro_gpu > 0
),

readings as (
    select
        p.cluster_name,
        p.day_on,
        p.hold_id,
        p.node_uid,
        p.share_micro_gpu,
        greatest(p.begin_at, g.begin_at) as begin_at,
        least(p.end_at, g.end_at) as end_at,
        g.sm_seconds / date_diff('second', g.begin_at, g.end_at) as observed_ratio,
        case
            when p.is_active
                then g.sm_active_seconds / date_diff('second', g.begin_at, g.end_at)
            else 0
        end as effective_ratio
    from pieces as p
    inner join core.gpu_states as g
        on
            p.cluster_name = g.cluster_name
            and p.day_on = g.day_on
            and p.node_uid = g.node_uid
            and p.gpu_uuid = g.gpu_uuid
            and p.instance_number = g.instance_number
            and p.begin_at < g.end_at
            and p.end_at > g.begin_at
    where g.sm_seconds > 0
),

priced as (
    select
        r.* exclude (begin_at, end_at),
        p.price_micro_cost_per_gpu_hour,
        greatest(r.begin_at, p.begin_at) as begin_at,
        least(r.end_at, p.end_at) as end_at,
        timezone($zone, r.day_on::timestamp) as midnight_at
    from readings as r
    inner join core.price_spells as p
        on
            r.cluster_name = p.cluster_name
            and r.day_on = p.day_on
            and r.node_uid = p.node_uid
            and r.begin_at < p.end_at
            and r.end_at > p.begin_at
),

hours as (
    select
        *,
        unnest(range(
            date_diff('second', midnight_at, begin_at) // 3600,
            (date_diff('second', midnight_at, end_at) - 1) // 3600 + 1
        )) as hour_number
    from priced
),

weighed as (
    select
        cluster_name,
        day_on,
        hold_id,
        midnight_at + to_hours(hour_number) as hour_at,
        price_micro_cost_per_gpu_hour,
        observed_ratio,
        effective_ratio,
        share_micro_gpu * date_diff(
            'second',
            greatest(begin_at, midnight_at + to_hours(hour_number)),
            least(end_at, midnight_at + to_hours(hour_number + 1))
        ) as micro_gpu_seconds
    from hours
),

named as (
    select
        *,
        'sm_observed' as overlay_name,
        observed_ratio as weight
    from weighed
    union all by name
    select
        *,
        'effective' as overlay_name,
        effective_ratio as weight
    from weighed
    where effective_ratio > 0
)

select
    cluster_name,
    day_on,
    hold_id,
    hour_at,
    overlay_name,
    (sum(micro_gpu_seconds * weight) / 1000000)::decimal(18, 6) as gpu_seconds,
    (coalesce(
        sum(micro_gpu_seconds * weight) filter (where price_micro_cost_per_gpu_hour is null), 0
    ) / 1000000)::decimal(18, 6) as unpriced_gpu_seconds,
    (sum(micro_gpu_seconds * weight * price_micro_cost_per_gpu_hour) / 3600000000000000)
    ::decimal(18, 6) as overlay_cost,
    'sm_ratio of raw.gpu_samples' as evidence_text,
    1::bigint as version_number
from named
group by cluster_name, day_on, hold_id, hour_at, overlay_name
