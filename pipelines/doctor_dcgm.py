"""What DCGM lacks as evidence: which readings, of which GPUs, how often, and whose they are.

How samples are read belongs to `collectors.dcgm`; here only what is missing is told.
"""

from collections.abc import Collection, Generator, Iterator

import polars as pl

from collectors.dcgm_hour import numbered
from collectors.dcgm_names import FIELDS, NUMBERS
from collectors.families import DCGM, asked, groups
from collectors.prometheus_selectors import Group, Matcher
from pipelines.doctor_view import MINUTE, SLOW_SECONDS, View, flat, labels, often, some, times_of
from pipelines.findings import Finding

FILE = (
    "the exporter's list of metrics (customMetrics of chart dcgm-exporter, which replaces the "
    "whole list; of the GPU operator, the ConfigMap that dcgmExporter.config.name names)"
)

PROF = ("sm_ratio", "gr_engine_ratio", "tensor_ratio", "dram_ratio")

LOST = {
    "xid_number": "faults of GPUs are seen only where the device plugin reports fewer",
    "throttle_number": "throttling is not known",
    "energy_joules": "energy between two samples of power is not known",
    "power_watts": "stalled GPUs cannot be told, nor what idle ones draw",
    "memory_used_mib": "idle with memory held is not told from idle and empty",
}

NEWEST = {"throttle_number": "DCGM_FI_DEV_CLOCKS_EVENT_REASONS"}
"""What to list where the first name of a field is one that newer exporters lack."""


def dcgm(
    view: View, names: Collection[str], nodes: pl.DataFrame | None
) -> Generator[Finding, None, pl.DataFrame | None]:
    """What DCGM tells; its series, understood."""
    found = asked(DCGM, names)
    if not found:
        yield Finding(
            f"{view.cluster}: no DCGM metrics: what GPUs do is not measured, all held time reads "
            "unobserved",
            "run dcgm-exporter and let Prometheus scrape it: serviceMonitor.enabled: true of its "
            "chart; dcgmExporter.enabled and dcgmExporter.serviceMonitor.enabled of the GPU "
            "operator",
        )
        return None
    one = min(found, key=lambda name: NUMBERS[name])
    fetched, end = view.lately(Group.of(one))
    if not fetched.read_count:
        yield Finding(
            f"{view.cluster}: DCGM's metrics are known and have no samples lately",
            "see that Prometheus has the exporters among its targets and that they are up",
        )
        return None
    times = times_of(fetched)
    yield from often(view, DCGM, times, end)
    pace = max((s for s in times.jobs.values() if s), default=SLOW_SECONDS)
    [group] = groups(DCGM, found)
    width = max(round(pace * 1500), 2 * MINUTE)
    last = min(times.last, view.now)  # a clock that is ahead must not hide the others
    fetched = view.read(group, last - width, last)
    series, _ = numbered(fetched)
    jobs = labels(fetched, "job", "vgpu", "exported_pod", "exported_exported_pod")
    series = series.drop("vgpu", "exported_pod", "exported_exported_pod")
    series = series.join(jobs, on=["piece", "series_number"], how="left")
    series = series.filter(pl.col("fault").is_null() & pl.col("begin").is_not_null())
    gpus = series.select("node_name", "gpu_uuid").unique()
    yield Finding(f"{view.cluster}: DCGM tells of {gpus.height:,} GPUs on "
                  f"{gpus['node_name'].n_unique():,} nodes")  # fmt: skip
    yield from _evidence(view, series)
    yield from _orientation(view, series)
    yield from _owners(view, names, series)
    return series


