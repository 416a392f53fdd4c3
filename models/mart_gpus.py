"""Marts of allocation against use: ratios, devices by the hour, episodes, findings, health.

Time and money of states are sums of the ledger; what a device did is in core.gpu_states.
"""

from models.core_columns import CLASS, GPU_SECONDS, HOLDER, MODEL, NODE, SPAN, TEAM, WORKLOAD
from models.core_gpus import INSTANCE, MIDNIGHT, UUID
from models.core_uses import USE, money
from models.table import CLUSTER, DAY, Column, Kind, Table
from models.xids import KINDS

CAUSES = (
    "never_worked",
    "waiting_for_peers",
    "waiting_for_input",
    "no_requests",
    "work_ended",
    "interactive",
    "broken",
    "unknown",
)
FINDINGS = (
    "used_without_hold",
    "label_disagrees",
    "over_sized",
    "nvlink_silent",
    "more_gpus_than_installed",
)
NODE_NAME = Column("node_name", Kind.TEXT, "Its name.")


USE_HOURS = Table(
    name="mart.use_hours",
    doc="Allocated against used, by hour, node, GPU model and holder.",
    grain=("cluster_name", "day_on", "hour_at", "node_uid", "gpu_model_name", "team_name"),
    scope="team_name",
    columns=(
        CLUSTER,
        DAY,
        Column("hour_at", Kind.INSTANT, "Begin of the hour."),
        NODE,
        NODE_NAME,
        MODEL,
        HOLDER,
        *USE,
    ),
)

USE_WORKLOADS = Table(
    name="mart.use_workloads",
    doc="Allocated against used, by day and workload.",
    grain=("cluster_name", "day_on", "workload_key_uid", "team_name", "gpu_model_name"),
    scope="team_name",
    columns=(
        CLUSTER,
        DAY,
        WORKLOAD,
        Column("workload_kind_name", Kind.TEXT, "Kind."),
        Column("namespace_name", Kind.TEXT, "Namespace."),
        Column("workload_name", Kind.TEXT, "Name."),
        CLASS,
        TEAM,
        MODEL,
        *(c for c in USE if not c.name.startswith(("installed", "available"))),
    ),
)

DEVICE_HOURS = Table(
    name="mart.device_hours",
    doc="What each GPU or GPU instance did in each hour, and who had it longest.",
    grain=("cluster_name", "day_on", "hour_at", "node_uid", "gpu_uuid", "instance_number"),
    scope="platform",
    columns=(
        CLUSTER,
        DAY,
        Column("hour_at", Kind.INSTANT, "Begin of the hour."),
        NODE,
        NODE_NAME,
        UUID,
        INSTANCE,
        Column("gpu_number", Kind.COUNT, "Index in the node.", nullable=True),
        MODEL,
        Column(
            "team_name",
            Kind.TEXT,
            "Who held it longest in the hour; null: nobody known.",
            nullable=True,
        ),
        Column("workload_name", Kind.TEXT, "What of.", nullable=True),
        Column(
            "known_seconds",
            Kind.COUNT,
            "Seconds of the hour in which it was there.",
            minimum=0,
            maximum=3600,
        ),
        Column(
            "held_seconds",
            Kind.COUNT,
            "Held by a hold that is known to lie on it.",
            minimum=0,
            maximum=3600,
        ),
        Column("active_seconds", Kind.COUNT, "Active.", minimum=0, maximum=3600),
        Column("idle_seconds", Kind.COUNT, "Idle.", minimum=0, maximum=3600),
        Column("stalled_seconds", Kind.COUNT, "Stalled.", minimum=0, maximum=3600),
        Column("unobserved_seconds", Kind.COUNT, "Not measured.", minimum=0, maximum=3600),
        Column("faulty_seconds", Kind.COUNT, "Broken.", minimum=0, maximum=3600),
        Column("sm_ratio", Kind.RATIO, "Mean SM activity; null: no reading.", nullable=True),
        Column("power_watts", Kind.RATIO, "Mean power.", nullable=True),
    ),
)

