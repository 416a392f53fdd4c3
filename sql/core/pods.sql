-- core.pods: Each pod seen that day, folded to what was known of it at the day's end.
--
-- What an earlier day knew comes in the memory columns of the CARRIED row, so a day needs no other.
with
folded as (
    select
        cluster_name,
        day_on,
        pod_uid,
        max(sequence_number) as last_sequence_number,
        date_trunc('second', coalesce(
            min(bound_at),
            min(observed_at) filter (where node_name is not null)
        )) as bound_at,
        arg_max(node_name, sequence_number) as node_name,
        date_trunc('second', least(min(first_started_at), min(running_since_at)))
            as first_started_at,
        date_trunc('second', least(min(first_ready_at), min(ready_since_at))) as first_ready_at,
        date_trunc('second', min(deletion_asked_at)) as deletion_asked_at,
        -- Where no container end is given, the phase's first observation stands for it.
        date_trunc('second', coalesce(
            arg_max(finished_at, sequence_number)
            filter (where finished_at is distinct from observed_at),
            min(finished_at)
        )) as finished_at,
        date_trunc('second', min(observed_at) filter (where change_name = 'DELETED')) as deleted_at,
        bool_or(coalesce(reason_name, '') = 'UnexpectedAdmissionError') as is_refused,
        max(restart_count) as restart_count,
        arg_max(disruption_name, sequence_number) as disruption_name,
        arg_max(reason_name, sequence_number) as reason_name,
        min(attempt_queued_at) as known_queued_at,
        min(attempt_created_at) as known_created_at,
        arg_min(team_name, sequence_number) as known_team_name,
        coalesce(
            min(sequence_number) filter (where node_name is not null or bound_at is not null),
            max(sequence_number)
        ) as bind_sequence_number
    from raw.pod_versions
    group by cluster_name, day_on, pod_uid
),

-- Team rules look at what was known when the pod was first seen with a node.
at_bind as (
    select
        f.cluster_name,
        f.day_on,
        f.pod_uid,
        v.observed_at,
        v.namespace_name,
        v.labels_json,
        v.owners,
        v.queue_name,
        v.account_name,
        v.user_name,
        coalesce(f.bound_at, v.observed_at) as bound_at
    from folded as f
    inner join raw.pod_versions as v
        on
            f.cluster_name = v.cluster_name
            and f.day_on = v.day_on
            and f.bind_sequence_number = v.sequence_number
    where f.known_team_name is null
),

namespaces as (
    select
        p.cluster_name,
        p.day_on,
        p.pod_uid,
        coalesce(
            arg_max(n.labels_json, n.sequence_number) filter (where n.observed_at <= p.observed_at),
            arg_min(n.labels_json, n.sequence_number)
        ) as labels_json
    from at_bind as p
    inner join raw.namespace_versions as n
        on
            p.cluster_name = n.cluster_name
            and p.day_on = n.day_on
            and p.namespace_name = n.namespace_name
    group by p.cluster_name, p.day_on, p.pod_uid
),

matched as (
    select
        p.cluster_name,
        p.day_on,
        p.pod_uid,
        r.rule_number,
        r.condition_count,
        r.condition_number,
        r.team_text,
        unnest(case r.field_name
            when 'pod_label' then [json_extract_string(p.labels_json, '$."' || r.key_name || '"')]
            when 'owner_name' then list_transform(p.owners, lambda o: o.object_name)
            when
                'namespace_label'
                then [json_extract_string(n.labels_json, '$."' || r.key_name || '"')]
            when 'namespace' then [p.namespace_name]
            when 'queue' then [p.queue_name]
            when 'account' then [p.account_name]
            when 'user' then [p.user_name]
        end) as found_text,
        r.pattern_text
    from at_bind as p
    cross join raw.team_rules as r
    left join namespaces as n
        on p.cluster_name = n.cluster_name and p.day_on = n.day_on and p.pod_uid = n.pod_uid
    where
        p.bound_at >= coalesce(r.valid_from_at, '-infinity'::timestamptz)
        and p.bound_at < coalesce(r.valid_to_at, 'infinity'::timestamptz)
),

ruled as (
    select
        cluster_name,
        day_on,
        pod_uid,
        rule_number,
        replace(any_value(team_text), '{value}', arg_min(found_text, condition_number))
            as team_name
    from matched
    where found_text is not null and found_text <> '' and found_text glob pattern_text
    group by cluster_name, day_on, pod_uid, rule_number
    having count(distinct condition_number) = any_value(condition_count)
),

teams as (
    select
        cluster_name,
        day_on,
        pod_uid,
        arg_min(team_name, rule_number) as team_name
    from ruled
    group by cluster_name, day_on, pod_uid
),

pod_groups as (
    select
        cluster_name,
        day_on,
        namespace_name,
        pod_group_name,
        arg_max(min_member_count, sequence_number) as min_member_count,
        arg_max(queue_name, sequence_number) as queue_name,
        date_trunc('second', min(created_at)) as created_at,
        date_trunc('second', min(submitted_at)) as submitted_at,
        date_trunc('second', max(requeued_at)) as requeued_at
    from raw.pod_group_versions
    group by cluster_name, day_on, namespace_name, pod_group_name
),

