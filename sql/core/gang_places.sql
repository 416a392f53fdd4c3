-- core.gang_places: The nodes that the missing members of stuck gangs could use; who could use the same waits at one place.
with
kinds as (
    select distinct
        cluster_name,
        day_on,
        needs_id,
        node_needs_json,
        resource_name,
        gpu_model_name
    from core.stuck_gangs
),

needs as (
    select
        *,
        unnest(json_keys(coalesce(node_needs_json, '{}'))) as key_name
    from kinds
),

needed as (
    select
        cluster_name,
        day_on,
        node_needs_json,
        key_name,
        (node_needs_json::json -> ('$."' || key_name || '"'))::varchar[] as some_values
    from needs
    where key_name <> ''
),

offers as (
    select distinct
        cluster_name,
        day_on,
        node_uid,
        r.resource_name
    from (
        select
            cluster_name,
            day_on,
            node_uid,
            unnest(resources) as r
        from raw.node_versions
    ) as u
    where r.share_micro_gpu > 0
),

barred as (
    select distinct
        n.cluster_name,
        n.day_on,
        n.node_uid,
        d.node_needs_json
    from needed as d
    inner join core.nodes as n
        on d.cluster_name = n.cluster_name and d.day_on = n.day_on
    where
        len(d.some_values) > 0
        and not coalesce(
            list_contains(
                d.some_values, json_extract_string(n.labels_json, '$."' || d.key_name || '"')
            ),
            false
        )
),

usable as (
    select
        k.cluster_name,
        k.day_on,
        k.needs_id,
        n.node_uid
    from kinds as k
    inner join core.nodes as n
        on k.cluster_name = n.cluster_name and k.day_on = n.day_on
    left join offers as o
        on
            n.cluster_name = o.cluster_name
            and n.day_on = o.day_on
            and n.node_uid = o.node_uid
            and k.resource_name = o.resource_name
    anti join barred as b
        on
            n.cluster_name = b.cluster_name
            and n.day_on = b.day_on
            and n.node_uid = b.node_uid
            and k.node_needs_json = b.node_needs_json
    where
        n.installed_count > 0
        and coalesce(k.gpu_model_name = n.gpu_model_name, true)
        and (k.resource_name is null or o.node_uid is not null)
)

select
    cluster_name,
    day_on,
    needs_id,
    node_uid,
    md5(string_agg(node_uid, ' ') over (
        partition by cluster_name, day_on, needs_id
        order by node_uid
        rows between unbounded preceding and unbounded following
    )) as place_id
from usable
