-- core.gpu_faults: When a GPU was of no use to anyone, and what says so.
--
-- An XID stays until a restart, so a fatal one counts from the sample that first has it until the
-- driver was loaded anew or the GPU is seen at work again. That the code is gone mends nothing.
with
fatal as (
    select distinct
        s.cluster_name,
        s.day_on,
        s.gpu_uuid
    from raw.gpu_samples as s
    inner join raw.xids as x
        on s.xid_number = x.xid_number
    where x.kind_name = 'fatal'
),

node_spans as (
    select
        cluster_name,
        day_on,
        node_uid,
        max(sample_count) as most_sample_count,
        max(sample_seconds) as sample_seconds
    from core.gpus
    group by cluster_name, day_on, node_uid
),

-- Silence tells nothing unless the device plugin misses a GPU of the node.
missing as (
    select distinct
        cluster_name,
        day_on,
        node_uid
    from core.node_spells
    where cause_name = 'missing_from_allocatable'
),

-- Only of these can a GPU's silence tell anything: they have fewer samples than their neighbours.
suspects as (
    select
        g.cluster_name,
        g.day_on,
        g.node_uid,
        g.gpu_uuid,
        any_value(n.sample_seconds) as sample_seconds,
        bool_or(f.gpu_uuid is not null) as is_fatal,
        max(g.sample_count) < any_value(n.most_sample_count)
        and any_value(g.instance_number) = -1
        and bool_or(m.node_uid is not null) as is_short
    from core.gpus as g
    inner join node_spans as n
        on g.cluster_name = n.cluster_name and g.day_on = n.day_on and g.node_uid = n.node_uid
    left join missing as m
        on g.cluster_name = m.cluster_name and g.day_on = m.day_on and g.node_uid = m.node_uid
    left join fatal as f
        on g.cluster_name = f.cluster_name and g.day_on = f.day_on and g.gpu_uuid = f.gpu_uuid
    group by g.cluster_name, g.day_on, g.node_uid, g.gpu_uuid
    having is_fatal or is_short
),

-- Instances of a GPU are one GPU here.
samples as (
    select
        u.cluster_name,
        u.day_on,
        u.node_uid,
        u.gpu_uuid,
        any_value(u.sample_seconds) as sample_seconds,
        any_value(u.is_fatal) as is_fatal,
        any_value(u.is_short) as is_short,
        s.sampled_at,
        max(s.xid_number) as xid_number,
        max(coalesce(s.sm_ratio, s.gr_engine_ratio, s.utilisation_ratio)) > 0.01 as is_active,
        max(s.energy_joules) as energy_joules
    from raw.gpu_samples as s
    inner join suspects as u
        on s.cluster_name = u.cluster_name and s.day_on = u.day_on and s.gpu_uuid = u.gpu_uuid
    group by u.cluster_name, u.day_on, u.node_uid, u.gpu_uuid, s.sampled_at
),

drivers as (
    select
        cluster_name,
        day_on,
        gpu_uuid,
        begin_at,
        max(driver_version_text) as driver_version_text
    from raw.gpu_series
    where driver_version_text <> ''
    group by cluster_name, day_on, gpu_uuid, begin_at
),

told as (
    select
        s.*,
        d.driver_version_text,
        date_trunc('second', s.sampled_at) as end_at,
        date_trunc('second', lag(s.sampled_at) over gpu) as before_at,
        lag(s.energy_joules) over gpu as before_joules,
        x.kind_name = 'fatal' as is_told
    from samples as s
    asof left join drivers as d
        on
            s.cluster_name = d.cluster_name
            and s.day_on = d.day_on
            and s.gpu_uuid = d.gpu_uuid
            and s.sampled_at >= d.begin_at
    left join raw.xids as x
        on s.xid_number = x.xid_number
    window gpu as (
        partition by s.cluster_name, s.day_on, s.node_uid, s.gpu_uuid order by s.sampled_at
    )
),

marked as (
    select
        *,
        coalesce(is_told, false)
        and coalesce(
            not lag(is_told) over gpu or lag(xid_number) over gpu is distinct from xid_number, true
        ) as is_onset,
        -- Three samples at work in a row: what is broken does not work.
        (is_active and lag(is_active) over gpu and lag(is_active, 2) over gpu)
        or coalesce(driver_version_text <> lag(driver_version_text) over gpu, false)
        or coalesce(energy_joules < before_joules, false)
        -- What is off the bus is not read: that it is read again after a silence mends it.
        or coalesce(
            lag(xid_number) over gpu = 79
            and end_at > before_at + to_seconds(2 * greatest(sample_seconds, 30)),
            false
        ) as is_mended
    from told
    window gpu as (partition by cluster_name, day_on, node_uid, gpu_uuid order by sampled_at)
),

