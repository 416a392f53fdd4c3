-- core.hold_parts: Each hold cut into its devices: which part of its share lies on which device.
--
-- Devices stay with a pod as long as it lives. A label may hang on for a scrape when a name is used
-- again, so those it was seen with longest count, as many as the hold has units.
with
-- Claims that several pods have at once: their devices are shared, however large the part is.
shared_claims as (
    select distinct
        h.cluster_name,
        h.day_on,
        h.claim_uid
    from core.holds as h
    inner join core.holds as o
        on
            h.cluster_name = o.cluster_name
            and h.day_on = o.day_on
            and h.claim_uid = o.claim_uid
            and h.pod_uid < o.pod_uid
            and h.begin_at < o.end_at
            and h.end_at > o.begin_at
),

holds as (
    select
        h.cluster_name,
        h.day_on,
        h.hold_id,
        h.pod_uid,
        h.node_uid,
        h.resource_name,
        h.device_uuid,
        h.share_micro_gpu,
        h.request_count,
        h.begin_at,
        h.end_at,
        h.resource_name = 'milli-gpu' as is_milli,
        (h.device_uuid is not null and h.claim_uid is null)
        or s.claim_uid is not null
        or (
            h.share_micro_gpu < h.request_count * 1000000
            and h.resource_name not like '%/mig-%'
        ) as is_fraction,
        -- The GPU of a MIG device is known by its claim, which of its instances it is by labels.
        h.device_uuid is not null and h.resource_name not like '%/mig-%' as is_told,
        -- The first of a pod's MIG devices of one GPU has the first instance that names the pod.
        case
            when h.claim_uid is null then 1
            else
                row_number() over (
                    partition by h.cluster_name, h.day_on, h.pod_uid, h.device_uuid
                    order by h.hold_id
                )
        end as first_instance,
        p.namespace_name,
        p.pod_name,
        count(*) over (partition by h.cluster_name, h.day_on, h.pod_uid) as pod_hold_count
    from core.holds as h
    inner join core.pods as p
        on h.cluster_name = p.cluster_name and h.day_on = p.day_on and h.pod_uid = p.pod_uid
    left join shared_claims as s
        on h.cluster_name = s.cluster_name and h.day_on = s.day_on and h.claim_uid = s.claim_uid
),

labelled as (
    select
        h.cluster_name,
        h.day_on,
        h.hold_id,
        g.gpu_uuid,
        g.instance_number,
        sum(s.sample_count) as label_sample_count,
        sum(date_diff(
            'second', greatest(s.begin_at, h.begin_at), least(s.end_at, h.end_at)
        )) as label_seconds,
        any_value(g.gpu_number) as gpu_number
    from raw.gpu_series as s
    inner join core.gpus as g
        on
            s.cluster_name = g.cluster_name
            and s.day_on = g.day_on
            and s.gpu_uuid = g.gpu_uuid
            and s.instance_number = g.instance_number
    inner join holds as h
        on
            s.cluster_name = h.cluster_name
            and s.day_on = h.day_on
            and s.pod_namespace_name = h.namespace_name
            and s.pod_name = h.pod_name
            and g.node_uid = h.node_uid
            and s.begin_at < h.end_at
            and s.end_at >= h.begin_at
            and s.pod_uid in ('', h.pod_uid)
    where
        s.pod_name <> ''
        and not h.is_told
        and coalesce(h.device_uuid = s.gpu_uuid, true)
        and not h.is_milli
        -- A pod with several resources: instances are MIG devices, GPUs are not.
        and (h.pod_hold_count = 1 or (h.resource_name like '%/mig-%') = (s.instance_number >= 0))
    group by h.cluster_name, h.day_on, h.hold_id, g.gpu_uuid, g.instance_number
),

