-- core.episode_evidence: What is known beside an episode's own readings: its pod's CPU, files, network, faults, peers.
with
episodes as (
    select
        e.cluster_name,
        e.day_on,
        e.episode_name,
        e.hold_id,
        e.part_number,
        e.begin_at,
        e.end_at,
        h.pod_uid,
        h.node_uid,
        h.attempt_id,
        h.is_begin,
        p.namespace_name,
        p.pod_name,
        p.is_service,
        d.gpu_uuid,
        d.instance_number
    from core.gpu_episodes as e
    inner join core.holds as h
        on e.cluster_name = h.cluster_name and e.day_on = h.day_on and e.hold_id = h.hold_id
    inner join core.pods as p
        on h.cluster_name = p.cluster_name and h.day_on = p.day_on and h.pod_uid = p.pod_uid
    inner join core.hold_parts as d
        on
            e.cluster_name = d.cluster_name
            and e.day_on = d.day_on
            and e.hold_id = d.hold_id
            and e.part_number = d.part_number
),

-- A counter that fell has begun anew with its container: what it tells then is not known.
counters as (
    select
        e.cluster_name,
        e.day_on,
        e.episode_name,
        e.hold_id,
        e.part_number,
        e.begin_at,
        s.exporter_name,
        date_diff('second', min(s.sampled_at), max(s.sampled_at)) as between_seconds,
        arg_max(s.cpu_seconds, s.sampled_at) - arg_min(s.cpu_seconds, s.sampled_at) as cpu_seconds,
        arg_max(s.cfs_period_count, s.sampled_at) - arg_min(s.cfs_period_count, s.sampled_at)
            as period_count,
        arg_max(s.cfs_throttled_count, s.sampled_at) - arg_min(s.cfs_throttled_count, s.sampled_at)
            as throttled_count,
        arg_max(s.file_read_bytes, s.sampled_at) - arg_min(s.file_read_bytes, s.sampled_at)
            as read_bytes,
        arg_max(s.network_received_bytes, s.sampled_at)
        - arg_min(s.network_received_bytes, s.sampled_at)
            as received_bytes,
        arg_max(s.network_sent_bytes, s.sampled_at) - arg_min(s.network_sent_bytes, s.sampled_at)
            as sent_bytes
    from episodes as e
    inner join raw.pod_samples as s
        on
            e.cluster_name = s.cluster_name
            and e.day_on = s.day_on
            and e.namespace_name = s.namespace_name
            and e.pod_name = s.pod_name
            and s.sampled_at >= e.begin_at
            and s.sampled_at <= e.end_at
    group by
        e.cluster_name,
        e.day_on,
        e.episode_name,
        e.hold_id,
        e.part_number,
        e.begin_at,
        s.exporter_name
),

-- Where two tell of a pod the one that read it longer counts.
rates as (
    select
        cluster_name,
        day_on,
        episode_name,
        hold_id,
        part_number,
        begin_at,
        case when cpu_seconds >= 0 then cpu_seconds / between_seconds end as cpu_count,
        case
            when period_count > 0 and throttled_count >= 0 then throttled_count / period_count
        end as throttled_ratio,
        case when read_bytes >= 0 then read_bytes / between_seconds end as read_rate,
        case when received_bytes >= 0 then received_bytes / between_seconds end as received_rate,
        case when sent_bytes >= 0 then sent_bytes / between_seconds end as sent_rate
    from counters
    where between_seconds > 0
    qualify
        row_number() over (
            partition by cluster_name, day_on, episode_name, hold_id, part_number, begin_at
            order by -between_seconds, exporter_name
        ) = 1
),

-- What the pod did on the device before.
before as (
    select
        e.cluster_name,
        e.day_on,
        e.episode_name,
        e.hold_id,
        e.part_number,
        e.begin_at,
        max(least(s.end_at, e.begin_at)) as last_active_at,
        sum(date_diff('second', s.begin_at, least(s.end_at, e.begin_at))) as worked_seconds
    from episodes as e
    inner join core.gpu_states as s
        on
            e.cluster_name = s.cluster_name
            and e.day_on = s.day_on
            and e.node_uid = s.node_uid
            and e.gpu_uuid = s.gpu_uuid
            and e.instance_number = s.instance_number
            and e.hold_id = s.hold_id
            and s.activity_name in ('active', 'stalled')
            and s.begin_at < e.begin_at
    group by e.cluster_name, e.day_on, e.episode_name, e.hold_id, e.part_number, e.begin_at
),

-- Errors of any GPU of the pod shortly before it, or while it began: clean-up tells nothing.
pod_gpus as (
    select distinct
        e.cluster_name,
        e.day_on,
        e.pod_uid,
        e.node_uid,
        d.gpu_uuid
    from episodes as e
    inner join core.holds as h
        on e.cluster_name = h.cluster_name and e.day_on = h.day_on and e.pod_uid = h.pod_uid
    inner join core.hold_parts as d
        on h.cluster_name = d.cluster_name and h.day_on = d.day_on and h.hold_id = d.hold_id
    where d.gpu_uuid is not null
),

