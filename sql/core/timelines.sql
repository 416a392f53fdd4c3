-- core.timelines: The steps in the life of each pod, each by the source that is trusted most for it.
--
-- A day tells the steps that happened in it, and of a pod that it is the first to know, those before.
-- A condition tells its last flip only, so that of one that flips back (Ready) is its first observed.
with
pods as (
    select
        p.*,
        w.begin_at as day_begin_at,
        coalesce(c.is_carried, false) as is_carried
    from core.pods as p
    inner join core.windows as w
        on p.cluster_name = w.cluster_name and p.day_on = w.day_on
    left join (
        select distinct
            cluster_name,
            day_on,
            pod_uid,
            true as is_carried
        from raw.pod_versions
        where change_name = 'CARRIED'
    ) as c
        on p.cluster_name = c.cluster_name and p.day_on = c.day_on and p.pod_uid = c.pod_uid
),

-- What no column of a pod's row keeps: gates, sandbox and containers.
told as (
    select
        cluster_name,
        day_on,
        pod_uid,
        bool_or(is_gated) as is_ever_gated,
        min(observed_at) filter (where not is_gated) as ungated_at,
        min(sandbox_ready_at) as sandbox_ready_at
    from raw.pod_versions
    where is_gated is not null or sandbox_ready_at is not null
    group by cluster_name, day_on, pod_uid
),

seen_runs as (
    select
        cluster_name,
        day_on,
        pod_uid,
        r.container_name,
        r.role_name,
        r.restart_count,
        date_trunc('second', r.started_at) as started_at,
        date_trunc('second', max(r.ended_at)) as ended_at,
        max(r.exit_code_number) as exit_code_number,
        max(r.reason_name) as reason_name
    from (
        select
            cluster_name,
            day_on,
            pod_uid,
            unnest(container_runs) as r
        from raw.pod_versions
        where len(container_runs) > 0
    ) as v
    group by
        cluster_name,
        day_on,
        pod_uid,
        r.container_name,
        r.role_name,
        r.restart_count,
        date_trunc('second', r.started_at)
),

-- Some runtimes give an ended run another begin: without a restart between it is the same run.
runs as (
    select
        cluster_name,
        day_on,
        pod_uid,
        container_name,
        role_name,
        restart_count,
        case when is_same then begun_at else started_at end as started_at,
        ended_at,
        exit_code_number,
        reason_name
    from (
        select
            *,
            lag(started_at) over restarts as begun_at,
            coalesce(
                lag(ended_at) over restarts is null and lag(started_at) over restarts is not null,
                false
            ) as is_same,
            coalesce(
                ended_at is null
                and lead(started_at) over restarts is not null
                and lead(ended_at) over restarts is not null,
                false
            ) as is_told_again
        from seen_runs
        window restarts as (
            partition by cluster_name, day_on, pod_uid, container_name, restart_count
            order by started_at
        )
    ) as s
    where not is_told_again
),

starts as (
    select
        cluster_name,
        day_on,
        pod_uid,
        min(started_at) as first_at,
        min(started_at) filter (where role_name = 'main') as main_at,
        max(ended_at) filter (where role_name = 'init' and exit_code_number = 0) as init_ended_at
    from runs
    group by cluster_name, day_on, pod_uid
),

