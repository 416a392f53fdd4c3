"""Holds by resource claims: which device, what part of it, whose, and from when to when."""

from tests.dra_case import DraCase, asks, given, gpu, mig
from tests.sql_case import GPU, HOUR, Row


def one_gpu(count: int = 1) -> DraCase:
    case = DraCase()
    case.bare_node()
    case.slice([gpu(number) for number in range(count)])
    return case


def test_a_claims_devices_are_held_one_by_one_from_bind_to_the_pods_end():
    case = one_gpu(4)
    case.claim(590, [given("gpu-1"), given("gpu-3")], "a")
    case.claiming("a", 600)
    case.claiming("a", 600, phase_name="Succeeded", finished_at=1800, seen=1801)
    assert case.held() == [
        ("a", "GPU-1", 1_000_000, 600, 1800),
        ("a", "GPU-3", 1_000_000, 600, 1800),
    ]
    free = [time for (_, state, _), (time, _) in case.ledger().items() if state == "unallocated"]
    assert sum(free) == 4 * HOUR - 2 * 1200
    assert case.asked() == {"a": 2_000_000}
    assert case.broken() == []


def test_a_shared_claim_counts_once_split_evenly_while_both_have_it():
    case = one_gpu()
    case.claim(0, [given()], "a")
    case.claim(600, [given()], "ab")
    case.claiming("a", 0)
    case.claiming("b", 600)
    case.claiming("b", 600, phase_name="Failed", finished_at=1800, seen=1800)
    assert case.held() == [
        ("a", "GPU-0", 1_000_000, 0, 600),
        ("a", "GPU-0", 500_000, 600, 1800),
        ("a", "GPU-0", 1_000_000, 1800, 3600),
        ("b", "GPU-0", 500_000, 600, 1800),
    ]
    assert case.booked() == {"a": 600 + 600 + 1800, "b": 600}
    assert case.asked() == {"a": 500_000, "b": 500_000}
    assert case.broken() == []


def test_who_is_reserved_but_has_ended_takes_no_part():
    case = one_gpu()
    case.claim(0, [given()], "ab")
    case.claiming("a", 0)
    case.claiming("b", 0)
    case.claiming("b", 0, phase_name="Succeeded", finished_at=900, seen=900)
    assert case.booked() == {"a": 450 + 2700, "b": 450}


def test_what_a_split_leaves_over_is_nobodys():
    case = one_gpu()
    case.claim(0, [given()], "abd")
    for name in "abd":
        case.claiming(name, 0)
    assert {row[2] for row in case.held()} == {333_333}
    assert case.ledger()["__unallocated__", "unallocated", "partition_remainder"][0] == 0.0036
    assert case.broken() == []


def test_a_shared_devices_work_is_nobodys_unless_it_is_idle():
    case = one_gpu()
    case.claim(0, [given()], "ab")
    case.claiming("a", 0)
    case.claiming("b", 0)
    case.read("GPU-0", 0, HOUR)
    assert case.states("a") == [("unobserved", "no_series", 0, HOUR)]


def test_a_whole_device_of_a_claim_is_measured():
    case = one_gpu(2)
    case.claim(0, [given("gpu-1")], "a")
    case.claiming("a", 0)
    case.read("GPU-1", 0, HOUR)
    assert case.states("a") == [("active", "none", 0, HOUR)]


def test_to_look_on_holds_nothing():
    case = one_gpu()
    case.claim(0, [given(is_admin=True)], "a", requests=[])
    case.claiming("a", 0)
    assert (case.held(), case.asked()) == ([], {"a": 0})


def test_a_mig_device_is_the_part_that_its_profile_is():
    case = DraCase()
    case.bare_node()
    case.slice([gpu(), mig("m1", "1g.10gb", 142_857), mig("m2", "3g.40gb", 500_000)])
    case.claim(0, [given("m1")], "a")
    case.claim(0, [given("m2")], "bd", claim_uid="e", claim_name="e")
    case.claiming("a", 0)
    case.claiming("b", 0, "e")
    case.claiming("d", 0, "e")
    assert case.held() == [
        ("a", "GPU-0", 142_857, 0, HOUR),
        ("b", "GPU-0", 250_000, 0, HOUR),
        ("d", "GPU-0", 250_000, 0, HOUR),
    ]
    names = case.ask("select distinct resource_name from core.holds order by 1")
    assert names == [("gpu.nvidia.com/mig-1g.10gb",), ("gpu.nvidia.com/mig-3g.40gb",)]
    assert case.installed()[0] == 1
    assert case.broken() == []


