-- core.nodes: Each node that existed that day, and the GPUs installed in it.
--
-- Installed is the largest count its uid has reported so far: the kubelet sets capacity to 0 when
-- the device plugin stops, which takes no GPU out of the machine.
with
folded as (
    select
        cluster_name,
        day_on,
        node_uid,
        arg_max(node_name, sequence_number) as node_name,
        arg_max(gpu_model_name, sequence_number)
        filter (where gpu_model_name <> '__unknown__') as gpu_model_name,
        date_trunc('second', min(created_at)) as created_at,
        date_trunc('second', min(observed_at) filter (where change_name = 'DELETED')) as deleted_at,
        max(greatest(gpu_count, largest_gpu_count)) as installed_count,
        arg_max(count_source_name, (greatest(gpu_count, largest_gpu_count), sequence_number))
            as count_source_name,
        arg_max(capacity_type_name, sequence_number) as capacity_type_name,
        arg_max(share_scale_ratio, sequence_number) as share_scale_ratio,
        arg_max(cpu_milli_count, sequence_number) as cpu_milli_count,
        arg_max(memory_mib, sequence_number) as memory_mib,
        arg_max(labels_json, sequence_number) as labels_json,
        arg_max(source_ref, sequence_number) as source_ref
    from raw.node_versions
    group by cluster_name, day_on, node_uid
),

sliced as (
    select
        cluster_name,
        day_on,
        node_uid,
        max(gpu_count) as gpu_count,
        arg_max(gpu_model_name, begin_at) as gpu_model_name
    from core.slice_spells
    group by cluster_name, day_on, node_uid
)

select
    f.cluster_name,
    f.day_on,
    f.node_uid,
    f.node_name,
    coalesce(f.gpu_model_name, s.gpu_model_name, '__unknown__') as gpu_model_name,
    f.created_at,
    least(
        greatest(w.begin_at, coalesce(f.created_at, w.begin_at)),
        coalesce(f.deleted_at, w.end_at),
        w.end_at
    ) as begin_at,
    least(greatest(coalesce(f.deleted_at, w.end_at), w.begin_at), w.end_at) as end_at,
    greatest(f.installed_count, s.gpu_count) as installed_count,
    case
        when s.gpu_count > f.installed_count then 'resource_slices' else f.count_source_name
    end as count_source_name,
    f.capacity_type_name,
    f.share_scale_ratio,
    f.cpu_milli_count,
    f.memory_mib,
    f.labels_json,
    f.source_ref
from folded as f
inner join core.windows as w
    on f.cluster_name = w.cluster_name and f.day_on = w.day_on
left join sliced as s
    on f.cluster_name = s.cluster_name and f.day_on = s.day_on and f.node_uid = s.node_uid
