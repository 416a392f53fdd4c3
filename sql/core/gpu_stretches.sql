-- core.gpu_stretches: What the samples of each device say, in stretches of one kind, hour and hold: the known window, tiled.
--
-- A sample speaks for the time since the one before it; after a silence of more than twice the usual
-- time, for that usual time only, and what is before it is unobserved. Samples are many, so they are
-- kept narrow here: seconds since 1970, floats, and numbers for words.
with
devices as (
    select
        g.*,
        row_number() over (
            order by g.cluster_name, g.day_on, g.node_uid, g.gpu_uuid, g.instance_number
        )::integer as device_number,
        dense_rank() over (order by g.cluster_name, g.day_on, g.node_uid)::integer as node_number,
        ceil(g.sample_seconds)::integer as usual_seconds,
        (2 * greatest(g.sample_seconds, 30))::integer as most_seconds,
        epoch(w.begin_at)::integer as window_begin,
        epoch(w.end_at)::integer as window_end,
        m.limit_watts
    from core.gpus as g
    inner join core.windows as w
        on g.cluster_name = w.cluster_name and g.day_on = w.day_on
    left join raw.gpu_models as m
        on g.gpu_model_name = m.gpu_model_name
),

owners as (
    select
        row_number() over (order by d.device_number, o.begin_at)::integer as owner_number,
        d.device_number,
        epoch(o.begin_at)::integer as begin_second,
        epoch(o.end_at)::integer as end_second,
        o.hold_id,
        coalesce(o.workload_class, '*') as workload_class,
        o.is_broken
    from core.gpu_owners as o
    inner join devices as d
        on
            o.cluster_name = d.cluster_name
            and o.day_on = d.day_on
            and o.node_uid = d.node_uid
            and o.gpu_uuid = d.gpu_uuid
            and o.instance_number = d.instance_number
),

limits as (
    select
        o.owner_number,
        o.device_number,
        o.begin_second,
        o.is_broken,
        r.idle_least_seconds,
        r.stalled_least_seconds,
        r.idle_most_sm_ratio::float as idle_most_sm,
        r.idle_most_utilisation_ratio::float as idle_most_utilisation,
        r.stalled_least_utilisation_ratio::float as stalled_least_utilisation,
        r.stalled_most_tensor_ratio::float as stalled_most_tensor,
        r.stalled_most_dram_ratio::float as stalled_most_dram,
        (1.5 * d.context_watts)::float as working_watts,
        (d.context_watts + coalesce(
            r.stalled_most_power_ratio * greatest(d.limit_watts - d.context_watts, 0),
            0.25 * d.context_watts
        ))::float as stalled_most_watts,
        ((d.bare_watts + d.context_watts) / 2)::float as context_least_watts
    from owners as o
    inner join devices as d
        on o.device_number = d.device_number
    inner join core.gpu_rules as r
        on
            d.cluster_name = r.cluster_name
            and d.day_on = r.day_on
            and d.gpu_model_name = r.gpu_model_name
            and o.workload_class = r.workload_class
),

