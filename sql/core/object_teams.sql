-- core.object_teams: The team that the rules give each pod at its bind, and each Kueue Workload.
--
-- Team rules look at what was known when the pod was first seen with a node; a Workload's pods are
-- not there before it has quota, so the rules look at it and at its pod template.
with
at_bind as (
    select
        p.cluster_name,
        p.day_on,
        p.pod_uid as object_uid,
        v.observed_at,
        v.namespace_name,
        v.labels_json,
        p.owners,
        coalesce(v.queue_name, p.queue_name) as queue_name,
        coalesce(v.account_name, p.account_name) as account_name,
        coalesce(v.user_name, p.user_name) as user_name,
        coalesce(p.bound_at, v.observed_at) as bound_at
    from core.pod_lives as p
    inner join raw.pod_versions as v
        on
            p.cluster_name = v.cluster_name
            and p.day_on = v.day_on
            and p.bind_sequence_number = v.sequence_number
    where p.known_team_name is null
    union all by name
    select
        w.cluster_name,
        w.day_on,
        w.workload_uid as object_uid,
        w.observed_at,
        w.namespace_name,
        w.labels_json,
        coalesce(o.owners, w.owners) as owners,
        coalesce(w.cluster_queue_name, w.queue_name) as queue_name,
        coalesce(w.account_name, o.account_name) as account_name,
        coalesce(w.user_name, o.user_name) as user_name,
        w.observed_at as bound_at
    from raw.workload_versions as w
    left join core.owners as o
        on w.cluster_name = o.cluster_name and w.day_on = o.day_on and w.owner_uid = o.object_uid
    qualify
        row_number() over (
            partition by w.cluster_name, w.day_on, w.workload_uid order by w.sequence_number desc
        ) = 1
),

namespaces as (
    select
        p.cluster_name,
        p.day_on,
        p.object_uid,
        coalesce(
            arg_max(n.labels_json, n.sequence_number) filter (where n.observed_at <= p.observed_at),
            arg_min(n.labels_json, n.sequence_number)
        ) as labels_json
    from at_bind as p
    inner join raw.namespace_versions as n
        on
            p.cluster_name = n.cluster_name
            and p.day_on = n.day_on
            and p.namespace_name = n.namespace_name
    group by p.cluster_name, p.day_on, p.object_uid
),

matched as (
    select
        p.cluster_name,
        p.day_on,
        p.object_uid,
        r.rule_number,
        r.condition_count,
        r.condition_number,
        r.team_text,
        unnest(case r.field_name
            when 'pod_label' then [json_extract_string(p.labels_json, '$."' || r.key_name || '"')]
            when 'owner_name' then list_transform(p.owners, lambda o: o.object_name)
            when
                'namespace_label'
                then [json_extract_string(n.labels_json, '$."' || r.key_name || '"')]
            when 'namespace' then [p.namespace_name]
            when 'queue' then [p.queue_name]
            when 'account' then [p.account_name]
            when 'user' then [p.user_name]
        end) as found_text,
        r.pattern_text
    from at_bind as p
    cross join raw.team_rules as r
    left join namespaces as n
        on p.cluster_name = n.cluster_name and p.day_on = n.day_on and p.object_uid = n.object_uid
    where
        p.bound_at >= coalesce(r.valid_from_at, '-infinity'::timestamptz)
        and p.bound_at < coalesce(r.valid_to_at, 'infinity'::timestamptz)
),

ruled as (
    select
        cluster_name,
        day_on,
        object_uid,
        rule_number,
        replace(any_value(team_text), '{value}', arg_min(found_text, condition_number))
            as team_name
    from matched
    where found_text is not null and found_text <> '' and found_text glob pattern_text
    group by cluster_name, day_on, object_uid, rule_number
    having count(distinct condition_number) = any_value(condition_count)
)

select
    cluster_name,
    day_on,
    object_uid,
    arg_min(team_name, rule_number) as team_name
from ruled
group by cluster_name, day_on, object_uid
