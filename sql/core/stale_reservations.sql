-- core.stale_reservations: Quota that a Kueue Workload or PodGroup keeps with no pod left to use it.
--
-- Since the last of its pods ended, or it was evicted or given quota, whichever was last. A start
-- takes a while: shorter stretches than the policy's are none.
with
limits as (
    select coalesce(max(value_number), 600) as least_seconds
    from raw.policies
    where policy_name = 'stale_reservation_seconds'
),

pods as (
    select
        cluster_name,
        day_on,
        workload_uid,
        attempt_number,
        count(*) as pod_count,
        max(ended_at) as last_ended_at,
        bool_or(ended_at is null) as is_used
    from core.pods
    where workload_uid is not null
    group by cluster_name, day_on, workload_uid, attempt_number
),

groups as (
    select
        cluster_name,
        day_on,
        pod_group_uid,
        any_value(namespace_name) as namespace_name,
        any_value(pod_group_name) as object_name,
        arg_max(workload_key_uid, sequence_number) as workload_key_uid,
        arg_max(queue_name, sequence_number) as queue_name,
        arg_max(phase_name, sequence_number) as phase_name,
        arg_max(source_ref, sequence_number) as source_ref,
        min(date_trunc('second', observed_at)) filter (where change_name = 'DELETED')
            as deleted_at,
        date_trunc('second', max(requeued_at)) as requeued_at
    from raw.pod_group_versions
    group by cluster_name, day_on, pod_group_uid
),

members as (
    select
        cluster_name,
        day_on,
        namespace_name,
        gang_name,
        count(*) as pod_count,
        sum(asked_micro_gpu)::bigint as asked_micro_gpu,
        max(ended_at) as last_ended_at,
        bool_or(ended_at is null) as is_used
    from core.pods
    where gang_name is not null
    group by cluster_name, day_on, namespace_name, gang_name
),

kept as (
    select
        a.cluster_name,
        a.day_on,
        'Workload' as object_kind_name,
        a.workload_uid as object_uid,
        a.namespace_name,
        a.object_name,
        a.workload_key_uid,
        a.queue_name,
        a.asked_micro_gpu,
        coalesce(p.pod_count, 0) as pod_count,
        p.last_ended_at as last_pod_ended_at,
        a.evicted_at,
        a.eviction_reason_name,
        greatest(a.quota_reserved_at, a.evicted_at, p.last_ended_at) as begin_at,
        a.ended_at,
        a.source_ref
    from core.admissions as a
    left join pods as p
        on
            a.cluster_name = p.cluster_name
            and a.day_on = p.day_on
            and a.workload_uid = p.workload_uid
            and a.attempt_number = p.attempt_number
    where a.quota_reserved_at is not null and not coalesce(p.is_used, false)
    union all by name
    -- Volcano counts a group against its queue until it says Completed, whatever its pods are.
    select
        g.cluster_name,
        g.day_on,
        'PodGroup' as object_kind_name,
        g.pod_group_uid as object_uid,
        g.namespace_name,
        g.object_name,
        g.workload_key_uid,
        g.queue_name,
        m.asked_micro_gpu,
        coalesce(m.pod_count, 0) as pod_count,
        coalesce(m.last_ended_at, g.requeued_at) as last_pod_ended_at,
        null::timestamptz as evicted_at,
        null::varchar as eviction_reason_name,
        coalesce(m.last_ended_at, g.requeued_at) as begin_at,
        g.deleted_at as ended_at,
        g.source_ref
    from groups as g
    left join members as m
        on
            g.cluster_name = m.cluster_name
            and g.day_on = m.day_on
            and g.namespace_name = m.namespace_name
            and g.object_name = m.gang_name
    where g.phase_name in ('Inqueue', 'Running') and not coalesce(m.is_used, false)
)

select
    k.cluster_name,
    k.day_on,
    k.object_kind_name,
    k.object_uid,
    k.namespace_name,
    k.object_name,
    k.workload_key_uid,
    k.queue_name,
    greatest(k.begin_at, w.begin_at) as begin_at,
    least(coalesce(k.ended_at, w.end_at), w.end_at) as end_at,
    k.begin_at as stale_since_at,
    k.ended_at is not null as is_ended,
    k.asked_micro_gpu,
    k.pod_count::bigint as pod_count,
    k.last_pod_ended_at,
    k.evicted_at,
    k.eviction_reason_name,
    k.source_ref
from kept as k
inner join core.windows as w
    on k.cluster_name = w.cluster_name and k.day_on = w.day_on
cross join limits as l
where
    date_diff('second', k.begin_at, least(coalesce(k.ended_at, w.end_at), w.end_at))
    > l.least_seconds
    and coalesce(k.ended_at, w.end_at) > w.begin_at
