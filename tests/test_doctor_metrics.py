"""What `doctor` says of the metrics of a real Prometheus: each fault with the line to change.

Each server holds a small fleet of the last half hour, sound but for one thing.
"""

from collections.abc import Callable
from dataclasses import replace

import pytest

from models.config import Config
from tests.doctor_fleet import CONFIG, NODES, Change, Series, faults, findings, started, without
from tests.prometheus_server import source


@pytest.fixture
def fleet(prometheus, tmp_path):
    with started(prometheus, tmp_path) as made:
        yield made


def relabelled(start: str, **labels: str) -> Callable[[Series], Series]:
    return lambda s: s.having(**labels) if s.metric.startswith(start) else s


def on_node(change: Change) -> Change:
    """On the first node only."""
    return lambda s: change(s) if NODES[0] in str(s.labels) else s


def shared(series: Series) -> Series:
    """Each GPU in four slices, and nothing says so."""
    is_told = series.metric in ("kube_node_status_capacity", "kube_node_status_allocatable")
    return replace(series, value=8) if is_told else series


def told_so(series: Series) -> Series:
    """The same, and the node and the exporter say so."""
    series = shared(series)
    if series.metric == "kube_node_labels":
        return series.having(label_nvidia_com_gpu_replicas="4")
    return series.having(vgpu="0") if series.metric.startswith("DCGM") else series


def bare(series: Series) -> Series:
    """DCGM without the workload's labels."""
    return relabelled("DCGM", exported_pod="", exported_namespace="")(series)


def test_a_sound_prometheus_is_told_what_it_is_and_has_nothing_to_mend(fleet):
    told = source(fleet.server().url)
    assert faults(told) == []
    text = "\n".join(finding.what for finding in findings(told))
    for words in ("Prometheus 2.", "4 GPUs on 2 nodes", "exported_pod, honorLabels is false"):
        assert words in text


