"""What the labels of DCGM's series say: which device it is, on which node, and whose it is now.

A Prometheus keeps the workload's labels as `pod`, `exported_pod` or deeper, and on an idle GPU has
the exporter's own pod in their place. What the samples say belongs to `dcgm`.
"""

from collections.abc import Sequence

import polars as pl

from collectors import dcgm_proxies
from collectors.prometheus_answers import Samples
from models.gpus import canonical
from models.states import UNKNOWN

DEPTHS = ("exported_exported_", "exported_", "")
"""A label that the target has, too, gets a prefix; at a second hop, one more."""
OWNERS = ("pod", "namespace", "container")
OLD_OWNERS = ("pod_name", "pod_namespace", "container_name")
"""As the exporter spells them with `-o`; then the GPU is called `uuid`."""
PLAIN = (
    *("__name__", "UUID", "uuid", "gpu_uuid", "GPU_I_ID", "GPU_I_PROFILE", "gpu", "modelName"),
    *("model_name", "Hostname", "hostname", "node", "kubernetes_node", "instance", "service"),
    *("DCGM_FI_DRIVER_VERSION", "DCGM_FI_SYSTEM_DRIVER_VERSION", "dcgm_fi_driver_version"),
    *("hpc_job", "vgpu", "dra_claim_name", "dra_claim_namespace", "pod_uid"),
    *("exported_instance", "exported_hostname", "exported_pod_uid"),
)
LABELS = (*PLAIN, *(depth + name for depth in DEPTHS for name in (*OWNERS, *OLD_OWNERS)))

EXPORTER_POD = r"dcgm[-_]?exporter"
EXPORTER_CONTAINERS = ("exporter", "dcgm-exporter", "nvidia-dcgm-exporter")
SUFFIX = "^[bcdfghjklmnpqrstvwxz2456789]{5}$"
"""What a DaemonSet puts behind its name: no vowels, so that it is no word of a workload's name."""

SERIES = (
    *("node_name", "gpu_uuid", "instance_number", "exporter_name", "driver_version_text"),
    *("pod_namespace_name", "pod_name", "pod_uid", "container_name"),
)
"""What tells one row of raw.gpu_series from another, its time apart."""


def table(data: list[Samples]) -> pl.DataFrame:
    """All series of some answers: `piece`, `series_number`, and the labels that matter or null.

    An empty label is an absent one, and so is a text by which DCGM says that it has none.
    """
    frames = []
    for number, samples in enumerate(data):
        labels = pl.col("labels").struct
        names = {field.name for field in samples.series.schema["labels"].fields}  # type: ignore[attr-defined]
        told = [
            labels.field(name) if name in names else pl.lit(None, pl.String()).alias(name)
            for name in LABELS
        ]
        piece = pl.lit(number, pl.UInt32()).alias("piece")
        frames.append(samples.series.select(piece, "series_number", *told))
    if not frames:
        return pl.DataFrame(
            schema={"piece": pl.UInt32(), "series_number": pl.UInt32()}
            | dict.fromkeys(LABELS, pl.String())
        )
    return pl.concat(frames).with_columns(
        pl.when((pl.col(name) != "") & ~pl.col(name).str.starts_with("<<<")).then(pl.col(name))
        for name in LABELS
    )


def read(series: pl.DataFrame, data: Sequence[Samples]) -> pl.DataFrame:
    """The columns of raw.gpu_series for each series that has `begin` and `end`, and its `fault`.

    `device` numbers (node, GPU, instance), `row` numbers rows of raw.gpu_series; `aside` is the pod
    that would own it if it were not at several places at once, `aside_label` the label naming it.
    """
    found = series.with_columns(
        pl.coalesce("UUID", "uuid", "gpu_uuid").alias("gpu_uuid"),
        pl.col("GPU_I_ID").cast(pl.Int64(), strict=False).alias("instance_number"),
        pl.coalesce("exported_instance", "instance").fill_null("").alias("exporter_name"),
        pl.col("gpu").cast(pl.Int64(), strict=False).alias("gpu_number"),
        pl.coalesce("exported_hostname", "hostname", "Hostname").alias("host"),
        _first("DCGM_FI_DRIVER_VERSION", "DCGM_FI_SYSTEM_DRIVER_VERSION", "dcgm_fi_driver_version")
        .fill_null("")
        .alias("driver_version_text"),
        _first("modelName", "model_name").alias("gpu_product_name"),
        pl.col("GPU_I_PROFILE").alias("mig_profile_name"),
        pl.col("hpc_job").alias("hpc_job_name"),
        pl.concat_str("dra_claim_namespace", "dra_claim_name", separator="/").alias("claim_name"),
        *_candidates(),
    )
    found = found.with_columns(
        pl.when(pl.col("gpu_uuid").is_null())
        .then(pl.lit("no_gpu_uuid"))
        .when(pl.col("GPU_I_ID").is_not_null() & pl.col("instance_number").is_null())
        .then(pl.lit("bad_gpu_instance"))
        .alias("fault"),
        pl.col("instance_number").fill_null(-1),
        pl.col("gpu_product_name").fill_null(UNKNOWN),
    )
    exporters = _exporters(found)
    proxies = dcgm_proxies.proxies(_named(found, exporters), data)
    pods, aside, aside_label = [], [], []
    for name, label in zip(CANDIDATES, CANDIDATE_LABELS, strict=True):
        is_other, is_proxy = _is_other(name, exporters), _in_space(name).is_in(proxies)
        pods.append(pl.when(~(is_other | is_proxy)).then(pl.col(name)))
        aside.append(pl.when(~is_other & is_proxy).then(_in_space(name)))
        aside_label.append(pl.when(~is_other & is_proxy).then(pl.lit(label)))
    is_no_node = _is_other("host", exporters) | (pl.col("host") == "localhost")
    owned = found.with_columns(pl.coalesce(pods).alias("owner"))
    has_pod = pl.col("owner").is_not_null()
    owned = owned.with_columns(
        pl.when(~has_pod).then(pl.coalesce(aside)).alias("aside"),
        pl.when(~has_pod).then(pl.coalesce(aside_label)).alias("aside_label"),
    )
    owned = owned.with_columns(
        pl.coalesce(pl.when(~is_no_node).then(pl.col("host")), "node", "kubernetes_node", "host")
        .fill_null(UNKNOWN)
        .alias("node_name"),
        pl.col("owner").fill_null("").alias("pod_name"),
        *(
            pl.when(has_pod).then(_first(*names)).fill_null("").alias(column)
            for column, names in _BESIDE.items()
        ),
    )
    models = {name: canonical(name) for name in owned["gpu_product_name"].unique()}
    owned = owned.with_columns(
        pl.col("gpu_product_name")
        .replace_strict(models, return_dtype=pl.String())
        .alias("gpu_model_name")
    )
    return _numbered(_numbered(owned, "device", SERIES[:3]), "row", SERIES)


