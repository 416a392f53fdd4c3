"""Core tables of strangers: who used a GPU, or is named by its labels, and has no hold there.

Where holds and readings fit, a device has an owner, in core_gpus; what it costs is in mart_gpus.
"""

from models.core_columns import BEGIN, END, NODE, SPAN
from models.core_gpus import INSTANCE, UUID
from models.table import CLUSTER, DAY, Column, Kind, Table

GPU_STRANGERS = Table(
    name="core.gpu_strangers",
    doc="When a GPU or GPU instance was at work although nobody is known to hold it.",
    grain=("cluster_name", "day_on", "node_uid", "gpu_uuid", "instance_number", "begin_at"),
    columns=(
        CLUSTER,
        DAY,
        NODE,
        UUID,
        INSTANCE,
        BEGIN,
        END,
        Column("sm_ratio", Kind.RATIO, "Highest SM activity (else GR engine).", nullable=True),
        Column("utilisation_ratio", Kind.RATIO, "Highest GPU_UTIL.", nullable=True),
        Column("power_watts", Kind.RATIO, "Highest power.", nullable=True),
    ),
    ranges=SPAN,
)

LABEL_STRANGERS = Table(
    name="core.label_strangers",
    doc="When the labels of a GPU or GPU instance named a pod that has no hold there.",
    grain=(
        *("cluster_name", "day_on", "node_uid", "gpu_uuid", "instance_number"),
        *("pod_namespace_name", "pod_name", "begin_at"),
    ),
    columns=(
        CLUSTER,
        DAY,
        NODE,
        UUID,
        INSTANCE,
        Column("pod_namespace_name", Kind.TEXT, "Namespace of the pod."),
        Column("pod_name", Kind.TEXT, "The pod."),
        BEGIN,
        END,
        Column("sample_count", Kind.COUNT, "Samples whose labels say so.", minimum=1),
        Column("told_seconds", Kind.RATIO, "The time for which they speak.", minimum=0),
        Column(
            "held_uuids_text",
            Kind.TEXT,
            "The other GPUs of the node that the scheduler gave it then, by blank; null: none.",
            nullable=True,
        ),
    ),
    ranges=SPAN,
)

TABLES = (GPU_STRANGERS, LABEL_STRANGERS)
