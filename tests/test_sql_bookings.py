"""Who is booked where more is held than there is, and why the rest is not, counted by hand.

How large a share is belongs to test_sql_shares. Holds = booked + unbooked, to the last second.
"""

from models import raw
from tests.sql_case import HOUR, Case


def asks(case, name, node_name, count, seen=0, **told):
    request = [{"resource_name": "milli-gpu", "request_count": count}]
    case.pod(name, node_name, seen=seen, requests=request, **told)


def unbooked(case):
    """Pod and reason -> GPU-seconds."""
    return {
        (pod, reason): float(time)
        for pod, reason, time in case.ask(
            "select split_part(hold_id, '/', 1), reason_name, sum(gpu_seconds) "
            "from core.unbooked group by all"
        )
    }


def held(case):
    """Pod -> GPU-seconds of its holds."""
    return dict(
        case.ask(
            "select split_part(hold_id, '/', 1), sum(share_micro_gpu * "
            "date_diff('second', begin_at, end_at)) / 1e6 from core.hold_shares group by 1"
        )
    )


def balances(case):
    """Whether of each pod the holds are what is booked and what is not."""
    parts = dict(case.booked())
    for (pod, _), time in unbooked(case).items():
        parts[pod] = parts.get(pod, 0) + time
    return parts == held(case)


def test_a_hold_that_no_longer_fits_keeps_what_is_left_and_gets_all_back():
    """4 GPUs: early asks 3, late asks 2 from 1000 to 2000. Meanwhile late has its 2, early 2 of 3.

    early: 3 x 2600 + 2 x 1000 = 9800, unbooked 1 x 1000. late: 2 x 1000.
    """
    case = Case()
    case.node("n", gpus=4)
    asks(case, "early", "n", 3000)
    asks(case, "late", "n", 2000, seen=1000)
    asks(case, "late", "n", 2000, seen=2000, bound_at=1000, change_name="DELETED")
    assert case.booked() == {"early": 9800, "late": 2000}
    assert unbooked(case) == {("early", "overlap"): 1000}
    assert balances(case)


def test_of_many_holds_the_latest_binds_come_first_up_to_what_is_installed():
    """1 GPU: a 0.5 since 0, b 0.4 since 600, c 0.3 since 1200. From 1200 on: c 0.3, b 0.4, a 0.3.

    a: 0.5 x 1200 + 0.3 x 2400 = 1320, unbooked 0.2 x 2400 = 480. b: 0.4 x 3000. c: 0.3 x 2400.
    """
    case = Case()
    case.node("n")
    for number, (pod, milli) in enumerate((("a", 500), ("b", 400), ("c", 300))):
        asks(case, pod, "n", milli, seen=600 * number)
    assert case.booked() == {"a": 1320, "b": 1200, "c": 720}
    assert unbooked(case) == {("a", "overlap"): 480}
    assert balances(case)
    assert case.ask("select sum(gpu_seconds), min(gpu_seconds) > 0 from core.ledger") == [
        (HOUR, True)
    ]


def test_of_equal_binds_the_greater_hold_is_booked_first():
    case = Case()
    case.node("n")
    for pod in ("b", "c", "a"):
        asks(case, pod, "n", 1000)
    assert case.booked() == {"c": HOUR, "b": 0, "a": 0}
    assert unbooked(case) == {("a", "overlap"): HOUR, ("b", "overlap"): HOUR}


def test_installed_counts_not_what_can_be_scheduled():
    """A held GPU that is not allocatable any more, on a cordoned node, is still held."""
    case = Case()
    case.node("n", gpus=2, allocatable_micro_gpu=0, is_cordoned=True)
    asks(case, "p", "n", 2000)
    assert case.booked() == {"p": 2 * HOUR}
    assert unbooked(case) == {}


