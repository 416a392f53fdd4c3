"""Marts of single workloads and their pods: what is held before it works, and what a start takes.

Time and money of states are sums of the ledger; what components told stays in core_events.
"""

from models.core_columns import CLASS, GPU_SECONDS, MODEL, NODE, TEAM, WORKLOAD
from models.core_events import IMAGE_PULLS as PULLS
from models.states import STATES
from models.table import CLUSTER, DAY, Column, Kind, Table

BEFORE_WORK = ("starting", "gang_wait", "loading")
"""States of what is held and does not work yet, or not again yet."""
STARTING_CAUSES = tuple(dict.fromkeys(cause for state in BEFORE_WORK for cause in STATES[state]))
OUTCOMES = {
    "started": "all its GPU containers ran",
    "starting": "they had not all run when we last looked",
    "left": "it was gone before they did",
    "disordered": "a run is told for a time before the bind: clocks disagree",
    "unknown": "its source tells no starts",
}
NODE_NAME = Column("node_name", Kind.TEXT, "Its name.")
IMAGE = Column(
    "image_name",
    Kind.TEXT,
    "Image of the pod's first container with a GPU, as last observed, or __unknown__.",
)
POD = (
    Column("pod_uid", Kind.TEXT, "The pod."),
    Column("namespace_name", Kind.TEXT, "Its namespace."),
    Column("pod_name", Kind.TEXT, "Its name."),
)
WORKLOAD_NAME = Column("workload_name", Kind.TEXT, "Its workload's name.")
ASKED = Column("asked_micro_gpu", Kind.COUNT, "GPU share that the pod asks for.", minimum=0)


def _cost(name: str) -> Column:
    """What starting cost; null where it has time and none of it a price."""
    doc = "Cost of what has a price; null where it has time and none of it a price."
    return Column(name, Kind.DECIMAL, doc, nullable=True, minimum=0)


STARTUPS = Table(
    name="mart.startups",
    doc="What is held before it works, by day, team, class, node, GPU model, image and cause.",
    grain=(
        *("cluster_name", "day_on", "team_name", "workload_class", "node_uid"),
        *("gpu_model_name", "image_name", "state_name", "cause_name"),
    ),
    scope="team_name",
    columns=(
        CLUSTER,
        DAY,
        TEAM,
        CLASS,
        NODE,
        NODE_NAME,
        MODEL,
        IMAGE,
        Column("state_name", Kind.TEXT, "State.", choices=BEFORE_WORK),
        Column("cause_name", Kind.TEXT, "Cause within it.", choices=STARTING_CAUSES),
        Column("pod_count", Kind.COUNT, "Pods that were in it; each may be in others.", minimum=1),
        GPU_SECONDS,
        Column("unpriced_gpu_seconds", Kind.DECIMAL, "Of them without a price.", minimum=0),
        _cost("startup_cost"),
    ),
)

POD_STARTS = Table(
    name="mart.pod_starts",
    doc="From bind to the first run of each pod that holds GPUs, on the days that it starts on.",
    grain=("cluster_name", "day_on", "pod_uid"),
    scope="team_name",
    columns=(
        CLUSTER,
        DAY,
        *POD,
        TEAM,
        WORKLOAD,
        WORKLOAD_NAME,
        CLASS,
        NODE,
        NODE_NAME,
        MODEL,
        IMAGE,
        ASKED,
        Column("bound_at", Kind.INSTANT, "Bound to its node."),
        Column("bound_on", Kind.DAY, "The day of that."),
        Column("started_at", Kind.INSTANT, "All its GPU containers first ran.", nullable=True),
        Column("known_until_at", Kind.INSTANT, "What came later is not known."),
        Column("outcome_name", Kind.TEXT, "How it went.", choices=tuple(OUTCOMES)),
        Column(
            "start_seconds",
            Kind.COUNT,
            "Bind to first run, to its end, or to when we last looked; null: not to be told.",
            nullable=True,
            minimum=0,
        ),
        Column(
            "cause_name",
            Kind.TEXT,
            "Latest cause of starting that day; null: it was never starting.",
            nullable=True,
            choices=STATES["starting"],
        ),
        Column(
            "is_told",
            Kind.FLAG,
            "Whether an event of that day tells of its images, volumes or sandbox.",
        ),
        Column("gpu_seconds", Kind.DECIMAL, "Held that day, starting.", minimum=0),
        Column("unpriced_gpu_seconds", Kind.DECIMAL, "Of them without a price.", minimum=0),
        _cost("start_cost"),
    ),
)

IMAGE_PULLS = Table(
    name="mart.image_pulls",
    doc="Each pull of an image for a pod that holds GPUs: what was there already is none.",
    grain=PULLS.grain,
    scope="team_name",
    columns=(
        CLUSTER,
        DAY,
        *POD,
        TEAM,
        WORKLOAD,
        WORKLOAD_NAME,
        NODE_NAME,
        ASKED,
        *(
            PULLS.column(name)
            for name in (
                *("container_name", "image_name", "pull_number", "begun_at", "pulled_at"),
                *("pull_seconds", "queue_seconds", "total_seconds", "image_bytes", "failed_count"),
            )
        ),
    ),
    ranges=PULLS.ranges,
)

TABLES = (STARTUPS, POD_STARTS, IMAGE_PULLS)


def _quantile(name: str, doc: str) -> Column:
    return Column(f"{name}_start_seconds", Kind.RATIO, doc, nullable=True)


START_WAITS = Table(
    name="start_waits",
    doc="How long the pods bound in a period took to start, by image, node, GPU model and team.",
    grain=(
        *("grouping_name", "cluster_name", "image_name"),
        *("node_uid", "gpu_model_name", "team_name"),
    ),
    scope="team_name",
    is_daily=False,
    columns=(
        Column(
            "grouping_name",
            Kind.TEXT,
            "What the row is of: all, an image, a node, a GPU model, a team.",
            choices=("all", "image", "node", "model", "team"),
        ),
        Column("cluster_name", Kind.TEXT, "Cluster of a node; null: all of them.", nullable=True),
        Column("image_name", Kind.TEXT, "Image; null: all of them.", nullable=True),
        Column("node_uid", Kind.TEXT, "Node; null: all of them.", nullable=True),
        Column("gpu_model_name", Kind.TEXT, "GPU model; null: all of them.", nullable=True),
        Column("team_name", Kind.TEXT, "Team; null: all of them.", nullable=True),
        Column("pod_count", Kind.COUNT, "Pods bound in the period.", minimum=0),
        Column("started_count", Kind.COUNT, "Started: the percentiles are of these.", minimum=0),
        Column("starting_count", Kind.COUNT, "Not started yet.", minimum=0),
        Column("left_count", Kind.COUNT, "Gone before they started.", minimum=0),
        Column(
            "disordered_count",
            Kind.COUNT,
            "Clocks disagree: how long it took is not known.",
            minimum=0,
        ),
        Column("unknown_count", Kind.COUNT, "Their source tells no starts.", minimum=0),
        _quantile("mean", "Mean."),
        _quantile("p50", "Median."),
        _quantile("p75", "75 %."),
        _quantile("p90", "90 %."),
        _quantile("p95", "95 %."),
        _quantile("p99", "99 %; none under 100 that started."),
        _quantile("max", "Longest."),
    ),
)
"""Not stored: computed at read time for any period, by sql/view/start_waits.sql."""
