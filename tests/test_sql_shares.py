"""Which part of a GPU a hold is, and what of a partly held GPU is left over, counted by hand.

What one version of a node says is in test_nodes; who gets what where holds exceed it in
test_sql_bookings. Shares are in millionths of a GPU, rounded down.
"""

import pytest

from tests.kube_objects import node, parsed
from tests.kube_objects import pod as pod_object
from tests.sql_case import HOUR, Case

SLICED = ("gpu_count", "largest_gpu_count", "allocatable_micro_gpu", "resources", "devices")
US = "__unattributed__"
FREE = "__unallocated__"


def sliced(case, name, product, capacity, gpus=1, labels=None):
    """A node as its own object tells it: the shares are those that our collector reads."""
    told = {"nvidia.com/gpu.product": product, "nvidia.com/gpu.count": str(gpus), **(labels or {})}
    row = parsed("Node", node(told, capacity))
    case.node(name, **{key: row[key] for key in (*SLICED, "share_scale_ratio")})


def asks(case, name, node_name, resource, count=1, **told):
    request = [{"resource_name": resource, "request_count": count}]
    case.pod(name, node_name, requests=request, **told)


def shares(case):
    return dict(case.ask("select split_part(hold_id, '/', 1), share_micro_gpu from core.holds"))


def remainder(case):
    return case.ledger().get((FREE, "unallocated", "partition_remainder"), (0, None))[0]


def card(case, name, cards=1, mib=10_000):
    """A HAMi node; its cards are <name>-0, <name>-1, …"""
    devices = [
        {"device_uuid": f"{name}-{n}", "memory_mib": mib, "core_count": 100} for n in range(cards)
    ]
    case.node(name, gpus=cards, devices=devices)


def slice_of(case, pod, device, mib, cores, **told):
    entry = {"device_uuid": device, "memory_mib": mib, "core_count": cores}
    case.pod(pod, device.rsplit("-", 1)[0], devices=[entry], **told)


def test_a_whole_gpu_is_a_million_and_leaves_no_remainder():
    """3 of 4 GPUs held: 3,000,000; the fourth is free whole, so nothing is a remainder."""
    case = Case()
    case.node("n", gpus=4)
    asks(case, "p", "n", "nvidia.com/gpu", 3)
    assert shares(case) == {"p": 3_000_000}
    assert case.ledger() == {
        (US, "unobserved", "no_series"): (3 * HOUR, None),
        (FREE, "unallocated", "no_demand"): (HOUR, None),
    }


def test_a_mig_device_is_the_larger_of_its_compute_and_its_memory_on_that_model():
    """A100 80 GB (7 compute, 8 memory slices): 1g.10gb max(1/7, 1/8) = 1/7; 1g.20gb max(1/7, 2/8)
    = 1/4; 3g.40gb max(3/7, 4/8) = 1/2. The same name on an A100 40 GB: 1g.10gb max(1/7, 2/8) = 1/4.
    A30 (4 and 4): 1g.6gb 1/4. Two devices of 1/7 are twice 142,857, not 2/7 rounded down.
    """
    case = Case()
    big = {f"nvidia.com/mig-{p}": n for p, n in (("1g.10gb", "2"), ("1g.20gb", "1"))}
    sliced(case, "big", "NVIDIA-A100-SXM4-80GB", big | {"nvidia.com/mig-3g.40gb": "1"}, gpus=2)
    sliced(case, "small", "NVIDIA-A100-SXM4-40GB", {"nvidia.com/mig-1g.10gb": "4"})
    sliced(case, "a30", "NVIDIA-A30", {"nvidia.com/mig-1g.6gb": "4"})
    asks(case, "seventh", "big", "nvidia.com/mig-1g.10gb", 2)
    asks(case, "quarter", "big", "nvidia.com/mig-1g.20gb")
    asks(case, "half", "big", "nvidia.com/mig-3g.40gb")
    asks(case, "same name", "small", "nvidia.com/mig-1g.10gb")
    asks(case, "fourth", "a30", "nvidia.com/mig-1g.6gb")
    assert shares(case) == {
        "seventh": 285_714,
        "quarter": 250_000,
        "half": 500_000,
        "same name": 250_000,
        "fourth": 250_000,
    }


FULL = {"nvidia.com/mig-4g.40gb": "1", "nvidia.com/mig-3g.40gb": "1"}


