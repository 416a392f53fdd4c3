-- core.gpu_episodes: The day's piece of each episode in which a held device was idle, or stalled.
--
-- An idle episode joins the quiet stretches of a pod on a device while less than the rule's share of
-- the whole is active, so that a heartbeat does not end it. It begins when the containers run and
-- nothing is done, loading or not. However short, a piece stays that touches an end of the day, or
-- has but a heartbeat between it and midnight: the rest may lie in the other day.
with recursive
running as (
    select
        s.cluster_name,
        s.day_on,
        s.pod_uid,
        s.begin_at,
        s.end_at,
        coalesce(
            s.begin_at <> lag(s.end_at) over (
                partition by s.cluster_name, s.day_on, s.pod_uid order by s.begin_at
            ),
            true
        )::integer as is_other
    from core.pod_states as s
    inner join (
        select distinct
            cluster_name,
            day_on,
            pod_uid,
            workload_class
        from core.holds
    ) as h
        on s.cluster_name = h.cluster_name and s.day_on = h.day_on and s.pod_uid = h.pod_uid
    where
        s.state_name = 'unobserved'
        or (s.state_name = 'loading' and h.workload_class <> 'inference')
),

numbered as (
    select
        *,
        sum(is_other) over (
            partition by cluster_name, day_on, pod_uid order by begin_at
        ) as region_number
    from running
),

regions as (
    select
        cluster_name,
        day_on,
        pod_uid,
        region_number,
        min(begin_at) as begin_at,
        max(end_at) as end_at,
        min(begin_at) = timezone($zone, day_on::timestamp) as is_from_midnight,
        max(end_at) = timezone($zone, day_on + interval 1 day) as is_to_midnight
    from numbered
    group by cluster_name, day_on, pod_uid, region_number
),

-- Shared devices have no episodes of one hold: what is idle there is idle for all of them.
pieces as (
    select
        p.cluster_name,
        p.day_on,
        p.hold_id,
        p.part_number,
        r.region_number,
        g.activity_name,
        g.is_certain,
        greatest(g.begin_at, r.begin_at) as begin_at,
        least(g.end_at, r.end_at) as end_at,
        r.is_from_midnight and not h.is_begin as is_from_midnight,
        r.is_to_midnight and not h.is_end as is_to_midnight,
        a.idle_least_seconds,
        a.stalled_least_seconds,
        a.episode_least_seconds,
        a.episode_most_active_ratio
    from core.hold_parts as p
    inner join core.holds as h
        on p.cluster_name = h.cluster_name and p.day_on = h.day_on and p.hold_id = h.hold_id
    inner join regions as r
        on h.cluster_name = r.cluster_name and h.day_on = r.day_on and h.pod_uid = r.pod_uid
    inner join core.gpu_states as g
        on
            p.cluster_name = g.cluster_name
            and p.day_on = g.day_on
            and h.node_uid = g.node_uid
            and p.gpu_uuid = g.gpu_uuid
            and p.instance_number = g.instance_number
            and g.begin_at < r.end_at
            and g.end_at > r.begin_at
    inner join core.gpus as d
        on
            p.cluster_name = d.cluster_name
            and p.day_on = d.day_on
            and h.node_uid = d.node_uid
            and p.gpu_uuid = d.gpu_uuid
            and p.instance_number = d.instance_number
    inner join core.gpu_rules as a
        on
            d.cluster_name = a.cluster_name
            and d.day_on = a.day_on
            and d.gpu_model_name = a.gpu_model_name
            and h.workload_class = a.workload_class
),

-- Neighbours of one activity as one, whatever hour or memory cut them.
changes as (
    select
        *,
        coalesce(
            activity_name <> lag(activity_name) over part_time, true
        )::integer as is_change
    from pieces
    window part_time as (
        partition by cluster_name, day_on, hold_id, part_number, region_number order by begin_at
    )
),

runs as (
    select
        *,
        sum(is_change) over (
            partition by cluster_name, day_on, hold_id, part_number, region_number
            order by begin_at
        ) as run_number
    from changes
),

stretches as (
    select
        cluster_name,
        day_on,
        hold_id,
        part_number,
        region_number,
        any_value(activity_name) as activity_name,
        bool_and(is_certain) as is_certain,
        any_value(is_from_midnight) as is_from_midnight,
        any_value(is_to_midnight) as is_to_midnight,
        min(begin_at) as begin_at,
        max(end_at) as end_at,
        date_diff('second', min(begin_at), max(end_at)) as stretch_seconds,
        any_value(idle_least_seconds) as idle_least_seconds,
        any_value(stalled_least_seconds) as stalled_least_seconds,
        any_value(episode_least_seconds) as episode_least_seconds,
        any_value(episode_most_active_ratio) as episode_most_active_ratio
    from runs
    group by cluster_name, day_on, hold_id, part_number, region_number, run_number
),

