"""The metrics of kube-state-metrics that are asked for, and what is left out of each.

How families are asked for belongs to `families`, what the metrics mean to `kube_state_facts`.
"""

from collectors.prometheus_selectors import Matcher

_RESOURCES = (
    Matcher(
        "resource",
        "!~",
        "memory|storage|ephemeral_storage|pods|hugepages_.*|attachable_volumes_.*",
    ),
)
_OF_NODES = (
    Matcher("resource", "!~", "storage|ephemeral_storage|pods|hugepages_.*|attachable_.*"),
)
_TRUE = (Matcher("condition", "=", "true"),)

METRICS: dict[str, tuple[Matcher, ...]] = {
    "kube_node_info": (),
    "kube_node_created": (),
    "kube_node_labels": (),
    "kube_node_annotations": (),
    "kube_node_spec_unschedulable": (),
    "kube_node_status_condition": (
        Matcher("condition", "=", "Ready"),
        Matcher("status", "=", "true"),
    ),
    "kube_node_status_capacity": _OF_NODES,
    "kube_node_status_allocatable": _OF_NODES,
    "kube_namespace_labels": (),
    "kube_replicaset_owner": (),
    "kube_job_owner": (),
    "kube_pod_info": (),
    "kube_pod_created": (),
    "kube_pod_owner": (),
    "kube_pod_labels": (),
    "kube_pod_annotations": (),
    "kube_pod_deletion_timestamp": (),
    "kube_pod_completion_time": (),
    "kube_pod_status_phase": (Matcher("phase", "!=", "Unknown"),),
    "kube_pod_status_reason": (),
    "kube_pod_status_scheduled": _TRUE,
    "kube_pod_status_scheduled_time": (),
    "kube_pod_status_initialized_time": (),
    "kube_pod_status_ready": _TRUE,
    "kube_pod_status_ready_time": (),
    "kube_pod_status_disruption_reason": (),
    "kube_pod_container_resource_requests": _RESOURCES,
    "kube_pod_container_resource_limits": _RESOURCES,
    "kube_pod_container_state_started": (),
    "kube_pod_container_status_running": (),
    "kube_pod_container_status_restarts_total": (),
    "kube_pod_container_status_waiting_reason": (),
    "kube_pod_container_status_terminated_reason": (),
    "kube_pod_container_status_last_terminated_reason": (),
    "kube_pod_container_status_last_terminated_exitcode": (),
    "kube_pod_container_status_last_terminated_timestamp": (),
    "kube_pod_init_container_info": (),
    "kube_pod_init_container_resource_requests": _RESOURCES,
    "kube_pod_init_container_resource_limits": _RESOURCES,
    "kube_pod_init_container_status_running": (),
    "kube_pod_init_container_status_waiting_reason": (),
    "kube_pod_init_container_status_terminated_reason": (),
}
"""Metric of kube-state-metrics -> conditions on its series beside the name.

Where Unknown is left out, a pod of no other phase is in it; CPU is kept, memory is not.
"""
