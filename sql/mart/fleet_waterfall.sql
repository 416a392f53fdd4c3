-- mart.fleet_waterfall: From installed to kept work, by day and GPU model; a null step is not measured.
--
-- The hour's rounding belongs to what is installed, so that the first step is the ledger's total.
with
steps (step_number, step_name, states, is_measured_step) as (
    values
    (1, 'installed', [
        'unrecorded', 'unavailable', 'unallocated', 'starting', 'gang_wait', 'loading',
        'active', 'stalled', 'idle', 'unobserved', 'terminating', 'rounding'
    ], false),
    (2, 'available', [
        'unallocated', 'starting', 'gang_wait', 'loading', 'active', 'stalled', 'idle',
        'unobserved', 'terminating'
    ], false),
    (3, 'allocated', [
        'starting', 'gang_wait', 'loading', 'active', 'stalled', 'idle', 'unobserved',
        'terminating'
    ], false),
    (4, 'started', ['active', 'stalled', 'idle', 'unobserved'], false),
    (5, 'unobserved', ['unobserved'], false),
    (6, 'active', ['active'], true),
    (7, 'effective', [], true),
    (8, 'kept', [], true)
),

days as (
    select
        cluster_name,
        day_on,
        gpu_model_name,
        bool_or(state_name in ('active', 'stalled', 'idle')) as is_measured
    from mart.fleet_states
    group by cluster_name, day_on, gpu_model_name
)

select
    d.cluster_name,
    d.day_on,
    d.gpu_model_name,
    s.step_number::bigint as step_number,
    s.step_name,
    (case
        when s.is_measured_step and (len(s.states) = 0 or not any_value(d.is_measured)) then null
        else coalesce(sum(f.gpu_seconds), 0)
    end)::decimal(18, 6) as gpu_seconds,
    (case
        when s.is_measured_step and (len(s.states) = 0 or not any_value(d.is_measured)) then null
        else coalesce(sum(f.unpriced_gpu_seconds), 0)
    end)::decimal(18, 6) as unpriced_gpu_seconds,
    (case
        when s.is_measured_step and (len(s.states) = 0 or not any_value(d.is_measured)) then null
        when count(f.state_name) = 0 then 0
        else sum(f.state_cost)
    end)::decimal(18, 6) as step_cost
from days as d
cross join steps as s
left join mart.fleet_states as f
    on
        d.cluster_name = f.cluster_name
        and d.day_on = f.day_on
        and d.gpu_model_name = f.gpu_model_name
        and list_contains(s.states, f.state_name)
group by
    d.cluster_name,
    d.day_on,
    d.gpu_model_name,
    s.step_number,
    s.step_name,
    s.states,
    s.is_measured_step
