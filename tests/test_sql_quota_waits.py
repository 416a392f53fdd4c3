"""What an attempt waits for under Kueue, tiling queued to started, and which pods are of it."""

import pytest

from tests.kueue_case import Queued, job_pod, owner, owners
from tests.sql_case import Case


def waits(case):
    return case.ask(
        "select wait_name, wait_seconds, is_censored from core.waits"
        " order by attempt_id, begin_at, end_at,"
        " list_position(['dependency', 'quota', 'check', 'placement', 'start'], wait_name)"
    )


def attempts(case, columns):
    return case.ask(f"select {columns} from core.attempts order by queued_at, attempt_number")


def test_a_job_waits_to_be_queued_for_quota_for_checks_for_a_place_and_for_its_start():
    """Its Job is made at 0, its Workload at 2, quota at 60, admitted (a check) at 100; the pods are
    made at 101, bound at 120 and 150, run at 160 and 200: 2 + 58 + 40 + 50 + 50 = 200.
    """
    case = Case()
    case.node("n", gpus=2)
    owner(case, "Job", "j")
    Queued(case, pods=2, created_at=2).at(60, is_quota_reserved=True).at(100, is_admitted=True)
    job_pod(case, "a", "n", 101, 120, running_since_at=160)
    job_pod(case, "b", "n", 101, 150, running_since_at=200)
    assert waits(case) == [
        ("dependency", 2, False),
        ("quota", 58, False),
        ("check", 40, False),
        ("placement", 50, False),
        ("start", 50, False),
    ]
    shape = "gang_size_count, pod_count, gpu_shape_name, asked_micro_gpu, outcome_name"
    assert attempts(case, shape) == [(2, 2, "any x 1 x 2", 2_000_000, "alive")]
    assert case.ask("select distinct gang_source_name from core.pods") == [("Workload podSets",)]


def test_each_pod_belongs_to_the_attempt_in_whose_admission_it_was_made():
    """Quota 10 to 100 and 150 to the end. c is made at 100, in the second of the release, before
    anything else has quota: it is of the first. An attempt goes on while its quota does: b fails at
    160 and d takes its place at 300, in the same attempt.
    """
    case = Case()
    case.node("n", gpus=4)
    Queued(case).quota(10).evicted(90).released(100).quota(150)
    failed = {"phase_name": "Failed", "running_since_at": 152, "bound_at": 152}
    job_pod(case, "a", "n", 11, 20)
    job_pod(case, "a", "n", 11, 99, change_name="DELETED", bound_at=20, running_since_at=20)
    job_pod(case, "c", None, 100, 100)
    job_pod(case, "c", None, 100, 101, change_name="DELETED")
    job_pod(case, "b", "n", 151, 152)
    job_pod(case, "b", "n", 151, 160, finished_at=160, **failed)
    job_pod(case, "d", "n", 300, 305)
    assert case.ask("select pod_uid, attempt_number from core.pods order by 1") == [
        ("a", 1),
        ("b", 2),
        ("c", 1),
        ("d", 2),
    ]
    assert attempts(case, "attempt_number, outcome_name, pod_count") == [
        (1, "evicted", 2),
        (2, "alive", 2),
    ]
    assert waits(case) == [
        ("quota", 10, False),
        ("check", 0, False),
        ("placement", 10, False),
        ("start", 0, False),
        ("quota", 50, False),
        ("check", 0, False),
        ("placement", 2, False),
        ("start", 0, False),
    ]


def test_an_attempt_that_never_got_quota_has_a_row_without_pods_and_is_censored():
    case = Case()
    Queued(case).quota(10).evicted(90).released(100)
    assert attempts(case, "attempt_number, pod_count, outcome_name") == [
        (1, 0, "evicted"),
        (2, 0, "queued"),
    ]
    assert waits(case)[-1] == ("quota", 3500, True)
    assert case.ask(
        "select outcome_name, queue_wait_seconds, quota_wait_seconds from mart.attempt_waits"
        " order by queued_at"
    ) == [("left", 100, 10), ("waiting", 3500, 3500)]


def test_a_gang_that_was_never_whole_leaves_with_its_quota_whatever_pod_is_left():
    """One of two is bound at 20 and gone by 95; the other one still hangs on, unbound."""
    case = Case()
    case.node("n")
    Queued(case, pods=2).quota(10).evicted(90).released(100)
    job_pod(case, "a", "n", 11, 20)
    job_pod(case, "a", "n", 11, 95, change_name="DELETED", bound_at=20, running_since_at=20)
    job_pod(case, "b", None, 11, 11)
    assert attempts(case, "outcome_name, ended_at is null") == [
        ("evicted", False),
        ("queued", True),
    ]
    assert waits(case)[2:] == [("placement", 90, True), ("quota", 3500, True)]


def test_who_is_kept_inactive_waits_for_no_quota():
    """Made inactive, activated at 300, quota at 500: 300 of dependency, 200 of quota. Another one
    is deactivated after its eviction: it is not eligible since.
    """
    case = Case()
    Queued(case, "q", "j", is_active=False).at(300, is_active=True).quota(500)
    w = Queued(case, "r", "k").quota(10).at(90, is_active=False).evicted(90, "Deactivated")
    w.released(100)
    assert waits(case) == [
        ("dependency", 300, False),
        ("quota", 200, False),
        ("check", 0, False),
        ("placement", 3100, True),
        ("quota", 10, False),
        ("check", 0, False),
        ("placement", 90, True),
        ("dependency", 3500, True),
    ]


def test_a_check_that_never_says_yes_is_a_censored_wait_for_it():
    case = Case()
    Queued(case).at(60, is_quota_reserved=True)
    assert waits(case) == [("quota", 60, False), ("check", 3540, True)]


