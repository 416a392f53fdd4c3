"""Raw tables: what a source said, with when it was observed and where that is to be read again.

Facts that we conclude from them belong in `core`.
"""

from models.activity import ACTIVITY_RULES
from models.raw_columns import VERSION
from models.raw_dra import TABLES as DRA
from models.raw_events import TABLES as EVENTS
from models.raw_events import UNSCHEDULED
from models.raw_kueue import WORKLOAD_VERSIONS
from models.raw_metrics import TABLES as METRICS
from models.raw_owners import OBJECT_CREATIONS, OWNER_VERSIONS
from models.raw_settings import FLEET, GPU_MODELS, MIG_PROFILES, POLICIES, PRICES, TEAM_RULES, TEAMS
from models.states import CLASSES, COVERAGES
from models.table import CLUSTER, DAY, Column, Kind, Table
from models.xids import XIDS

STARTING_CAUSES = (
    "image_pull_queue",
    "image_pull",
    "volume",
    "init",
    "container_start",
    "restart",
    "crash_loop",
    "undetermined",
)

POD_VERSIONS = Table(
    name="raw.pod_versions",
    doc="Every observed version of a pod, and the carried copy of each pod at 00:00.",
    grain=("cluster_name", "day_on", "sequence_number"),
    columns=(
        *VERSION,
        Column("pod_uid", Kind.TEXT, "The pod, for ever."),
        Column("namespace_name", Kind.TEXT, "Its namespace."),
        Column("pod_name", Kind.TEXT, "Its name (reused by later pods)."),
        Column("created_at", Kind.INSTANT, "When the API accepted it."),
        Column("submitted_at", Kind.INSTANT, "Submission, from an annotation.", nullable=True),
        Column("node_name", Kind.TEXT, "The node it is bound to.", nullable=True),
        Column("bound_at", Kind.INSTANT, "PodScheduled became True.", nullable=True),
        Column("phase_name", Kind.TEXT, "Pending, Running, Succeeded, Failed or Unknown."),
        Column("reason_name", Kind.TEXT, "status.reason, such as Evicted.", nullable=True),
        Column(
            "deletion_asked_at",
            Kind.INSTANT,
            "deletionTimestamp minus the grace period: when deletion was asked for.",
            nullable=True,
        ),
        Column(
            "finished_at",
            Kind.INSTANT,
            "Latest container end in a terminal phase; the observation where none is given.",
            nullable=True,
        ),
        Column(
            "running_since_at",
            Kind.INSTANT,
            "Latest startedAt of the containers that ask for the GPU, if all of them run, or if "
            "all of them ran together until stopped_at.",
            nullable=True,
        ),
        Column(
            "stopped_at",
            Kind.INSTANT,
            "Earliest end of the current run of such a container, if not all of them run; "
            "else the latest end of a previous run.",
            nullable=True,
        ),
        Column(
            "waiting_cause_name",
            Kind.TEXT,
            "Why not all of them run.",
            nullable=True,
            choices=STARTING_CAUSES,
        ),
        Column(
            "start_order_text",
            Kind.TEXT,
            "Names of its containers in the order in which they start, up to the last that asks "
            "for the GPU, by blank; null: not told.",
            nullable=True,
        ),
        Column(
            "is_start_known",
            Kind.FLAG,
            "Whether the source tells when containers start (a trace may not).",
        ),
        Column("ready_since_at", Kind.INSTANT, "Ready became True, while True.", nullable=True),
        Column(
            "container_runs",
            Kind.CONTAINER_RUNS,
            "Each container's current run and the one before; null: not told.",
            nullable=True,
        ),
        Column(
            "sandbox_ready_at",
            Kind.INSTANT,
            "PodReadyToStartContainers became True, told late by some kubelets.",
            nullable=True,
        ),
        Column("image_name", Kind.TEXT, "Image of its first container with a GPU.", nullable=True),
        Column("restart_count", Kind.COUNT, "Restarts of its containers, summed.", minimum=0),
        Column("exit_code_number", Kind.COUNT, "Worst exit code seen.", nullable=True),
        Column("disruption_name", Kind.TEXT, "Reason of DisruptionTarget.", nullable=True),
        Column("disrupted_at", Kind.INSTANT, "DisruptionTarget became True.", nullable=True),
        Column("is_gated", Kind.FLAG, "It has scheduling gates; null: not told.", nullable=True),
        *UNSCHEDULED,
        Column("requests", Kind.REQUESTS, "Effective request of each accelerator resource."),
        Column(
            "devices",
            Kind.DEVICES,
            "HAMi entries allocated to it: device, MiB and hundredths of its cores (0: no limit).",
        ),
        Column(
            "claims",
            Kind.CLAIMS,
            "Its resource claims; with the extended resource that one stands for, if any.",
        ),
        Column(
            "asked_gpu_model_name",
            Kind.TEXT,
            "Canonical model that its node selector or table asks for.",
            nullable=True,
        ),
        Column(
            "node_needs_json",
            Kind.TEXT,
            "Node labels that it needs, with the values that do (none: more than a value is "
            "asked), from its node selector and required node affinity; null: not told.",
            nullable=True,
        ),
        Column("cpu_milli_count", Kind.COUNT, "CPU asked for, in thousandths.", minimum=0),
        Column("labels_json", Kind.TEXT, "Its labels, as a JSON object."),
        Column("owners", Kind.OWNERS, "Its controlling owner, then what labels say is above."),
        Column("workload_kind_name", Kind.TEXT, "Kind of the top-level object."),
        Column("workload_name", Kind.TEXT, "Name of the top-level object."),
        Column("workload_key_uid", Kind.TEXT, "Its uid, else kind/namespace/name."),
        Column("workload_class", Kind.TEXT, "What sort of work it is.", choices=CLASSES),
        Column("is_service", Kind.FLAG, "Whether each replica is an attempt of its own."),
        Column("gang_name", Kind.TEXT, "PodGroup or pod group it belongs to.", nullable=True),
        Column("gang_size_count", Kind.COUNT, "Gang size on the pod.", nullable=True, minimum=1),
        Column("gang_source_name", Kind.TEXT, "Where that size comes from.", nullable=True),
        Column("queue_name", Kind.TEXT, "Queue named on the pod.", nullable=True),
        Column("user_name", Kind.TEXT, "Who submitted it, if an annotation says.", nullable=True),
        Column("account_name", Kind.TEXT, "Account named by the source.", nullable=True),
        Column(
            "first_started_at",
            Kind.INSTANT,
            "Memory of a CARRIED row: all its GPU containers first ran.",
            nullable=True,
        ),
        Column(
            "first_ready_at",
            Kind.INSTANT,
            "Memory of a CARRIED row: Ready for the first time.",
            nullable=True,
        ),
        Column(
            "gang_complete_at",
            Kind.INSTANT,
            "Memory of a CARRIED row: its attempt's gang was first complete.",
            nullable=True,
        ),
        Column(
            "attempt_queued_at",
            Kind.INSTANT,
            "Memory of a CARRIED row: its attempt entered the queue.",
            nullable=True,
        ),
        Column(
            "attempt_created_at",
            Kind.INSTANT,
            "Memory of a CARRIED row: its attempt's first pod was created.",
            nullable=True,
        ),
        Column(
            "team_name",
            Kind.TEXT,
            "Team fixed at bind: memory of a CARRIED row, or a table's own team column.",
            nullable=True,
        ),
        Column(
            "seen_at",
            Kind.INSTANT,
            "Memory of a CARRIED row: the last true observation.",
            nullable=True,
        ),
    ),
)

