"""The objects that own pods, as the API server has them: jobs, deployments and what is above them.

What their controllers do is in `controllers`; whose a pod is in the end, in `truth_facts`.
"""

import json
from dataclasses import dataclass, field
from typing import Any

from simulator.clock import SECOND, iso

KINDS = {
    "jobs": ("Job", "batch/v1", "batch_v1_jobs"),
    "replicasets": ("ReplicaSet", "apps/v1", "apps_v1_replicasets"),
    "deployments": ("Deployment", "apps/v1", "apps_v1_deployments"),
    "statefulsets": ("StatefulSet", "apps/v1", "apps_v1_statefulsets"),
    "volcanojobs": ("Job", "batch.volcano.sh/v1alpha1", "batch.volcano.sh_v1alpha1_jobs"),
    "pytorchjobs": ("PyTorchJob", "kubeflow.org/v1", "kubeflow.org_v1_pytorchjobs"),
}
"""Stream -> kind, version and file."""
STREAM_OF = {(kind, version): stream for stream, (kind, version, _) in KINDS.items()}


@dataclass(eq=False)
class Top:
    """An object that owns pods, or what owns those."""

    api: str
    kind: str
    name: str
    uid: str
    namespace: str
    created: int
    spec: dict[str, Any] = field(default_factory=dict)
    above: "Top | None" = None
    is_gone: bool = False

    @property
    def stream(self) -> str:
        """The stream that it is in."""
        return STREAM_OF[self.kind, self.api]

    def body(self, revision: int) -> str:
        """The Kubernetes object."""
        meta: dict[str, Any] = {
            "name": self.name,
            "namespace": self.namespace,
            "uid": self.uid,
            "resourceVersion": str(revision),
            "creationTimestamp": iso(self.created // SECOND),
        }
        if self.above:
            meta["ownerReferences"] = [
                {
                    "apiVersion": self.above.api,
                    "kind": self.above.kind,
                    "name": self.above.name,
                    "uid": self.above.uid,
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ]
        whole = {"kind": self.kind, "apiVersion": self.api, "metadata": meta, "spec": self.spec}
        return json.dumps(whole | {"status": {}}, separators=(",", ":"))

    def see(self, seen: int) -> None:
        """The recorder saw it; nothing of it is counted by when."""
