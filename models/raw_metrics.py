"""Raw tables of what a Prometheus had: samples of GPUs and pods, whose they were, what was read.

A sample speaks for the time before it, so one stored at midnight belongs to the day that ends.
Which state of a GPU follows from its samples belongs in `core`.
"""

from models.table import CLUSTER, DAY, Column, Kind, Table

FAMILIES = ("dcgm", "kube_state", "cadvisor")
READ_STATES = ("complete", "partial", "missing", "open")

NODE_NAME = Column("node_name", Kind.TEXT, "The node as the exporter spells it.")
UUID = Column("gpu_uuid", Kind.TEXT, "The physical GPU; of an instance, the GPU it is part of.")
INSTANCE = Column("instance_number", Kind.COUNT, "GPU instance (MIG); -1: the whole GPU.")
SAMPLED = Column("sampled_at", Kind.INSTANT, "When it was scraped (sub-second kept).")


def _reading(name: str, doc: str, kind: Kind = Kind.RATIO, maximum: float | None = None) -> Column:
    return Column(name, kind, doc, nullable=True, minimum=0, maximum=maximum)


METRIC_COVERAGE = Table(
    name="raw.metric_coverage",
    doc="What was read of each family of metrics: the day's stretches, and how each was read.",
    grain=("cluster_name", "day_on", "source_ref", "family_name", "begin_at"),
    columns=(
        CLUSTER,
        DAY,
        Column("source_ref", Kind.TEXT, "The Prometheus, or the folder."),
        Column("family_name", Kind.TEXT, "Which metrics.", choices=FAMILIES),
        Column("begin_at", Kind.INSTANT, "Begin; a sample at it belongs to what is before."),
        Column("end_at", Kind.INSTANT, "End."),
        Column(
            "read_name",
            Kind.TEXT,
            "complete (never read again), partial, missing, or open (not over yet).",
            choices=READ_STATES,
        ),
        Column("reason_text", Kind.TEXT, "Why not complete.", nullable=True),
        Column("try_count", Kind.COUNT, "How often it was read in vain.", minimum=0),
        Column("read_at", Kind.INSTANT, "When it was last read.", nullable=True),
        Column("read_sample_count", Kind.COUNT, "Samples that the server sent.", minimum=0),
        Column(
            "kept_sample_count", Kind.COUNT, "Of them new: each (series, time) once.", minimum=0
        ),
        Column("reading_count", Kind.COUNT, "Kept that became a reading of a row.", minimum=0),
        Column("copy_count", Kind.COUNT, "Kept that told a reading once more.", minimum=0),
        Column(
            "rejected_count", Kind.COUNT, "Kept that are no reading, see rejections.", minimum=0
        ),
        Column("unused_count", Kind.COUNT, "Kept that no column holds.", minimum=0),
        Column("metrics_text", Kind.TEXT, "The metrics asked for, by comma.", nullable=True),
    ),
    ranges=(("begin_at", "end_at"),),
)

GPU_SERIES = Table(
    name="raw.gpu_series",
    doc="What the labels of each GPU's series said, and from when to when, hour by hour.",
    grain=(
        "cluster_name",
        "day_on",
        "node_name",
        "gpu_uuid",
        "instance_number",
        "exporter_name",
        "driver_version_text",
        "pod_namespace_name",
        "pod_name",
        "pod_uid",
        "container_name",
        "begin_at",
    ),
    columns=(
        CLUSTER,
        DAY,
        NODE_NAME,
        UUID,
        INSTANCE,
        Column("exporter_name", Kind.TEXT, "The target that told it (label instance)."),
        Column("driver_version_text", Kind.TEXT, "Driver; empty where not told."),
        Column("pod_namespace_name", Kind.TEXT, "Namespace of the pod that has it; empty: none."),
        Column("pod_name", Kind.TEXT, "The pod that has it; empty: none."),
        Column("pod_uid", Kind.TEXT, "Its uid, where the exporter tells it; else empty."),
        Column("container_name", Kind.TEXT, "Its container; empty: none."),
        Column("begin_at", Kind.INSTANT, "First sample with these labels in the hour."),
        Column("end_at", Kind.INSTANT, "Last sample with them in the hour."),
        Column("sample_count", Kind.COUNT, "Sample times with them.", minimum=1),
        Column("gpu_number", Kind.COUNT, "Index in the node; may move at a reboot.", nullable=True),
        Column("gpu_model_name", Kind.TEXT, "Canonical model, or __unknown__."),
        Column("gpu_product_name", Kind.TEXT, "The model as the exporter spells it."),
        Column("mig_profile_name", Kind.TEXT, "Profile as the exporter spells it.", nullable=True),
        Column("hpc_job_name", Kind.TEXT, "Job of an HPC scheduler.", nullable=True),
        Column("claim_name", Kind.TEXT, "DRA claim, namespace/name.", nullable=True),
        Column("metrics_text", Kind.TEXT, "Quantities that it had, by comma."),
        Column("source_ref", Kind.TEXT, "The query to read it again."),
    ),
    ranges=(("begin_at", "end_at"),),
)

