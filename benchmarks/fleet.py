"""A fleet of any size, as facts: nodes, PodGroups, pods and when each of them did what.

Pods never overlap on a GPU: each GPU (or partition) has its own row of holds with short gaps. How
the facts look as versions of objects belongs in `rows`; the simulator, which plays a scheduler
second by second, is too slow for these sizes and proves another thing.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

DAY = 86_400
AGE = 1000 * DAY
"""The nodes are so old when the record begins: older than anything on them."""
TEAMS = ("research", "vision", "speech", "search", "ads", "platform")
GANG_NODES = (64, 32, 8, 4, 1)
"""Gangs of so many nodes; what is left at a size goes to the next smaller one."""


@dataclass(frozen=True)
class Size:
    """How large the fleet is, and for how long."""

    gpus: int
    days: int
    holds: int
    """Pods that hold GPUs, in all days together, about."""
    seed: int = 1
    heartbeat_minutes: int = 5
    """A kubelet reports its node this often, and each report is a version of it."""
    is_sampled: bool = False
    """Whether its GPUs are measured, each minute."""

    @property
    def seconds(self) -> int:
        """The length of the whole record."""
        return self.days * DAY

    @property
    def nodes(self) -> int:
        """Nodes of 8 GPUs."""
        return max(1, self.gpus // 8)


@dataclass(frozen=True)
class Kind:
    """A sort of work: how much of the fleet runs it, and how one of its pods looks."""

    name: str
    node_ratio: float
    model: str
    units: int
    """Units of the resource on a node."""
    asked: int = 1
    """Units that a pod asks for."""
    length: float = 1.0
    """Typical length of a hold, as a multiple of a short job's."""
    resource: str = "nvidia.com/gpu"
    share_micro_gpu: int = 1_000_000
    """What one unit is."""
    workload_kind: str = "Job"
    workload_class: str = "batch"

    @property
    def slots(self) -> int:
        """Pods that fit on a node."""
        return self.units // self.asked


KINDS = (
    Kind(
        "wide", 0.24, "h100-80gb", 8, 8, 8.0, workload_kind="VolcanoJob", workload_class="training"
    ),
    Kind(
        "ranks", 0.22, "h100-80gb", 8, 1, 8.0, workload_kind="VolcanoJob", workload_class="training"
    ),
    Kind("serve", 0.10, "l40s", 8, 1, 40.0, workload_kind="Deployment", workload_class="inference"),
    Kind("mig", 0.02, "a100-80gb", 56, 1, 2.0, "nvidia.com/mig-1g.10gb", 142_857),
    Kind("sliced", 0.02, "a100-80gb", 32, 1, 2.0, "nvidia.com/gpu.shared", 250_000),
    Kind("short", 0.40, "a100-80gb", 8),
)
PENDING = Kind(
    "pending", 0, "h100-80gb", 8, 8, workload_kind="VolcanoJob", workload_class="training"
)
SYSTEM = Kind("system", 0, "h100-80gb", 0, 0, workload_kind="DaemonSet", workload_class="system")


@dataclass
class Fleet:
    """The facts, instants as seconds since the first day's midnight."""

    size: Size
    nodes: list[dict[str, Any]] = field(default_factory=list)
    node_changes: list[dict[str, Any]] = field(default_factory=list)
    """What changed on a node from an instant on: is_ready, is_cordoned, lost GPUs."""
    groups: list[dict[str, Any]] = field(default_factory=list)
    pods: list[dict[str, Any]] = field(default_factory=list)


def build(size: Size) -> Fleet:
    """The fleet; the same one for the same size."""
    return _Builder(size).built()


