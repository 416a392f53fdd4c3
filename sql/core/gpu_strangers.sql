-- core.gpu_strangers: When a GPU or GPU instance was at work although nobody is known to hold it.
--
-- Of its own pods a recorder's word counts, also in its gaps, although there it does not know their
-- end: what scrapes tell then is not held against it.
with
stretches as (
    select
        begin_at,
        end_at,
        date_trunc('second', begin_at) as first_at,
        date_trunc('second', end_at) as last_at,
        cluster_name,
        day_on,
        coverage_name
    from raw.coverage
    where coverage_name in ('watched', 'sampled', 'table')
),

holds as (
    select
        h.cluster_name,
        h.day_on,
        h.node_uid,
        h.begin_at,
        h.end_at,
        p.gpu_uuid,
        p.instance_number
    from core.hold_parts as p
    inner join core.holds as h
        on p.cluster_name = h.cluster_name and p.day_on = h.day_on and p.hold_id = h.hold_id
),

-- The last holder of a device before or in a gap of the recorder.
lost as (
    select distinct
        h.cluster_name,
        h.day_on,
        h.node_uid,
        h.gpu_uuid,
        h.instance_number,
        c.coverage_name,
        c.begin_at as gap_begin_at,
        c.end_at as gap_end_at
    from stretches as c
    inner join (
        select distinct
            cluster_name,
            day_on
        from stretches
        where coverage_name = 'watched'
    ) as w
        on c.cluster_name = w.cluster_name and c.day_on = w.day_on
    inner join holds as h
        on
            c.cluster_name = h.cluster_name
            and c.day_on = h.day_on
            and h.end_at >= c.begin_at - interval 60 second
            and h.end_at <= c.end_at
    where c.coverage_name = 'sampled' and h.gpu_uuid is not null
),

-- A sample is its holder's where there is one; what nobody or several hold is cut at the second.
works as (
    select
        s.cluster_name,
        s.day_on,
        s.node_uid,
        s.gpu_uuid,
        s.instance_number,
        s.sm_ratio,
        s.utilisation_ratio,
        s.power_watts,
        greatest(s.begin_at, o.begin_at) as begin_at,
        least(s.end_at, o.end_at) as end_at
    from core.gpu_states as s
    inner join core.gpu_owners as o
        on
            s.cluster_name = o.cluster_name
            and s.day_on = o.day_on
            and s.node_uid = o.node_uid
            and s.gpu_uuid = o.gpu_uuid
            and s.instance_number = o.instance_number
            and s.begin_at < o.end_at
            and s.end_at > o.begin_at
    where s.activity_name = 'active' and s.hold_id is null and o.hold_count = 0
),

pieces as (
    select
        s.* replace (
            greatest(s.begin_at, c.first_at) as begin_at,
            least(s.end_at, c.last_at) as end_at
        )
    from works as s
    inner join stretches as c
        on
            s.cluster_name = c.cluster_name
            and s.day_on = c.day_on
            and s.begin_at < c.last_at
            and s.end_at > c.first_at
    anti join lost as l
        on
            s.cluster_name = l.cluster_name
            and s.day_on = l.day_on
            and s.node_uid = l.node_uid
            and s.gpu_uuid = l.gpu_uuid
            and s.instance_number = l.instance_number
            and c.begin_at = l.gap_begin_at
            and c.end_at = l.gap_end_at
            and c.coverage_name = l.coverage_name
    -- Where labels name a pod, someone has it whom the record lost from sight.
    anti join (
        select * from raw.gpu_series where pod_name <> ''
    ) as r
        on
            s.cluster_name = r.cluster_name
            and s.day_on = r.day_on
            and s.gpu_uuid = r.gpu_uuid
            and s.instance_number = r.instance_number
            and s.begin_at < r.end_at
            and s.end_at > r.begin_at
    -- Whose device is not known may have this one.
    anti join (
        select * from holds where gpu_uuid is null
    ) as h
        on
            s.cluster_name = h.cluster_name
            and s.day_on = h.day_on
            and s.node_uid = h.node_uid
            and s.begin_at < h.end_at
            and s.end_at > h.begin_at
),

changes as (
    select
        *,
        coalesce(begin_at <> lag(end_at) over device, true)::integer as is_other
    from pieces
    window device as (
        partition by cluster_name, day_on, node_uid, gpu_uuid, instance_number
        order by begin_at
    )
),

numbered as (
    select
        *,
        sum(is_other) over (
            partition by cluster_name, day_on, node_uid, gpu_uuid, instance_number
            order by begin_at
        ) as piece_number
    from changes
)

-- Near a hold it is that one's, told late.
select
    cluster_name,
    day_on,
    node_uid,
    gpu_uuid,
    instance_number,
    min(begin_at) as begin_at,
    max(end_at) as end_at,
    max(sm_ratio)::double as sm_ratio,
    max(utilisation_ratio)::double as utilisation_ratio,
    max(power_watts)::double as power_watts
from numbered
group by cluster_name, day_on, node_uid, gpu_uuid, instance_number, piece_number
having date_diff('second', min(begin_at), max(end_at)) >= 300
