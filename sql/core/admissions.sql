-- core.admissions: Each quota attempt of a Kueue Workload, from entering the queue to its end.
--
-- From the watched history of its conditions, never from Kueue's own figures of waits. A flip that
-- fell between two observed versions is not invented: the attempt says that it is not wholly known.
with
history as (
    select
        *,
        coalesce(is_quota_reserved, false) as is_reserved,
        date_trunc('second', quota_reserved_at) as flipped_at,
        row_number() over versions as place_number,
        coalesce(lag(is_quota_reserved) over versions, false) as was_reserved,
        date_trunc('second', lag(quota_reserved_at) over versions) as flipped_before_at,
        date_trunc('second', lag(observed_at) over versions) as seen_before_at,
        coalesce(lag(is_active) over versions, true) as was_active,
        lag(case when is_evicted then evicted_at end) over versions as evicted_before_at
    from raw.workload_versions
    window versions as (partition by cluster_name, day_on, workload_uid order by sequence_number)
),

-- How an attempt begins: as an earlier day knew it, with the first version, or as quota was released.
begins as (
    select
        *,
        case
            when place_number = 1 or attempt_number is not null then 'first'
            when is_finished then null
            when was_reserved and not is_reserved then 'released'
            when was_reserved and flipped_at > flipped_before_at then 'release_missed'
            when not is_reserved and flipped_at > flipped_before_at then 'quota_missed'
        end as begin_name,
        -- Evictions before we first saw it were of earlier attempts, but for one under way.
        coalesce(
            attempt_number,
            1 + coalesce(eviction_count, (is_evicted is not null)::bigint)
            - (is_reserved and coalesce(is_evicted, false))::bigint
        ) as counted_number
    from history
),

numbered as (
    select
        *,
        max(case when begin_name = 'first' then greatest(counted_number, 1) end) over versions
        + sum((begin_name is not null and begin_name <> 'first')::bigint) over versions
            as try_number
    from begins
    window
        versions as (
            partition by cluster_name, day_on, workload_uid
            order by sequence_number
            rows between unbounded preceding and current row
        )
),

tries as (
    select
        cluster_name,
        day_on,
        workload_uid,
        try_number,
        max(sequence_number) as last_sequence_number,
        any_value(begin_name) as begin_name,
        min(attempt_submitted_at) as known_submitted_at,
        min(attempt_eligible_at) as known_eligible_at,
        min(attempt_released_at) as known_released_at,
        bool_and(is_queued_known) as is_queued_known,
        any_value(case
            when begin_name = 'release_missed' then least(seen_before_at, flipped_at)
            when begin_name in ('released', 'quota_missed') then flipped_at
            when begin_name is null then null
            when attempt_queued_at is not null then attempt_queued_at
            when try_number = 1 then date_trunc('second', created_at)
            else flipped_at
        end) as queued_at,
        coalesce(bool_or(begin_name = 'release_missed'), false)
        or coalesce(bool_or(
            begin_name = 'first' and attempt_queued_at is null and try_number > 1 and is_reserved
        ), false) as is_queued_guessed,
        min(flipped_at) filter (where is_reserved) as quota_reserved_at,
        min(date_trunc('second', admitted_at)) filter (where is_reserved and is_admitted)
            as admitted_at,
        least(
            min(attempt_pods_ready_at),
            min(date_trunc('second', pods_ready_at)) filter (
                where is_reserved and is_pods_ready and pods_ready_at >= quota_reserved_at
            )
        ) as pods_ready_at,
        max(observed_at) filter (where is_active and not was_active and not is_reserved)
            as reactivated_at,
        arg_max(is_active or is_reserved, sequence_number) as is_eligible,
        arg_max(pending_reason_name, sequence_number) as pending_reason_name,
        arg_max(pending_text, sequence_number) as pending_text
    from numbered
    group by cluster_name, day_on, workload_uid, try_number
),

