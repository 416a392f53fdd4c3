"""A node as a row: its physical GPUs, what one unit of each resource is, its health.

What is installed over a day belongs to `sql/core/nodes.sql`.
"""

from fractions import Fraction
from math import ceil, floor
from typing import Any, NamedTuple

import orjson

from collectors import hami
from collectors.quantities import mib, micros, milli, needed, part, parts, text, words
from collectors.requests import GPU, MIG, SHARED, accelerators, units_per_gpu
from collectors.source import Note, Settings, Unusable, Version
from models.gpus import canonical
from models.mig import instance_of, part_of, profile_in, profile_of
from models.states import UNKNOWN

PRODUCT_KEYS = (
    "nvidia.com/gpu.product",
    "amd.com/gpu.product-name",
    "cloud.google.com/gke-accelerator",
    "cloud.google.com/gke-tpu-accelerator",
)
WHOLE = 1_000_000
SPELLINGS = {
    "on-demand": "on-demand",
    "ondemand": "on-demand",
    "standard": "on-demand",
    "spot": "spot",
    "preemptible": "spot",
    "reserved": "reserved",
    "reservation": "reserved",
    "capacity-block": "reserved",
    "owned": "owned",
}


class Unit(NamedTuple):
    """One unit of a resource: its exact part of a GPU, and its part of compute and memory."""

    share: Fraction
    compute: Fraction
    memory: Fraction
    is_mig: bool


def _replicas(labels: dict[str, str], resource: str) -> int:
    """How many units share one device of a resource; 1 where it is not shared."""
    plain = resource.removesuffix(".shared")
    prefix = "nvidia.com/gpu" if plain == GPU else plain
    told = labels.get(f"{prefix}.replicas", "")
    strategy = labels.get(f"{prefix}.sharing-strategy", "none")
    if resource == plain and strategy not in ("time-slicing", "mps"):
        return 1
    return int(told) if told.isascii() and told.isdigit() and 0 < int(told) < 10_000 else 1


def _profile_unit(model: str, name: str, note: Note) -> Unit:
    found = part_of(model, name)
    if not found.is_known:
        note("unknown_mig_profile", f"{instance_of(name)[0]} of {model}")
    return Unit(found.share, found.compute, found.memory, True)


def _unit(
    resource: str, model: str, product: str, labels: dict[str, str], settings: Settings, note: Note
) -> Unit:
    plain = resource.removesuffix(".shared")
    whole = Unit(Fraction(1), Fraction(1), Fraction(1), False)
    single = profile_in(product) if resource in (GPU, SHARED) else None
    if single:
        unit = _profile_unit(model, single, note)
    elif plain.startswith(MIG):
        unit = _profile_unit(model, plain.removeprefix(MIG), note)
    else:
        unit = whole
    parted = Fraction(1, _replicas(labels, resource) * units_per_gpu(resource, settings))
    return Unit(unit.share * parted, unit.compute * parted, unit.memory * parted, unit.is_mig)


def _count(
    labels: dict[str, str],
    annotations: dict[str, str],
    model: str,
    product: str,
    amounts: dict[str, int],
    units: dict[str, Unit],
) -> tuple[int, str]:
    """The physical GPUs that a node reports, and what says so."""
    label = labels.get("nvidia.com/gpu.count", "")
    if label.isascii() and label.isdigit() and int(label) < 100_000:
        single = profile_in(product)
        found = profile_of(model, single) if single else None
        return (ceil(int(label) / found.max_per_gpu) if found else int(label)), "label"
    if register := annotations.get(hami.REGISTER):
        return len(hami.registered(register)), "hami_register"
    plain = sum((a * units[r].share for r, a in amounts.items() if not units[r].is_mig), Fraction())
    mig = [(a, units[r]) for r, a in amounts.items() if units[r].is_mig]
    compute = sum((a * unit.compute for a, unit in mig), Fraction())
    memory = sum((a * unit.memory for a, unit in mig), Fraction())
    return ceil(plain) + ceil(max(compute, memory)), "capacity"


def _allocatable(
    count: int,
    capacity: dict[str, int],
    allocatable: dict[str, int],
    units: dict[str, Unit],
    shares: dict[str, int],
    is_hami: bool,
) -> int:
    """Micro-GPU that can be allocated, MIG remainders counted in."""
    if not any(capacity.values()):
        return 0
    if is_hami:  # its units are slots; a card goes with all of its slots
        return WHOLE * ceil(Fraction(count * sum(allocatable.values()), sum(capacity.values())))
    if any(unit.is_mig for unit in units.values()):
        missing = (max(0, capacity[r] - allocatable.get(r, 0)) * shares[r] for r in capacity)
        return max(0, count * WHOLE - sum(missing))
    return floor(sum((a * units[r].share for r, a in allocatable.items()), Fraction()) * WHOLE)


