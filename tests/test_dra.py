"""Single versions of ResourceClaims and ResourceSlices, and what a pod says of its claims."""

from dataclasses import replace

import pytest

from collectors.source import Unusable
from tests.dra_objects import DRIVER, claim, gpu, mig, result, slice_of
from tests.kube_objects import SETTINGS, at, container, parsed, pod, running

VERSIONS = ("v1beta1", "v1beta2", "v1")


def asked(item, settings=SETTINGS, notes=None):
    rows = parsed("ResourceClaim", item, settings, notes=notes)["requests"]
    return [tuple(each.values()) for each in rows]


def devices(item, settings=SETTINGS, notes=None):
    return parsed("ResourceSlice", item, settings, notes=notes)["devices"]


def exactly(**told):
    return [{"name": "gpu", "exactly": {"deviceClassName": DRIVER, **told}}]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_claim_is_read_alike_in_every_version(version):
    item = claim(results=[result(), result("gpu-1")], pods=("p-1",), owner="p-1", version=version)
    row = parsed("ResourceClaim", item)
    assert row["requests"] == [
        {"request_name": "gpu", "class_name": DRIVER, "is_gpu": True, "device_count": 1,
         "share_micro_gpu": None}
    ]  # fmt: skip
    assert [(d["pool_name"], d["device_name"]) for d in row["devices"]] == [
        ("gpu-1", "gpu-0"), ("gpu-1", "gpu-1"),
    ]  # fmt: skip
    assert {(d["is_admin"], d["is_gpu"], d["share_id"]) for d in row["devices"]} == {
        (False, True, None)
    }
    assert (row["owner_pod_uid"], row["node_name"], row["allocated_at"]) == ("p-1", "gpu-1", at(4))
    assert [(r["kind_name"], r["object_uid"]) for r in row["reserved_for"]] == [("pods", "p-1")]
    assert not row["is_extended_resource"]


def test_a_claim_without_allocation_has_no_devices():
    row = parsed("ResourceClaim", claim())
    assert (row["devices"], row["reserved_for"], row["allocated_at"]) == ([], [], None)


def test_a_claim_shared_by_pods_names_them_all():
    row = parsed("ResourceClaim", claim(results=[result()], pods=("a", "b")))
    assert [r["object_uid"] for r in row["reserved_for"]] == ["a", "b"]


def test_other_consumers_than_pods_are_told_apart():
    item = claim(results=[result()])
    group = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "g-1"}
    item["status"]["reservedFor"] = [group]
    [row] = parsed("ResourceClaim", item)["reserved_for"]
    assert row == {"kind_name": "podgroups", "object_name": "g", "object_uid": "g-1"}


def test_admin_access_is_marked_where_given_and_asks_for_nothing():
    item = claim(exactly(adminAccess=True), results=[result(adminAccess=True)])
    row = parsed("ResourceClaim", item)
    assert (row["requests"], [d["is_admin"] for d in row["devices"]]) == ([], [True])


def test_of_alternatives_the_first_that_is_gpus_is_asked_for():
    first = [
        {"name": "links", "deviceClassName": "dra.net"},
        {"name": "two", "deviceClassName": DRIVER, "count": 2},
        {"name": "one", "deviceClassName": DRIVER},
    ]
    assert asked(claim([{"name": "main", "firstAvailable": first}])) == [
        ("main/two", DRIVER, True, 2, None)
    ]
    row = parsed("ResourceClaim", claim(results=[result(request="main/two")]))
    assert row["devices"][0]["request_name"] == "main/two"


def test_a_count_that_is_not_told_is_one_and_all_are_one_until_they_are_known():
    assert [each[3] for each in asked(claim(exactly()))] == [1]
    assert [each[3] for each in asked(claim(exactly(allocationMode="All")))] == [1]


def test_a_mig_request_asks_for_the_part_that_its_selector_names():
    cel = "device.attributes['gpu.nvidia.com'].profile == '3g.40gb'"
    request = exactly(deviceClassName="mig.nvidia.com", selectors=[{"cel": {"expression": cel}}])
    assert asked(claim(request)) == [("gpu", "mig.nvidia.com", True, 1, 428571)]


def test_a_class_that_is_not_known_is_noted_and_no_gpu_until_the_configuration_says_so():
    item, notes = claim(exactly(deviceClassName="fast")), []
    assert [each[2] for each in asked(item, notes=notes)] == [None]
    assert notes == [("unknown_device_class", "fast")]
    told = replace(SETTINGS, accelerators={"deviceclass.resource.kubernetes.io/fast": "h100-80gb"})
    assert [each[2] for each in asked(item, told, notes)] == [True]
    assert len(notes) == 1


