"""Core tables of GPUs by their UUID: which there are, whose, what each did, when it was broken.

A device is a physical GPU, or one GPU instance (MIG) of it. Holds and the ledger are in core_time.
"""

from models.activity import ACTIVITIES, ACTIVITY_RULES
from models.core_columns import ATTEMPT, BEGIN, CAUSE, END, HOLD, MODEL, NODE, SPAN
from models.states import CLASSES, STATES
from models.table import CLUSTER, DAY, Column, Kind, Table
from models.xids import KINDS

UUID = Column("gpu_uuid", Kind.TEXT, "The physical GPU; of an instance, the GPU it is part of.")
INSTANCE = Column("instance_number", Kind.COUNT, "GPU instance (MIG); -1: the whole GPU.")
REST_SOURCES = ("gpu", "model", "catalogue", "unknown")
STRETCHES = (
    *("active", "idle", "stalled", "suspected", "broken"),
    *("rejected", "no_series", "exporter_down", "stale"),
)

GPUS = Table(
    name="core.gpus",
    doc="Each GPU or GPU instance that was measured that day, on its node.",
    grain=("cluster_name", "day_on", "node_uid", "gpu_uuid", "instance_number"),
    columns=(
        CLUSTER,
        DAY,
        NODE,
        UUID,
        INSTANCE,
        Column("node_name", Kind.TEXT, "The node as the exporter spells it."),
        MODEL,
        Column("gpu_product_name", Kind.TEXT, "The model as the exporter spells it."),
        Column("mig_profile_name", Kind.TEXT, "Profile of an instance.", nullable=True),
        Column(
            "share_micro_gpu",
            Kind.COUNT,
            "Its part of the GPU, as its profile says; 1,000,000 where none is told.",
            minimum=1,
            maximum=1_000_000,
        ),
        Column("gpu_number", Kind.COUNT, "Index in the node.", nullable=True),
        Column("first_sampled_at", Kind.INSTANT, "First sample of the day."),
        Column("last_sampled_at", Kind.INSTANT, "Last sample of the day."),
        Column("sample_count", Kind.COUNT, "Sample times.", minimum=0),
        Column("sample_seconds", Kind.RATIO, "Usual time from one sample to the next.", minimum=0),
        Column(
            "activity_source_name",
            Kind.TEXT,
            "What decides activity on it: sm, gr_engine, utilisation, none.",
            choices=("sm", "gr_engine", "utilisation", "none"),
        ),
        Column("bare_watts", Kind.RATIO, "Rest power without a context.", nullable=True, minimum=0),
        Column("context_watts", Kind.RATIO, "Rest power with one.", nullable=True, minimum=0),
        Column(
            "rest_source_name",
            Kind.TEXT,
            "Where context_watts comes from: learned on the GPU, on its model, the catalogue.",
            choices=REST_SOURCES,
        ),
    ),
    ranges=(("first_sampled_at", "last_sampled_at"),),
)

GPU_RULES = Table(
    name="core.gpu_rules",
    doc="The thresholds that hold for each GPU model and class of work: of several rules the best "
    "fitting.",
    grain=("cluster_name", "day_on", "gpu_model_name", "workload_class"),
    columns=(CLUSTER, DAY, *ACTIVITY_RULES.columns),
)

HOLD_PARTS = Table(
    name="core.hold_parts",
    doc="Each hold cut into its devices: which part of its share lies on which device.",
    grain=("cluster_name", "day_on", "hold_id", "part_number"),
    columns=(
        CLUSTER,
        DAY,
        HOLD,
        Column("part_number", Kind.COUNT, "Its place, from 1.", minimum=1),
        Column("gpu_uuid", Kind.TEXT, "The device; null: not known which.", nullable=True),
        Column("instance_number", Kind.COUNT, "GPU instance; -1: the whole GPU.", nullable=True),
        Column("first_unit_count", Kind.COUNT, "Units of the hold before this part.", minimum=0),
        Column("last_unit_count", Kind.COUNT, "Units up to and with this part.", minimum=1),
        Column("hold_unit_count", Kind.COUNT, "Units of the hold.", minimum=1),
        Column("is_shared", Kind.FLAG, "Other holds may use the same device."),
        Column(
            "basis_name",
            Kind.TEXT,
            "How the device is known: scheduler (it names it), label (the exporter names the pod), "
            "whole_node (nobody else holds any of the node), remaining (others hold all others), "
            "none.",
            choices=("scheduler", "label", "whole_node", "remaining", "none"),
        ),
        Column("label_sample_count", Kind.COUNT, "Samples whose labels say so.", minimum=0),
    ),
    ranges=(("first_unit_count", "last_unit_count"), ("last_unit_count", "hold_unit_count")),
)

