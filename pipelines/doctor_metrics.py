"""What the metrics of a Prometheus lack beside DCGM's own, and the line to change for each.

kube-state-metrics, cAdvisor, and the nodes that share GPUs; DCGM belongs to `doctor_dcgm`, the
server itself to `doctor_prometheus`.
"""

from collections.abc import Collection, Generator, Iterator

import polars as pl

from collectors import cadvisor
from collectors.families import CADVISOR, DCGM, KUBE_STATE, asked
from collectors.kube_state_names import snaked, written
from collectors.nodes import PRODUCT_KEYS
from collectors.prometheus import Fetched
from collectors.prometheus_recorded import Recorded
from collectors.prometheus_selectors import Group, Matcher
from collectors.requests import GPU, SHARED
from pipelines.cli_common import REFUSED
from pipelines.doctor_dcgm import dcgm
from pipelines.doctor_view import (
    MINUTE,
    SLOW_SECONDS,
    Times,
    View,
    flat,
    often,
    some,
    times_of,
)
from pipelines.findings import Finding

NEEDED = (
    *(
        "kube_pod_info",
        "kube_pod_created",
        "kube_pod_status_phase",
        "kube_pod_container_resource_requests",
    ),
    *("kube_pod_owner", "kube_node_info", "kube_node_status_capacity"),
    "kube_node_status_allocatable",
)
"""Of kube-state-metrics: without one of them holds or capacity are wrong or missing."""

ALLOW = "--metric-labels-allowlist of kube-state-metrics (metricLabelsAllowlist of its chart)"

REPLICAS, SHARING = "nvidia.com/gpu.replicas", "nvidia.com/gpu.sharing-strategy"


def metrics(view: View, names: Collection[str]) -> Iterator[Finding]:
    """All that is found of a source that has these metrics."""
    nodes = yield from _kube(view, names)
    devices = yield from dcgm(view, names, nodes)
    if devices is not None and nodes is not None:
        yield from _shared(view, devices, nodes)
    yield from _cadvisor(view, names)
    if not asked(DCGM, names) and not asked(KUBE_STATE, names):
        yield Finding(
            f"{view.cluster}: nothing here tells of GPUs or of who holds them",
            "url, tenant: name the Prometheus that scrapes this cluster",
            REFUSED,
        )


def _kube(
    view: View, names: Collection[str]
) -> Generator[Finding, None, pl.DataFrame | None]:  # fmt: skip
    """What kube-state-metrics tells; its nodes with their GPUs and labels."""
    if not asked(KUBE_STATE, names):
        if not view.has_recorder:
            yield Finding(
                f"{view.cluster}: no kube-state-metrics: who held which GPU is not known",
                "run kube-state-metrics (chart kube-state-metrics, "
                "prometheus.monitor.enabled: true) and let Prometheus scrape it, or give the "
                "cluster a source of kind kubernetes",
            )
        return None
    missing = [name for name in NEEDED if name not in names]
    if missing:
        yield Finding(
            f"{view.cluster}: kube-state-metrics lacks {', '.join(missing)}",
            "allow them: metricAllowlist and metricDenylist of its chart, and the "
            "metricRelabelings of its ServiceMonitor",
        )
    one = next((name for name in ("kube_node_info", "kube_node_created") if name in names), None)
    if one is None:
        return None
    fetched, end = view.lately(Group.of(one))
    if not fetched.read_count:
        yield Finding(
            f"{view.cluster}: kube-state-metrics is known and has no samples lately",
            "see that Prometheus has it among its targets and that it is up",
        )
        return None
    times = times_of(fetched)
    yield from often(view, KUBE_STATE, times, end)
    pace = max((s for s in times.jobs.values() if s), default=SLOW_SECONDS)
    last = min(times.last, view.now)  # a clock that is ahead must not hide the others
    span = last - max(round(pace * 1500), 2 * MINUTE), last
    labels = view.read(Group.of("kube_node_labels"), *span)
    if not view.has_recorder:
        yield from _allowed(view, labels, span)
    capacity = view.read(
        Group.of("kube_node_status_capacity", Matcher("resource", "=~", "nvidia_com_gpu.*")), *span
    )
    slices = [written(GPU), written(SHARED)]
    offered = flat(capacity, "node", "resource").filter(pl.col("resource").is_in(slices))
    newest = offered.sort("at").unique(["node", "resource"], keep="last")
    told = flat(labels, "node", f"label_{snaked(REPLICAS)}")
    known = told.filter(pl.col(f"label_{snaked(REPLICAS)}") != "")["node"].unique()
    return newest.group_by("node").agg(pl.col("value").sum().alias("capacity")).with_columns(
        pl.col("node").is_in(known.implode()).alias("has_replicas")
    )  # fmt: skip


