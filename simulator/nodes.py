"""A node: its cards, what the kubelet reports of them, who takes what of it, and how it is written.

Which nodes there are belongs to `pools`; what happens to them to `faults`.
"""

import json
from dataclasses import dataclass, field
from typing import NamedTuple

from simulator.clock import SECOND, iso
from simulator.devices import Model, per_gpu

GPU = "nvidia.com/gpu"


class NodeVersion(NamedTuple):
    """What one observed version of a node said, as far as accounting goes."""

    seen: int  # whole seconds
    reported: int  # physical GPUs
    is_ready: bool
    is_cordoned: bool
    driver: str
    mig: str
    capacity: dict[str, int]
    allocatable: dict[str, int]
    replicas: int


@dataclass
class Card:
    """One GPU of a HAMi node, as its scheduler books it."""

    uuid: str
    memory_mib: int
    memory: int = 0
    cores: int = 0
    slots: int = 0


@dataclass(eq=False)
class Node:
    """A node and its present state."""

    name: str
    uid: str
    created: int
    pool: str
    model: Model
    sharing: str  # whole, mig, single, shared, hami, cpu
    count: int
    devices: dict[str, int]  # resource -> units, when all is well
    labels: dict[str, str]
    cards: list[Card] = field(default_factory=list)
    replicas: int = 1
    is_json_register: bool = True
    capacity: dict[str, int] = field(default_factory=dict)
    allocatable: dict[str, int] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)
    is_ready: bool = True
    since: int = 0
    is_cordoned: bool = False
    is_alive: bool = True  # the kubelet answers
    removed: int | None = None
    settled: int = 0  # the schedulers trust its devices from then on
    images: set[str] = field(default_factory=set)
    versions: list[NodeVersion] = field(default_factory=list)
    deleted: int | None = None  # as observed, whole seconds
    cuts: list[tuple[int, dict[str, int]]] = field(default_factory=list)
    """From when on the MIG manager left which devices; none while it cuts."""
    lost: list[tuple[int, int, str]] = field(default_factory=list)
    """From when to when a unit of which resource was off the bus, in whole seconds."""
    history: list[tuple[int, "NodeVersion", dict[str, str]]] = field(default_factory=list)
    """Every version and its labels, told or not."""

    def up(self, now: int) -> None:
        """The device plugin has registered all devices."""
        self.capacity = dict(self.devices)
        self.allocatable = dict(self.devices)
        self.settled = now + 4 * SECOND

    @property
    def is_up(self) -> bool:
        """The schedulers use it."""
        return self.is_ready and not self.is_cordoned and self.removed is None

    def free(self, resource: str, now: int) -> int:
        """Units of a resource that a scheduler may still give away."""
        if not self.is_up or now < self.settled:
            return 0
        return self.allocatable.get(resource, 0) - self.used.get(resource, 0)

    def take(self, resource: str, units: int) -> None:
        """Units given to a pod, or with a negative number given back."""
        self.used[resource] = self.used.get(resource, 0) + units

    def _reported(self) -> int:
        """Physical GPUs by the label, else by capacity freed of replicas."""
        said = self.labels.get("nvidia.com/gpu.count")
        if said is None:
            return self.capacity.get(GPU, 0) // self.replicas
        product = self.labels.get("nvidia.com/gpu.product", "")
        if "-MIG-" in product:
            per = per_gpu(self.model, product.split("-MIG-")[1])
            return -(-int(said) // per)
        return int(said)

    def version(self, instant: int) -> NodeVersion:
        """The present state."""
        return NodeVersion(
            instant // SECOND,
            self._reported(),
            self.is_ready,
            self.is_cordoned,
            self.labels.get("nvidia.com/gpu-driver-upgrade-state", ""),
            self.labels.get("nvidia.com/mig.config.state", ""),
            dict(self.capacity),
            dict(self.allocatable),
            self.replicas,
        )

    def see(self, seen: int) -> None:
        """The recorder saw the present state."""
        self.versions.append(self.version(seen))

    def register(self) -> dict[str, str]:
        """HAMi's annotation: each card, in the newer or the older spelling."""
        if not self.cards:
            return {}
        kind = f"NVIDIA-{self.model.product.replace('NVIDIA-', 'NVIDIA ')}"
        if self.is_json_register:
            cards = [
                {
                    "id": card.uuid,
                    "index": number,
                    "count": 10,
                    "devmem": card.memory_mib,
                    "devcore": 100,
                    "type": kind,
                    "numa": 0,
                    "mode": "hami-core",
                    "health": True,
                }
                for number, card in enumerate(self.cards)
            ]
            return {"hami.io/node-nvidia-register": json.dumps(cards, separators=(",", ":"))}
        old = "".join(f"{card.uuid},10,{card.memory_mib},100,{kind},0,true:" for card in self.cards)
        return {"hami.io/node-nvidia-register": old}

    def body(self, revision: int) -> str:
        """The Kubernetes object."""
        ready = {
            "type": "Ready",
            "status": "True" if self.is_ready else "Unknown" if not self.is_alive else "False",
            "lastHeartbeatTime": iso(self.since),
            "lastTransitionTime": iso(self.since),
            "reason": "KubeletReady" if self.is_ready else "NodeStatusUnknown",
        }
        base = {"cpu": "128", "memory": "1056Gi", "pods": "110"}
        spec: dict[str, object] = {"providerID": f"sim:///{self.uid}"}
        if self.is_cordoned:
            taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
            spec |= {"unschedulable": True, "taints": [taint]}
        return json.dumps(
            {
                "kind": "Node",
                "apiVersion": "v1",
                "metadata": {
                    "name": self.name,
                    "uid": self.uid,
                    "resourceVersion": str(revision),
                    "creationTimestamp": iso(self.created // SECOND),
                    "labels": self.labels,
                    "annotations": {"node.alpha.kubernetes.io/ttl": "0"} | self.register(),
                },
                "spec": spec,
                "status": {
                    "capacity": base | {k: str(v) for k, v in self.capacity.items()},
                    "allocatable": base | {k: str(v) for k, v in self.allocatable.items()},
                    "conditions": [
                        ready,
                        {
                            "type": "MemoryPressure",
                            "status": "False",
                            "lastHeartbeatTime": iso(self.since),
                            "lastTransitionTime": iso(self.created // SECOND),
                            "reason": "KubeletHasSufficientMemory",
                        },
                    ],
                    "nodeInfo": {"kubeletVersion": "v1.35.2", "architecture": "amd64"},
                },
            },
            separators=(",", ":"),
        )
