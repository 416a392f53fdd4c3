"""Raw events: what components told of an object, and what schedulers' texts give as reasons.

Counts of a day and who preempted whom are concluded in `core_events`.
"""

from models.table import CLUSTER, DAY, Column, Kind, Table

TEXT_LENGTH = 2048
"""A message is kept up to so many characters."""

SECTIONS = ("scheduling", "preemption", "scale_up")
"""Where a reason stands: why no node fits, what preemption would do, what an autoscaler says."""

REASONS = {
    "resource_short": "nodes lack what is asked of a resource; whether they have it is not known",
    "too_many_pods": "nodes have as many pods as they take",
    "taint": "nodes, or a flavor, have a taint that is not tolerated",
    "affinity": "node selector, affinity or anti-affinity, of nodes or pods",
    "unschedulable": "nodes are cordoned",
    "topology_spread": "topology spread constraints",
    "topology": "the queue finds no place for it in the topology",
    "volume": "volumes and their claims",
    "claim": "resource claims (DRA)",
    "ports": "host ports are taken",
    "node_unfit": "nodes are not ready, under pressure or held to be bad",
    "no_nodes": "there are no nodes at all",
    "gang": "the gang is not complete",
    "placeable": "a node is found: it waits for its peers or for what is being released",
    "deleting": "it is being deleted already",
    "gated": "scheduling gates: a queue has not let it in",
    "quota_full": "quota is in use by others",
    "quota_never": "more than the quota can ever give",
    "queue_unusable": "the queue is stopped, inactive or missing",
    "overtaken": "another workload was taken in the same round",
    "preempted": "it was preempted and waits again",
    "pods_not_ready": "its pods were not ready in time, and it waits again",
    "preemption_pending": "it waits for what it has preempted",
    "preemption_useless": "preemption would not help on these nodes",
    "no_victims": "there is nothing to preempt on these nodes",
    "preemption_not_eligible": "it may not preempt, or has already",
    "cut": "the text breaks off in it; no count is known",
    "other": "a text that we do not know",
}
"""What a text of a scheduler or a queue may mean; core tells `resource_short` apart further."""

UNSCHEDULED_REASONS = Column(
    "scheduling_reasons",
    Kind.REASONS,
    "That text as reasons; null: there is no such text.",
    nullable=True,
)

UNSCHEDULED = (
    Column("unscheduled_reason_name", Kind.TEXT, "Reason of what says so.", nullable=True),
    Column(
        "unscheduled_text",
        Kind.TEXT,
        "Why it is not scheduled now, in full, while the source says so.",
        nullable=True,
    ),
    UNSCHEDULED_REASONS,
)
"""What an object says of its wait: a pod by PodScheduled, a PodGroup by Unschedulable."""

EVENT_VERSIONS = Table(
    name="raw.event_versions",
    doc="Each event and day, one row for all versions in a row that differ in time and count only.",
    grain=("cluster_name", "day_on", "sequence_number"),
    columns=(
        CLUSTER,
        DAY,
        Column("sequence_number", Kind.COUNT, "Order of the latest version in the day.", minimum=0),
        Column("observed_at", Kind.INSTANT, "When the latest version was read."),
        Column(
            "change_name",
            Kind.TEXT,
            "What the source said of the first version. That an event expires is no news.",
            choices=("LISTED", "ADDED", "MODIFIED"),
        ),
        Column("source_ref", Kind.TEXT, "File and line to read the latest version again."),
        Column("event_uid", Kind.TEXT, "The event object, which repeats are written to."),
        Column("object_kind_name", Kind.TEXT, "Kind of the object that it is about."),
        Column("object_namespace_name", Kind.TEXT, "Its namespace.", nullable=True),
        Column("object_name", Kind.TEXT, "Its name, as the component spells it."),
        Column("object_uid", Kind.TEXT, "Its uid; some components leave it out.", nullable=True),
        Column("container_name", Kind.TEXT, "Its container, from the field path.", nullable=True),
        Column("related_kind_name", Kind.TEXT, "Kind of a second object.", nullable=True),
        Column("related_uid", Kind.TEXT, "Uid of a second object.", nullable=True),
        Column("reason_name", Kind.TEXT, "The component's word; several use the same ones."),
        Column("type_name", Kind.TEXT, "Normal or Warning; empty: not told."),
        Column("action_name", Kind.TEXT, "What the component was doing.", nullable=True),
        Column("component_name", Kind.TEXT, "Who tells it.", nullable=True),
        Column("host_name", Kind.TEXT, "The component's host or instance.", nullable=True),
        Column("message_text", Kind.TEXT, f"The text, up to {TEXT_LENGTH} characters."),
        Column("is_cut", Kind.FLAG, "The text was longer than that."),
        Column(
            "first_at",
            Kind.INSTANT,
            "When it first happened, by the component's clock: firstTimestamp, else eventTime, "
            "else the creation; of a later text of one event, when that was first told. Where the "
            "component's first is after its last, the two have changed places.",
        ),
        Column(
            "last_at",
            Kind.INSTANT,
            "When it last happened: of a series its last observation, else lastTimestamp, else "
            "eventTime, else firstTimestamp, else the creation.",
        ),
        Column(
            "total_count",
            Kind.COUNT,
            "How often it has happened since the event was made, at least: recorders write late, "
            "drop repeats, and count similar texts together.",
            minimum=1,
        ),
        Column(
            "before_count",
            Kind.COUNT,
            "How much of it is known to be of earlier days, or of the row before.",
            minimum=0,
        ),
        Column("image_name", Kind.TEXT, "Image, of events about pulling one.", nullable=True),
        Column(
            "pull_seconds",
            Kind.DECIMAL,
            "The time that pulling took, to the microsecond.",
            nullable=True,
            minimum=0,
        ),
        Column(
            "waited_seconds",
            Kind.DECIMAL,
            "The same with the wait for other pulls of the node.",
            nullable=True,
            minimum=0,
        ),
        Column("image_bytes", Kind.COUNT, "Size of the image.", nullable=True, minimum=0),
        Column("is_cached", Kind.FLAG, "It was there already.", nullable=True),
        Column(
            "scheduling_reasons",
            Kind.REASONS,
            "What a scheduler or queue says of a wait, as reasons; null: it is not about one.",
            nullable=True,
        ),
    ),
    ranges=(("first_at", "last_at"),),
)

TABLES = (EVENT_VERSIONS,)
