-- episodes: Idle and stalled GPUs of holds, each episode whole over the days of a period.
--
-- A piece goes on from the last one of the day before where less than the rule's share of both, and
-- of what is between them, is active: as within a day. Of the likely cause the newest day that knows
-- one tells: when the GPU last worked is known of the day it worked on only.
with
read as (
    select
        *,
        lag(begin_at) over earlier as earlier_begin_at,
        lag(day_on) over earlier as earlier_on,
        lag(active_seconds) over earlier as earlier_active_seconds,
        active_before_seconds + lag(active_after_seconds) over earlier as between_seconds
    from mart.gpu_episodes
    where
        day_on >= $begin_on
        and day_on < $end_on
        and ($clusters is null or list_contains($clusters::varchar[], cluster_name))
        and ($teams is null or list_contains($teams::varchar[], team_name))
        and ($kind = 'all' or episode_name = $kind)
        and ($wanted is null or workload_key_uid = $wanted)
    window
        earlier as (
            partition by cluster_name, episode_name, hold_id, part_number
            order by begin_at
        )
),

pieces as (
    select
        *,
        coalesce(
            day_on = earlier_on + interval 1 day
            and (
                between_seconds = 0
                or earlier_active_seconds + between_seconds + active_seconds
                < most_active_ratio * date_diff('second', earlier_begin_at, end_at)
            ),
            false
        ) as is_continued,
        case when likely_cause_name <> 'unknown' then begin_at end as cause_known_at
    from read
),

numbered as (
    select
        *,
        count(*) filter (where not is_continued) over (
            partition by cluster_name, episode_name, hold_id, part_number
            order by begin_at
        ) as episode_number
    from pieces
),

episodes as (
    select
        cluster_name,
        episode_name,
        hold_id,
        part_number,
        min(begin_at) as since_at,
        max(end_at) as until_at,
        arg_max(is_open, begin_at) as is_open,
        any_value(team_name) as team_name,
        arg_max(contacts_text, begin_at) as contacts_text,
        arg_max(user_name, begin_at) as user_name,
        any_value(workload_key_uid) as workload_key_uid,
        any_value(workload_kind_name) as workload_kind_name,
        any_value(namespace_name) as namespace_name,
        any_value(workload_name) as workload_name,
        any_value(workload_class) as workload_class,
        any_value(pod_uid) as pod_uid,
        any_value(pod_name) as pod_name,
        any_value(pod_gpu_count) as pod_gpu_count,
        any_value(node_uid) as node_uid,
        any_value(node_name) as node_name,
        arg_max(gpu_uuid, begin_at) as gpu_uuid,
        arg_max(instance_number, begin_at) as instance_number,
        any_value(gpu_model_name) as gpu_model_name,
        sum(idle_seconds)::bigint as idle_seconds,
        (
            sum(active_seconds) + coalesce(sum(between_seconds) filter (where is_continued), 0)
        )::bigint
            as active_seconds,
        sum(unobserved_seconds)::bigint as unobserved_seconds,
        max(last_active_at) as last_active_at,
        bool_and(is_certain) as is_certain,
        sum(utilisation_ratio * idle_seconds)
        / nullif(sum(idle_seconds) filter (where utilisation_ratio is not null), 0)
            as utilisation_ratio,
        max(sm_ratio) as sm_ratio,
        max(memory_used_mib) as memory_used_mib,
        sum(power_watts * idle_seconds)
        / nullif(sum(idle_seconds) filter (where power_watts is not null), 0) as power_watts,
        arg_max(rest_watts, begin_at) as rest_watts,
        coalesce(arg_max(likely_cause_name, cause_known_at), 'unknown') as likely_cause_name,
        concat_ws(
            '; ',
            arg_max(evidence_text, begin_at),
            case
                when max(cause_known_at) < max(begin_at)
                    then
                        'on ' || strftime(arg_max(day_on, cause_known_at), '%Y-%m-%d') || ': '
                        || arg_max(evidence_text, cause_known_at)
            end
        ) as evidence_text,
        sum(gpu_seconds)::decimal(18, 6) as gpu_seconds,
        sum(unpriced_gpu_seconds)::decimal(18, 6) as unpriced_gpu_seconds,
        sum(episode_cost)::decimal(18, 6) as episode_cost,
        max(least_seconds) as least_seconds
    from numbered
    group by cluster_name, episode_name, hold_id, part_number, episode_number
)

select
    cluster_name,
    episode_name,
    hold_id,
    part_number,
    since_at,
    until_at,
    is_open,
    date_diff('second', since_at, until_at) as episode_seconds,
    team_name,
    contacts_text,
    user_name,
    workload_key_uid,
    workload_kind_name,
    namespace_name,
    workload_name,
    workload_class,
    pod_uid,
    pod_name,
    pod_gpu_count,
    node_uid,
    node_name,
    gpu_uuid,
    instance_number,
    gpu_model_name,
    idle_seconds,
    active_seconds,
    unobserved_seconds,
    last_active_at,
    is_certain,
    utilisation_ratio,
    sm_ratio,
    memory_used_mib,
    power_watts,
    rest_watts,
    likely_cause_name,
    evidence_text,
    gpu_seconds,
    unpriced_gpu_seconds,
    episode_cost,
    least_seconds,
    (
        episode_cost::double * 86400 * gpu_seconds::double
        / nullif((gpu_seconds - unpriced_gpu_seconds)::double * idle_seconds, 0)
    )::decimal(18, 6) as per_day_cost
from episodes
where date_diff('second', since_at, until_at) >= least_seconds