-- An eviction is of the attempt that had quota as it was first seen, or had just lost it; that it
-- lost the quota by it does not follow: an admission may overwrite it.
evictions as (
    select
        cluster_name,
        day_on,
        workload_uid,
        try_number - (not is_reserved)::bigint as try_number,
        date_trunc('second', evicted_at) as evicted_at,
        eviction_reason_name,
        preemption_reason_name,
        eviction_text,
        preemptor_uid,
        preemptor_job_uid
    from numbered
    where is_evicted and evicted_before_at is distinct from evicted_at
    qualify
        row_number() over (
            partition by cluster_name, day_on, workload_uid, try_number - (not is_reserved)::bigint
            order by sequence_number desc
        ) = 1
),

ends as (
    select
        cluster_name,
        day_on,
        workload_uid,
        max(try_number) as try_number,
        date_trunc('second', min(finished_at) filter (where is_finished)) as finished_at,
        arg_max(finish_reason_name, sequence_number) as finish_reason_name,
        date_trunc('second', least(
            min(deleted_at), min(observed_at) filter (where change_name = 'DELETED')
        )) as deleted_at,
        arg_max(cluster_queue_name, sequence_number) as cluster_queue_name
    from numbered
    group by cluster_name, day_on, workload_uid
),

-- A LocalQueue leads to one ClusterQueue: what others of it were admitted by, it waits for.
queues as (
    select
        cluster_name,
        day_on,
        namespace_name,
        queue_name,
        arg_max(cluster_queue_name, sequence_number) as cluster_queue_name
    from raw.workload_versions
    group by cluster_name, day_on, namespace_name, queue_name
),

units as (
    select
        cluster_name,
        day_on,
        r.resource_name,
        max(r.share_micro_gpu) as share_micro_gpu
    from (
        select
            cluster_name,
            day_on,
            unnest(resources) as r
        from raw.node_versions
    ) as u
    where r.share_micro_gpu > 0
    group by cluster_name, day_on, r.resource_name
),

latest as (
    select *
    from raw.workload_versions
    qualify
        row_number() over (
            partition by cluster_name, day_on, workload_uid order by sequence_number desc
        ) = 1
),

asked as (
    select
        q.cluster_name,
        q.day_on,
        q.workload_uid,
        q.is_pod,
        sum(q.r.request_count * coalesce(
            u.share_micro_gpu, case q.r.resource_name when 'milli-gpu' then 1000 else 1000000 end
        ))::bigint as asked_micro_gpu
    from (
        select
            cluster_name,
            day_on,
            workload_uid,
            false as is_pod,
            unnest(requests) as r
        from latest
        union all by name
        select
            cluster_name,
            day_on,
            workload_uid,
            true as is_pod,
            unnest(pod_requests) as r
        from latest
    ) as q
    left join units as u
        on
            q.cluster_name = u.cluster_name
            and q.day_on = u.day_on
            and q.r.resource_name = u.resource_name
    group by q.cluster_name, q.day_on, q.workload_uid, q.is_pod
),

placed as (
    select
        t.*,
        v.namespace_name,
        v.object_name,
        v.owner_kind_name,
        v.owner_name,
        v.owner_uid,
        v.pod_count,
        v.asked_gpu_model_name,
        v.source_ref,
        v.created_at,
        coalesce(o.workload_kind_name, v.workload_kind_name) as workload_kind_name,
        coalesce(o.workload_name, v.workload_name) as workload_name,
        coalesce(o.workload_key_uid, v.workload_key_uid) as workload_key_uid,
        coalesce(o.workload_class, v.workload_class) as workload_class,
        coalesce(o.is_service, v.is_service) as is_service,
        coalesce(v.user_name, o.user_name) as user_name,
        coalesce(v.submitted_at, o.submitted_at, o.top_created_at) as submitted_at,
        o.top_first_queued_at,
        e.finished_at,
        e.finish_reason_name,
        e.deleted_at,
        coalesce(e.cluster_queue_name, q.cluster_queue_name, v.queue_name) as queue_name,
        lead(t.queued_at) over tried as next_queued_at,
        lead(t.begin_name) over tried as next_begin_name
    from tries as t
    inner join raw.workload_versions as v
        on
            t.cluster_name = v.cluster_name
            and t.day_on = v.day_on
            and t.last_sequence_number = v.sequence_number
    left join core.owners as o
        on v.cluster_name = o.cluster_name and v.day_on = o.day_on and v.owner_uid = o.object_uid
    left join ends as e
        on
            t.cluster_name = e.cluster_name
            and t.day_on = e.day_on
            and t.workload_uid = e.workload_uid
            and t.try_number = e.try_number
    left join queues as q
        on
            v.cluster_name = q.cluster_name
            and v.day_on = q.day_on
            and v.namespace_name = q.namespace_name
            and v.queue_name = q.queue_name
    window tried as (partition by t.cluster_name, t.day_on, t.workload_uid order by t.try_number)
),

