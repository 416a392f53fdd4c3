"""What cAdvisor tells of the containers with a GPU: CPU, throttling, files read, network.

What their processes do is in `casting`; only its host side is told here.
"""

from collections.abc import Iterable
from random import Random

from simulator.casting import Play
from simulator.clock import SECOND
from simulator.kube_metrics import STEP, Scraped
from simulator.openmetrics import Page, Series, labelled
from simulator.scope import Scope
from simulator.world import World

NAMES = {
    "cpu": "container_cpu_usage_seconds_total",
    "periods": "container_cpu_cfs_periods_total",
    "throttled": "container_cpu_cfs_throttled_periods_total",
    "reads": "container_fs_reads_bytes_total",
    "received": "container_network_receive_bytes_total",
    "sent": "container_network_transmit_bytes_total",
}
PERIODS = 10
"""Of a CPU limit, in a second."""


def tell(page: Page, world: World, plays: list[Play], scope: Scope) -> None:
    """Put all counters of all pods on the page."""
    rng = Random(f"{world.seed}/{world.name}/cadvisor")
    kubelets: dict[str, Scraped] = {}
    for play in plays:
        node = play.pod.node
        if not play.runs or not node:
            continue
        if node.uid not in kubelets:
            labels = {"instance": f"{node.name}:10250", "node": node.name, "job": "kubelet"}
            kubelets[node.uid] = Scraped.of(world, labels, rng, scope)
        limit = play.pod.asking()[0].limits.get("cpu", 0)
        for key, name in NAMES.items():
            if limit or key not in ("periods", "throttled"):
                page.add(name, lambda p=play, k=key, t=kubelets[node.uid]: _series(p, k, t))


def _series(play: Play, key: str, target: Scraped) -> Iterable[Series]:
    """A counter of each run of a container; each begins at zero."""
    pod = play.pod
    labels = {"namespace": pod.namespace, "pod": pod.name}
    if key in ("received", "sent"):
        labels["interface"] = "eth0"
    else:
        labels["container"] = pod.asking()[0].name
    text = f"{labelled(labels)},{target.labels}"
    for begin, end in play.runs:
        first, last = target.number(begin * SECOND), target.number(end * SECOND)
        if first >= last:
            continue
        values: list[str] = []
        parts = [s for s in play.segments[0] if s.end > begin and s.begin < end]
        total, index, done = 0.0, 0, begin
        for number in range(first, last):
            now = target.begin + target.offset + number * STEP
            while index < len(parts) and done < now:
                until = min(parts[index].end, now)
                total += max(0, until - done) * _rate(parts[index].phase, key)
                done = max(done, until)
                if parts[index].end <= now:
                    index += 1
                else:
                    break
            values.append(f"{total:.3f}" if key == "cpu" else str(int(total)))
        yield text, values, target.stamps[first:last]


def _rate(phase, key: str) -> float:
    match key:
        case "cpu":
            return phase.cpu
        case "periods":
            return PERIODS
        case "throttled":
            return PERIODS * phase.throttled
        case "reads":
            return phase.reads
        case "received":
            return phase.network
        case _:
            return phase.network * 0.7
