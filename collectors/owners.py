"""Objects that own pods as rows: whose they are, how many pods start together, when they ended.

Which object is a pod's top-level one follows in `sql/core/owners.sql` from these rows; what labels
say of it is in `attribution`.
"""

import re
from collections.abc import Callable
from typing import Any

import orjson

from collectors.attribution import (
    KUBEFLOW_KINDS,
    Workload,
    class_for,
    controlling,
    keyed,
    queue_of,
    told,
)
from collectors.objects import created, guarded, identity, submitted
from collectors.quantities import count, micros, part, parts, text, words
from collectors.requests import effective
from collectors.source import Note, Settings, Version, silent
from models.workloads import CLASS_OF_KIND

Row = dict[str, Any]
MAKERS = frozenset(("CronJob", "CronWorkflow", "ScheduledSparkApplication", "ScheduledWorkflow"))
"""Kinds that submit again and again: what they make is a workload each time."""
ENDS = {
    "Job": ("Complete", "Failed"),
    "JobSet": ("Completed", "Failed"),
    "TrainJob": ("Complete", "Failed"),
    **dict.fromkeys(KUBEFLOW_KINDS, ("Succeeded", "Failed")),
}
"""Kind -> the conditions that end it."""
PHASES = ("Completed", "Failed", "Terminated", "Aborted", "Succeeded", "Error", "Complete")
"""Phases that end a Volcano Job, a RayJob or an Argo Workflow."""
SEEN_SOON = 60_000_000
"""Who is observed so soon after its creation has no history that we do not know."""
MOST_PODS = 10**6
NUMBERS = re.compile(r"[0-9]+")


def _size_of_job(spec: Row, settings: Settings) -> int | None:
    """Pods of an Indexed Job that all run at once and ask for GPUs: taken for a gang."""
    size = spec.get("parallelism", 1)
    if spec.get("completionMode") != "Indexed" or size != spec.get("completions"):
        return None
    asked, _ = effective(part(part(spec.get("template")).get("spec")), settings, silent)
    return size if any(units for name, units in asked.items() if name != "cpu") else None


def _size_of_set(spec: Row) -> int:
    return sum(
        count(each.get("replicas", 1))
        * count(part(part(each.get("template")).get("spec")).get("parallelism", 1))
        for each in parts(spec.get("replicatedJobs"))
    )


def _size_of_replicas(spec: Row, kind: str) -> int:
    roles = next((part(spec[key]) for key in spec if key.endswith("ReplicaSpecs")), {})
    return sum(
        count(part(role).get("replicas", 1))
        for name, role in roles.items()
        if kind != "MPIJob" or name == "Worker"  # its launcher comes after them
    )


def gang_of_owner(kind: str, spec: Row, settings: Settings) -> tuple[int | None, str | None]:
    """How many pods of an object start together, and where that is said; None where they do not."""
    size, source = None, f"{kind} workers"
    if kind == "Job":
        size, source = _size_of_job(spec, settings), "Indexed Job (assumed)"
    elif kind == "JobSet":
        size, source = _size_of_set(spec), "JobSet replicatedJobs"
    elif kind == "TrainJob":
        size, source = part(spec.get("trainer")).get("numNodes"), "TrainJob numNodes"
    elif kind in KUBEFLOW_KINDS:
        size = _size_of_replicas(spec, kind)
    elif kind == "LeaderWorkerSet":
        size = part(spec.get("leaderWorkerTemplate")).get("size", 1)
        source = "LeaderWorkerSet size"
    size = None if size is None else count(size)
    return (size, source) if size is not None and 1 < size < MOST_PODS else (None, None)


def _end(kind: str, status: Row) -> tuple[int | None, str | None]:
    """When an object says that it ended, and how."""
    for condition in parts(status.get("conditions")):
        if condition.get("type") in ENDS.get(kind, ()) and condition.get("status") == "True":
            at = micros(status.get("completionTime")) or micros(condition.get("lastTransitionTime"))
            return at, text(condition.get("type"))
    state = part(status.get("state")) if kind == "VolcanoJob" else status
    phase = text(state.get("jobDeploymentStatus") if kind == "RayJob" else state.get("phase"))
    if kind not in ("VolcanoJob", "RayJob", "Workflow") or phase not in PHASES:
        return None, None
    keys = ("endTime", "finishedAt", "lastTransitionTime")
    return next((at for key in keys if (at := micros(state.get(key)))), None), phase


