-- core.attempts: One try of a workload to run, in each day in which it was queued or alive.
with
pod_groups as (
    select
        cluster_name,
        day_on,
        namespace_name,
        pod_group_name,
        arg_max(workload_key_uid, sequence_number) as workload_key_uid,
        arg_max(queue_name, sequence_number) as queue_name,
        arg_max(min_member_count, sequence_number) as min_member_count,
        arg_max(phase_name, sequence_number) as phase_name,
        coalesce(
            date_trunc('second', min(submitted_at)), date_trunc('second', min(created_at))
        ) as queued_at,
        date_trunc('second', min(observed_at) filter (where change_name = 'DELETED')) as ended_at,
        max(requeued_at) as requeued_at
    from raw.pod_group_versions
    group by cluster_name, day_on, namespace_name, pod_group_name
),

completions as (
    select
        g.cluster_name,
        g.day_on,
        g.attempt_id,
        min(g.begin_at) as complete_at
    from core.gang_spells as g
    inner join (
        select
            cluster_name,
            day_on,
            attempt_id,
            max(gang_size_count) as gang_size_count
        from core.pods
        group by cluster_name, day_on, attempt_id
    ) as s
        on g.cluster_name = s.cluster_name and g.day_on = s.day_on and g.attempt_id = s.attempt_id
    where g.whole_count >= s.gang_size_count
    group by g.cluster_name, g.day_on, g.attempt_id
),

remembered as (
    select
        p.cluster_name,
        p.day_on,
        p.attempt_id,
        min(v.gang_complete_at) as complete_at
    from raw.pod_versions as v
    inner join core.pods as p
        on v.cluster_name = p.cluster_name and v.day_on = p.day_on and v.pod_uid = p.pod_uid
    where v.gang_complete_at is not null
    group by p.cluster_name, p.day_on, p.attempt_id
),

-- The day before took these for alive: whatever became of them, this day says it.
opened as (
    select distinct
        p.cluster_name,
        p.day_on,
        p.attempt_id
    from raw.pod_versions as v
    inner join core.pods as p
        on v.cluster_name = p.cluster_name and v.day_on = p.day_on and v.pod_uid = p.pod_uid
    where v.change_name = 'CARRIED' and v.finished_at is null
),

grouped as (
    select
        cluster_name,
        day_on,
        attempt_id,
        any_value(workload_key_uid) as workload_key_uid,
        any_value(namespace_name) as namespace_name,
        any_value(gang_name) as gang_name,
        any_value(workload_uid) as workload_uid,
        any_value(attempt_number) as attempt_number,
        bool_or(is_service) as is_service,
        bool_and(is_start_known) as is_start_known,
        arg_max(team_name, (created_at, pod_uid)) as team_name,
        arg_max(queue_name, (created_at, pod_uid)) as queue_name,
        greatest(coalesce(max(gang_size_count), 1), 1) as gang_size_count,
        count(*) as pod_count,
        sum(asked_micro_gpu) as asked_micro_gpu,
        max(asked_micro_gpu) as pod_micro_gpu,
        any_value(asked_gpu_model_name) as asked_gpu_model_name,
        min(attempt_queued_at) as queued_at,
        list_sort(list(bound_at) filter (where bound_at is not null)) as binds,
        list_sort(
            list(greatest(first_started_at, bound_at)) filter (where first_started_at is not null)
        ) as starts,
        case when bool_and(ended_at is not null) then max(ended_at) end as ended_at,
        case when bool_and(gone_at is not null) then max(gone_at) end as gone_at,
        bool_and(phase_name = 'Succeeded') as is_succeeded,
        bool_or(phase_name = 'Failed') as is_failed,
        bool_or(disruption_name is not null and phase_name <> 'Succeeded') as is_disrupted
    from core.pods
    group by cluster_name, day_on, attempt_id
),

