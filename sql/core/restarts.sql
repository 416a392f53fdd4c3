-- core.restarts: Restarts that keep the admission: containers in place, or a member replaced.
with
counted as (
    select
        cluster_name,
        day_on,
        pod_uid,
        date_trunc('second', observed_at) as restarted_at,
        restart_count
        - lag(restart_count, 1, case when change_name = 'CARRIED' then restart_count else 0 end)
            over (partition by cluster_name, day_on, pod_uid order by sequence_number)
            as restart_count,
        exit_code_number
    from raw.pod_versions
),

members as (
    select
        *,
        max(gone_at) filter (where not (phase_name = 'Succeeded' and finished_at is not null))
            over (
                partition by cluster_name, day_on, attempt_id
                order by created_at, pod_uid
                rows between unbounded preceding and 1 preceding
            ) as lost_at
    from core.pods
    where not is_service
)

select
    c.cluster_name,
    c.day_on,
    c.pod_uid,
    p.workload_key_uid,
    p.attempt_id,
    c.restarted_at,
    'container' as restart_kind_name,
    sum(c.restart_count)::bigint as restart_count,
    max(c.exit_code_number) as exit_code_number
from counted as c
inner join core.pods as p
    on c.cluster_name = p.cluster_name and c.day_on = p.day_on and c.pod_uid = p.pod_uid
where c.restart_count > 0
group by all
union all by name
select
    m.cluster_name,
    m.day_on,
    m.pod_uid,
    m.workload_key_uid,
    m.attempt_id,
    m.created_at as restarted_at,
    'pod' as restart_kind_name,
    1::bigint as restart_count,
    null::bigint as exit_code_number
from members as m
inner join core.windows as w
    on m.cluster_name = w.cluster_name and m.day_on = w.day_on
where m.lost_at <= m.created_at and m.created_at >= w.begin_at
