"""Broken and slowed GPUs: what the page of health reads.

Which XID is what is said in models/xids.csv; when a GPU counts as broken, in
sql/core/gpu_faults.sql.
"""

from dashboards.conditions import HERE, TEAMS
from models.mart_gpus import GPU_EVENTS, GPU_HEALTH
from models.mart_sight import GPU_FAULTS
from models.table import Column, Kind

BROKEN = f"""
with
marked as (
    select
        *,
        coalesce(lag(end_at) over (
            partition by cluster_name, node_uid, gpu_uuid order by begin_at
        ) = begin_at, false) as is_continued
    from mart.gpu_faults
    where {HERE}
),

numbered as (
    select
        *,
        count(*) filter (where not is_continued) over (
            partition by cluster_name, node_uid, gpu_uuid order by begin_at
        ) as fault_number
    from marked
)

select
    cluster_name,
    node_name,
    gpu_uuid,
    max(gpu_model_name) as gpu_model_name,
    min(begin_at) as begin_at,
    max(end_at) as end_at,
    arg_max(is_ended, begin_at) as is_ended,
    max(xid_number) as xid_number,
    arg_min(basis_name, begin_at) as basis_name,
    sum(date_diff('second', begin_at, end_at))::double as broken_gpu_seconds
from numbered
group by cluster_name, node_uid, node_name, gpu_uuid, fault_number
order by is_ended, begin_at, gpu_uuid
"""
"""Each fault whole; a piece that begins where the one before ends goes on from it."""

EVENTS = f"""
select *
from mart.gpu_events
where {HERE} and {TEAMS}
order by seen_at desc, gpu_uuid, xid_number
"""
GPUS = f"""
select
    cluster_name,
    node_uid,
    gpu_uuid,
    arg_max(node_name, day_on) as node_name,
    any_value(gpu_model_name) as gpu_model_name,
    bool_or(is_xid_told) as is_xid_told,
    arg_max(is_xid_told, day_on) as is_told_last,
    sum(fatal_count)::bigint as fatal_count,
    sum(other_count)::bigint as other_count,
    sum(noise_count)::bigint as noise_count,
    sum(faulty_seconds)::double as broken_gpu_seconds,
    sum(power_capped_seconds)::double as power_capped_gpu_seconds,
    sum(thermal_seconds)::double as thermal_gpu_seconds,
    sum(hardware_slowed_seconds)::double as hardware_slowed_gpu_seconds,
    sum(told_seconds)::double as told_gpu_seconds,
    max(most_celsius) as most_celsius,
    max(uncorrectable_remapped_row_count) as uncorrectable_remapped_row_count,
    max(correctable_remapped_row_count) as correctable_remapped_row_count,
    bool_or(is_row_remap_failed) as is_row_remap_failed
from mart.gpu_health
where {HERE}
group by cluster_name, node_uid, gpu_uuid
order by node_name, gpu_uuid
"""

HEALTH = Column(
    "health_name",
    Kind.TEXT,
    "broken; look at it (a remap failed, or an XID that says so); no fault told; unknown: its "
    "exporter tells no XIDs.",
)
STATE = Column("state_name", Kind.TEXT, "Whether it goes on at the end of what is known.")
BROKEN_FOR = Column("broken_gpu_seconds", Kind.DECIMAL, "GPU-time in which it was of no use.")
BROKEN_COLUMNS = (
    *(GPU_FAULTS.column(n) for n in ("node_name", "gpu_uuid", "gpu_model_name")),
    STATE,
    *(GPU_FAULTS.column(n) for n in ("begin_at", "end_at")),
    BROKEN_FOR,
    *(GPU_FAULTS.column(n) for n in ("xid_number", "basis_name")),
)
EVENT_COLUMNS = tuple(
    GPU_EVENTS.column(n)
    for n in ("seen_at", "xid_number", "kind_name", "meaning_text", "node_name", "gpu_uuid",
              "team_name", "workload_name", "pod_name", "is_first_sample")
)  # fmt: skip
SLOWED = (
    Column("thermal_gpu_seconds", Kind.DECIMAL, "GPU-time slowed by heat."),
    Column("hardware_slowed_gpu_seconds", Kind.DECIMAL, "Slowed by hardware or power brake."),
    Column("power_capped_gpu_seconds", Kind.DECIMAL, "At the power limit (software): usual."),
    Column("slowed_told_ratio", Kind.RATIO, "Of the node's GPU-time: its reasons were told."),
)
GPU_COLUMNS = (
    HEALTH,
    *(GPU_HEALTH.column(n) for n in ("node_name", "gpu_uuid", "gpu_model_name")),
    *(GPU_HEALTH.column(n) for n in ("fatal_count", "other_count", "noise_count")),
    BROKEN_FOR,
    *SLOWED[:3],
    *(
        GPU_HEALTH.column(n)
        for n in ("most_celsius", "uncorrectable_remapped_row_count",
                  "correctable_remapped_row_count", "is_row_remap_failed")
    ),
)  # fmt: skip
