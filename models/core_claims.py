"""Core tables of dynamic resource allocation (DRA): its devices, its claims, and who holds by them.

They become holds like all others in `core_time`.
"""

from models.core_columns import BEGIN, END, MODEL, NODE, SPAN
from models.table import CLUSTER, DAY, Column, Kind, Table

DRIVER = Column("driver_name", Kind.TEXT, "Whose device it is.")
POOL = Column("pool_name", Kind.TEXT, "The pool that it is in.")
DEVICE = Column("device_name", Kind.TEXT, "The device: driver, pool and name are its identity.")
GPU = Column("gpu_uuid", Kind.TEXT, "The physical GPU; by name where no UUID is told.")
RESOURCE = Column(
    "resource_name", Kind.TEXT, "Its driver; of a MIG device with /mig-<profile> after it."
)
WEIGHT = Column("share_micro_gpu", Kind.COUNT, "What it is of that GPU.", minimum=0, maximum=10**6)
POD = Column("pod_uid", Kind.TEXT, "The pod.")
CLAIM = Column("claim_uid", Kind.TEXT, "The claim.")

SLICE_DEVICES = Table(
    name="core.slice_devices",
    doc="What each device of the ResourceSlices is, from when on.",
    grain=("cluster_name", "day_on", "driver_name", "pool_name", "device_name", "begin_at"),
    columns=(
        CLUSTER,
        DAY,
        DRIVER,
        POOL,
        DEVICE,
        BEGIN,
        Column("is_gpu", Kind.FLAG, "It is a GPU or a part of one."),
        GPU,
        MODEL,
        RESOURCE,
        Column("memory_mib", Kind.COUNT, "Its memory.", nullable=True, minimum=0),
        WEIGHT,
    ),
)

SLICE_SPELLS = Table(
    name="core.slice_spells",
    doc="The physical GPUs of each node that complete pools of ResourceSlices tell, from when on.",
    grain=("cluster_name", "day_on", "node_uid", "begin_at"),
    columns=(
        CLUSTER,
        DAY,
        NODE,
        BEGIN,
        Column("gpu_count", Kind.COUNT, "Physical GPUs.", minimum=0),
        Column("schedulable_count", Kind.COUNT, "Of them free of taints.", minimum=0),
        MODEL,
    ),
)

POD_CLAIMS = Table(
    name="core.pod_claims",
    doc="The claims of each pod, and the GPU share that it asks for by them.",
    grain=("cluster_name", "day_on", "pod_uid", "claim_uid"),
    columns=(
        CLUSTER,
        DAY,
        POD,
        CLAIM,
        Column(
            "resources_text",
            Kind.TEXT,
            "The extended resources that it stands for, with commas: they do not count again.",
        ),
        Column("asked_micro_gpu", Kind.COUNT, "Share asked for by it.", minimum=0),
    ),
)

POD_ASKS = Table(
    name="core.pod_asks",
    doc="The GPU share that each pod asks for: by extended resources, and by claims.",
    grain=("cluster_name", "day_on", "pod_uid"),
    columns=(
        CLUSTER,
        DAY,
        POD,
        Column(
            "asked_micro_gpu",
            Kind.COUNT,
            "GPU share asked for (whole units where unknown).",
            minimum=0,
        ),
    ),
)

CLAIM_HOLDS = Table(
    name="core.claim_holds",
    doc="The day's piece of each interval in which a pod has a GPU device by a claim.",
    grain=(
        "cluster_name",
        "day_on",
        "pod_uid",
        "claim_uid",
        "driver_name",
        "pool_name",
        "device_name",
    ),
    columns=(
        CLUSTER,
        DAY,
        POD,
        CLAIM,
        DRIVER,
        POOL,
        DEVICE,
        GPU,
        RESOURCE,
        WEIGHT,
        BEGIN,
        END,
        Column("is_begin", Kind.FLAG, "It begins in this piece."),
        Column("is_end", Kind.FLAG, "It ends in this piece."),
    ),
    ranges=SPAN,
)

TABLES = (SLICE_DEVICES, SLICE_SPELLS, POD_CLAIMS, POD_ASKS, CLAIM_HOLDS)
