"""Events: what components tell of a pod or a group, in the three shapes in which they write times.

When a kubelet tells what is in `startup`; when schedulers do, in `schedulers`. Recorders repeat,
count, join and drop as the real ones do, and the API server forgets an event after an hour.
"""

import json
import uuid
from collections import defaultdict
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from simulator.clock import HOUR, SECOND, iso, iso_micro

if TYPE_CHECKING:
    from simulator.groups import Group
    from simulator.pods import Pod
    from simulator.world import World

BURST, REFILL = 25, 300
"""A recorder tells so many events of one object, and one more in so many seconds."""
SIMILAR, SIMILAR_SECONDS = 10, 600
"""Of so many different texts for one reason within this time the next ones are joined."""
SERIES_SECONDS = 360
"""A new recorder writes a series' count so long after it began, and then every half hour."""
JOINED = "(combined from similar events): "
LOSSES = (("Pulled",), ("Pulling",), ("Pulling", "Pulled"), ("Created", "Started"))
LOST_SHARE = 0.06
"""Of so many pods the API server refused some events of the kubelet; a recorder gives those up."""


class Told(NamedTuple):
    """What the record has of an event of a pod, at one version of it; whole seconds."""

    seen: int  # microseconds
    event: int
    reason: str
    container: str
    first: int
    last: int
    has_image: bool
    is_listed: bool