NODE_VERSIONS = Table(
    name="raw.node_versions",
    doc="Every observed version of a node, and the carried copy of each node at 00:00.",
    grain=("cluster_name", "day_on", "sequence_number"),
    columns=(
        *VERSION,
        Column("node_uid", Kind.TEXT, "The node, for ever (names are reused)."),
        Column("node_name", Kind.TEXT, "Its name."),
        Column(
            "created_at",
            Kind.INSTANT,
            "When it joined; none: since the window's start.",
            nullable=True,
        ),
        Column("gpu_model_name", Kind.TEXT, "Canonical GPU model, or __unknown__."),
        Column("gpu_product_name", Kind.TEXT, "The model as the source spells it.", nullable=True),
        Column(
            "gpu_count",
            Kind.COUNT,
            "Physical GPUs that it reports: freed of replicas and MIG.",
            minimum=0,
        ),
        Column(
            "allocatable_micro_gpu",
            Kind.COUNT,
            "Of them allocatable, in micro-GPU (whole once MIG remainders are counted in).",
            minimum=0,
        ),
        Column("largest_gpu_count", Kind.COUNT, "The largest gpu_count so far.", minimum=0),
        Column("count_source_name", Kind.TEXT, "What gpu_count was read from."),
        Column("is_ready", Kind.FLAG, "Condition Ready is True."),
        Column("is_ever_ready", Kind.FLAG, "Ready with GPUs allocatable, now or before."),
        Column("is_cordoned", Kind.FLAG, "spec.unschedulable."),
        Column(
            "maintenance_name",
            Kind.TEXT,
            "driver_upgrade or mig_reconfigure while the node's labels say so.",
            nullable=True,
            choices=("driver_upgrade", "mig_reconfigure"),
        ),
        Column("capacity_type_name", Kind.TEXT, "on-demand, reserved, spot, owned or unknown."),
        Column(
            "share_scale_ratio",
            Kind.RATIO,
            "Factor on shares that add up to more than 1.",
            minimum=0,
            maximum=1,
        ),
        Column(
            "resources",
            Kind.RESOURCES,
            "Each accelerator resource, and what one unit is (0 while it has no capacity).",
        ),
        Column(
            "resource_names_text",
            Kind.TEXT,
            "Names of all resources that it reports, by blank; null: not told.",
            nullable=True,
        ),
        Column("devices", Kind.DEVICES, "HAMi's register: each card and its memory."),
        Column("cpu_milli_count", Kind.COUNT, "CPU capacity, in thousandths.", minimum=0),
        Column("memory_mib", Kind.COUNT, "Memory capacity.", minimum=0),
        Column("labels_json", Kind.TEXT, "Its labels, as a JSON object."),
    ),
)

