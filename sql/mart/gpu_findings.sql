-- mart.gpu_findings: What does not fit together between what was held and what was measured.
with
nodes as (
    select
        cluster_name,
        day_on,
        node_uid,
        node_name,
        installed_count
    from core.nodes
),

rogues as (
    select
        s.cluster_name,
        s.day_on,
        'used_without_hold' as finding_name,
        s.gpu_uuid || case when s.instance_number >= 0 then '/' || s.instance_number else '' end
            as subject_text,
        s.begin_at,
        s.end_at,
        '__unallocated__' as team_name,
        null::varchar as workload_key_uid,
        null::varchar as pod_name,
        s.node_uid,
        s.gpu_uuid as gpu_uuids_text,
        1::bigint as gpu_count,
        null::bigint as of_gpu_count,
        concat_ws(
            ', ',
            'no pod holds it',
            'SM up to ' || round(100 * s.sm_ratio)::integer || ' %',
            'GPU_UTIL up to ' || round(100 * s.utilisation_ratio)::integer || ' %',
            'up to ' || round(s.power_watts)::integer || ' W'
        ) as evidence_text,
        g.share_micro_gpu / 1000000.0 as part_ratio
    from core.gpu_strangers as s
    inner join core.gpus as g
        on
            s.cluster_name = g.cluster_name
            and s.day_on = g.day_on
            and s.node_uid = g.node_uid
            and s.gpu_uuid = g.gpu_uuid
            and s.instance_number = g.instance_number
),

strangers as (
    select
        s.cluster_name,
        s.day_on,
        'label_disagrees' as finding_name,
        s.gpu_uuid || ' ' || s.pod_namespace_name || '/' || s.pod_name as subject_text,
        s.begin_at,
        s.end_at,
        '__unknown__' as team_name,
        null::varchar as workload_key_uid,
        s.pod_namespace_name || '/' || s.pod_name as pod_name,
        s.node_uid,
        s.gpu_uuid as gpu_uuids_text,
        1::bigint as gpu_count,
        null::bigint as of_gpu_count,
        s.sample_count || ' samples name this pod, which '
        || coalesce(
            'the scheduler gave ' || s.held_uuids_text || ' instead',
            'holds no GPU of the node then'
        ) as evidence_text,
        -- Of the stretch only the time of its samples counts.
        g.share_micro_gpu / 1000000.0 * least(
            1.0, s.told_seconds / nullif(date_diff('second', s.begin_at, s.end_at), 0)
        ) as part_ratio
    from core.label_strangers as s
    inner join core.gpus as g
        on
            s.cluster_name = g.cluster_name
            and s.day_on = g.day_on
            and s.node_uid = g.node_uid
            and s.gpu_uuid = g.gpu_uuid
            and s.instance_number = g.instance_number
),

-- What each GPU of a pod did while its containers ran; at both edges of the hold two samples may
-- tell of who had it before or afterwards.
of_pods as (
    select
        h.cluster_name,
        h.day_on,
        h.pod_uid,
        h.node_uid,
        p.gpu_uuid,
        p.instance_number,
        any_value(h.team_name) as team_name,
        any_value(h.workload_key_uid) as workload_key_uid,
        min(s.begin_at) filter (where s.state_name <> 'unavailable') as begin_at,
        max(s.end_at) filter (where s.state_name <> 'unavailable') as end_at,
        sum(date_diff('second', s.begin_at, s.end_at))
        filter (where s.state_name <> 'unavailable') as run_seconds,
        bool_or(s.state_name = 'unavailable') as is_broken,
        coalesce(
            sum(greatest(0, date_diff(
                'second',
                greatest(s.begin_at, h.begin_at + interval 60 second),
                least(s.end_at, h.end_at - interval 60 second)
            ))) filter (where s.state_name in ('active', 'stalled')), 0
        ) as active_seconds,
        coalesce(
            sum(date_diff('second', s.begin_at, s.end_at))
            filter (where s.state_name = 'unobserved'), 0
        ) as unobserved_seconds
    from core.holds as h
    inner join core.hold_parts as p
        on h.cluster_name = p.cluster_name and h.day_on = p.day_on and h.hold_id = p.hold_id
    inner join core.hold_states as s
        on
            p.cluster_name = s.cluster_name
            and p.day_on = s.day_on
            and p.hold_id = s.hold_id
            and p.part_number = s.part_number
    where
        p.gpu_uuid is not null
        and not p.is_shared
        and s.state_name in ('active', 'idle', 'stalled', 'unobserved', 'loading', 'unavailable')
    group by h.cluster_name, h.day_on, h.pod_uid, h.node_uid, p.gpu_uuid, p.instance_number
),

