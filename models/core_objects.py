"""Core tables of things: windows, nodes, pods, workloads, attempts; their time is in core_time."""

from models.core_columns import ATTEMPT, BEGIN, CLASS, END, MODEL, NODE, SPAN, TEAM, WORKLOAD
from models.table import CLUSTER, DAY, Column, Kind, Table

WINDOWS = Table(
    name="core.windows",
    doc="The part of the day in which the cluster is known at all, and how pods are placed in it.",
    grain=("cluster_name", "day_on"),
    columns=(
        CLUSTER,
        DAY,
        BEGIN,
        END,
        Column("is_placed", Kind.FLAG, "Whether its pods name their nodes."),
        Column("is_inventory_known", Kind.FLAG, "Whether its source has nodes."),
        Column("watched_seconds", Kind.COUNT, "Seconds in which who held what was recorded."),
        Column("known_seconds", Kind.COUNT, "Seconds of the window.", minimum=0),
    ),
    ranges=SPAN,
)

NODES = Table(
    name="core.nodes",
    doc="Each node that existed that day, and the GPUs installed in it.",
    grain=("cluster_name", "day_on", "node_uid"),
    columns=(
        CLUSTER,
        DAY,
        NODE,
        Column("node_name", Kind.TEXT, "Its name (reused by later nodes)."),
        MODEL,
        Column(
            "created_at", Kind.INSTANT, "When it joined; none: before we looked.", nullable=True
        ),
        Column("begin_at", Kind.INSTANT, "Begin of its existence inside the day's window."),
        END,
        Column("installed_count", Kind.COUNT, "Physical GPUs.", minimum=0),
        Column("count_source_name", Kind.TEXT, "What the count was read from."),
        Column("capacity_type_name", Kind.TEXT, "on-demand, reserved, spot, owned or unknown."),
        Column(
            "share_scale_ratio",
            Kind.RATIO,
            "Factor on shares that add up to more than 1.",
            minimum=0,
            maximum=1,
        ),
        Column("cpu_milli_count", Kind.COUNT, "CPU capacity, in thousandths.", minimum=0),
        Column("memory_mib", Kind.COUNT, "Memory capacity.", minimum=0),
        Column("labels_json", Kind.TEXT, "Its labels at the day's end."),
        Column("source_ref", Kind.TEXT, "Its last version of the day."),
    ),
    ranges=SPAN,
)

PODS = Table(
    name="core.pods",
    doc="Each pod seen that day, folded to what was known of it at the day's end.",
    grain=("cluster_name", "day_on", "pod_uid"),
    columns=(
        CLUSTER,
        DAY,
        Column("pod_uid", Kind.TEXT, "The pod, for ever."),
        Column("namespace_name", Kind.TEXT, "Its namespace."),
        Column("pod_name", Kind.TEXT, "Its name."),
        WORKLOAD,
        Column("is_service", Kind.FLAG, "Whether each replica is an attempt of its own."),
        TEAM,
        Column("created_at", Kind.INSTANT, "Created."),
        Column("submitted_at", Kind.INSTANT, "Submitted, if stated.", nullable=True),
        Column("bound_at", Kind.INSTANT, "Bound to a node.", nullable=True),
        Column("node_name", Kind.TEXT, "That node's name.", nullable=True),
        Column("node_uid", Kind.TEXT, "That node's uid.", nullable=True),
        Column("first_started_at", Kind.INSTANT, "All GPU containers first ran.", nullable=True),
        Column("is_start_known", Kind.FLAG, "Whether the source tells container starts."),
        Column("first_ready_at", Kind.INSTANT, "Ready for the first time.", nullable=True),
        Column("deletion_asked_at", Kind.INSTANT, "Deletion first asked for.", nullable=True),
        Column("finished_at", Kind.INSTANT, "Ended in a terminal phase.", nullable=True),
        Column("deleted_at", Kind.INSTANT, "Really removed.", nullable=True),
        Column("ended_at", Kind.INSTANT, "The earlier of finished and removed.", nullable=True),
        Column("gone_at", Kind.INSTANT, "The earliest of deletion asked and ended.", nullable=True),
        Column("phase_name", Kind.TEXT, "Its last phase."),
        Column("reason_name", Kind.TEXT, "Its last status reason.", nullable=True),
        Column("disruption_name", Kind.TEXT, "Why it was disrupted.", nullable=True),
        Column("is_refused", Kind.FLAG, "The kubelet refused it: it held nothing."),
        Column("restart_count", Kind.COUNT, "Restarts of its containers.", minimum=0),
        Column(
            "asked_micro_gpu",
            Kind.COUNT,
            "GPU share asked for (whole units where unknown).",
            minimum=0,
        ),
        Column("asked_gpu_model_name", Kind.TEXT, "Model asked for.", nullable=True),
        Column("gang_name", Kind.TEXT, "Its gang.", nullable=True),
        Column("gang_size_count", Kind.COUNT, "Members that start together.", nullable=True),
        Column("gang_source_name", Kind.TEXT, "Where that size comes from.", nullable=True),
        ATTEMPT,
        Column("attempt_created_at", Kind.INSTANT, "Its attempt's first pod was created."),
        Column("attempt_queued_at", Kind.INSTANT, "Its attempt entered the queue."),
        Column("queue_name", Kind.TEXT, "Queue.", nullable=True),
        Column("user_name", Kind.TEXT, "Who submitted it.", nullable=True),
        Column("last_sequence_number", Kind.COUNT, "Its last version of the day."),
        Column("source_ref", Kind.TEXT, "That version's source."),
    ),
)