def workload_of(
    meta: Row, labels: dict[str, str], kind: str, namespace: str, settings: Settings
) -> tuple[Workload, str]:
    """The top-level object as far as an object tells itself, and its class: its owner, else it.

    An owner of a kind that we do not know is one, and is what its child is: a service or not, and
    of which class.
    """
    name, uid = str(meta.get("name")), text(meta.get("uid"))
    found = mine = keyed([(kind, name, uid)], namespace)
    owner = controlling(meta)
    if owner is not None and owner[0] not in MAKERS:
        found = keyed([(kind, name, uid), owner], namespace)
    class_name = class_for(found, namespace, labels, settings)
    if found.kind not in CLASS_OF_KIND:
        found = found._replace(is_service=mine.is_service)
        if class_name == "unknown":
            class_name = class_for(mine, namespace, labels, settings)
    return found, class_name


def owner_parser(kind: str) -> Callable[[Version, Settings, Note], Row]:
    """The parser of one kind."""

    @guarded
    def owner_row(version: Version, settings: Settings, note: Note) -> Row:
        meta, uid, namespace, name = identity(version)
        labels, annotations = words(meta.get("labels")), words(meta.get("annotations"))
        spec, status = part(version.object.get("spec")), part(version.object.get("status"))
        workload, class_name = workload_of(meta, labels, kind, namespace, settings)
        owner = controlling(meta) or (None, None, None)
        size, source = gang_of_owner(kind, spec, settings)
        finished, end = _end(kind, status)
        made = created(meta, version.observed)
        suspended = spec.get("suspend", part(spec.get("runPolicy")).get("suspend"))
        return {
            **version.columns(settings),
            "object_uid": uid,
            "kind_name": kind,
            "namespace_name": namespace,
            "object_name": name,
            "created_at": made,
            "is_creation_seen": version.observed - made < SEEN_SOON,
            "submitted_at": submitted(settings, labels, annotations, note),
            "owner_kind_name": owner[0],
            "owner_name": owner[1],
            "owner_uid": owner[2],
            "workload_kind_name": workload.kind,
            "workload_name": workload.name,
            "workload_key_uid": workload.key,
            "workload_class": class_name,
            "is_service": workload.is_service,
            "labels_json": orjson.dumps(labels).decode(),
            "queue_name": queue_of(labels, annotations) or _queue_in(kind, spec),
            "user_name": told(settings.user_keys, labels, annotations),
            "account_name": told(settings.account_keys, labels, annotations),
            "gang_size_count": size,
            "gang_source_name": source,
            "is_suspended": suspended if isinstance(suspended, bool) else None,
            "started_at": micros(status.get("startTime")) or micros(status.get("startedAt")),
            "finished_at": finished,
            "end_name": end,
        }

    return owner_row


def _queue_in(kind: str, spec: Row) -> str | None:
    return text(spec.get("queue")) if kind == "VolcanoJob" else None


class Unchanged:
    """Which versions say nothing new that is kept; a day's first version of an object always does.

    So what is kept of a day does not depend on which days are read together with it. A text that
    differs in its numbers only ("64 more needed") is the same text.
    """

    TEXT = "pending_text"
    FRAME = (
        "sequence_number",
        "observed_at",
        "change_name",
        "source_ref",
        "version_name",
        "is_creation_seen",
        TEXT,
    )

    def __init__(self) -> None:
        self.told: dict[str, tuple[Any, ...]] = {}

    def __call__(self, uid: str, row: Row) -> bool:
        """Whether the row is as the one before it of the same object and day."""
        if row["change_name"] == "DELETED":
            self.told.pop(uid, None)
            return False
        new = tuple(value for name, value in row.items() if name not in self.FRAME)
        new += (NUMBERS.sub("#", row[self.TEXT]) if row.get(self.TEXT) else None,)
        is_same = self.told.get(uid) == new
        self.told[uid] = new
        return is_same
