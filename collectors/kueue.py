"""Kueue Workloads as rows: owners, what they ask for, and conditions, one version a row.

What follows from a Workload's history is in `sql/core/admissions.sql`. Kueue's own figures of waits
are not used: it leaves the time of a condition that stays True where it was (Requeued).
"""

import re
from typing import Any

import orjson

from collectors.attribution import Owner, Workload, class_for, controlling, keyed, told
from collectors.kube_events import waiting_for
from collectors.objects import asked_model, created, guarded, identity, submitted
from collectors.owners import workload_of
from collectors.quantities import count, micros, part, parts, text, words
from collectors.requests import effective
from collectors.source import Note, Settings, Unusable, Version

Row = dict[str, Any]
PREEMPTOR = re.compile(r"\(UID: ([^,)\s]+), JobUID: ([^,)\s]+)")
CONDITIONS = {
    "quota_reserved": "QuotaReserved",
    "admitted": "Admitted",
    "pods_ready": "PodsReady",
    "evicted": "Evicted",
    "preempted": "Preempted",
    "requeued": "Requeued",
    "finished": "Finished",
}


def _owners(meta: Row) -> tuple[Owner, ...]:
    found = []
    for reference in parts(meta.get("ownerReferences")):
        kind, name = text(reference.get("kind")), text(reference.get("name"))
        if kind is None or name is None:
            raise Unusable("malformed", "an owner without kind or name")
        found.append((kind, name, text(reference.get("uid"))))
    return tuple(found)


def _whose(
    meta: Row, owners: tuple[Owner, ...], labels: dict[str, str], namespace: str, settings: Settings
) -> tuple[Workload, str]:
    """The top-level object by the Workload alone, and its class.

    A Workload of many pods is a pod group of its own name; of one pod, that pod.
    """
    name = str(meta.get("name"))
    owner = controlling(meta)
    if owner is None and len(owners) == 1 and owners[0][0] == "Pod":
        owner = owners[0]
    if owner is None:
        found = keyed([("PodGroup", name, None)], namespace)
        return found, class_for(found, namespace, labels, settings)
    mine = {"name": owner[1], "uid": owner[2]}
    return workload_of(mine, labels, owner[0], namespace, settings)


def _pod_sets(
    spec: Row, settings: Settings, note: Note
) -> tuple[list[Row], dict[str, int], Row, dict[str, int]]:
    """The pod sets, accelerators asked for in all; the template that asks for most, for what."""
    found, total, largest, template = [], {}, {}, {}
    for each in parts(spec.get("podSets")):
        inner = part(each.get("template"))
        asked, _ = effective(part(inner.get("spec")), settings, note)
        asked.pop("cpu", None)
        number = count(each.get("count", 1))
        for resource, units in asked.items():
            total[resource] = total.get(resource, 0) + number * units
        row = {"name": str(each.get("name", "")), "count": number, "requests": asked}
        if each.get("minCount") is not None:
            row["minCount"] = count(each.get("minCount"))
        found.append(row)
        if not template or sum(asked.values()) > sum(largest.values()):
            largest, template = asked, inner
    return found, total, template, largest


def _amounts(asked: dict[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted((resource, units) for resource, units in asked.items() if units))


def _conditions(status: Row) -> dict[str, Row]:
    return {str(each.get("type")): each for each in parts(status.get("conditions"))}


def _told(conditions: dict[str, Row]) -> Row:
    found: Row = {}
    for name, word in CONDITIONS.items():
        condition = conditions.get(word, {})
        found[f"is_{name}"] = condition.get("status") == "True" if condition else None
        found[f"{name}_at"] = micros(condition.get("lastTransitionTime"))
    return found


def _while(status: str, condition: Row, key: str) -> str | None:
    """A condition's reason or message while it has that status; else it is that of another time."""
    return text(condition.get(key)) if condition.get("status") == status else None


def _priority(value: Any) -> int | None:
    if value is None:
        return None
    sign = -1 if isinstance(value, int) and value < 0 else 1  # it may be below 0
    return sign * count(sign * value)


def _evictions(status: Row) -> int | None:
    counted = part(status.get("schedulingStats")).get("evictions")
    return None if counted is None else sum(count(each.get("count")) for each in parts(counted))


@guarded
def workload_row(version: Version, settings: Settings, note: Note) -> Row:
    """A version of a Workload as a row of raw.workload_versions."""
    meta, uid, namespace, name = identity(version)
    spec, status = part(version.object.get("spec")), part(version.object.get("status"))
    pod_sets, asked, template, largest = _pod_sets(spec, settings, note)
    inner = part(template.get("metadata"))
    labels = words(inner.get("labels")) | words(meta.get("labels"))
    annotations = words(inner.get("annotations")) | words(meta.get("annotations"))
    owners = _owners(meta)
    owner = controlling(meta) or (owners[0] if len(owners) == 1 else (None, None, None))
    workload, class_name = _whose(meta, owners, labels, namespace, settings)
    told_by = _conditions(status)
    evicted, preempted = told_by.get("Evicted", {}), told_by.get("Preempted", {})
    reason = _while("True", evicted, "message")
    preemptor = PREEMPTOR.search(_while("True", preempted, "message") or reason or "")
    pending = told_by.get("QuotaReserved", {})
    message = _while("False", pending, "message")
    requeue = part(status.get("requeueState"))
    checks = [
        {key: each.get(key) for key in ("name", "state", "lastTransitionTime")}
        for each in parts(status.get("admissionChecks"))
    ]
    return {
        **version.columns(settings),
        "workload_uid": uid,
        "namespace_name": namespace,
        "object_name": name,
        "created_at": created(meta, version.observed),
        "submitted_at": submitted(settings, labels, annotations, note),
        "owners": owners,
        "owner_kind_name": owner[0],
        "owner_name": owner[1],
        "owner_uid": owner[2],
        "workload_kind_name": workload.kind,
        "workload_name": workload.name,
        "workload_key_uid": workload.key,
        "workload_class": class_name,
        "is_service": workload.is_service,
        "queue_name": text(spec.get("queueName")),
        "cluster_queue_name": text(part(status.get("admission")).get("clusterQueue")),
        "user_name": told(settings.user_keys, labels, annotations),
        "account_name": told(settings.account_keys, labels, annotations),
        "priority_number": _priority(spec.get("priority")),
        "is_active": spec.get("active") is not False,
        "pod_sets_json": orjson.dumps(pod_sets).decode(),
        "pod_count": sum(each.get("minCount", each["count"]) for each in pod_sets),
        "requests": _amounts(asked),
        "pod_requests": _amounts(largest),
        "asked_gpu_model_name": asked_model(part(template.get("spec"))),
        "labels_json": orjson.dumps(labels).decode(),
        **_told(told_by),
        "pending_reason_name": _while("False", pending, "reason"),
        "pending_text": message,
        "scheduling_reasons": waiting_for(message, note) if message else None,
        "eviction_reason_name": _while("True", evicted, "reason"),
        "eviction_text": reason,
        "preemption_reason_name": _while("True", preempted, "reason"),
        "preemptor_uid": preemptor[1] if preemptor else None,
        "preemptor_job_uid": preemptor[2] if preemptor else None,
        "finish_reason_name": _while("True", told_by.get("Finished", {}), "reason"),
        "requeue_count": None if "count" not in requeue else count(requeue["count"]),
        "requeue_at": micros(requeue.get("requeueAt")),
        "eviction_count": _evictions(status),
        "checks_json": orjson.dumps(checks).decode(),
    }