GPU_SAMPLES = Table(
    name="raw.gpu_samples",
    doc="What each GPU or GPU instance read at each scrape; null: no valid reading.",
    grain=("cluster_name", "day_on", "node_name", "gpu_uuid", "instance_number", "sampled_at"),
    columns=(
        CLUSTER,
        DAY,
        NODE_NAME,
        UUID,
        INSTANCE,
        SAMPLED,
        _reading("utilisation_ratio", "Time in which any kernel ran (GPU_UTIL).", maximum=1),
        _reading("gr_engine_ratio", "Graphics or compute engine active."),
        _reading("sm_ratio", "SMs with a warp, averaged over SMs (SM_ACTIVE)."),
        _reading("tensor_ratio", "Tensor pipe active."),
        _reading("dram_ratio", "Device memory interface active."),
        _reading("memory_used_mib", "Memory in use."),
        _reading("memory_free_mib", "Memory free."),
        _reading("power_watts", "Board power, the same for every instance of a GPU."),
        _reading("energy_joules", "Energy since the driver was loaded."),
        _reading("pcie_received_bytes_per_second", "From the host, headers included."),
        _reading("pcie_sent_bytes_per_second", "To the host, headers included."),
        _reading("nvlink_bytes_per_second", "NVLink, both ways."),
        _reading("sm_clock_mhz", "SM clock."),
        _reading("memory_clock_mhz", "Memory clock."),
        _reading("temperature_celsius", "GPU temperature."),
        _reading("throttle_number", "Bits of the clock event reasons.", Kind.COUNT),
        _reading("xid_number", "The last XID; it stays until a restart.", Kind.COUNT),
        _reading("uncorrectable_remapped_row_count", "Rows remapped, uncorrectable.", Kind.COUNT),
        _reading("correctable_remapped_row_count", "Rows remapped, correctable.", Kind.COUNT),
        _reading("row_remap_failure_count", "1: a remap has failed.", Kind.COUNT),
        Column("rejected_count", Kind.COUNT, "Readings of it that were refused.", minimum=0),
    ),
)

POD_SAMPLES = Table(
    name="raw.pod_samples",
    doc="What cAdvisor counted for each pod with a GPU at each scrape; counters, null: not told.",
    grain=("cluster_name", "day_on", "namespace_name", "pod_name", "exporter_name", "sampled_at"),
    columns=(
        CLUSTER,
        DAY,
        Column("namespace_name", Kind.TEXT, "The pod's namespace."),
        Column("pod_name", Kind.TEXT, "The pod."),
        Column("exporter_name", Kind.TEXT, "The target that told it (label instance)."),
        SAMPLED,
        _reading("cpu_seconds", "CPU time used."),
        _reading("cfs_period_count", "Periods in which the CPU limit applied."),
        _reading("cfs_throttled_count", "Of them, those in which it was throttled."),
        _reading("file_read_bytes", "Read from files."),
        _reading("network_received_bytes", "Received."),
        _reading("network_sent_bytes", "Sent."),
    ),
)

TABLES = (METRIC_COVERAGE, GPU_SERIES, GPU_SAMPLES, POD_SAMPLES)
