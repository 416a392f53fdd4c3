"""What an attempt waits for, tiling the time from queued to started, counted by hand.

Percentiles over many attempts are in test_sql_queue_waits.
"""

from models import raw
from tests.sql_case import Case

GANG = {"workload_key_uid": "w", "gang_name": "g"}
END = 3600


def group(case, phase, seen=0, size=2, **told):
    case.add(raw.POD_GROUP_VERSIONS, **{
        "observed_at": seen, "change_name": "MODIFIED", "pod_group_uid": "g", "labels_json": "{}",
        "pod_group_name": "g", "min_member_count": size, "phase_name": phase, "queue_name": "q",
        "workload_key_uid": "w", "workload_class": "training", **told,
    })  # fmt: skip


def waits(case, columns="wait_name, wait_seconds, is_censored"):
    return case.ask(f"select {columns} from core.waits order by attempt_id, begin_at, end_at")


def outcomes(case):
    return case.ask(
        "select outcome_name, queue_wait_seconds, quota_wait_seconds, start_wait_seconds, "
        "waited_gpu_seconds from mart.attempt_waits order by attempt_id"
    )


def test_a_gang_waits_for_quota_then_for_the_last_bind_and_then_for_the_last_start():
    """Queued with its PodGroup at 0, Inqueue at 300; pods are created at 310, bound at 400 and 500,
    run at 450 and 600: 300 + 200 + 100 = 600. 2 GPUs x 500 s until placed = 1000 GPU-seconds.
    """
    case = Case()
    case.node("n", gpus=2)
    group(case, "Pending")
    group(case, "Inqueue", seen=300)
    group(case, "Running", seen=600)
    case.pod("a", "n", seen=400, created_at=310, running_since_at=450, **GANG)
    case.pod("b", "n", seen=500, created_at=310, running_since_at=600, **GANG)
    assert waits(case) == [
        ("quota", 300, False),
        ("placement", 200, False),
        ("start", 100, False),
    ]
    assert outcomes(case) == [("served", 500, 300, 100, 1000)]


def test_an_admission_first_observed_after_the_last_bind_is_not_one():
    """Bound at 400, Inqueue seen at 450: all of it was placement."""
    case = Case()
    case.node("n")
    group(case, "Pending", size=1)
    group(case, "Inqueue", seen=450, size=1)
    case.pod("a", "n", seen=400, **GANG)
    assert waits(case) == [("placement", 400, False), ("start", 0, False)]


def test_a_gang_that_is_not_admitted_waits_for_quota_to_the_end():
    case = Case()
    group(case, "Pending", seen=600, created_at=600)
    case.pod("a", seen=700, created_at=700, **GANG)
    assert waits(case) == [("quota", 3000, True)]
    assert outcomes(case) == [("waiting", 3000, 3000, None, 3000)]


def test_a_pod_group_without_pods_waits_too_and_has_left_once_deleted():
    """How many GPUs it asks for is not known: no GPU-hours are counted."""
    case = Case()
    group(case, "Pending", created_at=100)
    group(case, "Pending", seen=500, created_at=100, change_name="DELETED")
    assert waits(case) == [("quota", 400, True)]
    assert outcomes(case) == [("left", 400, 400, None, 0)]


def test_an_admitted_gang_that_is_not_placed_waits_for_placement_to_the_end():
    """Admitted at 300, one of two bound at 400: 300 of quota, and 3300 of placement so far."""
    case = Case()
    case.node("n")
    group(case, "Pending")
    group(case, "Inqueue", seen=300)
    case.pod("a", "n", seen=400, created_at=310, **GANG)
    case.pod("b", seen=310, created_at=310, **GANG)
    assert waits(case) == [("quota", 300, False), ("placement", 3300, True)]


def test_who_waits_still_and_who_has_left_are_censored_and_told_apart():
    """a: since 600, 3000 so far. b: from 600 to 1600, deleted. c: asked to go at 900, which a
    finalizer delays beyond the hour: it has left at 900, after 300.
    """
    case = Case()
    for pod in "abc":
        case.pod(pod, seen=600, created_at=600)
    case.pod("b", seen=1600, created_at=600, change_name="DELETED")
    case.pod("c", seen=930, created_at=600, deletion_asked_at=900)
    assert waits(case) == [
        ("placement", 3000, True),
        ("placement", 1000, True),
        ("placement", 300, True),
    ]
    assert [row[:2] for row in outcomes(case)] == [("waiting", 3000), ("left", 1000), ("left", 300)]


