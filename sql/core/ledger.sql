-- core.ledger: Every GPU-second of the fleet exactly once: its holder, its state, its cost.
--
-- Integer arithmetic: each row is rounded down, what the hour's total has more is __rounding__'s.
with
stretches as (
    select
        b.cluster_name,
        b.day_on,
        b.node_uid,
        h.hold_id,
        h.workload_key_uid,
        h.team_name,
        s.state_name,
        s.cause_name,
        greatest(b.begin_at, s.begin_at) as begin_at,
        least(b.end_at, s.end_at) as end_at,
        (
            b.share_micro_gpu::hugeint * p.last_unit_count // p.hold_unit_count
            - b.share_micro_gpu::hugeint * p.first_unit_count // p.hold_unit_count
        )::bigint as share_micro_gpu
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
    inner join core.holds as h
        on b.cluster_name = h.cluster_name and b.day_on = h.day_on and b.hold_id = h.hold_id
    where b.share_micro_gpu > 0
    union all by name
    select
        cluster_name,
        day_on,
        node_uid,
        null::varchar as hold_id,
        null::varchar as workload_key_uid,
        team_name,
        state_name,
        cause_name,
        begin_at,
        end_at,
        share_micro_gpu
    from core.unheld_states
),

priced as (
    select
        s.* exclude (begin_at, end_at),
        p.price_id,
        p.price_micro_cost_per_gpu_hour,
        greatest(s.begin_at, p.begin_at) as begin_at,
        least(s.end_at, p.end_at) as end_at,
        timezone($zone, s.day_on::timestamp) as midnight_at
    from stretches as s
    inner join core.price_spells as p
        on
            s.cluster_name = p.cluster_name
            and s.day_on = p.day_on
            and s.node_uid = p.node_uid
            and s.begin_at < p.end_at
            and s.end_at > p.begin_at
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

summed as (
    select
        cluster_name,
        day_on,
        node_uid,
        midnight_at + to_hours(hour_number) as hour_at,
        hold_id,
        any_value(workload_key_uid) as workload_key_uid,
        team_name,
        state_name,
        cause_name,
        price_id,
        any_value(price_micro_cost_per_gpu_hour) as price_micro_cost_per_gpu_hour,
        sum(
            share_micro_gpu::hugeint
            * date_diff(
                'second',
                greatest(begin_at, midnight_at + to_hours(hour_number)),
                least(end_at, midnight_at + to_hours(hour_number + 1))
            )
        ) as micro_gpu_seconds
    from hours
    group by
        cluster_name,
        day_on,
        node_uid,
        hour_at,
        hold_id,
        team_name,
        state_name,
        cause_name,
        price_id
),

costed as (
    select
        *,
        micro_gpu_seconds * price_micro_cost_per_gpu_hour // 3600000000 as micro_cost
    from summed
),

remainders as (
    select
        cluster_name,
        day_on,
        node_uid,
        hour_at,
        price_id,
        (2 * sum(micro_gpu_seconds) * any_value(price_micro_cost_per_gpu_hour) + 3600000000)
        // 7200000000 - sum(micro_cost) as micro_cost
    from costed
    where price_id is not null
    group by cluster_name, day_on, node_uid, hour_at, price_id
),

models as (
    select
        cluster_name,
        day_on,
        node_uid,
        any_value(gpu_model_name) as gpu_model_name
    from core.node_spells
    group by cluster_name, day_on, node_uid
),

entries as (
    select
        cluster_name,
        day_on,
        node_uid,
        hour_at,
        hold_id,
        workload_key_uid,
        team_name,
        state_name,
        cause_name,
        price_id,
        micro_gpu_seconds,
        micro_cost
    from costed
    union all by name
    select
        cluster_name,
        day_on,
        node_uid,
        hour_at,
        null::varchar as hold_id,
        null::varchar as workload_key_uid,
        '__rounding__' as team_name,
        'rounding' as state_name,
        'none' as cause_name,
        price_id,
        0::hugeint as micro_gpu_seconds,
        micro_cost
    from remainders
    where micro_cost <> 0
)

select
    e.cluster_name,
    e.day_on,
    e.node_uid,
    m.gpu_model_name,
    e.hour_at,
    e.hold_id,
    e.workload_key_uid,
    e.team_name,
    e.state_name,
    e.cause_name,
    e.price_id,
    (e.micro_gpu_seconds::decimal(24, 0) * 0.000001::decimal(7, 6))::decimal(18, 6) as gpu_seconds,
    (e.micro_cost::decimal(24, 0) * 0.000001::decimal(7, 6))::decimal(18, 6) as ledger_cost
from entries as e
inner join models as m
    on e.cluster_name = m.cluster_name and e.day_on = m.day_on and e.node_uid = m.node_uid
