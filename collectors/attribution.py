"""Whose a pod is: its top-level object, by labels and the controlling owner; its gang; its class.

All pods of one workload get the same key, so the key is a uid only where every pod knows it; else
it is `kind/namespace/name`. Which team pays belongs to `sql/core/pods.sql`.
"""

import re
from typing import Any, NamedTuple

from collectors.quantities import parts, text
from collectors.source import Settings, Unusable
from models.workloads import SERVICES, class_of

Owner = tuple[str, str, str | None]
"""Kind, name, uid."""

NAMED = frozenset(
    (
        "Deployment",
        "Rollout",
        "Notebook",
        "TrainJob",
        "MPIJob",
        "RayJob",
        "RayService",
        "LeaderWorkerSet",
        "InferenceService",
        "LLMInferenceService",
        "KnativeService",
        "SparkApplication",
        "PodGroup",
    )
)
"""Kinds that own pods through others, so that a pod knows their name only."""
KUBEFLOW_KINDS = ("PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob", "MXJob", "MPIJob")
OF_REPLICA_SET = re.compile(r"^(.+)-[bcdfghjklmnpqrstvwxz0-9]{5,10}$")
LWS = "leaderworkerset.sigs.k8s.io"
GROUP_KEYS = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")


class Workload(NamedTuple):
    """A top-level object, and the chain of owners up to it."""

    owners: tuple[Owner, ...]
    kind: str
    name: str
    key: str
    is_service: bool


def controlling(meta: dict[str, Any]) -> Owner | None:
    """The owner that controls an object."""
    for reference in parts(meta.get("ownerReferences")):
        if reference.get("controller"):
            kind, name = text(reference.get("kind")), text(reference.get("name"))
            if kind is None or name is None:
                raise Unusable("malformed", "an owner without kind or name")
            version = text(reference.get("apiVersion")) or ""
            if kind == "Job" and version.startswith("batch.volcano.sh"):
                kind = "VolcanoJob"
            return kind, name, text(reference.get("uid"))
    return None


def _kubeflow(owner: Owner | None, operator: str) -> str | None:
    if owner and owner[0] in KUBEFLOW_KINDS:
        return None
    if not operator and owner and owner[0] == "Job":
        return "MPIJob"  # its launcher is a Job
    plain = operator.lower().replace("-", "")
    return next((kind for kind in KUBEFLOW_KINDS if plain.startswith(kind.lower()[:3])), None)


def _above(owner: Owner | None, labels: dict[str, str], group: str | None) -> list[Owner]:
    """What labels say stands above the controlling owner, lowest first."""
    found: list[Owner] = []
    get = labels.get
    if owner is None and (job := get("batch.kubernetes.io/job-name")):
        found.append(("Job", job, get("batch.kubernetes.io/controller-uid")))
    if owner and owner[0] == "ReplicaSet":
        for key, kind in (
            ("rollouts-pod-template-hash", "Rollout"),
            ("pod-template-hash", "Deployment"),
        ):
            digest = get(key)
            if digest and owner[1].endswith(f"-{digest}"):
                found.append((kind, owner[1][: -len(digest) - 1], None))
                break
    if (notebook := get("notebook-name")) and owner and owner[0] == "StatefulSet":
        found.append(("Notebook", notebook, None))
    if name := get(f"{LWS}/name"):
        found.append(("LeaderWorkerSet", name, None))
    if name := get("jobset.sigs.k8s.io/jobset-name"):
        found.append(("JobSet", name, get("jobset.sigs.k8s.io/jobset-uid")))
        # A TrainJob owns a JobSet of its own name, and gives its PodGroup that name too.
        if get("trainer.kubeflow.org/trainjob-ancestor-step") or group == name:
            found.append(("TrainJob", name, None))
    if name := get("training.kubeflow.org/job-name"):
        kind = _kubeflow(owner, get("training.kubeflow.org/operator-name", ""))
        if kind:
            found.append((kind, name, None))
    if name := get("ray.io/originated-from-cr-name"):
        kind = get("ray.io/originated-from-crd", "RayCluster")
        if owner != (kind, name, owner and owner[2]):
            found.append((kind, name, None))
    if name := get("sparkoperator.k8s.io/app-name"):
        found.append(("SparkApplication", name, None))
    if (name := get("workflows.argoproj.io/workflow")) and owner is None:
        found.append(("Workflow", name, None))
    if name := get("serving.kserve.io/inferenceservice"):
        found.append(("InferenceService", name, None))
    elif name := get("serving.knative.dev/service"):
        found.append(("KnativeService", name, None))
    if get("app.kubernetes.io/part-of") == "llminferenceservice" and (
        name := get("app.kubernetes.io/name")
    ):
        found.append(("LLMInferenceService", name, None))
    return found


