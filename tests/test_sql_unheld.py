"""The state and the cause of what nobody holds, and what the marts make of it, counted by hand.

Remainders of partly held GPUs are in test_sql_shares; what held seconds are in test_sql_states.
"""

from models import raw
from tests.sql_case import HOUR, Case

US = "__unattributed__"
FREE = "__unallocated__"


def causes(case):
    """Node -> cause and GPU-seconds of its unavailable time, in order of time."""
    found = {}
    for name, *rest in case.ask(
        "select node_uid, cause_name, epoch(end_at - begin_at) * share_micro_gpu / 1e6 "
        "from core.unheld_states where state_name = 'unavailable' order by node_uid, begin_at"
    ):
        found.setdefault(name, []).append(tuple(rest))
    return found


def test_of_several_reasons_not_to_be_schedulable_the_first_in_the_list_is_told():
    """Each node has the reason it is named after and all that come later in the list."""
    case = Case()
    cordon = {"allocatable_micro_gpu": 0, "is_cordoned": True}
    case.node("cordoned", **cordon)
    case.node("driver_upgrade", maintenance_name="driver_upgrade", **cordon)
    case.node("mig_reconfigure", maintenance_name="mig_reconfigure", **cordon)
    down = {"is_ready": False, "maintenance_name": "driver_upgrade", **cordon}
    case.node("node_not_ready", **down)
    case.node("provisioning", is_ever_ready=False, **down)
    case.node("missing_from_allocatable", allocatable_micro_gpu=0)
    assert causes(case) == {name: [(name, HOUR)] for name in (
        "cordoned", "driver_upgrade", "mig_reconfigure", "node_not_ready", "provisioning",
        "missing_from_allocatable",
    )}  # fmt: skip


def test_a_node_is_provisioned_once_and_after_that_only_not_ready():
    """Not ready until 600, ready until 1000, not ready until 1500: 600 s, then 500 s, of 2 GPUs."""
    case = Case()
    case.node("n", gpus=2, is_ready=False, is_ever_ready=False)
    case.node("n", gpus=2, seen=600)
    case.node("n", gpus=2, seen=1000, is_ready=False, is_ever_ready=False)
    case.node("n", gpus=2, seen=1500)
    assert causes(case) == {"n": [("provisioning", 1200), ("node_not_ready", 1000)]}


def test_a_fault_of_the_node_takes_only_what_nobody_holds():
    """Of 4 GPUs 3 are held. Cordoned (to 1200): the free 1. Not ready (to 2400): the free 1.
    2 not allocatable: 2 are not schedulable, but only 1 is free, so 1 is unavailable, not 2.
    """
    case = Case()
    case.node("n", gpus=4, is_cordoned=True)
    case.node("n", gpus=4, seen=1200, is_ready=False)
    case.node("n", gpus=4, seen=2400, allocatable_micro_gpu=2_000_000)
    case.pod("p", "n", requests=[{"resource_name": "nvidia.com/gpu", "request_count": 3}])
    assert case.ledger() == {
        (US, "unobserved", "no_series"): (3 * 2400, None),
        (US, "unobserved", "node_not_ready"): (3 * 1200, None),
        ("__unavailable__", "unavailable", "cordoned"): (1200, None),
        ("__unavailable__", "unavailable", "node_not_ready"): (1200, None),
        ("__unavailable__", "unavailable", "missing_from_allocatable"): (1200, None),
    }


def test_what_nobody_recorded_is_unrecorded_whatever_else_is_known_and_holds_go_on():
    """2 GPUs, 1 held throughout. Unknown before 600; a gap 1200-1800, in which the node is also
    cordoned; a list alone from 3000 on. Watched: 600 + 1200 s of 1 free GPU without demand.
    """
    case = Case(0)
    case.rows["raw.coverage"].clear()
    for begin, end, how in (
        (0, 600, "before_first_seen"),
        (600, 1200, "watched"),
        (1200, 1800, "recorder_gap"),
        (1800, 3000, "watched"),
        (3000, 3600, "list_only"),
    ):
        case.cover(begin, end, how)
    case.node("n", gpus=2)
    case.node("n", gpus=2, seen=1200, is_cordoned=True)
    case.node("n", gpus=2, seen=1800)
    case.pod("p", "n")
    assert case.ledger() == {
        (US, "unobserved", "no_series"): (HOUR, None),
        ("__unknown__", "unrecorded", "before_first_seen"): (600, None),
        ("__unknown__", "unrecorded", "recorder_gap"): (600, None),
        ("__unknown__", "unrecorded", "list_only"): (600, None),
        (FREE, "unallocated", "no_demand"): (1800, None),
    }
    assert case.ask("select known_seconds, watched_seconds from core.windows") == [(3600, 1800)]