NAMESPACE_VERSIONS = Table(
    name="raw.namespace_versions",
    doc="Every observed version of a namespace, and the carried copy of each at 00:00.",
    grain=("cluster_name", "day_on", "sequence_number"),
    columns=(
        *VERSION,
        Column("namespace_name", Kind.TEXT, "Its name."),
        Column("labels_json", Kind.TEXT, "Its labels, as a JSON object."),
    ),
)

POD_GROUP_VERSIONS = Table(
    name="raw.pod_group_versions",
    doc="Every observed version of a Volcano PodGroup, and the carried copy of each at 00:00.",
    grain=("cluster_name", "day_on", "sequence_number"),
    columns=(
        *VERSION,
        Column("pod_group_uid", Kind.TEXT, "The PodGroup, for ever."),
        Column("namespace_name", Kind.TEXT, "Its namespace."),
        Column("pod_group_name", Kind.TEXT, "Its name."),
        Column("created_at", Kind.INSTANT, "When the API accepted it."),
        Column("submitted_at", Kind.INSTANT, "Submission, from an annotation.", nullable=True),
        Column("workload_kind_name", Kind.TEXT, "Kind of its owner."),
        Column("workload_name", Kind.TEXT, "Name of its owner."),
        Column("workload_key_uid", Kind.TEXT, "Uid of its owner, else kind/namespace/name."),
        Column("workload_class", Kind.TEXT, "What sort of work it is.", choices=CLASSES),
        Column("min_member_count", Kind.COUNT, "Members that start together.", minimum=0),
        Column("queue_name", Kind.TEXT, "Volcano queue.", nullable=True),
        Column("user_name", Kind.TEXT, "Who submitted it, if an annotation says.", nullable=True),
        Column(
            "phase_name", Kind.TEXT, "Pending, Inqueue, Running, Unknown, Completed.", nullable=True
        ),
        *UNSCHEDULED,
        Column("labels_json", Kind.TEXT, "Its labels, as a JSON object."),
        Column("requests", Kind.REQUESTS, "minResources of accelerator resources."),
        Column(
            "admitted_at",
            Kind.INSTANT,
            "Memory of a CARRIED row: Inqueue for the first time since it was last requeued.",
            nullable=True,
        ),
        Column(
            "requeued_at",
            Kind.INSTANT,
            "Memory of a CARRIED row: when its last attempt ended, after which it waits again.",
            nullable=True,
        ),
    ),
)

