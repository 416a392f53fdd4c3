"""What does not fit between what was held and what was measured, and what it costs.

That of a pod's GPUs some never work, and idle and stalled GPUs, are in test_sql_episodes.
"""

import re
from fractions import Fraction
from math import floor

import pytest

from tests.kube_objects import node, parsed
from tests.sql_case import GPU, Case, Row

END = 4 * 3600
WORK: Row = {
    "sm_ratio": 0.5,
    "utilisation_ratio": 0.9,
    "memory_used_mib": 9000.0,
    "power_watts": 60.0,
}
EMPTY: Row = {
    "sm_ratio": 0.0,
    "utilisation_ratio": 0.0,
    "memory_used_mib": 4.0,
    "power_watts": 27.0,
}


def held(gpus: int = 1, readings: Row = WORK, **pod) -> Case:
    """A node and a pod on it that has GPU g all the time."""
    case = Case(END)
    case.node("n", gpus=gpus)
    case.pod("p", "n", **pod)
    case.read("g", 0, END, pod="p", **readings)
    return case


def test_work_on_a_gpu_that_nobody_holds_is_a_finding_in_hours_and_money():
    case = Case(END)
    case.node("n", gpus=2)
    case.price(1_000_000)
    case.read("g", 0, 3600, **EMPTY)
    case.read("g", 3600, 7200, **WORK)
    case.read("g", 7200, END, **EMPTY)
    case.read("h", 0, 270, **WORK)  # shorter than five minutes: who knows whose label comes late
    case.read("h", 270, END, **EMPTY)
    assert case.ask(
        "select finding_name, subject_text, gpu_seconds::int, finding_cost::double, team_name "
        "from mart.gpu_findings"
    ) == [("used_without_hold", "g", 3600, 1.0, "__unallocated__")]


@pytest.mark.parametrize(("begin", "end", "seconds"), [(0, 1805, END - 1805), (600, END, 600)])
def test_what_several_hold_is_nobody_s_only_before_and_after_them(begin, end, seconds):
    """Work on a GPU in two replicas that goes on from before its holders come to after they go."""
    case = Case(END)
    unit = {"resource_name": GPU, "capacity_count": 2, "allocatable_count": 2}
    case.node("n", resources=[unit | {"share_micro_gpu": 500_000}])
    told: Row = {"created_at": begin, "bound_at": begin, "running_since_at": begin}
    for name in "ab":
        case.pod(name, "n", seen=begin, **told)
        if end < END:
            case.pod(name, "n", seen=end, change_name="DELETED", **told)
    case.read("g", 0, END, **WORK)
    assert case.ask("select finding_name, gpu_seconds::int from mart.gpu_findings") == [
        ("used_without_hold", seconds)
    ]


def test_a_label_that_names_a_pod_which_holds_nothing_there_is_a_finding():
    case = held(gpus=2)
    case.read("h", 0, END, pod="stranger", **EMPTY)
    ((name, subject, text),) = case.ask(
        "select finding_name, subject_text, evidence_text from mart.gpu_findings"
    )
    assert (name, subject) == ("label_disagrees", "h x/stranger")
    assert "holds no GPU" in text


def shared_by_hami(**labels: str) -> Case:
    """Pod p has half of GPU n-0 and q half of n-1, as HAMi says; labels name a pod for each GPU."""
    case = Case(END)
    cards = [{"device_uuid": f"n-{i}", "memory_mib": 10_000, "core_count": 100} for i in (0, 1)]
    case.node("n", gpus=2, devices=cards)
    for number, pod in enumerate("pq"):
        half = {"device_uuid": f"n-{number}", "memory_mib": 5_000, "core_count": 50}
        case.pod(pod, "n", devices=[half])
    for gpu, pod in labels.items():
        case.read(gpu.replace("_", "-"), 0, END, pod=pod, **WORK)
    return case


def test_labels_of_two_pods_that_are_swapped_are_findings_where_the_scheduler_names_their_gpus():
    case = shared_by_hami(n_0="q", n_1="p")
    assert case.ask(
        "select subject_text, gpu_seconds::int, evidence_text from mart.gpu_findings "
        "where finding_name = 'label_disagrees' order by all"
    ) == [
        ("n-0 x/q", END, "480 samples name this pod, which the scheduler gave n-1 instead"),
        ("n-1 x/p", END, "480 samples name this pod, which the scheduler gave n-0 instead"),
    ]
    assert shared_by_hami(n_0="p", n_1="q").ask("select 1 from mart.gpu_findings") == []


