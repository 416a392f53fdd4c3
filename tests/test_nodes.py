"""What one version of a node says: its GPUs, what a unit of each resource is, its health."""

import pytest

from tests.kube_objects import node, parsed


def gpus(row):
    return row["gpu_count"], row["allocatable_micro_gpu"]


def units(row):
    return {r["resource_name"]: r["share_micro_gpu"] for r in row["resources"]}


def test_whole_gpus_are_what_the_label_says_and_a_lost_one_is_not_allocatable():
    row = parsed("Node", node({"nvidia.com/gpu.count": "8"}, None, {"nvidia.com/gpu": "7"}))
    assert gpus(row) == (8, 7_000_000)
    assert (row["gpu_model_name"], row["count_source_name"]) == ("a100-80gb", "label")
    assert (row["cpu_milli_count"], row["memory_mib"]) == (96_000, 1_048_576)


def test_a_stopped_device_plugin_leaves_nothing_allocatable_and_no_unit():
    row = parsed("Node", node({"nvidia.com/gpu.count": "8"}, {"nvidia.com/gpu": "0"}))
    assert gpus(row) == (8, 0)
    assert units(row) == {"nvidia.com/gpu": 0}
    assert (row["is_ready"], row["is_ever_ready"]) == (True, False)


@pytest.mark.parametrize("resource", ["nvidia.com/gpu", "nvidia.com/gpu.shared"])
def test_replicas_are_parts_of_a_gpu(resource):
    labels = {"nvidia.com/gpu.replicas": "3", "nvidia.com/gpu.sharing-strategy": "mps"}
    row = parsed("Node", node(labels, {resource: "6"}, {resource: "5"}))
    assert gpus(row) == (2, 1_666_666)
    assert units(row) == {resource: 333_333}


def test_without_a_sharing_strategy_the_replicas_label_says_nothing():
    row = parsed("Node", node({"nvidia.com/gpu.replicas": "3"}, {"nvidia.com/gpu": "6"}))
    assert units(row) == {"nvidia.com/gpu": 1_000_000}


def test_mixed_mig_counts_physical_gpus_and_scales_shares_that_exceed_them():
    mig = {"nvidia.com/gpu": "1", "nvidia.com/mig-3g.40gb": "1", "nvidia.com/mig-4g.40gb": "1"}
    row = parsed(
        "Node", node({"nvidia.com/gpu.count": "2", "nvidia.com/mig.strategy": "mixed"}, mig)
    )
    # 3g is 1/2, 4g is 4/7: together 15/14 of the one GPU that they are cut from
    assert gpus(row) == (2, 2_000_000)
    assert units(row) == {
        "nvidia.com/gpu": 1_000_000,
        "nvidia.com/mig-3g.40gb": 466_666,
        "nvidia.com/mig-4g.40gb": 533_333,
    }
    assert row["share_scale_ratio"] == pytest.approx(14 / 15)


def test_mig_counted_from_capacity_alone_is_as_many_gpus_as_the_slices_need():
    row = parsed("Node", node({}, {"nvidia.com/mig-3g.40gb": "1", "nvidia.com/mig-4g.40gb": "1"}))
    assert (row["gpu_count"], row["count_source_name"]) == (1, "capacity")


def test_a_compute_instance_is_its_part_of_its_gpu_instance():
    mig = {"nvidia.com/mig-1c.3g.40gb": "3", "nvidia.com/mig-3g.40gb": "1"}
    row = parsed("Node", node({"nvidia.com/gpu.count": "1"}, mig))
    assert units(row) == {
        "nvidia.com/mig-1c.3g.40gb": 166_666,  # a third of 4/8
        "nvidia.com/mig-3g.40gb": 500_000,
    }


