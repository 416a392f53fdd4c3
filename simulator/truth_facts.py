"""The truth of one pod and one node, in whole seconds: what the simulator did and the record shows.

What follows for states, shares and money belongs to the other `truth_` modules.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from simulator.clock import SECOND
from simulator.devices import exact_share
from simulator.groups import Group
from simulator.nodes import GPU, Node, NodeVersion
from simulator.pods import Pod

if TYPE_CHECKING:
    from simulator.truth_attempts import Attempt

WHOLE = 1_000_000
NEVER = 1 << 60
Run = tuple[int, int]


@dataclass(eq=False)
class Facts:
    """A pod that was seen."""

    pod: Pod
    uid: str
    created: int
    workload: str
    is_service: bool
    workload_class: str
    units: int
    queue: str
    submitted: int | None
    group: Group | None
    bound: int | None
    asked: int | None
    finished: int | None
    succeeded: bool
    ended: int | None
    gone: int | None
    runs: list[Run]
    attempt: "Attempt | None" = None

    @property
    def first_run(self) -> int | None:
        """When all its GPU containers first ran."""
        return self.runs[0][0] if self.runs else None

    def is_running(self, now: int) -> bool:
        """All its GPU containers run."""
        return any(begin <= now < end for begin, end in self.runs)

    def has_succeeded(self, now: int) -> bool:
        """It has ended well."""
        return self.succeeded and self.finished is not None and self.finished <= now


def facts(pod: Pod) -> Facts:
    """What the record shows of a pod that was seen."""
    seen, owner = pod.seen, pod.owner
    ended = min((t for t in (seen.finished, seen.deleted) if t is not None), default=None)
    gone = min((t for t in (seen.asked, ended) if t is not None), default=None)
    runs: list[Run] | None = None
    for container in pod.asking():
        mine = [(b, NEVER if e is None else e) for b, e in sorted(container.known.items())]
        runs = mine if runs is None else both(runs, mine)
    last = NEVER if ended is None else ended
    return Facts(
        pod=pod,
        uid=pod.uid,
        created=pod.created // SECOND,
        workload=owner.workload if owner else pod.uid,
        is_service=bool(owner and owner.is_service),
        workload_class=owner.workload_class if owner else "unknown",
        units=pod.units,
        queue=pod.queue,
        submitted=pod.submitted,
        group=pod.group if pod.group and pod.group.first is not None else None,
        bound=seen.bound if seen.placed is not None else None,
        asked=seen.asked,
        finished=seen.finished,
        succeeded=seen.succeeded,
        ended=ended,
        gone=gone,
        runs=[(b, min(e, last)) for b, e in runs or [] if b < min(e, last)],
    )


def both(these: list[Run], those: list[Run]) -> list[Run]:
    """When this and that run."""
    found = [(max(a, c), min(b, d)) for a, b in these for c, d in those]
    return sorted((begin, end) for begin, end in found if begin < end)


@dataclass(eq=False)
class NodeSpell:
    """From when on how much of a node cannot be scheduled."""

    begin: int
    is_ready: bool
    cause: str
    is_all: bool
    missing: int  # micro-GPU, where not all


@dataclass(eq=False)
class NodeFacts:
    """A node that was seen."""

    node: Node
    begin: int
    end: int
    installed: list[tuple[int, int]] = field(default_factory=list)  # from when, GPUs
    spells: list[NodeSpell] = field(default_factory=list)

    def installed_at(self, now: int) -> int:
        """Physical GPUs, by what had been reported up to the end of the day."""
        count = 0
        for begin, number in self.installed:
            if begin <= now:
                count = number
        return count


def node_facts(node: Node, days: list[Run]) -> NodeFacts:
    """What the record shows of a node that was seen."""
    end = NEVER if node.deleted is None else node.deleted
    found = NodeFacts(node, node.created // SECOND, end)
    for begin, over in days:
        told = [v.reported for v in node.versions if v.seen < over]
        found.installed.append((begin, max(told, default=0)))
    found.spells.append(NodeSpell(found.begin, True, "provisioning", True, 0))
    was_up = False
    for version in node.versions:
        has_gpus = any(n for name, n in version.allocatable.items() if n)
        was_up = was_up or (version.is_ready and has_gpus)
        found.spells.append(_spell(node, version, was_up))
    return found


def _spell(node: Node, version: NodeVersion, was_up: bool) -> NodeSpell:
    cause = ""
    if not was_up:
        cause = "provisioning"
    elif not version.is_ready:
        cause = "node_not_ready"
    elif version.driver not in ("", "upgrade-done"):
        cause = "driver_upgrade"
    elif version.mig in ("pending", "rebooting"):
        cause = "mig_reconfigure"
    elif version.is_cordoned:
        cause = "cordoned"
    if cause:
        return NodeSpell(version.seen, version.is_ready, cause, True, 0)
    if not any(version.capacity.values()):
        missing = node.count * WHOLE
    elif node.sharing in ("mig", "single"):
        missing = sum(
            (units - version.allocatable.get(name, 0)) * share(node, version, name)
            for name, units in version.capacity.items()
        )
    else:
        told = sum(version.allocatable.values()) * WHOLE // version.replicas
        missing = max(0, node.count * WHOLE - told)
    return NodeSpell(version.seen, True, "missing_from_allocatable", False, missing)


def version_at(node: Node, now: int, resource: str) -> NodeVersion:
    """The version in force at an instant, of those that offer the resource; else the first."""
    offers = [v for v in node.versions if v.capacity.get(resource)]
    known = [v for v in offers if v.seen <= now]
    return (known or offers[:1] or node.versions)[-1 if known else 0]


def share(node: Node, version: NodeVersion, resource: str) -> int:
    """One unit of a resource, in micro-GPU, rounded down."""
    if node.sharing == "single":
        return int(exact_share(node.model, _single(node)) * WHOLE)
    if resource.startswith("nvidia.com/mig-"):
        return int(
            exact_share(node.model, resource.removeprefix("nvidia.com/mig-"))
            * _scale(node, version)
            * WHOLE
        )
    return WHOLE // version.replicas


def _single(node: Node) -> str:
    return node.labels["nvidia.com/gpu.product"].split("-MIG-")[1]


def _scale(node: Node, version: NodeVersion) -> Fraction:
    """Where the MIG devices add up to more than their cards, what each counts for."""
    total = Fraction(0)
    for name, units in version.capacity.items():
        if name.startswith("nvidia.com/mig-"):
            total += units * exact_share(node.model, name.removeprefix("nvidia.com/mig-"))
    cards = node.count - version.capacity.get(GPU, 0)
    return Fraction(cards) / total if total > cards else Fraction(1)
