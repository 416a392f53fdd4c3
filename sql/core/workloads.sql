-- core.workloads: The top-level objects that people submitted, as known at the day's end.
with
seen as (
    select
        cluster_name,
        day_on,
        workload_key_uid,
        workload_kind_name,
        namespace_name,
        workload_name,
        workload_class,
        is_service,
        team_name,
        queue_name,
        user_name,
        gang_size_count,
        gang_source_name,
        created_at as first_created_at,
        last_sequence_number as sequence_number,
        2 as rank_number
    from core.pods
    union all by name
    select
        a.cluster_name,
        a.day_on,
        a.workload_key_uid,
        a.workload_kind_name,
        a.namespace_name,
        a.workload_name,
        a.workload_class,
        a.is_service,
        coalesce(t.team_name, '__unattributed__') as team_name,
        a.queue_name,
        a.user_name,
        case when not a.is_service then nullif(a.pod_count, 0) end as gang_size_count,
        'Workload podSets' as gang_source_name,
        a.attempt_queued_at as first_created_at,
        epoch_us(a.queued_at) as sequence_number,
        1 as rank_number
    from core.admissions as a
    left join core.object_teams as t
        on
            a.cluster_name = t.cluster_name
            and a.day_on = t.day_on
            and a.workload_uid = t.object_uid
    semi join core.attempts as y
        on
            a.cluster_name = y.cluster_name
            and a.day_on = y.day_on
            and a.attempt_id = y.attempt_id
    union all by name
    select
        g.cluster_name,
        g.day_on,
        g.workload_key_uid,
        g.workload_kind_name,
        g.namespace_name,
        g.workload_name,
        g.workload_class,
        false as is_service,
        '__unattributed__' as team_name,
        g.queue_name,
        coalesce(g.user_name, o.user_name) as user_name,
        nullif(g.min_member_count, 0) as gang_size_count,
        'PodGroup minMember' as gang_source_name,
        date_trunc('second', g.created_at) as first_created_at,
        g.sequence_number,
        0 as rank_number
    from raw.pod_group_versions as g
    left join core.owners as o
        on
            g.cluster_name = o.cluster_name
            and g.day_on = o.day_on
            and g.workload_key_uid = o.object_uid
)

select
    cluster_name,
    day_on,
    workload_key_uid,
    arg_max(workload_kind_name, (rank_number, sequence_number)) as workload_kind_name,
    arg_max(namespace_name, (rank_number, sequence_number)) as namespace_name,
    arg_max(workload_name, (rank_number, sequence_number)) as workload_name,
    arg_max(workload_class, (rank_number, sequence_number)) as workload_class,
    bool_or(is_service) as is_service,
    arg_max(team_name, (rank_number, sequence_number)) as team_name,
    arg_max(queue_name, (rank_number, sequence_number)) as queue_name,
    arg_max(user_name, (rank_number, sequence_number)) as user_name,
    arg_max(gang_size_count, (rank_number, sequence_number)) as gang_size_count,
    arg_max(gang_source_name, (rank_number, sequence_number))
    filter (where gang_size_count is not null) as gang_source_name,
    min(first_created_at) as first_created_at
from seen
group by cluster_name, day_on, workload_key_uid
