-- core.start_causes: Why a pod that holds a GPU does not run yet, from when on, before its first run.
--
-- Pulls that the kubelet told go before what versions of the pod say; what would follow from an
-- event that was lost is undetermined. After the first run only told_cause_name is of use.
with
pods as (
    select
        h.cluster_name,
        h.day_on,
        h.pod_uid,
        min(h.begin_at) as begin_at,
        max(h.end_at) as end_at,
        -- What was told of a pod bound earlier is not known to be all that there was to tell.
        min(h.begin_at) = min(h.bound_at) as is_begin_known,
        case
            when any_value(p.first_started_at) < max(h.end_at) then any_value(p.first_started_at)
        end as ran_at,
        string_split(any_value(v.start_order_text), ' ') as containers
    from core.holds as h
    inner join core.pods as p
        on h.cluster_name = p.cluster_name and h.day_on = p.day_on and h.pod_uid = p.pod_uid
    inner join raw.pod_versions as v
        on
            p.cluster_name = v.cluster_name
            and p.day_on = v.day_on
            and p.last_sequence_number = v.sequence_number
    group by h.cluster_name, h.day_on, h.pod_uid
),

versions as (
    select
        v.cluster_name,
        v.day_on,
        v.pod_uid,
        date_trunc('second', v.observed_at) as begin_at,
        arg_max(coalesce(v.waiting_cause_name, 'undetermined'), v.sequence_number) as cause_name
    from raw.pod_versions as v
    semi join pods as p
        on v.cluster_name = p.cluster_name and v.day_on = p.day_on and v.pod_uid = p.pod_uid
    group by v.cluster_name, v.day_on, v.pod_uid, date_trunc('second', v.observed_at)
),

-- What a kubelet told of a pod while it was being prepared.
told as (
    select
        e.cluster_name,
        e.day_on,
        e.object_uid as pod_uid,
        e.container_name,
        e.reason_name,
        e.image_name is not null as is_of_image,
        e.reason_name not in ('Pulling', 'Pulled', 'Failed', 'Created', 'Started') as is_of_pod,
        list_position(p.containers, e.container_name) as place_number,
        p.containers is null or list_contains(p.containers, e.container_name) as is_waited_for,
        date_trunc('second', e.first_at) as first_at,
        date_trunc('second', e.last_at) as last_at
    from raw.event_versions as e
    inner join pods as p
        on e.cluster_name = p.cluster_name and e.day_on = p.day_on and e.object_uid = p.pod_uid
    where
        e.object_kind_name = 'Pod'
        and e.reason_name in (
            'Pulling', 'Pulled', 'Failed', 'Created', 'Started',
            'FailedMount', 'FailedAttachVolume', 'FailedMapVolume', 'FailedCreatePodSandBox'
        )
),

ends as (
    select
        cluster_name,
        day_on,
        pod_uid,
        container_name,
        is_cached,
        date_trunc('second', pulled_at) as pulled_at,
        date_trunc('second', case when is_cached then pulled_at else begun_at end) as begun_at,
        case
            when queue_seconds > 0
                then
                    date_trunc('second', greatest(
                        begun_at, pulled_at - to_microseconds((pull_seconds * 1000000)::bigint)
                    ))
        end as moved_at
    from core.image_pulls
    where pulled_at is not null
),

done as (
    select *
    from ends
    qualify
        row_number() over (
            partition by cluster_name, day_on, pod_uid, container_name order by pulled_at
        ) = 1
),

