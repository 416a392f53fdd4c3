"""Dynamic resource allocation (DRA): ResourceClaims and ResourceSlices as rows. Pure.

Which drivers' and classes' devices are GPUs, and what one is of a physical GPU, is told here as far
as one object tells it; who holds them belongs to `sql/core/claim_holds.sql`. The versions of the
API differ in small things: v1beta1 keeps a device in `basic` and a request flat.
"""

from math import floor
from typing import Any, NamedTuple

from collectors.quantities import (
    Unusable,
    count,
    mib,
    micros,
    milli,
    needed,
    part,
    parts,
    text,
    words,
)
from collectors.requests import BY_CLASS, GPU_CLASSES, is_sidecar
from collectors.source import Note, Settings, Version
from models.gpus import canonical, catalogue
from models.mig import instance_of, part_of
from models.states import UNKNOWN

Row = dict[str, Any]
WHOLE = 1_000_000
DAY = 86_400_000_000
GPU_DRIVERS = frozenset(("gpu.nvidia.com", "gpu.amd.com", "gpu.intel.com"))
OTHER_DRIVERS = frozenset(("compute-domain.nvidia.com", "dra.cpu", "dra.memory", "dra.net"))
"""Drivers of devices that are no GPUs: channels, cores, memory, network interfaces."""
GPU_TYPES = frozenset(("gpu", "mig"))
NO_GPU_TYPES = frozenset(("channel", "daemon"))
GPU_UUIDS = ("gpu-", "mig-")
EXTENDED = "resource.kubernetes.io/extended-resource-claim"
EFFECTS = frozenset(("NoSchedule", "NoExecute"))


def is_gpu_driver(driver: str, settings: Settings) -> bool | None:
    """Whether a driver's devices are GPUs; None where we do not know it."""
    if driver in GPU_DRIVERS or driver in settings.accelerators:
        return True
    return False if driver in OTHER_DRIVERS else None


def is_gpu_class(name: str, settings: Settings) -> bool | None:
    """Whether a class of devices is GPUs; None where we do not know it."""
    if name in GPU_CLASSES or {name, BY_CLASS + name} & settings.accelerators.keys():
        return True
    return False if name in OTHER_DRIVERS or name.startswith("compute-domain-") else None


def _identity(version: Version, is_namespaced: bool) -> tuple[dict[str, Any], Row]:
    meta = part(version.object.get("metadata"))
    created = micros(meta.get("creationTimestamp"))
    if created is None:
        raise Unusable("no_creation", "creationTimestamp")
    if created > version.observed + DAY:
        raise Unusable("absurd_instant", f"created {meta['creationTimestamp']}")
    needed(meta.get("uid"), "no_uid")
    needed(meta.get("name"), "no_name")
    if is_namespaced:
        needed(meta.get("namespace"), "no_namespace")
    return meta, {"created_at": created}


class Attributes(NamedTuple):
    """A device's attributes or capacities; names of the driver's own may go without its domain."""

    driver: str
    told: dict[str, Any]

    def get(self, name: str) -> Any:
        """The value, whatever its type; None for none."""
        found = self.told.get(name, self.told.get(f"{self.driver}/{name}"))
        if not isinstance(found, dict):
            return found  # the first versions wrote a capacity without a `value`
        return next(iter(found.values()), None) if len(found) == 1 else found.get("value")

    def word(self, *names: str) -> str | None:
        """The first of these that is a text."""
        found = (self.get(name) for name in names)
        return next((each for each in found if isinstance(each, str) and each), None)


def _is_gpu(kind: str, uuid: str, product: str, driver: str, settings: Settings) -> bool | None:
    known = is_gpu_driver(driver, settings)
    if known is False or kind in NO_GPU_TYPES:
        return False
    is_like_one = (
        kind in GPU_TYPES or uuid.lower().startswith(GPU_UUIDS) or canonical(product) in catalogue()
    )
    return True if known or is_like_one else None


def _share(model: str, profile: str | None, is_counted: bool, note: Note) -> int | None:
    """A device's part of its GPU, in millionths; None where counters tell it."""
    if profile:
        found = part_of(model, profile)
        if not found.is_known:
            note("unknown_mig_profile", f"{instance_of(profile)[0]} of {model}")
        return floor(found.share * WHOLE)
    return None if is_counted else WHOLE


