-- core.pod_asks: The GPU share that each pod asks for: by extended resources, and by claims.
with
-- What one unit of a resource is, where the pod's node does not say: as elsewhere in the cluster.
units as (
    select
        cluster_name,
        day_on,
        r.resource_name,
        max(r.share_micro_gpu) as share_micro_gpu
    from (
        select
            cluster_name,
            day_on,
            unnest(resources) as r
        from raw.node_versions
    ) as u
    -- Without capacity a resource is listed with no share: that is not what one unit is.
    where r.share_micro_gpu > 0
    group by cluster_name, day_on, r.resource_name
),

latest as (
    select
        cluster_name,
        day_on,
        pod_uid,
        max(sequence_number) as last_sequence_number
    from raw.pod_versions
    group by cluster_name, day_on, pod_uid
),

asks as (
    select
        q.cluster_name,
        q.day_on,
        q.pod_uid,
        q.r.request_count * coalesce(
            u.share_micro_gpu, case q.r.resource_name when 'milli-gpu' then 1000 else 1000000 end
        ) as asked_micro_gpu
    from (
        select
            f.cluster_name,
            f.day_on,
            f.pod_uid,
            unnest(v.requests) as r
        from latest as f
        inner join raw.pod_versions as v
            on
                f.cluster_name = v.cluster_name
                and f.day_on = v.day_on
                and f.last_sequence_number = v.sequence_number
    ) as q
    left join units as u
        on
            q.cluster_name = u.cluster_name
            and q.day_on = u.day_on
            and q.r.resource_name = u.resource_name
    -- What a claim stands for counts by the claim.
    anti join core.pod_claims as c
        on
            q.cluster_name = c.cluster_name
            and q.day_on = c.day_on
            and q.pod_uid = c.pod_uid
            and list_contains(string_split(c.resources_text, ','), q.r.resource_name)
    union all by name
    select
        cluster_name,
        day_on,
        pod_uid,
        asked_micro_gpu
    from core.pod_claims
)

select
    cluster_name,
    day_on,
    pod_uid,
    sum(asked_micro_gpu)::bigint as asked_micro_gpu
from asks
group by cluster_name, day_on, pod_uid
