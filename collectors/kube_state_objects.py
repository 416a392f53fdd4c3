"""What kube-state-metrics told of a pod or a node, as the object that the API server had.

So there is one way to read a pod, that of `kubernetes` and `nodes`. Here is only what is told; what
cannot be told is left out, and what follows from that is mended in the row, never made up.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple

import orjson

from collectors.attribution import Owner
from collectors.containers import TERMINAL
from collectors.coverage import instant
from collectors.kube_state_names import Names
from collectors.source import Note, Unusable

NONE = frozenset((None, "", "<none>"))
"""How no owner is spelled."""
START, INIT = "kube_pod_container", "kube_pod_init_container"
MODIFIED_BY_JOBS = frozenset(("CronJob",))
"""Owners of a Job that are no workload: each of its Jobs is one."""


class Told(NamedTuple):
    """One row of a metric: at most three labels, and its value."""

    a: str | None
    b: str | None
    c: str | None
    value: float


Facts = dict[str, list[Told]]
"""Metric -> its rows of one object."""


def _stamp(seconds: float | int) -> str:
    return _iso(instant(round(seconds * 1_000_000)))


def _iso(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def _value(facts: Facts, metric: str) -> float | None:
    """The one value of a metric; the largest, should there be several."""
    return max((row.value for row in facts.get(metric, ())), default=None)


def _true(facts: Facts, metric: str) -> list[str]:
    """The first labels of the rows that are 1."""
    return sorted(row.a for row in facts.get(metric, ()) if row.value == 1 and row.a)


def _labels(facts: Facts, metric: str, names: Names) -> dict[str, str]:
    for row in facts.get(metric, ()):
        return names.labels(orjson.loads(row.a or "{}"))
    return {}


def _by_container(facts: Facts, metric: str, is_reason: bool = False) -> dict[str, Told]:
    """The largest row of each container; of reasons those that are not 0."""
    found: dict[str, Told] = {}
    for row in facts.get(metric, ()):
        name = row.a or ""
        if (not is_reason or row.value) and (name not in found or row.value > found[name].value):
            found[name] = row
    return found


def _amounts(facts: Facts, metric: str, names: Names) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for row in facts.get(metric, ()):
        found.setdefault(row.a or "", {})[names.resource(row.b or "")] = row.value
    return found


def pod(
    uid: str, facts: Facts, names: Names, observed: int, above: dict[tuple[str, str], Owner]
) -> tuple[dict[str, Any], tuple[Owner, ...]]:
    """A pod as an object, and its owners above the controlling one as far as they are told."""
    created = facts.get("kube_pod_created")
    if not created:
        raise Unusable("no_creation", f"kube_pod_created of {uid}")
    namespace, name = created[0].a, created[0].b
    meta: dict[str, Any] = {
        "uid": uid,
        "namespace": namespace,
        "name": name,
        "creationTimestamp": _stamp(created[0].value),
        "labels": _labels(facts, "kube_pod_labels", names),
        "annotations": _labels(facts, "kube_pod_annotations", names),
    }
    deadline = _value(facts, "kube_pod_deletion_timestamp")
    if deadline is not None:
        # Neither the grace period nor when it was asked for is told: at the latest then or now.
        meta["deletionTimestamp"] = _stamp(min(deadline, observed // 1_000_000))
    owners = _owner(facts, meta["labels"])
    if owners:
        meta["ownerReferences"] = [owners]
    hops: list[Owner] = []
    if owners and (next_one := above.get((owners["kind"], f"{namespace}/{owners['name']}"))):
        hops = [next_one]
    return {
        "metadata": meta,
        "spec": _spec(facts, names),
        "status": _status(facts),
    }, tuple(hops)


def _owner(facts: Facts, labels: dict[str, str]) -> dict[str, Any] | None:
    for row in sorted(facts.get("kube_pod_owner", ()), key=lambda row: (row.a or "", row.b or "")):
        if row.c != "true" or row.a in NONE or row.b in NONE:
            continue
        found = {"kind": row.a, "name": row.b, "controller": True}
        if row.a == "Job":
            # Of a Job neither its group nor its uid is told, but for these labels.
            if labels.get("volcano.sh/job-name") == row.b:
                found["apiVersion"] = "batch.volcano.sh/v1alpha1"
            elif labels.get("batch.kubernetes.io/job-name") == row.b:
                found["uid"] = labels.get("batch.kubernetes.io/controller-uid")
        return found
    return None


def hop(kind: str, rows: Iterable[Told]) -> Owner | None:
    """The owner of a ReplicaSet or a Job."""
    for row in rows:
        if (
            row.a not in NONE
            and row.b not in NONE
            and not (kind == "Job" and row.a in MODIFIED_BY_JOBS)
        ):
            return str(row.a), str(row.b), None
    return None


def _spec(facts: Facts, names: Names) -> dict[str, Any]:
    spec: dict[str, Any] = {}
    nodes = [row.a for row in facts.get("kube_pod_info", ()) if row.a]
    for prefix, key in ((START, "containers"), (INIT, "initContainers")):
        requests = _amounts(facts, f"{prefix}_resource_requests", names)
        limits = _amounts(facts, f"{prefix}_resource_limits", names)
        told = {
            row.a or ""
            for metric, rows in facts.items()
            if metric.startswith(f"{prefix}_")
            for row in rows
        }
        nodes += [
            row.c
            for end in ("requests", "limits")
            for row in facts.get(f"{prefix}_resource_{end}", ())
            if row.c
        ]
        always = {row.a for row in facts.get(f"{INIT}_info", ()) if row.b == "Always"}
        spec[key] = [
            {
                "name": name,
                "resources": {"requests": requests.get(name), "limits": limits.get(name)},
                **({"restartPolicy": "Always"} if key != "containers" and name in always else {}),
            }
            for name in sorted(told)
        ]
    if nodes:
        spec["nodeName"] = nodes[0]
    return spec


def _status(facts: Facts) -> dict[str, Any]:
    phases = _true(facts, "kube_pod_status_phase")
    status: dict[str, Any] = {
        "phase": phases[0] if phases else "Unknown",
        "reason": next(iter(_true(facts, "kube_pod_status_reason")), None),
        "conditions": list(_conditions(facts)),
        "containerStatuses": list(_statuses(facts, START)),
    }
    if inits := list(_statuses(facts, INIT)):
        status["initContainerStatuses"] = inits
    return status


def _conditions(facts: Facts) -> Iterable[dict[str, Any]]:
    scheduled = _value(facts, "kube_pod_status_scheduled_time")
    if scheduled is not None or _true(facts, "kube_pod_status_scheduled"):
        yield _condition("PodScheduled", scheduled)
    ready = _value(facts, "kube_pod_status_ready_time")
    refuted = facts.get("kube_pod_status_ready") and not _true(facts, "kube_pod_status_ready")
    if ready is not None and not refuted:
        yield _condition("Ready", ready)
    if _is_initialized(facts):
        yield _condition("Initialized", _value(facts, "kube_pod_status_initialized_time"))
    for reason in _true(facts, "kube_pod_status_disruption_reason"):
        yield _condition("DisruptionTarget", None) | {"reason": reason}


def _is_initialized(facts: Facts) -> bool:
    """Told, or clear from a main container that is past it."""
    if facts.get("kube_pod_status_initialized_time"):
        return True
    if any(row.value for row in facts.get(f"{START}_status_running", ())):
        return True
    waiting = [row.b for row in facts.get(f"{START}_status_waiting_reason", ()) if row.value]
    ended = any(row.value for row in facts.get(f"{START}_status_terminated_reason", ()))
    return ended or any(reason != "PodInitializing" for reason in waiting)


def _condition(name: str, since: float | None) -> dict[str, Any]:
    stamp = None if since is None else _stamp(since)
    return {"type": name, "status": "True", "lastTransitionTime": stamp}


def _statuses(facts: Facts, prefix: str) -> Iterable[dict[str, Any]]:
    running = _by_container(facts, f"{prefix}_status_running")
    waiting = _by_container(facts, f"{prefix}_status_waiting_reason", True)
    ended = _by_container(facts, f"{prefix}_status_terminated_reason", True)
    started = _by_container(facts, f"{prefix}_state_started")
    restarts = _by_container(facts, f"{prefix}_status_restarts_total")
    before = _by_container(facts, f"{prefix}_status_last_terminated_timestamp")
    codes = _by_container(facts, f"{prefix}_status_last_terminated_exitcode")
    reasons = _by_container(facts, f"{prefix}_status_last_terminated_reason", True)
    # The latest end of those that ended: of one of several, at the latest then.
    completion = _value(facts, "kube_pod_completion_time") if prefix == START else None
    for name in sorted({*running, *waiting, *ended, *restarts}):
        begin = {"startedAt": _stamp(started[name].value)} if name in started else {}
        state: dict[str, Any] = {}
        if name in running and running[name].value:
            state["running"] = begin or {"startedAt": None}
        elif name in ended:
            told = begin | ({"finishedAt": _stamp(completion)} if completion is not None else {})
            state["terminated"] = told | _ending(ended[name].b)
        elif name in waiting:
            state["waiting"] = {"reason": waiting[name].b}
        last = {}
        if name in before:
            last["finishedAt"] = _stamp(before[name].value)
        if name in reasons:
            last |= _ending(reasons[name].b)
        if name in codes:
            last["exitCode"] = int(codes[name].value)
        yield {
            "name": name,
            "state": state,
            "lastState": {"terminated": last} if last else {},
            "restartCount": int(restarts[name].value) if name in restarts else 0,
        }


def _ending(reason: str | None) -> dict[str, Any]:
    """A reason, and the code where the reason says it: Completed is 0, and nothing else is."""
    return {"reason": reason} | ({"exitCode": 0} if reason == "Completed" else {})


def mended(row: dict[str, Any], facts: Facts, before: dict[str, Any] | None) -> dict[str, Any]:
    """The row of a pod without what the parser took from silence, and with what was told before."""
    ends = [*facts.get(f"{START}_status_terminated_reason", ())]
    ends += facts.get(f"{START}_status_last_terminated_reason", ())
    codes = [int(told.value) for told in facts.get(f"{START}_status_last_terminated_exitcode", ())]
    if any(told.value and told.b != "Completed" for told in ends) and not any(codes):
        row["exit_code_number"] = None
    if before is None:
        before = {}
    same_node = before.get("node_name") == row["node_name"]
    if row["bound_at"] is None and row["node_name"] and same_node:
        row["bound_at"] = before.get("bound_at")
    if row["deletion_asked_at"] is not None and before.get("deletion_asked_at") is not None:
        row["deletion_asked_at"] = min(row["deletion_asked_at"], before["deletion_asked_at"])
    is_over = row["phase_name"] in TERMINAL
    completion = _value(facts, "kube_pod_completion_time")
    if is_over and completion is not None:  # whatever is told of the containers
        row["finished_at"] = round(completion * 1_000_000)
    elif is_over and row["finished_at"] == row["observed_at"] and before.get("finished_at"):
        row["finished_at"] = before["finished_at"]
    since, end = before.get("running_since_at"), row["stopped_at"]
    is_same_run = before.get("restart_count") == row["restart_count"]
    if row["running_since_at"] is None and since and end and since <= end and is_same_run:
        row["running_since_at"] = since
    runs = any(told.value for told in facts.get(f"{START}_status_running", ()))
    if row["running_since_at"] is None and (is_over or (runs and not row["waiting_cause_name"])):
        row["is_start_known"] = False
    row["is_gated"] = row["node_needs_json"] = None  # no metric tells it
    return row


def node(
    name: str, facts: Facts, names: Names, uids: dict[tuple[str, int | None], str], note: Note
) -> dict[str, Any]:
    """A node as an object; its uid is one that a recorder gave it, else made of what is told."""
    created = _value(facts, "kube_node_created")
    info = next(iter(facts.get("kube_node_info", ())), Told(None, None, None, 1))
    moment = None if created is None else round(created * 1_000_000)
    uid = uids.get((name, moment)) or made_uid(name, moment, info.b or info.a)
    capacity = {names.resource(r.a or ""): r.value for r in facts.get(CAPACITY, ())}
    allocatable = {names.resource(r.a or ""): r.value for r in facts.get(ALLOCATABLE, ())}
    for metric, mine, other in (
        (CAPACITY, capacity, allocatable),
        (ALLOCATABLE, allocatable, capacity),
    ):
        if not mine and other:
            note("metric_missing", f"{metric} of {name}: taken as the other one")
            mine.update(other)
    ready = facts.get("kube_node_status_condition")
    if not ready:
        note("metric_missing", f"kube_node_status_condition of {name}: taken as Ready")
    is_ready = not ready or any(row.value == 1 and row.b == "true" for row in ready)
    return {
        "metadata": {
            "uid": uid,
            "name": name,
            "creationTimestamp": None if created is None else _stamp(created),
            "labels": _labels(facts, "kube_node_labels", names),
            "annotations": _labels(facts, "kube_node_annotations", names),
        },
        "spec": {"unschedulable": bool(_value(facts, "kube_node_spec_unschedulable"))},
        "status": {
            "capacity": capacity,
            "allocatable": allocatable,
            "conditions": [{"type": "Ready", "status": "True" if is_ready else "False"}],
        },
    }


CAPACITY, ALLOCATABLE = "kube_node_status_capacity", "kube_node_status_allocatable"
MADE = "kube-state/"
"""How a uid of a node begins that no API server gave it."""


def made_uid(name: str, created: int | None, system: str | None) -> str:
    """A node's uid where none is told: a name comes again, a name and its creation do not."""
    if created is not None:
        return f"{MADE}{name}@{_iso(instant(created))}"
    return f"{MADE}{name}/{system or 'unknown'}"


def namespace(name: str, facts: Facts, names: Names) -> dict[str, Any]:
    """A namespace as an object."""
    return {"metadata": {"name": name, "labels": _labels(facts, "kube_namespace_labels", names)}}