def test_channels_are_no_gpus_and_no_news():
    item, notes = claim(exactly(deviceClassName="compute-domain-channel.nvidia.com")), []
    assert [each[2] for each in asked(item, notes=notes)] == [False]
    channel = {"name": "channel-0", "attributes": {"type": {"string": "channel"}}}
    [device] = devices(slice_of([channel], driver="compute-domain.nvidia.com"), notes=notes)
    assert (device["is_gpu"], notes) == (False, [])


def test_a_part_of_a_device_tells_what_it_takes():
    item = claim(results=[result(shareID="s-1", consumedCapacity={"memory": "20Gi"})])
    [device] = parsed("ResourceClaim", item)["devices"]
    assert (device["share_id"], device["consumed_mib"]) == ("s-1", 20480)


def test_a_claim_for_an_extended_resource_is_known_by_its_annotation():
    item = claim(annotations={"resource.kubernetes.io/extended-resource-claim": "true"})
    assert parsed("ResourceClaim", item)["is_extended_resource"]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_slice_is_read_alike_in_every_version(version):
    row = parsed("ResourceSlice", slice_of([gpu()], generation=3, count=2, version=version))
    assert (row["driver_name"], row["pool_name"], row["node_name"]) == (DRIVER, "gpu-1", "gpu-1")
    assert (row["generation_number"], row["slice_count"]) == (3, 2)
    assert row["devices"] == [
        {"device_name": "gpu-0", "is_gpu": True, "type_name": "gpu", "gpu_uuid": "GPU-0",
         "device_uuid": "GPU-0", "gpu_model_name": "h100-80gb", "profile_name": None,
         "memory_mib": 81559, "share_micro_gpu": 1_000_000, "node_name": None, "is_tainted": False}
    ]  # fmt: skip


def test_a_slice_knows_its_node_by_uid_where_that_owns_it():
    item = slice_of([gpu()])
    item["metadata"]["ownerReferences"] = [{"kind": "Node", "name": "gpu-1", "uid": "n-1"}]
    assert parsed("ResourceSlice", item)["node_uid"] == "n-1"


def test_a_mig_device_is_a_part_of_its_parent():
    rows = devices(slice_of([mig("a", "1g.10gb", uuid="MIG-a"), mig("b", "3g.40gb")]))
    assert [(d["gpu_uuid"], d["device_uuid"], d["share_micro_gpu"]) for d in rows] == [
        ("GPU-0", "MIG-a", 142857),  # 1/7 of the compute, 1/8 of the memory
        ("GPU-0", None, 500000),  # 3/7 of the compute, 4/8 of the memory
    ]


def test_an_unknown_profile_is_noted():
    notes = []
    [device] = devices(slice_of([mig("a", "2g.99gb")]), notes=notes)
    assert (device["share_micro_gpu"], notes) == (
        285714,
        [("unknown_mig_profile", "2g.99gb of h100-80gb")],
    )


def test_a_virtual_gpu_is_a_device_of_its_own_model():
    [device] = devices(slice_of([gpu(product="GRID A100-10C")]))
    assert (device["share_micro_gpu"], device["gpu_model_name"]) == (1_000_000, "grid-a100-10c")


def test_what_shares_a_set_of_counters_leaves_its_part_to_them():
    shared = [{"name": "set", "counters": {"memory": {"value": "40Gi"}}}]
    takes = [{"counterSet": "set", "counters": {"memory": {"value": "10Gi"}}}]
    row = parsed("ResourceSlice", slice_of([], sharedCounters=shared))
    assert [tuple(c.values()) for c in row["counters"]] == [
        ("", "set", "memory", 40 * 2**30 * 1000)
    ]
    for version in VERSIONS:
        item = slice_of([gpu(consumesCounters=takes)], version=version)
        row = parsed("ResourceSlice", item)
        assert row["devices"][0]["share_micro_gpu"] is None
        assert [tuple(c.values()) for c in row["counters"]] == [
            ("gpu-0", "set", "memory", 10 * 2**30 * 1000)
        ]


def test_a_capacity_of_the_first_versions_has_no_value_inside():
    [device] = devices(slice_of([gpu(capacity={"memory": "40Gi"})], version="v1beta1"))
    assert device["memory_mib"] == 40960


def test_names_of_the_drivers_own_domain_are_the_same():
    item = gpu()
    item["attributes"] = {f"{DRIVER}/{k}": v for k, v in item["attributes"].items()}
    assert devices(slice_of([item])) == devices(slice_of([gpu()]))


