-- core.gang_deadlocks: Stretches in which gangs cannot be complete unless another of them gives up its GPUs.
--
-- Even if all else that may end ended, on nodes that all of them could use. As long as one would fit
-- then, it will give back what it holds, and the next ones may fit.
with
limits as (
    select coalesce(max(value_number), 120) as least_seconds
    from raw.policies
    where policy_name = 'gang_deadlock_seconds'
),

-- The one that misses least goes first.
served as (
    select
        *,
        missing_micro_gpu > room_micro_gpu + coalesce(sum(held_micro_gpu) over earlier, 0)
            as is_blocked
    from core.gang_queues
    window earlier as (
        partition by cluster_name, day_on, place_id, moment_at
        order by missing_micro_gpu, attempt_id
        rows between unbounded preceding and 1 preceding
    )
),

blocked as (
    select
        *,
        sum(held_micro_gpu) over (partition by cluster_name, day_on, place_id, moment_at)
            as all_held_micro_gpu
    from served
    qualify
        bool_or(is_blocked) over (
            partition by cluster_name, day_on, place_id, moment_at
            order by missing_micro_gpu, attempt_id
            rows between unbounded preceding and current row
        )
),

-- At least two, and one that would fit if the others gave up: what fits nowhere waits for nobody.
locked as (
    select *
    from blocked
    qualify
        count(*) over (partition by cluster_name, day_on, place_id, moment_at) > 1
        and bool_or(missing_micro_gpu <= room_micro_gpu + all_held_micro_gpu - held_micro_gpu)
            over (partition by cluster_name, day_on, place_id, moment_at)
),

stretches as (
    select
        *,
        sum(is_new) over (
            partition by cluster_name, day_on, place_id, attempt_id order by moment_at
        ) as stretch_number
    from (
        select
            *,
            coalesce(
                moment_at > lag(next_at) over (
                    partition by cluster_name, day_on, place_id, attempt_id order by moment_at
                ),
                true
            )::integer as is_new
        from locked
    ) as k
),

lasting as (
    select
        s.cluster_name,
        s.day_on,
        s.place_id,
        s.attempt_id,
        min(s.moment_at) as since_at,
        max(s.next_at) as end_at,
        bool_or(s.is_open) as is_open,
        any_value(s.node_count) as node_count,
        bool_and(s.is_certain) as is_certain
    from stretches as s
    group by s.cluster_name, s.day_on, s.place_id, s.attempt_id, s.stretch_number
    having
        date_diff('second', min(s.moment_at), max(s.next_at))
        > (select l.least_seconds from limits as l)
),

-- Deadlocks at one place that overlap are one.
chained as (
    select
        *,
        sum(is_new) over (
            partition by cluster_name, day_on, place_id order by since_at, attempt_id
        ) as deadlock_number
    from (
        select
            *,
            coalesce(
                since_at >= max(end_at) over (
                    partition by cluster_name, day_on, place_id
                    order by since_at, attempt_id
                    rows between unbounded preceding and 1 preceding
                ),
                true
            )::integer as is_new
        from lasting
    ) as g
)

select
    c.cluster_name,
    c.day_on,
    c.attempt_id,
    c.place_id || '@' || epoch_us(
        min(c.since_at) over (
            partition by c.cluster_name, c.day_on, c.place_id, c.deadlock_number
        )
    ) // 1000000 as deadlock_id,
    c.since_at,
    greatest(c.since_at, w.begin_at) as begin_at,
    c.end_at,
    c.is_open,
    c.node_count,
    bool_and(c.is_certain) over (
        partition by c.cluster_name, c.day_on, c.place_id, c.deadlock_number
    ) as is_certain
from chained as c
inner join core.windows as w
    on c.cluster_name = w.cluster_name and c.day_on = w.day_on
where c.end_at > w.begin_at
qualify
    count(*) over (
        partition by c.cluster_name, c.day_on, c.place_id, c.deadlock_number
    ) > 1