def _device(item: dict[str, Any], driver: str, settings: Settings, note: Note) -> tuple[Any, ...]:
    name = needed(item.get("name"), "no_name")
    body = part(item.get("basic")) or item  # v1beta1
    attributes = Attributes(driver, part(body.get("attributes")))
    kind = attributes.word("type") or ""
    uuid, parent = attributes.word("uuid"), attributes.word("parentUUID")
    product = attributes.word("productName", "product", "model")
    profile = attributes.word("profile")
    is_gpu = _is_gpu(kind, uuid or "", product or "", driver, settings)
    if is_gpu is None:
        note("unknown_driver", driver)
    is_mig = kind == "mig" or bool(profile)
    model = canonical(product)
    if model == UNKNOWN:
        model = settings.accelerators.get(driver, UNKNOWN)
    memory = Attributes(driver, part(body.get("capacity"))).get("memory")
    counted = bool(parts(body.get("consumesCounters")))
    return (
        name,
        bool(is_gpu),
        kind or ("mig" if is_mig else "gpu" if is_gpu else "other"),
        parent or (None if is_mig else uuid),
        uuid,
        model,
        profile,
        None if memory is None else mib(memory),
        _share(model, profile if is_mig else None, counted, note) if is_gpu else 0,
        text(body.get("nodeName")),
        any(taint.get("effect") in EFFECTS for taint in parts(body.get("taints"))),
    )


def _counters(spec: dict[str, Any]) -> list[tuple[str, str, str, int]]:
    found = []
    told = [("", each, each.get("name")) for each in parts(spec.get("sharedCounters"))]
    for item in parts(spec.get("devices")):
        body = part(item.get("basic")) or item
        for each in parts(body.get("consumesCounters")):
            told.append((item.get("name", ""), each, each.get("counterSet")))
    for device, each, name in told:
        for counter, amount in part(each.get("counters")).items():
            value = milli(part(amount).get("value"))
            found.append((device, needed(name, "no_name"), counter, value))
    return found


def slice_row(version: Version, settings: Settings, note: Note) -> Row:
    """A version of a ResourceSlice as a row of raw.slice_versions."""
    meta, identity = _identity(version, is_namespaced=False)
    spec = part(version.object.get("spec"))
    driver, pool = needed(spec.get("driver"), "malformed"), part(spec.get("pool"))
    nodes = [o for o in parts(meta.get("ownerReferences")) if o.get("kind") == "Node"]
    return {
        **version.columns(settings),
        **identity,
        "slice_uid": meta["uid"],
        "slice_name": meta["name"],
        "driver_name": driver,
        "pool_name": needed(pool.get("name"), "malformed"),
        "generation_number": count(pool.get("generation")),
        "slice_count": count(pool.get("resourceSliceCount")),
        "node_name": text(spec.get("nodeName")),
        "node_uid": text(nodes[0].get("uid")) if nodes else None,
        "devices": tuple(
            _device(each, driver, settings, note) for each in parts(spec.get("devices"))
        ),
        "counters": tuple(_counters(spec)),
    }


def _profile_in(request: dict[str, Any]) -> str | None:
    """The MIG profile that the request's selectors compare with, such as `… == '1g.10gb'`."""
    for selector in parts(request.get("selectors")):
        expression = text(part(selector.get("cel")).get("expression")) or ""
        _, found, rest = expression.partition(".profile")
        words_there = rest.replace('"', "'").split("'")
        if found and rest.lstrip().startswith("==") and len(words_there) > 2:
            return words_there[1]
    return None


def _asked(request: dict[str, Any], settings: Settings, note: Note) -> tuple[Any, ...] | None:
    """A request as asked; of alternatives the first that is GPUs. None: for looking on only."""
    others = parts(request.get("firstAvailable"))
    options = others or [part(request.get("exactly")) or request]
    known = [is_gpu_class(str(each.get("deviceClassName")), settings) for each in options]
    place = known.index(True) if True in known else 0
    body, is_gpu = options[place], known[place]
    if body.get("adminAccess") is True:
        return None
    name = needed(request.get("name"), "no_name")
    class_name = text(body.get("deviceClassName")) or ""
    if is_gpu is None:
        note("unknown_device_class", class_name)
    # How many `All` are is known once they are allocated: until then one.
    is_all = body.get("allocationMode") == "All"
    profile = _profile_in(body)
    share = floor(part_of(UNKNOWN, profile).share * WHOLE) if profile else None
    return (
        f"{name}/{body.get('name')}" if others else name,
        class_name,
        is_gpu,
        1 if is_all else count(body.get("count")) or 1,
        share,
    )