def _allowed(view: View, of_nodes: Fetched, span: tuple[int, int]) -> Iterator[Finding]:
    """Which labels are kept from us, of nodes, pods and namespaces."""
    nodes, config = _keys_of(of_nodes), view.config
    pods = _keys_of(view.read(Group.of("kube_pod_labels"), *span))
    spaces = _keys_of(view.read(Group.of("kube_namespace_labels"), *span))
    rules = config.team_rules
    of_pods = {key for rule in rules for key in rule.pod_label or {}}
    of_pods |= {key for rule in config.workload_classes for key in rule.pod_label or {}}
    of_spaces = {key for rule in rules for key in rule.namespace_label or {}}
    of_prices = {key for price in config.prices for key in price.node_label or {}}
    if not any(snaked(key) in nodes for key in PRODUCT_KEYS):
        keys = ",".join([PRODUCT_KEYS[0], REPLICAS, SHARING, *sorted(of_prices)])
        yield Finding(
            f"{view.cluster}: label allowlist of nodes: no label tells their GPU model, so it is "
            "known from DCGM alone, and shared GPUs are not told from whole ones",
            f"{ALLOW}: nodes=[{keys}]",
        )
    if not pods:
        keys = ",".join(sorted(of_pods) or ["app.kubernetes.io/name", "kueue.x-k8s.io/queue-name"])
        yield Finding(
            f"{view.cluster}: label allowlist of pods: none has a label here, so teams, queues and "
            "classes by label are not known",
            f"{ALLOW}: pods=[{keys}]",
        )
    for what, keys, there in (
        ("pods", of_pods, pods or None),
        ("namespaces", of_spaces, spaces),
        ("nodes", of_prices, nodes),
    ):
        lacking = sorted(key for key in keys if there is not None and snaked(key) not in there)
        if lacking:
            yield Finding(
                f"{view.cluster}: label allowlist of {what}: none has {', '.join(lacking)}, which "
                "the configuration goes by",
                f"{ALLOW}: {what}=[{','.join(lacking)}]",
            )


def _keys_of(fetched: Fetched) -> set[str]:
    """The keys of labels that some series has, as kube-state-metrics writes them."""
    return {
        f.name.removeprefix("label_").lower()
        for data in fetched.data
        for f in data.series.schema["labels"].fields  # type: ignore[attr-defined]
        if f.name.startswith("label_")
    }


def _shared(view: View, series: pl.DataFrame, nodes: pl.DataFrame) -> Iterator[Finding]:
    """Nodes that offer more GPUs than they have: are the slices known, and who holds them?"""
    devices = series.group_by(pl.col("node_name").alias("node")).agg(
        pl.col("gpu_uuid").n_unique().alias("gpus"),
        (pl.col("instance_number") >= 0).any().alias("is_split"),
        (pl.col("vgpu") != "").any().alias("tells_slices"),
    )
    found = nodes.join(devices, on="node")
    found = found.filter((pl.col("capacity") > pl.col("gpus")) & ~pl.col("is_split"))
    blind = found.filter(~pl.col("tells_slices"))
    if blind.height:
        yield Finding(
            f"{view.cluster}: time-sliced without labels: {some(blind['node'])} offer "
            f"{blind['capacity'].sum():,.0f} GPUs and have {blind['gpus'].sum():,}, and DCGM names "
            "one pod of those that share a GPU",
            "set KUBERNETES_VIRTUAL_GPUS=true for dcgm-exporter (4.1 and newer), and "
            "NVIDIA_RESOURCE_NAMES=nvidia.com/gpu.shared where slices are called so",
        )
    unknown = found.filter(~pl.col("has_replicas"))
    if unknown.height and not view.has_recorder:
        yield Finding(
            f"{view.cluster}: {some(unknown['node'])} share GPUs and do not say into how many "
            "slices: each slice counts as a GPU",
            f"{ALLOW}: nodes=[{REPLICAS},{SHARING}]",
        )


def _cadvisor(view: View, names: Collection[str]) -> Iterator[Finding]:
    """Whether the counters are there that tell why a GPU waits."""
    there = asked(CADVISOR, names)
    # Containers without a limit of CPU have no periods.
    lacking = [m for m in cadvisor.METRICS if m not in there and "_cfs_" not in m]
    if lacking:
        what = f"cAdvisor lacks {', '.join(lacking)}" if there else "no cAdvisor metrics"
        yield Finding(
            f"{view.cluster}: {what}: why a GPU is idle is told from less",
            "let Prometheus keep the kubelet's /metrics/cadvisor: kubelet.serviceMonitor.cAdvisor: "
            "true of kube-prometheus-stack; its cAdvisorMetricRelabelings must not drop them",
        )
    if isinstance(view.client, Recorded) or not there:
        return
    # The kubelet tells the times itself; containers are many, so the server finds the newest.
    query = f"max by (node, instance) (max_over_time(timestamp({there[0]})[20m:2m]))"
    told = view.client.discovery.instant(query, view.now + 10 * MINUTE).result
    newest = {
        row["metric"].get("node") or row["metric"].get("instance", ""): float(row["value"][1])
        for row in told
    }
    times = Times({}, {node: round(at * 1000) for node, at in newest.items()})
    if newest:
        yield from often(view, CADVISOR, times, view.now)
