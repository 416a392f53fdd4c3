"""Core tables: the facts, at the finest grain that we account for, each as known at its day's end.

What a page shows, summed and small, belongs in `mart`.
"""

from models.states import CAUSES, CLASSES, STATES, UNBOOKED_REASONS, WAITS
from models.table import CLUSTER, DAY, Column, Kind, Table

BEGIN = Column("begin_at", Kind.INSTANT, "Begin, included.")
END = Column("end_at", Kind.INSTANT, "End, excluded.")
SPAN = (("begin_at", "end_at"),)
NODE = Column("node_uid", Kind.TEXT, "The node, or a reserved one in double underscores.")
MODEL = Column("gpu_model_name", Kind.TEXT, "Canonical GPU model, or __unknown__.")
HOLD = Column("hold_id", Kind.TEXT, "The hold: pod uid / resource [/ device].")
WORKLOAD = Column("workload_key_uid", Kind.TEXT, "The workload's uid, else kind/namespace/name.")
TEAM = Column("team_name", Kind.TEXT, "Who pays, or __unattributed__.")
HOLDER = Column("team_name", Kind.TEXT, "The holder: a team, or a reserved one.")
STATE = Column("state_name", Kind.TEXT, "State.", choices=tuple(STATES))
CAUSE = Column("cause_name", Kind.TEXT, "Cause within the state.", choices=(*CAUSES,))
SHARE = Column("share_micro_gpu", Kind.COUNT, "Share of GPUs, in millionths.", minimum=0)
GPU_SECONDS = Column("gpu_seconds", Kind.DECIMAL, "GPU-seconds.", minimum=0)
CLASS = Column("workload_class", Kind.TEXT, "What sort of work it is.", choices=CLASSES)
ATTEMPT = Column("attempt_id", Kind.TEXT, "The attempt: workload, and when its first pod came.")
PRICE = Column("price_id", Kind.TEXT, "The price row in force; null where none is.", nullable=True)

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

RUNS = Table(
    name="core.runs",
    doc="Stretches in which all containers of a pod that ask for the GPU run.",
    grain=("cluster_name", "day_on", "pod_uid", "begin_at"),
    columns=(
        CLUSTER,
        DAY,
        Column("pod_uid", Kind.TEXT, "The pod."),
        ATTEMPT,
        BEGIN,
        END,
        Column("is_ended", Kind.FLAG, "It has ended; else it goes on at the window's end."),
    ),
    ranges=SPAN,
)

GANG_SPELLS = Table(
    name="core.gang_spells",
    doc="How many members of each gang exist, are bound and run, from when on.",
    grain=("cluster_name", "day_on", "attempt_id", "begin_at"),
    columns=(
        CLUSTER,
        DAY,
        ATTEMPT,
        BEGIN,
        Column("created_count", Kind.COUNT, "Members that exist or have succeeded.", minimum=0),
        Column("bound_count", Kind.COUNT, "Members bound, or succeeded.", minimum=0),
        Column("whole_count", Kind.COUNT, "Members that run, or have succeeded.", minimum=0),
    ),
)

HOLDS = Table(
    name="core.holds",
    doc="The day's piece of each interval in which a pod occupies GPU share on a node.",
    grain=("cluster_name", "day_on", "hold_id"),
    columns=(
        CLUSTER,
        DAY,
        HOLD,
        Column("pod_uid", Kind.TEXT, "Its pod."),
        WORKLOAD,
        CLASS,
        ATTEMPT,
        TEAM,
        Column("node_uid", Kind.TEXT, "Its node; __unknown__ for a name never seen."),
        Column("resource_name", Kind.TEXT, "The resource that was asked for."),
        Column("request_count", Kind.COUNT, "Units of it.", minimum=0),
        Column("device_uuid", Kind.TEXT, "The device, where known.", nullable=True),
        Column("share_micro_gpu", Kind.COUNT, "Share before any factor on its device.", minimum=0),
        Column("bound_at", Kind.INSTANT, "Bind: later ones are booked first."),
        BEGIN,
        END,
        Column("is_begin", Kind.FLAG, "The hold begins in this piece."),
        Column("is_end", Kind.FLAG, "The hold ends in this piece."),
        Column("is_placement_assumed", Kind.FLAG, "Which device is not known."),
        Column("source_ref", Kind.TEXT, "The pod's last version of the day."),
    ),
    ranges=SPAN,
)

