-- mart.gpu_episodes: Idle and stalled GPUs of holds: the day's piece of each episode, with its evidence.
--
-- Likely cause, the first that applies: an error or a broken GPU; short of CPU or reading files; a
-- member of the gang is late, at work alone or short of input; it never worked; what is usual for a
-- service or a notebook; it worked and its process does nothing, or is gone.
with
episodes as (
    select
        e.*,
        h.pod_uid,
        h.node_uid,
        h.team_name,
        h.workload_key_uid,
        h.workload_class,
        d.gpu_uuid,
        d.instance_number,
        g.gpu_model_name,
        g.node_name,
        g.bare_watts,
        g.context_watts,
        case e.episode_name
            when 'idle' then r.episode_least_seconds else r.stalled_least_seconds
        end as least_seconds,
        r.episode_most_active_ratio as most_active_ratio,
        v.* exclude (
            cluster_name, day_on, episode_name, hold_id, part_number, begin_at
        ),
        v.throttled_ratio >= r.input_least_throttled_ratio as is_throttled,
        v.file_read_bytes_per_second >= r.input_least_bytes_per_second
        or v.network_received_bytes_per_second >= r.input_least_bytes_per_second as is_reading
    from core.gpu_episodes as e
    inner join core.holds as h
        on e.cluster_name = h.cluster_name and e.day_on = h.day_on and e.hold_id = h.hold_id
    inner join core.hold_parts as d
        on
            e.cluster_name = d.cluster_name
            and e.day_on = d.day_on
            and e.hold_id = d.hold_id
            and e.part_number = d.part_number
    inner join core.gpus as g
        on
            d.cluster_name = g.cluster_name
            and d.day_on = g.day_on
            and h.node_uid = g.node_uid
            and d.gpu_uuid = g.gpu_uuid
            and d.instance_number = g.instance_number
    inner join core.gpu_rules as r
        on
            g.cluster_name = r.cluster_name
            and g.day_on = r.day_on
            and g.gpu_model_name = r.gpu_model_name
            and h.workload_class = r.workload_class
    inner join core.episode_evidence as v
        on
            e.cluster_name = v.cluster_name
            and e.day_on = v.day_on
            and e.episode_name = v.episode_name
            and e.hold_id = v.hold_id
            and e.part_number = v.part_number
            and e.begin_at = v.begin_at
),

-- Members of one attempt of which another is short of input at the same time.
starved as (
    select distinct
        e.cluster_name,
        e.day_on,
        e.episode_name,
        e.hold_id,
        e.part_number,
        e.begin_at
    from episodes as e
    inner join episodes as o
        on
            e.cluster_name = o.cluster_name
            and e.day_on = o.day_on
            and e.attempt_id = o.attempt_id
            and e.pod_uid <> o.pod_uid
            and o.begin_at < e.end_at
            and o.end_at > e.begin_at
    where (o.is_throttled or o.is_reading) and e.peer_count > 0
),

readings as (
    select
        e.cluster_name,
        e.day_on,
        e.episode_name,
        e.hold_id,
        e.part_number,
        e.begin_at,
        sum(date_diff(
            'second', greatest(e.begin_at, s.begin_at), least(e.end_at, s.end_at)
        )) filter (where s.activity_name = e.episode_name) as state_seconds,
        coalesce(sum(date_diff(
            'second', greatest(e.begin_at, s.begin_at), least(e.end_at, s.end_at)
        )) filter (where s.activity_name = 'unobserved'), 0) as unobserved_seconds,
        avg(s.utilisation_ratio) filter (where s.activity_name = e.episode_name)
            as utilisation_ratio,
        max(s.sm_ratio) filter (where s.activity_name = e.episode_name) as sm_ratio,
        max(s.memory_used_mib) filter (where s.activity_name = e.episode_name)
            as memory_used_mib,
        avg(s.power_watts) filter (where s.activity_name = e.episode_name) as power_watts,
        coalesce(bool_and(s.cause_name = 'empty') filter (where s.activity_name = 'idle'), false)
            as is_empty
    from episodes as e
    inner join core.gpu_states as s
        on
            e.cluster_name = s.cluster_name
            and e.day_on = s.day_on
            and e.node_uid = s.node_uid
            and e.gpu_uuid = s.gpu_uuid
            and e.instance_number = s.instance_number
            and s.begin_at < e.end_at
            and s.end_at > e.begin_at
    group by e.cluster_name, e.day_on, e.episode_name, e.hold_id, e.part_number, e.begin_at
),

