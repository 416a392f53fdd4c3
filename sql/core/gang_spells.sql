-- core.gang_spells: How many members of each gang exist, are bound and run, from when on.
--
-- A member that has succeeded counts on: it was not lost. Where clocks differ, one that ended before
-- it was made or bound never counted.
with
members as (
    select
        cluster_name,
        day_on,
        attempt_id,
        pod_uid,
        least(created_at, ended_at) as created_at,
        case
            when not is_refused and bound_at is not null then least(bound_at, ended_at)
        end as bound_at,
        ended_at,
        phase_name = 'Succeeded' and finished_at is not null as is_succeeded,
        gang_size_count
    from core.pods
    where gang_size_count > 1
),

events as (
    select
        cluster_name,
        day_on,
        attempt_id,
        created_at as edge_at,
        1 as created,
        0 as bound,
        0 as whole
    from members
    union all by name
    select
        cluster_name,
        day_on,
        attempt_id,
        ended_at as edge_at,
        -1 as created,
        0 as bound,
        0 as whole
    from members
    where ended_at is not null and not is_succeeded
    union all by name
    select
        cluster_name,
        day_on,
        attempt_id,
        bound_at as edge_at,
        0 as created,
        1 as bound,
        0 as whole
    from members
    where bound_at is not null
    union all by name
    select
        cluster_name,
        day_on,
        attempt_id,
        ended_at as edge_at,
        0 as created,
        -1 as bound,
        0 as whole
    from members
    where bound_at is not null and ended_at is not null and not is_succeeded
    union all by name
    select
        m.cluster_name,
        m.day_on,
        m.attempt_id,
        m.ended_at as edge_at,
        0 as created,
        0 as bound,
        1 as whole
    from members as m
    where m.is_succeeded
    union all by name
    select
        r.cluster_name,
        r.day_on,
        r.attempt_id,
        r.begin_at as edge_at,
        0 as created,
        0 as bound,
        1 as whole
    from core.runs as r
    inner join members as m
        on r.cluster_name = m.cluster_name and r.day_on = m.day_on and r.pod_uid = m.pod_uid
    union all by name
    select
        r.cluster_name,
        r.day_on,
        r.attempt_id,
        r.end_at as edge_at,
        0 as created,
        0 as bound,
        -1 as whole
    from core.runs as r
    inner join members as m
        on r.cluster_name = m.cluster_name and r.day_on = m.day_on and r.pod_uid = m.pod_uid
    where r.is_ended
),

steps as (
    select
        cluster_name,
        day_on,
        attempt_id,
        edge_at,
        sum(created) as created,
        sum(bound) as bound,
        sum(whole) as whole
    from events
    group by cluster_name, day_on, attempt_id, edge_at
)

select
    cluster_name,
    day_on,
    attempt_id,
    edge_at as begin_at,
    (sum(created) over timeline)::bigint as created_count,
    (sum(bound) over timeline)::bigint as bound_count,
    (sum(whole) over timeline)::bigint as whole_count
from steps
window timeline as (partition by cluster_name, day_on, attempt_id order by edge_at)