chosen as (
    select l.*
    from labelled as l
    inner join holds as h
        on l.cluster_name = h.cluster_name and l.day_on = h.day_on and l.hold_id = h.hold_id
    window one_hold as (partition by l.cluster_name, l.day_on, l.hold_id)
    qualify
        row_number() over (
            partition by l.cluster_name, l.day_on, l.hold_id
            order by -l.label_seconds, -l.label_sample_count, l.gpu_uuid, l.instance_number
        ) between any_value(h.first_instance) over one_hold
        and any_value(h.first_instance + h.request_count - 1) over one_hold
),

-- Of a node whose every device is a hold's, or that has one GPU only, labels are not needed.
nodes as (
    select
        g.cluster_name,
        g.day_on,
        g.node_uid,
        count(*) as device_count,
        bool_and(g.instance_number = -1) as is_whole
    from core.gpus as g
    inner join core.nodes as n
        on g.cluster_name = n.cluster_name and g.day_on = n.day_on and g.node_uid = n.node_uid
    group by g.cluster_name, g.day_on, g.node_uid
    having count(*) = any_value(n.installed_count)
),

whole as (
    select
        h.cluster_name,
        h.day_on,
        h.hold_id,
        g.gpu_uuid,
        g.instance_number,
        g.gpu_number
    from holds as h
    inner join nodes as n
        on h.cluster_name = n.cluster_name and h.day_on = n.day_on and h.node_uid = n.node_uid
    inner join core.gpus as g
        on h.cluster_name = g.cluster_name and h.day_on = g.day_on and h.node_uid = g.node_uid
    anti join chosen as c
        on h.cluster_name = c.cluster_name and h.day_on = c.day_on and h.hold_id = c.hold_id
    where
        n.is_whole
        and h.device_uuid is null
        and not h.is_milli
        and (
            (h.is_fraction and n.device_count = 1)
            or (not h.is_fraction and h.request_count = n.device_count)
        )
),

known as (
    select
        cluster_name,
        day_on,
        hold_id,
        gpu_uuid,
        instance_number
    from chosen
    union all by name
    select
        cluster_name,
        day_on,
        hold_id,
        gpu_uuid,
        instance_number
    from whole
    union all by name
    select
        cluster_name,
        day_on,
        hold_id,
        device_uuid as gpu_uuid,
        -1::bigint as instance_number
    from holds
    where is_told
),

-- Where each other hold's devices are known, what is left is the one's that has none.
lost as (
    select h.*
    from holds as h
    inner join nodes as n
        on h.cluster_name = n.cluster_name and h.day_on = n.day_on and h.node_uid = n.node_uid
    anti join known as k
        on h.cluster_name = k.cluster_name and h.day_on = k.day_on and h.hold_id = k.hold_id
    where n.is_whole and h.device_uuid is null and not h.is_fraction and not h.is_milli
),

alone as (
    select l.*
    from lost as l
    where
        not exists (
            select 1
            from lost as o
            where
                o.cluster_name = l.cluster_name
                and o.day_on = l.day_on
                and o.node_uid = l.node_uid
                and o.hold_id <> l.hold_id
                and o.begin_at < l.end_at
                and o.end_at > l.begin_at
        )
),

remaining as (
    select
        a.cluster_name,
        a.day_on,
        a.hold_id,
        g.gpu_uuid,
        g.instance_number,
        g.gpu_number
    from alone as a
    inner join core.gpus as g
        on a.cluster_name = g.cluster_name and a.day_on = g.day_on and a.node_uid = g.node_uid
    where
        not exists (
            select 1
            from known as k
            inner join holds as o
                on k.cluster_name = o.cluster_name and k.day_on = o.day_on and k.hold_id = o.hold_id
            where
                k.cluster_name = a.cluster_name
                and k.day_on = a.day_on
                and k.gpu_uuid = g.gpu_uuid
                and o.node_uid = a.node_uid
                and o.begin_at < a.end_at
                and o.end_at > a.begin_at
        )
    qualify
        count(*) over (partition by a.cluster_name, a.day_on, a.hold_id)
        = any_value(a.request_count) over (partition by a.cluster_name, a.day_on, a.hold_id)
),