def test_gpus_that_a_node_no_longer_reports_are_still_installed():
    """The kubelet says 0 once the device plugin stops; 2 were told before, so 2 are there."""
    case = Case()
    case.node("n", gpus=2)
    case.node("n", gpus=0, seen=600, largest_gpu_count=0)
    asks(case, "p", "n", 2000)
    assert case.booked() == {"p": 2 * HOUR}


def test_a_hold_is_not_installed_on_a_name_never_seen_on_a_later_node_and_without_gpus():
    """'new' is created at 600, after the bind of 'before': the pod was on an earlier node of that
    name, which nobody saw.
    """
    case = Case()
    case.node("n")
    case.node("bare", gpus=0, resources=[])
    case.node("new", seen=600, created_at=600)
    asks(case, "never seen", "nowhere", 1000)
    asks(case, "no gpus", "bare", 500)
    asks(case, "before", "new", 1000, seen=300)
    assert case.booked() == {}
    assert unbooked(case) == {
        ("never seen", "not_installed"): HOUR,
        ("no gpus", "not_installed"): 1800,
        ("before", "not_installed"): 3300,
    }
    assert balances(case)


def test_what_lies_behind_a_node_s_deletion_is_gone_and_before_it_two_may_still_overlap():
    """1 GPU, deleted at 1200. early since 0, late since 600: early is booked 600, then late 600.

    early: unbooked 600 overlap, 2400 gone. late: 2400 gone. after, bound at 1500: 2100 gone.
    """
    case = Case()
    case.node("n")
    case.node("n", seen=1200, change_name="DELETED")
    asks(case, "early", "n", 1000)
    asks(case, "late", "n", 1000, seen=600)
    asks(case, "after", "n", 1000, seen=1500)
    assert case.booked() == {"early": 600, "late": 600}
    assert unbooked(case) == {
        ("early", "overlap"): 600,
        ("early", "node_gone"): 2400,
        ("late", "node_gone"): 2400,
        ("after", "node_gone"): 2100,
    }
    assert balances(case)


def test_a_pod_refused_by_the_kubelet_holds_nothing():
    case = Case()
    case.node("n")
    asks(case, "p", "n", 1000, reason_name="UnexpectedAdmissionError", phase_name="Failed")
    assert held(case) == {}


def test_a_hold_ends_with_its_last_container_even_if_the_pod_stays():
    """Finished at 900, observed at 1000, deleted at 2000: held until 900."""
    case = Case()
    case.node("n")
    asks(case, "p", "n", 1000)
    ended = {"bound_at": 0, "running_since_at": 0, "finished_at": 900, "phase_name": "Succeeded"}
    asks(case, "p", "n", 1000, seen=1000, **ended)
    asks(case, "p", "n", 1000, seen=2000, change_name="DELETED", **ended)
    assert held(case) == {"p": 900}


def test_without_any_nodes_installed_is_what_is_held():
    """0.5 for an hour and 1.5 for half of it: 1800 + 2700, all booked, none of it unallocated."""
    case = Case()
    asks(case, "a", "somewhere", 500)
    asks(case, "b", "elsewhere", 1500, seen=1800)
    assert case.booked() == {"a": 1800, "b": 2700}
    assert unbooked(case) == {}
    assert {state for _, state, _ in case.ledger()} == {"unobserved"}
    assert case.ask("select is_inventory_known from mart.fleet_coverage") == [(False,)]


def test_where_all_nodes_are_gone_the_inventory_is_still_installed():
    """3 GPUs paid for, no node left, a hold of a name never seen: not booked, nothing added."""
    case = Case()
    case.cover(HOUR, 2 * HOUR, is_inventory_known=True)
    case.add(raw.FLEET, cluster_name="c", gpu_model_name="t4", begin_at=0, gpu_count=3)
    asks(case, "a", "somewhere", 1000)
    assert case.ledger() == {
        ("__unavailable__", "unavailable", "not_in_cluster"): (3 * 2 * HOUR, None)
    }
    assert case.ask("select is_inventory_known from mart.fleet_coverage") == [(True,)]
    assert unbooked(case) == {("a", "not_installed"): 2 * HOUR}
