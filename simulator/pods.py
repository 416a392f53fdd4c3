"""A pod: its containers, its present state, what has been seen of it, and how it is written.

Who makes pods belongs to `controllers`, who runs them to `kubelet`.
"""

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from simulator.clock import SECOND, iso
from simulator.groups import Group
from simulator.nodes import Node

if TYPE_CHECKING:
    from simulator.events import Told
    from simulator.startup import Step

PULL_ERRORS = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")


@dataclass(eq=False)
class Container:
    """A container of a pod, and its runs in whole seconds."""

    name: str
    image: str
    asks: bool = False
    kind: str = "main"  # main, init, sidecar
    limits: dict[str, int] = field(default_factory=dict)
    limits_only: bool = False
    waiting: str = ""
    started: int | None = None
    ended: tuple[int, int, str] | None = None  # finished, exit code, reason
    previous: tuple[int, int, int, str] | None = None  # started, finished, exit code, reason
    restarts: int = 0
    known: dict[int, int | None] = field(default_factory=dict)
    """Runs that an observed version told of: started -> finished."""
    runs: list[tuple[int, int | None]] = field(default_factory=list, init=False)
    """Every run, told or not."""

    def start(self, second: int) -> None:
        """It runs (again)."""
        if self.started is not None and self.ended:
            self.previous = (self.started, *self.ended)
            self.restarts += 1
        self.waiting, self.started, self.ended = "", second, None
        self.runs.append((second, None))

    def end(self, second: int, code: int, reason: str) -> None:
        """Its run is over."""
        self.ended = (second, code, reason)
        if self.runs:
            self.runs[-1] = (self.runs[-1][0], second)

    def is_running(self) -> bool:
        """It runs now."""
        return self.started is not None and self.ended is None

    def see(self) -> None:
        """An observed version shows its present and its previous run."""
        if self.previous and not (self.waiting and self.ended):
            self.known[self.previous[0]] = self.previous[1]
        if self.started is not None:
            self.known[self.started] = self.ended[0] if self.ended else None

    def status(self, is_ready: bool) -> str:
        """Its status, as the kubelet writes it."""
        if self.started is None:
            state = f'{{"waiting":{{"reason":"{self.waiting or "ContainerCreating"}"}}}}'
        elif self.ended is None:
            state = f'{{"running":{{"startedAt":"{iso(self.started)}"}}}}'
        elif self.waiting:
            state = f'{{"waiting":{{"reason":"{self.waiting}","message":"back-off"}}}}'
        else:
            state = _terminated(self.started, *self.ended)
        last = self.previous
        if self.waiting and self.ended and self.started is not None:
            last = (self.started, *self.ended)
        return (
            f'{{"name":"{self.name}","state":{state},'
            f'"lastState":{_terminated(*last) if last else "{}"},'
            f'"ready":{"true" if is_ready and self.is_running() else "false"},'
            f'"restartCount":{self.restarts},"image":"{self.image}",'
            f'"imageID":"{self.image.split(":")[0]}@sha256:{len(self.image):064x}"}}'
        )


_written = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


def _terminated(started: int, finished: int, code: int, reason: str) -> str:
    return (
        f'{{"terminated":{{"exitCode":{code},"reason":"{reason}",'
        f'"startedAt":"{iso(started)}","finishedAt":"{iso(finished)}"}}}}'
    )


@dataclass(eq=False)
class Plan:
    """What will become of a pod once a node has it."""

    run: float | None = None  # seconds until its containers end by themselves
    code: int = 0
    pull: float = 8
    init: tuple[float, ...] = ()
    load: float | None = None  # seconds from start to Ready, for what has a readiness probe
    pull_error: float | None = None  # seconds until the image can be pulled
    crashes: tuple[float, ...] = ()  # seconds that each run takes before it crashes
    sidecar_crashes: tuple[float, ...] = ()  # the same of a sidecar that must be up first
    stop: float = 4  # seconds that its containers need to end once asked
    is_refused: bool = False
    tells_end: bool = True  # the kubelet reports the end before the pod is removed
    part: str = ""  # what its process does with its GPUs (`casting`), where that is set


@dataclass(eq=False)
class Owner:
    """The object that controls a pod, and the workload above it."""

    api: str
    kind: str
    name: str
    uid: str
    workload: str  # uid of the top-level object, else kind/namespace/name
    workload_class: str
    is_service: bool = False

    def reference(self) -> dict[str, Any]:
        """As an entry of ownerReferences."""
        return {
            "apiVersion": self.api,
            "kind": self.kind,
            "name": self.name,
            "uid": self.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }


