-- mart.gpu_findings: What does not fit together between what was held and what was measured.
with
nodes as (
    select
        cluster_name,
        day_on,
        node_uid,
        node_name,
        installed_count,
        begin_at,
        end_at
    from core.nodes
),

-- The node of a GPU may not be known.
instances as (
    select
        g.cluster_name,
        g.day_on,
        g.node_uid,
        g.gpu_uuid,
        g.instance_number,
        g.node_name,
        g.sample_seconds,
        n.node_name as recorded_name,
        n.begin_at as node_begin_at,
        n.end_at as node_end_at,
        g.share_micro_gpu / 1000000.0 as gpu_share_ratio
    from core.gpus as g
    left join nodes as n
        on g.cluster_name = n.cluster_name and g.day_on = n.day_on and g.node_uid = n.node_uid
),

-- At work although no hold is known to lie on it; near a hold it is that one's, told late.
rogue_pieces as (
    select
        s.cluster_name,
        s.day_on,
        s.node_uid,
        s.gpu_uuid,
        s.instance_number,
        s.sm_ratio,
        s.utilisation_ratio,
        s.power_watts,
        greatest(s.begin_at, date_trunc('second', c.begin_at)) as begin_at,
        least(s.end_at, date_trunc('second', c.end_at)) as end_at
    from core.gpu_states as s
    inner join core.gpu_owners as o
        on
            s.cluster_name = o.cluster_name
            and s.day_on = o.day_on
            and s.node_uid = o.node_uid
            and s.gpu_uuid = o.gpu_uuid
            and s.instance_number = o.instance_number
            and s.end_at > o.begin_at
            and s.end_at <= o.end_at
    inner join raw.coverage as c
        on
            s.cluster_name = c.cluster_name
            and s.day_on = c.day_on
            and c.coverage_name in ('watched', 'sampled', 'table')
            and s.begin_at < date_trunc('second', c.end_at)
            and s.end_at > date_trunc('second', c.begin_at)
    -- Of its own pods a recorder's word counts, also in its gaps: there it does not know their end.
    left join (
        select distinct
            cluster_name,
            day_on
        from raw.coverage
        where coverage_name = 'watched'
    ) as w
        on s.cluster_name = w.cluster_name and s.day_on = w.day_on
    where
        s.activity_name = 'active'
        and (
            c.coverage_name <> 'sampled'
            or w.day_on is null
            or not exists (
                select 1
                from core.hold_parts as p
                inner join core.holds as h
                    on
                        p.cluster_name = h.cluster_name
                        and p.day_on = h.day_on
                        and p.hold_id = h.hold_id
                where
                    p.gpu_uuid = s.gpu_uuid
                    and p.instance_number = s.instance_number
                    and h.cluster_name = s.cluster_name
                    and h.day_on = s.day_on
                    and h.node_uid = s.node_uid
                    and h.end_at >= c.begin_at - interval 60 second
                    and h.end_at <= c.end_at
            )
        )
        and o.hold_count = 0
        -- Where labels name a pod, someone has it whom the record lost from sight.
        and not exists (
            select 1
            from raw.gpu_series as r
            where
                r.pod_name <> ''
                and r.cluster_name = s.cluster_name
                and r.day_on = s.day_on
                and r.gpu_uuid = s.gpu_uuid
                and r.instance_number = s.instance_number
                and r.begin_at < s.end_at
                and r.end_at > s.begin_at
        )
        and not exists (
            select 1
            from core.hold_parts as p
            inner join core.holds as h
                on p.cluster_name = h.cluster_name and p.day_on = h.day_on and p.hold_id = h.hold_id
            where
                p.gpu_uuid is null
                and h.cluster_name = s.cluster_name
                and h.day_on = s.day_on
                and h.node_uid = s.node_uid
                and h.begin_at < s.end_at
                and h.end_at > s.begin_at
        )
),

rogue_changes as (
    select
        *,
        coalesce(
            begin_at <> lag(end_at) over (
                partition by cluster_name, day_on, node_uid, gpu_uuid, instance_number
                order by begin_at
            ),
            true
        )::integer as is_other
    from rogue_pieces
),