def test_a_placed_pod_that_never_runs_is_served_and_its_start_is_censored():
    """Bound at 100 and failed at 700: a start of at least 600. Bound at 200: 3400 so far."""
    case = Case()
    case.node("n", gpus=2)
    case.pod("a", "n", seen=100, running_since_at=None)
    case.pod("a", "n", seen=700, bound_at=100, running_since_at=None, finished_at=700,
             phase_name="Failed")  # fmt: skip
    case.pod("b", "n", seen=200, running_since_at=None)
    assert waits(case) == [
        ("placement", 100, False),
        ("start", 600, True),
        ("placement", 200, False),
        ("start", 3400, True),
    ]
    assert [row[:4] for row in outcomes(case)] == [
        ("served", 100, 0, None),
        ("served", 200, 0, None),
    ]


def test_a_source_that_tells_no_container_starts_has_no_wait_for_them():
    case = Case()
    case.node("n")
    case.pod("a", "n", seen=100, running_since_at=None, is_start_known=False)
    assert waits(case) == [("placement", 100, False)]


def test_the_queue_is_entered_at_the_stated_submission_and_by_a_retry_when_it_is_created():
    """Submitted at 50, created at 100, bound at 300: 250. It ends at 400; its retry is created at
    500 (another attempt, to which the submission says nothing) and bound at 600: 100.
    """
    case = Case()
    case.node("n")
    job = {"workload_key_uid": "w", "submitted_at": 50}
    case.pod("a", "n", seen=300, created_at=100, **job)
    case.pod("a", "n", seen=400, created_at=100, bound_at=300, running_since_at=300,
             finished_at=400, phase_name="Failed", **job)  # fmt: skip
    case.pod("b", "n", seen=600, created_at=500, **job)
    found = waits(case, "wait_name, epoch(begin_at)::bigint % 86400, wait_seconds")
    assert [row for row in found if row[0] == "placement"] == [
        ("placement", 50, 250),
        ("placement", 500, 100),
    ]


def test_a_pod_created_while_another_of_its_workload_lives_belongs_to_the_same_attempt():
    """A gang of 1 with 2 pods: the first bind and the first run count, of whichever pod."""
    case = Case()
    case.node("n", gpus=2)
    job = {"workload_key_uid": "w"}
    case.pod("a", seen=0, **job)
    case.pod("b", "n", seen=200, created_at=100, running_since_at=260, **job)
    case.pod("a", "n", seen=400, running_since_at=400, **job)
    assert waits(case) == [("placement", 200, False), ("start", 60, False)]


def test_each_replica_of_a_service_is_an_attempt_of_its_own():
    case = Case()
    case.node("n", gpus=2)
    service = {"workload_key_uid": "w", "is_service": True}
    case.pod("a", "n", seen=100, **service)
    case.pod("b", "n", seen=300, created_at=200, **service)
    found = [row for row in waits(case) if row[0] == "placement"]
    assert found == [("placement", 100, False), ("placement", 100, False)]


def test_a_refused_bind_ends_the_wait_although_it_holds_nothing():
    case = Case()
    case.node("n")
    refused = {"reason_name": "UnexpectedAdmissionError", "phase_name": "Failed"}
    case.pod("a", "n", seen=100, running_since_at=None, finished_at=100, **refused)
    assert waits(case)[0] == ("placement", 100, False)
    assert case.ask("select count(*) from core.holds") == [(0,)]


def test_a_step_is_never_before_the_one_before_it():
    """Clocks differ: bound at 90, but created at 100; runs at 80: placed and started at 100."""
    case = Case()
    case.node("n")
    case.pod("a", "n", seen=100, created_at=100, bound_at=90, running_since_at=80)
    assert waits(case) == [("placement", 0, False), ("start", 0, False)]


def test_an_attempt_of_which_one_start_is_not_known_has_no_start():
    """Of two tries at once one is known to run at 500; the other, bound at 100, at some time."""
    case = Case()
    case.node("n", gpus=2)
    one = {"workload_key_uid": "w", "created_at": 50}
    case.pod("a", "n", seen=100, bound_at=100, running_since_at=None, is_start_known=False, **one)
    case.pod("b", "n", seen=500, bound_at=450, running_since_at=500, **one)
    assert waits(case) == [("placement", 50, False)]
    assert case.ask("select started_at is null from core.attempts") == [(True,)]
