-- core.disruptions: Who lost its place on a day, how, and for whom: pods, and workloads of a queue.
--
-- Of a pod its condition DisruptionTarget tells how and when, and an event for whom, by uid: names
-- of preemptors are looked up. A pod that was over already was not disrupted.
with
versions as (
    select
        *,
        coalesce(
            bool_or(phase_name in ('Succeeded', 'Failed')) over earlier,
            false
        ) as is_over
    from raw.pod_versions
    window earlier as (
        partition by cluster_name, day_on, pod_uid
        order by sequence_number
        rows between unbounded preceding and 1 preceding
    )
),

targets as (
    select *
    from versions
    where disruption_name is not null
    qualify row_number() over (
        partition by cluster_name, day_on, pod_uid
        order by sequence_number
    ) = 1
),

words as (
    select
        cluster_name,
        day_on,
        object_uid as pod_uid,
        min(object_namespace_name) as namespace_name,
        min(object_name) as pod_name,
        min(first_at) as first_at,
        arg_min(reason_name, sequence_number) as reason_name,
        arg_min(component_name, sequence_number) as component_name,
        arg_min(message_text, sequence_number) as message_text,
        arg_min(related_uid, sequence_number)
        filter (where reason_name = 'Preempted' and related_kind_name = 'Pod') as related_uid,
        arg_min(source_ref, sequence_number) as source_ref
    from raw.event_versions
    where
        object_kind_name = 'Pod'
        and object_uid is not null
        and reason_name in ('Preempted', 'Evict', 'Evicted', 'TaintManagerEviction')
        and total_count > before_count
    group by cluster_name, day_on, object_uid
),

pods as (
    select
        coalesce(t.cluster_name, e.cluster_name) as cluster_name,
        coalesce(t.day_on, e.day_on) as day_on,
        coalesce(t.pod_uid, e.pod_uid) as pod_uid,
        coalesce(t.namespace_name, e.namespace_name) as namespace_name,
        coalesce(t.pod_name, e.pod_name) as pod_name,
        date_trunc('second', coalesce(t.disrupted_at, e.first_at, t.observed_at)) as disrupted_at,
        coalesce(t.disruption_name, e.reason_name) as reason_name,
        e.component_name,
        e.message_text,
        coalesce(
            nullif(regexp_extract(e.message_text, 'Preempted by (?:a )?pod (\S+)', 1), 'on'),
            ''
        ) as by_text,
        e.related_uid,
        nullif(regexp_extract(e.message_text, 'Preempted by (\S+/\S+) on node', 1), '') as by_path,
        coalesce(t.source_ref, e.source_ref) as source_ref,
        -- What a day knows of the days before is carried: it was told there.
        coalesce(t.change_name = 'CARRIED', false) as is_of_earlier_day,
        coalesce(t.is_over or t.phase_name = 'Succeeded', false) as is_over
    from targets as t
    full join words as e
        on t.cluster_name = e.cluster_name and t.day_on = e.day_on and t.pod_uid = e.pod_uid
),

preempted as (
    select
        p.*,
        coalesce(nullif(p.by_text, ''), p.related_uid, n.pod_uid) as by_uid
    from pods as p
    left join core.pods as n
        on
            p.cluster_name = n.cluster_name
            and p.day_on = n.day_on
            and p.by_path = n.namespace_name || '/' || n.pod_name
    where not p.is_of_earlier_day and not p.is_over
    qualify row_number() over (
        partition by p.cluster_name, p.day_on, p.pod_uid
        order by n.created_at desc nulls last
    ) = 1
),

queue_counts as (
    select
        *,
        total_count - greatest(
            before_count,
            coalesce(max(total_count) over earlier, 0)
        ) as told_count
    from raw.event_versions
    where
        object_kind_name = 'Workload'
        and object_uid is not null
        and (reason_name = 'Preempted' or starts_with(reason_name, 'EvictedDueTo'))
    window earlier as (
        partition by cluster_name, day_on, event_uid
        order by sequence_number
        rows between unbounded preceding and 1 preceding
    )
),

