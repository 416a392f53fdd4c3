-- core.events: What components told of an object on a day: how often each kind of text, and the latest.
--
-- A component writes repeats into one event object, whose count runs on over midnight: a row has
-- what its count grew by. Events are not carried: each tells its own first time and count.
with
told as (
    select
        *,
        total_count - greatest(
            before_count,
            coalesce(max(total_count) over earlier, 0)
        ) as day_count,
        starts_with(message_text, '(combined from similar events): ') as is_combined,
        regexp_replace(
            regexp_replace(
                replace(message_text, '(combined from similar events): ', ''),
                '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}',
                '<uid>',
                'g'
            ),
            '[0-9]+',
            '#',
            'g'
        ) as text_pattern_name
    from raw.event_versions
    window earlier as (
        partition by cluster_name, day_on, event_uid
        order by sequence_number
        rows between unbounded preceding and 1 preceding
    )
)

select
    cluster_name,
    day_on,
    object_kind_name,
    object_namespace_name,
    object_name,
    object_uid,
    container_name,
    reason_name,
    type_name,
    component_name,
    text_pattern_name,
    sum(day_count)::bigint as event_count,
    min(first_at) as first_at,
    max(last_at) as last_at,
    bool_or(is_combined) as is_combined,
    arg_max(message_text, sequence_number) as latest_text,
    arg_max(source_ref, sequence_number) as source_ref
from told
where day_count > 0
group by
    cluster_name,
    day_on,
    object_kind_name,
    object_namespace_name,
    object_name,
    object_uid,
    container_name,
    reason_name,
    type_name,
    component_name,
    text_pattern_name
