-- mart.use_hours: Allocated against used, by hour, node, GPU model and holder.
select
    u.cluster_name,
    u.day_on,
    u.hour_at,
    u.node_uid,
    coalesce(any_value(n.node_name), u.node_uid) as node_name,
    u.gpu_model_name,
    u.team_name,
    sum(u.installed_gpu_seconds)::decimal(18, 6) as installed_gpu_seconds,
    sum(u.available_gpu_seconds)::decimal(18, 6) as available_gpu_seconds,
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
            when sum(u.installed_gpu_seconds) = 0 and sum(u.installed_cost) is null then 0 else
                sum(u.installed_cost)
        end
    )
    ::decimal(18, 6) as installed_cost,
    (
        case
            when sum(u.available_gpu_seconds) = 0 and sum(u.available_cost) is null then 0 else
                sum(u.available_cost)
        end
    )
    ::decimal(18, 6) as available_cost,
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
left join core.nodes as n
    on u.cluster_name = n.cluster_name and u.day_on = n.day_on and u.node_uid = n.node_uid
group by u.cluster_name, u.day_on, u.hour_at, u.node_uid, u.gpu_model_name, u.team_name