HOLD_SHARES = Table(
    name="core.hold_shares",
    doc="The share that each hold has of GPUs, in stretches in which it does not change.",
    grain=("cluster_name", "day_on", "hold_id", "begin_at"),
    columns=(
        CLUSTER,
        DAY,
        HOLD,
        NODE,
        Column("device_uuid", Kind.TEXT, "The device, where known.", nullable=True),
        Column("bound_at", Kind.INSTANT, "Bind."),
        BEGIN,
        END,
        SHARE,
        Column(
            "scale_ratio",
            Kind.RATIO,
            "Factor on shares of a device that is held over 1.",
            minimum=0,
            maximum=1,
        ),
    ),
    ranges=SPAN,
)

BOOKINGS = Table(
    name="core.bookings",
    doc="What of each hold is booked: stretches of constant share.",
    grain=("cluster_name", "day_on", "hold_id", "begin_at"),
    columns=(
        CLUSTER,
        DAY,
        HOLD,
        NODE,
        BEGIN,
        END,
        SHARE,
        Column("asked_micro_gpu", Kind.COUNT, "The hold's share, before booking.", minimum=0),
        Column("device_uuid", Kind.TEXT, "The device, where known.", nullable=True),
        Column(
            "scale_ratio",
            Kind.RATIO,
            "Factor on shares of a device that is held over 1.",
            minimum=0,
            maximum=1,
        ),
    ),
    ranges=SPAN,
)

UNBOOKED = Table(
    name="core.unbooked",
    doc="What of each hold is not booked, and why: nobody holds what is not there.",
    grain=("cluster_name", "day_on", "hold_id", "begin_at", "reason_name"),
    columns=(
        CLUSTER,
        DAY,
        HOLD,
        TEAM,
        NODE,
        Column("reason_name", Kind.TEXT, "Why.", choices=UNBOOKED_REASONS),
        BEGIN,
        END,
        SHARE,
        GPU_SECONDS,
    ),
    ranges=SPAN,
)

NODE_SPELLS = Table(
    name="core.node_spells",
    doc="Stretches in which a node's installed and schedulable GPUs do not change.",
    grain=("cluster_name", "day_on", "node_uid", "begin_at"),
    columns=(
        CLUSTER,
        DAY,
        NODE,
        MODEL,
        BEGIN,
        END,
        Column("installed_micro_gpu", Kind.COUNT, "Installed.", minimum=0),
        Column("unschedulable_micro_gpu", Kind.COUNT, "Of it not schedulable.", minimum=0),
        Column("cause_name", Kind.TEXT, "Why not.", nullable=True, choices=STATES["unavailable"]),
        Column("is_ready", Kind.FLAG, "The node is Ready."),
    ),
    ranges=SPAN,
)

GPU_SPELLS = Table(
    name="core.gpu_spells",
    doc="How many GPUs of a model are installed on a node, from when to when.",
    grain=("cluster_name", "day_on", "node_uid", "begin_at"),
    columns=(
        CLUSTER,
        DAY,
        NODE,
        MODEL,
        BEGIN,
        END,
        Column("installed_count", Kind.COUNT, "Physical GPUs.", minimum=0),
        Column("count_source_name", Kind.TEXT, "What the count was read from."),
    ),
    ranges=SPAN,
)

PRICE_SPELLS = Table(
    name="core.price_spells",
    doc="The price of a GPU-hour on each node, from when to when.",
    grain=("cluster_name", "day_on", "node_uid", "begin_at"),
    columns=(
        CLUSTER,
        DAY,
        NODE,
        BEGIN,
        END,
        PRICE,
        Column(
            "price_micro_cost_per_gpu_hour",
            Kind.COUNT,
            "That price, in millionths.",
            nullable=True,
            minimum=0,
        ),
        Column(
            "candidate_count",
            Kind.COUNT,
            "Price rows of the same rank in force: must be 1.",
            minimum=0,
            maximum=1,
        ),
    ),
    ranges=SPAN,
)