facts as (
    select
        f.*,
        v.namespace_name,
        v.pod_name,
        v.workload_key_uid,
        v.is_service,
        v.is_start_known,
        v.phase_name,
        v.asked_gpu_model_name,
        v.gang_name,
        v.user_name,
        v.source_ref,
        date_trunc('second', v.created_at) as created_at,
        date_trunc('second', v.submitted_at) as submitted_at,
        coalesce(f.known_team_name, t.team_name, '__unattributed__') as team_name,
        coalesce(a.asked_micro_gpu, 0) as asked_micro_gpu,
        coalesce(g.queue_name, v.queue_name) as queue_name,
        coalesce(nullif(g.min_member_count, 0), v.gang_size_count) as gang_size_count,
        case
            when g.min_member_count > 0 then 'PodGroup minMember' else v.gang_source_name
        end as gang_source_name,
        g.created_at as group_created_at,
        g.submitted_at as group_submitted_at,
        g.requeued_at as group_requeued_at,
        least(f.finished_at, f.deleted_at) as ended_at,
        least(f.deletion_asked_at, f.finished_at, f.deleted_at) as gone_at,
        case
            when v.is_service then coalesce(v.gang_name, f.pod_uid) else ''
        end as replica_key
    from folded as f
    inner join raw.pod_versions as v
        on
            f.cluster_name = v.cluster_name
            and f.day_on = v.day_on
            and f.last_sequence_number = v.sequence_number
    left join teams as t
        on f.cluster_name = t.cluster_name and f.day_on = t.day_on and f.pod_uid = t.pod_uid
    left join core.pod_asks as a
        on f.cluster_name = a.cluster_name and f.day_on = a.day_on and f.pod_uid = a.pod_uid
    left join pod_groups as g
        on
            f.cluster_name = g.cluster_name
            and f.day_on = g.day_on
            and v.namespace_name = g.namespace_name
            and v.gang_name = g.pod_group_name
),

flagged as (
    select
        *,
        coalesce(
            created_at >= max(coalesce(gone_at, 'infinity'::timestamptz)) over earlier,
            true
        ) as is_new
    from facts
    window earlier as (
        partition by cluster_name, day_on, workload_key_uid, replica_key
        order by created_at, pod_uid
        rows between unbounded preceding and 1 preceding
    )
),

sessions as (
    select
        *,
        sum(is_new::integer) over (
            partition by cluster_name, day_on, workload_key_uid, replica_key
            order by created_at, pod_uid
        ) as session_number
    from flagged
),

session_facts as (
    select
        cluster_name,
        day_on,
        workload_key_uid,
        replica_key,
        session_number,
        min(known_queued_at) as known_queued_at,
        coalesce(min(known_created_at), min(created_at)) as attempt_created_at,
        min(created_at) as created_at,
        min(submitted_at) as submitted_at,
        min(group_created_at) as group_created_at,
        min(group_submitted_at) as group_submitted_at,
        max(group_requeued_at) as group_requeued_at,
        max(gone_at) as gone_at
    from sessions
    group by cluster_name, day_on, workload_key_uid, replica_key, session_number
),

queued as (
    select
        *,
        case
            when known_queued_at is not null then known_queued_at
            when session_number > 1 and group_created_at is not null then lag(gone_at) over attempts
            when session_number > 1 then created_at
            when group_requeued_at is not null then group_requeued_at
            else coalesce(group_submitted_at, submitted_at, group_created_at, created_at)
        end as attempt_queued_at
    from session_facts
    window attempts as (
        partition by cluster_name, day_on, workload_key_uid, replica_key
        order by session_number
    )
)

select
    s.cluster_name,
    s.day_on,
    s.pod_uid,
    s.namespace_name,
    s.pod_name,
    s.workload_key_uid,
    s.is_service,
    s.team_name,
    s.created_at,
    s.submitted_at,
    s.bound_at,
    s.node_name,
    n.node_uid,
    s.first_started_at,
    s.is_start_known,
    s.first_ready_at,
    s.deletion_asked_at,
    s.finished_at,
    s.deleted_at,
    s.ended_at,
    s.gone_at,
    s.phase_name,
    s.reason_name,
    s.disruption_name,
    s.is_refused,
    s.restart_count,
    s.asked_micro_gpu,
    s.asked_gpu_model_name,
    s.gang_name,
    s.gang_size_count,
    s.gang_source_name,
    s.workload_key_uid
    || case when s.replica_key = '' then '' else '/' || s.replica_key end
    || '@' || epoch_us(q.attempt_queued_at) // 1000000 as attempt_id,
    q.attempt_created_at,
    q.attempt_queued_at,
    s.queue_name,
    s.user_name,
    s.last_sequence_number,
    s.source_ref
from sessions as s
inner join queued as q
    on
        s.cluster_name = q.cluster_name
        and s.day_on = q.day_on
        and s.workload_key_uid = q.workload_key_uid
        and s.replica_key = q.replica_key
        and s.session_number = q.session_number
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
        s.cluster_name = n.cluster_name
        and s.day_on = n.day_on
        and s.node_name = n.node_name
        and s.bound_at >= n.created_at
