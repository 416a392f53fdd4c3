"""Core tables of what components told: events, reasons for waiting, image pulls, disruptions.

What was read is in raw_events. Who held what, and for how long, is in core_time.
"""

from models.core_columns import WORKLOAD
from models.raw_events import REASONS, SECTIONS
from models.table import CLUSTER, DAY, Column, Kind, Table

OBJECT = (
    Column("object_kind_name", Kind.TEXT, "Kind of the object."),
    Column("object_namespace_name", Kind.TEXT, "Its namespace.", nullable=True),
    Column("object_name", Kind.TEXT, "Its name."),
    Column("object_uid", Kind.TEXT, "Its uid; null: the component left it out.", nullable=True),
)
OBJECT_KEY = ("object_kind_name", "object_namespace_name", "object_name", "object_uid")
ITS_WORKLOAD = Column(
    "workload_key_uid", Kind.TEXT, f"{WORKLOAD.doc} Null: not known.", nullable=True
)

WAITING_REASONS = {
    **REASONS,
    "resource_full": "nodes have the resource, and too little of it is free on at least one",
    "resource_absent": "no node of that day ever had the resource",
    "resource_elsewhere": "all nodes counted may be such that never have it: others do",
}
"""`resource_short` is left where no node told its resources, and of an autoscaler's own nodes."""

EVENTS = Table(
    name="core.events",
    doc="What components told of an object on a day: how often each kind of text, and the latest.",
    grain=(
        *("cluster_name", "day_on", *OBJECT_KEY, "container_name"),
        *("reason_name", "type_name", "component_name", "text_pattern_name"),
    ),
    columns=(
        CLUSTER,
        DAY,
        *OBJECT,
        Column("container_name", Kind.TEXT, "Its container.", nullable=True),
        Column("reason_name", Kind.TEXT, "The component's word; several use the same ones."),
        Column("type_name", Kind.TEXT, "Normal or Warning; Normal may be bad news, too."),
        Column("component_name", Kind.TEXT, "Who tells it.", nullable=True),
        Column(
            "text_pattern_name",
            Kind.TEXT,
            "The kind of text: uids written as <uid> and other numbers as #.",
        ),
        Column(
            "event_count",
            Kind.COUNT,
            "How often that day, at least: recorders write counts late (a series up to 30 minutes) "
            "and drop repeats of one object beyond 25 and one in 5 minutes.",
            minimum=1,
        ),
        Column("first_at", Kind.INSTANT, "First time, by the component's clock."),
        Column("last_at", Kind.INSTANT, "Last time, by the component's clock."),
        Column(
            "is_combined",
            Kind.FLAG,
            "Counted together with similar texts by the component (it says so).",
        ),
        Column("latest_text", Kind.TEXT, "The latest text itself."),
        Column("source_ref", Kind.TEXT, "Where that is to be read again."),
    ),
    ranges=(("first_at", "last_at"),),
)

SCHEDULING_REASONS = Table(
    name="core.scheduling_reasons",
    doc="Why an object waited on a day, as schedulers and queues said: reason by reason.",
    grain=(
        *("cluster_name", "day_on", *OBJECT_KEY, "source_name", "section_name", "reason_name"),
        *("resource_name", "taint_text", "pod_set_name", "flavor_name", "text_pattern_name"),
    ),
    columns=(
        CLUSTER,
        DAY,
        *OBJECT,
        ITS_WORKLOAD,
        Column(
            "source_name",
            Kind.TEXT,
            "condition: the current truth, in full. event: what was told, up to 1,024 characters.",
            choices=("condition", "event"),
        ),
        Column(
            "section_name",
            Kind.TEXT,
            "scheduling: why it waits; preemption: what that would do; scale_up: what an "
            "autoscaler says of the nodes it could add. Their counts never add up.",
            choices=SECTIONS,
        ),
        Column("is_preemption", Kind.FLAG, "The text is about preemption: it adds no reason."),
        Column("reason_name", Kind.TEXT, "The reason.", choices=tuple(WAITING_REASONS)),
        Column("resource_name", Kind.TEXT, "The resource asked for.", nullable=True),
        Column("taint_text", Kind.TEXT, "The taint, as written.", nullable=True),
        Column("pod_set_name", Kind.TEXT, "Kueue's pod set.", nullable=True),
        Column("flavor_name", Kind.TEXT, "Kueue's flavor.", nullable=True),
        Column("text_pattern_name", Kind.TEXT, "The kind of text, its numbers as #."),
        Column(
            "node_count",
            Kind.COUNT,
            "Nodes counted under it, as last told. A node may be counted under several reasons.",
            nullable=True,
            minimum=0,
        ),
        Column("total_node_count", Kind.COUNT, "Nodes looked at, as last told.", nullable=True),
        Column(
            "advertising_node_count",
            Kind.COUNT,
            "Nodes that had the resource that day; null: no node told its resources.",
            nullable=True,
            minimum=0,
        ),
        Column(
            "missing_count",
            Kind.COUNT,
            "How many more are needed, as last told: of the resource, else of the gang's members.",
            nullable=True,
        ),
        Column(
            "told_count",
            Kind.COUNT,
            "How often it was told that day, at least; of a condition, how often it came up.",
            minimum=1,
        ),
        Column("first_at", Kind.INSTANT, "First told."),
        Column(
            "last_at",
            Kind.INSTANT,
            "Last told; of a condition, until when it stood.",
        ),
        Column(
            "is_current",
            Kind.FLAG,
            "It still stands at the window's end; null: only events tell, which cannot know.",
            nullable=True,
        ),
        Column(
            "is_cut",
            Kind.FLAG,
            "The latest text breaks off: there may be further reasons, even the true one.",
        ),
        Column("latest_text", Kind.TEXT, "The latest words of this reason."),
        Column("source_ref", Kind.TEXT, "Where they are to be read again."),
    ),
    ranges=(("first_at", "last_at"),),
)