devices as (
    select
        cluster_name,
        day_on,
        hold_id,
        gpu_uuid,
        instance_number,
        gpu_number,
        'remaining' as basis_name,
        0::bigint as label_sample_count
    from remaining
    union all by name
    select
        cluster_name,
        day_on,
        hold_id,
        gpu_uuid,
        instance_number,
        gpu_number,
        'label' as basis_name,
        label_sample_count::bigint as label_sample_count
    from chosen
    union all by name
    select
        cluster_name,
        day_on,
        hold_id,
        gpu_uuid,
        instance_number,
        gpu_number,
        'whole_node' as basis_name,
        0::bigint as label_sample_count
    from whole
    union all by name
    select
        cluster_name,
        day_on,
        hold_id,
        device_uuid as gpu_uuid,
        -1::bigint as instance_number,
        null::bigint as gpu_number,
        'scheduler' as basis_name,
        0::bigint as label_sample_count
    from holds
    where is_told
),

-- Replicas of one device may be several units of a hold: its units are dealt out evenly.
numbered as (
    select
        h.cluster_name,
        h.day_on,
        h.hold_id,
        h.request_count,
        h.is_fraction,
        d.gpu_uuid,
        d.instance_number,
        d.basis_name,
        d.label_sample_count,
        row_number() over device_order as part_number,
        count(*) over (partition by h.cluster_name, h.day_on, h.hold_id) as device_count
    from holds as h
    inner join devices as d
        on h.cluster_name = d.cluster_name and h.day_on = d.day_on and h.hold_id = d.hold_id
    window device_order as (
        partition by h.cluster_name, h.day_on, h.hold_id
        order by d.gpu_number, d.gpu_uuid, d.instance_number
    )
),

dealt as (
    select
        cluster_name,
        day_on,
        hold_id,
        part_number,
        gpu_uuid,
        instance_number,
        case
            when is_fraction then request_count * (part_number - 1) // device_count
            else part_number - 1
        end as first_unit_count,
        case
            when is_fraction then request_count * part_number // device_count
            else part_number
        end as last_unit_count,
        request_count as hold_unit_count,
        is_fraction and instance_number = -1 as is_shared,
        basis_name,
        label_sample_count
    from numbered
)

select
    cluster_name,
    day_on,
    hold_id,
    part_number,
    gpu_uuid,
    instance_number,
    first_unit_count::bigint as first_unit_count,
    last_unit_count::bigint as last_unit_count,
    hold_unit_count,
    is_shared,
    basis_name,
    label_sample_count
from dealt
where first_unit_count < last_unit_count
union all by name
select
    h.cluster_name,
    h.day_on,
    h.hold_id,
    (coalesce(d.part_count, 0) + 1)::bigint as part_number,
    null::varchar as gpu_uuid,
    null::bigint as instance_number,
    coalesce(d.unit_count, 0)::bigint as first_unit_count,
    h.request_count as last_unit_count,
    h.request_count as hold_unit_count,
    h.is_fraction and m.node_uid is null as is_shared,
    'none' as basis_name,
    0::bigint as label_sample_count
from holds as h
left join (
    select
        cluster_name,
        day_on,
        hold_id,
        max(last_unit_count) as unit_count,
        max(part_number) as part_count
    from dealt
    group by cluster_name, day_on, hold_id
) as d
    on h.cluster_name = d.cluster_name and h.day_on = d.day_on and h.hold_id = d.hold_id
left join (
    select distinct
        cluster_name,
        day_on,
        node_uid
    from core.gpus
    where instance_number >= 0
) as m
    on h.cluster_name = m.cluster_name and h.day_on = m.day_on and h.node_uid = m.node_uid
where coalesce(d.unit_count, 0) < h.request_count