rogues as (
    select
        cluster_name,
        day_on,
        'used_without_hold' as finding_name,
        gpu_uuid || case when instance_number >= 0 then '/' || instance_number else '' end
            as subject_text,
        min(begin_at) as begin_at,
        max(end_at) as end_at,
        '__unallocated__' as team_name,
        null::varchar as workload_key_uid,
        null::varchar as pod_name,
        node_uid,
        any_value(gpu_uuid) as gpu_uuids_text,
        1::bigint as gpu_count,
        null::bigint as of_gpu_count,
        concat_ws(
            ', ',
            'no pod holds it',
            'SM up to ' || round(100 * max(sm_ratio))::integer || ' %',
            'GPU_UTIL up to ' || round(100 * max(utilisation_ratio))::integer || ' %',
            'up to ' || round(max(power_watts))::integer || ' W'
        ) as evidence_text,
        any_value(gpu_share_ratio) as part_ratio
    from (
        select
            *,
            sum(is_other) over (
                partition by cluster_name, day_on, node_uid, gpu_uuid, instance_number
                order by begin_at
            ) as piece_number
        from rogue_changes
        inner join instances using (cluster_name, day_on, node_uid, gpu_uuid, instance_number)
    ) as p
    group by cluster_name, day_on, node_uid, gpu_uuid, instance_number, piece_number
    having date_diff('second', min(begin_at), max(end_at)) >= 300
),

stranger_hours as (
    select
        s.*,
        g.node_uid,
        g.sample_seconds,
        g.gpu_share_ratio,
        -- A sample speaks for the time before it.
        greatest(
            s.begin_at - to_seconds(g.sample_seconds::integer), g.node_begin_at
        ) as told_at,
        coalesce(
            s.begin_at > lag(s.end_at) over (
                partition by
                    s.cluster_name, s.day_on, g.node_uid, s.gpu_uuid, s.instance_number,
                    s.pod_namespace_name, s.pod_name
                order by s.begin_at
            ) + to_seconds(3 * g.sample_seconds::integer),
            true
        )::integer as is_other
    from raw.gpu_series as s
    inner join instances as g
        on
            s.cluster_name = g.cluster_name
            and s.day_on = g.day_on
            and s.node_name = g.node_name
            and s.gpu_uuid = g.gpu_uuid
            and s.instance_number = g.instance_number
            and coalesce(s.begin_at < g.node_end_at and s.end_at > g.node_begin_at, true)
    where
        s.pod_name <> ''
        and s.sample_count > 3
        and not exists (
            select 1
            from core.holds as h
            inner join core.pods as p
                on h.cluster_name = p.cluster_name and h.day_on = p.day_on and h.pod_uid = p.pod_uid
            inner join nodes as n
                on
                    h.cluster_name = n.cluster_name
                    and h.day_on = n.day_on
                    and h.node_uid = n.node_uid
            where
                h.cluster_name = s.cluster_name
                and h.day_on = s.day_on
                and n.node_name = g.recorded_name
                and p.namespace_name = s.pod_namespace_name
                and p.pod_name = s.pod_name
                and h.begin_at < s.end_at
                and h.end_at > s.begin_at
        )
),

strangers as (
    select
        cluster_name,
        day_on,
        'label_disagrees' as finding_name,
        gpu_uuid || ' ' || pod_namespace_name || '/' || pod_name as subject_text,
        date_trunc('second', min(told_at)) as begin_at,
        date_trunc('second', max(end_at)) as end_at,
        '__unknown__' as team_name,
        null::varchar as workload_key_uid,
        pod_namespace_name || '/' || pod_name as pod_name,
        node_uid,
        any_value(gpu_uuid) as gpu_uuids_text,
        1::bigint as gpu_count,
        null::bigint as of_gpu_count,
        sum(sample_count) || ' samples name this pod, which holds no GPU of the node then'
            as evidence_text,
        -- Of the stretch only the time of its samples counts.
        any_value(gpu_share_ratio) * least(
            1.0,
            sum(sample_count * sample_seconds)
            / nullif(date_diff('second', min(told_at), max(end_at)), 0)
        ) as part_ratio
    from (
        select
            *,
            sum(is_other) over (
                partition by
                    cluster_name, day_on, node_uid, gpu_uuid, instance_number,
                    pod_namespace_name, pod_name
                order by begin_at
            ) as piece_number
        from stranger_hours
    ) as h
    group by
        cluster_name, day_on, node_uid, gpu_uuid, instance_number, pod_namespace_name, pod_name,
        piece_number
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
