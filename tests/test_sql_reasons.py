"""Why things waited, and who lost their place for whom, from events and conditions."""

import pytest

from models.raw import POD_GROUP_VERSIONS
from tests.kueue_case import Queued
from tests.sql_case import HOUR, MIDNIGHT, Case
from tests.told_events import GPU, UIDS, listed, second, tell

ZERO = int(MIDNIGHT.timestamp())

# core.scheduling_reasons


def said(case):
    return case.ask(
        "select source_name, is_preemption, reason_name, resource_name, node_count, "
        "total_node_count, told_count from core.scheduling_reasons"
    )


def word_of(case, resource=GPU):
    [(word,)] = case.ask(
        f"select reason_name from core.scheduling_reasons where resource_name = '{resource}'"
    )
    return word


def waiting(case, text, seen=0, **told):
    case.pod("p", seen=seen, unscheduled_reason_name="Unschedulable", unscheduled_text=text,
             scheduling_reasons=listed(text), **told)  # fmt: skip


@pytest.mark.parametrize(
    ("with_it", "short", "word"),
    [(4, 3, "resource_full"), (1, 3, "resource_elsewhere"), (0, 3, "resource_absent"),
     (2, 3, "resource_full"), (1, 4, "resource_full")],
)  # fmt: skip
def test_a_resource_is_full_absent_or_elsewhere_by_what_nodes_of_the_day_have(with_it, short, word):
    case = Case()
    for number in range(4):
        names = f"cpu memory {GPU}" if number < with_it else "cpu memory"
        case.node(f"n{number}", resource_names_text=names)
    tell(case, f"0/4 nodes are available: {short} Insufficient {GPU}.")
    assert word_of(case) == word
    rows = case.ask("select advertising_node_count from core.scheduling_reasons")
    assert rows == [(with_it,)]


def test_where_no_node_told_its_resources_the_question_stays_open():
    case = Case()
    case.node("n")
    tell(case, f"0/1 nodes are available: 1 Insufficient {GPU}.")
    assert word_of(case) == "resource_short"


def test_an_autoscaler_s_nodes_are_not_those_of_the_cluster():
    case = Case()
    case.node("n", resource_names_text="cpu")
    tell(case, f"pod didn't trigger scale-up: 1 Insufficient {GPU}", is_waiting=True,
         reason_name="NotTriggerScaleUp")  # fmt: skip
    assert word_of(case) == "resource_short"


def test_a_condition_stands_until_a_version_says_otherwise():
    case = Case()
    full = "0/4 nodes are available: {} Insufficient cpu."
    waiting(case, full.format(4), seen=10)
    waiting(case, full.format(4), seen=20)
    waiting(case, full.format(3), seen=30)
    case.pod("p", node="n", seen=50)
    [row] = case.ask(
        "select node_count, told_count, first_at, last_at, is_current, workload_key_uid "
        "from core.scheduling_reasons"
    )
    assert (row[:2], second(row[2]), second(row[3]), row[4:]) == ((3, 2), 10, 50, (False, "p"))


def test_a_condition_that_nothing_ends_is_current_until_the_window_s_end():
    case = Case()
    waiting(case, "0/4 nodes are available: 4 Insufficient cpu.", seen=10)
    [(last, current)] = case.ask("select last_at, is_current from core.scheduling_reasons")
    assert (second(last), current) == (HOUR, True)


def test_a_pod_that_is_deleted_waits_no_more():
    case = Case()
    text = "0/4 nodes are available: 4 Insufficient cpu."
    waiting(case, text, seen=10)
    waiting(case, text, seen=40, change_name="DELETED")
    [(last, current)] = case.ask("select last_at, is_current from core.scheduling_reasons")
    assert (second(last), current) == (40, False)


def test_what_only_events_tell_may_be_over():
    case = Case()
    tell(case, "0/4 nodes are available: 4 Insufficient cpu.", 5, 90, total_count=7)
    assert case.ask("select is_current, told_count from core.scheduling_reasons") == [(None, 7)]


def test_preemption_and_two_reasons_of_one_word_stay_apart():
    case = Case()
    tell(case, "0/9 nodes are available: 2 node(s) didn't match Pod's node affinity/selector, "
         "3 node(s) didn't match pod affinity rules. preemption: 0/9 nodes are available: "
         "9 Preemption is not helpful for scheduling.")  # fmt: skip
    assert sorted(row[1:5] for row in said(case)) == [
        (False, "affinity", None, 2),
        (False, "affinity", None, 3),
        (True, "preemption_useless", None, 9),
    ]


