"""Kubernetes objects for tests, small but whole, and what is parsed of them."""

from datetime import UTC, date, datetime

from collectors.batches import Rows
from collectors.kubernetes import PARSERS
from collectors.source import Settings, Version
from models.rules import WorkloadClass

SETTINGS = Settings(
    "alpha",
    accelerators={"example.com/npu": "example-npu"},
    user_keys=("example.com/by",),
    submitted_keys=("example.com/at",),
    workload_classes=(WorkloadClass.model_validate({"class": "interactive", "namespace": "nb-*"}),),
)
SEEN = 1_772_359_230_500_000  # 2026-03-01T10:00:30.5Z


def parsed(kind, item, settings=SETTINGS, change="MODIFIED", notes=None):
    table, parse = PARSERS[kind]
    version = Version(1, SEEN, date(2026, 3, 1), change, "f:1", item)
    rows = Rows(table)
    note = (lambda r, e: notes.append((r, e))) if notes is not None else (lambda r, e: None)
    rows.add(parse(version, settings, note))
    [batch] = rows.rest()
    return batch.frame.row(0, named=True)


def at(second):
    return datetime(2026, 3, 1, 10, 0, second, tzinfo=UTC)


def stamp(second):
    return f"2026-03-01T10:00:{second:02}Z"


def owner(kind, name, uid="u-1", api="apps/v1"):
    return {"apiVersion": api, "kind": kind, "name": name, "uid": uid, "controller": True}


def container(name="main", gpus=None, resource="nvidia.com/gpu", **more):
    asked = {} if gpus is None else {resource: str(gpus)}
    return {"name": name, "resources": {"requests": asked, "limits": asked}, **more}


def pod(containers=None, init=None, labels=None, annotations=None, owners=(), node=None, **more):
    status = {"phase": "Pending", **more.pop("status", {})}
    if node:
        bind = {"type": "PodScheduled", "status": "True", "lastTransitionTime": stamp(5)}
        status["conditions"] = [bind, *status.get("conditions", [])]
    spec = {"containers": containers or [container(gpus=1)], **more.pop("spec", {})}
    if init:
        spec["initContainers"] = init
    if node:
        spec["nodeName"] = node
    meta = {
        "uid": "p-1",
        "name": "pod-1",
        "namespace": "ml",
        "creationTimestamp": stamp(1),
        "labels": labels or {},
        "annotations": annotations or {},
        "ownerReferences": list(owners),
        **more,
    }
    return {"kind": "Pod", "apiVersion": "v1", "metadata": meta, "spec": spec, "status": status}


def node(labels=None, capacity=None, allocatable=None, annotations=None, **spec):
    capacity = {"nvidia.com/gpu": "8"} if capacity is None else capacity
    ready = {"type": "Ready", "status": "True"}
    return {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {
            "uid": "n-1",
            "name": "gpu-1",
            "creationTimestamp": stamp(0),
            "labels": {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", **(labels or {})},
            "annotations": annotations or {},
        },
        "spec": spec,
        "status": {
            "capacity": {"cpu": "96", "memory": "1Ti", **capacity},
            "allocatable": capacity if allocatable is None else allocatable,
            "conditions": [ready],
        },
    }


def running(name, second, **more):
    return {"name": name, "state": {"running": {"startedAt": stamp(second)}}, **more}


def ended(name, begin, end, code=0):
    told = {"startedAt": stamp(begin), "finishedAt": stamp(end), "exitCode": code}
    return {"name": name, "state": {"terminated": told}}


def waiting(name, reason, begin=None, end=None):
    status = {"name": name, "state": {"waiting": {"reason": reason}}}
    if begin is not None:
        told = {"startedAt": stamp(begin), "finishedAt": stamp(end), "exitCode": 1}
        status["lastState"] = {"terminated": told}
    return status


LWS = "leaderworkerset.sigs.k8s.io"
JOBSET = {"jobset.sigs.k8s.io/jobset-name": "js", "jobset.sigs.k8s.io/jobset-uid": "u-js"}
JOB = owner("Job", "js-worker-0", api="batch/v1")