-- Half an hour and more, nine tenths of it measured, and not once at work; when a GPU of the pod
-- breaks, all of them stop.
over_sized as (
    select
        cluster_name,
        day_on,
        'over_sized' as finding_name,
        pod_uid as subject_text,
        min(begin_at) as begin_at,
        max(end_at) as end_at,
        any_value(team_name) as team_name,
        any_value(workload_key_uid) as workload_key_uid,
        null::varchar as pod_name,
        any_value(node_uid) as node_uid,
        string_agg(gpu_uuid, ' ' order by gpu_uuid) filter (where active_seconds = 0)
            as gpu_uuids_text,
        count(*) filter (where active_seconds = 0) as gpu_count,
        count(*) as of_gpu_count,
        count(*) filter (where active_seconds = 0) || ' of ' || count(*)
        || ' GPUs were never at work, the others up to '
        || round(100 * max(active_seconds / run_seconds))::integer || ' % of the time'
            as evidence_text
    from of_pods
    where run_seconds >= 1800 and unobserved_seconds <= 0.1 * run_seconds
    group by cluster_name, day_on, pod_uid
    having
        count(*) filter (where active_seconds = 0) > 0
        and max(active_seconds) >= 600
        and not bool_or(is_broken)
),

links as (
    select
        h.cluster_name,
        h.day_on,
        h.pod_uid,
        h.node_uid,
        p.gpu_uuid,
        any_value(h.team_name) as team_name,
        any_value(h.workload_key_uid) as workload_key_uid,
        min(g.begin_at) as begin_at,
        max(g.end_at) as end_at,
        sum(date_diff('second', g.begin_at, g.end_at)) as active_seconds,
        coalesce(sum(date_diff('second', g.begin_at, g.end_at)) filter (
            where
            g.nvlink_bytes_per_second < 0.01 * g.pcie_bytes_per_second
            and g.pcie_bytes_per_second > 5000000000
        ), 0) as silent_seconds,
        max(g.pcie_bytes_per_second) as pcie_rate
    from core.holds as h
    inner join core.hold_parts as p
        on h.cluster_name = p.cluster_name and h.day_on = p.day_on and h.hold_id = p.hold_id
    inner join core.gpu_stretches as g
        on
            p.cluster_name = g.cluster_name
            and p.day_on = g.day_on
            and p.hold_id = g.hold_id
            and p.gpu_uuid = g.gpu_uuid
            and p.instance_number = g.instance_number
    where g.kind_name = 'active' and not p.is_shared and g.nvlink_bytes_per_second is not null
    group by h.cluster_name, h.day_on, h.pod_uid, h.node_uid, p.gpu_uuid
),

silent as (
    select
        cluster_name,
        day_on,
        'nvlink_silent' as finding_name,
        pod_uid as subject_text,
        min(begin_at) as begin_at,
        max(end_at) as end_at,
        any_value(team_name) as team_name,
        any_value(workload_key_uid) as workload_key_uid,
        null::varchar as pod_name,
        any_value(node_uid) as node_uid,
        string_agg(gpu_uuid, ' ' order by gpu_uuid) as gpu_uuids_text,
        count(*) as gpu_count,
        count(*) as of_gpu_count,
        'NVLink under 1 % of PCIe, which carried up to '
        || format('{:.1f}', max(pcie_rate) / 1000000000) || ' GB/s, for '
        || round(avg(silent_seconds) / 60)::integer || ' minutes at work' as evidence_text
    from links
    group by cluster_name, day_on, pod_uid
    having count(*) > 1 and avg(silent_seconds) >= 600 and min(silent_seconds) > 0
),