class _Builder:
    def __init__(self, size: Size):
        self.size = size
        self.dice = random.Random(size.seed)
        self.fleet = Fleet(size)

    def built(self) -> Fleet:
        """All nodes and what runs on them, then what waits in vain."""
        shares = self._shares()
        slots = sum(len(nodes) * kind.slots / kind.length for kind, nodes in shares)
        period = slots * self.size.seconds / self.size.holds
        for kind, nodes in shares:
            for number in nodes:
                self._node(kind, number)
            if kind.workload_kind == "VolcanoJob":
                self._gangs(kind, list(nodes), period * kind.length)
            else:
                self._singles(kind, nodes, period * kind.length)
        self._waiting()
        return self.fleet

    def _shares(self) -> list[tuple[Kind, range]]:
        found, first = [], 0
        for kind in KINDS:
            last = kind is KINDS[-1]
            wanted = max(1, round(kind.node_ratio * self.size.nodes))
            count = self.size.nodes - first if last else min(wanted, self.size.nodes - first)
            found.append((kind, range(first, first + count)))
            first += count
        return found

    def _node(self, kind: Kind, number: int) -> None:
        """A node, its two system pods, and now and then a fault or a cordon."""
        self.fleet.nodes.append({"number": number, "node": f"node-{number:05}", "kind": kind})
        for name in ("device-plugin", "exporter"):
            self._pod(SYSTEM, number, -AGE, -AGE, None, workload=name, gang=None)
        for day in range(self.size.days):
            fate = self.dice.random()
            begin = day * DAY + self.dice.randrange(DAY - 3600)
            if fate < 0.004:
                change = {"is_ready": False, "is_cordoned": False, "lost_count": 0}
                self._change(number, begin, self.dice.randrange(120, 1800), change)
            elif fate < 0.012:
                change = {"is_ready": True, "is_cordoned": True, "lost_count": 0}
                self._change(number, begin, self.dice.randrange(1800, 3600), change)
            elif fate < 0.016:
                change = {"is_ready": True, "is_cordoned": False, "lost_count": 1}
                self._change(number, begin, self.dice.randrange(600, 3600), change)

    def _change(self, number: int, begin: int, length: int, change: dict[str, Any]) -> None:
        sound = {"is_ready": True, "is_cordoned": False, "lost_count": 0}
        self.fleet.node_changes.append({"number": number, "at": begin, **change})
        self.fleet.node_changes.append({"number": number, "at": begin + length, **sound})

    def _spans(self, period: float) -> Iterator[tuple[int, int]]:
        """The holds of one slot, one after another, from before the record to its end."""
        at = -self.dice.random() * period
        while at < self.size.seconds:
            end = at + max(20.0, self.dice.gammavariate(2.0, period * 0.47))
            yield int(at), int(end)
            at = int(end) + 2 + self.dice.expovariate(1 / max(2.0, period * 0.06))

    def _singles(self, kind: Kind, nodes: range, period: float) -> None:
        for number in nodes:
            for slot in range(kind.slots):
                for bound, end in self._spans(period):
                    if kind.name == "serve":
                        workload = f"serve-{number // 2:04}"
                    else:
                        workload = f"{kind.name}-{number}-{slot}-{bound}"
                    made = self._queued(bound)
                    self._pod(kind, number, made, bound, end, workload, None, slot)

    def _gangs(self, kind: Kind, nodes: list[int], period: float) -> None:
        """Blocks of nodes, each of which one gang after another has to itself."""
        for width in GANG_NODES:
            while len(nodes) >= width and (len(nodes) >= 2 * width or width == 1):
                block, nodes = nodes[:width], nodes[width:]
                for begin, end in self._spans(period):
                    self._gang(kind, block, begin, end)

    def _gang(self, kind: Kind, block: list[int], begin: int, end: int) -> None:
        """One gang; one in five fails half way and its members are made again."""
        name = f"{kind.name}-{block[0]}-{begin}"
        queued = self._queued(begin)
        size = len(block) * kind.slots
        self.fleet.groups.append(
            {
                "group": name, "kind": kind, "min_member_count": size, "queued": queued,
                "admitted": (queued + begin) // 2, "placed": begin, "ended": end,
                "team": self._team(name),
            }
        )  # fmt: skip
        spans = [(queued, begin, end)]
        if end - begin > 600 and self.dice.random() < 0.2:
            half = (begin + end) // 2
            spans = [(queued, begin, half), (half + 1, half + 30, end)]
        for made, start, stop in spans:
            for number in block:
                for slot in range(kind.slots):
                    bound = start + self.dice.randrange(8)
                    self._pod(kind, number, made, bound, stop, name, size, slot)

    def _waiting(self) -> None:
        """Thousands in the queue that are never placed: half of them are withdrawn."""
        for day in range(self.size.days):
            for place in range(max(4, self.size.holds // self.size.days // 60)):
                made = day * DAY + self.dice.randrange(DAY)
                name = f"pending-{day}-{place}"
                gone = made + self.dice.randrange(600, 2 * DAY)
                self._pod(PENDING, None, made, None, gone, name, None)

    def _queued(self, bound: int) -> int:
        return bound - 1 - int(self.dice.expovariate(1 / 600))

    def _team(self, workload: str) -> str:
        return TEAMS[sum(workload.encode()) % len(TEAMS)]

    def _pod(
        self,
        kind: Kind,
        number: int | None,
        made: int,
        bound: int | None,
        end: int | None,
        workload: str,
        gang: int | None,
        slot: int | None = None,
    ) -> None:
        """One pod: bound, started after its image is there, perhaps restarted, ended, removed."""
        dice = self.dice
        started = restarted = again = None
        if bound is not None:
            started = bound + dice.randrange(3, 60)
            if end is not None and started >= end - 4:
                started = end - 4
            # Of a gang about one member fails alone in its life; who waits for it is the gang.
            odds = 1 / gang if gang else 0.04
            if end is not None and end - started > 300 and dice.random() < odds:
                restarted = started + dice.randrange(60, end - started - 120)
                again = restarted + dice.randrange(5, 60)
        is_killed = kind.name == "serve" or bound is None
        removed = None if end is None else end + (0 if is_killed else 90)
        self.fleet.pods.append(
            {
                "uid": f"{len(self.fleet.pods):08x}-{kind.name}", "kind": kind.name,
                "resource": kind.resource, "asked": kind.asked, "workload": workload,
                "workload_kind": kind.workload_kind, "workload_class": kind.workload_class,
                "team": self._team(workload), "number": number, "gang_size": gang, "slot": slot,
                "made": made, "bound": bound, "started": started, "restarted": restarted,
                "again": again, "ended": None if is_killed else end,
                "asked_to_go": end - 15 if is_killed and end is not None else None,
                "removed": removed,
                "is_failed": dice.random() < 0.05, "delay": dice.randrange(100_000, 900_000),
            }
        )  # fmt: skip
