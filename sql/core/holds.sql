-- core.holds: The day's piece of each interval in which a pod occupies GPU share on a node.
with
held as (
    select
        p.cluster_name,
        p.day_on,
        p.pod_uid,
        p.workload_key_uid,
        p.workload_class,
        p.attempt_id,
        p.team_name,
        case
            when w.is_placed and w.is_inventory_known then coalesce(p.node_uid, '__unknown__')
            else '__unplaced__'
        end as node_uid,
        v.requests,
        v.devices,
        p.bound_at,
        greatest(p.bound_at, w.begin_at) as begin_at,
        least(coalesce(p.ended_at, w.end_at), w.end_at) as end_at,
        p.bound_at >= w.begin_at as is_begin,
        p.ended_at is not null and p.ended_at <= w.end_at as is_end,
        p.source_ref
    from core.pods as p
    inner join core.windows as w
        on p.cluster_name = w.cluster_name and p.day_on = w.day_on
    inner join raw.pod_versions as v
        on
            p.cluster_name = v.cluster_name
            and p.day_on = v.day_on
            and p.last_sequence_number = v.sequence_number
    where p.bound_at is not null and not p.is_refused
),

pieces as (
    select *
    from held
    where begin_at < end_at
),

-- What one unit was on that node when the piece began: replicas and MIG layouts change.
units as (
    select
        cluster_name,
        day_on,
        node_uid,
        observed_at,
        sequence_number,
        r.resource_name,
        r.share_micro_gpu
    from (
        select
            cluster_name,
            day_on,
            node_uid,
            observed_at,
            sequence_number,
            unnest(resources) as r
        from raw.node_versions
    ) as u
    where r.share_micro_gpu > 0
    -- Kubelets report their node every few minutes; a version that changes nothing tells nothing.
    qualify
        r.share_micro_gpu is distinct from lag(r.share_micro_gpu) over (
            partition by cluster_name, day_on, node_uid, r.resource_name order by sequence_number
        )
),

asked as (
    select
        h.*,
        h.r.resource_name,
        h.r.request_count
    from (
        select
            *,
            unnest(requests) as r
        from pieces
        where len(devices) = 0
    ) as h
    -- What a claim stands for counts by the claim.
    anti join core.pod_claims as c
        on
            h.cluster_name = c.cluster_name
            and h.day_on = c.day_on
            and h.pod_uid = c.pod_uid
            and list_contains(string_split(c.resources_text, ','), h.r.resource_name)
),

distinct_units as (
    select
        a.cluster_name,
        a.day_on,
        a.pod_uid,
        a.resource_name,
        coalesce(
            arg_max(u.share_micro_gpu, u.sequence_number)
            filter (where date_trunc('second', u.observed_at) <= a.begin_at),
            arg_min(u.share_micro_gpu, u.sequence_number)
        ) as share_micro_gpu
    from asked as a
    inner join units as u
        on
            a.cluster_name = u.cluster_name
            and a.day_on = u.day_on
            and a.node_uid = u.node_uid
            and a.resource_name = u.resource_name
    group by a.cluster_name, a.day_on, a.pod_uid, a.resource_name
),

elsewhere as (
    select
        cluster_name,
        day_on,
        resource_name,
        max(share_micro_gpu) as share_micro_gpu
    from units
    group by cluster_name, day_on, resource_name
),

-- A card counts once, whatever it registered before: its latest memory of the day.
cards as (
    select
        cluster_name,
        day_on,
        node_uid,
        d.device_uuid,
        arg_max(d.memory_mib, sequence_number) as memory_mib
    from (
        select
            cluster_name,
            day_on,
            node_uid,
            sequence_number,
            unnest(devices) as d
        from raw.node_versions
    ) as u
    group by cluster_name, day_on, node_uid, d.device_uuid
),

-- HAMi: max(memory, cores) of the card; a card that no register names counts whole.
entries as (
    select
        h.cluster_name,
        h.day_on,
        h.pod_uid,
        h.d.device_uuid,
        count(*) as request_count,
        sum(least(1000000, greatest(
            coalesce(h.d.memory_mib * 1000000 // c.memory_mib, 1000000),
            h.d.core_count * 10000
        )))::bigint as share_micro_gpu
    from (
        select
            *,
            unnest(devices) as d
        from pieces
    ) as h
    left join cards as c
        on
            h.cluster_name = c.cluster_name
            and h.day_on = c.day_on
            and h.node_uid = c.node_uid
            and h.d.device_uuid = c.device_uuid
    group by h.cluster_name, h.day_on, h.pod_uid, h.d.device_uuid
),

shares as (
    select
        a.cluster_name,
        a.day_on,
        a.pod_uid,
        a.resource_name,
        null::varchar as device_uuid,
        a.request_count,
        (a.request_count * coalesce(
            u.share_micro_gpu,
            e.share_micro_gpu,
            case a.resource_name when 'milli-gpu' then 1000 else 1000000 end
        ))::bigint as share_micro_gpu
    from asked as a
    left join distinct_units as u
        on
            a.cluster_name = u.cluster_name
            and a.day_on = u.day_on
            and a.pod_uid = u.pod_uid
            and a.resource_name = u.resource_name
    left join elsewhere as e
        on
            a.cluster_name = e.cluster_name
            and a.day_on = e.day_on
            and a.resource_name = e.resource_name
    where a.request_count > 0
    union all by name
    select
        cluster_name,
        day_on,
        pod_uid,
        'hami' as resource_name,
        device_uuid,
        request_count,
        share_micro_gpu
    from entries
)

select
    p.cluster_name,
    p.day_on,
    p.pod_uid || '/' || s.resource_name || coalesce('/' || s.device_uuid, '') as hold_id,
    p.pod_uid,
    p.workload_key_uid,
    p.workload_class,
    p.attempt_id,
    p.team_name,
    p.node_uid,
    s.resource_name,
    s.request_count::bigint as request_count,
    s.device_uuid,
    s.share_micro_gpu,
    p.bound_at,
    p.begin_at,
    p.end_at,
    p.is_begin,
    p.is_end,
    s.device_uuid is null as is_placement_assumed,
    null::varchar as claim_uid,
    p.source_ref
from pieces as p
inner join shares as s
    on p.cluster_name = s.cluster_name and p.day_on = s.day_on and p.pod_uid = s.pod_uid
union all by name
select
    c.cluster_name,
    c.day_on,
    c.pod_uid || '/' || c.driver_name || '/' || c.pool_name || '/' || c.device_name
    || '/' || c.claim_uid as hold_id,
    c.pod_uid,
    p.workload_key_uid,
    p.workload_class,
    p.attempt_id,
    p.team_name,
    p.node_uid,
    c.resource_name,
    1::bigint as request_count,
    c.gpu_uuid as device_uuid,
    c.share_micro_gpu,
    p.bound_at,
    c.begin_at,
    c.end_at,
    c.is_begin,
    c.is_end,
    false as is_placement_assumed,
    c.claim_uid,
    p.source_ref
from core.claim_holds as c
inner join held as p
    on c.cluster_name = p.cluster_name and c.day_on = p.day_on and c.pod_uid = p.pod_uid
