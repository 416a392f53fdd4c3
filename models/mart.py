"""Marts: what a page, a report or the API shows; small, and each with the scope of its rows.

Every mart of time or money is a sum of core.gpu_hours or of the ledger; facts belong in `core`.
"""

from models.core_columns import CAUSE, CLASS, GPU_SECONDS, HOLDER, MODEL, STATE, TEAM, WORKLOAD
from models.table import CLUSTER, DAY, Column, Kind, Table

UNPRICED = Column("unpriced_gpu_seconds", Kind.DECIMAL, "Of them without a price.", minimum=0)


def _cost(name: str, of: str = "what has a price") -> Column:
    """A sum of money; what nothing of has a price costs nobody knows what, not 0."""
    doc = f"Cost of {of}; null where it has time and none of it a price."
    return Column(name, Kind.DECIMAL, doc, nullable=True, minimum=0)


FLEET_STATES = Table(
    name="mart.fleet_states",
    doc="GPU-time and cost by day, GPU model, state and cause: the whole fleet, nothing twice.",
    grain=("cluster_name", "day_on", "gpu_model_name", "state_name", "cause_name"),
    scope="platform",
    columns=(
        CLUSTER,
        DAY,
        MODEL,
        STATE,
        CAUSE,
        GPU_SECONDS,
        UNPRICED,
        _cost("state_cost"),
    ),
)

WATERFALL_STEPS = (
    "installed",
    "available",
    "allocated",
    "started",
    "unobserved",
    "active",
    "effective",
    "kept",
)

FLEET_WATERFALL = Table(
    name="mart.fleet_waterfall",
    doc="From installed to kept work, by day and GPU model; a null step is not measured.",
    grain=("cluster_name", "day_on", "gpu_model_name", "step_name"),
    scope="platform",
    columns=(
        CLUSTER,
        DAY,
        MODEL,
        Column("step_number", Kind.COUNT, "Its place.", minimum=1, maximum=8),
        Column("step_name", Kind.TEXT, "The step.", choices=WATERFALL_STEPS),
        Column(
            "gpu_seconds",
            Kind.DECIMAL,
            "GPU-seconds; null where nothing measures it.",
            nullable=True,
            minimum=0,
        ),
        Column(
            "unpriced_gpu_seconds",
            Kind.DECIMAL,
            "Of them without a price.",
            nullable=True,
            minimum=0,
        ),
        _cost("step_cost"),
    ),
)

FLEET_COVERAGE = Table(
    name="mart.fleet_coverage",
    doc="How much of each day is known: window, recorded share, observed share, priced share.",
    grain=("cluster_name", "day_on"),
    scope="platform",
    columns=(
        CLUSTER,
        DAY,
        Column("known_until_at", Kind.INSTANT, "End of the known window."),
        Column("known_seconds", Kind.COUNT, "Seconds known at all.", minimum=0),
        Column("watched_seconds", Kind.COUNT, "Seconds in which holders were recorded.", minimum=0),
        Column("installed_gpu_seconds", Kind.DECIMAL, "Installed.", minimum=0),
        Column("held_gpu_seconds", Kind.DECIMAL, "Held.", minimum=0),
        Column("observed_gpu_seconds", Kind.DECIMAL, "Of the held, not unobserved.", minimum=0),
        Column("unrecorded_gpu_seconds", Kind.DECIMAL, "No source says who held it.", minimum=0),
        Column("unpriced_gpu_seconds", Kind.DECIMAL, "Without a price.", minimum=0),
        Column("unbooked_gpu_seconds", Kind.DECIMAL, "Holds that could not be booked.", minimum=0),
        Column("rejected_count", Kind.COUNT, "Rows of the sources that were refused.", minimum=0),
        Column("is_inventory_known", Kind.FLAG, "Whether it had told of nodes by the day's end."),
    ),
)

TEAM_DAYS = Table(
    name="mart.team_days",
    doc="What each holder held and what it cost, by day; reserved holders are rows of their own.",
    grain=("cluster_name", "day_on", "team_name"),
    scope="team_name",
    columns=(
        CLUSTER,
        DAY,
        HOLDER,
        Column("parent_team_name", Kind.TEXT, "The team above it.", nullable=True),
        GPU_SECONDS,
        Column("starting_gpu_seconds", Kind.DECIMAL, "Held, starting.", minimum=0),
        Column("gang_wait_gpu_seconds", Kind.DECIMAL, "Held, waiting for the gang.", minimum=0),
        Column("loading_gpu_seconds", Kind.DECIMAL, "Held, loading.", minimum=0),
        Column("terminating_gpu_seconds", Kind.DECIMAL, "Held past its end.", minimum=0),
        Column("unobserved_gpu_seconds", Kind.DECIMAL, "Held, not measured.", minimum=0),
        Column(
            "waste_gpu_seconds",
            Kind.DECIMAL,
            "starting + gang_wait + stalled + idle + terminating.",
            minimum=0,
        ),
        UNPRICED,
        _cost("team_cost"),
        _cost("waste_cost", "the waste"),
        _cost("unobserved_cost", "what is not measured"),
    ),
)