GPU_EPISODES = Table(
    name="mart.gpu_episodes",
    doc="Idle and stalled GPUs of holds: the day's piece of each episode, with its evidence.",
    grain=("cluster_name", "day_on", "episode_name", "hold_id", "part_number", "begin_at"),
    scope="team_name",
    columns=(
        CLUSTER,
        DAY,
        Column("episode_name", Kind.TEXT, "idle or stalled.", choices=("idle", "stalled")),
        Column("hold_id", Kind.TEXT, "The hold."),
        Column("part_number", Kind.COUNT, "Its part: the device.", minimum=1),
        Column("begin_at", Kind.INSTANT, "Since when, today."),
        Column("end_at", Kind.INSTANT, "Until when, today, or until when it is known."),
        *MIDNIGHT,
        Column("is_open", Kind.FLAG, "It goes on at the end of what is known of the day."),
        TEAM,
        Column("contacts_text", Kind.TEXT, "Whom to write to.", nullable=True),
        Column("user_name", Kind.TEXT, "Who submitted it.", nullable=True),
        WORKLOAD,
        Column("workload_kind_name", Kind.TEXT, "Kind."),
        Column("namespace_name", Kind.TEXT, "Namespace."),
        Column("workload_name", Kind.TEXT, "Name."),
        CLASS,
        Column("pod_uid", Kind.TEXT, "The pod."),
        Column("pod_name", Kind.TEXT, "Its name."),
        Column("pod_gpu_count", Kind.COUNT, "Units of GPU that the pod holds.", minimum=1),
        NODE,
        NODE_NAME,
        UUID,
        INSTANCE,
        MODEL,
        Column("idle_seconds", Kind.COUNT, "Of it in the state.", minimum=0),
        Column("active_seconds", Kind.COUNT, "Of it active: heartbeats.", minimum=0),
        Column("unobserved_seconds", Kind.COUNT, "Of it not measured.", minimum=0),
        Column(
            "last_active_at", Kind.INSTANT, "Last active before it, on that day.", nullable=True
        ),
        Column("is_certain", Kind.FLAG, "Stalled: with PROF evidence; else suspected."),
        Column("utilisation_ratio", Kind.RATIO, "Mean GPU_UTIL.", nullable=True),
        Column(
            "sm_ratio",
            Kind.RATIO,
            "Highest SM activity (else GR engine) while idle.",
            nullable=True,
        ),
        Column("memory_used_mib", Kind.RATIO, "Most memory held.", nullable=True),
        Column("power_watts", Kind.RATIO, "Mean power.", nullable=True),
        Column(
            "rest_watts",
            Kind.RATIO,
            "Rest power with a context; where the GPU was idle and empty all along, without one.",
            nullable=True,
        ),
        Column("likely_cause_name", Kind.TEXT, "Why, most likely.", choices=CAUSES),
        Column("evidence_text", Kind.TEXT, "On which evidence."),
        GPU_SECONDS,
        Column("unpriced_gpu_seconds", Kind.DECIMAL, "Of them without a price.", minimum=0),
        money("episode", "Cost of the GPU-seconds in the state."),
        Column("least_seconds", Kind.COUNT, "Shorter ones are no episode.", minimum=0),
        Column("most_active_ratio", Kind.RATIO, "So much of it may be active.", minimum=0),
    ),
    ranges=SPAN,
)
"""Pieces shorter than an episode stay where they touch an end of the day, or all but a heartbeat
to midnight is quiet: the view joins them."""

GPU_FINDINGS = Table(
    name="mart.gpu_findings",
    doc="What does not fit together between what was held and what was measured.",
    grain=("cluster_name", "day_on", "finding_name", "subject_text", "begin_at"),
    scope="team_name",
    columns=(
        CLUSTER,
        DAY,
        Column("finding_name", Kind.TEXT, "What.", choices=FINDINGS),
        Column("subject_text", Kind.TEXT, "Of what: a pod's uid, a GPU's UUID, or a node's uid."),
        Column("begin_at", Kind.INSTANT, "From."),
        Column("end_at", Kind.INSTANT, "To."),
        HOLDER,
        Column("workload_name", Kind.TEXT, "The workload.", nullable=True),
        Column("pod_name", Kind.TEXT, "The pod.", nullable=True),
        NODE,
        NODE_NAME,
        Column("gpu_uuids_text", Kind.TEXT, "The GPUs, by blank."),
        Column("gpu_count", Kind.COUNT, "How many.", minimum=0),
        Column("of_gpu_count", Kind.COUNT, "Of how many of the pod.", nullable=True, minimum=0),
        GPU_SECONDS,
        Column("unpriced_gpu_seconds", Kind.DECIMAL, "Of them without a price.", minimum=0),
        money("finding", "Cost of these GPU-seconds."),
        Column("evidence_text", Kind.TEXT, "On which evidence."),
    ),
    ranges=SPAN,
)

GPU_EVENTS = Table(
    name="mart.gpu_events",
    doc="Each XID that a GPU was seen to report: a lower bound, for a repeat is not seen.",
    grain=("cluster_name", "day_on", "node_uid", "gpu_uuid", "seen_at", "xid_number"),
    scope="platform",
    columns=(
        CLUSTER,
        DAY,
        NODE,
        NODE_NAME,
        UUID,
        MODEL,
        Column("seen_at", Kind.INSTANT, "First sample with it."),
        Column("xid_number", Kind.COUNT, "The code.", minimum=1),
        Column("kind_name", Kind.TEXT, "Its sort; cleanup is noise.", choices=KINDS),
        Column("meaning_text", Kind.TEXT, "What it means."),
        Column("is_first_sample", Kind.FLAG, "It stood when we first looked: when is not known."),
        Column("team_name", Kind.TEXT, "Who held it.", nullable=True),
        Column("workload_name", Kind.TEXT, "What of.", nullable=True),
        Column("pod_name", Kind.TEXT, "The pod.", nullable=True),
    ),
)

