"""Waits as people have met them: what a careful reader concludes of the texts, and what not.

Single wordings are in test_scheduling_words.py, single rules in test_sql_reasons.py.
"""

from models.raw import POD_GROUP_VERSIONS
from tests.sql_case import HOUR, Case
from tests.told_events import GPU, listed, second, tell


def reasons_of(case, kind="Pod", section="scheduling"):
    """Object -> its reasons, each with resource and nodes or what is missing."""
    rows = case.ask(
        "select object_name, reason_name, resource_name, coalesce(node_count, missing_count) "
        f"from core.scheduling_reasons where object_kind_name = '{kind}' "
        f"and section_name = '{section}' order by 1, 2, 3, 4"
    )
    found = {}
    for name, *reason in rows:
        found.setdefault(name, []).append(tuple(reason))
    return found


def nodes(case, plain, gpus):
    for number in range(plain + gpus):
        names = f"cpu {GPU}" if number >= plain else "cpu"
        case.node(f"n{number}", resource_names_text=names)


def test_the_only_gpu_node_is_excluded_so_gpus_are_not_short():
    case = Case()
    nodes(case, plain=3, gpus=1)
    tell(case, "0/4 nodes are available: 1 node(s) didn't match pod affinity rules, 3 Insufficient "
         f"{GPU}. preemption: 0/4 nodes are available: 1 Preemption is not helpful for scheduling, "
         "3 No preemption victims found for incoming pod.")  # fmt: skip
    assert reasons_of(case) == {"p": [("affinity", None, 1), ("resource_elsewhere", GPU, 3)]}


def test_a_selector_that_no_node_matches_covers_all_nodes_whatever_else_they_lack():
    case = Case()
    nodes(case, plain=10, gpus=0)
    text = "0/10 nodes are available: 10 node(s) didn't match node selector, 4 Insufficient cpu."
    case.pod("p", seen=5, unscheduled_text=text, scheduling_reasons=listed(text))
    assert reasons_of(case) == {"p": [("affinity", None, 10), ("resource_full", "cpu", 4)]}
    query = "select reason_name from core.scheduling_reasons where node_count = total_node_count"
    assert case.ask(query) == [("affinity",)]


def test_both_members_of_a_gang_say_the_same_and_preemption_adds_no_nodes():
    case = Case()
    text = (
        f"0/3 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, "
        f"2 Insufficient {GPU}. no new claims to deallocate, preemption: 0/3 nodes are available: "
        "1 Preemption is not helpful for scheduling, 2 No preemption victims found for it."
    )
    none = "Pod didn't trigger scale-up: 3 node(s) didn't match Pod's node affinity/selector"
    for member in ("g-0", "g-1"):
        tell(case, text, object_name=member, object_uid=member)
        tell(case, none, is_waiting=True, reason_name="NotTriggerScaleUp", object_name=member,
             object_uid=member)  # fmt: skip
    both = [("affinity", None, 1), ("resource_short", GPU, 2)]
    assert reasons_of(case) == {"g-0": both, "g-1": both}
    assert reasons_of(case, section="scale_up")["g-0"] == [("affinity", None, 3)]


def test_a_scale_up_ends_a_wait_and_the_image_takes_its_own_time():
    case = Case()
    told = [
        (0, "FailedScheduling", "0/3 nodes are available: 3 node(s) didn't match Pod's node "
         "affinity/selector.", None),
        (97, "Scheduled", "Successfully assigned ml/p to n1", None),
        (12, "TriggeredScaleUp", "pod triggered scale-up: [{group 0->1 (max: 500)}]", None),
        (98, "Pulling", 'Pulling image "small"', "init"),
        (100, "Pulled", 'Successfully pulled image "small" in 1.92192449s', "init"),
        (104, "Pulling", 'Pulling image "large"', "main"),
        (178, "Pulled", 'Successfully pulled image "large"', "main"),
    ]  # fmt: skip
    for at, reason, text, container in told:
        tell(case, text, at, reason_name=reason, container_name=container)
    rows = case.ask("select reason_name, first_at from core.events order by first_at, reason_name")
    assert [(name, second(at)) for name, at in rows][:3] == [
        ("FailedScheduling", 0),
        ("TriggeredScaleUp", 12),
        ("Scheduled", 97),
    ]
    rows = case.ask("select image_name, round(total_seconds) from core.image_pulls order by 2")
    assert rows == [("small", 2), ("large", 74)]


def group(case, text, seen=5, **told):
    case.add(POD_GROUP_VERSIONS, pod_group_uid="g", pod_group_name="g", observed_at=seen,
             unscheduled_text=text, scheduling_reasons=listed(text), **told)  # fmt: skip


def test_a_gang_of_twenty_with_eight_running_lacks_twelve():
    case = Case()
    group(case, "12/8 tasks in gang unschedulable: pod group is not ready, 20 minAvailable, "
          "8 Running")  # fmt: skip
    assert reasons_of(case, "PodGroup") == {"g": [("gang", None, 12)]}


def test_of_two_members_one_is_blocked_and_the_other_waits_for_it():
    case = Case()
    nodes(case, plain=1, gpus=0)
    for member, text in (
        ("m-0", "Pod ml/m-0 can possibly be assigned to n0"),
        ("m-1", "0/1 nodes are unavailable: 1 Insufficient cpu."),
    ):
        tell(case, text, object_name=member, object_uid=member)
    assert reasons_of(case) == {
        "m-0": [("placeable", None, None)],
        "m-1": [("resource_full", "cpu", 1)],
    }


def test_one_problem_told_tens_of_thousands_of_times_is_one_row_and_names_no_resource():
    case = Case()
    text = "1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable."
    group(case, text, phase_name="Inqueue")
    tell(case, text, 60, HOUR, total_count=78789, reason_name="Unschedulable", is_waiting=True,
         object_kind_name="PodGroup", object_name="g", object_uid="g")  # fmt: skip
    assert case.ask("select event_count from core.events") == [(78789,)]
    assert reasons_of(case, "PodGroup") == {"g": [("gang", None, 1), ("gang", None, 1)]}
    rows = case.ask(
        "select source_name, told_count, is_current from core.scheduling_reasons order by 1"
    )
    assert rows == [("condition", 1, True), ("event", 78789, None)]


def test_a_queue_that_is_full_on_paper_is_no_lack_of_nodes():
    case = Case()
    nodes(case, plain=0, gpus=2)
    about = {"object_kind_name": "PodGroup", "object_name": "g", "object_uid": "g"}
    text = "pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Unschedulable"
    tell(case, f"1/1 tasks in gang unschedulable: {text}", 0, 11, total_count=12,
         reason_name="Unschedulable", is_waiting=True, **about)  # fmt: skip
    tell(case, "resource in cluster is overused", 0, 12, total_count=13, type_name="Normal",
         reason_name="Unschedulable", is_waiting=True, **about)  # fmt: skip
    assert reasons_of(case, "PodGroup") == {"g": [("gang", None, 1), ("quota_full", None, None)]}


def test_a_pod_set_that_can_never_fit_is_told_from_one_that_waits():
    case = Case()
    no_flavor = "couldn't assign flavors to pod set"
    text = (
        f"{no_flavor} head: insufficient unused quota for {GPU} in flavor many, 8 more needed; "
        f"{no_flavor} work: insufficient quota for {GPU} in flavor many, "
        "request > maximum capacity (16 > 8)"
    )
    tell(case, text, reason_name="Pending", is_waiting=True, object_kind_name="Workload")
    query = "select pod_set_name, reason_name from core.scheduling_reasons order by 1"
    assert case.ask(query) == [("head", "quota_full"), ("work", "quota_never")]
