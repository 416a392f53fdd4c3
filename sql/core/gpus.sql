-- core.gpus: Each GPU or GPU instance that was measured that day, on its node.
--
-- An exporter may name itself instead of its node: then a register that has the UUID tells the node,
-- else the node of the pods that its labels name.
with
named as (
    select
        s.*,
        n.node_uid
    from raw.gpu_series as s
    asof left join (
        select
            cluster_name,
            day_on,
            node_name,
            begin_at,
            max(node_uid) as node_uid
        from core.nodes
        where begin_at < end_at
        group by cluster_name, day_on, node_name, begin_at
    ) as n
        on
            s.cluster_name = n.cluster_name
            and s.day_on = n.day_on
            and s.node_name = n.node_name
            and s.end_at >= n.begin_at
),

registered as (
    select distinct
        cluster_name,
        day_on,
        node_uid,
        d.device_uuid as gpu_uuid
    from (
        select
            cluster_name,
            day_on,
            node_uid,
            unnest(devices) as d
        from raw.node_versions
    ) as u
),

labelled as (
    select
        s.cluster_name,
        s.day_on,
        s.gpu_uuid,
        arg_max(p.node_uid, s.sample_count) as node_uid
    from named as s
    inner join core.pods as p
        on
            s.cluster_name = p.cluster_name
            and s.day_on = p.day_on
            and s.pod_namespace_name = p.namespace_name
            and s.pod_name = p.pod_name
    where s.node_uid is null and p.node_uid is not null
    group by s.cluster_name, s.day_on, s.gpu_uuid
),

placed as (
    select
        s.* exclude (node_uid),
        coalesce(s.node_uid, r.node_uid, l.node_uid, '__unknown__') as node_uid
    from named as s
    left join registered as r
        on s.cluster_name = r.cluster_name and s.day_on = r.day_on and s.gpu_uuid = r.gpu_uuid
    left join labelled as l
        on s.cluster_name = l.cluster_name and s.day_on = l.day_on and s.gpu_uuid = l.gpu_uuid
),

devices as (
    select
        cluster_name,
        day_on,
        node_uid,
        gpu_uuid,
        instance_number,
        arg_max(node_name, end_at) as node_name,
        coalesce(
            arg_max(gpu_model_name, end_at) filter (where gpu_model_name <> '__unknown__'),
            '__unknown__'
        ) as gpu_model_name,
        arg_max(gpu_product_name, end_at) as gpu_product_name,
        arg_max(mig_profile_name, end_at) as mig_profile_name,
        arg_max(gpu_number, end_at) as gpu_number,
        min(begin_at) as first_sampled_at,
        max(end_at) as last_sampled_at,
        -- A gap within a row makes it an outlier, which the median does not hear.
        median(date_diff('millisecond', begin_at, end_at) / 1000.0 / (sample_count - 1))
        filter (where sample_count > 2) as sample_seconds,
        bool_or(list_contains(string_split(metrics_text, ','), 'sm_ratio')) as has_sm,
        bool_or(list_contains(string_split(metrics_text, ','), 'gr_engine_ratio')) as has_gr,
        bool_or(list_contains(string_split(metrics_text, ','), 'utilisation_ratio')) as has_util
    from placed
    group by cluster_name, day_on, node_uid, gpu_uuid, instance_number
),

quiet as (
    select
        cluster_name,
        day_on,
        gpu_uuid,
        instance_number,
        count(*) as sample_count,
        median(power_watts) filter (where memory_used_mib < 200) as bare_watts,
        count(power_watts) filter (where memory_used_mib < 200) as bare_count,
        median(power_watts) filter (where memory_used_mib >= 200) as context_watts,
        count(power_watts) filter (where memory_used_mib >= 200) as context_count
    from (
        select
            cluster_name,
            day_on,
            gpu_uuid,
            instance_number,
            power_watts,
            case
                when
                    coalesce(sm_ratio, gr_engine_ratio, utilisation_ratio) <= 0.01
                    and coalesce(utilisation_ratio, 0) <= 0.01
                    then memory_used_mib
            end as memory_used_mib
        from raw.gpu_samples
    ) as s
    group by cluster_name, day_on, gpu_uuid, instance_number
),

-- Ten readings or more: fewer may be those of a kernel's last moments.
learned as (
    select
        d.*,
        q.sample_count,
        case when q.bare_count >= 10 and d.instance_number = -1 then q.bare_watts end
            as own_bare_watts,
        case when q.context_count >= 10 and d.instance_number = -1 then q.context_watts end
            as own_context_watts
    from devices as d
    left join quiet as q
        on
            d.cluster_name = q.cluster_name
            and d.day_on = q.day_on
            and d.gpu_uuid = q.gpu_uuid
            and d.instance_number = q.instance_number
),

models as (
    select
        cluster_name,
        day_on,
        gpu_model_name,
        median(own_bare_watts) as bare_watts,
        median(own_context_watts) as context_watts
    from learned
    where gpu_model_name <> '__unknown__'
    group by cluster_name, day_on, gpu_model_name
)

select
    l.cluster_name,
    l.day_on,
    l.node_uid,
    l.gpu_uuid,
    l.instance_number,
    l.node_name,
    l.gpu_model_name,
    l.gpu_product_name,
    l.mig_profile_name,
    case
        when l.instance_number < 0 then 1000000
        else coalesce(p.share_micro_gpu, a.share_micro_gpu, 1000000)
    end::bigint as share_micro_gpu,
    l.gpu_number,
    l.first_sampled_at,
    l.last_sampled_at,
    coalesce(l.sample_count, 0)::bigint as sample_count,
    coalesce(
        l.sample_seconds,
        median(l.sample_seconds) over (partition by l.cluster_name, l.day_on, l.node_uid),
        30
    )::double as sample_seconds,
    case
        when l.has_sm then 'sm'
        when l.has_gr then 'gr_engine'
        when l.has_util then 'utilisation'
        else 'none'
    end as activity_source_name,
    coalesce(l.own_bare_watts, m.bare_watts, c.bare_watts)::double as bare_watts,
    coalesce(l.own_context_watts, m.context_watts, c.context_watts)::double as context_watts,
    case
        when l.instance_number >= 0 then 'unknown'
        when l.own_context_watts is not null then 'gpu'
        when m.context_watts is not null then 'model'
        when c.context_watts is not null then 'catalogue'
        else 'unknown'
    end as rest_source_name
from learned as l
-- The rest of a board is not that of one of its instances.
left join models as m
    on
        l.cluster_name = m.cluster_name
        and l.day_on = m.day_on
        and l.gpu_model_name = m.gpu_model_name
        and l.instance_number = -1
left join raw.gpu_models as c
    on l.gpu_model_name = c.gpu_model_name and l.instance_number = -1
left join raw.mig_profiles as p
    on
        l.gpu_model_name = p.gpu_model_name
        and regexp_extract(lower(l.mig_profile_name), '([1-7]c[.])?[0-9]+g[.][0-9]+gb')
        = p.mig_profile_name
-- What the catalogue lacks is known by its compute slices.
left join raw.mig_profiles as a
    on
        a.gpu_model_name = '*'
        and regexp_extract(lower(l.mig_profile_name), '([1-7]c[.])?[0-9]+g[.]') || '*'
        = a.mig_profile_name
