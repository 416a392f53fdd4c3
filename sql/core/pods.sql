-- core.pods: Each pod seen that day, folded to what was known of it at the day's end.
with
pod_groups as (
    select
        cluster_name,
        day_on,
        namespace_name,
        pod_group_name,
        arg_max(min_member_count, sequence_number) as min_member_count,
        arg_max(queue_name, sequence_number) as queue_name
    from raw.pod_group_versions
    group by cluster_name, day_on, namespace_name, pod_group_name
)

select
    l.cluster_name,
    l.day_on,
    l.pod_uid,
    l.namespace_name,
    v.pod_name,
    l.workload_kind_name,
    l.workload_name,
    l.workload_key_uid,
    l.workload_class,
    l.is_service,
    coalesce(l.known_team_name, t.team_name, '__unattributed__') as team_name,
    l.created_at,
    l.submitted_at,
    l.bound_at,
    l.node_name,
    n.node_uid,
    l.first_started_at,
    v.is_start_known,
    l.first_ready_at,
    l.deletion_asked_at,
    l.finished_at,
    l.deleted_at,
    l.ended_at,
    l.gone_at,
    v.phase_name,
    l.reason_name,
    l.disruption_name,
    l.is_refused,
    l.restart_count,
    coalesce(a.asked_micro_gpu, 0) as asked_micro_gpu,
    v.asked_gpu_model_name,
    l.gang_name,
    coalesce(
        nullif(g.min_member_count, 0),
        case when not l.is_service then k.pod_count end,
        l.gang_size_count
    ) as gang_size_count,
    case
        when g.min_member_count > 0 then 'PodGroup minMember'
        when k.pod_count is not null and not l.is_service then 'Workload podSets'
        else l.gang_source_name
    end as gang_source_name,
    q.attempt_id,
    q.attempt_created_at,
    q.attempt_queued_at,
    q.workload_uid,
    q.attempt_number,
    coalesce(g.queue_name, k.queue_name, l.queue_name) as queue_name,
    l.user_name,
    l.last_sequence_number,
    v.source_ref
from core.pod_lives as l
inner join raw.pod_versions as v
    on
        l.cluster_name = v.cluster_name
        and l.day_on = v.day_on
        and l.last_sequence_number = v.sequence_number
inner join core.pod_attempts as q
    on l.cluster_name = q.cluster_name and l.day_on = q.day_on and l.pod_uid = q.pod_uid
left join core.admissions as k
    on
        q.cluster_name = k.cluster_name
        and q.day_on = k.day_on
        and q.workload_uid = k.workload_uid
        and q.attempt_number = k.attempt_number
left join core.object_teams as t
    on l.cluster_name = t.cluster_name and l.day_on = t.day_on and l.pod_uid = t.object_uid
left join core.pod_asks as a
    on l.cluster_name = a.cluster_name and l.day_on = a.day_on and l.pod_uid = a.pod_uid
left join pod_groups as g
    on
        l.cluster_name = g.cluster_name
        and l.day_on = g.day_on
        and l.namespace_name = g.namespace_name
        and l.gang_name = g.pod_group_name
asof left join (
    select
        cluster_name,
        day_on,
        node_name,
        max(node_uid) as node_uid,
        coalesce(created_at, '1900-01-01'::timestamptz) as created_at
    from core.nodes
    group by cluster_name, day_on, node_name, created_at
) as n
    on
        l.cluster_name = n.cluster_name
        and l.day_on = n.day_on
        and l.node_name = n.node_name
        and l.bound_at >= n.created_at
