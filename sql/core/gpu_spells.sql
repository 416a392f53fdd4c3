-- core.gpu_spells: How many GPUs of a model are installed on a node, from when to when.
--
-- Where pods name no node, all GPUs of the cluster sit on __unplaced__. What the inventory says
-- beyond the nodes sits on __not_in_cluster__/<model>.
with
placed as (
    select
        n.cluster_name,
        n.day_on,
        n.node_uid,
        n.gpu_model_name,
        n.begin_at,
        n.end_at,
        n.installed_count,
        n.count_source_name
    from core.nodes as n
    inner join core.windows as w
        on n.cluster_name = w.cluster_name and n.day_on = w.day_on
    where w.is_placed and n.begin_at < n.end_at
),

unplaced as (
    select
        n.cluster_name,
        n.day_on,
        '__unplaced__' as node_uid,
        '__unknown__' as gpu_model_name,
        w.begin_at,
        w.end_at,
        sum(n.installed_count)::bigint as installed_count,
        'sum of nodes' as count_source_name
    from core.nodes as n
    inner join core.windows as w
        on n.cluster_name = w.cluster_name and n.day_on = w.day_on
    where not w.is_placed
    group by n.cluster_name, n.day_on, w.begin_at, w.end_at
),

inventory as (
    select
        f.cluster_name,
        w.day_on,
        f.gpu_model_name,
        greatest(date_trunc('second', f.begin_at), w.begin_at) as begin_at,
        least(coalesce(date_trunc('second', f.end_at), w.end_at), w.end_at) as end_at,
        f.gpu_count
    from raw.fleet as f
    inner join core.windows as w
        on f.cluster_name = w.cluster_name
    where w.is_placed and w.is_inventory_known
),

steps as (
    select
        cluster_name,
        day_on,
        gpu_model_name,
        begin_at as edge_at,
        gpu_count as step_count
    from inventory
    where begin_at < end_at
    union all by name
    select
        cluster_name,
        day_on,
        gpu_model_name,
        end_at as edge_at,
        -gpu_count as step_count
    from inventory
    where begin_at < end_at
    union all by name
    select
        p.cluster_name,
        p.day_on,
        p.gpu_model_name,
        p.begin_at as edge_at,
        -p.installed_count as step_count
    from placed as p
    semi join inventory as i
        on
            p.cluster_name = i.cluster_name
            and p.day_on = i.day_on
            and p.gpu_model_name = i.gpu_model_name
    union all by name
    select
        p.cluster_name,
        p.day_on,
        p.gpu_model_name,
        p.end_at as edge_at,
        p.installed_count as step_count
    from placed as p
    semi join inventory as i
        on
            p.cluster_name = i.cluster_name
            and p.day_on = i.day_on
            and p.gpu_model_name = i.gpu_model_name
),

missing as (
    select
        cluster_name,
        day_on,
        gpu_model_name,
        edge_at as begin_at,
        lead(edge_at) over models as end_at,
        sum(sum(step_count)) over models as installed_count
    from steps
    group by cluster_name, day_on, gpu_model_name, edge_at
    window models as (partition by cluster_name, day_on, gpu_model_name order by edge_at)
)

select *
from placed
union all by name
select *
from unplaced
union all by name
select
    cluster_name,
    day_on,
    '__not_in_cluster__/' || gpu_model_name as node_uid,
    gpu_model_name,
    begin_at,
    end_at,
    installed_count::bigint as installed_count,
    'fleet' as count_source_name
from missing
where installed_count > 0 and begin_at < end_at