stages as (
    select
        cluster_name,
        day_on,
        pod_uid,
        unnest([
            {
                'stage_name': 'created',
                'stage_at': created_at,
                'source_name': 'object',
                'detail_text': null::varchar
            },
            {
                'stage_name': 'bound',
                'stage_at': bound_at,
                'source_name': 'condition',
                'detail_text': node_name
            },
            {
                'stage_name': 'ready',
                'stage_at': first_ready_at,
                'source_name': 'condition',
                'detail_text': null
            },
            {
                'stage_name': 'deletion_asked',
                'stage_at': deletion_asked_at,
                'source_name': 'object',
                'detail_text': null
            },
            {
                'stage_name': 'finished',
                'stage_at': finished_at,
                'source_name': 'status',
                'detail_text': concat_ws(': ', phase_name, reason_name)
            },
            {
                'stage_name': 'gone',
                'stage_at': deleted_at,
                'source_name': 'observed',
                'detail_text': null
            }
        ]) as s,
        '' as container_name
    from pods
    union all by name
    select
        p.cluster_name,
        p.day_on,
        p.pod_uid,
        unnest([
            {
                'stage_name': 'quota_reserved',
                'stage_at': a.quota_reserved_at,
                'source_name': 'queue',
                'detail_text': a.queue_name
            },
            {
                'stage_name': 'admitted',
                'stage_at': coalesce(a.admitted_at, t.admitted_at),
                'source_name': case when a.admitted_at is null then 'observed' else 'queue' end,
                'detail_text': coalesce(a.queue_name, t.queue_name)
            },
            {
                'stage_name': 'disrupted',
                'stage_at': a.evicted_at,
                'source_name': 'queue',
                'detail_text': concat_ws(
                    ': ', a.eviction_reason_name, a.preemption_reason_name,
                    'for ' || a.preemptor_uid
                )
            }
        ]) as s,
        '' as container_name
    from pods as p
    left join core.admissions as a
        on
            p.cluster_name = a.cluster_name
            and p.day_on = a.day_on
            and p.workload_uid = a.workload_uid
            and p.attempt_number = a.attempt_number
    left join core.attempts as t
        on p.cluster_name = t.cluster_name and p.day_on = t.day_on and p.attempt_id = t.attempt_id
    where a.quota_reserved_at is not null or t.admitted_at is not null
    union all by name
    select
        p.cluster_name,
        p.day_on,
        p.pod_uid,
        unnest([
            {
                'stage_name': 'eligible',
                'stage_at': case
                    when v.is_ever_gated then v.ungated_at
                    when v.ungated_at is not null then p.created_at
                end,
                'source_name': case when v.is_ever_gated then 'observed' else 'object' end,
                'detail_text': null::varchar
            },
            -- Some kubelets tell it seconds after the containers run: then it says nothing.
            {
                'stage_name': 'sandbox_ready',
                'stage_at': case
                    when
                        date_trunc('second', v.sandbox_ready_at)
                        <= coalesce(r.first_at, 'infinity'::timestamptz)
                        then v.sandbox_ready_at
                end,
                'source_name': 'condition',
                'detail_text': null
            },
            {
                'stage_name': 'init_done',
                'stage_at': case when r.init_ended_at <= r.main_at then r.init_ended_at end,
                'source_name': 'status',
                'detail_text': null
            }
        ]) as s,
        '' as container_name
    from pods as p
    inner join told as v
        on p.cluster_name = v.cluster_name and p.day_on = v.day_on and p.pod_uid = v.pod_uid
    left join starts as r
        on p.cluster_name = r.cluster_name and p.day_on = r.day_on and p.pod_uid = r.pod_uid
    union all by name
    select
        cluster_name,
        day_on,
        pod_uid,
        unnest([
            {
                'stage_name': 'container_started',
                'stage_at': started_at,
                'source_name': 'status',
                'detail_text': case
                    when restart_count > 0 then 'restart ' || restart_count
                    when role_name <> 'main' then role_name
                end
            },
            {
                'stage_name': 'container_ended',
                'stage_at': ended_at,
                'source_name': 'status',
                'detail_text': concat_ws(
                    ', ', reason_name, 'exit code ' || exit_code_number
                )
            }
        ]) as s,
        container_name
    from runs
    union all by name
    select
        cluster_name,
        day_on,
        pod_uid,
        unnest([
            {
                'stage_name': 'pull_begun',
                'stage_at': begun_at,
                'source_name': 'event',
                'detail_text': image_name
            },
            {
                'stage_name': 'pulled',
                'stage_at': pulled_at,
                'source_name': 'event',
                'detail_text': case
                    when is_cached then image_name || ': was there'
                    else
                        image_name
                        || coalesce(': ' || round(total_seconds) || ' s in all', '')
                        || coalesce(', ' || round(queue_seconds) || ' s of it in a queue', '')
                end
            }
        ]) as s,
        container_name
    from core.image_pulls
    union all by name
    select
        cluster_name,
        day_on,
        victim_uid as pod_uid,
        {
            'stage_name': 'disrupted',
            'stage_at': disrupted_at,
            'source_name': case when component_name is null then 'condition' else 'event' end,
            'detail_text': concat_ws(
                ', ', replace(way_name, '_', ' '), 'for ' || coalesce(by_name, by_uid), cause_text
            )
        } as s,
        '' as container_name
    from core.disruptions
    where victim_kind_name = 'Pod'
),

told_once as (
    select distinct
        p.cluster_name,
        p.day_on,
        p.pod_uid,
        p.workload_key_uid,
        p.attempt_id,
        e.s.stage_name,
        e.container_name,
        date_trunc('second', e.s.stage_at) as stage_at,
        e.s.source_name,
        nullif(e.s.detail_text, '') as detail_text,
        -- Those of containers may come in any order among each other, but after the bind.
        p.bound_at,
        list_position(
            [
                'created', 'eligible', 'bound', 'sandbox_ready', 'init_done', 'ready', 'finished',
                'gone'
            ],
            e.s.stage_name
        ) as stage_order
    from stages as e
    inner join pods as p
        on e.cluster_name = p.cluster_name and e.day_on = p.day_on and e.pod_uid = p.pod_uid
    where
        e.s.stage_at is not null
        and (not p.is_carried or date_trunc('second', e.s.stage_at) >= p.day_begin_at)
)

select
    cluster_name,
    day_on,
    pod_uid,
    workload_key_uid,
    attempt_id,
    stage_name,
    container_name,
    row_number() over (
        partition by cluster_name, day_on, pod_uid, stage_name, container_name
        order by stage_at, source_name, detail_text
    ) as stage_number,
    stage_at,
    source_name,
    detail_text,
    coalesce(
        case
            when container_name <> '' then stage_at < bound_at
            when stage_order is not null
                then stage_at < max(stage_at) filter (where stage_order is not null) over (
                    partition by cluster_name, day_on, pod_uid
                    order by stage_order
                    range between unbounded preceding and 1 preceding
                )
        end,
        false
    ) as is_disordered
from told_once
