-- core.uses: The ledger as allocated against used, with its overlays: by hour, node and hold.
with
entries as (
    select
        *,
        state_name not in ('unrecorded', 'unavailable', 'rounding') as is_available,
        state_name in (
            'starting', 'gang_wait', 'loading', 'active', 'stalled', 'idle', 'unobserved',
            'terminating'
        ) as is_held,
        state_name in ('starting', 'gang_wait', 'loading', 'terminating') as is_waiting
    from core.ledger
),

sums as (
    select
        cluster_name,
        day_on,
        hour_at,
        node_uid,
        gpu_model_name,
        hold_id,
        workload_key_uid,
        team_name,
        sum(gpu_seconds) as installed_gpu_seconds,
        coalesce(sum(gpu_seconds) filter (where is_available), 0) as available_gpu_seconds,
        coalesce(sum(gpu_seconds) filter (where is_held), 0) as held_gpu_seconds,
        coalesce(sum(gpu_seconds) filter (where state_name = 'active'), 0) as active_gpu_seconds,
        coalesce(sum(gpu_seconds) filter (where state_name = 'idle'), 0) as idle_gpu_seconds,
        coalesce(sum(gpu_seconds) filter (where state_name = 'stalled'), 0) as stalled_gpu_seconds,
        coalesce(sum(gpu_seconds) filter (where is_waiting), 0) as waiting_gpu_seconds,
        coalesce(sum(gpu_seconds) filter (where state_name = 'unobserved'), 0)
            as unobserved_gpu_seconds,
        coalesce(sum(gpu_seconds) filter (where price_id is null), 0) as unpriced_gpu_seconds,
        sum(ledger_cost) as installed_cost,
        sum(ledger_cost) filter (where is_available) as available_cost,
        sum(ledger_cost) filter (where is_held) as held_cost,
        sum(ledger_cost) filter (where state_name = 'active') as active_cost,
        sum(ledger_cost) filter (where state_name = 'idle') as idle_cost,
        sum(ledger_cost) filter (where state_name = 'stalled') as stalled_cost,
        sum(ledger_cost) filter (where state_name = 'unobserved') as unobserved_cost
    from entries
    group by all
),

overlays as (
    select
        cluster_name,
        day_on,
        hour_at,
        hold_id,
        sum(gpu_seconds) filter (where overlay_name = 'sm_observed') as sm_observed_gpu_seconds,
        sum(gpu_seconds) filter (where overlay_name = 'effective') as effective_gpu_seconds,
        sum(overlay_cost) filter (where overlay_name = 'sm_observed') as sm_observed_cost,
        sum(overlay_cost) filter (where overlay_name = 'effective') as effective_cost
    from core.overlays
    group by cluster_name, day_on, hour_at, hold_id
)

select
    s.cluster_name,
    s.day_on,
    s.hour_at,
    s.node_uid,
    s.gpu_model_name,
    s.hold_id,
    s.workload_key_uid,
    s.team_name,
    s.installed_gpu_seconds::decimal(18, 6) as installed_gpu_seconds,
    s.available_gpu_seconds::decimal(18, 6) as available_gpu_seconds,
    s.held_gpu_seconds::decimal(18, 6) as held_gpu_seconds,
    s.active_gpu_seconds::decimal(18, 6) as active_gpu_seconds,
    s.idle_gpu_seconds::decimal(18, 6) as idle_gpu_seconds,
    s.stalled_gpu_seconds::decimal(18, 6) as stalled_gpu_seconds,
    s.waiting_gpu_seconds::decimal(18, 6) as waiting_gpu_seconds,
    s.unobserved_gpu_seconds::decimal(18, 6) as unobserved_gpu_seconds,
    coalesce(o.sm_observed_gpu_seconds, 0)::decimal(18, 6) as sm_observed_gpu_seconds,
    coalesce(o.effective_gpu_seconds, 0)::decimal(18, 6) as effective_gpu_seconds,
    s.unpriced_gpu_seconds::decimal(18, 6) as unpriced_gpu_seconds,
    s.installed_cost::decimal(18, 6) as installed_cost,
    s.available_cost::decimal(18, 6) as available_cost,
    s.held_cost::decimal(18, 6) as held_cost,
    s.active_cost::decimal(18, 6) as active_cost,
    s.idle_cost::decimal(18, 6) as idle_cost,
    s.stalled_cost::decimal(18, 6) as stalled_cost,
    s.unobserved_cost::decimal(18, 6) as unobserved_cost,
    o.sm_observed_cost::decimal(18, 6) as sm_observed_cost,
    o.effective_cost::decimal(18, 6) as effective_cost
from sums as s
left join overlays as o
    on
        s.cluster_name = o.cluster_name
        and s.day_on = o.day_on
        and s.hour_at = o.hour_at
        and s.hold_id = o.hold_id
