"""Gangs that hold GPUs in vain: partial, in livelock, short of a member, or waiting for others.

Each with its members, its GPU-seconds and its cost. Deadlocks are in test_sql_deadlocks, single
pods in test_sql_pod_findings.
"""

import pytest

from tests.gang_case import found, gone, member, members, nodes, policy, two_gangs
from tests.kueue_case import Queued, job_pod
from tests.sql_case import Case


@pytest.mark.parametrize(("placed", "is_found"), [(120, False), (121, True)])
def test_a_gang_that_is_not_all_placed_for_long_is_partial(placed, is_found):
    """Two of three hold from 0 on, the third from `placed` on; until then it counts, then not."""
    case = Case()
    nodes(case, 3)
    for number in (0, 1):
        member(case, "a", number, f"n{number}")
    member(case, "a", 2, None, 0)
    member(case, "a", 2, "n2", placed)
    assert found(case, "gang_partial") == [("a", 0, 121, False, 1, 242)] * is_found
    policy(case, "gang_partial_seconds", 200)
    assert found(case, "gang_partial") == []


def test_members_that_have_succeeded_are_not_missing():
    case = Case()
    nodes(case, 3)
    for number in range(3):
        member(case, "a", number, f"n{number}")
    member(case, "a", 0, "n0", 60, begun=0, finished_at=60, phase_name="Succeeded")
    for name in ("gang_partial", "member_lost", "rendezvous_wait"):
        assert found(case, name) == []


def test_a_member_that_is_not_made_is_missing_too_and_who_is_asked_to_go_holds_for_nobody():
    case = Case()
    nodes(case, 2)
    member(case, "a", 0, "n0")
    member(case, "a", 1, None, 0)
    member(case, "a", 0, "n0", 1000, begun=0, deletion_asked_at=500)
    assert found(case, "gang_partial") == [("a", 0, 500, False, 2, 500)]
    [(text,)] = case.ask(
        "select evidence_text from mart.workload_findings where finding_name = 'gang_partial'"
    )
    assert text.endswith("; 1 pending since 2026-03-02 00:00:00 UTC, 1 not there")


def test_of_a_gang_that_stays_partial_who_is_asked_to_go_counts_until_then():
    """Two hold from 0; one is asked to go at 500 and goes at 600, the other stays: 500 + 3600."""
    case = Case()
    nodes(case, 2)
    for number in (0, 1):
        member(case, "a", number, f"n{number}")
    member(case, "a", 1, "n1", 500, begun=0, deletion_asked_at=500)
    gone(case, "a", 1, "n1", 0, 600, deletion_asked_at=500)
    assert found(case, "gang_partial") == [("a", 0, 3600, True, 2, 4100)]
    assert members(case, "gang_partial") == [
        ("a0", "n0", "running", 3600),
        ("a1", "n1", "lost", 500),
    ]


def test_what_a_member_held_that_is_over_is_not_among_what_the_others_hold():
    """The third fails at 500, and is replaced at 900."""
    case = Case()
    nodes(case, 3)
    for number in range(3):
        member(case, "a", number, f"n{number}")
    gone(case, "a", 2, "n2", 0, 500, phase_name="Failed", finished_at=500)
    member(case, "a", 3, "n2", 900, created_at=510)
    [(text,)] = case.ask("select evidence_text from mart.workload_findings")
    assert text.endswith("; the others hold 2 GPUs on n0, n1; lost: a2")


def test_a_gang_that_was_complete_the_day_before_waits_at_no_rendezvous_when_a_member_is_lost():
    """The third ran yesterday and was lost yesterday: this day does not know it."""
    case = Case()
    nodes(case, 2)
    told = {"change_name": "CARRIED", "created_at": -7200, "gang_complete_at": -3000}
    for number in (0, 1):
        member(case, "a", number, f"n{number}", begun=-3600, **told)
    assert found(case, "rendezvous_wait") == []
    assert [row[1:5] for row in found(case, "member_lost")] == [(0, 3600, True, 1)]


# Livelocks


def tried(case, times, last=None, **told):
    """Attempts of a gang of two that each hold one GPU for 60 s and are deleted."""
    for number in range(times):
        begin = 1000 * number
        at = {"created_at": begin, "size": 2, **told}
        member(case, "a", f"-{number}", "n0", begin, **at)
        gone(case, "a", f"-{number}", "n0", begin, begin + 60, **at)


def test_three_starts_of_a_day_that_are_given_up_are_a_livelock():
    """60 s of one GPU, three times, from 0 to 2060; twice is none."""
    case = Case()
    nodes(case, 2)
    case.price(3_600_000)
    tried(case, 3)
    assert found(case, "gang_livelock") == [("a", 0, 2060, False, None, 180)]
    query = "select finding_cost::double, evidence_text from mart.workload_findings"
    assert case.ask(query) == [
        (
            0.18,
            "3 starts given up since 2026-03-02 00:00:00 UTC, none complete: 3 pods of a gang of 2 "
            "held GPUs in them",
        )
    ]
    policy(case, "gang_livelock_count", 4)
    assert found(case, "gang_livelock") == []
    case = Case()
    nodes(case, 2)
    tried(case, 2)
    assert found(case, "gang_livelock") == []


def test_a_gang_that_was_complete_once_is_in_no_livelock():
    case = Case()
    nodes(case, 2)
    tried(case, 3)
    for number in (0, 1):
        member(case, "a", f"-late{number}", f"n{number}", 3000, size=2, created_at=3000)
    assert found(case, "gang_livelock") == []


