-- core.pod_lives: When each pod seen that day was bound, ran and ended, and whose it is by its owners.
--
-- What an earlier day knew comes in the memory columns of the CARRIED row, so a day needs no other.
-- Recorded owners go before labels, unless their chain breaks off below what the labels name.
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
        arg_max(user_name, sequence_number) as user_name,
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

owned as (
    select
        f.*,
        v.namespace_name,
        v.gang_name,
        v.queue_name,
        v.account_name,
        v.gang_size_count,
        v.gang_source_name,
        v.workload_kind_name,
        v.workload_name,
        v.workload_key_uid,
        v.workload_class,
        v.is_service,
        v.owners,
        v.submitted_at,
        date_trunc('second', v.created_at) as created_at,
        o.object_uid is not null and (
            o.is_top_recorded
            or list_contains(
                list_transform(o.owners, lambda above: above.kind_name || '/' || above.object_name),
                v.workload_kind_name || '/' || v.workload_name
            )
        ) as is_chain_recorded,
        o as chain
    from folded as f
    inner join raw.pod_versions as v
        on
            f.cluster_name = v.cluster_name
            and f.day_on = v.day_on
            and f.last_sequence_number = v.sequence_number
    left join core.owners as o
        on
            v.cluster_name = o.cluster_name
            and v.day_on = o.day_on
            and v.owners[1].object_uid = o.object_uid
),

resolved as (
    select
        * exclude (
            workload_kind_name, workload_name, workload_key_uid, workload_class, is_service, owners
        ),
        case when is_chain_recorded then chain.workload_kind_name else workload_kind_name end
            as workload_kind_name,
        case when is_chain_recorded then chain.workload_name else workload_name end
            as workload_name,
        case when is_chain_recorded then chain.workload_key_uid else workload_key_uid end
            as workload_key_uid,
        -- The class may go by the pod's own labels.
        case
            when not is_chain_recorded then workload_class
            when chain.workload_kind_name <> workload_kind_name then chain.workload_class
            when chain.workload_name <> workload_name then chain.workload_class
            else workload_class
        end as workload_class,
        case when is_chain_recorded then chain.is_service else is_service end as is_service,
        case when is_chain_recorded then chain.owners else owners end as owners
    from owned
),

-- Where the owners were not recorded: who last created something of the top's name.
creators as (
    select
        r.cluster_name,
        r.day_on,
        r.pod_uid,
        arg_max(c.user_name, c.created_at) as creator_name
    from resolved as r
    inner join raw.object_creations as c
        on
            r.cluster_name = c.cluster_name
            and r.day_on = c.day_on
            and r.workload_kind_name = c.kind_name
            and r.namespace_name = c.namespace_name
            and r.workload_name = c.object_name
            and r.created_at >= date_trunc('second', c.created_at)
    where not r.is_chain_recorded and coalesce(r.workload_key_uid = c.object_uid, true)
    group by r.cluster_name, r.day_on, r.pod_uid
)

select
    r.cluster_name,
    r.day_on,
    r.pod_uid,
    r.namespace_name,
    r.workload_kind_name,
    r.workload_name,
    r.workload_key_uid,
    r.workload_class,
    r.is_service,
    r.owners,
    r.is_chain_recorded,
    coalesce(r.queue_name, r.chain.queue_name) as queue_name,
    coalesce(r.user_name, r.chain.user_name, c.creator_name) as user_name,
    coalesce(r.account_name, r.chain.account_name) as account_name,
    r.gang_name,
    coalesce(r.gang_size_count, case when not r.is_service then r.chain.gang_size_count end)
        as gang_size_count,
    coalesce(r.gang_source_name, case when not r.is_service then r.chain.gang_source_name end)
        as gang_source_name,
    r.created_at,
    date_trunc(
        'second',
        coalesce(r.submitted_at, case when not r.is_service then r.chain.submitted_at end)
    ) as submitted_at,
    case when r.is_chain_recorded and not r.is_service then r.chain.top_created_at end
        as top_created_at,
    case when r.is_chain_recorded then r.chain.top_first_queued_at end as top_first_queued_at,
    r.bound_at,
    r.node_name,
    r.first_started_at,
    r.first_ready_at,
    r.deletion_asked_at,
    r.finished_at,
    r.deleted_at,
    least(r.finished_at, r.deleted_at) as ended_at,
    least(r.deletion_asked_at, r.finished_at, r.deleted_at) as gone_at,
    r.reason_name,
    r.disruption_name,
    r.is_refused,
    r.restart_count,
    r.known_queued_at,
    r.known_created_at,
    r.known_team_name,
    r.bind_sequence_number,
    r.last_sequence_number
from resolved as r
left join creators as c
    on r.cluster_name = c.cluster_name and r.day_on = c.day_on and r.pod_uid = c.pod_uid