queue_words as (
    select
        cluster_name,
        day_on,
        object_uid,
        min(object_namespace_name) as namespace_name,
        min(object_name) as object_name,
        reason_name,
        nullif(regexp_extract(message_text, '\(UID: ([^,)]+)', 1), '') as by_uid,
        nullif(regexp_extract(message_text, 'JobUID: ([^,)]+)', 1), '') as by_job_uid,
        min(first_at) as first_at,
        sum(told_count)::bigint as told_count,
        arg_min(component_name, sequence_number) as component_name,
        arg_min(message_text, sequence_number) as message_text,
        arg_min(source_ref, sequence_number) as source_ref
    from queue_counts
    where told_count > 0
    group by cluster_name, day_on, object_uid, reason_name, by_uid, by_job_uid
),

-- Kueue tells a preemption twice, as Preempted and as EvictedDueToPreempted.
queues as (
    select
        cluster_name,
        day_on,
        object_uid,
        min(namespace_name) as namespace_name,
        min(object_name) as object_name,
        replace(reason_name, 'EvictedDueTo', '') as reason_name,
        by_uid,
        by_job_uid,
        min(first_at) as first_at,
        max(told_count) as told_count,
        min(component_name) as component_name,
        arg_min(message_text, (first_at, reason_name)) as message_text,
        arg_min(source_ref, (first_at, reason_name)) as source_ref
    from queue_words
    group by
        cluster_name,
        day_on,
        object_uid,
        replace(reason_name, 'EvictedDueTo', ''),
        by_uid,
        by_job_uid
),

-- Kueue's Workload bears another name than the work that it is for.
queued as (
    select
        cluster_name,
        day_on,
        workload_uid,
        any_value(namespace_name) as namespace_name,
        any_value(object_name) as object_name,
        any_value(workload_key_uid) as workload_key_uid
    from core.admissions
    group by cluster_name, day_on, workload_uid
)

select
    v.cluster_name,
    v.day_on,
    'Pod' as victim_kind_name,
    v.pod_uid as victim_uid,
    v.namespace_name as victim_namespace_name,
    v.pod_name as victim_name,
    k.workload_key_uid,
    k.node_name,
    v.disrupted_at,
    case
        when v.reason_name in ('PreemptionByScheduler', 'Preempted') then 'preempted_by_scheduler'
        when v.reason_name = 'Evict' then 'preempted_by_scheduler'
        when v.reason_name = 'EvictionByEvictionAPI' then 'evicted_by_api'
        when v.reason_name in ('TerminationByKubelet', 'Evicted') then 'evicted_by_kubelet'
        when
            v.reason_name in (
                'DeletionByTaintManager', 'DeletionByDeviceTaintManager', 'TaintManagerEviction'
            )
            then 'evicted_by_taint'
        when v.reason_name = 'DeletionByPodGC' then 'removed_with_node'
        else 'other'
    end as way_name,
    v.reason_name,
    v.component_name,
    v.message_text as cause_text,
    case when v.by_uid is not null then 'Pod' end as by_kind_name,
    v.by_uid,
    b.namespace_name as by_namespace_name,
    b.pod_name as by_name,
    b.workload_key_uid as by_workload_key_uid,
    1::bigint as disruption_count,
    v.source_ref
from preempted as v
left join core.pods as k
    on v.cluster_name = k.cluster_name and v.day_on = k.day_on and v.pod_uid = k.pod_uid
left join core.pods as b
    on v.cluster_name = b.cluster_name and v.day_on = b.day_on and v.by_uid = b.pod_uid
union all
select
    w.cluster_name,
    w.day_on,
    'Workload' as victim_kind_name,
    w.object_uid as victim_uid,
    w.namespace_name as victim_namespace_name,
    w.object_name as victim_name,
    q.workload_key_uid,
    null as node_name,
    date_trunc('second', w.first_at) as disrupted_at,
    case
        when w.reason_name = 'Preempted' then 'preempted_by_queue' else 'evicted_by_queue'
    end as way_name,
    w.reason_name,
    w.component_name,
    coalesce(
        nullif(regexp_extract(w.message_text, ' due to ([^;]+)', 1), ''), w.message_text
    ) as cause_text,
    case when w.by_uid is not null then 'Workload' end as by_kind_name,
    w.by_uid,
    b.namespace_name as by_namespace_name,
    b.object_name as by_name,
    coalesce(b.workload_key_uid, w.by_job_uid) as by_workload_key_uid,
    w.told_count as disruption_count,
    w.source_ref
from queues as w
left join queued as q
    on w.cluster_name = q.cluster_name and w.day_on = q.day_on and w.object_uid = q.workload_uid
left join queued as b
    on w.cluster_name = b.cluster_name and w.day_on = b.day_on and w.by_uid = b.workload_uid
