"""What is read of findings: the queries of their page and of a workload's. Drawing is the views'.

A finding has a row for each day that it touches: what is said of it is the latest day's, time and
money add up.
"""

from dashboards.conditions import HERE, TEAMS

ONE = "cluster_name, finding_name, subject_text, team_name, since_at"
"""What tells one finding from another."""

FOUND = f"""
with latest as (
    select
        cluster_name,
        max(day_on) as day_on
    from mart.fleet_coverage
    where list_contains($clusters::varchar[], cluster_name)
    group by cluster_name
),

still as (
    select {ONE}
    from mart.workload_findings
    inner join latest using (cluster_name, day_on)
    where is_open
),

told as (
    select
        {ONE},
        arg_max(workload_key_uid, day_on) as workload_key_uid,
        arg_max(namespace_name, day_on) as namespace_name,
        arg_max(coalesce(workload_name, subject_text), day_on) as workload_name,
        max(end_at) as end_at,
        max(member_count) as member_count,
        sum(gpu_seconds)::decimal(18, 6) as gpu_seconds,
        sum(unpriced_gpu_seconds)::decimal(18, 6) as unpriced_gpu_seconds,
        sum(finding_cost)::decimal(18, 6) as finding_cost,
        sum(beside_gpu_seconds)::decimal(18, 6) as beside_gpu_seconds,
        arg_max(evidence_text, day_on) as evidence_text
    from mart.workload_findings
    where {HERE} and {TEAMS} and ($workload = '' or workload_key_uid = $workload)
    group by {ONE}
),

found as (
    select
        t.*,
        s.since_at is not null as is_open
    from told as t
    left join still as s using ({ONE})
)
"""
"""What was so at a midnight and is told no more was not so for long: open is what the latest day of
its cluster says is."""

FINDINGS = f"""
{FOUND}
select *
from found
where $finding = '' or finding_name = $finding
order by gpu_seconds + beside_gpu_seconds desc, since_at, subject_text, finding_name
limit 200
"""
"""Those that held up most GPU-time first."""

KINDS = f"""
{FOUND}
select
    finding_name,
    count(*) as finding_count,
    count(*) filter (where is_open) as open_count,
    sum(gpu_seconds)::decimal(18, 6) as gpu_seconds,
    sum(unpriced_gpu_seconds)::decimal(18, 6) as unpriced_gpu_seconds,
    sum(finding_cost)::decimal(18, 6) as finding_cost,
    sum(beside_gpu_seconds)::decimal(18, 6) as beside_gpu_seconds
from found
group by finding_name
order by sum(gpu_seconds + beside_gpu_seconds) desc, finding_name
"""

MEMBERS = f"""
select
    arg_max(namespace_name, day_on) as namespace_name,
    arg_max(pod_name, day_on) as pod_name,
    arg_max(node_name, day_on) as node_name,
    arg_max(asked_micro_gpu, day_on) / 1000000 as gpu_share,
    arg_max(member_state_name, day_on) as member_state_name,
    arg_max(state_since_at, day_on) as state_since_at,
    sum(gpu_seconds)::decimal(18, 6) as gpu_seconds,
    sum(member_cost)::decimal(18, 6) as member_cost,
    sum(beside_gpu_seconds)::decimal(18, 6) as beside_gpu_seconds
from mart.finding_members
where
    {HERE} and {TEAMS}
    and cluster_name = $cluster
    and finding_name = $finding
    and subject_text = $subject
    and team_name = $team
    and since_at = $since
group by pod_uid
order by sum(gpu_seconds + beside_gpu_seconds) desc, pod_name
limit 500
"""
