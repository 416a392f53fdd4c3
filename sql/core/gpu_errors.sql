-- core.gpu_errors: Each XID that a GPU was seen to report: a lower bound, for a repeat is not seen.
--
-- The last code stands until a restart, so only a change tells; a code that stood when we first
-- looked happened at some time before.
with
told as (
    select distinct
        cluster_name,
        day_on,
        gpu_uuid
    from raw.gpu_samples
    where xid_number > 0
),

devices as (
    select g.*
    from core.gpus as g
    semi join told as t
        on g.cluster_name = t.cluster_name and g.day_on = t.day_on and g.gpu_uuid = t.gpu_uuid
),

samples as (
    select
        g.cluster_name,
        g.day_on,
        g.node_uid,
        g.gpu_uuid,
        g.gpu_model_name,
        s.sampled_at,
        max(s.xid_number) as xid_number
    from raw.gpu_samples as s
    inner join devices as g
        on
            s.cluster_name = g.cluster_name
            and s.day_on = g.day_on
            and s.node_name = g.node_name
            and s.gpu_uuid = g.gpu_uuid
            and s.instance_number = g.instance_number
    where s.xid_number is not null
    group by g.cluster_name, g.day_on, g.node_uid, g.gpu_uuid, g.gpu_model_name, s.sampled_at
),

changes as (
    select
        *,
        lag(xid_number) over gpu_time as before_number,
        lag(xid_number, 2) over gpu_time as earlier_number
    from samples
    window gpu_time as (
        partition by cluster_name, day_on, node_uid, gpu_uuid order by sampled_at
    )
)

select
    c.cluster_name,
    c.day_on,
    c.node_uid,
    c.gpu_uuid,
    c.gpu_model_name,
    date_trunc('second', c.sampled_at) as seen_at,
    c.xid_number,
    coalesce(x.kind_name, 'unknown') as kind_name,
    coalesce(x.meaning_text, 'not in the list of known XIDs') as meaning_text,
    c.before_number is null as is_first_sample
from changes as c
left join raw.xids as x
    on c.xid_number = x.xid_number
where
    c.xid_number > 0
    and (c.before_number is null or c.before_number <> c.xid_number)
    -- While an exporter is replaced, the old and the new one are read by turns.
    and (c.earlier_number is null or c.earlier_number <> c.xid_number)