onsets as (
    select
        cluster_name,
        day_on,
        node_uid,
        gpu_uuid,
        sampled_at,
        xid_number,
        coalesce(before_at, end_at) as begin_at
    from marked
    where is_onset and is_fatal
),

by_xid as (
    select
        o.cluster_name,
        o.day_on,
        o.node_uid,
        o.gpu_uuid,
        o.begin_at,
        min(greatest(m.before_at, m.end_at - to_seconds(ceil(m.sample_seconds)::bigint))) as end_at,
        any_value(o.xid_number) as xid_number
    from onsets as o
    left join marked as m
        on
            o.cluster_name = m.cluster_name
            and o.day_on = m.day_on
            and o.node_uid = m.node_uid
            and o.gpu_uuid = m.gpu_uuid
            and m.is_mended
            and m.sampled_at > o.sampled_at
    group by o.cluster_name, o.day_on, o.node_uid, o.gpu_uuid, o.begin_at
),

-- Silences of one GPU: from its last sample to the next one, or to the end.
silences as (
    select
        s.cluster_name,
        s.day_on,
        s.node_uid,
        s.gpu_uuid,
        s.end_at as begin_at,
        lead(s.end_at) over gpu - to_seconds(ceil(s.sample_seconds)::bigint) as end_at,
        s.sample_seconds
    from told as s
    where s.is_short
    window
        gpu as (
            partition by s.cluster_name, s.day_on, s.node_uid, s.gpu_uuid order by s.sampled_at
        )
    qualify
        lead(s.end_at) over gpu is null
        or lead(s.end_at) over gpu > s.end_at + to_seconds(2 * greatest(s.sample_seconds, 30))
),

others as (
    select
        q.cluster_name,
        q.day_on,
        q.node_uid,
        q.gpu_uuid,
        q.begin_at,
        any_value(q.end_at) as end_at,
        count(*) as sample_count
    from silences as q
    inner join core.gpus as g
        on
            q.cluster_name = g.cluster_name
            and q.day_on = g.day_on
            and q.node_uid = g.node_uid
            and q.gpu_uuid <> g.gpu_uuid
    inner join raw.gpu_samples as s
        on
            g.cluster_name = s.cluster_name
            and g.day_on = s.day_on
            and g.gpu_uuid = s.gpu_uuid
            and g.instance_number = s.instance_number
            and s.sampled_at > q.begin_at + to_seconds(q.sample_seconds)
            and s.sampled_at < coalesce(q.end_at, 'infinity'::timestamptz)
    group by q.cluster_name, q.day_on, q.node_uid, q.gpu_uuid, q.begin_at
),

-- Its neighbours were read meanwhile, and the device plugin misses a GPU, too.
by_silence as (
    select distinct
        o.cluster_name,
        o.day_on,
        o.node_uid,
        o.gpu_uuid,
        o.begin_at,
        o.end_at
    from others as o
    inner join core.node_spells as n
        on
            o.cluster_name = n.cluster_name
            and o.day_on = n.day_on
            and o.node_uid = n.node_uid
            and n.cause_name = 'missing_from_allocatable'
            and n.begin_at < coalesce(o.end_at, 'infinity'::timestamptz)
            and n.end_at > o.begin_at
),

faults as (
    select
        cluster_name,
        day_on,
        node_uid,
        gpu_uuid,
        begin_at,
        end_at,
        xid_number,
        'xid' as basis_name
    from by_xid
    union all by name
    select
        s.cluster_name,
        s.day_on,
        s.node_uid,
        s.gpu_uuid,
        s.begin_at,
        s.end_at,
        null::bigint as xid_number,
        'off_the_bus' as basis_name
    from by_silence as s
    -- One fault is told once: a fatal XID before the silence stands for both.
    anti join by_xid as x
        on
            s.cluster_name = x.cluster_name
            and s.day_on = x.day_on
            and s.node_uid = x.node_uid
            and s.gpu_uuid = x.gpu_uuid
            and s.begin_at >= x.begin_at
            and s.begin_at < coalesce(x.end_at, 'infinity'::timestamptz)
)

select
    f.cluster_name,
    f.day_on,
    f.node_uid,
    f.gpu_uuid,
    f.begin_at,
    coalesce(f.end_at, w.end_at) as end_at,
    f.end_at is not null as is_ended,
    f.xid_number,
    f.basis_name
from faults as f
inner join core.windows as w
    on f.cluster_name = w.cluster_name and f.day_on = w.day_on
where f.begin_at < coalesce(f.end_at, w.end_at)
-- Of faults that overlap, the first one goes on until the last one ends.
qualify
    f.begin_at >= coalesce(
        max(coalesce(f.end_at, w.end_at)) over (
            partition by f.cluster_name, f.day_on, f.node_uid, f.gpu_uuid
            order by f.begin_at
            rows between unbounded preceding and 1 preceding
        ),
        '-infinity'::timestamptz
    )