def test_a_layout_of_more_than_one_gpu_is_scaled_and_its_factor_is_kept():
    """4g.40gb 4/7 and 3g.40gb 1/2 are 15/14 of their GPU: times 14/15 they are 8/15 and 7/15.

    533,333 + 466,666 = 999,999: the millionth left is 0.000001 x 3600 s = 0.0036 GPU-seconds.
    """
    case = Case()
    sliced(case, "n", "NVIDIA-A100-SXM4-80GB", FULL)
    asks(case, "four", "n", "nvidia.com/mig-4g.40gb")
    asks(case, "three", "n", "nvidia.com/mig-3g.40gb")
    assert shares(case) == {"four": 533_333, "three": 466_666}
    assert case.ask("select share_scale_ratio from core.nodes") == [(pytest.approx(14 / 15),)]
    assert case.ask("select count(*) from core.unbooked") == [(0,)]
    assert case.ledger() == {
        (US, "unobserved", "no_series"): (3599.9964, None),
        (FREE, "unallocated", "partition_remainder"): (0.0036, None),
    }


def test_what_is_not_held_of_a_mig_layout_is_a_remainder():
    """Only the 4g of 4g + 3g: 1,000,000 - 533,333 = 466,667, for 3600 s: 1680.0012."""
    case = Case()
    sliced(case, "n", "NVIDIA-A100-SXM4-80GB", FULL)
    asks(case, "four", "n", "nvidia.com/mig-4g.40gb")
    assert remainder(case) == 1680.0012


def test_time_slices_are_packed_and_their_placement_is_marked_as_assumed():
    """2 GPUs in 3 slices each, 333,333 a slice. 4 held are 1,333,332: packed they touch 2 GPUs and
    leave 666,668, and no GPU is free. Of 3 held, from 1800 s on, 999,999 touch 1 GPU and leave 1.

    Remainder: 0.666668 x 1800 + 0.000001 x 1800 = 1200.0024 + 0.0018 = 1200.0042; free: 1 x 1800.
    """
    case = Case()
    label = {"nvidia.com/gpu.replicas": "3", "nvidia.com/gpu.sharing-strategy": "time-slicing"}
    sliced(case, "n", "NVIDIA-A100-SXM4-80GB", {"nvidia.com/gpu": "6"}, 2, label)
    for pod in "abcd":
        asks(case, pod, "n", "nvidia.com/gpu")
    case.pod("d", "n", seen=1800, bound_at=0, running_since_at=0, change_name="DELETED")
    found = case.ledger()
    assert found[FREE, "unallocated", "partition_remainder"][0] == 1200.0042
    assert found[FREE, "unallocated", "no_demand"][0] == 1800
    assert case.ask("select distinct share_micro_gpu, is_placement_assumed from core.holds") == [
        (333_333, True)
    ]


def test_a_hami_slice_is_the_larger_of_its_cores_and_its_memory_and_at_most_a_card():
    """Of cards of 10,000 MiB: 2,500 MiB and 60 cores 0.6; 7,000 and 30 0.7; 3,333 and no limit
    of cores 0.3333; 12,000 MiB (more than the card) 1.
    """
    case = Case()
    card(case, "n", cards=4)
    slice_of(case, "cores", "n-0", 2_500, 60)
    slice_of(case, "memory", "n-1", 7_000, 30)
    slice_of(case, "unlimited", "n-2", 3_333, 0)
    slice_of(case, "too much", "n-3", 12_000, 50)
    assert shares(case) == {
        "cores": 600_000,
        "memory": 700_000,
        "unlimited": 333_300,
        "too much": 1_000_000,
    }
    assert case.ask("select distinct is_placement_assumed from core.holds") == [(False,)]


def test_a_quarter_of_a_card_by_hami_costs_a_quarter_and_four_of_them_one_card():
    """They ask for one nvidia.com/gpu each, and for a quarter of its cores and of its memory, which
    are no GPUs: at 4.00 an hour 1.00 each. Without HAMi there the pod has the whole GPU.
    """
    asked = {"nvidia.com/gpu": "1", "nvidia.com/gpucores": "25",
             "nvidia.com/gpumem-percentage": "25"}  # fmt: skip
    item = {"name": "main", "resources": {"requests": asked, "limits": asked}}
    given = {"hami.io/vgpu-devices-allocated": "n-0,NVIDIA,2500,25:;"}
    by_hami = parsed("Pod", pod_object([item], annotations=given))
    without = parsed("Pod", pod_object([item]))
    case = Case()
    card(case, "n", cards=1)
    case.node("plain")
    case.price(4_000_000)
    for name in "abcd":
        case.pod(name, "n", requests=by_hami["requests"], devices=by_hami["devices"])
    case.pod("whole", "plain", requests=without["requests"], devices=without["devices"])
    costs = case.ask(
        "select split_part(hold_id, '/', 1), sum(gpu_seconds)::int, sum(ledger_cost)::double "
        "from core.ledger where hold_id is not null group by 1 order by 1"
    )
    assert costs == [(name, 900, 1.0) for name in "abcd"] + [("whole", 3600, 4.0)]