WORKLOADS = Table(
    name="core.workloads",
    doc="The top-level objects that people submitted, as known at the day's end.",
    grain=("cluster_name", "day_on", "workload_key_uid"),
    columns=(
        CLUSTER,
        DAY,
        WORKLOAD,
        Column("workload_kind_name", Kind.TEXT, "Kind of the top-level object."),
        Column("namespace_name", Kind.TEXT, "Its namespace."),
        Column("workload_name", Kind.TEXT, "Its name."),
        CLASS,
        Column("is_service", Kind.FLAG, "Whether it serves rather than ends."),
        Column("team_name", Kind.TEXT, "Team of its latest pod, or __unattributed__."),
        Column("queue_name", Kind.TEXT, "Queue.", nullable=True),
        Column("user_name", Kind.TEXT, "Who submitted it.", nullable=True),
        Column("gang_size_count", Kind.COUNT, "Gang size, if it is a gang.", nullable=True),
        Column("gang_source_name", Kind.TEXT, "Where that size comes from.", nullable=True),
        Column("first_created_at", Kind.INSTANT, "Earliest creation known of it."),
    ),
)

ATTEMPTS = Table(
    name="core.attempts",
    doc="One try of a workload to run, in each day in which it was queued or alive.",
    grain=("cluster_name", "day_on", "attempt_id"),
    columns=(
        CLUSTER,
        DAY,
        ATTEMPT,
        WORKLOAD,
        TEAM,
        Column("queue_name", Kind.TEXT, "Queue, or __none__."),
        Column("is_service", Kind.FLAG, "A replica of a service."),
        Column("gpu_shape_name", Kind.TEXT, "Model asked for x GPUs per pod x pods; cpu."),
        Column("gang_size_count", Kind.COUNT, "n of the rules: gang size, else 1.", minimum=1),
        Column("pod_count", Kind.COUNT, "Pods of it known that day.", minimum=0),
        Column("asked_micro_gpu", Kind.COUNT, "GPU share asked for by them.", minimum=0),
        Column("queued_at", Kind.INSTANT, "Entered the queue."),
        Column("admitted_at", Kind.INSTANT, "Admitted by its queue, if observed.", nullable=True),
        Column("placed_at", Kind.INSTANT, "n-th bind.", nullable=True),
        Column("started_at", Kind.INSTANT, "n-th first run.", nullable=True),
        Column("complete_at", Kind.INSTANT, "Its gang was first complete.", nullable=True),
        Column("ended_at", Kind.INSTANT, "All of it gone.", nullable=True),
        Column("known_until_at", Kind.INSTANT, "The window's end: what came later is not known."),
        Column("is_start_known", Kind.FLAG, "Whether the source tells container starts."),
        Column(
            "outcome_name",
            Kind.TEXT,
            "How it ended, or that it has not.",
            choices=("succeeded", "failed", "evicted", "deleted", "withdrawn", "alive", "queued"),
        ),
    ),
)

RESTARTS = Table(
    name="core.restarts",
    doc="Restarts that keep the admission: containers in place, or a member replaced.",
    grain=("cluster_name", "day_on", "pod_uid", "restarted_at", "restart_kind_name"),
    columns=(
        CLUSTER,
        DAY,
        Column("pod_uid", Kind.TEXT, "The pod that restarted, or that took the place."),
        WORKLOAD,
        ATTEMPT,
        Column("restarted_at", Kind.INSTANT, "When it was observed."),
        Column("restart_kind_name", Kind.TEXT, "container, or pod.", choices=("container", "pod")),
        Column("restart_count", Kind.COUNT, "How many at once.", minimum=1),
        Column("exit_code_number", Kind.COUNT, "Exit code before it.", nullable=True),
    ),
)

TABLES = (WINDOWS, NODES, PODS, WORKLOADS, ATTEMPTS, RESTARTS)
