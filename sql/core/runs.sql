-- core.runs: Stretches in which all containers of a pod that ask for the GPU run.
--
-- A run is known by the latest startedAt of its containers; it ends with the first of them.
with
versions as (
    select
        cluster_name,
        day_on,
        pod_uid,
        sequence_number,
        date_trunc('second', running_since_at) as begin_at,
        date_trunc('second', stopped_at) as stopped_at,
        date_trunc('second', observed_at) as observed_at,
        waiting_cause_name is null and phase_name not in ('Succeeded', 'Failed') as is_going_on
    from raw.pod_versions
    where change_name <> 'DELETED' or running_since_at is not null
),

runs as (
    select
        cluster_name,
        day_on,
        pod_uid,
        begin_at,
        max(sequence_number) as sequence_number,
        -- While it goes on, a stop in its first second is that of the run before.
        coalesce(
            min(stopped_at) filter (where stopped_at > begin_at),
            case
                when not arg_max(is_going_on, sequence_number)
                    then min(stopped_at) filter (where stopped_at = begin_at)
            end
        ) as stopped_at
    from versions
    where begin_at is not null
    group by cluster_name, day_on, pod_uid, begin_at
),

-- The first version after the run's last one tells when it stopped.
followed as (
    select
        r.cluster_name,
        r.day_on,
        r.pod_uid,
        r.begin_at,
        coalesce(
            r.stopped_at,
            case when v.stopped_at >= r.begin_at then v.stopped_at else v.observed_at end
        ) as end_at
    from runs as r
    asof left join versions as v
        on
            r.cluster_name = v.cluster_name
            and r.day_on = v.day_on
            and r.pod_uid = v.pod_uid
            and r.sequence_number < v.sequence_number
)

select
    f.cluster_name,
    f.day_on,
    f.pod_uid,
    p.attempt_id,
    f.begin_at,
    least(coalesce(f.end_at, p.ended_at, w.end_at), coalesce(p.ended_at, w.end_at)) as end_at,
    coalesce(f.end_at, p.ended_at) is not null as is_ended
from followed as f
inner join core.pods as p
    on f.cluster_name = p.cluster_name and f.day_on = p.day_on and f.pod_uid = p.pod_uid
inner join core.windows as w
    on f.cluster_name = w.cluster_name and f.day_on = w.day_on
where f.begin_at < least(coalesce(f.end_at, w.end_at), coalesce(p.ended_at, w.end_at))
