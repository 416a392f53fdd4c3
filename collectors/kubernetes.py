"""Pods, namespaces and PodGroups as rows: one observed version of an object, one row. Pure.

Nodes are in `nodes`, containers in `containers`, owners in `attribution`; reading files or an API
belongs to `recording`. What cannot be used is raised as Unusable, whatever its shape.
"""

from collections.abc import Callable
from typing import Any

import orjson

from collectors import dra, hami
from collectors.attribution import class_for, gang_of, of_pod, of_pod_group, queue_of, told
from collectors.container_runs import container_runs, image_of
from collectors.containers import runs_of
from collectors.kube_events import event_row, waiting_for
from collectors.kueue import workload_row
from collectors.nodes import node_row
from collectors.objects import asked_model, created, guarded, identity, node_needs, submitted
from collectors.owners import owner_parser
from collectors.quantities import count, micros, needed, part, parts, text, words
from collectors.requests import accelerators, effective
from collectors.source import Note, Settings, Unusable, Version
from collectors.streams import OWNERS

Row = dict[str, Any]
PLACED = frozenset(("Running", "Completed"))


def _unscheduled(condition: dict[str, Any], note: Note) -> Row:
    """The columns of what says why an object waits; all null where nothing does."""
    message = text(condition.get("message"))
    return {
        "unscheduled_reason_name": text(condition.get("reason")),
        "unscheduled_text": message,
        "scheduling_reasons": waiting_for(message, note) if message else None,
    }


def _gang_condition(status: dict[str, Any]) -> dict[str, Any]:
    """Why a PodGroup waits: Volcano never takes such a condition back, so the newer one counts."""
    newest: dict[str, Any] = {}
    for each in parts(status.get("conditions")):
        if each.get("type") in ("Unschedulable", "Scheduled") and each.get("status") == "True":
            is_newer = _changed(each) > _changed(newest)
            is_equal = _changed(each) == _changed(newest)
            if is_newer or (is_equal and _is_placed(each) == (status.get("phase") in PLACED)):
                newest = each
    return {} if _is_placed(newest) else newest


def _is_placed(condition: dict[str, Any]) -> bool:
    return condition.get("type") == "Scheduled"


def _changed(condition: dict[str, Any]) -> int:
    try:
        return micros(condition.get("lastTransitionTime")) or 0
    except Unusable:
        return 0  # which of them is newer is all that is asked


@guarded
def pod_row(version: Version, settings: Settings, note: Note) -> Row:
    """A version of a pod as a row of raw.pod_versions."""
    meta, uid, namespace, name = identity(version)
    labels, annotations = words(meta.get("labels")), words(meta.get("annotations"))
    spec, status = part(version.object.get("spec")), part(version.object.get("status"))
    conditions = {str(each.get("type")): each for each in parts(status.get("conditions"))}
    asked, askers = effective(spec, settings, note)
    cpu = asked.pop("cpu", 0)
    claims = dra.claims_of(spec, status)
    if claims or parts(spec.get("resourceClaims")):
        note("resource_claims", f"{namespace}/{name}")
    askers |= dra.claimants(spec)
    workload = of_pod(meta, labels, annotations, namespace, name, uid, version.above)
    gang_name, gang_size, gang_source = gang_of(workload, labels, annotations)
    runs = runs_of(spec, status, conditions, askers, version.observed)
    node_name = text(spec.get("nodeName"))
    scheduled = conditions.get("PodScheduled", {})
    ready = conditions.get("Ready", {})
    sandbox = conditions.get("PodReadyToStartContainers", {})
    disruption = conditions.get("DisruptionTarget", {})
    is_disrupted = disruption.get("status") == "True"
    is_unscheduled = scheduled.get("status") == "False"
    deadline = micros(meta.get("deletionTimestamp"))
    given = annotations.get(hami.ALLOCATED)
    if annotations.get(hami.PHASE) == "failed":
        given = None  # as good as never allocated
    return {
        **version.columns(settings),
        "pod_uid": uid,
        "namespace_name": namespace,
        "pod_name": name,
        "created_at": created(meta, version.observed),
        "submitted_at": submitted(settings, labels, annotations, note),
        "node_name": node_name,
        "bound_at": micros(scheduled.get("lastTransitionTime"))
        if node_name and scheduled.get("status") == "True"
        else None,
        "phase_name": text(status.get("phase")) or "Unknown",
        "reason_name": text(status.get("reason")),
        "deletion_asked_at": None
        if deadline is None
        else deadline - 1_000_000 * count(meta.get("deletionGracePeriodSeconds")),
        **runs._asdict(),
        "container_runs": container_runs(spec, status),
        "sandbox_ready_at": micros(sandbox.get("lastTransitionTime"))
        if sandbox.get("status") == "True"
        else None,
        "image_name": image_of(spec, askers),
        "is_start_known": True,
        "ready_since_at": micros(ready.get("lastTransitionTime"))
        if ready.get("status") == "True"
        else None,
        "disruption_name": text(disruption.get("reason")) if is_disrupted else None,
        "disrupted_at": micros(disruption.get("lastTransitionTime")) if is_disrupted else None,
        "is_gated": bool(parts(spec.get("schedulingGates"))),
        **_unscheduled(scheduled if is_unscheduled else {}, note),
        "requests": tuple(sorted((r, units) for r, units in asked.items() if units)),
        "devices": hami.allocated(given) if given else (),
        "claims": claims,
        "asked_gpu_model_name": asked_model(spec),
        "node_needs_json": orjson.dumps(node_needs(spec)).decode(),
        "cpu_milli_count": cpu,
        "labels_json": orjson.dumps(labels).decode(),
        "owners": workload.owners,
        "workload_kind_name": workload.kind,
        "workload_name": workload.name,
        "workload_key_uid": workload.key,
        "workload_class": class_for(workload, namespace, labels, settings),
        "is_service": workload.is_service,
        "gang_name": gang_name,
        "gang_size_count": gang_size,
        "gang_source_name": gang_source,
        "queue_name": queue_of(labels, annotations),
        "user_name": told(settings.user_keys, labels, annotations),
        "account_name": told(settings.account_keys, labels, annotations),
    }


