"""The closed sets of words: states of a GPU-second with their causes, workload classes, waits.

Which rule puts a second into which state belongs to sql/core; the words belong here.
"""

STATES: dict[str, tuple[str, ...]] = {
    "unrecorded": ("before_first_seen", "recorder_gap", "list_only"),
    "unavailable": (
        "node_not_ready",
        "cordoned",
        "gpu_unhealthy",
        "missing_from_allocatable",
        "not_in_cluster",
        "provisioning",
        "driver_upgrade",
        "mig_reconfigure",
    ),
    "unallocated": (
        "no_demand",
        "turnover",
        "reserved",
        "quota",
        "constraint",
        "topology",
        "fragmented",
        "stranded",
        "partition_remainder",
        "undetermined",
    ),
    "starting": (
        "image_pull_queue",
        "image_pull",
        "volume",
        "init",
        "container_start",
        "restart",
        "crash_loop",
        "undetermined",
    ),
    "gang_wait": ("member_not_created", "member_unplaced", "member_starting", "member_lost"),
    "loading": ("none",),
    "active": ("none",),
    "stalled": ("none",),
    "idle": ("memory_held", "empty", "undetermined"),
    "unobserved": ("no_series", "stale", "rejected", "exporter_down", "node_not_ready"),
    "terminating": ("none",),
    "rounding": ("none",),
}
"""State -> causes; 'none' where a state has no causes. 'rounding' is money only: 0 GPU-seconds."""

HELD_STATES = (
    "starting",
    "gang_wait",
    "loading",
    "active",
    "stalled",
    "idle",
    "unobserved",
    "terminating",
)
WASTE_STATES = ("starting", "gang_wait", "stalled", "idle", "terminating")
CAUSES = tuple(dict.fromkeys(cause for causes in STATES.values() for cause in causes))

UNKNOWN = "__unknown__"
UNATTRIBUTED = "__unattributed__"
UNALLOCATED = "__unallocated__"
UNAVAILABLE = "__unavailable__"
ROUNDING = "__rounding__"
UNPLACED = "__unplaced__"
NOT_IN_CLUSTER = "__not_in_cluster__"
RESERVED = (UNKNOWN, UNATTRIBUTED, UNALLOCATED, UNAVAILABLE, ROUNDING)

CLASSES = ("training", "inference", "interactive", "batch", "system", "unknown")
WAITS = ("dependency", "quota", "check", "placement", "start")
UNBOOKED_REASONS = ("overlap", "node_gone", "not_installed")
COVERAGES = ("watched", "sampled", "recorder_gap", "list_only", "before_first_seen", "table")
