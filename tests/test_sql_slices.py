"""What ResourceSlices say is installed on a node, and when it can be scheduled."""

from tests.dra_case import DraCase, gpu, mig
from tests.sql_case import HOUR

FREE = ("__unallocated__", "unallocated", "no_demand")


def off(cause):
    return ("__unavailable__", "unavailable", cause)


def test_a_node_that_has_slices_alone_has_their_gpus_installed_and_free():
    case = DraCase()
    case.bare_node()
    case.slice([gpu(0), gpu(1)])
    assert case.installed() == (2, "resource_slices")
    assert case.ledger() == {FREE: (2 * HOUR, None)}
    assert case.broken() == []


def test_a_node_that_tells_its_gpus_twice_has_them_once():
    case = DraCase()
    case.node("n", 2, count_source_name="capacity")
    case.slice([gpu(0), gpu(1)])
    assert case.installed() == (2, "capacity")
    assert case.ledger() == {FREE: (2 * HOUR, None)}


def test_more_than_the_slices_tell_is_missing_where_the_label_says_it():
    case = DraCase()
    case.bare_node(gpu_count=3, largest_gpu_count=3, count_source_name="label")
    case.slice([gpu(0), gpu(1)])
    assert case.installed() == (3, "label")
    assert case.ledger() == {FREE: (2 * HOUR, None), off("missing_from_allocatable"): (HOUR, None)}


def test_partitions_are_of_their_gpus_and_other_devices_are_none():
    case = DraCase()
    case.bare_node()
    parts = [mig(f"m{n}", "1g.10gb", 142_857, parent=n % 2) for n in range(4)]
    case.slice([gpu(0), *parts, gpu(9, is_gpu=False)])
    assert case.installed() == (2, "resource_slices")


def test_a_pool_that_is_not_complete_does_not_count():
    case = DraCase()
    case.bare_node()
    case.slice([gpu(0)], slice_count=2)
    assert case.installed()[0] == 0
    case.slice([gpu(1)], slice_count=2, slice_uid="s2")
    assert case.installed()[0] == 2


def test_only_the_newest_generation_of_a_pool_counts():
    case = DraCase()
    case.bare_node()
    case.slice([gpu(0), gpu(1), gpu(2)], change_name="LISTED", slice_uid="left")
    case.slice([gpu(0), gpu(1)], generation_number=2)
    assert case.installed()[0] == 2


def test_a_new_generation_counts_once_it_is_complete_and_the_largest_is_installed():
    case = DraCase()
    case.bare_node()
    case.slice([gpu(0), gpu(1)], slice_count=2)
    case.slice([gpu(2)], slice_count=2, slice_uid="s2")
    case.slice([gpu(0)], seen=600, slice_count=2, generation_number=2)
    case.slice([gpu(2)], seen=900, slice_count=2, generation_number=2, slice_uid="s2")
    found = case.ask("select gpu_count from core.slice_spells order by begin_at")
    assert found == [(3,), (0,), (2,)]
    assert case.installed() == (3, "resource_slices")
    assert case.ledger() == {
        FREE: (3 * 600 + 2 * 2700, None),
        off("missing_from_allocatable"): (3 * 300 + 2700, None),
    }
    assert case.broken() == []


def test_slices_that_are_taken_away_leave_their_gpus_missing():
    case = DraCase()
    case.bare_node()
    case.slice([gpu(0)])
    case.slice([gpu(0)], seen=1200, change_name="DELETED")
    assert case.ledger() == {
        FREE: (1200, None),
        off("missing_from_allocatable"): (2400, None),
    }


def test_before_its_slices_are_there_a_node_is_being_provisioned():
    case = DraCase()
    case.bare_node()
    case.slice([gpu(0)], seen=600, change_name="ADDED")
    assert case.ledger() == {off("provisioning"): (600, None), FREE: (3000, None)}


def test_what_a_node_says_later_goes_with_its_slices():
    case = DraCase()
    case.bare_node()
    case.slice([gpu(0)])
    case.bare_node(seen=600, is_cordoned=True)
    case.bare_node(seen=1800, is_ready=False)
    assert case.ledger() == {
        FREE: (600, None), off("cordoned"): (1200, None), off("node_not_ready"): (1800, None),
    }  # fmt: skip


def test_a_tainted_device_cannot_be_scheduled():
    case = DraCase()
    case.bare_node()
    case.slice([gpu(0), gpu(1)])
    case.slice([gpu(0), gpu(1, is_tainted=True)], seen=1200)
    assert case.ledger()[off("missing_from_allocatable")] == (2400, None)


def test_two_pools_of_a_node_add_up():
    case = DraCase()
    case.bare_node()
    case.slice([gpu(0)])
    case.slice([gpu(1)], seen=600, slice_uid="s2", pool_name="more")
    found = case.ask("select gpu_count, schedulable_count from core.slice_spells order by begin_at")
    assert found == [(1, 1), (2, 2)]


def test_a_slice_belongs_to_the_node_of_its_name_that_was_there():
    case = DraCase(2 * HOUR)
    case.bare_node("old", node_name="n", created_at=0)
    case.slice([gpu(0)])
    case.bare_node("old", seen=1000, node_name="n", created_at=0, change_name="DELETED")
    case.bare_node("new", seen=2000, node_name="n", created_at=2000)
    case.slice([gpu(0)], seen=1000, change_name="DELETED")
    case.slice([gpu(0), gpu(1)], seen=2100, slice_uid="s2", change_name="ADDED")
    found = case.ask("select node_uid, installed_count from core.nodes order by 1")
    assert found == [("new", 2), ("old", 1)]
    assert case.broken() == []


def test_a_device_may_name_its_node_itself():
    case = DraCase()
    case.bare_node()
    case.bare_node("m")
    case.slice([gpu(0, node_name="m"), gpu(1, node_name="n")], node_name=None)
    found = case.ask("select node_uid, installed_count from core.nodes order by 1")
    assert found == [("m", 1), ("n", 1)]


def test_the_model_is_the_slices_where_the_node_tells_none():
    case = DraCase()
    case.bare_node(gpu_model_name="__unknown__")
    case.slice([gpu(0, gpu_model_name="h100-80gb")])
    assert case.ask("select gpu_model_name from core.nodes") == [("h100-80gb",)]