GPU_FAULTS = Table(
    name="core.gpu_faults",
    doc="When a GPU was of no use to anyone, and what says so.",
    grain=("cluster_name", "day_on", "node_uid", "gpu_uuid", "begin_at"),
    columns=(
        CLUSTER,
        DAY,
        NODE,
        UUID,
        BEGIN,
        END,
        Column("is_ended", Kind.FLAG, "It was mended; else it goes on at the window's end."),
        Column("xid_number", Kind.COUNT, "The fatal XID; null: none told.", nullable=True),
        Column(
            "basis_name",
            Kind.TEXT,
            "xid (a fatal one was told), off_the_bus (its series ended while others of the node "
            "went on, and the device plugin reports fewer).",
            choices=("xid", "off_the_bus"),
        ),
    ),
    ranges=SPAN,
)

GPU_OWNERS = Table(
    name="core.gpu_owners",
    doc="Who had each device, from when to when, and when it was broken: the known window, tiled.",
    grain=("cluster_name", "day_on", "node_uid", "gpu_uuid", "instance_number", "begin_at"),
    columns=(
        CLUSTER,
        DAY,
        NODE,
        UUID,
        INSTANCE,
        BEGIN,
        END,
        Column("hold_id", Kind.TEXT, "The one hold; null: none, or several.", nullable=True),
        Column(
            "workload_class",
            Kind.TEXT,
            "Class of the one bound last.",
            nullable=True,
            choices=CLASSES,
        ),
        Column("hold_count", Kind.COUNT, "Holds that are known to have it.", minimum=0),
        Column("is_broken", Kind.FLAG, "See gpu_faults."),
    ),
    ranges=SPAN,
)

EVIDENCE = (
    Column("sample_count", Kind.COUNT, "Samples that it rests on.", minimum=0),
    Column("sm_seconds", Kind.COUNT, "Of it with an SM reading.", minimum=0),
    Column("sm_active_seconds", Kind.RATIO, "Sum of SM activity x seconds.", minimum=0),
    Column("sm_ratio", Kind.RATIO, "Highest SM activity (else GR engine).", nullable=True),
    Column("utilisation_ratio", Kind.RATIO, "Mean GPU_UTIL.", nullable=True),
    Column("tensor_ratio", Kind.RATIO, "Highest tensor activity.", nullable=True),
    Column("dram_ratio", Kind.RATIO, "Highest DRAM activity.", nullable=True),
    Column("memory_used_mib", Kind.RATIO, "Most memory in use.", nullable=True),
    Column("power_watts", Kind.RATIO, "Mean power.", nullable=True),
    Column("nvlink_bytes_per_second", Kind.RATIO, "Mean NVLink rate.", nullable=True),
    Column("pcie_bytes_per_second", Kind.RATIO, "Mean PCIe rate, both ways.", nullable=True),
)

GPU_STRETCHES = Table(
    name="core.gpu_stretches",
    doc="What the samples of each device say, in stretches of one kind, hour and hold: the known "
    "window, tiled.",
    grain=("cluster_name", "day_on", "node_uid", "gpu_uuid", "instance_number", "begin_at"),
    columns=(
        CLUSTER,
        DAY,
        NODE,
        UUID,
        INSTANCE,
        BEGIN,
        END,
        Column("kind_name", Kind.TEXT, "What they say, one by one.", choices=STRETCHES),
        Column(
            "memory_name",
            Kind.TEXT,
            "Whether memory is in use; where it is not told, as power says.",
            choices=STATES["idle"],
        ),
        Column("hold_id", Kind.TEXT, "The one hold that lies on it.", nullable=True),
        Column("idle_least_seconds", Kind.COUNT, "The rule's, for its holder.", minimum=0),
        Column("stalled_least_seconds", Kind.COUNT, "The rule's, for its holder.", minimum=0),
        *EVIDENCE,
    ),
    ranges=SPAN,
)

GPU_STATES = Table(
    name="core.gpu_states",
    doc="What each GPU or GPU instance did: the day's known window, tiled, cut by hour and hold.",
    grain=("cluster_name", "day_on", "node_uid", "gpu_uuid", "instance_number", "begin_at"),
    columns=(
        CLUSTER,
        DAY,
        NODE,
        UUID,
        INSTANCE,
        BEGIN,
        END,
        Column(
            "activity_name",
            Kind.TEXT,
            "active, idle, stalled, broken (see gpu_faults), or unobserved.",
            choices=ACTIVITIES,
        ),
        CAUSE,
        Column("hold_id", Kind.TEXT, "The one hold that lies on it.", nullable=True),
        Column("quiet_since_at", Kind.INSTANT, "Idle: since when, today.", nullable=True),
        *EVIDENCE,
        Column("is_certain", Kind.FLAG, "Stalled: with PROF evidence; else suspected."),
    ),
    ranges=SPAN,
)

MIDNIGHT = (
    Column(
        "active_before_seconds",
        Kind.COUNT,
        "Of the day before it active; null: nothing of the day before can go on in it.",
        nullable=True,
        minimum=0,
    ),
    Column(
        "active_after_seconds",
        Kind.COUNT,
        "Of the day after it active; null: it cannot go on in the next day.",
        nullable=True,
        minimum=0,
    ),
)