IMAGE_PULLS = Table(
    name="core.image_pulls",
    doc="Each pull of an image for a container of a pod, as the kubelet told it.",
    grain=(*("cluster_name", "day_on", "pod_uid", "container_name", "image_name", "pull_number"),),
    columns=(
        CLUSTER,
        DAY,
        Column("pod_uid", Kind.TEXT, "The pod."),
        Column("namespace_name", Kind.TEXT, "Its namespace.", nullable=True),
        Column("pod_name", Kind.TEXT, "Its name."),
        ITS_WORKLOAD,
        Column("container_name", Kind.TEXT, "The container; __unknown__ where it is not told."),
        Column("image_name", Kind.TEXT, "The image, as the pod names it."),
        Column("pull_number", Kind.COUNT, "Its place among those of the day.", minimum=1),
        Column("node_name", Kind.TEXT, "The node.", nullable=True),
        Column(
            "begun_at",
            Kind.INSTANT,
            "Asked for: the event Pulling, else the end less the time taken.",
            nullable=True,
        ),
        Column("pulled_at", Kind.INSTANT, "Done; null: not that day.", nullable=True),
        Column(
            "pull_seconds",
            Kind.DECIMAL,
            "Pulling alone; of old kubelets the only time told, which may include waiting.",
            nullable=True,
            minimum=0,
        ),
        Column(
            "queue_seconds",
            Kind.DECIMAL,
            "Waiting for other pulls of the node; null: not told apart.",
            nullable=True,
            minimum=0,
        ),
        Column(
            "total_seconds",
            Kind.DECIMAL,
            "Both, as told; else from begun to pulled, of clocks of whole seconds.",
            nullable=True,
            minimum=0,
        ),
        Column("image_bytes", Kind.COUNT, "Size of the image.", nullable=True, minimum=0),
        Column("is_cached", Kind.FLAG, "It was there already: nothing was pulled."),
        Column("failed_count", Kind.COUNT, "Failed tries of the day, on its first row.", minimum=0),
        Column("source_ref", Kind.TEXT, "Where it is to be read again."),
    ),
    ranges=(("begun_at", "pulled_at"),),
)

WAYS = {
    "preempted_by_scheduler": "a scheduler made room for a pod of higher priority",
    "preempted_by_queue": "Kueue made room for another workload",
    "evicted_by_queue": "Kueue took the admission back for another reason",
    "evicted_by_api": "somebody asked for the eviction: a drain, a descheduler",
    "evicted_by_kubelet": "the kubelet ended it: pressure, shutdown, a critical pod",
    "evicted_by_taint": "a taint of its node or device that it does not tolerate",
    "removed_with_node": "its node is gone",
    "other": "another reason of DisruptionTarget",
}

DISRUPTIONS = Table(
    name="core.disruptions",
    doc="Who lost its place on a day, how, and for whom: pods, and workloads of a queue.",
    grain=(
        *("cluster_name", "day_on", "victim_kind_name", "victim_uid"),
        *("way_name", "disrupted_at", "by_uid"),
    ),
    columns=(
        CLUSTER,
        DAY,
        Column("victim_kind_name", Kind.TEXT, "Pod, or Kueue's Workload."),
        Column("victim_uid", Kind.TEXT, "Its uid."),
        Column("victim_namespace_name", Kind.TEXT, "Its namespace.", nullable=True),
        Column("victim_name", Kind.TEXT, "Its name."),
        ITS_WORKLOAD,
        Column("node_name", Kind.TEXT, "The node that a pod was on.", nullable=True),
        Column("disrupted_at", Kind.INSTANT, "When."),
        Column("way_name", Kind.TEXT, "How.", choices=tuple(WAYS)),
        Column("reason_name", Kind.TEXT, "The component's word for it."),
        Column("component_name", Kind.TEXT, "Who did it, where an event tells.", nullable=True),
        Column("cause_text", Kind.TEXT, "Why, in its words.", nullable=True),
        Column("by_kind_name", Kind.TEXT, "For whom: Pod or Workload.", nullable=True),
        Column("by_uid", Kind.TEXT, "Its uid, as the event names it.", nullable=True),
        Column("by_namespace_name", Kind.TEXT, "Its namespace, if known.", nullable=True),
        Column("by_name", Kind.TEXT, "Its name, if known.", nullable=True),
        Column(
            "by_workload_key_uid",
            Kind.TEXT,
            "Workload that it belongs to, if known.",
            nullable=True,
        ),
        Column("disruption_count", Kind.COUNT, "How often, at least.", minimum=1),
        Column("source_ref", Kind.TEXT, "Where it is to be read again."),
    ),
)

TABLES = (EVENTS, SCHEDULING_REASONS, IMAGE_PULLS, DISRUPTIONS)