-- Only the first try of the first Workload of a top-level object waits since its submission.
submitted as (
    select
        *,
        coalesce(known_submitted_at, case
            when
                try_number = 1
                and top_first_queued_at is null
                and row_number() over (
                    partition by cluster_name, day_on, workload_key_uid
                    order by created_at, workload_uid, try_number
                ) = 1
                then date_trunc('second', least(submitted_at, queued_at))
        end, queued_at) as attempt_queued_at
    from placed
)

select
    s.cluster_name,
    s.day_on,
    s.workload_uid,
    s.try_number::bigint as attempt_number,
    s.workload_key_uid || '/' || s.workload_uid || '.' || s.try_number
    || '@' || epoch_us(s.attempt_queued_at) // 1000000 as attempt_id,
    s.namespace_name,
    s.object_name,
    s.owner_kind_name,
    s.owner_name,
    s.owner_uid,
    s.workload_kind_name,
    s.workload_name,
    s.workload_key_uid,
    s.workload_class,
    s.is_service,
    s.queue_name,
    s.user_name,
    s.pod_count,
    coalesce(a.asked_micro_gpu, 0) as asked_micro_gpu,
    coalesce(p.asked_micro_gpu, 0) as pod_micro_gpu,
    s.asked_gpu_model_name,
    s.attempt_queued_at,
    s.queued_at,
    case
        when s.is_eligible
            then least(
                greatest(
                    s.queued_at, s.known_eligible_at, date_trunc('second', s.reactivated_at)
                ),
                s.quota_reserved_at
            )
    end as eligible_at,
    s.quota_reserved_at,
    case when s.admitted_at is not null then greatest(s.admitted_at, s.quota_reserved_at) end
        as admitted_at,
    s.pods_ready_at,
    v.evicted_at,
    v.eviction_reason_name,
    v.preemption_reason_name,
    v.eviction_text,
    v.preemptor_uid,
    v.preemptor_job_uid,
    case
        when s.known_released_at is not null then s.known_released_at
        when s.next_begin_name = 'released' then s.next_queued_at
    end as quota_released_at,
    s.finished_at,
    s.finish_reason_name,
    s.deleted_at,
    least(s.known_released_at, s.next_queued_at, s.finished_at, s.deleted_at) as ended_at,
    coalesce(s.is_queued_known, true) and not s.is_queued_guessed as is_queued_known,
    coalesce(s.next_begin_name not like '%_missed', true) as is_end_known,
    s.pending_reason_name,
    s.pending_text,
    s.source_ref
from submitted as s
left join evictions as v
    on
        s.cluster_name = v.cluster_name
        and s.day_on = v.day_on
        and s.workload_uid = v.workload_uid
        and s.try_number = v.try_number
left join asked as a
    on
        s.cluster_name = a.cluster_name
        and s.day_on = a.day_on
        and s.workload_uid = a.workload_uid
        and not a.is_pod
left join asked as p
    on
        s.cluster_name = p.cluster_name
        and s.day_on = p.day_on
        and s.workload_uid = p.workload_uid
        and p.is_pod