errors as (
    select
        e.cluster_name,
        e.day_on,
        e.episode_name,
        e.hold_id,
        e.part_number,
        e.begin_at,
        arg_max(x.xid_number, x.seen_at) as xid_number
    from episodes as e
    inner join pod_gpus as g
        on
            e.cluster_name = g.cluster_name
            and e.day_on = g.day_on
            and e.pod_uid = g.pod_uid
            and e.node_uid = g.node_uid
    inner join core.gpu_errors as x
        on
            g.cluster_name = x.cluster_name
            and g.day_on = x.day_on
            and g.gpu_uuid = x.gpu_uuid
            and x.seen_at >= e.begin_at - interval 10 minute
            and x.seen_at <= e.begin_at + interval 5 minute
    where not x.is_first_sample and x.kind_name <> 'cleanup'
    group by e.cluster_name, e.day_on, e.episode_name, e.hold_id, e.part_number, e.begin_at
),

faulty as (
    select distinct
        e.cluster_name,
        e.day_on,
        e.episode_name,
        e.hold_id,
        e.part_number,
        e.begin_at
    from episodes as e
    inner join pod_gpus as g
        on
            e.cluster_name = g.cluster_name
            and e.day_on = g.day_on
            and e.pod_uid = g.pod_uid
            and e.node_uid = g.node_uid
    inner join core.gpu_faults as f
        on
            g.cluster_name = f.cluster_name
            and g.day_on = f.day_on
            and g.node_uid = f.node_uid
            and g.gpu_uuid = f.gpu_uuid
            and f.begin_at < e.end_at
            and f.end_at > e.begin_at
),

-- The other pods of the attempt while it lasted, and the other GPUs of the pod.
others as (
    select
        e.cluster_name,
        e.day_on,
        e.episode_name,
        e.hold_id,
        e.part_number,
        e.begin_at,
        count(distinct h.pod_uid) filter (where h.pod_uid <> e.pod_uid) as peer_count,
        count(distinct h.pod_uid) filter (
            where h.pod_uid <> e.pod_uid and s.state_name in ('starting', 'gang_wait')
        ) as late_peer_count,
        count(distinct h.pod_uid) filter (
            where h.pod_uid <> e.pod_uid and s.state_name = 'active'
        ) as active_peer_count,
        count(distinct s.hold_id || ' ' || s.part_number) filter (
            where h.pod_uid = e.pod_uid and s.state_name = 'active'
        ) as active_sibling_count
    from episodes as e
    inner join core.holds as h
        on
            e.cluster_name = h.cluster_name
            and e.day_on = h.day_on
            and e.attempt_id = h.attempt_id
            and (not e.is_service or e.pod_uid = h.pod_uid)
    inner join core.hold_states as s
        on
            h.cluster_name = s.cluster_name
            and h.day_on = s.day_on
            and h.hold_id = s.hold_id
            and s.begin_at < e.end_at - (e.end_at - e.begin_at) / 4
            and s.end_at > e.begin_at + (e.end_at - e.begin_at) / 4
    where s.hold_id <> e.hold_id or s.part_number <> e.part_number
    group by e.cluster_name, e.day_on, e.episode_name, e.hold_id, e.part_number, e.begin_at
)

select
    e.cluster_name,
    e.day_on,
    e.episode_name,
    e.hold_id,
    e.part_number,
    e.begin_at,
    e.attempt_id,
    r.cpu_count::double as cpu_count,
    r.throttled_ratio::double as throttled_ratio,
    r.read_rate::double as file_read_bytes_per_second,
    r.received_rate::double as network_received_bytes_per_second,
    r.sent_rate::double as network_sent_bytes_per_second,
    b.last_active_at,
    -- The first kernels of a start are not work.
    e.is_begin and coalesce(b.worked_seconds, 0) < 120 as is_unworked,
    x.xid_number,
    f.hold_id is not null as is_faulty,
    coalesce(p.peer_count, 0)::bigint as peer_count,
    coalesce(p.late_peer_count, 0)::bigint as late_peer_count,
    coalesce(p.active_peer_count, 0)::bigint as active_peer_count,
    coalesce(p.active_sibling_count, 0)::bigint as active_sibling_count
from episodes as e
left join rates as r
    on
        e.cluster_name = r.cluster_name
        and e.day_on = r.day_on
        and e.episode_name = r.episode_name
        and e.hold_id = r.hold_id
        and e.part_number = r.part_number
        and e.begin_at = r.begin_at
left join before as b
    on
        e.cluster_name = b.cluster_name
        and e.day_on = b.day_on
        and e.episode_name = b.episode_name
        and e.hold_id = b.hold_id
        and e.part_number = b.part_number
        and e.begin_at = b.begin_at
left join errors as x
    on
        e.cluster_name = x.cluster_name
        and e.day_on = x.day_on
        and e.episode_name = x.episode_name
        and e.hold_id = x.hold_id
        and e.part_number = x.part_number
        and e.begin_at = x.begin_at
left join faulty as f
    on
        e.cluster_name = f.cluster_name
        and e.day_on = f.day_on
        and e.episode_name = f.episode_name
        and e.hold_id = f.hold_id
        and e.part_number = f.part_number
        and e.begin_at = f.begin_at
left join others as p
    on
        e.cluster_name = p.cluster_name
        and e.day_on = p.day_on
        and e.episode_name = p.episode_name
        and e.hold_id = p.hold_id
        and e.part_number = p.part_number
        and e.begin_at = p.begin_at