def _result(item: dict[str, Any], settings: Settings, note: Note) -> tuple[Any, ...]:
    driver = needed(item.get("driver"), "malformed")
    is_gpu = is_gpu_driver(driver, settings)
    consumed = Attributes(driver, part(item.get("consumedCapacity"))).get("memory")
    if is_gpu is None:
        note("unknown_driver", driver)
    return (
        text(item.get("request")) or "",
        driver,
        needed(item.get("pool"), "malformed"),
        needed(item.get("device"), "malformed"),
        item.get("adminAccess") is True,
        is_gpu,
        text(item.get("shareID")),
        None if consumed is None else mib(consumed),
    )


def _node_of(allocation: dict[str, Any]) -> str | None:
    """The node that the allocation is bound to, if it is one by name."""
    terms = parts(part(allocation.get("nodeSelector")).get("nodeSelectorTerms"))
    names = {
        str(value)
        for term in terms
        for match in parts(term.get("matchFields"))
        if match.get("key") == "metadata.name" and match.get("operator") == "In"
        for value in match.get("values") or []
    }
    return names.pop() if len(names) == 1 else None


def claim_row(version: Version, settings: Settings, note: Note) -> Row:
    """A version of a ResourceClaim as a row of raw.claim_versions."""
    meta, identity = _identity(version, is_namespaced=True)
    spec, status = part(version.object.get("spec")), part(version.object.get("status"))
    allocation = part(status.get("allocation"))
    owners = [o for o in parts(meta.get("ownerReferences")) if o.get("kind") == "Pod"]
    asked = [
        _asked(each, settings, note) for each in parts(part(spec.get("devices")).get("requests"))
    ]
    return {
        **version.columns(settings),
        **identity,
        "claim_uid": meta["uid"],
        "namespace_name": meta["namespace"],
        "claim_name": meta["name"],
        "owner_pod_uid": text(owners[0].get("uid")) if owners else None,
        "is_extended_resource": EXTENDED in words(meta.get("annotations")),
        "requests": tuple(each for each in asked if each is not None),
        "devices": tuple(
            _result(each, settings, note)
            for each in parts(part(allocation.get("devices")).get("results"))
        ),
        "allocated_at": micros(allocation.get("allocationTimestamp")),
        "node_name": _node_of(allocation),
        "reserved_for": tuple(
            (
                needed(each.get("resource"), "malformed"),
                needed(each.get("name"), "no_name"),
                text(each.get("uid")),
            )
            for each in parts(status.get("reservedFor"))
        ),
    }


def claims_of(spec: dict[str, Any], status: dict[str, Any]) -> tuple[tuple[str, str | None], ...]:
    """A pod's claims, each with the extended resource that it stands for, if any."""
    made = {
        each.get("name"): text(each.get("resourceClaimName"))
        for each in parts(status.get("resourceClaimStatuses"))
    }
    found: set[tuple[str, str | None]] = set()
    for each in parts(spec.get("resourceClaims")):
        source = part(each.get("source")) or each  # before v1.31
        name = text(source.get("resourceClaimName")) or made.get(each.get("name"))
        if name:
            found.add((name, None))
    extended = part(status.get("extendedResourceClaimStatus"))
    if name := text(extended.get("resourceClaimName")):
        mapped = {text(m.get("resourceName")) for m in parts(extended.get("requestMappings"))}
        found |= {(name, resource) for resource in mapped or {None}}
    return tuple(sorted(found, key=lambda each: (each[0], each[1] or "")))


def claimants(spec: dict[str, Any]) -> frozenset[str]:
    """The lasting containers that name a claim."""
    lasting = [
        *parts(spec.get("containers")),
        *(c for c in parts(spec.get("initContainers")) if is_sidecar(c)),
    ]
    return frozenset(
        container.get("name", "")
        for container in lasting
        if parts(part(container.get("resources")).get("claims"))
    )
