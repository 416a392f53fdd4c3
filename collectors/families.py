"""The families of metrics that are read of a Prometheus: what is asked for, and with which limits.

Which of them a source has is discovered by `metrics`; what they mean belongs to each parser.
"""

from collections.abc import Collection
from typing import NamedTuple

from collectors import cadvisor, dcgm_names
from collectors.prometheus_selectors import Group, Matcher, any_of

DCGM, KUBE_STATE, CADVISOR = "dcgm", "kube_state", "cadvisor"
NOT_ASKED = "cpu|memory|ephemeral_storage|hugepages_.*|attachable_volumes_.*|storage|pods"
"""Resources that are no accelerator, as kube-state-metrics spells them."""


class Part(NamedTuple):
    """Metrics that are asked for together, of all their series or of some."""

    metrics: tuple[str, ...]
    matchers: tuple[Matcher, ...] = ()


FAMILIES: dict[str, tuple[Part, ...]] = {
    DCGM: (Part(dcgm_names.METRICS),),
    KUBE_STATE: (
        Part(
            (
                "kube_pod_info",
                "kube_pod_owner",
                "kube_pod_labels",
                "kube_pod_created",
                "kube_pod_status_phase",
                "kube_pod_status_reason",
                "kube_pod_status_scheduled_time",
                "kube_pod_start_time",
                "kube_pod_completion_time",
                "kube_pod_deletion_timestamp",
                "kube_replicaset_owner",
                "kube_job_owner",
                "kube_namespace_labels",
                "kube_node_info",
                "kube_node_created",
                "kube_node_labels",
                "kube_node_spec_unschedulable",
            )
        ),
        Part(("kube_node_status_condition",), (Matcher("condition", "=", "Ready"),)),
        Part(
            (
                "kube_pod_container_resource_requests",
                "kube_pod_container_resource_limits",
                "kube_pod_init_container_resource_requests",
                "kube_pod_init_container_resource_limits",
                "kube_node_status_capacity",
                "kube_node_status_allocatable",
            ),
            (Matcher("resource", "!~", NOT_ASKED),),
        ),
    ),
    CADVISOR: (
        Part(
            tuple(cadvisor.OF_CONTAINERS),
            (Matcher("container", "!=", ""), Matcher("container", "!=", cadvisor.PAUSE)),
        ),
        Part(tuple(cadvisor.OF_INTERFACES), (Matcher("interface", "!=", ""),)),
    ),
}
"""Name of a family -> what is asked for."""


def asked(family: str, found: Collection[str]) -> tuple[str, ...]:
    """The metrics of a family that a source has, in the family's order."""
    names = set(found)
    return tuple(name for part in FAMILIES[family] for name in part.metrics if name in names)


def groups(family: str, found: Collection[str]) -> list[Group]:
    """The questions that bring them."""
    names = set(found)
    return [
        Group((any_of("__name__", [m for m in part.metrics if m in names]), *part.matchers))
        for part in FAMILIES[family]
        if names.intersection(part.metrics)
    ]