def test_a_pod_group_waits_for_its_missing_members():
    case = Case()
    text = "12/8 tasks in gang unschedulable: pod group is not ready, 20 minAvailable, 8 Running"
    case.add(POD_GROUP_VERSIONS, pod_group_uid="g", pod_group_name="g", observed_at=5,
             unscheduled_text=text, workload_key_uid="w",
             scheduling_reasons=listed(text))  # fmt: skip
    rows = case.ask(
        "select object_kind_name, reason_name, missing_count, is_current, workload_key_uid "
        "from core.scheduling_reasons"
    )
    assert rows == [("PodGroup", "gang", 12, True, "w")]


def test_a_queue_s_workload_is_that_of_the_job_it_was_made_for():
    case = Case()
    Queued(case, "wl", "job-uid")
    tell(case, f"couldn't assign flavors to pod set main: insufficient unused quota for {GPU} in "
         "flavor f, 3 more needed", 5, 900, total_count=542, reason_name="Pending", is_waiting=True,
         object_kind_name="Workload", object_name="job-wl", object_uid="wl")  # fmt: skip
    rows = case.ask(
        "select workload_key_uid, reason_name, flavor_name, missing_count, told_count "
        "from core.scheduling_reasons"
    )
    assert rows == [("job-uid", "quota_full", "f", 3, 542)]


def test_what_a_queue_says_in_a_workload_s_condition_stands_until_quota_is_reserved():
    # Kueue, issue 3909: of two pod sets one waits for GPUs in use, the other asks for more than is.
    flavors = {"a": (16, 8), "b": (24, 16)}
    text = "; ".join(
        f"couldn't assign flavors to pod set {pod_set}: "
        + ", ".join(f"insufficient {word} for {GPU} in flavor {name}, {what(*numbers)}"
                    for name, numbers in flavors.items())
        for pod_set, word, what in (
            ("master", "unused quota", lambda asked, most: "8 more needed"),
            ("worker", "quota", "request > maximum capacity ({} > {})".format),
        )
    )  # fmt: skip
    case = Case()
    queued = Queued(case, "wl", "job-uid")
    queued.at(5, is_quota_reserved=False, pending_text=text, scheduling_reasons=listed(text))
    query = (
        "select pod_set_name, flavor_name, reason_name, missing_count, is_current, "
        f"epoch(first_at)::bigint - {ZERO}, epoch(last_at)::bigint - {ZERO}, workload_key_uid "
        "from core.scheduling_reasons"
    )
    assert sorted(case.ask(query)) == [
        ("master", "a", "quota_full", 8, True, 5, HOUR, "job-uid"),
        ("master", "b", "quota_full", 8, True, 5, HOUR, "job-uid"),
        ("worker", "a", "quota_never", 8, True, 5, HOUR, "job-uid"),
        ("worker", "b", "quota_never", 8, True, 5, HOUR, "job-uid"),
    ]
    queued.quota(905, pending_text=None, scheduling_reasons=None)
    assert {row[4:7] for row in case.ask(query)} == {(False, 5, 905)}


# core.disruptions


def disrupted(case):
    rows = case.ask(
        "select victim_kind_name, victim_uid, way_name, disrupted_at, by_uid, by_name, "
        "by_workload_key_uid, disruption_count from core.disruptions order by 1, 2, 4"
    )
    return [(*row[:3], second(row[3]), *row[4:]) for row in rows]


def test_a_preemptor_is_known_by_its_uid():
    case = Case()
    case.pod("victim", node="n", seen=5)
    case.pod("by", seen=6, workload_key_uid="job")
    hit = {"disruption_name": "PreemptionByScheduler", "disrupted_at": 20}
    case.pod("victim", node="n", seen=21, **hit)
    tell(case, "Preempted by pod by on node n", 20.25, reason_name="Preempted",
         object_name="victim", object_uid="victim", component_name="default-scheduler")  # fmt: skip
    found = ("Pod", "victim", "preempted_by_scheduler", 20, "by", "by", "job", 1)
    assert disrupted(case) == [found]


