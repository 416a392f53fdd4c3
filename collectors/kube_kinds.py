"""Which kinds of object a recorder keeps, as far as a cluster has them: discovered, not assumed.

A group is read in the version that the server prefers, for it serves each object in all of them.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from collectors.faults import Fault
from collectors.kube_api import Api, Refused

WANTED: Mapping[str, tuple[str, ...]] = {
    "": (
        *("pods", "nodes", "namespaces", "events"),
        *("persistentvolumeclaims", "resourcequotas"),
    ),
    "apps": ("replicasets", "deployments", "statefulsets", "daemonsets"),
    "argoproj.io": ("workflows",),
    "autoscaling": ("horizontalpodautoscalers",),
    "batch": ("jobs",),
    "batch.volcano.sh": ("jobs",),
    "inference.networking.k8s.io": ("inferencepools",),
    "inference.networking.x-k8s.io": ("inferencepools",),
    "jobset.x-k8s.io": ("jobsets",),
    "k8s.cni.cncf.io": ("network-attachment-definitions",),
    "keda.sh": ("scaledobjects",),
    "kubeflow.org": ("pytorchjobs", "mpijobs", "notebooks"),
    "kueue.x-k8s.io": (
        *("workloads", "clusterqueues", "localqueues", "resourceflavors", "cohorts"),
        *("topologies", "workloadpriorityclasses"),
    ),
    "leaderworkerset.x-k8s.io": ("leaderworkersets",),
    "nvidia.com": ("clusterpolicies",),
    "ray.io": ("rayjobs", "rayclusters", "rayservices"),
    "resource.k8s.io": ("resourceclaims", "resourceslices", "deviceclasses"),
    "scheduling.k8s.io": ("priorityclasses",),
    "scheduling.volcano.sh": ("podgroups", "queues"),
    "serving.kserve.io": ("inferenceservices", "llminferenceservices"),
    "topology.volcano.sh": ("hypernodes",),
    "trainer.kubeflow.org": ("trainjobs", "trainingruntimes", "clustertrainingruntimes"),
}
"""Group -> plural names; secrets and config maps are never among them."""


class KubeKind(NamedTuple):
    """A kind of object, and where it is read."""

    group: str
    version: str
    plural: str
    kind: str

    @property
    def api_version(self) -> str:
        """As it stands in an object."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def path(self) -> str:
        """All of a cluster."""
        return f"{root(self.group, self.version)}/{self.plural}"

    @property
    def name(self) -> str:
        """As messages name it; the same in all versions."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


def root(group: str, version: str) -> str:
    """Where a group's version is served."""
    return f"/apis/{group}/{version}" if group else f"/api/{version}"


class Discovered(NamedTuple):
    """The kinds that a cluster has and we keep, and the groups that could not be asked for."""

    kinds: list[KubeKind]
    faults: dict[str, str]


def discovered(api: Api) -> Discovered:
    """What there is to record; Fault where not even the groups are told."""
    kinds, faults = [], {}
    for group, versions in _groups(api).items():
        missing = set(WANTED[group])
        for version in versions:
            try:
                found = list(_served(api, group, version, missing))
            except Refused:
                continue
            except Fault as fault:
                faults[group or "core"] = str(fault)
                break
            kinds += found
            missing -= {kind.plural for kind in found}
            if not missing:
                break
    return Discovered(sorted(kinds), faults)


def _groups(api: Api) -> dict[str, list[str]]:
    """Wanted groups and their versions, the preferred one first."""
    found = {"": ["v1"]}
    for group in api.ask("/apis").get("groups") or []:
        name = group.get("name")
        if name in WANTED:
            preferred = (group.get("preferredVersion") or {}).get("version")
            versions = [v["version"] for v in group.get("versions") or []]
            found[name] = sorted(versions, key=lambda version: version != preferred)
    return found


def _served(api: Api, group: str, version: str, wanted: set[str]) -> Iterator[KubeKind]:
    resources: list[dict[str, Any]] = api.ask(root(group, version)).get("resources") or []
    for resource in resources:
        if resource["name"] in wanted and {"list", "watch"} <= set(resource.get("verbs") or ()):
            yield KubeKind(group, version, resource["name"], resource["kind"])
