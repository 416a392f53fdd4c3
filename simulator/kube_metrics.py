"""What kube-state-metrics tells of pods and nodes, as the API server had them at each scrape.

It is made of every version, told to the recorder or not. Containers' use is in `cadvisor`.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random
from uuid import UUID

from simulator.clock import SECOND
from simulator.nodes import Node, NodeVersion
from simulator.openmetrics import Page, Series, labelled
from simulator.pods import Pod, PodVersion
from simulator.scope import WHOLE, Scope
from simulator.world import World

STEP = 60
PHASES = ("Pending", "Succeeded", "Failed", "Unknown", "Running")
POD_LABELS = ("app", "cost.example.com/team", "volcano.sh/job-name", "example.com/revision")
NODE_LABELS = (
    *("nvidia.com/gpu.product", "nvidia.com/gpu.count", "nvidia.com/gpu.memory"),
    *("nvidia.com/gpu.replicas", "nvidia.com/gpu.sharing-strategy", "nvidia.com/mig.strategy"),
    *("karpenter.sh/capacity-type", "example.com/pool", "example.com/pool-owner"),
    "nvidia.com/gpu-driver-upgrade-state",
)
Facts = dict[tuple[str, str], str]
"""Metric and labels -> value."""
Piece = tuple[int, int, str]
"""From an instant in microseconds to another, a value."""


@dataclass(eq=False)
class Scraped:
    """One replica of a target, asked every minute."""

    labels: str
    offset: int  # seconds
    begin: int
    count: int
    stamps: list[str] = field(default_factory=list)
    first: int = 0
    last: int = 1 << 30
    """The scrapes in which it is there."""

    @classmethod
    def of(
        cls, world: World, labels: dict[str, str], rng: Random, scope: Scope = WHOLE
    ) -> "Scraped":
        """A target that lives as long as the record."""
        begin, end = scope.since(world), world.end // SECOND
        offset, count = rng.randrange(1, STEP - 1), (end - begin) // STEP
        rest = rng.randrange(1000)
        stamps = [f" {begin + offset + STEP * n}.{rest:03}\n" for n in range(count)]
        return cls(labelled(labels), offset, begin, count, stamps)

    def number(self, instant: int) -> int:
        """The first scrape at or after an instant in microseconds."""
        late = instant - (self.begin + self.offset) * SECOND
        number = -(-late // (STEP * SECOND))
        return min(max(0, self.first, number), self.count, self.last)


def tell(page: Page, world: World, number: int) -> list[Scraped]:
    """Put all that kube-state-metrics tells of the n-th cluster on the page."""
    rng = Random(f"{world.seed}/{world.name}/ksm")
    targets = []
    for replica in range(1 + number % 2):  # in odd clusters a second one tells it again
        labels = {"instance": f"10.{number}.255.{8 + replica}:8080", "job": "kube-state-metrics"}
        if number % 2:  # honorLabels false: what it tells gives way to its own labels
            name = f"kube-state-metrics-{rng.randrange(10**5):05}"
            labels |= {"pod": name, "namespace": "monitoring", "container": "kube-state-metrics"}
        targets.append(Scraped.of(world, labels, rng))
        if replica:
            count = targets[-1].count
            targets[-1].first, targets[-1].last = count * 6 // 10, count * 8 // 10
    rename = _exported if number % 2 else str
    for pod in world.all_pods:
        end = world.end if pod.removed is None else pod.removed
        _put(page, targets, _levels(pod.history, lambda v, p=pod: _pod(p, v, number), end), rename)
    for node in world.all_nodes:
        points = [(now * SECOND, (told, labels)) for now, told, labels in node.history]
        end = world.end if node.removed is None else node.removed * SECOND
        _put(page, targets, _levels(points, lambda v, n=node: _node(n, *v), end), rename)
    _put(page, targets, _owners(world, number), rename)
    return targets


def _exported(labels: str) -> str:
    return re.sub(r'(^|,)(pod|namespace|container)="', r'\1exported_\2="', labels)


def _levels(history: list, facts: Callable[..., Facts], end: int) -> dict[tuple[str, str], list]:
    """Each series, and from when to when it had which value."""
    found: dict[tuple[str, str], list[Piece]] = {}
    for index, (now, version) in enumerate(history):
        until = history[index + 1][0] if index + 1 < len(history) else end
        for key, value in facts(version).items():
            pieces = found.setdefault(key, [])
            if pieces and pieces[-1][1] == now and pieces[-1][2] == value:
                pieces[-1] = (pieces[-1][0], until, value)
            else:
                pieces.append((now, until, value))
    return found


def _put(
    page: Page,
    targets: list[Scraped],
    levels: dict[tuple[str, str], list[Piece]],
    rename: Callable[[str], str],
) -> None:
    for (name, labels), pieces in levels.items():
        page.add(name, lambda p=pieces, told=labels: _series(targets, rename(told), p))


def _series(targets: list[Scraped], labels: str, pieces: list[Piece]) -> Iterable[Series]:
    for target in targets:
        text = f"{labels},{target.labels}"
        for begin, end, value in pieces:
            first, last = target.number(begin), target.number(end)
            if first < last:
                yield text, [value] * (last - first), target.stamps[first:last]


def _name(label: str) -> str:
    return "label_" + re.sub(r"[^a-zA-Z0-9_]", "_", label)


def _resource(resource: str) -> tuple[str, str]:
    unit = {"cpu": "core", "memory": "byte"}.get(resource, "integer")
    return re.sub(r"[^a-zA-Z0-9_]", "_", resource), unit


def _pod(pod: Pod, version: PodVersion, number: int) -> Facts:
    """All rows of one version of a pod."""
    found: Facts = {}
    base = labelled({"namespace": pod.namespace, "pod": pod.name, "uid": pod.uid})

    def put(name: str, value: object, **labels: str) -> None:
        more = f",{labelled(labels)}" if labels else ""
        found[name, base + more] = str(value)

    owner = pod.owner
    kind, owned_by = (owner.kind, owner.name) if owner else ("", "")
    place = version.node_name
    put("kube_pod_info", 1, node=place, created_by_kind=kind, created_by_name=owned_by)
    put(
        *("kube_pod_owner", 1),
        owner_kind=kind,
        owner_name=owned_by,
        owner_is_controller="true" if owner else "",
    )
    if number % 2 == 0:
        labels = {_name(k): pod.labels[k] for k in POD_LABELS if k in pod.labels}
        put("kube_pod_labels", 1, **labels)
    put("kube_pod_created", pod.created // SECOND)
    for phase in PHASES:
        put("kube_pod_status_phase", int(version.phase == phase), phase=phase)
    if version.reason:
        put("kube_pod_status_reason", 1, reason=version.reason)
    for name, value in (
        ("start_time", version.acknowledged),
        ("status_scheduled_time", version.bound // SECOND if version.bound else None),
        ("status_ready_time", version.ready),
        ("deletion_timestamp", version.deletion),
    ):
        if value is not None:
            put(f"kube_pod_{name}", value)
    ends = []
    for container, (started, ended, waits, restarts) in zip(
        pod.containers, version.containers, strict=True
    ):
        start = "kube_pod_init_container" if container.kind != "main" else "kube_pod_container"
        for resource, units in container.limits.items():
            told, unit = _resource(resource)
            told = {"node": place, "resource": told, "unit": unit, "container": container.name}
            put(f"{start}_resource_requests", units, **told)
            put(f"{start}_resource_limits", units, **told)
        if version.acknowledged is None:
            continue
        is_over = ended is not None and not waits
        if container.kind == "main":
            put(f"{start}_status_restarts_total", restarts, container=container.name)
            is_running = int(started is not None and ended is None)
            put(f"{start}_status_running", is_running, container=container.name)
            if is_running:
                put(f"{start}_state_started", started, container=container.name)
            elif is_over and ended:
                told = {"container": container.name, "reason": ended[2]}
                put(f"{start}_status_terminated_reason", 1, **told)
                ends.append(ended[0])
            else:
                told = {"container": container.name, "reason": waits or "ContainerCreating"}
                put(f"{start}_status_waiting_reason", 1, **told)
    if ends:
        put("kube_pod_completion_time", max(ends))
    return found


def _node(node: Node, version: NodeVersion, labels: dict[str, str]) -> Facts:
    """All rows of one version of a node."""
    found: Facts = {}

    def put(name: str, value: object, **more: str) -> None:
        found[name, labelled({"node": node.name} | more)] = str(value)

    ids = {"provider_id": f"sim:///{node.uid}", "kubelet_version": "v1.35.2"}
    system = str(UUID(int=Random(node.uid).getrandbits(128), version=4))
    put("kube_node_info", 1, **ids, system_uuid=system)
    put("kube_node_created", node.created // SECOND)
    put("kube_node_labels", 1, **{_name(k): labels[k] for k in NODE_LABELS if k in labels})
    put("kube_node_spec_unschedulable", int(version.is_cordoned))
    if version.is_cordoned:
        taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
        put("kube_node_spec_taint", 1, **taint)
    ready = "true" if version.is_ready else "unknown" if labels.get("nvidia.com/gpu.count") else ""
    for status in ("true", "false", "unknown"):
        value = int(status == (ready or "false"))
        put("kube_node_status_condition", value, condition="Ready", status=status)
    for kind, told in (("capacity", version.capacity), ("allocatable", version.allocatable)):
        for resource, units in ({"cpu": 128} | told).items():
            name, unit = _resource(resource)
            put(f"kube_node_status_{kind}", units, resource=name, unit=unit)
    return found


def _owners(world: World, number: int) -> dict[tuple[str, str], list[Piece]]:
    """The second hop from a pod to its Deployment, and the namespaces."""
    found: dict[tuple[str, str], list[Piece]] = {}
    for pod in world.all_pods:
        if pod.owner and pod.owner.kind == "ReplicaSet":
            labels = {
                "namespace": pod.namespace,
                "replicaset": pod.owner.name,
                "owner_kind": "Deployment",
                "owner_name": pod.owner.workload.rsplit("/", 1)[1],
                "owner_is_controller": "true",
            }
            piece = (pod.created, world.end, "1")
            found.setdefault(("kube_replicaset_owner", labelled(labels)), [piece])
    for name, namespace in world.namespaces.items():
        if number % 2 == 0:
            for begin, told in namespace.versions:
                more = {_name(k): v for k, v in told.items()}
                key = ("kube_namespace_labels", labelled({"namespace": name} | more))
                later = [b for b, _ in namespace.versions if b > begin]
                found[key] = [(begin, min([*later, world.end]), "1")]
    return found
