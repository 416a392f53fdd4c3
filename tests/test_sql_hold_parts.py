"""Which GPU a hold lies on, and what its state and its part of the ledger become of it.

What a GPU did is in test_sql_gpu_states; states that no reading decides are in test_sql_states.
"""

from collectors.source import Settings, silent
from tests.sql_case import GPU, Case, Row, at, both

END = 3600
WORK: Row = {"sm_ratio": 0.5, "utilisation_ratio": 0.9, "memory_used_mib": 9000.0}
QUIET: Row = {"sm_ratio": 0.0, "utilisation_ratio": 0.0, "memory_used_mib": 9000.0}


def asks(count, resource=GPU) -> Row:
    return {"requests": [{"resource_name": resource, "request_count": count}]}


def parts(case, pod):
    return case.ask(
        "select gpu_uuid, first_unit_count, last_unit_count, basis_name, is_shared "
        f"from core.hold_parts where hold_id like '{pod}/%' order by part_number"
    )


def test_labels_tell_the_devices_of_a_pod_and_what_they_do_not_tell_stays_one_part():
    case = Case()
    case.node("n", gpus=4)
    case.pod("p", "n", **asks(3))
    case.read("a", 0, END, pod="p")
    case.read("b", 0, END, pod="p")
    case.read("c", 0, END)
    assert parts(case, "p") == [
        ("a", 0, 1, "label", False),
        ("b", 1, 2, "label", False),
        (None, 2, 3, "none", False),
    ]


def test_each_gpu_of_a_hold_has_its_own_state_and_its_own_share_of_the_ledger():
    """Four GPUs held for an hour: two work, one is idle, one is not told of."""
    case = Case()
    case.node("n", gpus=4)
    case.price(2_000_000)
    case.pod("p", "n", **asks(4), team_name="t")
    case.read("a", 0, END, pod="p", **WORK)
    case.read("b", 0, END, pod="p", **WORK)
    case.read("c", 0, END, pod="p", **QUIET)
    assert case.ledger() == {
        ("t", "active", "none"): (7200.0, 4.0),
        ("t", "idle", "memory_held"): (3600.0, 2.0),
        ("t", "unobserved", "no_series"): (3600.0, 2.0),
    }


def test_a_name_that_hangs_on_for_a_scrape_does_not_make_a_device_the_next_pod_s():
    """q has its name from p and another GPU; the label of the old one is read once too often."""
    case = Case()
    case.node("n", gpus=2)
    told: Row = {"pod_name": "x-0", "requests": [{"resource_name": GPU, "request_count": 1}]}
    case.pod("p", "n", **told)
    case.pod("p", "n", seen=1215, bound_at=0, running_since_at=0, change_name="DELETED", **told)
    case.pod("q", "n", seen=1216, created_at=1216, **told)
    case.read("a", 0, 1230, pod="x-0")
    case.read("b", 1230, END, pod="x-0")
    assert [row[0] for row in parts(case, "p")] == ["a"]
    assert [row[0] for row in parts(case, "q")] == ["b"]


def test_who_holds_a_whole_node_needs_no_label():
    case = Case()
    case.node("n", gpus=2)
    case.pod("p", "n", **asks(2))
    case.read("a", 0, END)
    case.read("b", 0, END)
    assert [(row[0], row[3]) for row in parts(case, "p")] == [
        ("a", "whole_node"),
        ("b", "whole_node"),
    ]


def test_what_is_left_is_the_one_s_of_whom_nothing_is_told():
    case = Case()
    case.node("n", gpus=2)
    case.pod("p", "n", **asks(1))
    case.pod("q", "n", **asks(1))
    case.read("a", 0, END, pod="p")
    case.read("b", 0, END)
    assert parts(case, "q") == [("b", 0, 1, "remaining", False)]


def test_of_two_of_whom_nothing_is_told_neither_has_what_is_left():
    case = Case()
    case.node("n", gpus=2)
    case.pod("p", "n", **asks(1))
    case.pod("q", "n", **asks(1))
    case.read("a", 0, END)
    case.read("b", 0, END)
    assert [row[3] for pod in ("p", "q") for row in parts(case, pod)] == ["none", "none"]