def _maintenance(labels: dict[str, str]) -> str | None:
    if labels.get("nvidia.com/gpu-driver-upgrade-state", "") not in ("", "upgrade-done"):
        return "driver_upgrade"
    if labels.get("nvidia.com/mig.config.state") in ("pending", "rebooting"):
        return "mig_reconfigure"
    return None


def _capacity_type(labels: dict[str, str], settings: Settings) -> str:
    for key in settings.capacity_type_keys:
        if value := labels.get(key):
            return SPELLINGS.get(value.lower().replace("_", "-"), "unknown")
    if "true" in (labels.get(f"cloud.google.com/gke-{kind}") for kind in ("spot", "preemptible")):
        return "spot"
    return "unknown"


def node_row(version: Version, settings: Settings, note: Note) -> dict[str, Any]:
    """A version of a node as a row of raw.node_versions."""
    meta = part(version.object.get("metadata"))
    uid, name = needed(meta.get("uid"), "no_uid"), needed(meta.get("name"), "no_name")
    labels, annotations = words(meta.get("labels")), words(meta.get("annotations"))
    created = micros(meta.get("creationTimestamp"))
    if created is not None and created > version.observed + 86_400_000_000:
        raise Unusable("absurd_instant", f"created {meta['creationTimestamp']}")
    status = part(version.object.get("status"))
    amounts, free = part(status.get("capacity")), part(status.get("allocatable"))
    capacity = accelerators(amounts, settings, note)
    allocatable = accelerators(free, settings, note)
    product = next((labels[key] for key in PRODUCT_KEYS if labels.get(key)), None)
    model = canonical(product)
    if model == UNKNOWN:
        listed = [settings.accelerators[r] for r in capacity if r in settings.accelerators]
        model = listed[0] if listed else UNKNOWN
    units = {
        resource: _unit(resource, model, product or "", labels, settings, note)
        for resource in sorted(capacity.keys() | allocatable.keys())
    }
    count, source = _count(labels, annotations, model, product or "", capacity, units)
    register = annotations.get(hami.REGISTER)
    is_hami = bool(register) and labels.get("nvidia.com/mig.strategy", "none") != "mixed"
    mig = {r: capacity.get(r, 0) * unit.share for r, unit in units.items() if unit.is_mig}
    plain = sum(
        (capacity.get(r, 0) * u.share for r, u in units.items() if not u.is_mig), Fraction()
    )
    total, room = sum(mig.values(), Fraction()), count - plain
    scale = min(Fraction(1), Fraction(room) / total) if total > 0 and room > 0 else Fraction(1)
    is_ready = any(
        each.get("type") == "Ready" and each.get("status") == "True"
        for each in parts(status.get("conditions"))
    )
    shares = {
        resource: floor(unit.share * (scale if unit.is_mig else 1) * WHOLE)
        for resource, unit in units.items()
    }
    micro = _allocatable(count, capacity, allocatable, units, shares, is_hami)
    return {
        **version.columns(settings),
        "node_uid": uid,
        "node_name": name,
        "created_at": created,
        "gpu_model_name": model,
        "gpu_product_name": text(product),
        "gpu_count": count,
        "allocatable_micro_gpu": micro,
        "largest_gpu_count": count,
        "count_source_name": source,
        "is_ready": is_ready,
        "is_ever_ready": is_ready and any(allocatable.values()),
        "is_cordoned": part(version.object.get("spec")).get("unschedulable") is True,
        "maintenance_name": _maintenance(labels),
        "capacity_type_name": _capacity_type(labels, settings),
        "share_scale_ratio": float(scale),
        "resources": tuple(
            (
                resource,
                capacity.get(resource, 0),
                allocatable.get(resource, 0),
                shares[resource] if capacity.get(resource) else 0,
            )
            for resource in units
        ),
        # A kubelet goes on telling of a resource whose plugin is gone, with 0 of it.
        "resource_names_text": " ".join(sorted(amounts)) or None,
        "devices": hami.registered(register) if register else (),
        "cpu_milli_count": milli(amounts["cpu"]) if "cpu" in amounts else 0,
        "memory_mib": mib(amounts["memory"]) if "memory" in amounts else 0,
        "labels_json": orjson.dumps(labels).decode(),
    }
