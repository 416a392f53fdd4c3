-- mart.workload_days: What each workload held and what it cost, by day.
select
    l.cluster_name,
    l.day_on,
    l.team_name,
    l.workload_key_uid,
    any_value(w.workload_kind_name) as workload_kind_name,
    any_value(w.namespace_name) as namespace_name,
    any_value(w.workload_name) as workload_name,
    any_value(w.workload_class) as workload_class,
    any_value(w.queue_name) as queue_name,
    any_value(w.user_name) as user_name,
    sum(l.gpu_seconds)::decimal(18, 6) as gpu_seconds,
    coalesce(
        sum(l.gpu_seconds) filter (
            where l.state_name in ('starting', 'gang_wait', 'stalled', 'idle', 'terminating')
        ),
        0
    )::decimal(18, 6) as waste_gpu_seconds,
    coalesce(sum(l.gpu_seconds) filter (where l.state_name = 'unobserved'), 0)::decimal(18, 6)
        as unobserved_gpu_seconds,
    coalesce(sum(l.gpu_seconds) filter (where l.price_id is null), 0)::decimal(18, 6)
        as unpriced_gpu_seconds,
    sum(l.ledger_cost)::decimal(18, 6) as workload_cost,
    -- What has no time costs nothing; what has time and no price costs nobody knows what.
    (case
        when
            not bool_or(
                l.state_name in ('starting', 'gang_wait', 'stalled', 'idle', 'terminating')
            ) then 0
        else
            sum(l.ledger_cost) filter (
                where l.state_name in ('starting', 'gang_wait', 'stalled', 'idle', 'terminating')
            )
    end)::decimal(18, 6) as waste_cost
from core.ledger as l
inner join core.workloads as w
    on
        l.cluster_name = w.cluster_name
        and l.day_on = w.day_on
        and l.workload_key_uid = w.workload_key_uid
where l.hold_id is not null
group by l.cluster_name, l.day_on, l.workload_key_uid, l.team_name