CASES: list[tuple[str, Change, list[tuple[str, str]]]] = [
    ("no DCGM", without("DCGM"), [("no DCGM metrics", "dcgmExporter.serviceMonitor.enabled")]),
    (
        "PROF off",
        without("DCGM_FI_PROF"),
        [("PROF metrics are off on all GPUs: utilisation is not measured", "customMetrics")],
    ),
    (
        "PROF off on a node",
        on_node(without("DCGM_FI_PROF")),
        [("PROF metrics are off on 2 of 4 GPUs (node-a)", "SYS_ADMIN")],
    ),
    ("SM off", without("DCGM_FI_PROF_SM"), [("SM_ACTIVE is off", "DCGM_FI_PROF_SM_ACTIVE, gauge")]),
    (
        "tensor off",
        without("DCGM_FI_PROF_PIPE"),
        [("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE is off", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE, gauge")],
    ),
    (
        "no XID, clock events or energy",
        without("DCGM_FI_DEV_XID", "DCGM_FI_DEV_CLOCKS", "DCGM_FI_DEV_TOTAL"),
        [
            ("DCGM_FI_DEV_XID_ERRORS is not exported", "DCGM_FI_DEV_XID_ERRORS, gauge"),
            ("CLOCKS_EVENT_REASONS is not exported", "DCGM_FI_DEV_CLOCKS_EVENT_REASONS, gauge"),
            ("ENERGY_CONSUMPTION is not exported", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION, gauge"),
        ],
    ),
    (
        "no kube-state-metrics",
        without("kube_"),
        [("no kube-state-metrics: who held which GPU", "source of kind kubernetes")],
    ),
    (
        "a metric dropped",
        without("kube_pod_owner"),
        [("kube-state-metrics lacks kube_pod_owner", "metricDenylist")],
    ),
    (
        "no labels of nodes",
        relabelled("kube_node_labels", label_nvidia_com_gpu_product=""),
        [("label allowlist of nodes", "nodes=[nvidia.com/gpu.product,")],
    ),
    (
        "no labels of pods",
        relabelled("kube_pod_labels", label_example_com_team=""),
        [("label allowlist of pods", "pods=[example.com/team]")],
    ),
    (
        "a rule's label missing",
        lambda s: relabelled("kube_pod_labels", label_example_com_team="", label_app="x")(
            relabelled("kube_namespace_labels", label_owner="", label_x="y")(s)
        ),
        [
            ("pods: none has example.com/team", "pods=[example.com/team]"),
            ("namespaces: none has owner", "namespaces=[owner]"),
        ],
    ),
    ("no cAdvisor", without("container_"), [("no cAdvisor metrics", "kubelet.serviceMonitor")]),
    (
        "a counter dropped",
        without("container_fs"),
        [("cAdvisor lacks container_fs_reads_bytes_total", "cAdvisorMetricRelabelings")],
    ),
    (
        "both orientations",
        on_node(lambda s: bare(s).having(pod="train-node-a", namespace="ml", container="main")
                if s.metric.startswith("DCGM") else s),
        [("job dcgm: honorLabels is both", "serviceMonitor.honorLabels")],
    ),
    ("no pods", bare, [("DCGM names no pod on any GPU", "DCGM_EXPORTER_KUBERNETES=true")]),
    (
        "slow scrape",
        lambda s: replace(s, step=120) if s.metric.startswith("DCGM") else s,
        [("DCGM, job dcgm: scrape interval: sampled each 120 s", "serviceMonitor.interval")],
    ),
    (
        "slow kube-state-metrics",
        lambda s: replace(s, step=90) if s.metric.startswith("kube_") else s,
        [("job ksm: scrape interval: sampled each 90 s", "prometheus.monitor.interval")],
    ),
    (
        "slices untold",
        on_node(shared),
        [
            ("time-sliced without labels: node-a offer 8 GPUs and have 2", "KUBERNETES_VIRTUAL"),
            ("node-a share GPUs and do not say", "nodes=[nvidia.com/gpu.replicas"),
        ],
    ),
    ("slices told", told_so, []),
    (
        "an exporter ended",
        on_node(lambda s: replace(s, ahead=-600) if s.metric.startswith("DCGM") else s),
        [("DCGM: the newest sample of node-a:9400 is 10 min old", "targets")],
    ),
    (
        "all exporters ended long ago",
        lambda s: replace(s, ahead=-7200) if s.metric.startswith("DCGM") else s,
        [("DCGM: the newest sample of node-a:9400, node-b:9400 is 120 min old", "targets")],
    ),
    (
        "a kubelet's clock ahead",
        on_node(lambda s: replace(s, ahead=240) if s.metric.startswith("container") else s),
        [("cAdvisor: clock skew: samples of node-a are up to 2", "honorTimestamps: false")],
    ),
    (
        "a kubelet's clock behind",
        on_node(lambda s: replace(s, ahead=-480) if s.metric.startswith("container") else s),
        [("cAdvisor: the newest sample of node-a is 8 min old", "NTP")],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("change", "told"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_each_fault_is_named_with_the_line_to_change_and_nothing_else_is(fleet, change, told):
    found = fleet.faults(change)
    assert len(found) == len(told), found
    for finding, (what, mend) in zip(found, told, strict=True):
        assert what in finding.what
        assert mend in finding.mend


def test_honor_labels_true_is_told_and_is_no_fault(fleet):
    def honoured(series: Series) -> Series:
        if not series.metric.startswith("DCGM"):
            return series
        pod = f"train-{series.labels['Hostname']}"
        return bare(series).having(pod=pod, namespace="ml", container="main")

    told = source(fleet.server(honoured).url)
    assert faults(told) == []
    assert any("told as pod, honorLabels is true" in f.what for f in findings(told))


def test_a_cluster_with_a_recorder_needs_no_kube_state_metrics(fleet):
    config = CONFIG.model_dump() | {
        "clusters": [{"name": "c", "sources": [{"kind": "kubernetes", "path": "/recorded"}]}]
    }
    told = source(fleet.server(without("kube_")).url)
    assert faults(told, Config.model_validate(config)) == []


def test_nothing_of_gpus_at_all_is_a_failure(fleet):
    found = fleet.faults(lambda s: s if s.metric.startswith("container_") else None)
    assert found[-1].code == 1
    assert "name the Prometheus that scrapes this cluster" in found[-1].mend
