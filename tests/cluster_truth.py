"""What a cluster's own objects say of each pod and each quota attempt, by plain watches.

Nothing of the product is used here: conditions, container states and owner references are read
as the API server tells them, and folded into seconds. What is compared belongs to the tests.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import requests

from tests.control_plane_api import GPU, Api, Object, Refused

Fold = Callable[[str, Object, float], None]
QUEUE = "/apis/kueue.x-k8s.io/v1beta2/workloads"
PODS = "/api/v1/pods"
OWNERS = (
    "/apis/batch/v1/jobs",
    "/apis/jobset.x-k8s.io/v1alpha2/jobsets",
    "/apis/trainer.kubeflow.org/v1alpha1/trainjobs",
    "/apis/apps/v1/deployments",
    "/apis/apps/v1/replicasets",
)


@dataclass
class Pod:
    """One pod's life; seconds since 1970, None for what never happened."""

    name: str
    created: int
    owner: str | None
    gpus: int
    node: str | None = None
    bound: int | None = None
    started: int | None = None
    ready: int | None = None
    asked: int | None = None
    told_finish: int | None = None
    """The end that its containers tell."""
    seen_finish: int | None = None
    """When it was first seen in a terminal phase, or in one whose containers tell no end."""
    deleted: int | None = None
    """When it was seen to be gone."""
    disrupted: str | None = None

    @property
    def finished(self) -> int | None:
        """As its containers tell it, else as it was seen."""
        return self.seen_finish if self.told_finish is None else self.told_finish

    @property
    def ended(self) -> int | None:
        """When it gave its GPUs back."""
        return min((at for at in (self.finished, self.deleted) if at is not None), default=None)

    @property
    def is_end_told(self) -> bool:
        """Whether its end is an instant that the object tells, not one at which it was seen."""
        return self.told_finish is not None and self.ended == self.told_finish


@dataclass
class Try:
    """One quota attempt of a Workload."""

    queued: int
    reserved: int | None = None
    admitted: int | None = None
    ready: int | None = None
    evicted: int | None = None
    reason: str | None = None
    released: int | None = None
    finished: int | None = None
    deleted: int | None = None

    @property
    def ended(self) -> int | None:
        """The first of its ends."""
        ends = (self.released, self.finished, self.deleted)
        return min((at for at in ends if at is not None), default=None)


@dataclass
class Work:
    """A Kueue Workload."""

    name: str
    owner: str
    size: int
    """Its pods, over all pod sets."""
    created: int
    tries: list[Try] = field(default_factory=list)
    evictions: set[int] = field(default_factory=set)
    is_active: bool = True
    has_quota: bool = False


@dataclass
class Owner:
    """What owns pods, or owns what does."""

    kind: str
    name: str
    above: str | None
    created: int


