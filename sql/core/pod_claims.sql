-- core.pod_claims: The claims of each pod, and the GPU share that it asks for by them.
--
-- A claim that was allocated asks for what it got, evenly split among those it was reserved for at
-- most at once; another for what it says, each device whole where its class does not tell its part.
with
folded as (
    select
        cluster_name,
        day_on,
        pod_uid,
        any_value(namespace_name) as namespace_name,
        arg_max(claims, sequence_number) as claims
    from raw.pod_versions
    where len(claims) > 0
    group by cluster_name, day_on, pod_uid
),

named as (
    select
        cluster_name,
        day_on,
        pod_uid,
        namespace_name,
        c.claim_name,
        coalesce(
            string_agg(c.resource_name, ',' order by c.resource_name)
            filter (where c.resource_name is not null),
            ''
        ) as resources_text
    from (
        select
            * exclude (claims),
            unnest(claims) as c
        from folded
    ) as f
    group by cluster_name, day_on, pod_uid, namespace_name, c.claim_name
),

claims as (
    select
        cluster_name,
        day_on,
        claim_uid,
        any_value(namespace_name) as namespace_name,
        any_value(claim_name) as claim_name,
        any_value(owner_pod_uid) as owner_pod_uid,
        arg_max(requests, sequence_number) as requests,
        max(len(list_filter(reserved_for, lambda r: r.kind_name = 'pods'))) as reserved_count,
        flatten(list(list_transform(reserved_for, lambda r: r.object_uid))) as reserved_uids,
        arg_max(devices, sequence_number) filter (where len(devices) > 0) as devices,
        max(sequence_number) as last_sequence_number
    from raw.claim_versions
    group by cluster_name, day_on, claim_uid
),

-- Names are used again: the claim reserved for the pod, else made for it, else the latest.
meant as (
    select
        n.cluster_name,
        n.day_on,
        n.pod_uid,
        n.resources_text,
        c.claim_uid,
        c.requests,
        c.devices,
        case
            when list_contains(c.reserved_uids, n.pod_uid) then greatest(c.reserved_count, 1)
            else 1
        end as sharing_count
    from named as n
    inner join claims as c
        on
            n.cluster_name = c.cluster_name
            and n.day_on = c.day_on
            and n.namespace_name = c.namespace_name
            and n.claim_name = c.claim_name
    qualify
        row_number() over (
            partition by n.cluster_name, n.day_on, n.pod_uid, n.claim_name
            order by
                list_contains(c.reserved_uids, n.pod_uid) desc,
                coalesce(c.owner_pod_uid = n.pod_uid, false) desc,
                c.last_sequence_number desc
        ) = 1
),

got as (
    select
        r.cluster_name,
        r.day_on,
        r.claim_uid,
        r.d.request_name,
        r.d.driver_name,
        r.d.pool_name,
        r.d.device_name,
        coalesce(k.is_gpu, r.d.is_gpu, false) as is_gpu,
        case
            when r.d.consumed_mib is null or k.memory_mib is null then k.share_micro_gpu
            else least(
                k.share_micro_gpu, k.share_micro_gpu * r.d.consumed_mib // nullif(k.memory_mib, 0)
            )
        end as share_micro_gpu
    from (
        select
            cluster_name,
            day_on,
            claim_uid,
            unnest(devices) as d
        from claims
    ) as r
    left join (
        select
            cluster_name,
            day_on,
            driver_name,
            pool_name,
            device_name,
            arg_max(is_gpu, begin_at) as is_gpu,
            arg_max(memory_mib, begin_at) as memory_mib,
            arg_max(share_micro_gpu, begin_at) as share_micro_gpu
        from core.slice_devices
        group by cluster_name, day_on, driver_name, pool_name, device_name
    ) as k
        on
            r.cluster_name = k.cluster_name
            and r.day_on = k.day_on
            and r.d.driver_name = k.driver_name
            and r.d.pool_name = k.pool_name
            and r.d.device_name = k.device_name
    where not r.d.is_admin
),

allocated as (
    select
        cluster_name,
        day_on,
        claim_uid,
        sum(coalesce(share_micro_gpu, 1000000)) filter (where is_gpu) as got_micro_gpu
    from got
    group by cluster_name, day_on, claim_uid
),

requests as (
    select
        cluster_name,
        day_on,
        claim_uid,
        unnest(requests) as q
    from claims
),

-- A class of which a GPU was ever allocated that day is one of GPUs.
classes as (
    select distinct
        q.cluster_name,
        q.day_on,
        q.q.class_name
    from requests as q
    inner join got as g
        on
            q.cluster_name = g.cluster_name
            and q.day_on = g.day_on
            and q.claim_uid = g.claim_uid
            and q.q.request_name = g.request_name
    where g.is_gpu
),

wanted as (
    select
        q.cluster_name,
        q.day_on,
        q.claim_uid,
        sum(q.q.device_count * coalesce(q.q.share_micro_gpu, 1000000)) as asked_micro_gpu
    from requests as q
    left join classes as c
        on
            q.cluster_name = c.cluster_name
            and q.day_on = c.day_on
            and q.q.class_name = c.class_name
    where coalesce(q.q.is_gpu, c.class_name is not null)
    group by q.cluster_name, q.day_on, q.claim_uid
)

select
    m.cluster_name,
    m.day_on,
    m.pod_uid,
    m.claim_uid,
    string_agg(distinct m.resources_text, ',') as resources_text,
    max(
        case
            when len(m.devices) > 0 then coalesce(a.got_micro_gpu, 0) // m.sharing_count
            else coalesce(w.asked_micro_gpu, 0)
        end
    )::bigint as asked_micro_gpu
from meant as m
left join allocated as a
    on m.cluster_name = a.cluster_name and m.day_on = a.day_on and m.claim_uid = a.claim_uid
left join wanted as w
    on m.cluster_name = w.cluster_name and m.day_on = w.day_on and m.claim_uid = w.claim_uid
group by m.cluster_name, m.day_on, m.pod_uid, m.claim_uid
