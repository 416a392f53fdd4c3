-- core.scheduling_reasons: Why an object waited on a day, as schedulers and queues said: reason by reason.
--
-- A condition stands until a version says otherwise; the text of an event is only ever told. Node
-- counts come with each text anew, so the latest is kept, never a sum.
with
conditions as (
    select
        cluster_name,
        day_on,
        'Pod' as object_kind_name,
        namespace_name as object_namespace_name,
        pod_name as object_name,
        pod_uid as object_uid,
        sequence_number,
        observed_at,
        change_name,
        unscheduled_text,
        scheduling_reasons,
        source_ref
    from raw.pod_versions
    where change_name <> 'HEARD'
    union all
    select
        cluster_name,
        day_on,
        'PodGroup' as object_kind_name,
        namespace_name as object_namespace_name,
        pod_group_name as object_name,
        pod_group_uid as object_uid,
        sequence_number,
        observed_at,
        change_name,
        unscheduled_text,
        scheduling_reasons,
        source_ref
    from raw.pod_group_versions
    where change_name <> 'HEARD'
    union all
    select
        cluster_name,
        day_on,
        'Workload' as object_kind_name,
        namespace_name as object_namespace_name,
        object_name,
        workload_uid as object_uid,
        sequence_number,
        observed_at,
        change_name,
        pending_text as unscheduled_text,
        scheduling_reasons,
        source_ref
    from raw.workload_versions
    where change_name <> 'HEARD'
),

stood as (
    select
        c.*,
        coalesce(
            lead(c.observed_at) over versions,
            case when c.change_name = 'DELETED' then c.observed_at else w.end_at end,
            c.observed_at
        ) as until_at,
        lead(c.observed_at) over versions is null and c.change_name <> 'DELETED' as is_current,
        coalesce(c.unscheduled_text <> lag(c.unscheduled_text) over versions, true) as is_new
    from conditions as c
    left join core.windows as w
        on c.cluster_name = w.cluster_name and c.day_on = w.day_on
    window versions as (
        partition by c.cluster_name, c.day_on, c.object_uid
        order by c.sequence_number
    )
),

counted as (
    select
        *,
        total_count - greatest(
            before_count,
            coalesce(max(total_count) over earlier, 0)
        ) as told_count
    from raw.event_versions
    where scheduling_reasons is not null
    window earlier as (
        partition by cluster_name, day_on, event_uid
        order by sequence_number
        rows between unbounded preceding and 1 preceding
    )
),

told as (
    select
        cluster_name,
        day_on,
        object_kind_name,
        object_namespace_name,
        object_name,
        object_uid,
        'condition' as source_name,
        sequence_number,
        is_new::bigint as told_count,
        observed_at as first_at,
        greatest(until_at, observed_at) as last_at,
        is_current,
        source_ref,
        unnest(scheduling_reasons) as reason
    from stood
    where unscheduled_text is not null
    union all
    select
        cluster_name,
        day_on,
        object_kind_name,
        object_namespace_name,
        object_name,
        object_uid,
        'event' as source_name,
        sequence_number,
        told_count,
        first_at,
        last_at,
        null as is_current,
        source_ref,
        unnest(scheduling_reasons) as reason
    from counted
    where told_count > 0
),

patterns as (
    select
        *,
        reason.section_name,
        reason.reason_name,
        reason.reason_text,
        reason.node_count,
        reason.total_node_count,
        reason.resource_name,
        reason.missing_count,
        reason.taint_text,
        reason.pod_set_name,
        reason.flavor_name,
        reason.is_cut,
        case
            -- The states of its members change with each text.
            when reason.reason_name = 'gang' then 'gang'
            else regexp_replace(
                regexp_replace(
                    reason.reason_text, '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}', '<uid>', 'g'
                ),
                '[0-9]+',
                '#',
                'g'
            )
        end as text_pattern_name
    from told
),

