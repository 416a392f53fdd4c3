-- mart.pod_starts: From bind to the first run of each pod that holds GPUs, on the days that it starts on.
--
-- Who had started before the day has no row: the day of its start has it. A pod's latest row is
-- current.
with
holders as (
    select
        cluster_name,
        day_on,
        pod_uid,
        any_value(workload_class) as workload_class,
        max(node_uid) as node_uid
    from core.holds
    group by cluster_name, day_on, pod_uid
),

models as (
    select
        cluster_name,
        day_on,
        node_uid,
        any_value(gpu_model_name) as gpu_model_name
    from core.node_spells
    group by cluster_name, day_on, node_uid
),

-- One pod, one state: its latest spell tells the cause that stands.
causes as (
    select
        cluster_name,
        day_on,
        pod_uid,
        arg_max(cause_name, begin_at) as cause_name
    from core.pod_states
    where state_name = 'starting'
    group by cluster_name, day_on, pod_uid
),

spent as (
    select
        h.cluster_name,
        h.day_on,
        h.pod_uid,
        sum(l.gpu_seconds) as gpu_seconds,
        sum(l.gpu_seconds) filter (where l.price_id is null) as unpriced_gpu_seconds,
        sum(l.ledger_cost) as start_cost
    from core.ledger as l
    inner join core.holds as h
        on l.cluster_name = h.cluster_name and l.day_on = h.day_on and l.hold_id = h.hold_id
    where l.state_name = 'starting'
    group by h.cluster_name, h.day_on, h.pod_uid
),

-- What the causes of starting follow from; that it was scheduled or created tells none.
told as (
    select distinct
        cluster_name,
        day_on,
        object_uid as pod_uid
    from core.events
    where
        object_kind_name = 'Pod'
        and object_uid is not null
        and reason_name in (
            'Pulling', 'Pulled', 'Failed', 'FailedMount', 'FailedAttachVolume',
            'FailedMapVolume', 'FailedCreatePodSandBox'
        )
),

judged as (
    select
        p.*,
        h.workload_class as hold_class,
        h.node_uid as hold_node_uid,
        w.end_at as known_until_at,
        case
            when not p.is_start_known then 'unknown'
            when p.first_started_at < p.bound_at then 'disordered'
            when p.first_started_at is not null then 'started'
            when p.gone_at is not null then 'left'
            else 'starting'
        end as outcome_name
    from core.pods as p
    inner join holders as h
        on p.cluster_name = h.cluster_name and p.day_on = h.day_on and p.pod_uid = h.pod_uid
    inner join core.windows as w on p.cluster_name = w.cluster_name and p.day_on = w.day_on
    where
        p.bound_at is not null
        and (
            p.bound_at >= w.begin_at
            or (
                p.is_start_known
                and (p.first_started_at is null or p.first_started_at >= w.begin_at)
            )
        )
)

select
    p.cluster_name,
    p.day_on,
    p.pod_uid,
    p.namespace_name,
    p.pod_name,
    p.team_name,
    p.workload_key_uid,
    p.workload_name,
    p.hold_class as workload_class,
    p.hold_node_uid as node_uid,
    coalesce(p.node_name, p.hold_node_uid) as node_name,
    coalesce(m.gpu_model_name, '__unknown__') as gpu_model_name,
    coalesce(v.image_name, '__unknown__') as image_name,
    p.asked_micro_gpu,
    p.bound_at,
    timezone($zone, p.bound_at)::date as bound_on,
    p.first_started_at as started_at,
    p.known_until_at,
    p.outcome_name,
    case p.outcome_name
        when 'started' then date_diff('second', p.bound_at, p.first_started_at)
        when 'left' then greatest(date_diff('second', p.bound_at, p.gone_at), 0)
        when 'starting' then date_diff('second', p.bound_at, p.known_until_at)
    end as start_seconds,
    c.cause_name,
    t.pod_uid is not null as is_told,
    coalesce(s.gpu_seconds, 0)::decimal(18, 6) as gpu_seconds,
    coalesce(s.unpriced_gpu_seconds, 0)::decimal(18, 6) as unpriced_gpu_seconds,
    -- What has no time costs nothing; what has time and no price costs nobody knows what.
    (case when s.pod_uid is null then 0 else s.start_cost end)::decimal(18, 6) as start_cost
from judged as p
inner join raw.pod_versions as v
    on
        p.cluster_name = v.cluster_name
        and p.day_on = v.day_on
        and p.last_sequence_number = v.sequence_number
left join models as m
    on
        p.cluster_name = m.cluster_name
        and p.day_on = m.day_on
        and p.hold_node_uid = m.node_uid
left join causes as c
    on p.cluster_name = c.cluster_name and p.day_on = c.day_on and p.pod_uid = c.pod_uid
left join spent as s
    on p.cluster_name = s.cluster_name and p.day_on = s.day_on and p.pod_uid = s.pod_uid
left join told as t
    on p.cluster_name = t.cluster_name and p.day_on = t.day_on and p.pod_uid = t.pod_uid
