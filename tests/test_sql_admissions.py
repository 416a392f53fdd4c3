"""Quota attempts of Kueue Workloads, from their watched history, counted by hand.

What an attempt waits for is in test_sql_quota_waits; whose the pods are, in test_sql_owners.
"""

import pytest

from models import raw
from tests.kueue_case import Queued, job_pod
from tests.sql_case import MIDNIGHT, Case


def seconds(*columns: str) -> str:
    zero = int(MIDNIGHT.timestamp())
    return ", ".join(f"epoch({column})::bigint - {zero}" for column in columns)


def tries(case, *columns):
    told = seconds(*(columns or ("queued_at", "quota_reserved_at", "quota_released_at")))
    return case.ask(
        f"select attempt_number, {told} from core.admissions order by workload_uid, attempt_number"
    )


def flags(case):
    return case.ask(
        "select attempt_number, is_queued_known, is_end_known from core.admissions order by 1"
    )


def test_two_admissions_with_a_back_off_between_are_two_attempts():
    """Queued at 0, quota at 1, evicted (pods not ready) and released at 61, quota again at 121 and
    held until the hour ends at 185: held 60 + 64, waited 1 + 60.
    """
    case = Case(185)
    w = Queued(case).quota(1).evicted(61, "PodsReadyTimeout").released(61)
    w.at(61, requeue_count=1, requeue_at=121).quota(121)
    assert tries(case) == [(1, 0, 1, 61), (2, 61, 121, None)]
    assert case.ask(
        "select eviction_reason_name, sum(date_diff('second', queued_at, quota_reserved_at))::int,"
        " sum(date_diff('second', quota_reserved_at, coalesce(quota_released_at,"
        " timestamptz '2026-03-02 00:03:05+00')))::int from core.admissions group by all order by 2"
    ) == [("PodsReadyTimeout", 1, 60), (None, 60, 64)]


def test_a_second_preemption_does_not_wait_since_the_first_requeue():
    """Kueue leaves Requeued's time at 100 as it stays True; by it, the last wait would be 210."""
    case = Case()
    w = Queued(case).quota(10).evicted(100).released(100, is_requeued=True)
    w.quota(150).evicted(300).released(300, requeued_at=100).quota(310)
    assert tries(case) == [(1, 0, 10, 100), (2, 100, 150, 300), (3, 300, 310, None)]


def test_quota_is_kept_until_it_is_released_not_until_the_eviction():
    case = Case()
    Queued(case).quota(10).evicted(100, preemptor_uid="p", preemptor_job_uid="pj").released(130)
    assert tries(case, "evicted_at", "quota_released_at") == [(1, 100, 130), (2, None, None)]
    asked = "select preemptor_uid, preemptor_job_uid from core.admissions where attempt_number = 1"
    assert case.ask(asked) == [("p", "pj")]


def test_an_eviction_seen_only_with_the_release_is_of_the_attempt_that_ended():
    case = Case()
    Queued(case).quota(10).released(130, is_evicted=True, evicted_at=100)
    assert tries(case, "evicted_at", "ended_at") == [(1, 100, 130), (2, None, None)]


def test_two_evictions_in_one_second_are_two():
    case = Case()
    w = Queued(case).quota(50).evicted(50).released(50)
    w.quota(50.3, quota_reserved_at=50).evicted(50.5, evicted_at=50)
    w.released(50.9, quota_reserved_at=50)
    assert tries(case, "queued_at", "evicted_at", "ended_at") == [
        (1, 0, 50, 50),
        (2, 50, 50, 50),
        (3, 50, None, None),
    ]
    assert case.ask("select count(distinct attempt_id) from core.admissions") == [(3,)]


def test_an_eviction_that_an_admission_overwrites_ends_no_attempt():
    """Evicted is there at 60 and gone at 61; the quota is never released and the pods run on."""
    case = Case()
    case.node("n")
    w = Queued(case).quota(60).at(60.1, is_evicted=True, evicted_at=60)
    w.at(61, is_evicted=None, evicted_at=None).finished(500)
    job_pod(case, "a", "n", 62, 70)
    job_pod(case, "a", "n", 62, 480, phase_name="Succeeded", finished_at=480, bound_at=70,
            running_since_at=70)  # fmt: skip
    assert tries(case, "evicted_at", "ended_at") == [(1, 60, 500)]
    assert case.ask("select outcome_name from core.attempts") == [("succeeded",)]


