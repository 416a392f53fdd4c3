"""The accounting rules, each on a few rows counted by hand: read in order they are the policy.

What must hold of every fleet is in the laws; how raw rows come about is the collectors' matter.
"""

import json

from models import raw
from tests.sql_case import GPU, HOUR, Case

US = "__unattributed__"
FREE = "__unallocated__"


def rule(case, label="team"):
    case.add(
        raw.TEAM_RULES, rule_number=1, condition_number=1, condition_count=1,
        field_name="pod_label", key_name=label, pattern_text="*", team_text="{value}",
    )  # fmt: skip


def test_an_unobserved_second_and_an_unallocated_one_cost_as_much_as_each_other():
    case = Case()
    case.node("n", gpus=2)
    case.price(3_600_000)
    case.pod("p", "n")
    assert case.ledger() == {
        (US, "unobserved", "no_series"): (3600, 3.6),
        (FREE, "unallocated", "no_demand"): (3600, 3.6),
    }


def test_a_price_rise_in_mid_hour_touches_only_the_seconds_after_it():
    case = Case()
    case.node("n")
    case.price(3_600_000)
    case.price(7_200_000, since=1800)
    case.pod("p", "n")
    assert case.ledger() == {(US, "unobserved", "no_series"): (3600, 5.4)}


def test_what_rounding_leaves_over_is_a_row_of_its_own():
    case = Case(3)
    case.node("n", gpus=2)
    case.price(2_000)  # 6 GPU-seconds: 3.33 micro; two rows of 1.67 are 1 each, so 1 is left
    case.pod("p", "n")
    assert case.ledger()["__rounding__", "rounding", "none"] == (0, 0.000001)


def test_without_a_price_the_cost_is_null_and_the_seconds_count_as_unpriced():
    case = Case()
    case.node("n")
    case.pod("p", "n")
    assert case.ledger() == {(US, "unobserved", "no_series"): (3600, None)}
    [(unpriced, cost)] = case.ask(
        "select unpriced_gpu_seconds, team_cost from mart.team_days where unpriced_gpu_seconds > 0"
    )
    assert (unpriced, cost) == (3600, None)


def test_of_two_holds_of_one_gpu_the_later_bind_is_booked_and_the_earlier_is_not():
    case = Case()
    case.node("n")
    case.pod("early", "n")
    case.pod("late", "n", seen=600)
    booked = "select split_part(hold_id, '/', 1), sum(date_diff('second', begin_at, end_at)) "
    assert case.ask(booked + "from core.bookings where share_micro_gpu > 0 group by 1 order by 1"
    ) == [("early", 600), ("late", 3000)]  # fmt: skip
    unbooked = "select split_part(hold_id, '/', 1), reason_name, gpu_seconds from core.unbooked"
    assert case.ask(unbooked) == [("early", "overlap", 3000)]


def test_a_hold_past_its_node_s_deletion_is_unbooked():
    case = Case()
    case.node("n")
    case.node("n", seen=600, change_name="DELETED")
    case.pod("p", "n")
    assert case.ask("select reason_name, gpu_seconds from core.unbooked") == [("node_gone", 3000)]


def test_a_reused_node_name_is_another_node():
    case = Case()
    case.node("one", node_name="n")
    case.node("one", node_name="n", seen=600, change_name="DELETED")
    case.node("two", node_name="n", seen=1200, created_at=1200)
    case.pod("p", "n", seen=1500)
    assert case.ask("select distinct node_uid from core.bookings") == [("two",)]
    assert case.ask("select sum(gpu_seconds) from core.ledger") == [(600 + 2400,)]


def test_of_two_nodes_of_one_name_made_at_once_the_greater_uid_is_meant():
    case = Case()
    for uid in ("b", "c", "a"):
        case.node(uid, node_name="n")
    case.pod("p", "n", seen=100)
    assert case.ask("select node_uid from core.pods") == [("c",)]


def test_a_node_that_is_known_by_its_deletion_alone_was_there_until_then():
    case = Case()
    case.node("n", gpus=2, seen=600, change_name="DELETED")
    assert case.ledger() == {("__unallocated__", "unallocated", "no_demand"): (1200, None)}


def test_a_unit_is_what_it_was_at_the_bind_however_often_the_node_reported_before_and_since():
    case = Case()
    for seen, share in ((0, 250_000), (300, 500_000), (600, 500_000), (900, 250_000)):
        unit = {"resource_name": GPU, "capacity_count": 1, "allocatable_count": 1}
        case.node("n", seen=seen, resources=[{**unit, "share_micro_gpu": share}])
    for name, seen in (("a", 100), ("b", 700), ("c", 1000)):
        case.pod(name, "n", seen=seen)
    asked = "select pod_uid, share_micro_gpu from core.holds order by 1"
    assert case.ask(asked) == [("a", 250_000), ("b", 500_000), ("c", 250_000)]


def test_what_is_cordoned_and_not_held_is_unavailable():
    case = Case()
    case.node("n", gpus=2, is_cordoned=True)
    case.pod("p", "n")
    assert case.ledger()["__unavailable__", "unavailable", "cordoned"][0] == HOUR