def keyed(owners: list[Owner], namespace: str) -> Workload:
    """The last of a chain of owners as the workload, with its key."""
    kind, name, uid = owners[-1]
    key = f"{kind}/{namespace}/{name}" if uid is None or kind in NAMED else uid
    return Workload(tuple(owners), kind, name, key, kind in SERVICES)


def of_pod(
    meta: dict[str, Any],
    labels: dict[str, str],
    annotations: dict[str, str],
    namespace: str,
    name: str,
    uid: str,
    above: tuple[Owner, ...] = (),
) -> Workload:
    """The workload of a pod; a bare pod is its own. `above` are owners that the source tells."""
    owner = controlling(meta)
    group = group_of(labels, annotations)
    owners: list[Owner] = [owner, *above] if owner else []
    known = {each[:2] for each in owners}
    owners += [each for each in _above(owner, labels, group) if each[:2] not in known]
    shared = labels.get("kueue.x-k8s.io/pod-group-name") or group
    # `podgroup-<uid>` is what Volcano makes for each pod by itself.
    if not owners and shared and not shared.startswith("podgroup-"):
        owners = [("PodGroup", shared, None)]
    if not owners or owners[-1][0] == "Node":
        return Workload(tuple(owners), "Pod", name, uid, False)
    return keyed(owners, namespace)


def of_pod_group(
    meta: dict[str, Any], labels: dict[str, str], namespace: str, name: str
) -> Workload:
    """The workload of a PodGroup: its owner's; one without an owner is its own."""
    owner = controlling(meta)
    if owner is None:
        return keyed([("PodGroup", name, None)], namespace)
    owners = [owner, *_above(owner, labels, None)]
    if owner[0] == "ReplicaSet" and len(owners) == 1 and (match := OF_REPLICA_SET.match(owner[1])):
        owners.append(("Deployment", match[1], None))
    return keyed(owners, namespace)


def group_of(labels: dict[str, str], annotations: dict[str, str]) -> str | None:
    """The PodGroup that a pod names."""
    for key in GROUP_KEYS:
        if found := annotations.get(key) or labels.get(key):
            return found
    return labels.get("scheduling.x-k8s.io/pod-group")


def gang_of(
    workload: Workload, labels: dict[str, str], annotations: dict[str, str]
) -> tuple[str | None, int | None, str | None]:
    """Name and size of a pod's gang, and where the size comes from; a PodGroup tells its own."""
    if name := labels.get(f"{LWS}/name"):
        gang = f"{name}-{labels.get(f'{LWS}/group-index', '0')}"
        return gang, *_size(annotations.get(f"{LWS}/size"), "LeaderWorkerSet size")
    if workload.is_service or workload.kind == "RayCluster":
        return None, None, None  # they grow and shrink: no gang, whatever schedules them
    if group := group_of(labels, annotations):
        return group, None, None
    if group := labels.get("kueue.x-k8s.io/pod-group-name"):
        told = annotations.get("kueue.x-k8s.io/pod-group-total-count")
        return group, *_size(told, "pod-group-total-count")
    return None, None, None


def _size(told: str | None, source: str) -> tuple[int | None, str | None]:
    if told is None or not told.isascii() or not told.isdigit() or not 0 < int(told) < 10**6:
        return None, None
    return int(told), source


def class_for(
    workload: Workload, namespace: str, labels: dict[str, str], settings: Settings
) -> str:
    """The class of work: the first override that matches, else by the kind."""
    for rule in settings.workload_classes:
        if rule.matches(namespace, workload.kind, workload.name, labels):
            return rule.class_name
    is_static = workload.kind == "Pod" and workload.owners
    return "system" if is_static else class_of(workload.kind)


def queue_of(labels: dict[str, str], annotations: dict[str, str]) -> str | None:
    """The queue that a pod names: Kueue's, of it the ClusterQueue if known, or Volcano's."""
    for key in (
        "kueue.x-k8s.io/cluster-queue-name",
        "kueue.x-k8s.io/queue-name",
        "kueue.x-k8s.io/local-queue-name",
        "volcano.sh/queue-name",
        "scheduling.volcano.sh/queue-name",
    ):
        if found := labels.get(key) or annotations.get(key):
            return found
    return None


def told(keys: tuple[str, ...], labels: dict[str, str], annotations: dict[str, str]) -> str | None:
    """The first of some keys that an object's annotations or labels give."""
    for key in keys:
        if found := annotations.get(key) or labels.get(key):
            return found
    return None
