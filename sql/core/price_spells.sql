-- core.price_spells: The price of a GPU-hour on each node, from when to when.
--
-- Of the rows valid by then that match the node the highest rank counts, then the latest one, and
-- of that the figure at the latest exchange rate.
with
nodes as (
    select
        s.cluster_name,
        s.day_on,
        s.node_uid,
        any_value(s.gpu_model_name) as gpu_model_name,
        min(s.begin_at) as begin_at,
        max(s.end_at) as end_at,
        any_value(n.node_name) as node_name,
        coalesce(any_value(n.capacity_type_name), 'unknown') as capacity_type_name,
        coalesce(any_value(n.labels_json), '{}') as labels_json
    from core.node_spells as s
    left join core.nodes as n
        on s.cluster_name = n.cluster_name and s.day_on = n.day_on and s.node_uid = n.node_uid
    group by s.cluster_name, s.day_on, s.node_uid
),

matches as (
    select
        n.cluster_name,
        n.day_on,
        n.node_uid,
        n.begin_at,
        n.end_at,
        p.price_id,
        p.rank_number,
        p.price_micro_cost_per_gpu_hour,
        p.valid_from_at,
        date_trunc('second', p.applies_from_at) as applies_from_at,
        concat_ws(
            '|',
            p.rank_number,
            coalesce(p.cluster_name, ''),
            coalesce(p.node_name, ''),
            coalesce(p.label_key_name, ''),
            coalesce(p.label_value_text, ''),
            coalesce(p.gpu_model_name, ''),
            coalesce(p.capacity_type_name, '')
        ) as coverage_key
    from nodes as n
    inner join raw.prices as p
        on
            coalesce(p.cluster_name, n.cluster_name) = n.cluster_name
            and coalesce(p.gpu_model_name, n.gpu_model_name) = n.gpu_model_name
            and coalesce(p.capacity_type_name, n.capacity_type_name) = n.capacity_type_name
            and (p.node_name is null or p.node_name = n.node_name)
            and (
                p.label_key_name is null
                or json_extract_string(n.labels_json, '$."' || p.label_key_name || '"')
                = p.label_value_text
            )
            and p.applies_from_at < n.end_at
),

edges as (
    select distinct
        cluster_name,
        day_on,
        node_uid,
        edge_at
    from (
        select
            cluster_name,
            day_on,
            node_uid,
            begin_at as edge_at
        from nodes
        union all by name
        select
            cluster_name,
            day_on,
            node_uid,
            applies_from_at as edge_at
        from matches
        where applies_from_at > begin_at
    ) as u
),

spells as (
    select
        e.cluster_name,
        e.day_on,
        e.node_uid,
        e.edge_at as begin_at,
        coalesce(lead(e.edge_at) over nodes_edges, n.end_at) as end_at
    from edges as e
    inner join nodes as n
        on e.cluster_name = n.cluster_name and e.day_on = n.day_on and e.node_uid = n.node_uid
    window nodes_edges as (partition by e.cluster_name, e.day_on, e.node_uid order by e.edge_at)
),

chosen as (
    select
        s.cluster_name,
        s.day_on,
        s.node_uid,
        s.begin_at,
        s.end_at,
        arg_max(m.price_id, (m.rank_number, m.valid_from_at, m.applies_from_at)) as price_id,
        arg_max(
            m.price_micro_cost_per_gpu_hour, (m.rank_number, m.valid_from_at, m.applies_from_at)
        ) as price_micro_cost_per_gpu_hour,
        max(m.rank_number) as rank_number
    from spells as s
    left join matches as m
        on
            s.cluster_name = m.cluster_name
            and s.day_on = m.day_on
            and s.node_uid = m.node_uid
            and s.begin_at >= m.applies_from_at
    group by s.cluster_name, s.day_on, s.node_uid, s.begin_at, s.end_at
)

select
    c.cluster_name,
    c.day_on,
    c.node_uid,
    c.begin_at,
    c.end_at,
    c.price_id,
    c.price_micro_cost_per_gpu_hour,
    count(distinct m.coverage_key)::bigint as candidate_count
from chosen as c
left join matches as m
    on
        c.cluster_name = m.cluster_name
        and c.day_on = m.day_on
        and c.node_uid = m.node_uid
        and c.rank_number = m.rank_number
        and c.begin_at >= m.applies_from_at
group by all