def test_a_missing_mig_device_takes_its_share_from_what_can_be_allocated():
    mig = {"nvidia.com/gpu": "0", "nvidia.com/mig-1g.10gb": "7"}
    row = parsed(
        "Node", node({"nvidia.com/gpu.count": "1"}, mig, mig | {"nvidia.com/mig-1g.10gb": "5"})
    )
    assert gpus(row) == (1, 1_000_000 - 2 * 142_857)


def test_strategy_single_counts_devices_as_gpus_and_is_put_right():
    labels = {
        "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb",
        "nvidia.com/gpu.count": "14",
    }
    row = parsed("Node", node(labels, {"nvidia.com/gpu": "14"}))
    assert gpus(row) == (2, 2_000_000)
    assert units(row) == {"nvidia.com/gpu": 142_857}
    assert row["gpu_model_name"] == "a100-80gb"


def test_an_unknown_profile_is_noted_and_takes_its_compute_slices():
    notes = []
    row = parsed("Node", node({}, {"nvidia.com/mig-2g.99gb": "1"}), notes=notes)
    assert units(row) == {"nvidia.com/mig-2g.99gb": 285_714}
    assert notes[0] == ("unknown_mig_profile", "2g.99gb of a100-80gb")


@pytest.mark.parametrize(
    "register",
    [
        "GPU-a,10,81920,100,NVIDIA-A100,0,true:GPU-b,10,81920,100,NVIDIA-A100,0,true:",
        '[{"id":"GPU-a","devmem":81920,"devcore":100},{"id":"GPU-b","devmem":81920}]',
    ],
)
def test_a_hami_node_has_as_many_gpus_as_cards_registered(register):
    capacity, free = {"nvidia.com/gpu": "20"}, {"nvidia.com/gpu": "10"}
    row = parsed("Node", node({}, capacity, free, {"hami.io/node-nvidia-register": register}))
    assert gpus(row) == (2, 1_000_000)
    assert [d["device_uuid"] for d in row["devices"]] == ["GPU-a", "GPU-b"]
    assert {d["memory_mib"] for d in row["devices"]} == {81920}


def test_a_listed_resource_gives_a_node_its_model():
    item = node({"nvidia.com/gpu.product": ""}, {"example.com/npu": "4"})
    row = parsed("Node", item)
    assert (row["gpu_model_name"], *gpus(row)) == ("example-npu", 4, 4_000_000)


def test_a_node_without_gpus_has_none_and_no_model():
    row = parsed("Node", node({"nvidia.com/gpu.product": ""}, {}))
    assert (row["gpu_model_name"], *gpus(row)) == ("__unknown__", 0, 0)


@pytest.mark.parametrize(
    ("labels", "maintenance"),
    [
        ({"nvidia.com/gpu-driver-upgrade-state": "upgrade-done"}, None),
        ({"nvidia.com/gpu-driver-upgrade-state": ""}, None),
        ({"nvidia.com/gpu-driver-upgrade-state": "cordon-required"}, "driver_upgrade"),
        ({"nvidia.com/mig.config.state": "pending"}, "mig_reconfigure"),
        ({"nvidia.com/mig.config.state": "success"}, None),
    ],
)
def test_maintenance_is_what_the_labels_say(labels, maintenance):
    assert parsed("Node", node(labels))["maintenance_name"] == maintenance


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        ({}, "unknown"),
        ({"karpenter.sh/capacity-type": "spot"}, "spot"),
        ({"eks.amazonaws.com/capacityType": "ON_DEMAND"}, "on-demand"),
        ({"cloud.google.com/gke-spot": "true"}, "spot"),
        ({"karpenter.sh/capacity-type": "mystery"}, "unknown"),
    ],
)
def test_capacity_types_have_one_spelling(labels, kind):
    assert parsed("Node", node(labels))["capacity_type_name"] == kind


def test_a_cordon_is_told_and_a_node_is_not_ready_unless_it_says_so():
    item = node(unschedulable=True)
    assert parsed("Node", item)["is_cordoned"]
    item["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    assert not parsed("Node", item)["is_ready"]