COVERAGE = Table(
    name="raw.coverage",
    doc="How well who-held-what is known: the cluster's known window of the day, tiled.",
    grain=("cluster_name", "day_on", "begin_at"),
    columns=(
        CLUSTER,
        DAY,
        Column("begin_at", Kind.INSTANT, "Begin of the stretch."),
        Column("end_at", Kind.INSTANT, "End of the stretch."),
        Column("coverage_name", Kind.TEXT, "How it was observed.", choices=COVERAGES),
        Column("source_ref", Kind.TEXT, "The source that says so."),
        Column("is_placed", Kind.FLAG, "Whether the source names the node of a pod."),
        Column("is_inventory_known", Kind.FLAG, "Whether it had told of nodes by the day's end."),
    ),
    ranges=(("begin_at", "end_at"),),
)

REJECTIONS = Table(
    name="raw.rejections",
    doc="Rows of a source that could not be used: how many, why, where, and how to mend it.",
    grain=("cluster_name", "day_on", "source_ref", "reason_name"),
    columns=(
        CLUSTER,
        DAY,
        Column("source_ref", Kind.TEXT, "File (and first line) or query."),
        Column("reason_name", Kind.TEXT, "Why they were refused."),
        Column("is_row_lost", Kind.FLAG, "Whether the rows are lost by it; else it is a notice."),
        Column("rejected_count", Kind.COUNT, "How many.", minimum=1),
        Column("example_text", Kind.TEXT, "The first of them, cut short."),
        Column("mend_text", Kind.TEXT, "How to mend it."),
    ),
)

TABLES = (
    POD_VERSIONS,
    NODE_VERSIONS,
    NAMESPACE_VERSIONS,
    POD_GROUP_VERSIONS,
    *DRA,
    OWNER_VERSIONS,
    OBJECT_CREATIONS,
    WORKLOAD_VERSIONS,
    COVERAGE,
    REJECTIONS,
    *EVENTS,
    *METRICS,
    TEAMS,
    TEAM_RULES,
    PRICES,
    FLEET,
    POLICIES,
    ACTIVITY_RULES,
    GPU_MODELS,
    MIG_PROFILES,
    XIDS,
)

NOTICES = (
    "bad_event_time",
    "bad_gpu_instance",
    "conflicting_reading",
    "conflicting_sample",
    "duplicate_line",
    "duplicate_sample",
    "bad_submission_time",
    "label_on_several_nodes",
    "metric_missing",
    "native_histogram",
    "negative_reading",
    "no_created_name",
    "no_gpu_uuid",
    "not_a_number",
    "other_file",
    "out_of_range",
    "resource_claims",
    "sentinel",
    "unknown_column",
    "unknown_device_class",
    "unknown_driver",
    "unknown_kind",
    "unknown_mig_profile",
    "unknown_resource",
    "unknown_scheduling_text",
)
"""Reasons in raw.rejections of what was set aside although no row was lost by it."""