@dataclass(eq=False)
class Seen:
    """What the record tells of a pod, in whole seconds."""

    first: int | None = None
    placed: int | None = None  # first observation with a node, in microseconds
    node_name: str = ""
    bound: int | None = None
    waiting: list[tuple[int, str]] = field(default_factory=list)
    finished: int | None = None
    succeeded: bool = False
    is_refused: bool = False
    ready: int | None = None
    asked: int | None = None
    deleted: int | None = None


class PodVersion(NamedTuple):
    """One version of a pod, as kube-state-metrics reads it."""

    phase: str
    reason: str
    node_name: str
    bound: int | None  # microseconds
    acknowledged: int | None
    ready: int | None
    deletion: int | None
    containers: tuple[tuple[int | None, tuple[int, int, str] | None, str, int], ...]
    """Of each container: started, ended, what it waits for, restarts."""


@dataclass(eq=False)
class Pod:
    """A pod and its present state."""

    name: str
    uid: str
    namespace: str
    created: int
    owner: Owner | None
    labels: dict[str, str]
    annotations: dict[str, str]
    containers: list[Container]
    spec: str  # JSON of the spec without its node, open at the end
    plan: Plan
    resource: str = ""
    units: int = 0
    share: tuple[int, int] = (0, 0)  # HAMi: MiB and hundredths of the cores, each
    pool: str = ""
    priority: int = 0
    scheduler: str = "default-scheduler"
    group: Group | None = None
    queue: str = ""
    submitted: int | None = None
    is_gated: bool = False
    has_condition: bool = True  # PodScheduled; a pod that names its node may lack it
    node: Node | None = None
    node_name: str = ""
    bound: int | None = None
    entries: list[tuple[str, int, int]] = field(default_factory=list)  # card, MiB, cores
    acknowledged: int | None = None
    phase: str = "Pending"
    reason: str = ""
    ready: int | None = None
    unready: int | None = None
    unschedulable: int | None = None
    asked: int | None = None
    grace: int = 30
    disruption: tuple[str, int] | None = None
    gone: bool = False
    released: bool = False
    devices_from: int | None = None  # the kubelet gave it its devices, in microseconds
    devices_until: int | None = None
    removed: int | None = None  # the object was gone, in microseconds
    history: list[tuple[int, "PodVersion"]] = field(default_factory=list)
    steps: list["Step"] = field(default_factory=list)  # its images, as they came to the node
    told: list["Told"] = field(default_factory=list)  # what the record has of its kubelet's words
    seen: Seen = field(default_factory=Seen)
    whole: Seen = field(default_factory=Seen)
    """What a recorder would have seen that never looks away or late; kept for metrics only."""

    def version(self) -> "PodVersion":
        """What the API server says of it now, as far as metrics repeat it."""
        return PodVersion(
            self.phase,
            self.reason,
            self.node_name,
            self.bound if self.has_condition else None,
            self.acknowledged,
            self.ready if self.unready is None else None,
            None if self.asked is None else self.asked + self.grace,
            tuple((c.started, c.ended, c.waiting, c.restarts) for c in self.containers),
        )

    def is_terminal(self) -> bool:
        """It has Succeeded or Failed."""
        return self.phase in ("Succeeded", "Failed")

    def asking(self) -> list[Container]:
        """The containers that ask for the GPU, init containers apart; all where none does."""
        lasting = [c for c in self.containers if c.kind != "init"]
        return [c for c in lasting if c.asks] or [c for c in lasting if c.kind == "main"]

    def _waits_for(self) -> str:
        if any(c.kind == "init" and not (c.ended and c.ended[1] == 0) for c in self.containers):
            return "init"
        reasons = {c.waiting for c in self.containers}
        if reasons & set(PULL_ERRORS):
            return "image_pull"
        return "crash_loop" if "CrashLoopBackOff" in reasons else "undetermined"

    def see(self, instant: int, *, is_deleted: bool = False, into: Seen | None = None) -> None:
        """The recorder saw the present state; or what else is told of every version."""
        now, seen = instant // SECOND, into or self.seen
        if seen.first is None:
            seen.first = now
        if self.node_name and seen.placed is None:
            seen.placed, seen.node_name = instant, self.node_name
            is_told = self.has_condition and self.bound is not None
            seen.bound = self.bound // SECOND if is_told and self.bound is not None else now
        is_started = self.acknowledged is not None and self.reason != "UnexpectedAdmissionError"
        for container in self.containers if is_started and not into else ():
            container.see()
        waits = self._waits_for()
        if not seen.waiting or seen.waiting[-1][1] != waits:
            seen.waiting.append((now, waits))
        if self.is_terminal() and seen.finished is None:
            ends = [
                c.ended[0]
                for c in self.containers
                if c.ended and c.kind != "init" and not c.waiting
            ]
            seen.finished = max(ends) if ends else now
            seen.succeeded = self.phase == "Succeeded"
            seen.is_refused = self.reason == "UnexpectedAdmissionError"
        if self.ready is not None and self.unready is None and seen.ready is None:
            seen.ready = self.ready
        if self.asked is not None and seen.asked is None:
            seen.asked = self.asked
        if is_deleted:
            seen.deleted = now

    def body(self, revision: int) -> str:
        """The Kubernetes object."""
        meta = {
            "name": self.name,
            "namespace": self.namespace,
            "uid": self.uid,
            "resourceVersion": str(revision),
            "creationTimestamp": iso(self.created // SECOND),
            "labels": self.labels,
        }
        if self.annotations:
            meta["annotations"] = self.annotations
        if self.owner:
            meta["ownerReferences"] = [self.owner.reference()]
        if self.asked is not None:
            meta["deletionTimestamp"] = iso(self.asked + self.grace)
            meta["deletionGracePeriodSeconds"] = self.grace
        place = f',"nodeName":"{self.node_name}"' if self.node_name else ""
        gates = ',"schedulingGates":[{"name":"example.com/quota"}]' if self.is_gated else ""
        return (
            f'{{"kind":"Pod","apiVersion":"v1","metadata":{_written(meta)},'
            f'"spec":{self.spec}{gates}{place}}},"status":{self._status()}}}'
        )

    def _status(self) -> str:
        parts = [f'"phase":"{self.phase}"', f'"conditions":[{",".join(self._conditions())}]']
        if self.reason:
            parts.append(f'"reason":"{self.reason}"')
        if self.reason == "UnexpectedAdmissionError":
            parts.append(
                '"message":"Pod was rejected: Allocate failed due to requested number of devices '
                f"unavailable for {self.resource}. Requested: {self.units}, Available: 0, "
                'which is unexpected"'
            )
        elif self.acknowledged is not None:
            parts.append(f'"startTime":"{iso(self.acknowledged)}"')
            is_ready = self.ready is not None and self.unready is None
            for key, kinds in (
                ("initContainerStatuses", ("init", "sidecar")),
                ("containerStatuses", ("main",)),
            ):
                listed = [c.status(is_ready) for c in self.containers if c.kind in kinds]
                if listed:
                    parts.append(f'"{key}":[{",".join(listed)}]')
        parts.append('"qosClass":"Burstable"')
        return "{" + ",".join(parts) + "}"

    def _conditions(self) -> list[str]:
        found = []
        if self.disruption:
            found.append(
                _condition("DisruptionTarget", True, self.disruption[1], self.disruption[0])
            )
        if self.node_name and self.bound is not None and self.has_condition:
            found.append(_condition("PodScheduled", True, self.bound // SECOND))
        elif not self.node_name and (self.is_gated or self.unschedulable is not None):
            since = self.unschedulable or self.created // SECOND
            why = "SchedulingGated" if self.is_gated else "Unschedulable"
            found.append(_condition("PodScheduled", False, since, why))
        if self.acknowledged is not None and self.reason != "UnexpectedAdmissionError":
            is_ready = self.ready is not None and self.unready is None
            since = self.unready or self.ready or self.acknowledged
            why = "" if is_ready else "PodCompleted" if self.is_terminal() else "ContainersNotReady"
            found.append(_condition("Initialized", True, self.acknowledged))
            found.append(_condition("Ready", is_ready, since, why))
        return found


def _condition(name: str, is_true: bool, since: int, reason: str = "") -> str:
    why = f',"reason":"{reason}"' if reason else ""
    return f'{{"type":"{name}","status":"{is_true}","lastTransitionTime":"{iso(since)}"{why}}}'