def test_what_is_missing_from_allocatable_is_unavailable():
    case = Case()
    case.node("n", gpus=4, allocatable_micro_gpu=3_000_000)
    found = case.ledger()
    assert found["__unavailable__", "unavailable", "missing_from_allocatable"][0] == HOUR
    assert found[FREE, "unallocated", "no_demand"][0] == 3 * HOUR


def test_no_demand_is_said_only_while_no_pod_that_asks_for_gpus_waits():
    case = Case()
    case.node("n")
    case.pod("p", seen=600, created_at=600)
    found = case.ledger()
    assert found[FREE, "unallocated", "no_demand"][0] == 600
    assert found[FREE, "unallocated", "undetermined"][0] == 3000


def test_a_team_is_fixed_at_bind_and_a_later_label_changes_nothing():
    case = Case()
    rule(case)
    case.node("n")
    case.pod("p", "n", labels_json=json.dumps({"team": "red"}))
    case.pod("p", "n", seen=600, bound_at=0, labels_json=json.dumps({"team": "blue"}))
    assert {team for team, _, _ in case.ledger()} == {"red"}


def test_from_the_asked_deletion_on_a_held_second_is_terminating():
    case = Case()
    case.node("n")
    case.pod("p", "n")
    case.pod("p", "n", seen=900, bound_at=0, running_since_at=0, deletion_asked_at=600)
    assert case.ledger()[US, "terminating", "none"][0] == 3000


def test_inference_loads_until_it_is_ready():
    case = Case()
    case.node("n")
    told = {"workload_class": "inference", "bound_at": 0, "running_since_at": 0}
    case.pod("p", "n", **told)
    case.pod("p", "n", seen=300, ready_since_at=300, **told)
    assert case.ledger()[US, "loading", "none"][0] == 300


def test_a_crash_loop_is_starting():
    case = Case()
    case.node("n")
    case.pod("p", "n", running_since_at=None, waiting_cause_name="crash_loop")
    assert case.ledger() == {(US, "starting", "crash_loop"): (3600, None)}


def test_a_restart_within_the_second_in_which_the_run_before_ended_runs_on():
    case = Case()
    case.node("n")
    case.pod("p", "n")
    case.pod("p", "n", seen=101, bound_at=0, running_since_at=100, stopped_at=100)
    assert case.ledger()[US, "unobserved", "no_series"][0] == 3600


def test_a_run_that_ends_in_its_first_second_leaves_the_pod_starting():
    case = Case()
    case.node("n")
    case.pod(
        "p", "n", seen=1, bound_at=0, running_since_at=0, stopped_at=0,
        waiting_cause_name="crash_loop",
    )  # fmt: skip
    found = case.ledger()
    assert found[US, "starting", "restart"][0] == 1
    assert found[US, "starting", "crash_loop"][0] == 3599


def test_a_gang_waits_for_the_member_that_is_not_placed():
    case = Case()
    case.node("n")
    gang = {"workload_key_uid": "w", "gang_name": "g", "gang_size_count": 2}
    case.pod("a", "n", **gang)
    case.pod("b", seen=600, created_at=600, **gang)
    found = case.ledger()
    assert found[US, "gang_wait", "member_not_created"][0] == 600
    assert found[US, "gang_wait", "member_unplaced"][0] == 3000


def test_a_member_that_ended_before_its_bind_by_another_clock_was_never_bound():
    case = Case()
    case.node("n")
    gang = {"gang_name": "g", "gang_size_count": 2, "workload_key_uid": "w"}
    case.pod("p", "n", seen=100, bound_at=300, created_at=250, change_name="DELETED", **gang)
    case.pod("q", seen=50, created_at=50, **gang)
    counts = "select min(bound_count), max(bound_count), min(created_count) from core.gang_spells"
    assert case.ask(counts) == [(0, 0, 1)]


def test_waits_tile_the_time_from_queued_to_started():
    case = Case()
    case.node("n")
    case.pod("p")
    case.pod("p", "n", seen=100, running_since_at=160)
    assert case.ask("select wait_name, wait_seconds, is_censored from core.waits order by 1") == [
        ("placement", 100, False),
        ("start", 60, False),
    ]


def test_an_end_that_was_heard_too_late_for_its_day_is_told_by_the_day_after():
    case = Case()
    case.node("n")
    case.pod("p", "n", change_name="CARRIED", bound_at=-HOUR, running_since_at=-HOUR)
    case.pod("p", "n", seen=7, bound_at=-HOUR, phase_name="Succeeded", finished_at=-1)
    assert case.ask("select outcome_name from core.attempts") == [("succeeded",)]
    assert case.ask("from core.holds") == []


def test_a_notice_is_no_rejected_row():
    case = Case()
    case.add(raw.REJECTIONS, source_ref="a", is_row_lost=True, rejected_count=2)
    case.add(raw.REJECTIONS, source_ref="b", is_row_lost=False, rejected_count=5)
    assert case.ask("select rejected_count from mart.fleet_coverage") == [(2,)]