-- Only what the ledger counts as that state costs: not what was loading, not what was not booked.
charged as (
    select
        e.cluster_name,
        e.day_on,
        e.episode_name,
        e.hold_id,
        e.part_number,
        e.begin_at,
        p.price_micro_cost_per_gpu_hour,
        (
            b.share_micro_gpu::hugeint * d.last_unit_count // d.hold_unit_count
            - b.share_micro_gpu::hugeint * d.first_unit_count // d.hold_unit_count
        ) * date_diff(
            'second',
            greatest(e.begin_at, s.begin_at, b.begin_at, p.begin_at),
            least(e.end_at, s.end_at, b.end_at, p.end_at)
        ) as micro_gpu_seconds
    from episodes as e
    inner join core.hold_states as s
        on
            e.cluster_name = s.cluster_name
            and e.day_on = s.day_on
            and e.hold_id = s.hold_id
            and e.part_number = s.part_number
            and e.episode_name = s.state_name
    inner join core.hold_parts as d
        on
            e.cluster_name = d.cluster_name
            and e.day_on = d.day_on
            and e.hold_id = d.hold_id
            and e.part_number = d.part_number
    inner join core.bookings as b
        on e.cluster_name = b.cluster_name and e.day_on = b.day_on and e.hold_id = b.hold_id
    inner join core.price_spells as p
        on b.cluster_name = p.cluster_name and b.day_on = p.day_on and b.node_uid = p.node_uid
    where
        greatest(e.begin_at, s.begin_at, b.begin_at, p.begin_at)
        < least(e.end_at, s.end_at, b.end_at, p.end_at)
),

sums as (
    select
        cluster_name,
        day_on,
        episode_name,
        hold_id,
        part_number,
        begin_at,
        sum(micro_gpu_seconds) / 1000000 as gpu_seconds,
        coalesce(
            sum(micro_gpu_seconds) filter (where price_micro_cost_per_gpu_hour is null), 0
        ) / 1000000 as unpriced_gpu_seconds,
        sum(micro_gpu_seconds * price_micro_cost_per_gpu_hour) / 3600000000000000 as episode_cost
    from charged
    group by cluster_name, day_on, episode_name, hold_id, part_number, begin_at
),

pods as (
    select
        cluster_name,
        day_on,
        pod_uid,
        sum(request_count)::bigint as pod_gpu_count
    from core.holds
    group by cluster_name, day_on, pod_uid
),

judged as (
    select
        e.*,
        r.state_seconds,
        r.unobserved_seconds,
        r.utilisation_ratio,
        r.sm_ratio,
        r.memory_used_mib,
        r.power_watts,
        -- What holds no memory rests without a context.
        case when e.episode_name = 'idle' and r.is_empty then e.bare_watts else e.context_watts end
            as rest_watts,
        case
            when e.is_faulty or e.xid_number is not null then 'broken'
            when (e.is_throttled or e.is_reading) and e.active_sibling_count = 0
                then 'waiting_for_input'
            when s.hold_id is not null or e.late_peer_count > 0 or e.active_peer_count > 0
                then 'waiting_for_peers'
            -- Of a kernel that spins, more is not known: it works for its process.
            when e.episode_name = 'stalled' then 'unknown'
            when e.workload_class = 'interactive' then 'interactive'
            when e.workload_class = 'inference' and coalesce(r.memory_used_mib >= 200, true)
                then 'no_requests'
            when e.is_unworked then 'never_worked'
            when e.last_active_at is null then 'unknown'
            when e.cpu_count is null and coalesce(r.memory_used_mib >= 200, true) then 'unknown'
            else 'work_ended'
        end as likely_cause_name
    from episodes as e
    left join starved as s
        on
            e.cluster_name = s.cluster_name
            and e.day_on = s.day_on
            and e.episode_name = s.episode_name
            and e.hold_id = s.hold_id
            and e.part_number = s.part_number
            and e.begin_at = s.begin_at
    left join readings as r
        on
            e.cluster_name = r.cluster_name
            and e.day_on = r.day_on
            and e.episode_name = r.episode_name
            and e.hold_id = r.hold_id
            and e.part_number = r.part_number
            and e.begin_at = r.begin_at
)

