"""A small fleet as a real Prometheus keeps it: sound, or with one thing changed.

What `doctor` says of it belongs to the tests.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from models.config import Config
from models.prometheus import PrometheusSource
from pipelines.doctor_prometheus import prometheus
from pipelines.findings import Finding
from tests.prometheus_server import Server, source

CONFIG = Config.model_validate(
    {
        "clusters": [{"name": "c"}],
        "teams": [{"name": "ml"}],
        "team_rules": [
            {"team": "ml", "pod_label": {"example.com/team": "*"}},
            {"team": "ml", "namespace_label": {"owner": "*"}},
        ],
    }
)


@dataclass(frozen=True)
class Series:
    """One series; `ahead` moves its times."""

    metric: str
    labels: dict[str, str]
    value: float = 1
    step: int = 30
    ahead: int = 0

    def lines(self, now: int) -> Iterator[str]:
        told = ",".join(f'{key}="{value}"' for key, value in self.labels.items())
        for at in range(now - 1800, now + 1, self.step):
            yield f"{self.metric}{{{told}}} {self.value} {at + self.ahead}\n"

    def having(self, **labels: str) -> "Series":
        """The same with other labels; an empty one is taken away."""
        found = {k: v for k, v in (self.labels | labels).items() if v}
        return replace(self, labels=found)


DCGM = (
    *("DEV_GPU_UTIL", "PROF_GR_ENGINE_ACTIVE", "PROF_SM_ACTIVE", "PROF_PIPE_TENSOR_ACTIVE"),
    *("PROF_DRAM_ACTIVE", "DEV_FB_USED", "DEV_POWER_USAGE", "DEV_TOTAL_ENERGY_CONSUMPTION"),
    *("DEV_XID_ERRORS", "DEV_CLOCKS_EVENT_REASONS"),
)
NODES = ("node-a", "node-b")


def sound() -> list[Series]:
    """Two nodes with two GPUs, one pod on each, and all that tells of them."""
    found = []
    for node in NODES:
        pod = {"namespace": "ml", "pod": f"train-{node}", "uid": f"u-{node}"}
        for gpu in "01":
            labels = {
                "UUID": f"GPU-{node}-{gpu}",
                "gpu": gpu,
                "Hostname": node,
                "modelName": "NVIDIA H100 80GB HBM3",
                "job": "dcgm",
                "instance": f"{node}:9400",
                "pod": f"dcgm-exporter-{node}",
                "namespace": "gpu-operator",
                "container": "exporter",
                "exported_pod": pod["pod"],
                "exported_namespace": "ml",
            }
            found += [Series(f"DCGM_FI_{name}", labels) for name in DCGM]
        kube = {"job": "ksm", "instance": "ksm:8080"}
        of_node, of_pod = {**kube, "node": node}, {**kube, **pod}
        gpus = {"resource": "nvidia_com_gpu", "unit": "integer"}
        found += [
            Series("kube_node_info", of_node),
            Series("kube_node_status_capacity", of_node | gpus, 2),
            Series("kube_node_status_allocatable", of_node | gpus, 2),
            Series("kube_node_labels", of_node | {"label_nvidia_com_gpu_product": "H100"}),
            Series("kube_namespace_labels", kube | {"namespace": "ml", "label_owner": "x"}),
            Series("kube_pod_info", of_pod | {"node": node}),
            Series("kube_pod_created", of_pod, 1_767_225_600),
            Series("kube_pod_owner", of_pod | {"owner_kind": "Job"}),
            Series("kube_pod_status_phase", of_pod | {"phase": "Running"}),
            Series("kube_pod_labels", of_pod | {"label_example_com_team": "ml"}),
            Series("kube_pod_container_resource_requests", of_pod | gpus | {"node": node}, 2),
        ]
        cadvisor = {"job": "kubelet", "instance": f"{node}:10250", "node": node,
                    "namespace": "ml", "pod": pod["pod"]}  # fmt: skip
        for name in ("cpu_usage_seconds", "fs_reads_bytes"):
            found.append(Series(f"container_{name}_total", cadvisor | {"container": "main"}))
        for name in ("receive", "transmit"):
            metric = f"container_network_{name}_bytes_total"
            found.append(Series(metric, cadvisor | {"interface": "eth0"}))
    # The nodes share what stands in every node's list once.
    return list({(s.metric, *sorted(s.labels.items())): s for s in found}.values())


Change = Callable[[Series], Series | None]


@dataclass
class Fleet:
    """Starts servers, and says what is found of each."""

    binaries: tuple[str, str]
    folder: Path
    servers: list[Server] = field(default_factory=list)

    def server(self, change: Change = lambda s: s, *flags: str) -> Server:
        changed = [new for series in sound() if (new := change(series))]
        changed.sort(key=lambda series: series.metric)
        now = int(time.time())
        server = Server(self.binaries, self.folder / str(len(self.servers)))
        self.servers.append(server)
        server.load([*(line for s in changed for line in s.lines(now)), "# EOF\n"])
        server.start(*flags)
        return server

    def faults(self, change: Change = lambda s: s, *flags: str) -> list[Finding]:
        return faults(source(self.server(change, *flags).url))


@contextmanager
def started(binaries: tuple[str, str], folder: Path) -> Iterator[Fleet]:
    """A fleet whose servers end with it."""
    made = Fleet(binaries, folder)
    try:
        yield made
    finally:
        for server in made.servers:
            server.kill()


def findings(told: PrometheusSource, config: Config = CONFIG) -> list[Finding]:
    return list(prometheus(config, "c", told))


def faults(told: PrometheusSource, config: Config = CONFIG) -> list[Finding]:
    return [finding for finding in findings(told, config) if finding.mend]


def without(*starts: str) -> Change:
    return lambda s: None if s.metric.startswith(starts) else s