def test_a_finished_workload_has_given_its_quota_back_although_it_is_still_reserved():
    case = Case()
    Queued(case).quota(10).finished(700).at(900).released(1000)
    assert tries(case, "quota_reserved_at", "finished_at", "ended_at") == [(1, 10, 700, 700)]


def test_a_deleted_workload_that_never_got_quota_has_left():
    case = Case()
    Queued(case, created_at=20).at(30, is_quota_reserved=False).at(80, change_name="DELETED")
    assert tries(case, "quota_reserved_at", "ended_at") == [(1, None, 80)]
    assert case.ask("select outcome_name, pod_count from core.attempts") == [("withdrawn", 0)]


def test_a_release_between_two_versions_is_not_invented_but_marked():
    """Quota since 10, seen at 40; at 200 it has quota since 180: it queued again at 40 or later."""
    case = Case()
    Queued(case).quota(10).at(40).at(200, quota_reserved_at=180, eviction_count=1)
    assert tries(case) == [(1, 0, 10, None), (2, 40, 180, None)]
    assert flags(case) == [(1, True, False), (2, False, True)]


def test_quota_got_and_lost_between_two_versions_is_not_invented_but_marked():
    """Waiting since 10, at 200 waiting since 150: it had quota in between, when is not known."""
    case = Case()
    Queued(case).at(10, is_quota_reserved=False).at(
        200, is_quota_reserved=False, quota_reserved_at=150, eviction_count=1
    )
    assert tries(case) == [(1, 0, None, None), (2, 150, None, None)]
    assert flags(case) == [(1, True, False), (2, True, True)]


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"is_quota_reserved": False, "quota_reserved_at": -40}, (4, -40, None, True)),
        ({"is_quota_reserved": True, "quota_reserved_at": -40}, (4, -40, -40, False)),
        ({"is_quota_reserved": True, "quota_reserved_at": -40, "is_evicted": True,
          "evicted_at": -5}, (3, -40, -40, False)),
    ],
)  # fmt: skip
def test_attempts_before_the_record_began_are_counted_and_their_waits_not_made_up(told, expected):
    """Three evictions are told. Waiting: since the last release. With quota: since when it queued
    is not known. With an eviction under way, that one is of the attempt that has the quota.
    """
    case = Case()
    seen = {"created_at": -500, "eviction_count": 3, "change_name": "LISTED"}
    case.add(raw.WORKLOAD_VERSIONS, **Queued(Case()).told | told | seen)
    number, queued, reserved, is_known = expected
    evicted = told.get("evicted_at")
    expected = [(number, queued, reserved, evicted)]
    assert tries(case, "queued_at", "quota_reserved_at", "evicted_at") == expected
    assert flags(case) == [(number, is_known, True)]


def test_the_queue_of_one_never_admitted_is_where_others_of_its_local_queue_went():
    case = Case()
    Queued(case, "q", "j").quota(10)
    Queued(case, "r", "k").at(10, is_quota_reserved=False)
    assert case.ask("select distinct queue_name from core.attempts") == [("cq",)]


def test_what_can_never_fit_stays_what_it_says_and_waits_since_it_was_created():
    """Both classes of shortage, "unused" and "maximum", are kept word for word."""
    text = (
        "couldn't assign flavors to pod set master: insufficient unused quota for nvidia.com/gpu "
        "in flavor a, 8 more needed; couldn't assign flavors to pod set worker: insufficient quota "
        "for nvidia.com/gpu in flavor a, request > maximum capacity (16 > 8)"
    )
    case = Case()
    Queued(case, created_at=100).at(
        100, is_quota_reserved=False, pending_reason_name="Pending", pending_text=text
    )
    found = case.ask("select pending_reason_name, pending_text from core.admissions")
    assert found == [("Pending", text)]
    assert case.ask(
        f"select {seconds('begin_at')}, wait_seconds, is_censored from core.waits"
        " where wait_name = 'quota'"
    ) == [(100, 3500, True)]