def test_demand_is_a_pod_that_asks_for_gpus_from_its_creation_to_its_bind_or_its_end():
    """Pending: 600-900 (bound elsewhere), 1500-2000 (deleted); a pod without GPUs all the time.
    Of the free GPU's 3600 s are 800 s undetermined. The other node is held from 900 on.
    """
    case = Case()
    case.node("n")
    case.node("other")
    case.pod("cpu", requests=[])
    case.pod("a", seen=600, created_at=600)
    case.pod("a", "other", seen=900, created_at=600)
    case.pod("b", seen=1500, created_at=1500)
    case.pod("b", seen=2000, created_at=1500, change_name="DELETED")
    found = case.ask(
        "select cause_name, sum(gpu_seconds) from core.ledger "
        "where node_uid = 'n' group by 1 order by 1"
    )
    assert found == [("no_demand", 2800), ("undetermined", 800)]


def test_a_pod_asks_for_gpus_even_while_no_node_has_a_unit_of_what_it_asks_for():
    """A resource without capacity is listed with a share of 0; a request of it is still demand."""
    case = Case()
    gone = {"resource_name": "nvidia.com/mig-1g.10gb", "capacity_count": 0, "allocatable_count": 0}
    case.node("n", resources=[{**gone, "share_micro_gpu": 0}])
    request = {"resource_name": "nvidia.com/mig-1g.10gb", "request_count": 1}
    case.pod("p", requests=[request])
    assert case.ledger() == {(FREE, "unallocated", "undetermined"): (HOUR, None)}
    assert case.ask("select is_gpu from mart.attempt_waits") == [(True,)]


def test_what_the_inventory_has_more_than_the_nodes_is_not_in_the_cluster():
    """5 owned, 2 of them on the node, which is deleted at 600: 3 x 600 + 5 x 3000 = 16,800."""
    case = Case()
    case.add(raw.FLEET, gpu_model_name="t4", gpu_count=5, begin_at=-HOUR)
    case.node("n", gpus=2)
    case.node("n", gpus=2, seen=600, change_name="DELETED")
    assert case.ledger() == {
        ("__unavailable__", "unavailable", "not_in_cluster"): (16_800, None),
        (FREE, "unallocated", "no_demand"): (1200, None),
    }


def test_the_waterfall_is_sums_from_which_ratios_are_made_never_ratios():
    """t4: 4 GPUs, 1 held, 1 missing. a100: 2 GPUs, cordoned for 1800 s, 1 held, which starts
    until 600. In GPU-seconds, t4 and a100:
    installed 14,400 and 7200; available 14,400 - 3600 = 10,800 and 7200 - 1800 = 5400;
    allocated 3600 and 3600; started 3600 and 3000, all of it unobserved.
    Allocation of both: 7200 / 16,200 = 4/9; the mean of 1/3 and 2/3 would be 1/2.
    """
    case = Case()
    case.node("n", gpus=4, allocatable_micro_gpu=3_000_000)
    case.node("m", gpus=2, gpu_model_name="a100-80gb", is_cordoned=True)
    case.node("m", gpus=2, gpu_model_name="a100-80gb", seen=1800)
    case.pod("p", "n")
    case.pod("q", "m", running_since_at=600)
    rows = case.ask(
        "select step_name, gpu_model_name, gpu_seconds from mart.fleet_waterfall "
        "order by gpu_model_name, step_number"
    )
    steps = {(step, model): time for step, model, time in rows}
    assert [time for (_, model), time in steps.items() if model == "t4"] == [
        14_400, 10_800, 3600, 3600, 3600, None, None, None,
    ]  # fmt: skip
    assert [time for (_, model), time in steps.items() if model != "t4"] == [
        7200, 5400, 3600, 3000, 3000, None, None, None,
    ]  # fmt: skip
    [(ratio,)] = case.ask(
        "select sum(gpu_seconds) filter (where step_name = 'allocated') * 9 "
        "/ sum(gpu_seconds) filter (where step_name = 'available') from mart.fleet_waterfall"
    )
    assert ratio == 4


def test_coverage_tells_what_of_the_time_was_recorded_observed_priced_and_booked():
    """2 GPUs; 1 held, which starts (observed) until 600 and is then unobserved; a gap from 3000 on;
    a second hold of a name never seen. Installed 7200, held 3600, observed 600, unrecorded 600
    (the free GPU); a price from 1800 on: unpriced 2 x 1800; unbooked 3600.
    """
    case = Case(3000)
    case.cover(3000, 3600, "recorder_gap")
    case.node("n", gpus=2)
    case.pod("p", "n", running_since_at=600)
    case.pod("q", "nowhere")
    case.price(3_600_000, since=1800)
    assert case.ask(
        "select known_seconds, watched_seconds, installed_gpu_seconds, held_gpu_seconds, "
        "observed_gpu_seconds, unrecorded_gpu_seconds, unpriced_gpu_seconds, unbooked_gpu_seconds, "
        "is_inventory_known from mart.fleet_coverage"
    ) == [(3600, 3000, 7200, 3600, 600, 600, 3600, 3600, True)]
