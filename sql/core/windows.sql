-- core.windows: The part of the day in which the cluster is known at all, and how pods are placed in it.
with
nodes as (
    select distinct
        cluster_name,
        day_on
    from raw.node_versions
)

select
    c.cluster_name,
    c.day_on,
    min(date_trunc('second', c.begin_at)) as begin_at,
    max(date_trunc('second', c.end_at)) as end_at,
    bool_and(c.is_placed) as is_placed,
    -- Nodes heard of shortly after the day's end were there in it.
    bool_or(c.is_inventory_known or n.day_on is not null) as is_inventory_known,
    coalesce(
        sum(date_diff('second', date_trunc('second', c.begin_at), date_trunc('second', c.end_at)))
        filter (where c.coverage_name in ('watched', 'sampled', 'table')),
        0
    )::bigint as watched_seconds,
    date_diff(
        'second', min(date_trunc('second', c.begin_at)), max(date_trunc('second', c.end_at))
    )::bigint as known_seconds
from raw.coverage as c
left join nodes as n
    on c.cluster_name = n.cluster_name and c.day_on = n.day_on
group by c.cluster_name, c.day_on