-- Of each container when its image was first asked for, and when it was there.
images as (
    select
        t.cluster_name,
        t.day_on,
        t.pod_uid,
        t.container_name,
        any_value(t.place_number) as place_number,
        bool_or(t.reason_name = 'Failed') as is_failing,
        -- What was there already is told again at each restart, and counted.
        case
            when any_value(d.is_cached) then min(t.first_at) filter (where t.reason_name = 'Pulled')
            else any_value(d.pulled_at)
        end as pulled_at,
        case
            when any_value(d.is_cached) then min(t.first_at) filter (where t.reason_name = 'Pulled')
            else any_value(d.begun_at)
        end as begun_at,
        min(t.first_at) filter (where t.reason_name = 'Pulling') as told_at
    from told as t
    left join done as d
        on
            t.cluster_name = d.cluster_name
            and t.day_on = d.day_on
            and t.pod_uid = d.pod_uid
            and t.container_name = d.container_name
    where t.is_of_image and t.is_waited_for
    group by t.cluster_name, t.day_on, t.pod_uid, t.container_name
),

pulls as (
    select
        *,
        least(told_at, begun_at) as asked_at
    from images
),

-- A pull without an end: what came after it, if anything, tells that its end was lost.
open_pulls as (
    select
        a.cluster_name,
        a.day_on,
        a.pod_uid,
        a.asked_at,
        a.is_failing,
        least(
            min(case
                when t.first_at > a.asked_at then t.first_at
                when t.first_at = a.asked_at and a.container_name = t.container_name
                    then t.first_at
                else t.last_at
            end),
            any_value(p.ran_at)
        ) as next_at
    from pulls as a
    inner join pods as p
        on a.cluster_name = p.cluster_name and a.day_on = p.day_on and a.pod_uid = p.pod_uid
    left join told as t
        on
            a.cluster_name = t.cluster_name
            and a.day_on = t.day_on
            and a.pod_uid = t.pod_uid
            and (
                (t.reason_name in ('Pulling', 'Pulled') and a.container_name <> t.container_name)
                or t.reason_name in ('Created', 'Started')
            )
            and (
                a.asked_at < t.last_at
                or (a.asked_at = t.last_at and a.container_name = t.container_name)
            )
    where a.pulled_at is null and a.asked_at is not null
    group by a.cluster_name, a.day_on, a.pod_uid, a.container_name, a.asked_at, a.is_failing
),

mounts as (
    select
        cluster_name,
        day_on,
        pod_uid,
        max(last_at) filter (where is_of_pod) as failed_at,
        bool_or(reason_name in ('Pulling', 'Pulled', 'Created', 'Started')) as is_prepared
    from told
    group by cluster_name, day_on, pod_uid
),

-- When the first container was asked for, and since when the last one has its image.
spans as (
    select
        p.cluster_name,
        p.day_on,
        p.pod_uid,
        p.begin_at,
        case when p.is_begin_known then f.asked_at end as first_at,
        l.pulled_at as last_at,
        m.failed_at,
        coalesce(m.is_prepared, false) or p.ran_at is not null as is_prepared
    from pods as p
    left join mounts as m
        on p.cluster_name = m.cluster_name and p.day_on = m.day_on and p.pod_uid = m.pod_uid
    left join pulls as f
        on
            p.cluster_name = f.cluster_name
            and p.day_on = f.day_on
            and p.pod_uid = f.pod_uid
            and f.place_number = 1
    left join pulls as l
        on
            p.cluster_name = l.cluster_name
            and p.day_on = l.day_on
            and p.pod_uid = l.pod_uid
            and len(p.containers) = l.place_number
),

