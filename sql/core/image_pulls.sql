-- core.image_pulls: Each pull of an image for a container of a pod, as the kubelet told it.
--
-- What was asked for before midnight and done after it is told in whole by the event of its end.
with
told as (
    select
        *,
        coalesce(container_name, '__unknown__') as container_key
    from raw.event_versions
    where object_kind_name = 'Pod' and object_uid is not null and image_name is not null
),

counted as (
    select
        *,
        total_count - greatest(
            before_count,
            coalesce(max(total_count) over earlier, 0)
        ) as told_count
    from told
    window earlier as (
        partition by cluster_name, day_on, event_uid
        order by sequence_number
        rows between unbounded preceding and 1 preceding
    )
),

ends as (
    select
        *,
        coalesce(waited_seconds, pull_seconds) as told_seconds,
        lag(last_at) over (
            partition by cluster_name, day_on, object_uid, container_key, image_name
            order by last_at, sequence_number
        ) as earlier_at
    from counted
    where reason_name = 'Pulled' and told_count > 0
),

asked as (
    select
        cluster_name,
        day_on,
        object_uid,
        container_key,
        image_name,
        object_namespace_name,
        object_name,
        host_name,
        sequence_number,
        source_ref,
        unnest(list_distinct([first_at, last_at])) as asked_at
    from counted
    where reason_name = 'Pulling'
),

-- The latest asking before an end, and after the end before it.
pairs as (
    select
        e.cluster_name,
        e.day_on,
        e.sequence_number,
        max(a.asked_at) as asked_at
    from ends as e
    inner join asked as a
        on
            e.cluster_name = a.cluster_name
            and e.day_on = a.day_on
            and e.object_uid = a.object_uid
            and e.container_key = a.container_key
            and e.image_name = a.image_name
            and a.asked_at <= e.last_at
            and a.asked_at >= coalesce(e.earlier_at, '-infinity'::timestamptz)
    where not e.is_cached
    group by e.cluster_name, e.day_on, e.sequence_number
),

-- Asked for, and not done that day.
pending as (
    select
        a.cluster_name,
        a.day_on,
        a.object_uid,
        a.container_key,
        a.image_name,
        min(a.object_namespace_name) as object_namespace_name,
        min(a.object_name) as object_name,
        min(a.host_name) as host_name,
        min(a.asked_at) as begun_at,
        arg_min(a.source_ref, a.asked_at) as source_ref
    from asked as a
    left join (
        select
            cluster_name,
            day_on,
            object_uid,
            container_key,
            image_name,
            max(last_at) as done_at
        from ends
        group by cluster_name, day_on, object_uid, container_key, image_name
    ) as d
        on
            a.cluster_name = d.cluster_name
            and a.day_on = d.day_on
            and a.object_uid = d.object_uid
            and a.container_key = d.container_key
            and a.image_name = d.image_name
    where a.asked_at > coalesce(d.done_at, '-infinity'::timestamptz)
    group by a.cluster_name, a.day_on, a.object_uid, a.container_key, a.image_name
),

failures as (
    select
        cluster_name,
        day_on,
        object_uid,
        container_key,
        image_name,
        min(object_namespace_name) as object_namespace_name,
        min(object_name) as object_name,
        min(host_name) as host_name,
        sum(told_count)::bigint as failed_count,
        min(source_ref) as source_ref
    from counted
    where reason_name = 'Failed' and told_count > 0
    group by cluster_name, day_on, object_uid, container_key, image_name
),

pulls as (
    select
        e.cluster_name,
        e.day_on,
        e.object_uid,
        e.object_namespace_name,
        e.object_name,
        e.container_key,
        e.image_name,
        e.host_name,
        case
            when not e.is_cached
                then coalesce(
                    p.asked_at,
                    e.last_at - to_microseconds((e.told_seconds * 1000000)::bigint)
                )
        end as begun_at,
        e.last_at as pulled_at,
        e.pull_seconds,
        e.waited_seconds,
        e.image_bytes,
        e.is_cached,
        e.source_ref
    from ends as e
    left join pairs as p
        on
            e.cluster_name = p.cluster_name
            and e.day_on = p.day_on
            and e.sequence_number = p.sequence_number
    union all by name
    select
        *,
        false as is_cached
    from pending
    union all by name
    select
        f.* exclude (failed_count),
        false as is_cached
    from failures as f
    anti join ends as e
        on
            f.cluster_name = e.cluster_name
            and f.day_on = e.day_on
            and f.object_uid = e.object_uid
            and f.container_key = e.container_key
            and f.image_name = e.image_name
    anti join pending as p
        on
            f.cluster_name = p.cluster_name
            and f.day_on = p.day_on
            and f.object_uid = p.object_uid
            and f.container_key = p.container_key
            and f.image_name = p.image_name
),

numbered as (
    select
        *,
        row_number() over (
            partition by cluster_name, day_on, object_uid, container_key, image_name
            order by coalesce(pulled_at, begun_at), source_ref
        ) as pull_number
    from pulls
)

select
    n.cluster_name,
    n.day_on,
    n.object_uid as pod_uid,
    n.object_namespace_name as namespace_name,
    n.object_name as pod_name,
    k.workload_key_uid,
    n.container_key as container_name,
    n.image_name,
    n.pull_number,
    coalesce(k.node_name, n.host_name) as node_name,
    n.begun_at,
    n.pulled_at,
    n.pull_seconds,
    -- A kubelet measures both at once: a negative difference would be no wait.
    case
        when n.waited_seconds >= n.pull_seconds then n.waited_seconds - n.pull_seconds
    end::decimal(18, 6) as queue_seconds,
    case
        when not n.is_cached
            then coalesce(
                n.waited_seconds, n.pull_seconds, date_diff('second', n.begun_at, n.pulled_at)
            )
    end::decimal(18, 6) as total_seconds,
    n.image_bytes,
    n.is_cached,
    case when n.pull_number = 1 then coalesce(f.failed_count, 0) else 0 end as failed_count,
    n.source_ref
from numbered as n
left join failures as f
    on
        n.cluster_name = f.cluster_name
        and n.day_on = f.day_on
        and n.object_uid = f.object_uid
        and n.container_key = f.container_key
        and n.image_name = f.image_name
left join core.pods as k
    on n.cluster_name = k.cluster_name and n.day_on = k.day_on and n.object_uid = k.pod_uid
