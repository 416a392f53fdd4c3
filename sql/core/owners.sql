-- core.owners: Each object that owns pods, and the top-level object above it, as known that day.
--
-- The chain is walked by uid through what was recorded, objects that are already deleted included.
-- Where it breaks off, the last object recorded still names its owner.
with recursive
folded as (
    select
        cluster_name,
        day_on,
        object_uid,
        max(sequence_number) as last_sequence_number,
        bool_or(is_creation_seen) as is_creation_seen,
        min(submitted_at) as submitted_at,
        coalesce(
            min(deleted_at), min(observed_at) filter (where change_name = 'DELETED')
        ) as deleted_at,
        max(creator_name) as creator_name,
        min(first_queued_at) as first_queued_at
    from raw.owner_versions
    group by cluster_name, day_on, object_uid
),

-- A creation is this object's by its uid, else by its name and by when it was asked and answered.
creators as (
    select
        f.cluster_name,
        f.day_on,
        f.object_uid,
        arg_max(c.user_name, c.created_at) as creator_name
    from folded as f
    inner join raw.owner_versions as v
        on
            f.cluster_name = v.cluster_name
            and f.day_on = v.day_on
            and f.object_uid = v.object_uid
            and f.last_sequence_number = v.sequence_number
    inner join raw.object_creations as c
        on
            v.cluster_name = c.cluster_name
            and v.day_on = c.day_on
            and v.kind_name = c.kind_name
            and v.namespace_name = c.namespace_name
            and v.object_name = c.object_name
            and coalesce(
                v.object_uid = c.object_uid,
                date_trunc('second', v.created_at) >= date_trunc('second', c.created_at)
                and date_trunc('second', v.created_at) <= c.answered_at
            )
    group by f.cluster_name, f.day_on, f.object_uid
),

facts as (
    select
        f.cluster_name,
        f.day_on,
        f.object_uid,
        f.is_creation_seen,
        f.first_queued_at,
        v.kind_name,
        v.namespace_name,
        v.object_name,
        v.owner_kind_name,
        v.owner_name,
        v.owner_uid,
        v.workload_kind_name,
        v.workload_name,
        v.workload_key_uid,
        v.workload_class,
        v.is_service,
        v.queue_name,
        v.user_name,
        v.account_name,
        v.gang_size_count,
        v.gang_source_name,
        date_trunc('second', v.created_at) as created_at,
        date_trunc('second', f.submitted_at) as submitted_at,
        date_trunc('second', f.deleted_at) as deleted_at,
        coalesce(f.creator_name, c.creator_name) as creator_name
    from folded as f
    inner join raw.owner_versions as v
        on
            f.cluster_name = v.cluster_name
            and f.day_on = v.day_on
            and f.object_uid = v.object_uid
            and f.last_sequence_number = v.sequence_number
    left join creators as c
        on
            f.cluster_name = c.cluster_name
            and f.day_on = c.day_on
            and f.object_uid = c.object_uid
),

climb as (
    select
        cluster_name,
        day_on,
        object_uid,
        object_uid as above_uid,
        owner_uid as next_uid,
        0 as depth_count,
        [{
            'kind_name': kind_name, 'object_name': object_name, 'object_uid': object_uid
        }] as owners
    from facts
    union all
    select
        c.cluster_name,
        c.day_on,
        c.object_uid,
        f.object_uid as above_uid,
        f.owner_uid as next_uid,
        c.depth_count + 1 as depth_count,
        list_append(
            c.owners,
            {
                'kind_name': f.kind_name,
                'object_name': f.object_name,
                'object_uid': f.object_uid
            }
        ) as owners
    from climb as c
    inner join facts as f
        on c.cluster_name = f.cluster_name and c.day_on = f.day_on and c.next_uid = f.object_uid
    where c.depth_count < 8  -- owners that own each other end here
),

-- The nearest queue; of all else, what the highest object says.
told as (
    select
        c.cluster_name,
        c.day_on,
        c.object_uid,
        max(c.depth_count) as depth_count,
        arg_max(c.above_uid, c.depth_count) as above_uid,
        arg_max(c.owners, c.depth_count) as owners,
        arg_min(f.queue_name, c.depth_count) as queue_name,
        arg_max(f.user_name, c.depth_count) as user_name,
        arg_max(f.account_name, c.depth_count) as account_name,
        arg_max(f.submitted_at, c.depth_count) as submitted_at,
        arg_max(f.gang_size_count, c.depth_count) as gang_size_count,
        arg_max(f.gang_source_name, c.depth_count) as gang_source_name
    from climb as c
    inner join facts as f
        on c.cluster_name = f.cluster_name and c.day_on = f.day_on and c.above_uid = f.object_uid
    group by c.cluster_name, c.day_on, c.object_uid
)

select
    t.cluster_name,
    t.day_on,
    t.object_uid,
    f.kind_name,
    f.namespace_name,
    f.object_name,
    f.created_at,
    f.deleted_at,
    f.first_queued_at,
    f.creator_name,
    case
        when a.owner_uid is null then t.owners
        else
            list_append(
                t.owners,
                {
                    'kind_name': a.owner_kind_name,
                    'object_name': a.owner_name,
                    'object_uid': a.owner_uid
                }
            )
    end as owners,
    t.depth_count::bigint as depth_count,
    -- What makes workloads again and again stands above the top without being it.
    a.workload_name = a.object_name and a.workload_kind_name = a.kind_name as is_top_recorded,
    a.workload_kind_name,
    a.workload_name,
    a.workload_key_uid,
    a.workload_class,
    a.is_service,
    case when a.is_creation_seen then a.created_at end as top_created_at,
    a.first_queued_at as top_first_queued_at,
    t.submitted_at,
    t.queue_name,
    coalesce(t.user_name, a.creator_name) as user_name,
    t.account_name,
    t.gang_size_count,
    t.gang_source_name
from told as t
inner join facts as f
    on t.cluster_name = f.cluster_name and t.day_on = f.day_on and t.object_uid = f.object_uid
inner join facts as a
    on t.cluster_name = a.cluster_name and t.day_on = a.day_on and t.above_uid = a.object_uid