@pytest.mark.parametrize(("reason", "is_found"), [("Failed", True), ("Succeeded", False)])
def test_a_gang_that_succeeded_at_last_is_in_no_livelock(reason, is_found):
    """All in one admission; its queue says how it finished."""
    case = Case()
    nodes(case, 2)
    queued = Queued(case, "q", job="j", pods=2).quota(0)
    for begin in (100, 1000, 2000):
        told = {"bound_at": begin, "running_since_at": begin}
        job_pod(case, f"p{begin}", "n0", begin, begin, **told)
        job_pod(case, f"p{begin}", "n0", begin, begin + 60, change_name="DELETED", **told)
    queued.finished(3000, reason)
    assert bool(found(case, "gang_livelock")) is is_found
    assert case.ask("select count(*) from core.gang_stalls where stall_name = 'start'") == [(3,)]


def test_a_gang_all_of_which_was_placed_and_that_failed_by_itself_is_in_no_livelock():
    """Its pods start one after the other, and each fails: that is a fault of its own."""
    case = Case()
    nodes(case, 2)
    for begin in (0, 1000, 2000):
        for number in (0, 1):
            at = {"created_at": begin, "size": 2, "running_since_at": None}
            name = f"-{begin}-{number}"
            member(case, "a", name, f"n{number}", begin, **at)
            member(case, "a", name, f"n{number}", begin + 60, begun=begin,
                   phase_name="Failed", finished_at=begin + 60, **at)  # fmt: skip
    assert case.ask("select count(*) from core.gang_stalls where stall_name = 'start'") == [(3,)]
    assert found(case, "gang_livelock") == []


# A member lost; the wait for the others


@pytest.mark.parametrize(("back", "is_found"), [(620, False), (621, True)])
def test_a_member_lost_while_the_others_stand_is_a_finding(back, is_found):
    """All three run from 0; one is gone at 500, and another in its place at `back`."""
    case = Case()
    nodes(case, 3)
    for number in range(3):
        member(case, "a", number, f"n{number}")
    gone(case, "a", 2, "n2", 0, 500)
    member(case, "a", 3, "n2", back, created_at=510)
    assert found(case, "member_lost") == [("a", 500, 621, False, 1, 242)] * is_found
    if is_found:
        assert members(case, "member_lost") == [
            ("a0", "n0", "running", 121),
            ("a1", "n1", "running", 121),
            ("a2", "n2", "lost", 0),
            ("a3", None, "pending", 0),
        ]


def late(first, last, seconds=3600):
    """Two of three run from `first` on, the third from `last` on; all are placed at 0."""
    case = Case(seconds)
    nodes(case, 3)
    for number in range(3):
        member(case, "a", number, f"n{number}", 0, running_since_at=None)
        begin = last if number == 2 else first
        if begin < seconds:
            member(case, "a", number, f"n{number}", begin, begun=0, running_since_at=begin)
    return case


def test_who_runs_before_the_others_waits_at_a_rendezvous():
    """From 50 to 351: 301 s of two GPUs; one second less is the policy's 300, and no finding."""
    assert found(late(50, 350), "rendezvous_wait") == []
    case = late(50, 351)
    assert found(case, "rendezvous_wait") == [("a", 50, 351, False, 1, 602)]
    assert members(case, "rendezvous_wait") == [
        ("a0", "n0", "running", 301),
        ("a1", "n1", "running", 301),
        ("a2", "n2", "starting", 0),
    ]
    policy(case, "rendezvous_wait_seconds", 301)
    assert found(case, "rendezvous_wait") == []


def test_a_rendezvous_that_never_comes_is_open():
    assert found(late(50, 9999, 1000), "rendezvous_wait") == [("a", 50, 1000, True, 1, 1900)]


# Money


def test_a_finding_costs_what_its_seconds_cost_when_the_price_changes():
    """890 s of 2 GPUs: 490 s at 3.60, from 600 on 400 s at 7.20: 0.98 + 1.60; without: unknown."""
    case = two_gangs()
    case.price(3_600_000)
    case.price(7_200_000, since=600)
    query = (
        "select finding_cost::double, unpriced_gpu_seconds::int from mart.workload_findings "
        "where finding_name = 'gang_deadlock'"
    )
    assert case.ask(query) == [(2.58, 0)] * 2
    assert two_gangs().ask(query) == [(None, 1780)] * 2


def test_no_finding_s_cost_is_more_than_the_ledger_has_of_its_holds():
    """Members of a finding add up to it; of an odd price what is cut off is never made up."""
    case = two_gangs()
    case.price(1_234_567)
    query = (
        "with m as (select finding_name, pod_uid, sum(gpu_seconds) as t, sum(member_cost) as c "
        "from mart.finding_members group by all), l as (select h.pod_uid, sum(gpu_seconds) as t, "
        "sum(ledger_cost) as c from core.ledger join core.holds as h using (hold_id) group by all) "
        "select count(*), count(*) filter (where m.t <= l.t and m.c <= l.c) "
        "from m join l using (pod_uid)"
    )
    [(all_of_them, right)] = case.ask(query)
    assert all_of_them == right >= 12
    sums = (
        "select (select sum(member_cost) from mart.finding_members) = "
        "(select sum(finding_cost) from mart.workload_findings), "
        "(select sum(gpu_seconds) from mart.finding_members) = "
        "(select sum(gpu_seconds) from mart.workload_findings)"
    )
    assert case.ask(sums) == [(True, True)]