samples as (
    select
        d.device_number,
        (epoch_us(s.sampled_at) // 1000000)::integer as second_number,
        s.sm_ratio::float as sm,
        coalesce(s.sm_ratio, s.gr_engine_ratio)::float as work,
        s.utilisation_ratio::float as utilisation,
        s.tensor_ratio::float as tensor,
        s.dram_ratio::float as dram,
        s.memory_used_mib::float as memory,
        -- What the board draws is not one instance's.
        case when s.instance_number = -1 then s.power_watts end::float as watts,
        s.nvlink_bytes_per_second::float as nvlink,
        (s.pcie_received_bytes_per_second + s.pcie_sent_bytes_per_second)::float as pcie,
        s.rejected_count > 0 as has_rejected
    from raw.gpu_samples as s
    inner join devices as d
        on
            s.cluster_name = d.cluster_name
            and s.day_on = d.day_on
            and s.node_name = d.node_name
            and s.gpu_uuid = d.gpu_uuid
            and s.instance_number = d.instance_number
),

-- Kinds: 1 active, 2 idle, 3 stalled, 4 stalled without PROF, 5 broken, 6 rejected, 7 no reading.
judged as (
    select
        s.device_number,
        s.second_number,
        l.owner_number,
        (case
            when l.is_broken then 5
            when
                s.utilisation >= l.stalled_least_utilisation
                and coalesce(s.tensor, 0) <= l.stalled_most_tensor
                and coalesce(s.dram, 0) <= l.stalled_most_dram
                and s.watts <= l.stalled_most_watts
                then case when s.tensor is null or s.dram is null then 4 else 3 end
            -- PROF that reads 0 while kernels run and power is drawn has stopped counting.
            when s.work = 0 and s.utilisation > 0.05 and s.watts > l.working_watts then 1
            when s.work is not null then case when s.work > l.idle_most_sm then 1 else 2 end
            when s.utilisation is not null
                then case when s.utilisation > l.idle_most_utilisation then 1 else 2 end
            when s.has_rejected then 6
            else 7
        end)::tinyint as kind_number,
        -- Memory: 0 empty, 1 held, 2 not known.
        (case
            when s.memory is not null then (s.memory >= 200)::integer
            when s.watts is null or l.context_least_watts is null then 2
            else (s.watts > l.context_least_watts)::integer
        end)::tinyint as memory_number,
        s.sm,
        s.work,
        s.utilisation,
        s.tensor,
        s.dram,
        s.memory,
        s.watts,
        s.nvlink,
        s.pcie
    from samples as s
    asof inner join limits as l
        on s.device_number = l.device_number and s.second_number > l.begin_second
),

-- Of several samples in one second the first one counts.
timed as (
    select
        *,
        lag(second_number) over device_time as before_second,
        lead(second_number) over device_time as after_second,
        coalesce(
            kind_number <> lag(kind_number) over device_time
            or owner_number <> lag(owner_number) over device_time
            or (kind_number = 2 and memory_number <> lag(memory_number) over device_time)
            or (second_number - 1) // 3600 <> (lag(second_number) over device_time - 1) // 3600,
            true
        ) as is_change
    from judged
    window device_time as (partition by device_number order by second_number)
),

pieces as (
    select
        t.* exclude (before_second, after_second, is_change),
        case
            when t.second_number - coalesce(t.before_second, d.window_begin) <= d.most_seconds
                then coalesce(t.before_second, d.window_begin)
            else t.second_number - d.usual_seconds
        end as begin_second,
        -- What is left of the day is spoken for by a sample of the next one.
        case
            when t.after_second is null and d.window_end - t.second_number <= d.most_seconds
                then d.window_end
            else least(t.second_number, d.window_end)
        end as end_second,
        coalesce(t.before_second, d.window_begin) as before_second,
        t.after_second is null as is_last,
        sum((
            t.is_change or t.second_number - t.before_second > d.most_seconds
        )::integer) over (
            partition by t.device_number order by t.second_number
        )::integer as piece_number
    from timed as t
    inner join devices as d
        on t.device_number = d.device_number
    where t.second_number > coalesce(t.before_second, d.window_begin - 1)
),

stretches as (
    select
        device_number,
        any_value(owner_number) as owner_number,
        any_value(kind_number) as kind_number,
        -- It is the same all through an idle stretch; else what was most counts, in whatever order.
        max(memory_number) as memory_number,
        min(begin_second) as begin_second,
        max(end_second) as end_second,
        count(*) as sample_count,
        coalesce(sum(end_second - begin_second) filter (where sm is not null), 0) as sm_seconds,
        coalesce(sum(sm * (end_second - begin_second)), 0)::double as sm_active_seconds,
        max(work) as work,
        avg(utilisation) as utilisation,
        max(tensor) as tensor,
        max(dram) as dram,
        max(memory) as memory,
        avg(watts) as watts,
        avg(nvlink) as nvlink,
        avg(pcie) as pcie
    from pieces
    where begin_second < end_second
    group by device_number, piece_number
),

gaps as (
    select
        device_number,
        before_second as begin_second,
        begin_second as end_second
    from pieces
    where before_second < begin_second
    union all by name
    select
        p.device_number,
        p.end_second as begin_second,
        d.window_end as end_second
    from pieces as p
    inner join devices as d
        on p.device_number = d.device_number
    where p.is_last and p.end_second < d.window_end
),

node_seconds as (
    select distinct
        d.node_number,
        p.second_number
    from judged as p
    inner join devices as d
        on p.device_number = d.device_number
),

-- 8: nothing of the node was read; 9: another device of it was.
silences as (
    select
        g.device_number,
        o.owner_number,
        (case
            when o.is_broken then 5
            when n.second_number > g.begin_second + d.usual_seconds then 9
            else 8
        end)::tinyint as kind_number,
        greatest(g.begin_second, o.begin_second) as begin_second,
        least(g.end_second, o.end_second) as end_second
    from gaps as g
    inner join devices as d
        on g.device_number = d.device_number
    inner join owners as o
        on
            g.device_number = o.device_number
            and g.begin_second < o.end_second
            and g.end_second > o.begin_second
    asof left join node_seconds as n
        on d.node_number = n.node_number and g.end_second > n.second_number
)

select
    d.cluster_name,
    d.day_on,
    d.node_uid,
    d.gpu_uuid,
    d.instance_number,
    to_timestamp(s.begin_second) as begin_at,
    to_timestamp(s.end_second) as end_at,
    case s.kind_number
        when 1 then 'active'
        when 2 then 'idle'
        when 3 then 'stalled'
        when 4 then 'suspected'
        when 5 then 'broken'
        when 6 then 'rejected'
        when 7 then 'no_series'
        when 8 then 'exporter_down'
        else 'stale'
    end as kind_name,
    case s.memory_number when 0 then 'empty' when 1 then 'memory_held' else 'undetermined' end
        as memory_name,
    o.hold_id,
    l.idle_least_seconds,
    l.stalled_least_seconds,
    coalesce(s.sample_count, 0) as sample_count,
    coalesce(s.sm_seconds, 0)::bigint as sm_seconds,
    coalesce(s.sm_active_seconds, 0)::double as sm_active_seconds,
    s.work::double as sm_ratio,
    s.utilisation::double as utilisation_ratio,
    s.tensor::double as tensor_ratio,
    s.dram::double as dram_ratio,
    s.memory::double as memory_used_mib,
    s.watts::double as power_watts,
    s.nvlink::double as nvlink_bytes_per_second,
    s.pcie::double as pcie_bytes_per_second
from (
    select *
    from stretches
    union all by name
    select *
    from silences
) as s
inner join devices as d
    on s.device_number = d.device_number
inner join owners as o
    on s.owner_number = o.owner_number
inner join limits as l
    on s.owner_number = l.owner_number
