-- core.gpu_hours: The ledger by hour, GPU model, holder, class, state and cause.
with
classes as (
    select
        cluster_name,
        day_on,
        hold_id,
        workload_class
    from core.holds
)

select
    l.cluster_name,
    l.day_on,
    l.hour_at,
    l.gpu_model_name,
    l.team_name,
    coalesce(c.workload_class, '__none__') as workload_class,
    l.state_name,
    l.cause_name,
    sum(l.gpu_seconds)::decimal(18, 6) as gpu_seconds,
    coalesce(sum(l.gpu_seconds) filter (where l.price_id is null), 0)::decimal(18, 6)
        as unpriced_gpu_seconds,
    sum(l.ledger_cost)::decimal(18, 6) as hour_cost
from core.ledger as l
left join classes as c
    on l.cluster_name = c.cluster_name and l.day_on = c.day_on and l.hold_id = c.hold_id
group by all