def test_only_the_first_attempt_waits_since_the_submission_that_an_annotation_states():
    case = Case()
    Queued(case, created_at=50, submitted_at=20).quota(60).evicted(90).released(100)
    assert [row[:2] for row in waits(case)] == [
        ("dependency", 30),
        ("quota", 10),
        ("check", 0),
        ("placement", 40),
        ("quota", 3500),
    ]


def test_a_workload_of_a_later_step_waits_since_it_is_there():
    """Two Jobs of one Argo Workflow made at 0: the first one's wait begins with that, the second
    one's, queued at 900, does not.
    """
    case = Case()
    owner(case, "Workflow", "flow")
    for name, made in (("j", 100), ("k", 900)):
        owner(case, "Job", name, above="Workflow/flow", created_at=made)
        Queued(case, f"q-{name}", name, created_at=made).quota(made + 10)
    assert case.ask(
        "select wait_name, wait_seconds from core.waits where wait_name <> 'placement'"
        " order by attempt_id, begin_at, wait_name desc"
    ) == [("dependency", 100), ("quota", 10), ("check", 0), ("quota", 10), ("check", 0)]
    assert case.ask("select distinct workload_key_uid from core.attempts") == [("flow",)]


def test_gated_pods_of_a_group_are_there_before_their_quota():
    """Plain pods made at 5, a moment before their Workload at 6; quota at 50. The later pod, made
    while the group waits for quota again, is of the second attempt.
    """
    case = Case()
    case.node("n", gpus=2)
    w = Queued(
        case, pods=2, created_at=6, owner_kind_name=None, owner_name=None, owner_uid=None,
        object_name="g", workload_kind_name="PodGroup", workload_key_uid="PodGroup/x/g",
        workload_name="g",
    )  # fmt: skip
    w.quota(50).evicted(90).released(100)
    group = {"workload_key_uid": "PodGroup/x/g", "gang_name": "g", "owners": [],
             "workload_kind_name": "PodGroup", "workload_name": "g"}  # fmt: skip
    for name in ("a", "b"):
        job_pod(case, name, "n", 5, 60, **group)
        job_pod(case, name, "n", 5, 95, change_name="DELETED", bound_at=60, **group)
    job_pod(case, "c", None, 120, 120, **group)
    assert case.ask("select pod_uid, attempt_number from core.pods order by 1") == [
        ("a", 1),
        ("b", 1),
        ("c", 2),
    ]


def test_a_replica_under_kueue_stays_a_replica_and_its_wait_for_quota_is_told():
    """Each pod of a Deployment has a Workload of its own; quota at 40 for the pod made at 0."""
    case = Case()
    case.node("n", gpus=2)
    service = {
        "workload_key_uid": "web", "workload_kind_name": "Deployment", "workload_name": "web",
        "is_service": True, "owners": owners("ReplicaSet/rs"),
    }  # fmt: skip
    for pod in ("a", "b"):
        Queued(case, f"q-{pod}", pod, owner_kind_name="Pod", is_service=True,
               workload_key_uid="web").quota(40)  # fmt: skip
        job_pod(case, pod, "n", 0, 50, **service)
    assert attempts(case, "is_service, pod_count, gang_size_count, outcome_name") == [
        (True, 1, 1, "alive"),
        (True, 1, 1, "alive"),
    ]
    once = [("quota", 40, False), ("check", 0, False), ("placement", 10, False),
            ("start", 0, False)]  # fmt: skip
    assert waits(case) == once * 2


def test_pods_of_a_workload_that_nothing_queues_are_sessions_as_before():
    """A Job without Kueue beside one with it."""
    case = Case()
    case.node("n", gpus=2)
    Queued(case).quota(10)
    job_pod(case, "a", "n", 11, 20)
    case.pod("b", "n", seen=300, created_at=200)
    assert case.ask("select pod_uid, workload_uid from core.pods order by 1") == [
        ("a", "q"),
        ("b", None),
    ]
    assert [row[:2] for row in waits(case)][:2] == [("placement", 100), ("start", 0)]


@pytest.mark.parametrize(("seen", "submitted"), [(True, 0), (False, 100)])
def test_a_suspended_job_without_kueue_waits_since_it_was_made(seen, submitted):
    """Its pods exist only since 100. A Job that was there before the record may have tried before:
    then its pods' creation counts.
    """
    case = Case()
    case.node("n")
    owner(case, "Job", "j", is_creation_seen=seen)
    job_pod(case, "a", "n", 100, 130)
    assert waits(case)[0] == ("placement", 130 - submitted, False)


def test_a_replica_is_not_queued_since_its_deployment_was_made():
    case = Case()
    case.node("n")
    owner(case, "Deployment", "web", is_service=True)
    owner(case, "ReplicaSet", "rs", above="Deployment/web", is_service=True)
    case.pod("a", "n", seen=700, created_at=690, owners=owners("ReplicaSet/rs"))
    assert waits(case)[0] == ("placement", 10, False)


def test_a_scale_up_waits_until_the_bind_and_pulls_images_after_it():
    """First unschedulable at 0, bound at 97; an init container's image, then the main one's until
    178: 97 of placement, and the pulls are of the start, which has not come.
    """
    case = Case(185)
    case.node("n", seen=60)
    case.pod("a", seen=0)
    case.pod("a", "n", seen=97, running_since_at=None, waiting_cause_name="init")
    case.pod("a", "n", seen=104, bound_at=97, running_since_at=None,
             waiting_cause_name="image_pull")  # fmt: skip
    assert waits(case) == [("placement", 97, False), ("start", 88, True)]