GPU_HEALTH = Table(
    name="mart.gpu_health",
    doc="The health of each physical GPU by day; null: its exporter does not tell.",
    grain=("cluster_name", "day_on", "node_uid", "gpu_uuid"),
    scope="platform",
    columns=(
        CLUSTER,
        DAY,
        NODE,
        NODE_NAME,
        UUID,
        MODEL,
        Column("is_xid_told", Kind.FLAG, "Whether XIDs are told at all; else health is unknown."),
        Column("fatal_count", Kind.COUNT, "Fatal XIDs seen.", nullable=True, minimum=0),
        Column("noise_count", Kind.COUNT, "Clean-up XIDs seen.", nullable=True, minimum=0),
        Column("other_count", Kind.COUNT, "Other XIDs seen.", nullable=True, minimum=0),
        Column("faulty_seconds", Kind.COUNT, "Broken.", minimum=0),
        Column(
            "power_capped_seconds",
            Kind.COUNT,
            "At the power limit (software).",
            nullable=True,
            minimum=0,
        ),
        Column("thermal_seconds", Kind.COUNT, "Slowed by heat.", nullable=True, minimum=0),
        Column(
            "hardware_slowed_seconds",
            Kind.COUNT,
            "Slowed by hardware or power brake.",
            nullable=True,
            minimum=0,
        ),
        Column("told_seconds", Kind.COUNT, "Seconds with throttle reasons told.", minimum=0),
        Column("most_celsius", Kind.RATIO, "Highest temperature.", nullable=True),
        Column("uncorrectable_remapped_row_count", Kind.COUNT, "Highest.", nullable=True),
        Column("correctable_remapped_row_count", Kind.COUNT, "Highest.", nullable=True),
        Column("is_row_remap_failed", Kind.FLAG, "A remap has failed.", nullable=True),
    ),
)

METRIC_SIGHT = Table(
    name="mart.metric_sight",
    doc="What we see and are blind to: each quantity on each node with GPUs, by day.",
    grain=("cluster_name", "day_on", "node_uid", "metric_name"),
    scope="platform",
    columns=(
        CLUSTER,
        DAY,
        NODE,
        NODE_NAME,
        MODEL,
        Column("metric_name", Kind.TEXT, "Column of raw.gpu_samples, or any (the exporter)."),
        Column(
            "expected_seconds", Kind.COUNT, "Device-seconds in which it could be told.", minimum=0
        ),
        Column("told_seconds", Kind.COUNT, "Of them, told.", minimum=0),
        Column("first_told_at", Kind.INSTANT, "First told, on that day.", nullable=True),
        Column("last_told_at", Kind.INSTANT, "Last told, on that day.", nullable=True),
        Column("rejected_count", Kind.COUNT, "Readings refused.", minimum=0),
        Column("reason_text", Kind.TEXT, "Why it is not told.", nullable=True),
    ),
)

_PIECE = {c.name: c for c in GPU_EPISODES.columns}

EPISODES = Table(
    name="episodes",
    doc="Idle and stalled GPUs of holds, each episode whole over the days of a period.",
    grain=("cluster_name", "episode_name", "hold_id", "part_number", "since_at"),
    scope="team_name",
    is_daily=False,
    columns=(
        CLUSTER,
        _PIECE["episode_name"],
        _PIECE["hold_id"],
        _PIECE["part_number"],
        Column("since_at", Kind.INSTANT, "Since when; the period's begin if it began before."),
        Column("until_at", Kind.INSTANT, "Until when, or until when it is known."),
        Column("is_open", Kind.FLAG, "It goes on at the end of what is known."),
        Column("episode_seconds", Kind.COUNT, "From since to until.", minimum=0),
        *(
            c
            for c in GPU_EPISODES.columns
            if c.name
            not in (
                *("cluster_name", "day_on", "episode_name", "hold_id", "part_number"),
                *("begin_at", "end_at", "is_open", "most_active_ratio"),
                *("active_before_seconds", "active_after_seconds"),
            )
        ),
        Column(
            "per_day_cost",
            Kind.DECIMAL,
            "Cost of a day of it, at its mean price; null: unpriced.",
            nullable=True,
            minimum=0,
        ),
    ),
    ranges=(("since_at", "until_at"),),
)
"""Not stored: joined at read time by sql/view/episodes.sql: those of episode_least_seconds or more,
also where they began the day before; gpu_seconds and cost are those within the period."""

TABLES = (
    USE_HOURS,
    USE_WORKLOADS,
    DEVICE_HOURS,
    GPU_EPISODES,
    GPU_FINDINGS,
    GPU_EVENTS,
    GPU_HEALTH,
    METRIC_SIGHT,
)