-- What is known of a stretch; of several the lowest number counts.
known as (
    select
        e.cluster_name,
        e.day_on,
        e.pod_uid,
        unnest([
            {
                'rank_number': 1,
                'cause_name': 'image_pull',
                'begin_at': coalesce(e.moved_at, e.begun_at),
                'end_at': e.pulled_at
            },
            {
                'rank_number': 2,
                'cause_name': 'image_pull_queue',
                'begin_at': e.begun_at,
                'end_at': e.moved_at
            }
        ]) as layer
    from ends as e
    semi join pulls as a
        on
            e.cluster_name = a.cluster_name
            and e.day_on = a.day_on
            and e.pod_uid = a.pod_uid
            and e.container_name = a.container_name
    union all by name
    select
        cluster_name,
        day_on,
        pod_uid,
        {
            'rank_number': 1, 'cause_name': 'image_pull', 'begin_at': asked_at, 'end_at': begun_at
        } as layer
    from pulls
    where pulled_at is not null
    union all by name
    select
        cluster_name,
        day_on,
        pod_uid,
        {
            'rank_number': case when next_at is null then 1 else 3 end,
            'cause_name': case when next_at is null then 'image_pull' else 'undetermined' end,
            'begin_at': asked_at,
            'end_at': coalesce(next_at, 'infinity'::timestamptz)
        } as layer
    from open_pulls
    where next_at is null or not is_failing
    union all by name
    select
        cluster_name,
        day_on,
        pod_uid,
        {
            'rank_number':
            case cause_name when 'crash_loop' then 4 when 'image_pull' then 7 else 8 end,
            'cause_name': cause_name,
            'begin_at': begin_at,
            'end_at': coalesce(lead(begin_at) over pod_time, 'infinity'::timestamptz)
        } as layer
    from versions
    window pod_time as (partition by cluster_name, day_on, pod_uid order by begin_at)
    qualify cause_name <> 'undetermined'
    union all by name
    select
        cluster_name,
        day_on,
        pod_uid,
        unnest([
            {
                'rank_number': 5,
                'cause_name': 'volume',
                'begin_at': begin_at,
                'end_at': coalesce(
                    first_at,
                    case when is_prepared then failed_at else 'infinity'::timestamptz end
                )
            },
            {
                'rank_number': 6,
                'cause_name': 'container_start',
                'begin_at': last_at,
                'end_at': 'infinity'::timestamptz
            }
        ]) as layer
    from spans
    where first_at is not null or failed_at is not null or last_at is not null
    union all by name
    select
        a.cluster_name,
        a.day_on,
        a.pod_uid,
        {
            'rank_number': 9,
            'cause_name': 'container_start',
            'begin_at': a.pulled_at,
            'end_at': b.asked_at
        } as layer
    from pulls as a
    inner join pulls as b
        on
            a.cluster_name = b.cluster_name
            and a.day_on = b.day_on
            and a.pod_uid = b.pod_uid
            and b.place_number = a.place_number + 1
),

layers as (
    select
        cluster_name,
        day_on,
        pod_uid,
        layer.rank_number,
        layer.cause_name,
        layer.begin_at,
        layer.end_at
    from known
    where layer.begin_at < layer.end_at
),

cuts as (
    select
        cluster_name,
        day_on,
        pod_uid,
        begin_at
    from versions
    union
    select
        cluster_name,
        day_on,
        pod_uid,
        unnest([begin_at, end_at]) as begin_at
    from layers
    union
    select
        cluster_name,
        day_on,
        pod_uid,
        begin_at
    from pods
),

found as (
    select
        c.cluster_name,
        c.day_on,
        c.pod_uid,
        c.begin_at,
        arg_min(y.cause_name, y.rank_number) as cause_name
    from cuts as c
    left join layers as y
        on
            c.cluster_name = y.cluster_name
            and c.day_on = y.day_on
            and c.pod_uid = y.pod_uid
            and c.begin_at >= y.begin_at
            and c.begin_at < y.end_at
    where c.begin_at < 'infinity'::timestamptz
    group by c.cluster_name, c.day_on, c.pod_uid, c.begin_at
)

select
    f.cluster_name,
    f.day_on,
    f.pod_uid,
    f.begin_at,
    coalesce(f.cause_name, 'undetermined') as cause_name,
    v.begin_at as told_at,
    v.cause_name as told_cause_name
from found as f
asof left join versions as v
    on
        f.cluster_name = v.cluster_name
        and f.day_on = v.day_on
        and f.pod_uid = v.pod_uid
        and f.begin_at >= v.begin_at