GPU_EPISODES = Table(
    name="core.gpu_episodes",
    doc="The day's piece of each episode in which a held device was idle, or stalled.",
    grain=("cluster_name", "day_on", "episode_name", "hold_id", "part_number", "begin_at"),
    columns=(
        CLUSTER,
        DAY,
        Column("episode_name", Kind.TEXT, "idle or stalled.", choices=("idle", "stalled")),
        HOLD,
        Column("part_number", Kind.COUNT, "Its part: the device.", minimum=1),
        BEGIN,
        END,
        *MIDNIGHT,
        Column("is_open", Kind.FLAG, "It goes on at the end of what is known of the day."),
        Column("active_seconds", Kind.COUNT, "Of it active: heartbeats.", minimum=0),
        Column("is_certain", Kind.FLAG, "Stalled: with PROF evidence; else suspected."),
    ),
    ranges=SPAN,
)

GPU_ERRORS = Table(
    name="core.gpu_errors",
    doc="Each XID that a GPU was seen to report: a lower bound, for a repeat is not seen.",
    grain=("cluster_name", "day_on", "node_uid", "gpu_uuid", "seen_at"),
    columns=(
        CLUSTER,
        DAY,
        NODE,
        UUID,
        MODEL,
        Column("seen_at", Kind.INSTANT, "First sample with it."),
        Column("xid_number", Kind.COUNT, "The code.", minimum=1),
        Column("kind_name", Kind.TEXT, "Its sort; cleanup is noise.", choices=KINDS),
        Column("meaning_text", Kind.TEXT, "What it means."),
        Column(
            "is_first_sample", Kind.FLAG, "It stood when we first looked: since when is not known."
        ),
    ),
)

EPISODE_EVIDENCE = Table(
    name="core.episode_evidence",
    doc="What is known beside an episode's own readings: its pod's CPU, files, network, faults, "
    "peers.",
    grain=("cluster_name", "day_on", "episode_name", "hold_id", "part_number", "begin_at"),
    columns=(
        CLUSTER,
        DAY,
        *(GPU_EPISODES.column(n) for n in ("episode_name", "hold_id", "part_number", "begin_at")),
        ATTEMPT,
        Column("cpu_count", Kind.RATIO, "CPU cores used, mean.", nullable=True),
        Column("throttled_ratio", Kind.RATIO, "Periods throttled at the CPU limit.", nullable=True),
        Column("file_read_bytes_per_second", Kind.RATIO, "Read from files.", nullable=True),
        Column("network_received_bytes_per_second", Kind.RATIO, "Received.", nullable=True),
        Column("network_sent_bytes_per_second", Kind.RATIO, "Sent.", nullable=True),
        Column("last_active_at", Kind.INSTANT, "Last active before, that day.", nullable=True),
        Column(
            "is_unworked",
            Kind.FLAG,
            "The hold began that day and has not worked for two minutes before it.",
        ),
        Column("xid_number", Kind.COUNT, "XID of a GPU of the pod as it began.", nullable=True),
        Column("is_faulty", Kind.FLAG, "A GPU of the pod was broken meanwhile."),
        Column("peer_count", Kind.COUNT, "Other pods of the attempt meanwhile.", minimum=0),
        Column("late_peer_count", Kind.COUNT, "Of them starting or waiting.", minimum=0),
        Column("active_peer_count", Kind.COUNT, "Of them active.", minimum=0),
        Column("active_sibling_count", Kind.COUNT, "Other GPUs of the pod active.", minimum=0),
    ),
)

OVERLAYS = Table(
    name="core.overlays",
    doc="What holds' time was worth, beside the ledger: by hold, hour and overlay.",
    grain=("cluster_name", "day_on", "hold_id", "hour_at", "overlay_name"),
    columns=(
        CLUSTER,
        DAY,
        HOLD,
        Column("hour_at", Kind.INSTANT, "Begin of the hour."),
        Column(
            "overlay_name",
            Kind.TEXT,
            "effective (active time weighted by SM activity); sm_observed (held time that has an "
            "SM reading, whatever its state).",
            choices=("effective", "sm_observed"),
        ),
        Column("gpu_seconds", Kind.DECIMAL, "GPU-seconds.", minimum=0),
        Column("unpriced_gpu_seconds", Kind.DECIMAL, "Of them without a price.", minimum=0),
        Column("overlay_cost", Kind.DECIMAL, "Their cost.", nullable=True, minimum=0),
        Column("evidence_text", Kind.TEXT, "What it rests on."),
        Column("version_number", Kind.COUNT, "Version of the rule.", minimum=1),
    ),
)

TABLES = (
    GPUS,
    GPU_RULES,
    HOLD_PARTS,
    GPU_FAULTS,
    GPU_OWNERS,
    GPU_STRETCHES,
    GPU_STATES,
    GPU_EPISODES,
    GPU_ERRORS,
    EPISODE_EVIDENCE,
    OVERLAYS,
)