@pytest.mark.parametrize(
    ("text", "related", "by"),
    [("Preempted by x/by on node n", None, "by"), ("Preempted by a pod on node n", "by", "by"),
     ("Preempted by a pod on node n", None, None), ("Preempted by x/gone on node n", None, None),
     ("Preempted by pod 0-1 on node n (in kube-scheduler memory)", None, "0-1")],
)  # fmt: skip
def test_older_wordings_name_the_preemptor_otherwise_or_not_at_all(text, related, by):
    case = Case()
    case.pod("victim", node="n", seen=5)
    case.pod("by", seen=6)
    related_kind = "Pod" if related else None
    tell(case, text, 20, reason_name="Preempted", object_uid="victim", object_name="victim",
         related_uid=related, related_kind_name=related_kind)  # fmt: skip
    [row] = disrupted(case)
    assert row[1:5] == ("victim", "preempted_by_scheduler", 20, by)


def test_a_pod_that_had_succeeded_was_not_disrupted():
    hit = {"disruption_name": "EvictionByEvictionAPI", "disrupted_at": 30}
    case = Case()
    case.pod("done", node="n", seen=5)
    case.pod("done", node="n", seen=20, phase_name="Succeeded")
    case.pod("done", node="n", seen=31, phase_name="Succeeded", **hit)
    case.pod("at once", node="n", seen=5)
    case.pod("at once", node="n", seen=31, phase_name="Succeeded", **hit)
    case.pod("failed", node="n", seen=5)
    case.pod("failed", node="n", seen=20, phase_name="Failed")
    case.pod("failed", node="n", seen=31, phase_name="Failed", **hit)
    case.pod("ran", node="n", seen=5)
    case.pod("ran", node="n", seen=31, **hit)
    case.pod("ran", node="n", seen=35, phase_name="Succeeded", **hit)
    assert [row[1:4] for row in disrupted(case)] == [("ran", "evicted_by_api", 30)]


def test_what_happened_on_the_day_before_is_not_told_again():
    case = Case()
    case.pod("p", node="n", change_name="CARRIED", disruption_name="TerminationByKubelet",
             disrupted_at=-9)  # fmt: skip
    assert disrupted(case) == []


@pytest.mark.parametrize(
    ("word", "way"),
    [("DeletionByTaintManager", "evicted_by_taint"), ("DeletionByPodGC", "removed_with_node"),
     ("TerminationByKubelet", "evicted_by_kubelet"), ("SomethingNew", "other"),
     ("DeletionByDeviceTaintManager", "evicted_by_taint")],
)  # fmt: skip
def test_each_way_to_lose_a_place_has_its_word(word, way):
    case = Case()
    case.pod("p", node="n", seen=5)
    case.pod("p", node="n", seen=9, disruption_name=word)
    assert [row[2:4] for row in disrupted(case)] == [(way, 9)]


def test_a_queue_s_preemption_is_told_twice_and_counts_once():
    case = Case()
    text = (
        f"Preempted to accommodate a workload (UID: {UIDS[0]}, JobUID: {UIDS[1]}) due to "
        "prioritization in the ClusterQueue; preemptor path: /a; preemptee path: /b"
    )
    about = {"object_kind_name": "Workload", "object_name": "wl", "object_uid": "wl"}
    for reason in ("Preempted", "EvictedDueToPreempted"):
        tell(case, text, 40, reason_name=reason, **about)
    Queued(case, "wl", "job")
    Queued(case, UIDS[0], UIDS[1], object_name="winner")
    found = ("Workload", "wl", "preempted_by_queue", 40, UIDS[0], "winner", UIDS[1], 1)
    assert disrupted(case) == [found]
    rows = case.ask("select cause_text, workload_key_uid from core.disruptions")
    assert rows == [("prioritization in the ClusterQueue", "job")]


def test_a_queue_takes_admission_back_for_other_reasons_too():
    case = Case()
    about = {"object_kind_name": "Workload", "object_name": "wl", "object_uid": "wl"}
    text = "Exceeded the PodsReady timeout ml/wl"
    tell(case, text, 40, reason_name="EvictedDueToPodsReadyTimeout", **about)
    assert disrupted(case)[0][2:5] == ("evicted_by_queue", 40, None)
    rows = case.ask("select reason_name, cause_text from core.disruptions")
    assert rows == [("PodsReadyTimeout", "Exceeded the PodsReady timeout ml/wl")]