worked as (
    select
        *,
        -- What a region cut too short counts as a pause.
        activity_name = 'idle' and stretch_seconds >= idle_least_seconds as is_quiet,
        sum(case when activity_name in ('active', 'stalled') then stretch_seconds else 0 end)
            over (
                partition by cluster_name, day_on, hold_id, part_number, region_number
                order by begin_at
            ) as active_total,
        sum(case when activity_name in ('active', 'stalled') then stretch_seconds else 0 end)
            over (
                partition by cluster_name, day_on, hold_id, part_number, region_number
            ) as region_active_total
    from stretches
),

quiet as (
    select
        *,
        row_number() over (order by cluster_name, day_on, hold_id, part_number, begin_at)
            as quiet_number,
        coalesce(
            active_total - lag(active_total) over (
                partition by cluster_name, day_on, hold_id, part_number, region_number
                order by begin_at
            ),
            -1
        ) as active_before_seconds,
        lead(begin_at) over (
            partition by cluster_name, day_on, hold_id, part_number, region_number
            order by begin_at
        ) is null as is_last
    from worked
    where is_quiet
),

-- One after the other, for what joins depends on what was joined.
joined as (
    select
        quiet_number,
        quiet_number as first_number,
        begin_at,
        end_at,
        0::bigint as active_seconds
    from quiet
    where active_before_seconds < 0
    union all
    select
        q.quiet_number,
        case when q.is_same then q.first_number else q.quiet_number end as first_number,
        case when q.is_same then q.since_at else q.begin_at end as begin_at,
        q.end_at,
        case when q.is_same then q.total_seconds else 0 end as active_seconds
    from (
        select
            q.quiet_number,
            q.begin_at,
            q.end_at,
            j.first_number,
            j.begin_at as since_at,
            (j.active_seconds + q.active_before_seconds)::bigint as total_seconds,
            j.active_seconds + q.active_before_seconds
            < q.episode_most_active_ratio * date_diff('second', j.begin_at, q.end_at) as is_same
        from joined as j
        inner join quiet as q
            on j.quiet_number + 1 = q.quiet_number and q.active_before_seconds >= 0
    ) as q
),

idle as (
    select
        'idle' as episode_name,
        q.cluster_name,
        q.day_on,
        q.hold_id,
        q.part_number,
        min(j.begin_at) as begin_at,
        max(j.end_at) as end_at,
        max(j.active_seconds) as active_seconds,
        max(q.active_total) filter (where q.active_before_seconds < 0 and q.is_from_midnight)
            as active_before_seconds,
        max(q.region_active_total - q.active_total) filter (where q.is_last and q.is_to_midnight)
            as active_after_seconds,
        true as is_certain,
        any_value(q.episode_least_seconds) as least_seconds,
        any_value(q.episode_most_active_ratio) as most_active_ratio
    from joined as j
    inner join quiet as q
        on j.quiet_number = q.quiet_number
    group by q.cluster_name, q.day_on, q.hold_id, q.part_number, j.first_number
),

-- A piece of the other day is a day long at most.
near_midnight as (
    select
        * exclude (active_before_seconds, active_after_seconds),
        case when active_before_seconds <= most_active_seconds then active_before_seconds end
            as active_before_seconds,
        case when active_after_seconds <= most_active_seconds then active_after_seconds end
            as active_after_seconds
    from (
        select
            *,
            most_active_ratio * (date_diff('second', begin_at, end_at) + 2 * 86400)
                as most_active_seconds
        from idle
    ) as i
),

found as (
    select *
    from near_midnight
    union all by name
    select
        'stalled' as episode_name,
        s.cluster_name,
        s.day_on,
        s.hold_id,
        s.part_number,
        s.begin_at,
        s.end_at,
        0::bigint as active_seconds,
        case when s.is_from_midnight and s.begin_at = w.begin_at then 0 end
            as active_before_seconds,
        case when s.is_to_midnight and s.end_at = w.end_at then 0 end as active_after_seconds,
        s.is_certain,
        s.stalled_least_seconds as least_seconds,
        s.episode_most_active_ratio as most_active_ratio
    from stretches as s
    inner join core.windows as w
        on s.cluster_name = w.cluster_name and s.day_on = w.day_on
    where s.activity_name = 'stalled'
)

select
    f.cluster_name,
    f.day_on,
    f.episode_name,
    f.hold_id,
    f.part_number,
    f.begin_at,
    f.end_at,
    f.active_before_seconds::bigint as active_before_seconds,
    f.active_after_seconds::bigint as active_after_seconds,
    f.end_at = w.end_at and not h.is_end as is_open,
    f.active_seconds,
    f.is_certain
from found as f
inner join core.windows as w
    on f.cluster_name = w.cluster_name and f.day_on = w.day_on
inner join core.holds as h
    on f.cluster_name = h.cluster_name and f.day_on = h.day_on and f.hold_id = h.hold_id
where
    date_diff('second', f.begin_at, f.end_at) >= f.least_seconds
    or f.active_before_seconds is not null
    or f.active_after_seconds is not null
    or (f.end_at = w.end_at and not h.is_end)
