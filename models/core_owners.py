"""Core tables of whose a pod is: owners up to the top, each pod's own life, the team that pays."""

from models.core_columns import CLASS, WORKLOAD
from models.table import CLUSTER, DAY, Column, Kind, Table

OWNERS = Table(
    name="core.owners",
    doc="Each object that owns pods, and the top-level object above it, as known that day.",
    grain=("cluster_name", "day_on", "object_uid"),
    columns=(
        CLUSTER,
        DAY,
        Column("object_uid", Kind.TEXT, "The object."),
        Column("kind_name", Kind.TEXT, "Its kind."),
        Column("namespace_name", Kind.TEXT, "Its namespace."),
        Column("object_name", Kind.TEXT, "Its name."),
        Column("created_at", Kind.INSTANT, "Created."),
        Column("deleted_at", Kind.INSTANT, "Deleted.", nullable=True),
        Column("first_queued_at", Kind.INSTANT, "Tried on an earlier day, first.", nullable=True),
        Column("creator_name", Kind.TEXT, "Who created it, if a person did.", nullable=True),
        Column("owners", Kind.OWNERS, "It, and all above it as far as known."),
        Column("depth_count", Kind.COUNT, "Recorded objects above it.", minimum=0),
        Column("is_top_recorded", Kind.FLAG, "The top itself was recorded, not only its name."),
        Column("workload_kind_name", Kind.TEXT, "Kind of the top-level object."),
        Column("workload_name", Kind.TEXT, "Name of the top-level object."),
        WORKLOAD,
        CLASS,
        Column("is_service", Kind.FLAG, "Whether each replica is an attempt of its own."),
        Column(
            "top_created_at", Kind.INSTANT, "The top was made, if that was seen.", nullable=True
        ),
        Column(
            "top_first_queued_at",
            Kind.INSTANT,
            "The top was tried on an earlier day, first.",
            nullable=True,
        ),
        Column("submitted_at", Kind.INSTANT, "Submitted, if an annotation says.", nullable=True),
        Column("queue_name", Kind.TEXT, "The nearest queue named above it.", nullable=True),
        Column("user_name", Kind.TEXT, "Who submitted the top.", nullable=True),
        Column("account_name", Kind.TEXT, "Account.", nullable=True),
        Column("gang_size_count", Kind.COUNT, "Pods that start together.", nullable=True),
        Column("gang_source_name", Kind.TEXT, "Where that size comes from.", nullable=True),
    ),
)

POD_LIVES = Table(
    name="core.pod_lives",
    doc="When each pod seen that day was bound, ran and ended, and whose it is by its owners.",
    grain=("cluster_name", "day_on", "pod_uid"),
    columns=(
        CLUSTER,
        DAY,
        Column("pod_uid", Kind.TEXT, "The pod, for ever."),
        Column("namespace_name", Kind.TEXT, "Its namespace."),
        Column("workload_kind_name", Kind.TEXT, "Kind of the top-level object."),
        Column("workload_name", Kind.TEXT, "Name of the top-level object."),
        WORKLOAD,
        CLASS,
        Column("is_service", Kind.FLAG, "Whether each replica is an attempt of its own."),
        Column("owners", Kind.OWNERS, "All that is above it, lowest first."),
        Column("is_chain_recorded", Kind.FLAG, "By recorded owners; else by labels."),
        Column("queue_name", Kind.TEXT, "Queue named on it or above it.", nullable=True),
        Column("user_name", Kind.TEXT, "Who submitted it.", nullable=True),
        Column("account_name", Kind.TEXT, "Account.", nullable=True),
        Column("gang_name", Kind.TEXT, "PodGroup or pod group it belongs to.", nullable=True),
        Column("gang_size_count", Kind.COUNT, "Members that start together.", nullable=True),
        Column("gang_source_name", Kind.TEXT, "Where that size comes from.", nullable=True),
        Column("created_at", Kind.INSTANT, "Created."),
        Column("submitted_at", Kind.INSTANT, "Submitted, if stated.", nullable=True),
        Column("top_created_at", Kind.INSTANT, "Its top was made, if seen.", nullable=True),
        Column(
            "top_first_queued_at",
            Kind.INSTANT,
            "Its top was tried on an earlier day, first.",
            nullable=True,
        ),
        Column("bound_at", Kind.INSTANT, "Bound to a node.", nullable=True),
        Column("node_name", Kind.TEXT, "That node's name.", nullable=True),
        Column("first_started_at", Kind.INSTANT, "All GPU containers first ran.", nullable=True),
        Column("first_ready_at", Kind.INSTANT, "Ready for the first time.", nullable=True),
        Column("deletion_asked_at", Kind.INSTANT, "Deletion first asked for.", nullable=True),
        Column("finished_at", Kind.INSTANT, "Ended in a terminal phase.", nullable=True),
        Column("deleted_at", Kind.INSTANT, "Really removed.", nullable=True),
        Column("ended_at", Kind.INSTANT, "The earlier of finished and removed.", nullable=True),
        Column("gone_at", Kind.INSTANT, "The earliest of deletion asked and ended.", nullable=True),
        Column("reason_name", Kind.TEXT, "Its last status reason.", nullable=True),
        Column("disruption_name", Kind.TEXT, "Why it was disrupted.", nullable=True),
        Column("is_refused", Kind.FLAG, "The kubelet refused it: it held nothing."),
        Column("restart_count", Kind.COUNT, "Restarts of its containers.", minimum=0),
        Column("known_queued_at", Kind.INSTANT, "Its attempt's, of a day before.", nullable=True),
        Column("known_created_at", Kind.INSTANT, "Its attempt's, of a day before.", nullable=True),
        Column("known_team_name", Kind.TEXT, "Its team, of a day before.", nullable=True),
        Column("bind_sequence_number", Kind.COUNT, "The version that bound it, or its last."),
        Column("last_sequence_number", Kind.COUNT, "Its last version of the day."),
    ),
)

OBJECT_TEAMS = Table(
    name="core.object_teams",
    doc="The team that the rules give each pod at its bind, and each Kueue Workload.",
    grain=("cluster_name", "day_on", "object_uid"),
    columns=(
        CLUSTER,
        DAY,
        Column("object_uid", Kind.TEXT, "The pod or Workload; without a row no rule matches."),
        Column("team_name", Kind.TEXT, "The team."),
    ),
)

TABLES = (OWNERS, POD_LIVES, OBJECT_TEAMS)
