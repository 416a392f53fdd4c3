-- core.gpu_rules: The thresholds that hold for each GPU model and class of work: of several rules the best fitting.
select
    m.cluster_name,
    m.day_on,
    m.gpu_model_name,
    k.workload_class,
    r.* exclude (gpu_model_name, workload_class)
from (
    select distinct
        cluster_name,
        day_on,
        gpu_model_name
    from core.gpus
) as m
cross join (
    select distinct workload_class
    from core.holds
    union
    select '*' as workload_class
) as k
inner join raw.activity_rules as r
    on
        r.gpu_model_name in ('*', m.gpu_model_name)
        and r.workload_class in ('*', k.workload_class)
qualify
    row_number() over (
        partition by m.cluster_name, m.day_on, m.gpu_model_name, k.workload_class
        order by r.gpu_model_name = '*', r.workload_class = '*'
    ) = 1
