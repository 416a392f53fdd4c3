"""Which resources are accelerators, and what a pod's containers ask for together.

What one unit of a resource is of a GPU belongs to `nodes`.
"""

import re
from functools import lru_cache
from typing import Any

from collectors.quantities import milli, part, parts, whole
from collectors.source import Note, Settings

GPU, SHARED, MIG, AMD = "nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-", "amd.com/gpu"
PARTS = {"k8s.amazonaws.com/vgpu": 10}
"""Resources of which several units are one GPU: how many, as their plugins have it by default."""
GPU_CLASSES = frozenset(
    ("gpu.nvidia.com", "mig.nvidia.com", "vfio.gpu.nvidia.com", "gpu.amd.com", "gpu.intel.com")
)
"""Device classes of DRA that are GPUs."""
BY_CLASS = "deviceclass.resource.kubernetes.io/"
"""Begins an extended resource that is a device class: it has no claim before it is placed."""
BESIDE = frozenset(("nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores"))
"""HAMi's further conditions on a GPU: not GPUs themselves."""
SUSPECT = re.compile(
    r"gpu|[^i]npu|tpu|gaudi|ascend|neuron|habana|mlu|dcu|trainium|i915|/xe$", re.IGNORECASE
)


@lru_cache(maxsize=4096)
def _known(resource: str) -> bool:
    if resource.startswith(BY_CLASS):
        return resource.removeprefix(BY_CLASS) in GPU_CLASSES
    return resource in (GPU, SHARED, AMD, *PARTS) or resource.startswith(MIG)


@lru_cache(maxsize=4096)
def _suspect(resource: str) -> bool:
    return "/" in resource and resource not in BESIDE and bool(SUSPECT.search(resource))


def is_accelerator(resource: str, settings: Settings) -> bool:
    """Whether a resource is GPUs; `accelerators` of the configuration adds to ours."""
    return _known(resource) or resource in settings.accelerators


def units_per_gpu(resource: str, settings: Settings) -> int:
    """How many units of a resource are one GPU, beside replicas that labels tell of."""
    return settings.units_per_gpu.get(resource, PARTS.get(resource, 1))


def accelerators(amounts: dict[str, Any], settings: Settings, note: Note) -> dict[str, int]:
    """The accelerators among amounts of resources; what looks like one is noted."""
    found = {}
    for resource, amount in amounts.items():
        if is_accelerator(resource, settings):
            found[resource] = whole(amount)
        elif _suspect(resource):
            note("unknown_resource", resource)
    return found


def is_sidecar(container: dict[str, Any]) -> bool:
    """Whether an init container goes on beside the others."""
    return container.get("restartPolicy") == "Always"


def asked_of(container: dict[str, Any], settings: Settings, note: Note) -> dict[str, int]:
    """Accelerators, and `cpu` in thousandths, that one container asks for."""
    resources = part(container.get("resources"))
    # An extended resource that only has a limit is requested as much.
    amounts = part(resources.get("limits")) | part(resources.get("requests"))
    found = accelerators(amounts, settings, note)
    if "cpu" in amounts:
        found["cpu"] = milli(amounts["cpu"])
    return found


def effective(
    spec: dict[str, Any], settings: Settings, note: Note
) -> tuple[dict[str, int], frozenset[str]]:
    """A pod's effective request (`cpu` in thousandths), and who of its lasting containers asks.

    The larger of what runs together (containers and sidecars) and, for each init container, what
    it asks for with the sidecars before it; plus the overhead.
    """
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    askers = set()
    for container in parts(spec.get("initContainers")):
        asked = asked_of(container, settings, note)
        if is_sidecar(container):
            sidecars = _added(sidecars, asked)
            if asked.keys() - {"cpu"}:
                askers.add(container.get("name", ""))
        else:
            peak = _larger(peak, _added(sidecars, asked))
    together = sidecars
    for container in parts(spec.get("containers")):
        asked = asked_of(container, settings, note)
        together = _added(together, asked)
        if any(units for resource, units in asked.items() if resource != "cpu"):
            askers.add(container.get("name", ""))
    total = _larger(peak, together)
    pod_level = part(spec.get("resources"))
    amounts = part(pod_level.get("limits")) | part(pod_level.get("requests"))
    if "cpu" in amounts:  # the only one of ours that a pod may state as a whole
        total["cpu"] = milli(amounts["cpu"])
    if overhead := part(spec.get("overhead")):
        total = _added(total, asked_of({"resources": {"requests": overhead}}, settings, note))
    return total, frozenset(askers)


def _added(some: dict[str, int], more: dict[str, int]) -> dict[str, int]:
    if not some:
        return dict(more)
    return {key: some.get(key, 0) + more.get(key, 0) for key in some.keys() | more.keys()}


def _larger(some: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    if not some:
        return dict(other)
    return {key: max(some.get(key, 0), other.get(key, 0)) for key in some.keys() | other.keys()}
