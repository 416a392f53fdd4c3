"""Pods that hold GPUs in vain: slow pulls, crash loops, endless ends, nodes gone, stale quota.

Of gangs: test_sql_gang_findings.
"""

import pytest

from models import raw
from tests.kueue_case import Queued
from tests.sql_case import MIDNIGHT, Case
from tests.told_events import tell

ZERO = int(MIDNIGHT.timestamp())
IMAGE = "r.io/a:1"
FOUND = (
    f"select subject_text, epoch(begin_at)::bigint - {ZERO}, epoch(end_at)::bigint - {ZERO}, "
    "is_open, member_count, gpu_seconds::int, beside_gpu_seconds::int "
    "from mart.workload_findings where finding_name = '{}' order by all"
)


def found(case, name):
    """Of each finding: subject, begin, end, whether open, pods, GPU-seconds, those beside."""
    return case.ask(FOUND.format(name))


def text(case, name):
    query = f"select evidence_text from mart.workload_findings where finding_name = '{name}'"
    [(words,)] = case.ask(query)
    return words


def policy(case, name, value):
    case.add(raw.POLICIES, policy_name=name, value_number=value)


def pull(case, pod, begin, end, words="", image=IMAGE):
    """The kubelet of node n1 tells of a pull of it; `end` None: it has not ended."""
    told = {"object_uid": pod, "object_name": pod, "component_name": "kubelet",
            "container_name": "main", "host_name": "n1"}  # fmt: skip
    tell(case, f'Pulling image "{image}"', begin, reason_name="Pulling", **told)
    if end is not None:
        done = f'Successfully pulled image "{image}" {words}'
        tell(case, done, end, reason_name="Pulled", **told)


def starting(case, pod, begun=None):
    """Bound to n1 at 5; its container begins at `begun`."""
    case.pod(pod, "n1", seen=5, running_since_at=None)
    if begun is not None:
        case.pod(pod, "n1", seen=begun, bound_at=5)


# Pulls


def test_minutes_in_the_queue_of_a_node_are_a_slow_pull_that_says_so():
    """Three that took 3 s after half an hour in the queue, and one that took 118 s by itself."""
    case = Case()
    case.node("n1", gpus=4)
    case.price(3_600_000)
    waits = {"a": (2.873, 1907.355), "b": (2.657, 1886.613), "c": (3.414, 1889.011)}
    for pod, (alone, total) in waits.items():
        starting(case, pod, 10 + int(total))
        minutes, seconds = divmod(total, 60)
        words = f"in {alone}s ({int(minutes)}m{seconds:.3f}s including waiting)"
        pull(case, pod, 10, 10 + int(total), words)
    starting(case, "d", 128)
    pull(case, "d", 10, 128, "in 1m57.875s (1m57.875s including waiting)", "r.io/d:1")
    held = 1907 + 1886 + 1889
    assert found(case, "slow_image_pull") == [(f"{IMAGE} on n1", 10, 1917, False, 3, held, 0)]
    assert text(case, "slow_image_pull") == (
        "3 pods with 3 GPUs on n1 waited, since 2026-03-02 00:00:10 UTC, for 3 pulls of 1907 s at "
        "most, in all 5674 s in the queue of the node and 9 s pulling"
    )
    query = "select sum(finding_cost)::double from mart.workload_findings"
    assert case.ask(query) == [(held / 1000,)]


@pytest.mark.parametrize(("seconds", "is_found"), [(300, False), (301, True)])
def test_a_pull_is_slow_from_more_than_the_policy_says(seconds, is_found):
    case = Case()
    case.node("n1")
    starting(case, "a", 10 + seconds)
    pull(case, "a", 10, 10 + seconds)
    assert bool(found(case, "slow_image_pull")) is is_found
    policy(case, "slow_image_pull_seconds", 100)
    assert found(case, "slow_image_pull") == [
        (f"{IMAGE} on n1", 10, 10 + seconds, False, 1, seconds, 0)
    ]


def test_two_pulls_of_a_pod_at_once_count_its_seconds_once():
    case = Case()
    case.node("n1")
    starting(case, "a", 1000)
    pull(case, "a", 10, 500)
    pull(case, "a", 20, 900, image="r.io/b:1")
    assert found(case, "slow_image_pull") == [
        (f"{IMAGE} on n1", 10, 500, False, 1, 490, 0),
        ("r.io/b:1 on n1", 500, 900, False, 1, 400, 0),
    ]


def test_a_pull_that_has_not_ended_is_open_and_one_for_no_gpu_is_no_finding():
    case = Case()
    case.node("n1")
    starting(case, "a")
    pull(case, "a", 10, None)
    case.pod("cpu", "n1", seen=5, requests=[], running_since_at=None)
    pull(case, "cpu", 10, 1000)
    assert found(case, "slow_image_pull") == [(f"{IMAGE} on n1", 10, 3600, True, 1, 3590, 0)]
    assert text(case, "slow_image_pull").endswith("1 pull of unknown length, not all done")


