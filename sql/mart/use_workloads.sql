-- mart.use_workloads: Allocated against used, by day and workload.
select
    u.cluster_name,
    u.day_on,
    u.workload_key_uid,
    any_value(w.workload_kind_name) as workload_kind_name,
    any_value(w.namespace_name) as namespace_name,
    any_value(w.workload_name) as workload_name,
    any_value(w.workload_class) as workload_class,
    u.team_name,
    u.gpu_model_name,
    sum(u.held_gpu_seconds)::decimal(18, 6) as held_gpu_seconds,
    sum(u.active_gpu_seconds)::decimal(18, 6) as active_gpu_seconds,
    sum(u.idle_gpu_seconds)::decimal(18, 6) as idle_gpu_seconds,
    sum(u.stalled_gpu_seconds)::decimal(18, 6) as stalled_gpu_seconds,
    sum(u.waiting_gpu_seconds)::decimal(18, 6) as waiting_gpu_seconds,
    sum(u.unobserved_gpu_seconds)::decimal(18, 6) as unobserved_gpu_seconds,
    sum(u.sm_observed_gpu_seconds)::decimal(18, 6) as sm_observed_gpu_seconds,
    sum(u.effective_gpu_seconds)::decimal(18, 6) as effective_gpu_seconds,
    sum(u.unpriced_gpu_seconds)::decimal(18, 6) as unpriced_gpu_seconds,
    (
        case
            when sum(u.held_gpu_seconds) = 0 and sum(u.held_cost) is null then 0 else
                sum(u.held_cost)
        end
    )
    ::decimal(18, 6) as held_cost,
    (
        case
            when sum(u.active_gpu_seconds) = 0 and sum(u.active_cost) is null then 0 else
                sum(u.active_cost)
        end
    )
    ::decimal(18, 6) as active_cost,
    (
        case
            when sum(u.idle_gpu_seconds) = 0 and sum(u.idle_cost) is null then 0 else
                sum(u.idle_cost)
        end
    )
    ::decimal(18, 6) as idle_cost,
    (
        case
            when sum(u.stalled_gpu_seconds) = 0 and sum(u.stalled_cost) is null then 0 else
                sum(u.stalled_cost)
        end
    )
    ::decimal(18, 6) as stalled_cost,
    (
        case
            when sum(u.unobserved_gpu_seconds) = 0 and sum(u.unobserved_cost) is null then 0 else
                sum(u.unobserved_cost)
        end
    )
    ::decimal(18, 6) as unobserved_cost,
    (
        case
            when sum(u.sm_observed_gpu_seconds) = 0 and sum(u.sm_observed_cost) is null then 0 else
                sum(u.sm_observed_cost)
        end
    )
    ::decimal(18, 6) as sm_observed_cost,
    (
        case
            when sum(u.effective_gpu_seconds) = 0 and sum(u.effective_cost) is null then 0 else
                sum(u.effective_cost)
        end
    )
    ::decimal(18, 6) as effective_cost
from core.uses as u
inner join core.workloads as w
    on
        u.cluster_name = w.cluster_name
        and u.day_on = w.day_on
        and u.workload_key_uid = w.workload_key_uid
where u.hold_id is not null
group by u.cluster_name, u.day_on, u.workload_key_uid, u.team_name, u.gpu_model_name
