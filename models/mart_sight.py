"""Marts beside those of use: broken GPUs, what was read of the sources, and what was refused.

What each quantity on each node tells is mart.metric_sight, with the other marts of GPUs.
"""

from models.core_columns import BEGIN, END, MODEL, NODE, SPAN
from models.core_gpus import GPU_FAULTS as FAULTS
from models.core_gpus import UUID
from models.raw_metrics import FAMILIES, READ_STATES
from models.table import CLUSTER, DAY, Column, Kind, Table

GPU_FAULTS = Table(
    name="mart.gpu_faults",
    doc="When a GPU was broken: the day's stretches, and what says so.",
    grain=("cluster_name", "day_on", "node_uid", "gpu_uuid", "begin_at"),
    scope="platform",
    columns=(
        CLUSTER,
        DAY,
        NODE,
        Column("node_name", Kind.TEXT, "Its name.", nullable=True),
        UUID,
        MODEL,
        BEGIN,
        END,
        *(FAULTS.column(name) for name in ("is_ended", "xid_number", "basis_name")),
    ),
    ranges=SPAN,
)

METRIC_READS = Table(
    name="mart.metric_reads",
    doc="What was read of each family of metrics, as it was found out last: the day's stretches.",
    grain=("cluster_name", "day_on", "source_ref", "family_name", "begin_at"),
    scope="platform",
    columns=(
        CLUSTER,
        DAY,
        Column("source_ref", Kind.TEXT, "The Prometheus, or the folder."),
        Column("family_name", Kind.TEXT, "Which metrics.", choices=FAMILIES),
        Column("begin_at", Kind.INSTANT, "Begin."),
        Column("end_at", Kind.INSTANT, "End."),
        Column(
            "read_name",
            Kind.TEXT,
            "complete, partial, missing, or open (not over yet).",
            choices=READ_STATES,
        ),
        Column("reason_text", Kind.TEXT, "Why not complete.", nullable=True),
        Column("try_count", Kind.COUNT, "How often it was read in vain.", minimum=0),
        Column("stretch_seconds", Kind.COUNT, "How long it is.", minimum=0),
        Column("reading_count", Kind.COUNT, "Samples that became a reading.", minimum=0),
        Column("rejected_count", Kind.COUNT, "Samples that are no reading.", minimum=0),
    ),
    ranges=(("begin_at", "end_at"),),
)

REFUSALS = Table(
    name="mart.refusals",
    doc="What of the sources was refused or set aside: how much, why, and how to mend it.",
    grain=("cluster_name", "day_on", "reason_name", "is_row_lost"),
    scope="platform",
    columns=(
        CLUSTER,
        DAY,
        Column("reason_name", Kind.TEXT, "Why."),
        Column("is_row_lost", Kind.FLAG, "Whether it is lost by it; else it is a notice."),
        Column("rejected_count", Kind.COUNT, "How many.", minimum=1),
        Column("place_count", Kind.COUNT, "In how many places.", minimum=1),
        Column("source_ref", Kind.TEXT, "The place with most of them."),
        Column("example_text", Kind.TEXT, "One of them, cut short."),
        Column("mend_text", Kind.TEXT, "How to mend it."),
    ),
)

TABLES = (GPU_FAULTS, METRIC_READS, REFUSALS)