@pytest.mark.parametrize(("back", "end"), [(None, 3600), (2000, 2000)])
def test_a_pull_after_a_restart_that_does_not_end_is_slow_until_it_runs_again(back, end):
    """It ran at 20, its container ended at 500, and its image is asked for again at 510."""
    case = Case()
    case.node("n1")
    starting(case, "a", 20)
    again = {"bound_at": 5, "first_started_at": 20, "stopped_at": 500, "restart_count": 1}
    case.pod("a", "n1", seen=500, running_since_at=None, **again)
    if back:
        case.pod("a", "n1", seen=back, running_since_at=back, **again)
    pull(case, "a", 510, None)
    held = end - 510
    assert found(case, "slow_image_pull") == [
        (f"{IMAGE} on n1", 510, end, back is None, 1, held, 0)
    ]


# Crash loops


def crashing(until):
    """It runs for 10 s, crashes, and is kept waiting until it is deleted."""
    case = Case()
    case.node("n1")
    case.pod("a", "n1", seen=0)
    waits = {"running_since_at": 0, "stopped_at": 10, "waiting_cause_name": "crash_loop"}
    case.pod("a", "n1", seen=10, bound_at=0, restart_count=1, **waits)
    case.pod("a", "n1", seen=until, bound_at=0, restart_count=1, change_name="DELETED", **waits)
    return case


def test_a_crash_loop_that_holds_a_gpu_is_a_finding():
    """The time between tries, from 10 on; 300 s are the policy's, and none."""
    assert found(crashing(310), "crash_loop") == []
    case = crashing(311)
    [(subject, *rest)] = found(case, "crash_loop")
    assert subject.startswith("a@") and rest == [10, 311, False, 1, 301, 0]
    members = "select pod_name, node_name, member_state_name from mart.finding_members"
    assert case.ask(members) == [("a", "n1", "crash_looping")]
    policy(case, "crash_loop_seconds", 301)
    assert found(case, "crash_loop") == []


# Pods that do not go


@pytest.mark.parametrize(("deleted", "is_found"), [(700, False), (701, True)])
def test_a_pod_that_holds_a_gpu_long_after_its_deletion_was_asked_for_is_stuck(deleted, is_found):
    case = Case()
    case.node("n1")
    case.pod("a", "n1", seen=0)
    case.pod("a", "n1", seen=100, bound_at=0, running_since_at=0, deletion_asked_at=100)
    case.pod("a", "n1", seen=deleted, bound_at=0, running_since_at=0, deletion_asked_at=100,
             change_name="DELETED")  # fmt: skip
    assert found(case, "stuck_terminating") == [("a", 100, 701, False, 1, 601, 0)] * is_found
    if is_found:
        assert text(case, "stuck_terminating").startswith("a holds 1 GPU on n1 601 s after")


def test_a_pod_whose_containers_have_ended_is_in_nobody_s_way():
    """Something keeps the object: the GPU is free."""
    case = Case()
    case.node("n1")
    case.pod("a", "n1", seen=0)
    case.pod("a", "n1", seen=100, bound_at=0, running_since_at=0, deletion_asked_at=100,
             finished_at=130, phase_name="Failed")  # fmt: skip
    assert found(case, "stuck_terminating") == []


# Nodes that are gone


@pytest.mark.parametrize(("deleted", "is_found"), [(1030, False), (1031, True)])
def test_a_pod_on_a_node_that_is_gone_is_found_beside_the_ledger(deleted, is_found):
    case = Case()
    case.node("n1")
    case.node("n1", seen=1000, change_name="DELETED")
    case.price(3_600_000)
    case.pod("a", "n1", seen=0)
    case.pod("a", "n1", seen=deleted, bound_at=0, running_since_at=0, change_name="DELETED")
    assert found(case, "hold_on_gone_node") == [("n1", 1000, 1031, False, 1, 0, 31)] * is_found
    cost = "select finding_cost::double from mart.workload_findings"
    assert case.ask(cost) == [(0.0,)] * is_found


# Quota


def test_a_stale_reservation_is_a_finding_that_costs_nothing():
    case = Case()
    case.node("n1", gpus=8)
    case.price(3_600_000)
    asked = [{"resource_name": "nvidia.com/gpu", "request_count": 8}]
    Queued(case, requests=asked).quota(10)
    assert found(case, "stale_reservation") == [("q", 10, 3600, True, 0, 0, 8 * 3590)]
    assert text(case, "stale_reservation") == (
        "Workload x/job-q keeps quota for 8 GPUs of cq with no pod left since "
        "2026-03-02 00:00:10 UTC, 3590 s"
    )


def test_what_goes_well_is_no_finding():
    case = Case()
    case.node("n1", gpus=2)
    case.pod("a", "n1", seen=0)
    case.pod("a", "n1", seen=900, bound_at=0, running_since_at=0, finished_at=900,
             phase_name="Succeeded")  # fmt: skip
    starting(case, "b", 20)
    pull(case, "b", 6, 19, "in 13s (13s including waiting)")
    assert case.ask("select count(*) from mart.workload_findings") == [(0,)]
    assert case.ask("select count(*) from mart.finding_members") == [(0,)]