def shared(replicas, *pods, **told):
    """One GPU in so many replicas, and pods with one of them each, from second to second."""
    case = Case()
    unit = {"resource_name": GPU, "capacity_count": replicas, "allocatable_count": replicas,
            "share_micro_gpu": 1_000_000 // replicas}  # fmt: skip
    case.node("n", resources=[unit])
    for name, begin, end in pods:
        case.pod(name, "n", seen=begin, created_at=begin, **told)
        if end < END:
            case.pod(name, "n", seen=end, created_at=begin, bound_at=begin, change_name="DELETED",
                     running_since_at=begin, **told)  # fmt: skip
    return case


def test_of_four_pods_that_share_a_gpu_the_one_that_is_labelled_does_not_get_all_of_its_work():
    """Who works of several is not told: nobody's time is called active, nor is anybody idle."""
    case = shared(4, *((name, 0, END) for name in "abcd"))
    case.read("g", 0, END, pod="c", **WORK)
    for name in "abcd":
        assert case.states(name) == [("unobserved", "no_series", 0, END)]
    assert case.booked() == dict.fromkeys("abcd", 900.0)


def test_a_shared_gpu_that_is_quiet_is_idle_for_all_of_them():
    case = shared(4, ("a", 0, END), ("b", 0, END))
    case.read("g", 0, END, pod="a", **QUIET)
    assert case.states("a") == case.states("b") == [("idle", "memory_held", 0, END)]


def test_while_a_pod_has_a_shared_gpu_alone_the_work_is_its_own():
    case = shared(4, ("a", 0, END), ("b", 1200, 2400))
    case.read("g", 0, END, pod="a", **WORK)
    assert case.states("a") == [
        ("active", "none", 0, 1200),
        ("unobserved", "no_series", 1200, 2400),
        ("active", "none", 2400, END),
    ]


def test_a_vgpu_plugin_s_units_are_tenths_of_the_gpu_that_stays_installed():
    """The plugin takes nvidia.com/gpu out of the node's capacity: the card is still there, and what
    nobody holds of it is what is left of one, not less than nothing.
    """
    from collectors.nodes import node_row
    from collectors.source import Version

    resources = {"cpu": "4", "k8s.amazonaws.com/vgpu": "10"}
    node = {
        "metadata": {"uid": "n", "name": "n", "creationTimestamp": "2026-03-01T00:00:00Z"},
        "status": {"capacity": resources, "allocatable": resources,
                   "conditions": [{"type": "Ready", "status": "True"}]},
    }  # fmt: skip
    version = Version(1, int(at(0).timestamp() * 1e6), at(0).date(), "LISTED", "f:1", node)
    row = node_row(version, Settings("c"), silent)
    assert (row["gpu_count"], row["allocatable_micro_gpu"]) == (1, 1_000_000)
    case = Case()
    case.node("n", resources=[
        dict(zip(("resource_name", "capacity_count", "allocatable_count", "share_micro_gpu"), each,
                 strict=True)) for each in row["resources"]
    ])  # fmt: skip
    case.price(1_000_000)
    case.pod("p", "n", **asks(7, "k8s.amazonaws.com/vgpu"), team_name="t")
    assert case.ledger() == {
        ("t", "unobserved", "no_series"): (2520.0, 0.7),
        ("__unallocated__", "unallocated", "partition_remainder"): (1080.0, 0.3),
    }


def test_an_instance_is_one_unit_of_a_mig_hold_whatever_its_label_is_called():
    case = Case()
    unit = {"resource_name": "nvidia.com/mig-1g.12gb", "capacity_count": 7, "allocatable_count": 7,
            "share_micro_gpu": 142_857}  # fmt: skip
    case.node("n", resources=[unit])
    case.pod("p", "n", **asks(2, "nvidia.com/mig-1g.12gb"))
    case.read("g", 0, END, pod="p", instance=7, sm_ratio=0.4)
    case.read("g", 0, END, pod="p", instance=8, sm_ratio=0.0)
    assert case.ask(
        "select p.instance_number, p.is_shared, s.state_name from core.hold_parts as p "
        "inner join core.hold_states as s using (hold_id, part_number) order by 1"
    ) == [(7, False, "active"), (8, False, "idle")]


def test_before_it_works_a_training_pod_loads_for_at_most_half_an_hour():
    case = Case(7200)
    case.node("n", gpus=2)
    case.pod("p", "n", seen=600, created_at=600)
    case.pod("q", "n", seen=600, created_at=600)
    case.read("a", 0, 1500, pod="p", **QUIET)
    case.read("a", 1500, 7200, pod="p", **WORK)
    case.read("b", 0, 7200, pod="q", **QUIET)
    assert case.states("p") == [("loading", "none", 600, 1500), ("active", "none", 1500, 7200)]
    assert case.states("q") == [("loading", "none", 600, 2400), ("idle", "memory_held", 2400, 7200)]


def test_the_last_moments_of_the_pod_before_do_not_end_the_loading_of_the_next():
    """p works until 1205; the sample at 1230 tells of it, under q's name."""
    case = Case()
    case.node("n")
    case.pod("p", "n")
    case.pod("p", "n", seen=1205, bound_at=0, running_since_at=0, change_name="DELETED")
    case.pod("q", "n", seen=1210, created_at=1210)
    case.read("g", 0, 1200, pod="p", **WORK)
    case.read("g", 1200, 1230, pod="q", **WORK)
    case.read("g", 1230, 1500, pod="q", **QUIET)
    case.read("g", 1500, END, pod="q", **WORK)
    assert case.states("q") == [("loading", "none", 1210, 1500), ("active", "none", 1500, END)]


def test_a_broken_gpu_is_unavailable_to_its_holder_who_keeps_it():
    case = Case()
    case.node("n")
    case.price(1_000_000)
    case.pod("p", "n", team_name="t")
    case.read("g", 0, 1800, pod="p", **both(WORK, {"xid_number": 0}))
    case.read("g", 1800, END, pod="p", **both(QUIET, {"xid_number": 79}))
    assert case.ledger() == {
        ("t", "active", "none"): (1800.0, 0.5),
        ("t", "unavailable", "gpu_unhealthy"): (1800.0, 0.5),
    }


def test_a_lost_member_s_gang_waits_but_for_members_that_are_measured_at_work():
    gang: Row = {"workload_key_uid": "w", "gang_name": "g", "gang_size_count": 2}
    case = Case()
    case.node("n", gpus=2)
    case.pod("a", "n", **gang)
    case.pod("b", "n", **gang)
    case.pod("b", "n", seen=1200, bound_at=0, running_since_at=None, stopped_at=1200,
             finished_at=1200, phase_name="Failed", **gang)  # fmt: skip
    case.read("x", 0, 2400, pod="a", **WORK)
    case.read("x", 2400, END, pod="a", **QUIET)
    assert case.states("a") == [
        ("active", "none", 0, 2400),
        ("gang_wait", "member_lost", 2400, END),
    ]