@dataclass(eq=False)
class Event:
    """An event object, as its component wrote it last."""

    number: int
    uid: str
    about: dict[str, str]
    pod: "Pod | None"
    container: str
    reason: str
    kind: str  # Normal, Warning
    text: str
    component: str
    host: str
    shape: str  # legacy, series, last
    first: int  # microseconds, as all times here
    last: int
    count: int = 1
    written: int = 0
    told_count: int = 1
    has_image: bool = False
    related: dict[str, str] = field(default_factory=dict)
    is_gone: bool = False

    def times(self) -> dict[str, object]:
        """Times and count, in the shape of its recorder."""
        none: dict[str, object] = {"eventTime": None, "firstTimestamp": None, "lastTimestamp": None}
        match self.shape:
            case "legacy":
                first, last = iso(self.first // SECOND), iso(self.last // SECOND)
                return none | {"firstTimestamp": first, "lastTimestamp": last, "count": self.count}
            case "series":
                found = none | {"eventTime": iso_micro(self.first), "action": "Scheduling"}
                if self.count > 1:
                    last = iso_micro(self.last)
                    found["series"] = {"count": self.count, "lastObservedTime": last}
                return found
            case _:
                return none | {"lastTimestamp": iso(self.last // SECOND)}

    def body(self, revision: int) -> str:
        """The Kubernetes object."""
        about = dict(self.about)
        if self.container:
            kinds = {c.name: c.kind for c in self.pod.containers} if self.pod else {}
            place = "containers" if kinds.get(self.container) == "main" else "initContainers"
            about["fieldPath"] = f"spec.{place}{{{self.container}}}"
        is_new = self.shape == "series"
        return json.dumps(
            {
                "kind": "Event",
                "apiVersion": "v1",
                "metadata": {
                    "name": f"{self.about['name']}.{self.uid[:16].replace('-', '')}",
                    "namespace": self.about["namespace"],
                    "uid": self.uid,
                    "resourceVersion": str(revision),
                    "creationTimestamp": iso(self.first // SECOND),
                },
                "involvedObject": about,
                "reason": self.reason,
                "message": self.text,
                "source": {}
                if is_new
                else {"component": self.component} | ({"host": self.host} if self.host else {}),
                "type": self.kind,
                **self.times(),
                **({"related": self.related} if self.related else {}),
                "reportingComponent": self.component if self.shape != "last" else "",
                "reportingInstance": self.host if self.shape != "last" else "",
            },
            separators=(",", ":"),
        )

    def see(self, seen: int, *, is_listed: bool = True) -> None:
        """The recorder saw the present state."""
        if self.pod is not None and self.component == "kubelet":
            first, last = self.first // SECOND, self.last // SECOND
            self.pod.told.append(
                Told(
                    seen,
                    self.number,
                    self.reason,
                    self.container,
                    first,
                    last,
                    self.has_image,
                    is_listed,
                )
            )


class Events:
    """All recorders of a cluster, and the events that the API server still has."""

    def __init__(self, world: "World"):
        self.world = world
        self.rng = Random(f"{world.seed}/{world.name}/told")
        self.present: dict[tuple[str, ...], Event] = {}
        self.made = 0
        self._buckets: dict[tuple[str, str], tuple[float, int]] = {}
        self._texts: dict[tuple[str, ...], list[tuple[int, str]]] = defaultdict(list)
        self._losses: dict[str, tuple[str, ...]] = {}

    def of_pod(
        self,
        pod: "Pod",
        reason: str,
        text: str,
        *,
        container: str = "",
        component: str = "kubelet",
        kind: str = "Normal",
        by: "Pod | None" = None,
    ) -> None:
        """A component tells something of a pod."""
        about = {"kind": "Pod", "apiVersion": "v1", "namespace": pod.namespace, "name": pod.name}
        about["uid"] = pod.uid
        is_kubelet = component == "kubelet"
        if is_kubelet and self._is_lost(pod, reason):
            return
        self._tell(
            about,
            (container, reason, text, component),
            kind=kind,
            shape="legacy" if is_kubelet else "series",
            host=pod.node_name if is_kubelet else f"{component}-0",
            pod=pod,
            related={"kind": "Pod", "namespace": by.namespace, "name": by.name, "uid": by.uid}
            if by
            else {},
        )

    def of_group(self, group: "Group", reason: str, text: str) -> None:
        """Volcano tells something of a group: nothing but when it was last so."""
        about = {"kind": "PodGroup", "apiVersion": "scheduling.volcano.sh/v1beta1"}
        about |= {"namespace": group.namespace, "name": group.name, "uid": group.uid}
        said = ("", reason, text, "volcano")
        self._tell(about, said, kind="Warning", shape="last")

    def _is_lost(self, pod: "Pod", reason: str) -> bool:
        if pod.uid not in self._losses:
            rng = Random(f"{self.world.seed}/{pod.uid}")
            lost = rng.random() < LOST_SHARE
            self._losses[pod.uid] = rng.choice(LOSSES) if lost else ()
        return reason in self._losses[pod.uid]

    def _has_token(self, component: str, uid: str) -> bool:
        now = self.world.second
        left, since = self._buckets.get((component, uid), (float(BURST), now))
        left = min(float(BURST), left + (now - since) / REFILL)
        self._buckets[component, uid] = (left - 1 if left >= 1 else left, now)
        return left >= 1

    def _joined(self, about: dict[str, str], container: str, reason: str, text: str) -> str:
        """The text, or the joined one where too many different ones were told of late."""
        now = self.world.second
        texts = self._texts[about["uid"], container, reason]
        texts[:] = [(at, each) for at, each in texts if at > now - SIMILAR_SECONDS and each != text]
        texts.append((now, text))
        return JOINED + text if len(texts) > SIMILAR else text

    def _tell(
        self,
        about: dict[str, str],
        said: tuple[str, str, str, str],
        *,
        kind: str,
        shape: str,
        host: str = "",
        pod: "Pod | None" = None,
        related: dict[str, str] | None = None,
    ) -> None:
        world, (container, reason, text, component) = self.world, said
        if not self._has_token(component, about["uid"]):
            return
        told = self._joined(about, container, reason, text) if shape == "legacy" else text
        is_joined = told.startswith(JOINED)
        key = (about["uid"], container, reason, "" if is_joined else told, component)
        event = self.present.get(key)
        if event is None:
            self.made += 1
            event = Event(
                self.made,
                str(uuid.UUID(int=self.rng.getrandbits(128), version=4)),
                about,
                pod,
                container,
                reason,
                kind,
                told,
                component,
                host,
                shape,
                world.now,
                world.now,
                has_image=reason in ("Pulling", "Pulled", "Failed") and "image" in told,
                related=related or {},
            )
            self.present[key] = event
            self._write(key, event, "ADDED")
        elif shape == "series":
            event.told_count += 1
            if event.told_count == 2:
                world.clock.after(SERIES_SECONDS, self._flush, key, event, world.now)
            event.last = world.now
        else:
            event.text, event.last, event.count = told, world.now, event.count + 1
            self._write(key, event, "MODIFIED")

    def _flush(self, key: tuple[str, ...], event: Event, _since: int) -> None:
        """A series' count is written late, and only if it grew."""
        if event.is_gone or event.told_count == event.count:
            return
        event.count = event.told_count
        self._write(key, event, "MODIFIED")
        self.world.clock.after(1800, self._flush, key, event, event.last)

    def _write(self, key: tuple[str, ...], event: Event, change: str) -> None:
        event.written = self.world.now
        self.world.tell_event(event, change)
        self.world.clock.after(3600, self._expire, key, event, event.written)

    def _expire(self, key: tuple[str, ...], event: Event, written: int) -> None:
        """The API server forgets it, unless it was written again."""
        if event.written == written and written <= self.world.now - HOUR and not event.is_gone:
            event.is_gone = True
            self.world.tell_event(event, "DELETED")
            if self.present.get(key) is event:
                del self.present[key]
