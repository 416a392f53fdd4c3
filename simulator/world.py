"""One cluster as it is: its objects, its clock, and the API server that tells the recorder.

Who changes the objects is in `kubelet`, `schedulers`, `controllers`, `tenants` and `faults`.
"""

import uuid
from collections.abc import Callable
from random import Random

from simulator.clock import DAY, SECOND, Clock
from simulator.events import Event, Events
from simulator.groups import Group, Namespace
from simulator.nodes import Node
from simulator.owners import KINDS, Top
from simulator.pods import Pod
from simulator.recorder import Stream

WARM_UP = DAY // 4
"""The cluster lives this long before the recorder starts."""


class World:
    """One cluster: what is there, and what of it gets recorded."""

    def __init__(self, name: str, seed: int, begin: int, end: int, *, keeps: bool = False):
        self.name, self.seed = name, seed
        self.keeps = keeps  # every version of pods and nodes, for the metrics made of them
        self.rng = Random(f"{seed}/{name}")
        self.names = Random(f"{seed}/{name}/names")
        self.begin, self.end = begin, end
        self.clock = Clock(begin - WARM_UP)
        self.streams = {
            kind: Stream(kind, Random(f"{seed}/{name}/{kind}"))
            for kind in ("nodes", "namespaces", "groups", "pods", "events", *KINDS)
        }
        self.revision = 1000
        self.nodes: dict[str, Node] = {}
        self.all_nodes: list[Node] = []
        self.pods: dict[str, Pod] = {}
        self.all_pods: list[Pod] = []
        self.groups: dict[str, Group] = {}
        self.all_groups: list[Group] = []
        self.namespaces: dict[str, Namespace] = {}
        self.on_node: dict[str, list[Pod]] = {}
        self.ended: dict[str, Callable[[Pod], None]] = {}
        """What a pod's controller does when it has ended or is gone, by pod uid."""
        self.kicks: list[Callable[[], None]] = []
        self.events = Events(self)
        self.owners: dict[str, Top] = {}

    @property
    def now(self) -> int:
        """The present instant in microseconds."""
        return self.clock.now

    @property
    def second(self) -> int:
        """The present whole second."""
        return self.clock.now // SECOND

    def uid(self) -> str:
        """A new uid."""
        return str(uuid.UUID(int=self.names.getrandbits(128), version=4))

    def suffix(self, length: int = 5) -> str:
        """A new random end of a name."""
        return "".join(self.names.choices("bcdfghjklmnpqrstvwxz2456789", k=length))

    def kick(self) -> None:
        """Something changed that a scheduler may wait for."""
        for call in self.kicks:
            call()

    def _tell(self, kind: str, change: str, body: Callable[[int], str]) -> int | None:
        """Write one change if the recorder listens; when it was seen."""
        self.revision += 1
        stream = self.streams[kind]
        if not stream.listening:
            return None
        seen = stream.look(self.now)
        stream.write(seen, change, body(self.revision))
        return seen

    def tell_pod(self, pod: Pod, change: str = "MODIFIED") -> None:
        """The API server has a new version of a pod."""
        if self.keeps:
            pod.history.append((self.now, pod.version()))
            pod.see(self.now, is_deleted=change == "DELETED", into=pod.whole)
        if seen := self._tell("pods", change, pod.body):
            pod.see(seen, is_deleted=change == "DELETED")

    def tell_node(self, node: Node, change: str = "MODIFIED") -> None:
        """The API server has a new version of a node."""
        if self.keeps:
            node.history.append((self.second, node.version(self.now), dict(node.labels)))
        if seen := self._tell("nodes", change, node.body):
            node.see(seen)
            if change == "DELETED":
                node.deleted = seen // SECOND

    def tell_group(self, group: Group, change: str = "MODIFIED") -> None:
        """The API server has a new version of a PodGroup."""
        if seen := self._tell("groups", change, group.body):
            group.see(seen, is_deleted=change == "DELETED")

    def tell_namespace(self, namespace: Namespace, change: str = "MODIFIED") -> None:
        """The API server has a new version of a namespace."""
        if seen := self._tell("namespaces", change, namespace.body):
            namespace.see(seen)

    def tell_event(self, event: Event, change: str) -> None:
        """The API server has a new version of an event, or forgets it."""
        if (seen := self._tell("events", change, event.body)) and change != "DELETED":
            event.see(seen, is_listed=False)

    def add_pod(self, pod: Pod, ended: Callable[[Pod], None] | None = None) -> Pod:
        """Someone created a pod."""
        self.pods[pod.uid] = pod
        self.all_pods.append(pod)
        if ended:
            self.ended[pod.uid] = ended
        self.tell_pod(pod, "ADDED")
        self.kick()
        return pod

    def add_node(self, node: Node) -> Node:
        """A node joined."""
        self.nodes[node.name] = node
        self.all_nodes.append(node)
        self.on_node.setdefault(node.name, [])
        self.tell_node(node, "ADDED")
        return node

    def add_owner(self, top: Top) -> Top:
        """Someone submitted an object that will own pods."""
        self.owners[top.uid] = top
        self._tell(top.stream, "ADDED", top.body)
        return top

    def drop_owner(self, uid: str) -> None:
        """It is deleted."""
        if top := self.owners.pop(uid, None):
            self._tell(top.stream, "DELETED", top.body)

    def add_group(self, group: Group) -> Group:
        """A controller created a PodGroup."""
        self.groups[group.uid] = group
        self.all_groups.append(group)
        self.tell_group(group, "ADDED")
        return group

    def drop_group(self, group: Group) -> None:
        """A PodGroup is deleted."""
        if not group.is_gone:
            group.is_gone = True
            del self.groups[group.uid]
            self.tell_group(group, "DELETED")

    def list_all(self, kind: str) -> None:
        """The recorder lists one kind; what it knew and no longer finds vanished in the gap."""
        stream = self.streams[kind]
        present: list[Pod] | list[Node] | list[Group] | list[Event] | list[Top] | list[Namespace]
        match kind:
            case "pods":
                present = list(self.pods.values())
            case "nodes":
                present = [n for n in self.nodes.values() if not n.removed]
            case "groups":
                present = list(self.groups.values())
            case "events":
                present = list(self.events.present.values())
            case "namespaces":
                present = list(self.namespaces.values())
            case _:
                present = [top for top in self.owners.values() if top.stream == kind]
        seen = stream.list(self.now, [thing.body(self.revision) for thing in present])
        for thing in present:
            thing.see(seen)
        if not stream.gaps:
            return
        begin, _ = stream.gaps[-1]
        if kind == "pods":
            for pod in self.all_pods:
                if pod.gone and pod.seen.first is not None and pod.seen.deleted is None:
                    pod.seen.deleted = begin
        if kind == "nodes":
            for node in self.all_nodes:
                if node.removed and node.versions and node.deleted is None:
                    node.deleted = begin

    def bookmark_idle(self) -> None:
        """Streams on which nothing has happened for a while get a sign of life."""
        for stream in (self.streams["nodes"], self.streams["pods"]):
            if stream.last < self.now - 540 * SECOND:
                stream.bookmark(self.now, self.revision)
        self.clock.after(600, self.bookmark_idle)