def test_slices_of_a_card_that_exceed_it_are_scaled_only_while_they_do():
    """0.6 + 0.7 = 1.3 from 600 s to 1600 s: 600,000 / 1.3 = 461,538 and 700,000 / 1.3 = 538,461.

    a: 0.6 x (600 + 2000) + 0.461538 x 1000 = 1560 + 461.538. b: 538.461.
    Remainder: 0.4 x 2600 + 0.000001 x 1000 = 1040.001.
    """
    case = Case()
    card(case, "n")
    slice_of(case, "a", "n-0", 2_500, 60)
    slice_of(case, "b", "n-0", 7_000, 30, seen=600)
    case.pod("b", "n", seen=1600, bound_at=600, running_since_at=600, change_name="DELETED",
             devices=case.rows["raw.pod_versions"][-1]["devices"])  # fmt: skip
    assert case.booked() == {"a": 2021.538, "b": 538.461}
    assert remainder(case) == 1040.001
    ratios = "select distinct scale_ratio from core.hold_shares order by 1"
    assert case.ask(ratios) == [(pytest.approx(1 / 1.3),), (1.0,)]


def test_the_remainder_is_of_each_card_where_cards_are_known_and_packed_where_not():
    """0.3 held on each of 2 cards leaves 0.7 + 0.7 and no free card: 1.4 x 3600 = 5040.

    0.3 + 0.3 somewhere on 2 GPUs: packed on one, 0.4 is left of it, and the other is free.
    """
    case = Case()
    card(case, "n", cards=2)
    slice_of(case, "a", "n-0", 3_000, 30)
    slice_of(case, "b", "n-1", 3_000, 30)
    assert remainder(case) == 5040
    assert (FREE, "unallocated", "no_demand") not in case.ledger()

    case = Case()
    case.node("n", gpus=2)
    asks(case, "a", "n", "milli-gpu", 300)
    asks(case, "b", "n", "milli-gpu", 300)
    assert shares(case) == {"a": 300_000, "b": 300_000}
    assert remainder(case) == 1440
    assert case.ledger()[FREE, "unallocated", "no_demand"][0] == HOUR


def test_what_cannot_be_scheduled_comes_off_the_remainder_which_is_never_negative():
    """0.6 held of 1 GPU: 0.4 free. Nothing is missing: 0.4 remainder; 0.3 missing: 0.3 unavailable
    and 0.1; 0.5 missing, of which only 0.4 is not held: 0.4 unavailable and 0. 1200 s of each.
    """
    case = Case()
    case.node("n")
    case.node("n", seen=1200, allocatable_micro_gpu=700_000)
    case.node("n", seen=2400, allocatable_micro_gpu=500_000)
    asks(case, "p", "n", "milli-gpu", 600)
    found = case.ledger()
    assert found["__unavailable__", "unavailable", "missing_from_allocatable"][0] == 360 + 480
    assert remainder(case) == 480 + 120
    assert case.ask("select min(gpu_seconds) > 0 from core.ledger") == [(True,)]


def test_a_unit_that_its_own_node_does_not_tell_is_what_it_is_elsewhere_in_the_cluster():
    """Half a GPU on n; on bare, whose device plugin lists nothing, the same; else a whole GPU."""
    case = Case()
    half = {"resource_name": "x.com/half", "capacity_count": 2, "allocatable_count": 2}
    case.node("n", resources=[{**half, "share_micro_gpu": 500_000}])
    case.node("bare", resources=[])
    asks(case, "a", "bare", "x.com/half")
    asks(case, "b", "bare", "x.com/unheard-of")
    assert shares(case) == {"a": 500_000, "b": 1_000_000}


def test_a_card_whose_register_changes_is_still_one_card():
    """5,000 MiB of a card that first registers 10,000 and then 20,000 MiB: a quarter of it."""
    case = Case()
    card(case, "n")
    case.node(
        "n", seen=600, devices=[{"device_uuid": "n-0", "memory_mib": 20_000, "core_count": 100}]
    )
    slice_of(case, "p", "n-0", 5_000, 0)
    assert shares(case) == {"p": 250_000}