def test_parts_that_add_up_to_more_than_their_gpu_are_scaled_down():
    case = DraCase()
    case.bare_node()
    case.slice([mig("m1", "4g.40gb", 571_428), mig("m2", "3g.40gb", 500_000)])
    case.claim(0, [given("m1")], "a")
    case.claim(0, [given("m2")], "b", claim_uid="e", claim_name="e")
    case.claiming("a", 0)
    case.claiming("b", 0, "e")
    shares = {row[0]: row[2] for row in case.held()}
    assert shares == {"a": 533_333, "b": 466_666}  # times 1,000,000 / 1,071,428, rounded down
    assert case.broken() == []


def test_mig_devices_of_one_gpu_lie_on_the_instances_that_name_the_pod():
    case = DraCase()
    case.bare_node()
    case.slice([mig("m1", "1g.10gb", 142_857), mig("m2", "1g.10gb", 142_857)])
    case.claim(0, [given("m1"), given("m2")], "a")
    case.claiming("a", 0)
    case.read("GPU-0", 0, HOUR, "a", instance=7)
    case.read("GPU-0", 0, HOUR, "a", instance=8)
    parts = case.ask("select gpu_uuid, instance_number, basis_name from core.hold_parts order by 2")
    assert parts == [("GPU-0", 7, "label"), ("GPU-0", 8, "label")]
    assert case.broken() == []


def test_a_part_of_a_devices_memory_is_that_part_of_it():
    case = one_gpu()
    case.claim(0, [given(consumed_mib=4000, share_id="1"), given(consumed_mib=2000)], "a")
    case.claiming("a", 0)
    assert case.held() == [("a", "GPU-0", 375_000, 0, HOUR)]
    assert case.asked() == {"a": 375_000}


def test_a_partition_is_what_it_takes_of_the_scarcest_counter():
    def counter(device, name, amount):
        return {"device_name": device, "set_name": "set", "counter_name": name,
                "counter_amount": amount}  # fmt: skip

    case = DraCase()
    case.bare_node()
    parts = [
        gpu(device_name="whole", gpu_uuid=None, share_micro_gpu=None),
        gpu(device_name="part", gpu_uuid=None, share_micro_gpu=None),
    ]
    takes = [
        counter("whole", "memory", 40), counter("whole", "cores", 8),
        counter("part", "memory", 10), counter("part", "cores", 4),
    ]  # fmt: skip
    has = [counter("", "memory", 40), counter("", "cores", 8)]
    case.slice(parts, counters=takes, slice_count=2)
    case.slice([], counters=has, slice_count=2, slice_uid="s2", node_name=None)
    case.claim(0, [given("part")], "a")
    case.claiming("a", 0)
    assert case.held() == [("a", "gpu.nvidia.com/n/set", 500_000, 0, HOUR)]
    assert case.installed()[0] == 1


def test_what_a_claim_stands_for_does_not_count_again():
    case = one_gpu(2)
    stands = [{"claim_name": "c", "resource_name": GPU}]
    case.claim(600, [given("gpu-1")], "a", requests=[asks()], owner_pod_uid="a")
    case.claiming("a", 600, claims="", requests=[{"resource_name": GPU, "request_count": 1}])
    case.rows["raw.pod_versions"][-1]["claims"] = stands
    assert case.held() == [("a", "GPU-1", 1_000_000, 600, HOUR)]
    assert case.asked() == {"a": 1_000_000}


def test_without_the_claim_itself_the_resource_counts():
    case = one_gpu()
    case.claiming("a", 600, claims="", requests=[{"resource_name": GPU, "request_count": 1}])
    case.rows["raw.pod_versions"][-1]["claims"] = [{"claim_name": "c", "resource_name": GPU}]
    assert case.held() == [("a", None, 1_000_000, 600, HOUR)]


def test_an_allocation_that_ends_ends_the_hold_while_the_pod_goes_on():
    case = one_gpu(2)
    case.claim(0, [given()], "a")
    case.claim(1200, [], "")
    case.claim(0, [given("gpu-1")], "a", claim_uid="e", claim_name="e")
    case.claim(1800, [given("gpu-1")], "a", claim_uid="e", claim_name="e", change_name="DELETED")
    case.claiming("a", 0, "ce")
    assert case.held() == [
        ("a", "GPU-0", 1_000_000, 0, 1200),
        ("a", "GPU-1", 1_000_000, 0, 1800),
    ]
    assert case.states("a") == [
        ("unobserved", "no_series", 0, 1200),
        ("unobserved", "no_series", 0, 1800),
    ]
    ends = case.ask("select is_begin, is_end from core.holds")
    assert ends == [(True, True), (True, True)]
    assert case.broken() == []


def test_what_is_reserved_for_nobody_is_held_by_nobody():
    case = one_gpu()
    case.claim(0, [given()], "")
    assert case.held() == []
    assert case.ledger() == {("__unallocated__", "unallocated", "no_demand"): (HOUR, None)}


