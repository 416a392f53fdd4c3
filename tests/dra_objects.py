"""ResourceClaims and ResourceSlices for tests, small but whole, in each API version's shape."""

from typing import Any

from tests.kube_objects import stamp

DRIVER = "gpu.nvidia.com"
Item = dict[str, Any]


def claim(
    requests: Any = None,
    results: list[Item] | None = None,
    pods: tuple[str, ...] = (),
    name: str = "claim-1",
    owner: str | None = None,
    version: str = "v1",
    **meta: Any,
) -> Item:
    """A claim of one GPU unless told otherwise; allocated where there are results."""
    exact = {"deviceClassName": DRIVER, "allocationMode": "ExactCount", "count": 1}
    flat = version == "v1beta1"
    if requests is None:
        requests = [{"name": "gpu", **(exact if flat else {"exactly": exact})}]
    status: Item = {}
    if results is not None:
        status["allocation"] = {
            "devices": {"results": results},
            "allocationTimestamp": stamp(4),
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [
                {"key": "metadata.name", "operator": "In", "values": ["gpu-1"]}]}]},
        }  # fmt: skip
    if pods:
        status["reservedFor"] = [{"resource": "pods", "name": p, "uid": p} for p in pods]
    owners = [{"apiVersion": "v1", "kind": "Pod", "name": owner, "uid": owner, "controller": True}]
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceClaim",
        "metadata": {
            "uid": f"uid-{name}",
            "name": name,
            "namespace": "ml",
            "creationTimestamp": stamp(2),
            "ownerReferences": owners if owner else [],
            **meta,
        },
        "spec": {"devices": {"requests": requests}},
        "status": status,
    }


def result(device: str = "gpu-0", **more: Any) -> Item:
    """An allocated device."""
    return {"request": "gpu", "driver": DRIVER, "pool": "gpu-1", "device": device, **more}


def gpu(
    name: str = "gpu-0", uuid: str = "GPU-0", product: str = "NVIDIA H100 80GB HBM3", **more: Any
) -> Item:
    """A whole GPU, as NVIDIA's driver tells it."""
    return {
        "name": name,
        "attributes": {
            "type": {"string": "gpu"},
            "uuid": {"string": uuid},
            "productName": {"string": product},
            "driverVersion": {"version": "580.126.9"},
            "resource.kubernetes.io/pciBusID": {"string": "0000:03:00.0"},
        },
        "capacity": {"memory": {"value": "81559Mi"}},
        **more,
    }


def mig(name: str, profile: str, parent: str = "GPU-0", uuid: str | None = None) -> Item:
    """A MIG device; one that is not made yet has no UUID of its own."""
    told = {
        "type": {"string": "mig"},
        "profile": {"string": profile},
        "parentUUID": {"string": parent},
        "productName": {"string": "NVIDIA H100 80GB HBM3"},
    }
    return {"name": name, "attributes": told | ({"uuid": {"string": uuid}} if uuid else {})}


def slice_of(
    devices: list[Item],
    driver: str = DRIVER,
    generation: int = 1,
    count: int = 1,
    version: str = "v1",
    name: str = "slice-1",
    **spec: Any,
) -> Item:
    """A slice of the pool of node gpu-1."""
    if version == "v1beta1":
        devices = [
            {"name": d["name"], "basic": {key: value for key, value in d.items() if key != "name"}}
            for d in devices
        ]
    pool = {"name": "gpu-1", "generation": generation, "resourceSliceCount": count}
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceSlice",
        "metadata": {"uid": f"uid-{name}", "name": name, "creationTimestamp": stamp(0)},
        "spec": {
            "driver": driver,
            "pool": pool,
            "nodeName": "gpu-1",
            "devices": devices,
            **spec,
        },
    }