folded as (
    select
        cluster_name,
        day_on,
        object_kind_name,
        object_namespace_name,
        object_name,
        object_uid,
        source_name,
        section_name,
        reason_name,
        resource_name,
        taint_text,
        pod_set_name,
        flavor_name,
        text_pattern_name,
        arg_max_null(node_count, sequence_number) as node_count,
        arg_max_null(total_node_count, sequence_number) as total_node_count,
        arg_max_null(missing_count, sequence_number) as missing_count,
        greatest(sum(told_count), 1)::bigint as told_count,
        min(first_at) as first_at,
        max(last_at) as last_at,
        bool_or(is_current) as is_current,
        arg_max(is_cut, sequence_number) as is_cut,
        arg_max(reason_text, sequence_number) as latest_text,
        arg_max(source_ref, sequence_number) as source_ref
    from patterns
    group by
        cluster_name,
        day_on,
        object_kind_name,
        object_namespace_name,
        object_name,
        object_uid,
        source_name,
        section_name,
        reason_name,
        resource_name,
        taint_text,
        pod_set_name,
        flavor_name,
        text_pattern_name
),

-- A resource that has a name on a node is there, even while its plugin gives 0 of it.
had as (
    select
        cluster_name,
        day_on,
        node_uid,
        unnest(string_split(resource_names_text, ' ')) as resource_name
    from raw.node_versions
    where resource_names_text is not null
),

advertising as (
    select
        cluster_name,
        day_on,
        resource_name,
        count(distinct node_uid) as node_count
    from had
    group by cluster_name, day_on, resource_name
),

telling as (
    select distinct
        cluster_name,
        day_on
    from had
),

-- Kueue's Workload bears another name than the work that it is for.
queued as (
    select
        cluster_name,
        day_on,
        workload_uid,
        any_value(workload_key_uid) as workload_key_uid
    from core.admissions
    group by cluster_name, day_on, workload_uid
),

groups as (
    select
        cluster_name,
        day_on,
        pod_group_uid,
        any_value(workload_key_uid) as workload_key_uid
    from raw.pod_group_versions
    group by cluster_name, day_on, pod_group_uid
)

select
    f.cluster_name,
    f.day_on,
    f.object_kind_name,
    f.object_namespace_name,
    f.object_name,
    f.object_uid,
    coalesce(
        p.workload_key_uid, g.workload_key_uid, q.workload_key_uid, w.workload_key_uid
    ) as workload_key_uid,
    f.source_name,
    f.section_name,
    f.section_name = 'preemption' as is_preemption,
    case
        when f.reason_name <> 'resource_short' or t.day_on is null then f.reason_name
        when f.section_name = 'scale_up' then f.reason_name
        when a.node_count is null then 'resource_absent'
        when
            f.section_name = 'scheduling'
            and f.node_count <= f.total_node_count - a.node_count
            then 'resource_elsewhere'
        else 'resource_full'
    end as reason_name,
    f.resource_name,
    f.taint_text,
    f.pod_set_name,
    f.flavor_name,
    f.text_pattern_name,
    f.node_count,
    f.total_node_count,
    case
        when f.resource_name is not null and t.day_on is not null then coalesce(a.node_count, 0)
    end as advertising_node_count,
    f.missing_count,
    f.told_count,
    f.first_at,
    f.last_at,
    f.is_current,
    f.is_cut,
    f.latest_text,
    f.source_ref
from folded as f
left join advertising as a
    on
        f.cluster_name = a.cluster_name
        and f.day_on = a.day_on
        and f.resource_name = a.resource_name
left join telling as t
    on f.cluster_name = t.cluster_name and f.day_on = t.day_on
left join core.pods as p
    on f.cluster_name = p.cluster_name and f.day_on = p.day_on and f.object_uid = p.pod_uid
left join groups as g
    on f.cluster_name = g.cluster_name and f.day_on = g.day_on and f.object_uid = g.pod_group_uid
left join queued as q
    on f.cluster_name = q.cluster_name and f.day_on = q.day_on and f.object_uid = q.workload_uid
left join core.workloads as w
    on
        f.cluster_name = w.cluster_name
        and f.day_on = w.day_on
        and f.object_uid = w.workload_key_uid
