"""Core tables of time: runs, holds, bookings, states, the ledger; things are in core_objects."""

from models.core_columns import (
    ATTEMPT,
    BEGIN,
    CAUSE,
    CLASS,
    END,
    GPU_SECONDS,
    HOLD,
    HOLDER,
    MODEL,
    NODE,
    PRICE,
    SHARE,
    SPAN,
    STATE,
    TEAM,
    WORKLOAD,
)
from models.states import STATES, UNBOOKED_REASONS, WAITS
from models.table import CLUSTER, DAY, Column, Kind, Table

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

START_CAUSES = Table(
    name="core.start_causes",
    doc="Why a pod that holds a GPU does not run yet, from when on, before its first run.",
    grain=("cluster_name", "day_on", "pod_uid", "begin_at"),
    columns=(
        CLUSTER,
        DAY,
        Column("pod_uid", Kind.TEXT, "The pod."),
        BEGIN,
        Column(
            "cause_name",
            Kind.TEXT,
            "The cause, by events and versions, should it not have run yet.",
            choices=STATES["starting"],
        ),
        Column("told_at", Kind.INSTANT, "The latest version was observed.", nullable=True),
        Column(
            "told_cause_name",
            Kind.TEXT,
            "The cause by that version alone.",
            nullable=True,
            choices=STATES["starting"],
        ),
    ),
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
        Column(
            "resource_name",
            Kind.TEXT,
            "The resource asked for; by a claim the driver[/mig-profile].",
        ),
        Column("request_count", Kind.COUNT, "Units of it.", minimum=0),
        Column("device_uuid", Kind.TEXT, "The device, where known.", nullable=True),
        Column("share_micro_gpu", Kind.COUNT, "Share before any factor on its device.", minimum=0),
        Column("bound_at", Kind.INSTANT, "Bind: later ones are booked first."),
        BEGIN,
        END,
        Column("is_begin", Kind.FLAG, "The hold begins in this piece."),
        Column("is_end", Kind.FLAG, "The hold ends in this piece."),
        Column("is_placement_assumed", Kind.FLAG, "Which device is not known."),
        Column("claim_uid", Kind.TEXT, "The claim by which it is held, if any.", nullable=True),
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
            "Factor on shares of a device that is held over 1, or shared by a claim.",
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
            "Factor on shares of a device that is held over 1, or shared by a claim.",
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

POD_STATES = Table(
    name="core.pod_states",
    doc="The state of each pod that holds GPUs, as far as no reading of a GPU decides it.",
    grain=("cluster_name", "day_on", "pod_uid", "begin_at"),
    columns=(CLUSTER, DAY, Column("pod_uid", Kind.TEXT, "The pod."), STATE, CAUSE, BEGIN, END),
    ranges=SPAN,
)

HOLD_STATES = Table(
    name="core.hold_states",
    doc="The state of each part of a hold, second by second: its piece of the day, tiled.",
    grain=("cluster_name", "day_on", "hold_id", "part_number", "begin_at"),
    columns=(
        CLUSTER,
        DAY,
        HOLD,
        Column("part_number", Kind.COUNT, "The part: which device, see hold_parts.", minimum=1),
        STATE,
        CAUSE,
        BEGIN,
        END,
    ),
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
        Column(
            "hour_cost",
            Kind.DECIMAL,
            "Cost of those that have a price; null where none has.",
            nullable=True,
            minimum=0,
        ),
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
    RUNS,
    START_CAUSES,
    GANG_SPELLS,
    HOLDS,
    HOLD_SHARES,
    GPU_SPELLS,
    NODE_SPELLS,
    PRICE_SPELLS,
    BOOKINGS,
    UNBOOKED,
    POD_STATES,
    HOLD_STATES,
    UNHELD_STATES,
    LEDGER,
    GPU_HOURS,
    WAITS_TABLE,
)