def _evidence(view: View, series: pl.DataFrame) -> Iterator[Finding]:
    """Which GPUs lack which reading, and what that costs."""
    keys = ["node_name", "gpu_uuid"]
    has = series.drop_nulls("field").group_by(keys).agg(
        pl.col("field").replace_strict(
            {n: f.quantity for n, f in enumerate(FIELDS)}, return_dtype=pl.String()
        ).unique().alias("has")
    )  # fmt: skip
    has = series.select(keys).unique().join(has, on=keys, how="left")
    has = has.with_columns(pl.col("has").fill_null(pl.lit([], pl.List(pl.String()))))
    every = has.height

    def without(*quantities: str) -> pl.DataFrame:
        return has.filter(~pl.any_horizontal(pl.col("has").list.contains(q) for q in quantities))

    def where(frame: pl.DataFrame) -> str:
        if frame.height == every:
            return "on all GPUs"
        return f"on {frame.height:,} of {every:,} GPUs ({some(frame['node_name'].unique())})"

    dark = without(*PROF)
    if dark.height:
        yield Finding(
            f"{view.cluster}: PROF metrics are off {where(dark)}: utilisation is not measured "
            "there, idle is told by GPU_UTIL at 0 only, and stalled is only suspected",
            f"add DCGM_FI_PROF_SM_ACTIVE, DCGM_FI_PROF_GR_ENGINE_ACTIVE, "
            f"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE and DCGM_FI_PROF_DRAM_ACTIVE to {FILE}, and let the "
            "exporter profile: securityContext.capabilities.add: [SYS_ADMIN]",
        )
    seen = has.join(dark, on=keys, how="anti")
    blurred = without("sm_ratio").join(seen, on=keys, how="semi")
    if blurred.height:
        yield Finding(
            f"{view.cluster}: SM_ACTIVE is off {where(blurred)}: activity is that of the graphics "
            "engine there, which a single small kernel keeps busy",
            f"add the line `DCGM_FI_PROF_SM_ACTIVE, gauge, SM activity.` to {FILE}",
        )
    for quantity, name in (
        ("tensor_ratio", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"),
        ("dram_ratio", "DCGM_FI_PROF_DRAM_ACTIVE"),
    ):
        lacking = without(quantity).join(seen, on=keys, how="semi")
        if lacking.height:
            yield Finding(
                f"{view.cluster}: {name} is off {where(lacking)}: stalled is only suspected there",
                f"add the line `{name}, gauge, Activity.` to {FILE}",
            )
    for quantity, cost in LOST.items():
        if without(quantity).height == every:
            names = next(f.names for f in FIELDS if f.quantity == quantity)
            name = NEWEST.get(quantity, f"DCGM_FI_{names[0]}")
            yield Finding(
                f"{view.cluster}: {name} is not exported: {cost}",
                f"add the line `{name}, gauge, As DCGM tells it.` to {FILE}",
            )


def _orientation(view: View, series: pl.DataFrame) -> Iterator[Finding]:
    """Under which label each job tells the workload; both ways are read."""
    change = "serviceMonitor.honorLabels of the exporter's chart"
    is_deep = (pl.col("exported_pod") != "") | (pl.col("exported_exported_pod") != "")
    is_plain = ~is_deep & (pl.col("pod_name") != "")
    for job, deep, plain in (
        series.group_by("job").agg(is_deep.any().alias("deep"), is_plain.any().alias("plain"))
        .sort("job").iter_rows()
    ):  # fmt: skip
        name = f"{view.cluster}: DCGM, job {job or 'not told'}"
        if deep and plain:
            yield Finding(
                f"{name}: honorLabels is both: some series tell the workload as exported_pod, some "
                "as pod",
                f"scrape each exporter once, with one setting of {change}",
            )
        elif deep or plain:
            label, setting = ("exported_pod", "false") if deep else ("pod", "true")
            yield Finding(f"{name}: the workload is told as {label}, honorLabels is {setting} "
                          f"({change}; either is read)")  # fmt: skip


def _owners(view: View, names: Collection[str], series: pl.DataFrame) -> Iterator[Finding]:
    """Whether DCGM names pods at all, where Kubernetes has running ones that ask for GPUs."""
    asking = "kube_pod_container_resource_requests"
    if (series["pod_name"] != "").any() or asking not in names:
        return
    resource = Matcher("resource", "=~", "nvidia_com_.*")
    found, _ = view.lately(Group.of(asking, resource, Matcher("node", "!=", "")))
    running, _ = view.lately(Group.of("kube_pod_status_phase", Matcher("phase", "=", "Running")))
    pods = flat(running, "uid").filter(pl.col("value") == 1)
    held = flat(found, "uid", "node").join(pods, on="uid", how="semi")
    if held.height:
        yield Finding(
            f"{view.cluster}: DCGM names no pod on any GPU, though pods hold some: samples meet "
            "holds by node only where a pod holds all of it",
            "set DCGM_EXPORTER_KUBERNETES=true for the exporter, and mount the kubelet's "
            "pod-resources folder into it",
        )