class Truth:
    """Watches a cluster until it is closed."""

    def __init__(self, api: Api):
        self.api = api
        self.pods: dict[str, Pod] = {}
        self.works: dict[str, Work] = {}
        self.owners: dict[str, Owner] = {}
        self.faults: list[str] = []
        self.version_count = 0
        self._is_closed = threading.Event()
        self._reached: dict[str, int] = {}
        folds: dict[str, Fold] = {PODS: self.pod, QUEUE: self.work}
        folds |= dict.fromkeys(OWNERS, self.owner)
        starts = {path: api.get(path)["metadata"]["resourceVersion"] for path in folds}
        for path, fold in folds.items():
            told = (path, fold, starts[path])
            threading.Thread(target=self._follow, args=told, daemon=True).start()

    def close(self) -> None:
        """Ends it; the watches end with the cluster."""
        self._is_closed.set()
        assert not self.faults, self.faults

    def _follow(self, path: str, fold: Fold, version: str) -> None:
        while not self._is_closed.is_set():
            try:
                with closing(self.api.watch(path, version, seconds=3600)) as events:
                    for event in events:
                        version = event["object"]["metadata"]["resourceVersion"]
                        fold(event["type"], event["object"], time.time())
                        self.version_count += 1
            except (Refused, requests.RequestException, KeyError, ValueError) as problem:
                if not self._is_closed.is_set():
                    self.faults.append(f"{path}: {problem!r}")
                    return

    def pod(self, change: str, told: Object, at: float) -> None:
        """One version of a pod."""
        meta, spec, status = told["metadata"], told["spec"], told.get("status", {})
        uid, seen = meta["uid"], int(at)
        if uid not in self.pods:
            gpus = sum(
                int(each.get("resources", {}).get("limits", {}).get(GPU, 0))
                for each in spec["containers"]
            )
            name = f"{meta['namespace']}/{meta['name']}"
            self.pods[uid] = Pod(name, _created(meta), _above(meta), gpus)
        pod = self.pods[uid]
        conditions = _true(status)
        pod.node = spec.get("nodeName") or pod.node
        if pod.node and "PodScheduled" in conditions:
            pod.bound = _earlier(pod.bound, _at(conditions["PodScheduled"]))
        if "Ready" in conditions:
            pod.ready = _earlier(pod.ready, _at(conditions["Ready"]))
        if "DisruptionTarget" in conditions:
            pod.disrupted = conditions["DisruptionTarget"]["reason"]
        if "deletionTimestamp" in meta:
            grace = meta.get("deletionGracePeriodSeconds", 0)
            pod.asked = _earlier(pod.asked, seconds(meta["deletionTimestamp"]) - grace)
        states = [each.get("state", {}) for each in status.get("containerStatuses", ())]
        if states and all("running" in state for state in states):
            latest = max(seconds(state["running"]["startedAt"]) for state in states)
            pod.started = _earlier(pod.started, latest)
        if status.get("phase") in ("Succeeded", "Failed"):
            ends = [s["terminated"]["finishedAt"] for s in states if "terminated" in s]
            if ends:
                pod.told_finish = max(map(seconds, ends))
            else:
                pod.seen_finish = _earlier(pod.seen_finish, seen)
        if change == "DELETED":
            pod.deleted = seen

    def work(self, change: str, told: Object, at: float) -> None:
        """One version of a Workload."""
        meta, status = told["metadata"], told.get("status", {})
        if meta["uid"] not in self.works:
            size = sum(each["count"] for each in told["spec"]["podSets"])
            (owner,) = meta["ownerReferences"]
            work = Work(meta["name"], owner["uid"], size, _created(meta))
            work.tries.append(Try(work.created))
            self.works[meta["uid"]] = work
        work = self.works[meta["uid"]]
        work.is_active = told["spec"].get("active", True)
        conditions, true = {c["type"]: c for c in status.get("conditions", ())}, _true(status)
        quota, now = conditions.get("QuotaReserved"), work.tries[-1]
        if quota and quota["status"] == "True":
            now.reserved = _earlier(now.reserved, _at(quota))
            work.has_quota = True
            if "Admitted" in true:
                now.admitted = _earlier(now.admitted, _at(true["Admitted"]))
            if "PodsReady" in true and _at(true["PodsReady"]) >= now.reserved:
                now.ready = _earlier(now.ready, _at(true["PodsReady"]))
        elif quota and work.has_quota and "Finished" not in true:
            now.released = _at(quota)
            work.has_quota = False
            work.tries.append(Try(_at(quota)))
        if "Evicted" in true and _at(true["Evicted"]) not in work.evictions:
            work.evictions.add(_at(true["Evicted"]))
            lost = work.tries[-1 if work.has_quota else -2]
            lost.evicted, lost.reason = _at(true["Evicted"]), true["Evicted"]["reason"]
        if "Finished" in true:
            work.tries[-1].finished = _at(true["Finished"])
        if change == "DELETED":
            work.tries[-1].deleted = int(at)

    def owner(self, change: str, told: Object, at: float) -> None:
        """One version of what owns pods."""
        meta = told["metadata"]
        self.owners[meta["uid"]] = Owner(told["kind"], meta["name"], _above(meta), _created(meta))

    def chain(self, uid: str | None) -> Iterator[tuple[str, Owner]]:
        """An object's owners, the nearest first."""
        while uid in self.owners:
            assert uid
            yield uid, self.owners[uid]
            uid = self.owners[uid].above

    def try_of(self, pod: Pod) -> tuple[str, int] | None:
        """The Workload and the attempt for which a pod was made: what had quota then."""
        above = {uid for uid, _ in self.chain(pod.owner)}
        for uid, work in self.works.items():
            if work.owner in above:
                held = [
                    number
                    for number, each in enumerate(work.tries, 1)
                    if each.reserved is not None
                    and each.reserved <= pod.created
                    and (each.ended is None or each.ended >= pod.created)
                ]
                return (uid, held[-1]) if held else None
        return None


def seconds(text: str) -> int:
    """An instant in whole seconds since 1970."""
    return int(datetime.fromisoformat(text).timestamp())


def _created(meta: Object) -> int:
    return seconds(meta["creationTimestamp"])


def _at(condition: Object) -> int:
    return seconds(condition["lastTransitionTime"])


def _true(status: Object) -> dict[str, Any]:
    return {c["type"]: c for c in status.get("conditions", ()) if c["status"] == "True"}


def _above(meta: Object) -> str | None:
    owners = (each for each in meta.get("ownerReferences", ()) if each.get("controller"))
    return next((each["uid"] for each in owners), None)


def _earlier(one: int | None, other: int) -> int:
    return other if one is None else min(one, other)
