"""The queries of a report: sums of marts over a period, and their rows in order of what they cost.

Every rule about time and money is in sql/; here marts are summed. A cost without a price is null,
and the time that it is missing for is summed beside it. What is made of the rows belongs to
`report_figures` and `report_tables`.
"""

SPENT = """
select
    sum(gpu_seconds) as gpu_seconds,
    sum(team_cost) as spent_cost,
    sum(unpriced_gpu_seconds) as unpriced_gpu_seconds
from mart.team_days
where day_on >= $begin_on and day_on < $end_on
"""
USE = """
select
    sum(available_gpu_seconds) as available_gpu_seconds,
    sum(held_gpu_seconds) as held_gpu_seconds,
    sum(active_gpu_seconds) as active_gpu_seconds,
    sum(idle_gpu_seconds) as idle_gpu_seconds,
    sum(stalled_gpu_seconds) as stalled_gpu_seconds,
    sum(unobserved_gpu_seconds) as unobserved_gpu_seconds,
    sum(sm_observed_gpu_seconds) as sm_observed_gpu_seconds,
    sum(effective_gpu_seconds) as effective_gpu_seconds,
    sum(held_cost) as held_cost,
    sum(idle_cost) as idle_cost,
    sum(stalled_cost) as stalled_cost,
    coalesce(sum(held_gpu_seconds) filter (where held_cost is null), 0)
        as held_unpriced_gpu_seconds,
    coalesce(sum(idle_gpu_seconds) filter (where idle_cost is null), 0)
        as idle_unpriced_gpu_seconds,
    coalesce(sum(stalled_gpu_seconds) filter (where stalled_cost is null), 0)
        as stalled_unpriced_gpu_seconds
from mart.use_hours
where day_on >= $begin_on and day_on < $end_on
"""
CLUSTERS = """
select distinct cluster_name
from mart.team_days
where day_on >= $begin_on and day_on < $end_on
"""
EPISODES = """
with
pieces as (
    select
        *,
        coalesce(since_at > max(until_at) over earlier, true) as is_first
    from episodes($begin_on, $end_on)
    where episode_name = $kind
    window earlier as (
        partition by cluster_name, team_name, workload_key_uid
        order by since_at, until_at, hold_id, part_number
        rows between unbounded preceding and 1 preceding
    )
),

numbered as (
    select
        *,
        sum(is_first::integer) over (
            partition by cluster_name, team_name, workload_key_uid
            order by since_at, until_at, hold_id, part_number
            rows between unbounded preceding and current row
        ) as spell_number
    from pieces
),

pods as (
    select
        cluster_name,
        team_name,
        workload_key_uid,
        spell_number,
        pod_uid,
        count(distinct (hold_id, part_number)) as idle_count,
        max(pod_gpu_count) as pod_gpu_count
    from numbered
    group by all
),

counts as (
    select
        cluster_name,
        team_name,
        workload_key_uid,
        spell_number,
        sum(idle_count)::bigint as gpu_count,
        sum(pod_gpu_count)::bigint as of_gpu_count,
        count(*) as pod_count
    from pods
    group by all
),

causes as (
    select
        cluster_name,
        team_name,
        workload_key_uid,
        spell_number,
        likely_cause_name,
        sum(gpu_seconds) as cause_gpu_seconds
    from numbered
    group by all
),

likely as (
    select
        cluster_name,
        team_name,
        workload_key_uid,
        spell_number,
        arg_max(likely_cause_name, (cause_gpu_seconds, likely_cause_name)) as likely_cause_name,
        count(*) as cause_count
    from causes
    group by all
)

select
    n.cluster_name,
    n.team_name,
    min(n.workload_name) as workload_name,
    min(n.workload_kind_name) as workload_kind_name,
    min(n.namespace_name) as namespace_name,
    string_agg(distinct n.user_name, ', ' order by n.user_name) as user_names_text,
    any_value(c.gpu_count) as gpu_count,
    any_value(c.of_gpu_count) as of_gpu_count,
    any_value(c.pod_count) as pod_count,
    min(n.since_at) as since_at,
    max(n.until_at) as until_at,
    bool_or(n.is_open) as is_open,
    bool_and(n.is_certain) as is_certain,
    any_value(l.likely_cause_name) as likely_cause_name,
    any_value(l.cause_count) as cause_count,
    sum(n.gpu_seconds) as gpu_seconds,
    sum(n.unpriced_gpu_seconds) as unpriced_gpu_seconds,
    sum(n.episode_cost) as episode_cost
from numbered as n
inner join counts as c using (cluster_name, team_name, workload_key_uid, spell_number)
inner join likely as l using (cluster_name, team_name, workload_key_uid, spell_number)
group by n.cluster_name, n.team_name, n.workload_key_uid, n.spell_number
order by
    sum(n.episode_cost) desc nulls last,
    sum(n.gpu_seconds) desc,
    n.cluster_name,
    n.team_name,
    n.workload_key_uid,
    n.spell_number
"""
OVER_SIZED = """
with
pods as (
    select
        cluster_name,
        team_name,
        coalesce(workload_name, pod_name, subject_text) as workload_name,
        subject_text,
        min(gpu_count) as gpu_count,
        max(of_gpu_count) as of_gpu_count,
        count(distinct day_on) as day_count,
        sum(gpu_seconds) as gpu_seconds,
        sum(unpriced_gpu_seconds) as unpriced_gpu_seconds,
        sum(finding_cost) as finding_cost
    from mart.gpu_findings
    where finding_name = 'over_sized' and day_on >= $begin_on and day_on < $end_on
    group by all
)

select
    cluster_name,
    team_name,
    workload_name,
    sum(gpu_count)::bigint as gpu_count,
    sum(of_gpu_count)::bigint as of_gpu_count,
    count(*) as pod_count,
    max(day_count) as day_count,
    sum(gpu_seconds) as gpu_seconds,
    sum(unpriced_gpu_seconds) as unpriced_gpu_seconds,
    sum(finding_cost) as finding_cost
from pods
group by cluster_name, team_name, workload_name
order by
    sum(finding_cost) desc nulls last,
    sum(gpu_seconds) desc,
    cluster_name,
    team_name,
    workload_name
"""
FINDINGS = """
select
    finding_name,
    count(distinct (cluster_name, subject_text)) as finding_count,
    sum(gpu_seconds) as gpu_seconds,
    sum(unpriced_gpu_seconds) as unpriced_gpu_seconds,
    sum(finding_cost) as finding_cost
from mart.gpu_findings
where finding_name <> 'over_sized' and day_on >= $begin_on and day_on < $end_on
group by finding_name
order by sum(finding_cost) desc nulls last, sum(gpu_seconds) desc, finding_name
"""
TEAMS = """
with
spent as (
    select
        team_name,
        sum(gpu_seconds) as gpu_seconds,
        sum(unpriced_gpu_seconds) as unpriced_gpu_seconds,
        sum(team_cost) as use_cost
    from mart.team_days
    where day_on >= $begin_on and day_on < $end_on
    group by team_name
),

used as (
    select
        team_name,
        sum(held_gpu_seconds) as held_gpu_seconds,
        sum(active_gpu_seconds) as active_gpu_seconds,
        sum(idle_gpu_seconds) as idle_gpu_seconds,
        sum(stalled_gpu_seconds) as stalled_gpu_seconds,
        sum(unobserved_gpu_seconds) as unobserved_gpu_seconds,
        sum(sm_observed_gpu_seconds) as sm_observed_gpu_seconds,
        sum(effective_gpu_seconds) as effective_gpu_seconds
    from mart.use_hours
    where day_on >= $begin_on and day_on < $end_on
    group by team_name
)

select *
from spent
left join used using (team_name)
where not list_contains($apart::varchar[], team_name)
order by use_cost desc nulls last, gpu_seconds desc, team_name
"""
WORKLOADS = """
select
    cluster_name,
    min(workload_name) as workload_name,
    min(workload_kind_name) as workload_kind_name,
    min(namespace_name) as namespace_name,
    sum(held_gpu_seconds) as gpu_seconds,
    sum(unpriced_gpu_seconds) as unpriced_gpu_seconds,
    sum(held_cost) as use_cost,
    sum(held_gpu_seconds) as held_gpu_seconds,
    sum(active_gpu_seconds) as active_gpu_seconds,
    sum(idle_gpu_seconds) as idle_gpu_seconds,
    sum(stalled_gpu_seconds) as stalled_gpu_seconds,
    sum(unobserved_gpu_seconds) as unobserved_gpu_seconds,
    sum(sm_observed_gpu_seconds) as sm_observed_gpu_seconds,
    sum(effective_gpu_seconds) as effective_gpu_seconds
from mart.use_workloads
where day_on >= $begin_on and day_on < $end_on
group by cluster_name, workload_key_uid
order by sum(held_cost) desc nulls last, sum(held_gpu_seconds) desc, cluster_name, workload_key_uid
"""
