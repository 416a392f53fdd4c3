-- core.hold_shares: The share that each hold has of GPUs, in stretches in which it does not change.
--
-- A claim's device is split evenly among the pods that have it at the time. While the holds on one
-- device add up to more than 1, each counts its part of the sum.
with
claim_edges as (
    select distinct
        cluster_name,
        day_on,
        claim_uid,
        unnest([begin_at, end_at]) as edge_at
    from core.holds
    where claim_uid is not null
),

claim_stretches as (
    select
        *,
        lead(edge_at) over (
            partition by cluster_name, day_on, claim_uid order by edge_at
        ) as until_at
    from claim_edges
),

pod_counts as (
    select
        s.cluster_name,
        s.day_on,
        s.claim_uid,
        s.edge_at,
        s.until_at,
        count(distinct h.pod_uid) as pod_count
    from claim_stretches as s
    inner join core.holds as h
        on
            s.cluster_name = h.cluster_name
            and s.day_on = h.day_on
            and s.claim_uid = h.claim_uid
            and h.begin_at <= s.edge_at
            and h.end_at >= s.until_at
    group by s.cluster_name, s.day_on, s.claim_uid, s.edge_at, s.until_at
),

held as (
    select
        cluster_name,
        day_on,
        hold_id,
        node_uid,
        device_uuid,
        bound_at,
        begin_at,
        end_at,
        share_micro_gpu,
        1 as pod_count
    from core.holds
    where device_uuid is not null and claim_uid is null
    union all by name
    select
        h.cluster_name,
        h.day_on,
        h.hold_id,
        h.node_uid,
        h.device_uuid,
        h.bound_at,
        s.edge_at as begin_at,
        s.until_at as end_at,
        h.share_micro_gpu // s.pod_count as share_micro_gpu,
        s.pod_count
    from core.holds as h
    inner join pod_counts as s
        on
            h.cluster_name = s.cluster_name
            and h.day_on = s.day_on
            and h.claim_uid = s.claim_uid
            and h.begin_at <= s.edge_at
            and h.end_at >= s.until_at
),

edges as (
    select distinct
        cluster_name,
        day_on,
        node_uid,
        device_uuid,
        unnest([begin_at, end_at]) as edge_at
    from held
),

stretches as (
    select
        *,
        lead(edge_at) over (
            partition by cluster_name, day_on, node_uid, device_uuid order by edge_at
        ) as until_at
    from edges
),

on_device as (
    select
        h.cluster_name,
        h.day_on,
        h.hold_id,
        h.node_uid,
        h.device_uuid,
        h.bound_at,
        s.edge_at as begin_at,
        s.until_at as end_at,
        h.share_micro_gpu,
        h.pod_count,
        sum(h.share_micro_gpu) over (
            partition by h.cluster_name, h.day_on, h.node_uid, h.device_uuid, s.edge_at
        ) as device_micro_gpu
    from held as h
    inner join stretches as s
        on
            h.cluster_name = s.cluster_name
            and h.day_on = s.day_on
            and h.node_uid = s.node_uid
            and h.device_uuid = s.device_uuid
            and h.begin_at <= s.edge_at
            and h.end_at >= s.until_at
)

select
    cluster_name,
    day_on,
    hold_id,
    node_uid,
    device_uuid,
    bound_at,
    begin_at,
    end_at,
    share_micro_gpu,
    1.0::double as scale_ratio
from core.holds
where device_uuid is null
union all by name
select
    cluster_name,
    day_on,
    hold_id,
    node_uid,
    device_uuid,
    bound_at,
    begin_at,
    end_at,
    case
        when device_micro_gpu > 1000000
            then (share_micro_gpu * 1000000::hugeint // device_micro_gpu)::bigint
        else share_micro_gpu
    end as share_micro_gpu,
    (least(1.0, 1000000 / device_micro_gpu) / pod_count)::double as scale_ratio
from on_device
