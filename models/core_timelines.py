"""Core tables of what happened to a pod, step by step, and of where the time until it works goes.

Who held what meanwhile is in core_time; what components told in words in core_events.
"""

from models.core_columns import ATTEMPT, WORKLOAD
from models.table import CLUSTER, DAY, Column, Kind, Table

STAGES = {
    "created": "its API server took it",
    "eligible": "nothing gates its scheduling (any more)",
    "quota_reserved": "its queue has quota for it",
    "admitted": "its queue lets it go",
    "bound": "a scheduler gave it a node",
    "sandbox_ready": "its sandbox and network stand",
    "pull_begun": "a kubelet asked for an image",
    "pulled": "the image is there",
    "init_done": "its init containers have finished",
    "container_started": "a container began to run",
    "container_ended": "a container's run ended",
    "ready": "Ready for the first time",
    "disrupted": "somebody took its place from it",
    "deletion_asked": "somebody asked for its deletion",
    "finished": "its last container ended for good",
    "gone": "it is no longer there",
}
"""In the order in which they mostly come; clocks of different machines may have it otherwise."""
SOURCES = ("object", "condition", "status", "event", "queue", "observed")

TIMELINES = Table(
    name="core.timelines",
    doc="The steps in the life of each pod, each by the source that is trusted most for it.",
    grain=(
        *("cluster_name", "day_on", "pod_uid"),
        *("stage_name", "container_name", "stage_number"),
    ),
    columns=(
        CLUSTER,
        DAY,
        Column("pod_uid", Kind.TEXT, "The pod."),
        WORKLOAD,
        ATTEMPT,
        Column("stage_name", Kind.TEXT, "The step.", choices=tuple(STAGES)),
        Column("container_name", Kind.TEXT, "The container; empty: the whole pod."),
        Column("stage_number", Kind.COUNT, "Its place among those of the day.", minimum=1),
        Column("stage_at", Kind.INSTANT, "When."),
        Column(
            "source_name",
            Kind.TEXT,
            "Who says so: the object itself, a condition, a container's status, an event, its "
            "queue, or nobody: it was observed.",
            choices=SOURCES,
        ),
        Column("detail_text", Kind.TEXT, "Where, why, by whom, as far as told.", nullable=True),
        Column(
            "is_disordered",
            Kind.FLAG,
            "It is told for a time before an earlier step: clocks differ. No duration counts it.",
        ),
    ),
)

TABLES = (TIMELINES,)