select
    j.cluster_name,
    j.day_on,
    j.episode_name,
    j.hold_id,
    j.part_number,
    j.begin_at,
    j.end_at,
    j.active_before_seconds,
    j.active_after_seconds,
    j.is_open,
    j.team_name,
    t.contacts_text,
    w.user_name,
    j.workload_key_uid,
    w.workload_kind_name,
    w.namespace_name,
    w.workload_name,
    j.workload_class,
    j.pod_uid,
    o.pod_name,
    p.pod_gpu_count,
    j.node_uid,
    coalesce(n.node_name, j.node_name) as node_name,
    j.gpu_uuid,
    j.instance_number,
    j.gpu_model_name,
    coalesce(j.state_seconds, 0)::bigint as idle_seconds,
    j.active_seconds,
    coalesce(j.unobserved_seconds, 0)::bigint as unobserved_seconds,
    j.last_active_at,
    j.is_certain,
    j.utilisation_ratio::double as utilisation_ratio,
    j.sm_ratio,
    j.memory_used_mib,
    j.power_watts::double as power_watts,
    j.rest_watts,
    j.likely_cause_name,
    concat_ws(
        '; ',
        'GPU_UTIL ' || round(100 * j.utilisation_ratio)::integer || ' % on average',
        'SM at most ' || format('{:.1f}', 100 * j.sm_ratio) || ' %',
        format('{:.1f}', j.memory_used_mib / 1024) || ' GiB in use',
        format('{:.0f}', j.power_watts) || ' W'
        || coalesce(' (rest ' || format('{:.0f}', j.rest_watts) || ' W)', ''),
        'CPU ' || format('{:.2f}', j.cpu_count) || ' cores',
        'throttled ' || round(100 * j.throttled_ratio)::integer || ' %',
        'files ' || format('{:.1f}', j.file_read_bytes_per_second / 1000000) || ' MB/s',
        'network in ' || format('{:.1f}', j.network_received_bytes_per_second / 1000000)
        || ' MB/s',
        'XID ' || j.xid_number || ' as it began',
        case when j.is_faulty then 'a GPU of the pod is broken' end,
        case
            when j.peer_count > 0
                then
                    j.peer_count || ' other members, ' || j.late_peer_count || ' late, '
                    || j.active_peer_count || ' active'
        end,
        case when j.is_unworked then 'before, at work for less than two minutes' end,
        case when j.active_seconds > 0 then 'at work for ' || j.active_seconds || ' s of it' end,
        case
            when j.active_sibling_count > 0
                then j.active_sibling_count || ' other GPUs of the pod at work'
        end,
        'last active ' || strftime(timezone('UTC', j.last_active_at), '%H:%M:%S') || ' UTC'
    ) as evidence_text,
    coalesce(s.gpu_seconds, 0)::decimal(18, 6) as gpu_seconds,
    coalesce(s.unpriced_gpu_seconds, 0)::decimal(18, 6) as unpriced_gpu_seconds,
    (case when s.gpu_seconds is null then 0 else s.episode_cost end)::decimal(18, 6)
        as episode_cost,
    j.least_seconds,
    j.most_active_ratio
from judged as j
inner join core.pods as o
    on j.cluster_name = o.cluster_name and j.day_on = o.day_on and j.pod_uid = o.pod_uid
inner join pods as p
    on j.cluster_name = p.cluster_name and j.day_on = p.day_on and j.pod_uid = p.pod_uid
inner join core.workloads as w
    on
        j.cluster_name = w.cluster_name
        and j.day_on = w.day_on
        and j.workload_key_uid = w.workload_key_uid
left join core.nodes as n
    on j.cluster_name = n.cluster_name and j.day_on = n.day_on and j.node_uid = n.node_uid
left join raw.teams as t
    on j.team_name = t.team_name
left join sums as s
    on
        j.cluster_name = s.cluster_name
        and j.day_on = s.day_on
        and j.episode_name = s.episode_name
        and j.hold_id = s.hold_id
        and j.part_number = s.part_number
        and j.begin_at = s.begin_at
