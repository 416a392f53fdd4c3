-- core.claim_holds: The day's piece of each interval in which a pod has a GPU device by a claim.
--
-- From bind on, which a pod's claims must be allocated and reserved before, until the pod ends or
-- the claim is seen without its allocation, without the pod, or deleted.
with
versions as (
    select
        v.*,
        date_trunc('second', v.observed_at) as seen_at,
        row_number() over claims = 1 as is_first,
        lead(date_trunc('second', v.observed_at)) over claims as until_at
    from raw.claim_versions as v
    window claims as (
        partition by v.cluster_name, v.day_on, v.claim_uid order by v.sequence_number
    )
),

-- A claim that is reserved for something else than pods is for all pods that name it.
reserved as (
    select
        v.cluster_name,
        v.day_on,
        v.claim_uid,
        v.seen_at,
        v.is_first,
        v.until_at,
        v.devices,
        v.r.object_uid as pod_uid
    from (
        select
            *,
            unnest(reserved_for) as r
        from versions
        where change_name <> 'DELETED' and len(devices) > 0
    ) as v
    where v.r.kind_name = 'pods'
    union all by name
    select
        v.cluster_name,
        v.day_on,
        v.claim_uid,
        v.seen_at,
        v.is_first,
        v.until_at,
        v.devices,
        p.pod_uid
    from versions as v
    inner join core.pod_claims as p
        on
            v.cluster_name = p.cluster_name
            and v.day_on = p.day_on
            and v.claim_uid = p.claim_uid
    where
        v.change_name <> 'DELETED'
        and len(v.devices) > 0
        and len(list_filter(v.reserved_for, lambda r: r.kind_name <> 'pods')) > 0
        and not list_contains(
            list_transform(v.reserved_for, lambda r: r.object_uid), p.pod_uid
        )
),

-- The same device may be given in several parts.
parts as (
    select
        cluster_name,
        day_on,
        pod_uid,
        claim_uid,
        d.driver_name,
        d.pool_name,
        d.device_name,
        d.is_gpu,
        seen_at,
        is_first,
        until_at,
        sum(d.consumed_mib) as consumed_mib
    from (
        select
            * exclude (devices),
            unnest(devices) as d
        from reserved
    ) as r
    where not d.is_admin
    group by all
),

given as (
    select
        cluster_name,
        day_on,
        pod_uid,
        claim_uid,
        driver_name,
        pool_name,
        device_name,
        bool_or(is_gpu) as is_gpu,
        min(seen_at) as seen_at,
        bool_or(is_first) as is_first,
        case when bool_and(until_at is not null) then max(until_at) end as until_at,
        max(consumed_mib) as consumed_mib
    from parts
    group by cluster_name, day_on, pod_uid, claim_uid, driver_name, pool_name, device_name
),

-- What is heard of a reservation within a minute after the bind was there at the bind.
timed as (
    select
        g.cluster_name,
        g.day_on,
        g.pod_uid,
        g.claim_uid,
        g.driver_name,
        g.pool_name,
        g.device_name,
        g.is_gpu,
        g.consumed_mib,
        p.bound_at,
        greatest(
            p.bound_at,
            w.begin_at,
            case
                when not g.is_first and g.seen_at > p.bound_at + interval 60 second then g.seen_at
            end
        ) as begin_at,
        least(coalesce(p.ended_at, w.end_at), coalesce(g.until_at, w.end_at), w.end_at) as end_at,
        w.begin_at as window_begin_at,
        coalesce(least(p.ended_at, g.until_at) <= w.end_at, false) as is_end
    from given as g
    inner join core.pods as p
        on g.cluster_name = p.cluster_name and g.day_on = p.day_on and g.pod_uid = p.pod_uid
    inner join core.windows as w
        on g.cluster_name = w.cluster_name and g.day_on = w.day_on
    where p.bound_at is not null and not p.is_refused
),

described as (
    select
        t.cluster_name,
        t.day_on,
        t.pod_uid,
        t.claim_uid,
        t.driver_name,
        t.pool_name,
        t.device_name,
        any_value(t.consumed_mib) as consumed_mib,
        any_value(t.begin_at) as begin_at,
        any_value(t.end_at) as end_at,
        any_value(t.begin_at >= t.window_begin_at and t.bound_at >= t.window_begin_at) as is_begin,
        any_value(t.is_end) as is_end,
        any_value(t.is_gpu) as is_gpu_driver,
        coalesce(
            arg_max(k, k.begin_at) filter (where k.begin_at <= t.begin_at),
            arg_min(k, k.begin_at)
        ) as k
    from timed as t
    left join core.slice_devices as k
        on
            t.cluster_name = k.cluster_name
            and t.day_on = k.day_on
            and t.driver_name = k.driver_name
            and t.pool_name = k.pool_name
            and t.device_name = k.device_name
    where t.begin_at < t.end_at
    group by
        t.cluster_name,
        t.day_on,
        t.pod_uid,
        t.claim_uid,
        t.driver_name,
        t.pool_name,
        t.device_name
)

select
    cluster_name,
    day_on,
    pod_uid,
    claim_uid,
    driver_name,
    pool_name,
    device_name,
    coalesce(k.gpu_uuid, driver_name || '/' || pool_name || '/' || device_name) as gpu_uuid,
    coalesce(k.resource_name, driver_name) as resource_name,
    coalesce(
        case
            when consumed_mib is null or k.memory_mib is null then k.share_micro_gpu
            else least(
                k.share_micro_gpu, k.share_micro_gpu * consumed_mib // nullif(k.memory_mib, 0)
            )
        end,
        1000000
    )::bigint as share_micro_gpu,
    begin_at,
    end_at,
    is_begin,
    is_end
from described
-- A driver that we do not know counts where its slices show GPUs.
where coalesce(k.is_gpu, is_gpu_driver, false)
