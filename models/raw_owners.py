"""Raw tables of whose a pod is: the objects that own pods, and who created which of them.

What a pod's top-level object is belongs in `sql/core/owners.sql`; Kueue's objects in `raw_kueue`.
"""

from models.raw_columns import VERSION
from models.states import CLASSES
from models.table import CLUSTER, DAY, Column, Kind, Table

OWNER_VERSIONS = Table(
    name="raw.owner_versions",
    doc="Versions of objects that own pods in which anything kept changed; each at 00:00.",
    grain=("cluster_name", "day_on", "kind_name", "sequence_number"),
    columns=(
        *VERSION,
        Column("object_uid", Kind.TEXT, "The object, for ever."),
        Column("kind_name", Kind.TEXT, "Its kind; Volcano's Job is VolcanoJob."),
        Column("namespace_name", Kind.TEXT, "Its namespace."),
        Column("object_name", Kind.TEXT, "Its name."),
        Column("created_at", Kind.INSTANT, "When the API accepted it."),
        Column(
            "is_creation_seen",
            Kind.FLAG,
            "It was observed within a minute of its creation: nothing of it came before.",
        ),
        Column("submitted_at", Kind.INSTANT, "Submission, from an annotation.", nullable=True),
        Column("owner_kind_name", Kind.TEXT, "Kind of its controlling owner.", nullable=True),
        Column("owner_name", Kind.TEXT, "Name of its controlling owner.", nullable=True),
        Column("owner_uid", Kind.TEXT, "Uid of its controlling owner.", nullable=True),
        Column(
            "workload_kind_name",
            Kind.TEXT,
            "Kind of the top-level object as far as it tells itself: its owner, else it.",
        ),
        Column("workload_name", Kind.TEXT, "Name of that object."),
        Column("workload_key_uid", Kind.TEXT, "Its uid, else kind/namespace/name."),
        Column("workload_class", Kind.TEXT, "What sort of work that is.", choices=CLASSES),
        Column("is_service", Kind.FLAG, "Whether each replica of that is an attempt of its own."),
        Column("labels_json", Kind.TEXT, "Its labels, as a JSON object."),
        Column("queue_name", Kind.TEXT, "Queue named on it.", nullable=True),
        Column("user_name", Kind.TEXT, "Who submitted it, if an annotation says.", nullable=True),
        Column("account_name", Kind.TEXT, "Account, if an annotation says.", nullable=True),
        Column("gang_size_count", Kind.COUNT, "Pods that start together.", nullable=True),
        Column("gang_source_name", Kind.TEXT, "Where that size comes from.", nullable=True),
        Column("is_suspended", Kind.FLAG, "spec.suspend.", nullable=True),
        Column("started_at", Kind.INSTANT, "When it says that it began (again).", nullable=True),
        Column("finished_at", Kind.INSTANT, "When it says that it ended.", nullable=True),
        Column("end_name", Kind.TEXT, "The condition or phase that ended it.", nullable=True),
        Column(
            "deleted_at",
            Kind.INSTANT,
            "Memory of a CARRIED row: when it was deleted, while pods of it are there.",
            nullable=True,
        ),
        Column(
            "creator_name",
            Kind.TEXT,
            "Memory of a CARRIED row: who created it, by the audit log.",
            nullable=True,
        ),
        Column(
            "first_queued_at",
            Kind.INSTANT,
            "Memory of a CARRIED row: the first attempt under it entered the queue.",
            nullable=True,
        ),
    ),
)

OBJECT_CREATIONS = Table(
    name="raw.object_creations",
    doc="Workload objects that people created, by the API server's audit log.",
    grain=("cluster_name", "day_on", "audit_id"),
    columns=(
        CLUSTER,
        DAY,
        Column("audit_id", Kind.TEXT, "The request; all its stages and servers name it."),
        Column("source_ref", Kind.TEXT, "File and line of its last stage."),
        Column("created_at", Kind.INSTANT, "The request was received."),
        Column("answered_at", Kind.INSTANT, "It was answered."),
        Column("kind_name", Kind.TEXT, "Kind of what was created."),
        Column("namespace_name", Kind.TEXT, "Its namespace."),
        Column("object_name", Kind.TEXT, "Its name."),
        Column("object_uid", Kind.TEXT, "Its uid, if the log keeps answers.", nullable=True),
        Column("verb_name", Kind.TEXT, "What was asked of the API."),
        Column("user_name", Kind.TEXT, "Who asked: whom it was asked as, else the caller."),
        Column("caller_name", Kind.TEXT, "The caller, where another was named.", nullable=True),
    ),
    ranges=(("created_at", "answered_at"),),
)