def test_a_reservation_heard_of_late_was_there_at_the_bind():
    case = one_gpu()
    case.claim(599, [])
    case.claim(602, [given()], "a")
    case.claiming("a", 600)
    assert case.held() == [("a", "GPU-0", 1_000_000, 600, HOUR)]


def test_a_reservation_long_after_a_bind_by_hand_begins_when_it_is_seen():
    case = one_gpu()
    case.claim(599, [])
    case.claim(900, [given()], "a")
    case.claiming("a", 600)
    assert case.held() == [("a", "GPU-0", 1_000_000, 900, HOUR)]


def test_a_claim_first_seen_after_the_bind_was_there():
    case = one_gpu()
    case.claim(900, [given()], "a", change_name="LISTED")
    case.claiming("a", 600)
    assert case.held() == [("a", "GPU-0", 1_000_000, 600, HOUR)]


def test_a_claim_reserved_for_a_group_is_for_the_pods_that_name_it():
    case = one_gpu()
    group = [{"kind_name": "podgroups", "object_name": "g", "object_uid": "g"}]
    case.claim(0, [given()], reserved_for=group)
    case.claiming("a", 0)
    case.claiming("b", 0)
    case.claiming("d", 0, claims="e")
    assert case.booked() == {"a": HOUR / 2, "b": HOUR / 2}


def test_a_network_interface_is_no_hold_and_its_pod_no_gpu_pod():
    case = one_gpu()
    case.slice([gpu(device_name="eth1", is_gpu=False, share_micro_gpu=0)], slice_uid="s2",
               driver_name="nic.example.com")  # fmt: skip
    case.claim(0, [given("eth1", driver_name="nic.example.com", is_gpu=None)], "a",
               requests=[asks(class_name="nic", is_gpu=None)])  # fmt: skip
    case.claiming("a", 0)
    assert (case.held(), case.asked()) == ([], {"a": 0})


def test_a_known_drivers_device_counts_whole_where_no_slice_tells_of_it():
    case = DraCase()
    case.node("n", 1)
    case.claim(0, [given()], "a")
    case.claiming("a", 0)
    assert case.held() == [("a", "gpu.nvidia.com/n/gpu-0", 1_000_000, 0, HOUR)]
    assert case.booked() == {"a": HOUR}


def test_an_unknown_drivers_device_counts_where_its_slice_shows_a_gpu():
    case = one_gpu()
    unknown = given("x", driver_name="x.example.com", is_gpu=None)
    case.claim(0, [unknown], "a")
    case.claiming("a", 0)
    assert case.held() == []
    case.slice([gpu(3, device_name="x")], slice_uid="x", driver_name="x.example.com")
    assert case.held() == [("a", "GPU-3", 1_000_000, 0, HOUR)]


def test_a_claim_that_is_never_met_makes_a_gpu_pod_that_waits():
    case = one_gpu(8)
    case.claim(0, requests=[asks(20)], owner_pod_uid="a")
    case.claiming("a", None)
    assert case.asked() == {"a": 20_000_000}
    assert case.ledger() == {
        ("__unallocated__", "unallocated", "undetermined"): (8 * HOUR, None),
    }
    assert case.ask("select gpu_shape_name from core.attempts") == [("any x 20 x 1",)]


def test_a_class_is_known_by_what_another_claim_of_it_got():
    case = one_gpu()
    fast: Row = {"requests": [asks(class_name="fast", is_gpu=None)]}
    case.claim(0, claim_uid="e", claim_name="e", **fast)
    case.claiming("b", None, "e")
    assert case.asked() == {"b": 0}
    case.claim(0, [given()], "a", **fast)
    case.claiming("a", 0)
    assert case.asked() == {"a": 1_000_000, "b": 1_000_000}


def test_a_claims_name_used_again_is_the_claim_of_its_own_pod():
    case = one_gpu(4)
    case.claim(0, [given()], "a", owner_pod_uid="a", claim_uid="old")
    case.claim(900, requests=[asks(3)], owner_pod_uid="b", claim_uid="new")
    case.claiming("a", 0)
    case.claiming("b", None)
    assert case.asked() == {"a": 1_000_000, "b": 3_000_000}


def test_a_pod_may_hold_by_resource_and_by_claim():
    case = DraCase()
    case.node("n", 2)
    case.slice([gpu(0), gpu(1)])
    case.claim(0, [given("gpu-1")], "a")
    case.claiming("a", 0, requests=[{"resource_name": GPU, "request_count": 1}])
    assert case.booked() == {"a": 2 * HOUR}
    assert case.asked() == {"a": 2_000_000}
    assert case.broken() == []
