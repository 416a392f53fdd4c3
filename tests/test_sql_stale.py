"""Quota that is kept although no pod is left to use it: found, with its evidence, and no more."""

from models import raw
from tests.kueue_case import Queued, job_pod
from tests.sql_case import MIDNIGHT, Case

ZERO = int(MIDNIGHT.timestamp())
FOUND = (
    f"select object_kind_name, object_uid, epoch(begin_at)::bigint - {ZERO}, "
    f"epoch(end_at)::bigint - {ZERO}, is_ended, asked_micro_gpu, pod_count "
    "from core.stale_reservations order by 1, 2"
)


def ended(case, name, at, **told):
    job_pod(case, name, "n", 11, 20, **told)
    job_pod(case, name, "n", 11, at, bound_at=20, running_since_at=20, finished_at=at,
            phase_name="Succeeded", **told)  # fmt: skip


def policy(case, seconds):
    case.add(raw.POLICIES, policy_name="stale_reservation_seconds", value_number=seconds)


def test_admitted_reserved_and_evicted_at_once_with_no_pod_is_a_stale_reservation():
    """Evicted at 1000, its pod gone at 990; the quota of 8 is never given back. The pod holds
    nothing any more: the ledger has its time until 990 only, and the class is its own.
    """
    case = Case()
    case.node("n")
    asked = [{"resource_name": "nvidia.com/gpu", "request_count": 8}]
    w = Queued(case, requests=asked).quota(10)
    w.evicted(1000, "PodsReadyTimeout", requeue_count=1, requeue_at=1100)
    ended(case, "a", 990)
    assert case.ask(FOUND) == [("Workload", "q", 1000, 3600, False, 8_000_000, 1)]
    why = "select eviction_reason_name, last_pod_ended_at is not null from core.stale_reservations"
    assert case.ask(why) == [("PodsReadyTimeout", True)]
    assert case.booked() == {"a": 970.0}
    assert case.ask("select outcome_name from core.attempts") == [("alive",)]


def test_quota_is_not_stale_while_a_pod_is_there_nor_soon_after_nor_once_it_is_given_back():
    """One has a pod; one got its quota 500 s before the end; one finished; one was released."""
    case = Case()
    case.node("n", gpus=2)
    Queued(case, "q").quota(10)
    job_pod(case, "a", "n", 11, 20)
    Queued(case, "r", "k").quota(3100)
    Queued(case, "s", "l").quota(10).finished(20)
    Queued(case, "t", "m").quota(10).evicted(20).released(300)
    assert case.ask(FOUND) == []


def test_how_long_is_stale_is_the_policy_s():
    case = Case()
    policy(case, 200)
    Queued(case, "t", "m").quota(10).evicted(20).released(300)
    assert case.ask(FOUND) == [("Workload", "t", 20, 300, True, 1_000_000, 0)]


def test_a_pod_group_of_a_job_that_is_done_still_counts_against_its_queue():
    """Both its pods have succeeded by 600; it stays Running: 3000 s of 2 GPUs. A group that says
    Completed counts no more.
    """
    case = Case()
    case.node("n", gpus=3)
    for group, phase in (("g", "Running"), ("h", "Completed")):
        case.add(
            raw.POD_GROUP_VERSIONS, change_name="MODIFIED", pod_group_uid=group, labels_json="{}",
            namespace_name="x", pod_group_name=group, min_member_count=1, phase_name=phase,
            queue_name="vq", workload_key_uid=group, workload_class="training",
        )  # fmt: skip
    ended(case, "a", 500, gang_name="g", workload_key_uid="g")
    ended(case, "b", 600, gang_name="g", workload_key_uid="g")
    ended(case, "c", 600, gang_name="h", workload_key_uid="h")
    assert case.ask(FOUND) == [("PodGroup", "g", 600, 3600, False, 2_000_000, 2)]
    blocked = "select sum(gpu_seconds) from core.ledger where state_name = 'unavailable'"
    assert case.ask(blocked) == [(None,)]  # the queue's account, not the nodes, is full
