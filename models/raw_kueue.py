"""Raw tables of Kueue: what each Workload said of its queue, its quota and its end.

What follows from a Workload's history belongs in `sql/core/admissions.sql`.
"""

from models.raw_columns import VERSION
from models.raw_events import UNSCHEDULED_REASONS
from models.states import CLASSES
from models.table import Column, Kind, Table


def _condition(name: str, told: str) -> tuple[Column, ...]:
    """Whether a condition is True, and since when it is as it is."""
    return (
        Column(f"is_{name}", Kind.FLAG, f"Condition {told} is True; null: not told.", True),
        Column(f"{name}_at", Kind.INSTANT, f"{told} became as it is.", nullable=True),
    )


WORKLOAD_VERSIONS = Table(
    name="raw.workload_versions",
    doc="Versions of Kueue Workloads in which anything kept changed, and each at 00:00.",
    grain=("cluster_name", "day_on", "sequence_number"),
    columns=(
        *VERSION,
        Column("workload_uid", Kind.TEXT, "The Workload, for ever."),
        Column("namespace_name", Kind.TEXT, "Its namespace."),
        Column("object_name", Kind.TEXT, "Its name: never to be taken apart."),
        Column("created_at", Kind.INSTANT, "When it entered the queue first."),
        Column("submitted_at", Kind.INSTANT, "Submission, from an annotation.", nullable=True),
        Column("owners", Kind.OWNERS, "All its owners; pods of a pod group are many."),
        Column("owner_kind_name", Kind.TEXT, "Kind of what controls it.", nullable=True),
        Column("owner_name", Kind.TEXT, "Name of what controls it.", nullable=True),
        Column("owner_uid", Kind.TEXT, "Uid of what controls it.", nullable=True),
        Column("workload_kind_name", Kind.TEXT, "Kind of the top-level object, by its owner."),
        Column("workload_name", Kind.TEXT, "Name of that object."),
        Column("workload_key_uid", Kind.TEXT, "Its uid, else kind/namespace/name."),
        Column("workload_class", Kind.TEXT, "What sort of work that is.", choices=CLASSES),
        Column("is_service", Kind.FLAG, "Whether each replica of that is an attempt of its own."),
        Column("queue_name", Kind.TEXT, "LocalQueue.", nullable=True),
        Column("cluster_queue_name", Kind.TEXT, "ClusterQueue that admitted it.", nullable=True),
        Column("user_name", Kind.TEXT, "Who submitted it, if an annotation says.", nullable=True),
        Column("account_name", Kind.TEXT, "Account, if an annotation says.", nullable=True),
        Column("priority_number", Kind.COUNT, "Priority.", nullable=True),
        Column("is_active", Kind.FLAG, "spec.active: else it is kept out of the queue."),
        Column("pod_sets_json", Kind.TEXT, "Pod sets: name, count, minCount, GPUs of a pod."),
        Column("pod_count", Kind.COUNT, "Pods of them, at least as many as start.", minimum=0),
        Column("requests", Kind.REQUESTS, "Accelerators that they ask for in all."),
        Column("pod_requests", Kind.REQUESTS, "And each pod of the set that asks for most."),
        Column("asked_gpu_model_name", Kind.TEXT, "Model asked for.", nullable=True),
        Column("labels_json", Kind.TEXT, "Labels of the first pod set that asks for GPUs."),
        *_condition("quota_reserved", "QuotaReserved"),
        Column("pending_reason_name", Kind.TEXT, "Why QuotaReserved is False.", nullable=True),
        Column("pending_text", Kind.TEXT, "Its message.", nullable=True),
        UNSCHEDULED_REASONS,
        *_condition("admitted", "Admitted"),
        *_condition("pods_ready", "PodsReady"),
        *_condition("evicted", "Evicted"),
        Column("eviction_reason_name", Kind.TEXT, "Why Evicted is True.", nullable=True),
        Column("eviction_text", Kind.TEXT, "Its message.", nullable=True),
        *_condition("preempted", "Preempted"),
        Column("preemption_reason_name", Kind.TEXT, "Why Preempted is True.", nullable=True),
        Column("preemptor_uid", Kind.TEXT, "The Workload it made room for.", nullable=True),
        Column("preemptor_job_uid", Kind.TEXT, "The owner of that Workload.", nullable=True),
        *_condition("requeued", "Requeued"),
        *_condition("finished", "Finished"),
        Column("finish_reason_name", Kind.TEXT, "Why Finished is True.", nullable=True),
        Column("requeue_count", Kind.COUNT, "Times it was put back.", nullable=True, minimum=0),
        Column("requeue_at", Kind.INSTANT, "Kept out of the queue until then.", nullable=True),
        Column("eviction_count", Kind.COUNT, "Evictions it counts.", nullable=True, minimum=0),
        Column("checks_json", Kind.TEXT, "Admission checks: name, state, since when."),
        Column(
            "attempt_number",
            Kind.COUNT,
            "Memory of a CARRIED row: the attempt that it is of, counted from 1.",
            nullable=True,
        ),
        Column(
            "attempt_queued_at",
            Kind.INSTANT,
            "Memory of a CARRIED row: that attempt has waited for quota since.",
            nullable=True,
        ),
        Column(
            "attempt_submitted_at",
            Kind.INSTANT,
            "Memory of a CARRIED row: that attempt began.",
            nullable=True,
        ),
        Column(
            "attempt_eligible_at",
            Kind.INSTANT,
            "Memory of a CARRIED row: that attempt could first be given quota.",
            nullable=True,
        ),
        Column(
            "is_queued_known",
            Kind.FLAG,
            "Memory of a CARRIED row: whether that attempt's queue entry was observed.",
            nullable=True,
        ),
        Column(
            "attempt_released_at",
            Kind.INSTANT,
            "Memory of a CARRIED row: that attempt has lost its quota, and has pods still.",
            nullable=True,
        ),
        Column(
            "deleted_at",
            Kind.INSTANT,
            "Memory of a CARRIED row: the Workload was deleted, and has pods still.",
            nullable=True,
        ),
        Column(
            "attempt_pods_ready_at",
            Kind.INSTANT,
            "Memory of a CARRIED row: its pods were first ready in that attempt.",
            nullable=True,
        ),
    ),
)