def test_a_network_interface_is_no_gpu_and_is_noted():
    notes, link = [], {"name": "eth1", "attributes": {"ifName": {"string": "eth1"}}}
    [device] = devices(slice_of([link], driver="nic.example.com"), notes=notes)
    assert (device["is_gpu"], device["share_micro_gpu"]) == (False, 0)
    assert notes == [("unknown_driver", "nic.example.com")]


@pytest.mark.parametrize(
    "attributes",
    [
        {"type": {"string": "gpu"}},
        {"uuid": {"string": "gpu-18db0e85-99e9-c746-8531-ffeb86328b39"}},
        {"productName": {"string": "NVIDIA A100-SXM4-80GB"}},
    ],
)
def test_another_drivers_gpu_is_known_by_what_it_tells(attributes):
    notes, item = [], {"name": "g", "attributes": attributes}
    [device] = devices(slice_of([item], driver="x.example.com"), notes=notes)
    assert (device["is_gpu"], device["share_micro_gpu"], notes) == (True, 1_000_000, [])


def test_the_configuration_may_name_a_driver_and_its_model():
    told = replace(SETTINGS, accelerators={"x.example.com": "mi300x"})
    [device] = devices(slice_of([{"name": "a"}], driver="x.example.com"), told)
    assert (device["is_gpu"], device["gpu_model_name"]) == (True, "mi300x")


def test_a_taint_that_keeps_pods_away_is_told():
    taints = [[{"key": "x", "effect": effect}] for effect in ("None", "NoSchedule", "NoExecute")]
    rows = devices(slice_of([gpu(taints=each) for each in taints]))
    assert [device["is_tainted"] for device in rows] == [False, True, True]


@pytest.mark.parametrize(
    ("kind", "item", "reason"),
    [
        ("ResourceClaim", claim(uid=None), "no_uid"),
        ("ResourceClaim", claim(creationTimestamp=None), "no_creation"),
        ("ResourceClaim", claim(results=[{"request": "gpu"}]), "malformed"),
        ("ResourceClaim", claim(["gpu"]), "malformed"),
        ("ResourceSlice", slice_of([gpu()], pool={}), "malformed"),
        ("ResourceSlice", slice_of([gpu()], driver=""), "malformed"),
        ("ResourceSlice", slice_of([gpu(capacity={"memory": {"value": "many"}})]), "bad_quantity"),
        ("ResourceSlice", slice_of([gpu(attributes=7)]), "malformed"),
    ],
)
def test_what_cannot_be_used_says_why(kind, item, reason):
    with pytest.raises(Unusable) as raised:
        parsed(kind, item)
    assert raised.value.reason == reason


def claims(item):
    return [tuple(each.values()) for each in parsed("Pod", item)["claims"]]


def test_a_pod_names_its_claims_by_itself_or_by_what_was_made_for_it():
    spec = {
        "resourceClaims": [
            {"name": "own", "resourceClaimTemplateName": "t"},
            {"name": "shared", "resourceClaimName": "team-gpu"},
            {"name": "none", "resourceClaimTemplateName": "t"},
            {"name": "old", "source": {"resourceClaimName": "older"}},
        ]
    }
    made = [{"name": "own", "resourceClaimName": "pod-1-own-x7k"}, {"name": "none"}]
    item = pod(spec=spec, status={"resourceClaimStatuses": made})
    assert claims(item) == [("older", None), ("pod-1-own-x7k", None), ("team-gpu", None)]


def test_a_claim_for_an_extended_resource_names_what_it_stands_for():
    mapping = {"containerName": "main", "resourceName": "nvidia.com/gpu", "requestName": "c-0-r-0"}
    told = {"resourceClaimName": "pod-1-extended", "requestMappings": [mapping, mapping]}
    item = pod(status={"extendedResourceClaimStatus": told})
    assert claims(item) == [("pod-1-extended", "nvidia.com/gpu")]
    told["requestMappings"] = []
    assert claims(item) == [("pod-1-extended", None)]


def test_a_device_class_as_an_extended_resource_is_a_gpu_before_it_has_a_claim():
    resource = "deviceclass.resource.kubernetes.io/gpu.nvidia.com"
    row = parsed("Pod", pod([container("main", 2, resource)]))
    assert row["requests"] == [{"resource_name": resource, "request_count": 2}]


def test_containers_that_name_a_claim_are_those_that_ask_for_the_gpu():
    main = {"name": "main", "resources": {"claims": [{"name": "gpu"}]}}
    statuses = [running("main", 9), {"name": "log", "state": {"waiting": {"reason": "x"}}}]
    item = pod([main, container("log")], node="gpu-1", status={"containerStatuses": statuses})
    assert parsed("Pod", item)["running_since_at"] == at(9)
