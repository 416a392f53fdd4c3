-- core.workloads: The top-level objects that people submitted, as known at the day's end.
with
seen as (
    select
        v.cluster_name,
        v.day_on,
        v.workload_key_uid,
        v.workload_kind_name,
        v.namespace_name,
        v.workload_name,
        v.workload_class,
        v.is_service,
        p.team_name,
        p.queue_name,
        v.user_name,
        p.gang_size_count,
        p.gang_source_name,
        p.created_at as first_created_at,
        v.sequence_number,
        1 as rank_number
    from core.pods as p
    inner join raw.pod_versions as v
        on
            p.cluster_name = v.cluster_name
            and p.day_on = v.day_on
            and p.last_sequence_number = v.sequence_number
    union all by name
    select
        cluster_name,
        day_on,
        workload_key_uid,
        workload_kind_name,
        namespace_name,
        workload_name,
        workload_class,
        false as is_service,
        '__unattributed__' as team_name,
        queue_name,
        user_name,
        nullif(min_member_count, 0) as gang_size_count,
        'PodGroup minMember' as gang_source_name,
        date_trunc('second', created_at) as first_created_at,
        sequence_number,
        0 as rank_number
    from raw.pod_group_versions
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
