-- core.pod_attempts: Which attempt each pod belongs to: a quota attempt, a replica, or a session.
--
-- A session begins with a pod that is created when every earlier one of the workload was gone.
with
pods as (
    select
        p.*,
        case when p.is_service then coalesce(p.gang_name, p.pod_uid) else '' end as replica_key,
        p.namespace_name || '/' as place
    from core.pod_lives as p
),

-- What a pod is known by to Kueue: its owners, itself, its pod group; names only where no uid is.
keys as (
    select
        cluster_name,
        day_on,
        pod_uid,
        unnest(list_distinct(list_concat(
            [pod_uid, 'group/' || place || gang_name],
            list_transform(
                owners,
                lambda o: coalesce(o.object_uid, o.kind_name || '/' || place || o.object_name)
            )
        ))) as key_uid
    from pods
),

admission_keys as (
    select
        cluster_name,
        day_on,
        workload_uid,
        attempt_number,
        attempt_id,
        attempt_queued_at,
        queued_at,
        quota_reserved_at,
        ended_at,
        unnest(
            case
                when owner_uid is null then ['group/' || namespace_name || '/' || object_name]
                else [owner_uid, owner_kind_name || '/' || namespace_name || '/' || owner_name]
            end
        ) as key_uid
    from core.admissions
),

-- The attempt that had quota as the pod was made, the latest of them in that second; else it was
-- made gated: the latest that had entered the queue, or it came just before its Workload. One that
-- was gone by then is of an attempt of a day before.
matched as (
    select
        p.cluster_name,
        p.day_on,
        p.pod_uid,
        a.workload_uid,
        a.attempt_number,
        a.attempt_id,
        a.attempt_queued_at,
        a.queued_at,
        a.queued_at <= p.created_at as is_queued,
        coalesce(
            a.quota_reserved_at <= p.created_at and coalesce(a.ended_at >= p.created_at, true),
            false
        ) as is_with_quota
    from pods as p
    inner join keys as k
        on p.cluster_name = k.cluster_name and p.day_on = k.day_on and p.pod_uid = k.pod_uid
    inner join admission_keys as a
        on k.cluster_name = a.cluster_name and k.day_on = a.day_on and k.key_uid = a.key_uid
    where
        (not p.is_service or k.key_uid = p.pod_uid)
        and (
            a.queued_at <= p.created_at
            or (a.attempt_number = 1 and coalesce(p.gone_at > a.queued_at, true))
        )
),

admitted as (
    select *
    from matched
    qualify
        row_number() over (
            partition by cluster_name, day_on, pod_uid
            order by
                is_with_quota desc,
                is_queued desc,
                case when is_queued then queued_at end desc,
                queued_at asc,
                attempt_number desc,
                workload_uid asc
        ) = 1
),

pod_groups as (
    select
        cluster_name,
        day_on,
        namespace_name,
        pod_group_name,
        date_trunc('second', min(created_at)) as created_at,
        date_trunc('second', min(submitted_at)) as submitted_at,
        date_trunc('second', max(requeued_at)) as requeued_at
    from raw.pod_group_versions
    group by cluster_name, day_on, namespace_name, pod_group_name
),

flagged as (
    select
        p.*,
        g.created_at as group_created_at,
        g.submitted_at as group_submitted_at,
        g.requeued_at as group_requeued_at,
        coalesce(
            p.created_at >= max(coalesce(p.gone_at, 'infinity'::timestamptz)) over earlier,
            true
        ) as is_new
    from pods as p
    anti join admitted as a
        on
            p.cluster_name = a.cluster_name
            and p.day_on = a.day_on
            and p.pod_uid = a.pod_uid
            and not p.is_service
    left join pod_groups as g
        on
            p.cluster_name = g.cluster_name
            and p.day_on = g.day_on
            and p.namespace_name = g.namespace_name
            and p.gang_name = g.pod_group_name
    window earlier as (
        partition by p.cluster_name, p.day_on, p.workload_key_uid, p.replica_key
        order by p.created_at, p.pod_uid
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
        min(top_created_at) as top_created_at,
        bool_or(top_first_queued_at is not null) as is_tried,
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
            else coalesce(
                group_submitted_at,
                submitted_at,
                group_created_at,
                case when not is_tried then top_created_at end,
                created_at
            )
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
    s.workload_key_uid
    || case when s.replica_key = '' then '' else '/' || s.replica_key end
    || '@' || epoch_us(q.attempt_queued_at) // 1000000 as attempt_id,
    q.attempt_created_at,
    q.attempt_queued_at,
    a.workload_uid,
    a.attempt_number
from sessions as s
inner join queued as q
    on
        s.cluster_name = q.cluster_name
        and s.day_on = q.day_on
        and s.workload_key_uid = q.workload_key_uid
        and s.replica_key = q.replica_key
        and s.session_number = q.session_number
left join admitted as a
    on s.cluster_name = a.cluster_name and s.day_on = a.day_on and s.pod_uid = a.pod_uid
union all by name
select
    a.cluster_name,
    a.day_on,
    a.pod_uid,
    a.attempt_id,
    min(coalesce(p.known_created_at, p.created_at)) over (
        partition by a.cluster_name, a.day_on, a.attempt_id
    ) as attempt_created_at,
    a.attempt_queued_at,
    a.workload_uid,
    a.attempt_number
from admitted as a
inner join pods as p
    on a.cluster_name = p.cluster_name and a.day_on = p.day_on and a.pod_uid = p.pod_uid
where not p.is_service