HOLD_STATES = Table(
    name="core.hold_states",
    doc="The state of each hold, second by second: its piece of the day, tiled.",
    grain=("cluster_name", "day_on", "hold_id", "begin_at"),
    columns=(CLUSTER, DAY, HOLD, STATE, CAUSE, BEGIN, END),
    ranges=SPAN,
)

UNHELD_STATES = Table(
    name="core.unheld_states",
    doc="What nobody holds on a node, second by second, and why.",
    grain=("cluster_name", "day_on", "node_uid", "begin_at", "state_name", "cause_name"),
    columns=(CLUSTER, DAY, NODE, HOLDER, STATE, CAUSE, BEGIN, END, SHARE),
    ranges=SPAN,
)

LEDGER = Table(
    name="core.ledger",
    doc="Every GPU-second of the fleet exactly once: its holder, its state, its cost.",
    grain=(
        "cluster_name",
        "day_on",
        "node_uid",
        "hour_at",
        "hold_id",
        "team_name",
        "state_name",
        "cause_name",
        "price_id",
    ),
    columns=(
        CLUSTER,
        DAY,
        NODE,
        MODEL,
        Column("hour_at", Kind.INSTANT, "Begin of the hour, in the accounting zone's full hours."),
        Column("hold_id", Kind.TEXT, "The hold; null for reserved holders.", nullable=True),
        Column("workload_key_uid", Kind.TEXT, "Its workload.", nullable=True),
        HOLDER,
        STATE,
        CAUSE,
        PRICE,
        GPU_SECONDS,
        Column(
            "ledger_cost", Kind.DECIMAL, "Cost at book price; null where unpriced.", nullable=True
        ),
    ),
)

GPU_HOURS = Table(
    name="core.gpu_hours",
    doc="The ledger by hour, GPU model, holder, class, state and cause.",
    grain=(
        "cluster_name",
        "day_on",
        "hour_at",
        "gpu_model_name",
        "team_name",
        "workload_class",
        "state_name",
        "cause_name",
    ),
    columns=(
        CLUSTER,
        DAY,
        Column("hour_at", Kind.INSTANT, "Begin of the hour."),
        MODEL,
        HOLDER,
        Column("workload_class", Kind.TEXT, "Class, or __none__ for reserved holders."),
        STATE,
        CAUSE,
        GPU_SECONDS,
        Column("unpriced_gpu_seconds", Kind.DECIMAL, "Of them without a price.", minimum=0),
        Column("hour_cost", Kind.DECIMAL, "Cost of those that have a price.", minimum=0),
    ),
)

WAITS_TABLE = Table(
    name="core.waits",
    doc="What each attempt waited for, tiling the time from queued to started.",
    grain=("cluster_name", "day_on", "attempt_id", "wait_name"),
    columns=(
        CLUSTER,
        DAY,
        ATTEMPT,
        Column("wait_name", Kind.TEXT, "What it waited for.", choices=WAITS),
        BEGIN,
        END,
        Column("wait_seconds", Kind.COUNT, "How long.", minimum=0),
        Column("is_censored", Kind.FLAG, "It had not ended when we last looked, or it left."),
    ),
    ranges=SPAN,
)

TABLES = (
    WINDOWS,
    NODES,
    PODS,
    WORKLOADS,
    RUNS,
    GANG_SPELLS,
    ATTEMPTS,
    RESTARTS,
    HOLDS,
    HOLD_SHARES,
    GPU_SPELLS,
    NODE_SPELLS,
    PRICE_SPELLS,
    BOOKINGS,
    UNBOOKED,
    HOLD_STATES,
    UNHELD_STATES,
    LEDGER,
    GPU_HOURS,
    WAITS_TABLE,
)
