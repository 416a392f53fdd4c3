-- mart.team_days: What each holder held and what it cost, by day; reserved holders are rows of their own.
select
    h.cluster_name,
    h.day_on,
    h.team_name,
    any_value(t.parent_team_name) as parent_team_name,
    sum(h.gpu_seconds)::decimal(18, 6) as gpu_seconds,
    coalesce(sum(h.gpu_seconds) filter (where h.state_name = 'starting'), 0)::decimal(18, 6)
        as starting_gpu_seconds,
    coalesce(sum(h.gpu_seconds) filter (where h.state_name = 'gang_wait'), 0)::decimal(18, 6)
        as gang_wait_gpu_seconds,
    coalesce(sum(h.gpu_seconds) filter (where h.state_name = 'loading'), 0)::decimal(18, 6)
        as loading_gpu_seconds,
    coalesce(sum(h.gpu_seconds) filter (where h.state_name = 'terminating'), 0)::decimal(18, 6)
        as terminating_gpu_seconds,
    coalesce(sum(h.gpu_seconds) filter (where h.state_name = 'unobserved'), 0)::decimal(18, 6)
        as unobserved_gpu_seconds,
    coalesce(
        sum(h.gpu_seconds) filter (
            where h.state_name in ('starting', 'gang_wait', 'stalled', 'idle', 'terminating')
        ),
        0
    )::decimal(18, 6) as waste_gpu_seconds,
    sum(h.unpriced_gpu_seconds)::decimal(18, 6) as unpriced_gpu_seconds,
    sum(h.hour_cost)::decimal(18, 6) as team_cost,
    -- What has no time costs nothing; what has time and no price costs nobody knows what.
    (case
        when
            not bool_or(
                h.state_name in ('starting', 'gang_wait', 'stalled', 'idle', 'terminating')
            ) then 0
        else
            sum(h.hour_cost) filter (
                where h.state_name in ('starting', 'gang_wait', 'stalled', 'idle', 'terminating')
            )
    end)::decimal(18, 6) as waste_cost,
    (case
        when not bool_or(h.state_name = 'unobserved') then 0
        else sum(h.hour_cost) filter (where h.state_name = 'unobserved')
    end)::decimal(18, 6) as unobserved_cost
from core.gpu_hours as h
left join raw.teams as t
    on h.team_name = t.team_name
group by h.cluster_name, h.day_on, h.team_name