tried as (
    select
        g.cluster_name,
        g.day_on,
        g.attempt_id,
        g.workload_key_uid,
        g.team_name,
        g.queue_name,
        g.namespace_name,
        g.gang_name,
        g.workload_uid,
        g.attempt_number,
        g.is_service,
        g.is_start_known,
        g.gang_size_count,
        g.pod_count,
        g.asked_micro_gpu,
        case
            when g.asked_micro_gpu = 0 then 'cpu'
            else
                coalesce(g.asked_gpu_model_name, 'any')
                || ' x ' || format('{:g}', g.pod_micro_gpu / 1e6)
                || ' x ' || g.gang_size_count
        end as gpu_shape_name,
        g.queued_at,
        case
            when g.binds[g.gang_size_count] is not null
                then greatest(g.queued_at, g.binds[g.gang_size_count])
        end as placed_at,
        g.starts[g.gang_size_count] as nth_started_at,
        -- Who is asked to go before being placed leaves the queue there and then.
        case
            when g.binds[g.gang_size_count] is null then g.gone_at
            else g.ended_at
        end as ended_at,
        g.binds[g.gang_size_count] is not null as is_placed,
        g.is_succeeded,
        g.is_failed,
        g.is_disrupted
    from grouped as g
    union all by name
    select
        q.cluster_name,
        q.day_on,
        q.workload_key_uid || '@' || epoch_us(q.queued_at) // 1000000 as attempt_id,
        q.workload_key_uid,
        '__unattributed__' as team_name,
        q.queue_name,
        q.namespace_name,
        q.pod_group_name as gang_name,
        null::varchar as workload_uid,
        null::bigint as attempt_number,
        false as is_service,
        true as is_start_known,
        greatest(q.min_member_count, 1) as gang_size_count,
        0 as pod_count,
        0 as asked_micro_gpu,
        'unknown' as gpu_shape_name,
        q.queued_at,
        null::timestamptz as placed_at,
        null::timestamptz as nth_started_at,
        q.ended_at,
        false as is_placed,
        false as is_succeeded,
        false as is_failed,
        false as is_disrupted
    from pod_groups as q
    anti join core.pods as p
        on
            q.cluster_name = p.cluster_name
            and q.day_on = p.day_on
            and q.namespace_name = p.namespace_name
            and q.pod_group_name = p.gang_name
    where q.requeued_at is null and coalesce(q.phase_name, '') not in ('Completed', 'Running')
    union all by name
    select
        a.cluster_name,
        a.day_on,
        a.attempt_id,
        a.workload_key_uid,
        coalesce(m.team_name, '__unattributed__') as team_name,
        a.queue_name,
        a.namespace_name,
        null::varchar as gang_name,
        a.workload_uid,
        a.attempt_number,
        false as is_service,
        true as is_start_known,
        greatest(a.pod_count, 1) as gang_size_count,
        0 as pod_count,
        a.asked_micro_gpu,
        '' as gpu_shape_name,
        a.attempt_queued_at as queued_at,
        null::timestamptz as placed_at,
        null::timestamptz as nth_started_at,
        null::timestamptz as ended_at,
        false as is_placed,
        false as is_succeeded,
        false as is_failed,
        false as is_disrupted
    from core.admissions as a
    left join core.object_teams as m
        on
            a.cluster_name = m.cluster_name
            and a.day_on = m.day_on
            and a.workload_uid = m.object_uid
    anti join core.pods as p
        on
            a.cluster_name = p.cluster_name
            and a.day_on = p.day_on
            and a.workload_uid = p.workload_uid
            and a.attempt_number = p.attempt_number
    where not a.is_service
),

-- No step is before the one before it, whatever clocks say.
steps as (
    select
        cluster_name,
        day_on,
        workload_uid,
        attempt_number,
        attempt_queued_at,
        pod_micro_gpu,
        asked_micro_gpu,
        asked_gpu_model_name,
        ended_at,
        finish_reason_name,
        evicted_at,
        eligible_at,
        case when quota_reserved_at is not null then greatest(quota_reserved_at, eligible_at) end
            as quota_reserved_at,
        case when admitted_at is not null then greatest(admitted_at, eligible_at) end
            as admitted_at
    from core.admissions
),

