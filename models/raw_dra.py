"""Raw tables of dynamic resource allocation (DRA): resource claims, and slices of devices.

What a claim's devices are of a GPU, and who holds them, is concluded in `core_claims`.
"""

from models.raw_columns import VERSION
from models.table import Column, Kind, Table

CLAIM_VERSIONS = Table(
    name="raw.claim_versions",
    doc="Every observed version of a ResourceClaim, and the carried copy of each at 00:00.",
    grain=("cluster_name", "day_on", "sequence_number"),
    columns=(
        *VERSION,
        Column("claim_uid", Kind.TEXT, "The claim, for ever."),
        Column("namespace_name", Kind.TEXT, "Its namespace."),
        Column("claim_name", Kind.TEXT, "Its name (reused by later claims)."),
        Column("created_at", Kind.INSTANT, "When the API accepted it."),
        Column("owner_pod_uid", Kind.TEXT, "The pod it was made for.", nullable=True),
        Column(
            "is_extended_resource",
            Kind.FLAG,
            "The scheduler made it for an extended resource that its pod asks for.",
        ),
        Column(
            "requests",
            Kind.DEVICE_REQUESTS,
            "What it asks for; of alternatives the first. is_gpu: null where its class is unknown; "
            "share: of one device, null where that is not known.",
        ),
        Column(
            "devices",
            Kind.DEVICE_RESULTS,
            "What is allocated to it. is_admin: for looking on only; is_gpu: by its driver, null "
            "where that is unknown; consumed: its part of a device that several claims may have.",
        ),
        Column("allocated_at", Kind.INSTANT, "Allocated, if stated.", nullable=True),
        Column("node_name", Kind.TEXT, "The one node where it can be used.", nullable=True),
        Column("reserved_for", Kind.OWNERS, "Who may use it: pods, mostly."),
    ),
)

SLICE_VERSIONS = Table(
    name="raw.slice_versions",
    doc="Every observed version of a ResourceSlice, and the carried copy of each at 00:00.",
    grain=("cluster_name", "day_on", "sequence_number"),
    columns=(
        *VERSION,
        Column("slice_uid", Kind.TEXT, "The slice, for ever."),
        Column("slice_name", Kind.TEXT, "Its name."),
        Column("created_at", Kind.INSTANT, "When the API accepted it."),
        Column("driver_name", Kind.TEXT, "Whose devices they are."),
        Column("pool_name", Kind.TEXT, "The pool that it is a part of."),
        Column(
            "generation_number",
            Kind.COUNT,
            "Of a pool only the slices of the highest generation count.",
            minimum=0,
        ),
        Column("slice_count", Kind.COUNT, "So many slices are the whole pool.", minimum=0),
        Column("node_name", Kind.TEXT, "The node that has its devices.", nullable=True),
        Column("node_uid", Kind.TEXT, "That node, where it owns the slice.", nullable=True),
        Column(
            "devices",
            Kind.SLICE_DEVICES,
            "Its devices. gpu_uuid: the physical GPU; share: null where counters tell it.",
        ),
        Column(
            "counters",
            Kind.COUNTERS,
            "What each device uses up of the sets of counters that share a GPU out, in "
            "thousandths; with an empty device: what such a set has.",
        ),
    ),
)

TABLES = (CLAIM_VERSIONS, SLICE_VERSIONS)
