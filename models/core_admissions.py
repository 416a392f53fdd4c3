"""Core tables of Kueue: quota attempts, whose pods are in which, quota that is held idle."""

from models.core_columns import (
    ATTEMPT,
    BEGIN,
    CLASS,
    END,
    QUOTA_ATTEMPT,
    QUOTA_WORKLOAD,
    SPAN,
    WORKLOAD,
)
from models.table import CLUSTER, DAY, Column, Kind, Table

ADMISSIONS = Table(
    name="core.admissions",
    doc="Each quota attempt of a Kueue Workload, from entering the queue to its end.",
    grain=("cluster_name", "day_on", "workload_uid", "attempt_number"),
    columns=(
        CLUSTER,
        DAY,
        Column("workload_uid", Kind.TEXT, "The Kueue Workload."),
        Column("attempt_number", Kind.COUNT, "Its attempt, counted from 1.", minimum=1),
        ATTEMPT,
        Column("namespace_name", Kind.TEXT, "Its namespace."),
        Column("object_name", Kind.TEXT, "The Workload's name."),
        Column("owner_kind_name", Kind.TEXT, "Kind of what controls it.", nullable=True),
        Column("owner_name", Kind.TEXT, "Name of what controls it.", nullable=True),
        Column("owner_uid", Kind.TEXT, "Uid of what controls it.", nullable=True),
        Column("workload_kind_name", Kind.TEXT, "Kind of the top-level object."),
        Column("workload_name", Kind.TEXT, "Name of the top-level object."),
        WORKLOAD,
        CLASS,
        Column("is_service", Kind.FLAG, "Whether each replica is an attempt of its own."),
        Column("queue_name", Kind.TEXT, "ClusterQueue, else LocalQueue.", nullable=True),
        Column("user_name", Kind.TEXT, "Who submitted it.", nullable=True),
        Column("pod_count", Kind.COUNT, "Pods of its pod sets that start together.", minimum=0),
        Column("asked_micro_gpu", Kind.COUNT, "GPU share of all its pod sets.", minimum=0),
        Column("pod_micro_gpu", Kind.COUNT, "Of a pod of the largest.", minimum=0),
        Column("asked_gpu_model_name", Kind.TEXT, "Model asked for.", nullable=True),
        Column(
            "attempt_queued_at",
            Kind.INSTANT,
            "The attempt began: the first one of a workload with its submission.",
        ),
        Column(
            "queued_at",
            Kind.INSTANT,
            "Kueue's queue has it: the Workload's creation, or the release before.",
        ),
        Column(
            "eligible_at",
            Kind.INSTANT,
            "It could be given quota: queued, and active; none: it is not active.",
            nullable=True,
        ),
        Column("quota_reserved_at", Kind.INSTANT, "QuotaReserved became True.", nullable=True),
        Column("admitted_at", Kind.INSTANT, "Admitted became True.", nullable=True),
        Column("pods_ready_at", Kind.INSTANT, "PodsReady became True in it.", nullable=True),
        Column("evicted_at", Kind.INSTANT, "Evicted became True.", nullable=True),
        Column("eviction_reason_name", Kind.TEXT, "Why.", nullable=True),
        Column("preemption_reason_name", Kind.TEXT, "How it was preempted.", nullable=True),
        Column("eviction_text", Kind.TEXT, "The message.", nullable=True),
        Column("preemptor_uid", Kind.TEXT, "The Workload it made room for.", nullable=True),
        Column("preemptor_job_uid", Kind.TEXT, "The owner of that Workload.", nullable=True),
        Column("quota_released_at", Kind.INSTANT, "QuotaReserved became False.", nullable=True),
        Column("finished_at", Kind.INSTANT, "Finished became True: quota is free.", nullable=True),
        Column("finish_reason_name", Kind.TEXT, "Succeeded, Failed or why else.", nullable=True),
        Column("deleted_at", Kind.INSTANT, "The Workload was deleted.", nullable=True),
        Column(
            "ended_at", Kind.INSTANT, "The earliest of released, finished, deleted.", nullable=True
        ),
        Column(
            "is_queued_known",
            Kind.FLAG,
            "Its queue entry was observed or told; else it waited at most since queued_at.",
        ),
        Column(
            "is_end_known",
            Kind.FLAG,
            "No flip was missed at its end; else when it was given or lost quota is not known.",
        ),
        Column("pending_reason_name", Kind.TEXT, "Why it has no quota, last told.", nullable=True),
        Column("pending_text", Kind.TEXT, "The message, last told.", nullable=True),
        Column("source_ref", Kind.TEXT, "Its last version of the day."),
    ),
    ranges=(("attempt_queued_at", "queued_at"),),
)

POD_ATTEMPTS = Table(
    name="core.pod_attempts",
    doc="Which attempt each pod belongs to: a quota attempt, a replica, or a session.",
    grain=("cluster_name", "day_on", "pod_uid"),
    columns=(
        CLUSTER,
        DAY,
        Column("pod_uid", Kind.TEXT, "The pod."),
        ATTEMPT,
        Column("attempt_created_at", Kind.INSTANT, "Its attempt's first pod was created."),
        Column("attempt_queued_at", Kind.INSTANT, "Its attempt entered the queue."),
        QUOTA_WORKLOAD,
        QUOTA_ATTEMPT,
    ),
)

STALE_RESERVATIONS = Table(
    name="core.stale_reservations",
    doc="Quota that a Kueue Workload or PodGroup keeps with no pod left to use it.",
    grain=("cluster_name", "day_on", "object_uid", "stale_since_at"),
    columns=(
        CLUSTER,
        DAY,
        Column("object_kind_name", Kind.TEXT, "What keeps it.", choices=("Workload", "PodGroup")),
        Column("object_uid", Kind.TEXT, "Its uid."),
        Column("namespace_name", Kind.TEXT, "Its namespace."),
        Column("object_name", Kind.TEXT, "Its name."),
        WORKLOAD,
        Column("queue_name", Kind.TEXT, "The queue whose quota it is.", nullable=True),
        BEGIN,
        END,
        Column("stale_since_at", Kind.INSTANT, "No pod has used it since, also days before."),
        Column("is_ended", Kind.FLAG, "It was given back; else it is kept still."),
        Column("asked_micro_gpu", Kind.COUNT, "GPU share that the quota is for.", nullable=True),
        Column("pod_count", Kind.COUNT, "Pods known that had it.", minimum=0),
        Column("last_pod_ended_at", Kind.INSTANT, "The last of them ended.", nullable=True),
        Column("evicted_at", Kind.INSTANT, "It was evicted, quota kept.", nullable=True),
        Column("eviction_reason_name", Kind.TEXT, "Why.", nullable=True),
        Column("source_ref", Kind.TEXT, "The version that says so."),
    ),
    ranges=SPAN,
)

TABLES = (ADMISSIONS, POD_ATTEMPTS, STALE_RESERVATIONS)