def _numbered(frame: pl.DataFrame, name: str, keys: tuple[str, ...]) -> pl.DataFrame:
    """The frame in its order, with a number for each combination of keys, in the keys' order."""
    unique = frame.select(keys).unique().sort(keys).with_row_index(name)
    unique = unique.with_columns(pl.col(name).cast(pl.Int64()))
    return frame.join(unique, on=keys, how="left", nulls_equal=True, maintain_order="left")


CANDIDATES = tuple(f"pod_{number}" for number in range(2 * len(DEPTHS)))
"""The pods that a series names, the one that is the most likely workload's first."""
CANDIDATE_LABELS = tuple(depth + name for name in ("pod_name", "pod") for depth in DEPTHS)
"""The label of each."""
_BESIDE = {
    "pod_namespace_name": (
        *(depth + name for depth in DEPTHS for name in ("pod_namespace", "namespace")),
    ),
    "container_name": (
        *(depth + name for depth in DEPTHS for name in ("container_name", "container")),
    ),
    "pod_uid": ("exported_pod_uid", "pod_uid"),
}


def _first(*names: str) -> pl.Expr:
    return pl.coalesce(names)


def _candidates() -> list[pl.Expr]:
    is_old = pl.col("uuid").is_not_null() & pl.col("UUID").is_null()
    old = [pl.when(is_old).then(pl.col(f"{depth}pod_name")) for depth in DEPTHS]
    new = [pl.col(f"{depth}pod") for depth in DEPTHS]
    return [each.alias(name) for name, each in zip(CANDIDATES, (*old, *new), strict=True)]


def _exporters(found: pl.DataFrame) -> list[str]:
    """The pods that are no workload, but the exporter's own or that of another hop on the way.

    A pod is one of them if it stands where a target's label stands while the exporter's own is
    beside it; if its container has the name of the exporter's; if the host is called like it; if it
    is the service's with what a DaemonSet appends. Its name alone says so only where it tells of
    the exporter.
    """
    names = set[str]()
    for place, name in enumerate(CANDIDATES[1:], 1):
        deeper = pl.coalesce(CANDIDATES[:place])
        names |= set(found.filter(deeper != pl.col(name))[name])
    is_alone = pl.all_horizontal(pl.col(c).is_null() for c in CANDIDATES[:-1])
    names |= set(found.filter(is_alone & pl.col("container").is_in(EXPORTER_CONTAINERS))["pod"])
    for name in CANDIDATES:
        names |= set(found.filter(pl.col(name) == pl.col("host"))[name])
    ending = pl.col("pod").str.strip_prefix(pl.concat_str("service", pl.lit("-")))
    is_service_s = (ending != pl.col("pod")) & ending.str.contains(SUFFIX)
    names |= set(found.filter(is_service_s)["pod"])
    return sorted(name for name in names if name)


def _is_other(name: str, exporters: list[str]) -> pl.Expr:
    """Whether a pod, or a host called like one, is no workload."""
    return pl.col(name).is_in(exporters) | pl.col(name).str.contains(EXPORTER_POD)


def _named(found: pl.DataFrame, exporters: list[str]) -> pl.DataFrame:
    """Each pod that a series names and that may be a workload, and where."""
    each = [
        found.filter(~_is_other(name, exporters)).with_columns(
            pl.lit(name).alias("place"), _in_space(name).alias("pod")
        )
        for name in CANDIDATES
    ]
    return pl.concat(each)


def _in_space(name: str) -> pl.Expr:
    """A pod with its namespace: other namespaces may have one of the same name."""
    return pl.concat_str(
        _first(*_BESIDE["pod_namespace_name"]).fill_null(""), pl.col(name), separator="/"
    )