def test_a_device_of_the_scheduler_that_nobody_measures_contradicts_no_label():
    """It may be a part of a GPU under a name of its own."""
    case = shared_by_hami(n_0="q")
    assert case.ask("select 1 from mart.gpu_findings") == []


def test_where_labels_alone_tell_who_has_which_gpu_no_swap_can_be_found():
    case = Case(END)
    case.node("n", gpus=2)
    for pod, gpu in (("p", "h"), ("q", "g")):
        case.pod(pod, "n")
        case.read(gpu, 0, END, pod=pod, **WORK)
    assert case.ask("select 1 from mart.gpu_findings") == []


def test_a_label_that_disagrees_costs_as_long_as_it_was_seen():
    case = held(gpus=2)
    case.price(1_000_000)
    case.read("h", 0, 600, pod="stranger", **EMPTY)
    case.read("h", 600, END - 600, **EMPTY)
    case.read("h", END - 600, END, pod="stranger", **EMPTY)
    assert case.ask(
        "select gpu_seconds::int, round(finding_cost::double, 6) from mart.gpu_findings"
    ) == [(600, 0.166667), (600, 0.166667)]


def test_a_gpu_of_a_node_that_no_record_knows_is_a_finding_too():
    case = Case(END)
    case.node("n")
    case.read("g", 0, END, node="elsewhere", **WORK)
    case.read("h", 0, END, node="elsewhere", pod="stranger", **EMPTY)
    assert case.ask("select finding_name, node_uid from mart.gpu_findings order by all") == [
        ("label_disagrees", "__unknown__"),
        ("used_without_hold", "__unknown__"),
    ]


@pytest.mark.parametrize(
    ("profile", "part"),
    [
        ("1g.6gb+me", Fraction(1, 4)),
        ("1c.2g.12gb", Fraction(1, 4)),
        ("2g.12gb", Fraction(1, 2)),
        ("3g.99gb", Fraction(3, 7)),
        ("1c.3g.99gb", Fraction(1, 7)),
        (None, Fraction(1)),
    ],
)
def test_work_on_an_instance_that_nobody_holds_costs_its_part_of_the_gpu(profile, part):
    """The part that a hold of the profile would have; one that tells no profile counts whole."""
    case = Case(END)
    case.node("n", gpus=1)
    case.price(1_000_000)
    case.read("g", 0, END, instance=7, profile=profile, model="a30-24gb", **WORK)
    [(name, seconds, cost)] = case.ask(
        "select finding_name, gpu_seconds::double, finding_cost::double from mart.gpu_findings"
    )
    share = floor(part * 1_000_000) / 1_000_000
    assert (name, seconds) == ("used_without_hold", pytest.approx(END * share))
    assert cost == pytest.approx(END * share / 3600, abs=1e-6)
    if profile:
        resource = "nvidia.com/mig-" + profile.replace("+", ".")
        row = parsed("Node", node({"nvidia.com/gpu.product": "NVIDIA-A30"}, {resource: "1"}))
        assert row["resources"][0]["share_micro_gpu"] == floor(part * 1_000_000)


def test_gpus_that_talk_over_pcie_while_nvlink_is_silent_are_a_finding():
    two = {"requests": [{"resource_name": GPU, "request_count": 2}]}
    slow: Row = WORK | {"nvlink_bytes_per_second": 0.0, "pcie_received_bytes_per_second": 6e9,
                   "pcie_sent_bytes_per_second": 6e9}  # fmt: skip
    case = held(2, slow, **two)
    case.read("h", 0, END, pod="p", **slow)
    assert case.ask("select finding_name, gpu_count from mart.gpu_findings") == [
        ("nvlink_silent", 2)
    ]
    fast: Row = slow | {"nvlink_bytes_per_second": 1e11}
    case = held(2, fast, **two)
    case.read("h", 0, END, pod="p", **fast)
    assert case.ask("select count(*) from mart.gpu_findings") == [(0,)]


def test_more_gpus_measured_than_installed_are_a_finding():
    case = held()
    case.read("h", 0, END, **EMPTY)
    assert ("more_gpus_than_installed", 1) in case.ask(
        "select finding_name, gpu_count from mart.gpu_findings"
    )


@pytest.mark.parametrize("name", ["core.gpu_strangers", "core.label_strangers"])
def test_strangers_are_found_by_equal_keys_which_can_be_hashed(name):
    """Comparing each with each takes memory and time in squares of a fleet."""
    plan = held().plan(name)
    assert "HASH_JOIN" in plan
    assert not re.search("NESTED_LOOP|BLOCKWISE_NL|PIECEWISE|CROSS_PRODUCT|DELIM", plan)