surplus as (
    select
        g.cluster_name,
        g.day_on,
        'more_gpus_than_installed' as finding_name,
        g.node_uid as subject_text,
        date_trunc('second', min(g.first_sampled_at)) as begin_at,
        date_trunc('second', max(g.last_sampled_at)) as end_at,
        '__unknown__' as team_name,
        null::varchar as workload_key_uid,
        null::varchar as pod_name,
        g.node_uid,
        string_agg(distinct g.gpu_uuid, ' ' order by g.gpu_uuid) as gpu_uuids_text,
        count(distinct g.gpu_uuid) - any_value(n.installed_count) as gpu_count,
        count(distinct g.gpu_uuid) as of_gpu_count,
        count(distinct g.gpu_uuid) || ' GPUs were measured, ' || any_value(n.installed_count)
        || ' are installed' as evidence_text
    from core.gpus as g
    inner join nodes as n
        on g.cluster_name = n.cluster_name and g.day_on = n.day_on and g.node_uid = n.node_uid
    group by g.cluster_name, g.day_on, g.node_uid
    having count(distinct g.gpu_uuid) > any_value(n.installed_count)
),

findings as (
    select * from rogues
    union all by name
    select * from strangers
    union all by name
    select * from over_sized
    union all by name
    select * from silent
    union all by name
    select * from surplus
),

charged as (
    select
        f.cluster_name,
        f.day_on,
        f.finding_name,
        f.subject_text,
        f.begin_at,
        p.price_micro_cost_per_gpu_hour,
        (
            f.gpu_count * coalesce(f.part_ratio, 1.0) * date_diff(
                'second', greatest(f.begin_at, p.begin_at), least(f.end_at, p.end_at)
            )
        )::decimal(18, 6) as gpu_seconds
    from findings as f
    inner join core.price_spells as p
        on
            f.cluster_name = p.cluster_name
            and f.day_on = p.day_on
            and f.node_uid = p.node_uid
            and f.begin_at < p.end_at
            and f.end_at > p.begin_at
),

sums as (
    select
        cluster_name,
        day_on,
        finding_name,
        subject_text,
        begin_at,
        sum(gpu_seconds) as gpu_seconds,
        coalesce(sum(gpu_seconds) filter (where price_micro_cost_per_gpu_hour is null), 0)
            as unpriced_gpu_seconds,
        sum(gpu_seconds * price_micro_cost_per_gpu_hour / 3600000000) as finding_cost
    from charged
    group by cluster_name, day_on, finding_name, subject_text, begin_at
)

select
    f.cluster_name,
    f.day_on,
    f.finding_name,
    f.subject_text,
    f.begin_at,
    f.end_at,
    f.team_name,
    w.workload_name,
    coalesce(f.pod_name, p.pod_name) as pod_name,
    f.node_uid,
    coalesce(n.node_name, f.node_uid) as node_name,
    f.gpu_uuids_text,
    f.gpu_count::bigint as gpu_count,
    f.of_gpu_count::bigint as of_gpu_count,
    coalesce(s.gpu_seconds, 0)::decimal(18, 6) as gpu_seconds,
    coalesce(s.unpriced_gpu_seconds, 0)::decimal(18, 6) as unpriced_gpu_seconds,
    (case when s.gpu_seconds is null then 0 else s.finding_cost end)::decimal(18, 6)
        as finding_cost,
    f.evidence_text
from findings as f
left join nodes as n
    on f.cluster_name = n.cluster_name and f.day_on = n.day_on and f.node_uid = n.node_uid
left join core.pods as p
    on f.cluster_name = p.cluster_name and f.day_on = p.day_on and f.subject_text = p.pod_uid
left join core.workloads as w
    on
        f.cluster_name = w.cluster_name
        and f.day_on = w.day_on
        and f.workload_key_uid = w.workload_key_uid
left join sums as s
    on
        f.cluster_name = s.cluster_name
        and f.day_on = s.day_on
        and f.finding_name = s.finding_name
        and f.subject_text = s.subject_text
        and f.begin_at = s.begin_at