-- With quota of Kueue an attempt goes on while the quota does, whatever becomes of single pods; a
-- replica of a service goes on with its pod.
quotaed as (
    select
        t.* replace (
            case
                when k.workload_uid is null or t.is_service then t.gpu_shape_name
                when k.asked_micro_gpu = 0 then 'cpu'
                else
                    coalesce(k.asked_gpu_model_name, 'any')
                    || ' x ' || format('{:g}', k.pod_micro_gpu / 1e6)
                    || ' x ' || t.gang_size_count
            end as gpu_shape_name,
            case
                when k.workload_uid is null or t.is_service then t.asked_micro_gpu
                else k.asked_micro_gpu
            end as asked_micro_gpu,
            case
                when t.placed_at is not null
                    then greatest(t.placed_at, k.quota_reserved_at, k.admitted_at)
            end as placed_at,
            case
                when k.workload_uid is null or t.is_service then t.ended_at
                when t.pod_count = 0 or not t.is_placed then k.ended_at
                when k.ended_at is not null and t.ended_at is not null
                    then greatest(k.ended_at, t.ended_at)
            end as ended_at
        ),
        case when k.eligible_at is not null then greatest(t.queued_at, k.eligible_at) end
            as eligible_at,
        case
            when k.quota_reserved_at is not null then greatest(t.queued_at, k.quota_reserved_at)
        end as quota_reserved_at,
        case when k.admitted_at is not null then greatest(t.queued_at, k.admitted_at) end
            as admitted_at,
        case when not t.is_service then k.finish_reason_name end as finish_reason_name,
        k.evicted_at
    from tried as t
    left join steps as k
        on
            t.cluster_name = k.cluster_name
            and t.day_on = k.day_on
            and t.workload_uid = k.workload_uid
            and t.attempt_number = k.attempt_number
),

admissions as (
    select
        t.cluster_name,
        t.day_on,
        t.attempt_id,
        min(date_trunc('second', coalesce(v.admitted_at, v.observed_at))) as admitted_at
    from quotaed as t
    inner join raw.pod_group_versions as v
        on
            t.cluster_name = v.cluster_name
            and t.day_on = v.day_on
            and t.namespace_name = v.namespace_name
            and t.gang_name = v.pod_group_name
    where
        v.phase_name in ('Inqueue', 'Running')
        and (v.change_name <> 'CARRIED' or v.admitted_at is not null)
        and date_trunc('second', coalesce(v.admitted_at, v.observed_at)) >= t.queued_at
    group by t.cluster_name, t.day_on, t.attempt_id
)

select
    t.cluster_name,
    t.day_on,
    t.attempt_id,
    t.workload_key_uid,
    t.team_name,
    coalesce(t.queue_name, '__none__') as queue_name,
    t.is_service,
    t.gpu_shape_name,
    t.gang_size_count::bigint as gang_size_count,
    t.pod_count::bigint as pod_count,
    t.asked_micro_gpu::bigint as asked_micro_gpu,
    t.queued_at,
    t.eligible_at,
    t.quota_reserved_at,
    case
        when t.workload_uid is not null then t.admitted_at
        when a.admitted_at <= coalesce(t.placed_at, t.ended_at, w.end_at) then a.admitted_at
    end as admitted_at,
    case when t.is_placed then t.placed_at end as placed_at,
    case
        when t.is_placed and t.is_start_known and t.nth_started_at is not null
            then greatest(t.placed_at, t.nth_started_at)
    end as started_at,
    case
        when t.gang_size_count > 1 then least(c.complete_at, r.complete_at)
    end as complete_at,
    t.ended_at,
    w.end_at as known_until_at,
    t.is_start_known,
    q.pod_group_name is not null as is_in_pod_group,
    t.workload_uid,
    t.attempt_number,
    case
        when t.ended_at is null and t.is_placed then 'alive'
        when t.ended_at is null then 'queued'
        when t.finish_reason_name = 'Succeeded' then 'succeeded'
        when t.finish_reason_name = 'Failed' then 'failed'
        when t.evicted_at is not null then 'evicted'
        when not t.is_placed then 'withdrawn'
        when t.is_succeeded then 'succeeded'
        when t.is_disrupted then 'evicted'
        when t.is_failed then 'failed'
        else 'deleted'
    end as outcome_name
from quotaed as t
inner join core.windows as w
    on t.cluster_name = w.cluster_name and t.day_on = w.day_on
left join pod_groups as q
    on
        t.cluster_name = q.cluster_name
        and t.day_on = q.day_on
        and t.namespace_name = q.namespace_name
        and t.gang_name = q.pod_group_name
left join admissions as a
    on t.cluster_name = a.cluster_name and t.day_on = a.day_on and t.attempt_id = a.attempt_id
left join completions as c
    on t.cluster_name = c.cluster_name and t.day_on = c.day_on and t.attempt_id = c.attempt_id
left join remembered as r
    on t.cluster_name = r.cluster_name and t.day_on = r.day_on and t.attempt_id = r.attempt_id
left join opened as o
    on t.cluster_name = o.cluster_name and t.day_on = o.day_on and t.attempt_id = o.attempt_id
where t.ended_at is null or t.ended_at >= w.begin_at or o.attempt_id is not null
