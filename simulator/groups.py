"""A Volcano PodGroup and a namespace: their present state, and how they are written.

When a group is let in belongs to `schedulers`.
"""

import json
from dataclasses import dataclass, field

from simulator.clock import SECOND, iso


@dataclass(eq=False)
class Group:
    """A PodGroup, and what was seen of it."""

    name: str
    uid: str
    namespace: str
    created: int
    queue: str
    size: int
    gpus: int  # of all its members, for the quota
    owner: dict[str, object]
    workload: str
    resource: str = ""
    phase: str = "Pending"
    running: int = 0
    is_gone: bool = False
    first: int | None = None
    phases: list[tuple[int, str]] = field(default_factory=list)
    """Whole second and phase of each observed version."""
    deleted: int | None = None

    def body(self, revision: int) -> str:
        """The Kubernetes object."""
        status: dict[str, object] = {"phase": self.phase}
        if self.running:
            status["running"] = self.running
        return json.dumps(
            {
                "apiVersion": "scheduling.volcano.sh/v1beta1",
                "kind": "PodGroup",
                "metadata": {
                    "name": self.name,
                    "namespace": self.namespace,
                    "uid": self.uid,
                    "resourceVersion": str(revision),
                    "creationTimestamp": iso(self.created // SECOND),
                    "ownerReferences": [self.owner],
                },
                "spec": {
                    "minMember": self.size,
                    "minResources": {self.resource: str(self.gpus), "pods": str(self.size)},
                    "queue": self.queue,
                },
                "status": status,
            },
            separators=(",", ":"),
        )

    def see(self, seen: int, *, is_deleted: bool = False) -> None:
        """The recorder saw the present state."""
        second = seen // SECOND
        self.first = second if self.first is None else self.first
        if is_deleted:
            self.deleted = second
        else:
            self.phases.append((second, self.phase))


@dataclass(eq=False)
class Namespace:
    """A namespace, and the labels that were seen on it."""

    name: str
    uid: str
    created: int
    labels: dict[str, str]
    versions: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    """Observed at (microseconds), and its labels."""

    def body(self, revision: int) -> str:
        """The Kubernetes object."""
        return json.dumps(
            {
                "kind": "Namespace",
                "apiVersion": "v1",
                "metadata": {
                    "name": self.name,
                    "uid": self.uid,
                    "resourceVersion": str(revision),
                    "creationTimestamp": iso(self.created // SECOND),
                    "labels": {"kubernetes.io/metadata.name": self.name} | self.labels,
                },
                "spec": {"finalizers": ["kubernetes"]},
                "status": {"phase": "Active"},
            },
            separators=(",", ":"),
        )

    def see(self, seen: int) -> None:
        """The recorder saw the present labels."""
        self.versions.append((seen, dict(self.labels)))