WORKLOAD_DAYS = Table(
    name="mart.workload_days",
    doc="What each workload held and what it cost, by day.",
    grain=("cluster_name", "day_on", "workload_key_uid", "team_name"),
    scope="team_name",
    columns=(
        CLUSTER,
        DAY,
        TEAM,
        WORKLOAD,
        Column("workload_kind_name", Kind.TEXT, "Kind."),
        Column("namespace_name", Kind.TEXT, "Namespace."),
        Column("workload_name", Kind.TEXT, "Name."),
        CLASS,
        Column("queue_name", Kind.TEXT, "Queue.", nullable=True),
        Column("user_name", Kind.TEXT, "Who submitted it.", nullable=True),
        GPU_SECONDS,
        Column("waste_gpu_seconds", Kind.DECIMAL, "Of them wasted.", minimum=0),
        Column("unobserved_gpu_seconds", Kind.DECIMAL, "Of them not measured.", minimum=0),
        UNPRICED,
        _cost("workload_cost"),
        _cost("waste_cost", "the waste"),
    ),
)

ATTEMPT_WAITS = Table(
    name="mart.attempt_waits",
    doc="The waits of each attempt as known at the day's end; its latest row is current.",
    grain=("cluster_name", "day_on", "attempt_id"),
    scope="team_name",
    columns=(
        CLUSTER,
        DAY,
        Column("attempt_id", Kind.TEXT, "The attempt."),
        WORKLOAD,
        Column("workload_name", Kind.TEXT, "Its workload's name."),
        TEAM,
        Column("queue_name", Kind.TEXT, "Queue, or __none__."),
        Column("gpu_shape_name", Kind.TEXT, "Model asked for x GPUs per pod x pods; cpu."),
        Column("is_service", Kind.FLAG, "A replica of a service."),
        Column("is_gpu", Kind.FLAG, "It asks for GPUs."),
        Column("is_start_known", Kind.FLAG, "Whether the source tells container starts."),
        Column("queued_at", Kind.INSTANT, "Entered the queue."),
        Column("queued_on", Kind.DAY, "The day of that."),
        Column("placed_at", Kind.INSTANT, "Served: n-th bind.", nullable=True),
        Column("started_at", Kind.INSTANT, "n-th first run.", nullable=True),
        Column("ended_at", Kind.INSTANT, "All of it gone.", nullable=True),
        Column("known_until_at", Kind.INSTANT, "What came later is not known."),
        Column(
            "outcome_name",
            Kind.TEXT,
            "served, left or waiting.",
            choices=("served", "left", "waiting"),
        ),
        Column(
            "queue_wait_seconds", Kind.COUNT, "Queued to placed, left, or last looked.", minimum=0
        ),
        Column(
            "start_wait_seconds",
            Kind.COUNT,
            "Placed to started; null: not started or unknown.",
            nullable=True,
            minimum=0,
        ),
        Column(
            "quota_wait_seconds", Kind.COUNT, "Part of the queue wait before admission.", minimum=0
        ),
        Column("asked_micro_gpu", Kind.COUNT, "GPU share asked for.", minimum=0),
        Column("waited_gpu_seconds", Kind.DECIMAL, "GPUs asked for x queue wait.", minimum=0),
    ),
)

TABLES = (
    FLEET_STATES,
    FLEET_WATERFALL,
    FLEET_COVERAGE,
    TEAM_DAYS,
    WORKLOAD_DAYS,
    ATTEMPT_WAITS,
)

QUEUE_WAITS = Table(
    name="queue_waits",
    doc="Waits of the attempts queued in a period, by queue, team and GPU shape, three ways.",
    grain=("method_name", "grouping_name", "queue_name", "team_name", "gpu_shape_name"),
    scope="team_name",
    is_daily=False,
    columns=(
        Column(
            "method_name",
            Kind.TEXT,
            "served; kaplan_meier (as if nobody had left); submission_to_start.",
            choices=("served", "kaplan_meier", "submission_to_start"),
        ),
        Column(
            "grouping_name",
            Kind.TEXT,
            "What the row is of: all, all that ask for GPUs, a queue, a team, a shape, or each.",
            choices=("all", "gpu", "queue", "team", "shape", "each"),
        ),
        Column("queue_name", Kind.TEXT, "Queue; null: all of them.", nullable=True),
        Column("team_name", Kind.TEXT, "Team; null: all of them.", nullable=True),
        Column("gpu_shape_name", Kind.TEXT, "GPU shape; null: all of them.", nullable=True),
        Column("attempt_count", Kind.COUNT, "Attempts queued in the period.", minimum=0),
        Column("served_count", Kind.COUNT, "Served.", minimum=0),
        Column("left_count", Kind.COUNT, "Left unserved.", minimum=0),
        Column("still_waiting_count", Kind.COUNT, "Still waiting.", minimum=0),
        Column("mean_wait_seconds", Kind.RATIO, "Mean.", nullable=True),
        Column("p50_wait_seconds", Kind.RATIO, "Median; null: not reached.", nullable=True),
        Column("p75_wait_seconds", Kind.RATIO, "75 %.", nullable=True),
        Column("p90_wait_seconds", Kind.RATIO, "90 %.", nullable=True),
        Column("p95_wait_seconds", Kind.RATIO, "95 %.", nullable=True),
        Column(
            "p99_wait_seconds",
            Kind.RATIO,
            "99 %; none under 100 served (as if nobody had left: attempts).",
            nullable=True,
        ),
        Column("max_wait_seconds", Kind.RATIO, "Longest.", nullable=True),
        Column("waited_gpu_seconds", Kind.DECIMAL, "GPUs asked for x wait.", minimum=0),
    ),
)
"""Not stored: computed at read time for any period, by sql/view/queue_waits.sql."""
