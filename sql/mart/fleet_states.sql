-- mart.fleet_states: GPU-time and cost by day, GPU model, state and cause: the whole fleet, nothing twice.
select
    cluster_name,
    day_on,
    gpu_model_name,
    state_name,
    cause_name,
    sum(gpu_seconds)::decimal(18, 6) as gpu_seconds,
    sum(unpriced_gpu_seconds)::decimal(18, 6) as unpriced_gpu_seconds,
    sum(hour_cost)::decimal(18, 6) as state_cost
from core.gpu_hours
group by cluster_name, day_on, gpu_model_name, state_name, cause_name