@guarded
def namespace_row(version: Version, settings: Settings, note: Note) -> Row:
    """A version of a namespace as a row of raw.namespace_versions."""
    meta = part(version.object.get("metadata"))
    return {
        **version.columns(settings),
        "namespace_name": needed(meta.get("name"), "no_name"),
        "labels_json": orjson.dumps(words(meta.get("labels"))).decode(),
    }


@guarded
def pod_group_row(version: Version, settings: Settings, note: Note) -> Row:
    """A version of a Volcano PodGroup as a row of raw.pod_group_versions."""
    meta, uid, namespace, name = identity(version)
    labels, annotations = words(meta.get("labels")), words(meta.get("annotations"))
    spec, status = part(version.object.get("spec")), part(version.object.get("status"))
    workload = of_pod_group(meta, labels, namespace, name)
    asked = accelerators(
        {
            resource: amount
            for resource, amount in part(spec.get("minResources")).items()
            if not resource.startswith(("requests.", "limits.", "count/"))  # the same again
        },
        settings,
        note,
    )
    return {
        **version.columns(settings),
        "pod_group_uid": uid,
        "namespace_name": namespace,
        "pod_group_name": name,
        "created_at": created(meta, version.observed),
        "submitted_at": submitted(settings, labels, annotations, note),
        "workload_kind_name": workload.kind,
        "workload_name": workload.name,
        "workload_key_uid": workload.key,
        "workload_class": class_for(workload, namespace, labels, settings),
        "min_member_count": count(spec.get("minMember")),
        "queue_name": text(spec.get("queue")) or queue_of(labels, annotations),
        "user_name": told(settings.user_keys, labels, annotations),
        "phase_name": text(status.get("phase")),
        **_unscheduled(_gang_condition(status), note),
        "labels_json": orjson.dumps(labels).decode(),
        "requests": tuple(sorted((r, units) for r, units in asked.items() if units)),
    }


PARSERS: dict[str, tuple[str, Callable[..., Row]]] = {
    "Pod": ("raw.pod_versions", pod_row),
    "Node": ("raw.node_versions", guarded(node_row)),
    "Namespace": ("raw.namespace_versions", namespace_row),
    "PodGroup": ("raw.pod_group_versions", pod_group_row),
    "ResourceClaim": ("raw.claim_versions", guarded(dra.claim_row)),
    "ResourceSlice": ("raw.slice_versions", guarded(dra.slice_row)),
    "Event": ("raw.event_versions", guarded(event_row)),
    "Workload": ("raw.workload_versions", workload_row),
    **{kind: ("raw.owner_versions", owner_parser(kind)) for kind in OWNERS},
}
"""Kind -> its table, and the parser of one version."""
