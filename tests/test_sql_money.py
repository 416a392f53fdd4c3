"""What each ledger row costs, to the millionth: rounding, prices in time, precedence of prices.

Prices are in millionths per GPU-hour, so that a GPU-second at 3,600 costs 1 millionth. How the
price book is written is in test_config.
"""

from datetime import date
from decimal import Decimal

from models import raw
from models.book import frames
from models.config import Config
from tests.sql_case import HOUR, MIDNIGHT, Case

US = "__unattributed__"
FREE = "__unallocated__"


def micro(case, columns):
    """Ledger rows of what costs anything, in millionths: the columns, then the cost."""
    return case.ask(
        f"select {columns}, (1000000 * sum(ledger_cost))::bigint from core.ledger "
        f"where ledger_cost <> 0 group by {columns} order by {columns}"
    )


def offer(case, price, rank, since=-HOUR, rate_since=None, **covers):
    applies = since if rate_since is None else rate_since
    case.add(
        raw.PRICES, price_id=f"{covers}@{since} {applies}", rank_number=rank,
        valid_from_at=since, applies_from_at=applies, price_micro_cost_per_gpu_hour=price, **covers,
    )  # fmt: skip


def test_half_a_millionth_of_an_hour_s_total_is_rounded_up_and_less_is_not():
    """1 GPU-second at 1800 is half a millionth: total 1; the row alone is rounded down to 0, so the
    1 is __rounding__'s. At 1799 it is 0.49972: total 0, and nothing is left over.
    """
    for price, found in ((1800, [("__rounding__", 1)]), (1799, [])):
        case = Case(1)
        case.node("n")
        case.price(price)
        assert micro(case, "team_name") == found


def test_the_total_is_rounded_and_the_rows_are_rounded_down():
    """10 s of 3 GPUs at 1500. Held by a and b, 10 GPU-seconds each: 4.1667, so 4 each; free: 4.
    30 GPU-seconds are 12.5: 13. Left over: 13 - 12 = 1, a row without time.
    """
    case = Case(10)
    case.node("n", gpus=3)
    case.pod("a", "n")
    case.pod("b", "n")
    case.price(1500)
    assert micro(case, "team_name, coalesce(left(hold_id, 1), '')") == [
        ("__rounding__", "", 1),
        (FREE, "", 4),
        (US, "a", 4),
        (US, "b", 4),
    ]
    rounding = "select gpu_seconds, state_name, cause_name, price_id is not null from core.ledger "
    assert case.ask(rounding + "where team_name = '__rounding__'") == [
        (0, "rounding", "none", True)
    ]


def test_each_node_hour_and_price_is_rounded_by_itself():
    """1 GPU-second at 1800 is half a millionth, and each of these is rounded up to 1 of its own:
    two nodes; and on one node, two hours of which each has a second, and two prices of an hour.
    """
    case = Case(1)
    case.node("n")
    case.node("m")
    case.price(1800)
    assert micro(case, "node_uid") == [("m", 1), ("n", 1)]

    case = Case(0)
    case.rows["raw.coverage"].clear()
    case.cover(HOUR - 1, HOUR + 1)
    case.node("n")
    case.price(1800)
    assert micro(case, "hour(hour_at)") == [(0, 1), (1, 1)]

    case = Case(2)
    case.node("n")
    case.price(1800)
    case.price(1800, since=1)
    assert micro(case, "price_id") == [("*@-3600", 1), ("*@1", 1)]


def test_a_price_is_in_force_from_its_second_on_and_before_the_first_nothing_has_a_cost():
    """2 GPUs, 1 held. No price until 1000 (2000 GPU-seconds), 3600 until 1600: 1 a second; 7200.

    Held: 600 + 2 x 2000 = 4600; free as much. Priced and unpriced are all that is installed.
    """
    case = Case()
    case.node("n", gpus=2)
    case.pod("p", "n")
    case.price(3600, since=1000)
    case.price(7200, since=1600)
    assert micro(case, "team_name") == [(FREE, 4600), (US, 4600)]
    assert case.ask(
        "select price_id, sum(gpu_seconds), sum(ledger_cost) from core.ledger "
        "where team_name = '__unattributed__' group by 1 order by 1 nulls first"
    ) == [
        (None, 1000, None),
        ("*@1000", 600, Decimal("0.0006")),
        ("*@1600", 2000, Decimal("0.004")),
    ]
    assert case.ask(
        "select sum(gpu_seconds), sum(unpriced_gpu_seconds), sum(state_cost) from mart.fleet_states"
    ) == [(7200, 2000, Decimal("0.0092"))]
    assert case.ask("select unpriced_gpu_seconds, workload_cost from mart.workload_days") == [
        (1000, Decimal("0.0046"))
    ]


def test_a_price_of_nothing_is_a_cost_of_0_and_not_unpriced():
    case = Case()
    case.node("n")
    case.price(0)
    assert case.ledger() == {(FREE, "unallocated", "no_demand"): (HOUR, 0)}
    assert case.ask("select unpriced_gpu_seconds from mart.fleet_coverage") == [(0,)]


def test_the_narrowest_price_counts_node_label_cluster_model_and_type_model_any():
    """Each node is named after the narrowest price that covers it, and all wider ones do as well.
    Prices are 1 (any) to 5 (node) millionths a second; each node costs that for 10 s.
    """
    case = Case(10)
    offer(case, 1 * 3600, 1)
    offer(case, 2 * 3600, 2, gpu_model_name="t4")
    offer(case, 3 * 3600, 3, gpu_model_name="t4", cluster_name="c", capacity_type_name="spot")
    offer(case, 99 * 3600, 3, gpu_model_name="t4", cluster_name="d", capacity_type_name="spot")
    offer(case, 4 * 3600, 4, label_key_name="x.com/rack", label_value_text="r1")
    offer(case, 5 * 3600, 5, node_name="node")
    rack = '{"x.com/rack": "r1"}'
    case.node("node", capacity_type_name="spot", labels_json=rack)
    case.node("label", capacity_type_name="spot", labels_json=rack)
    case.node("type", capacity_type_name="spot", labels_json='{"x.com/rack": "r2"}')
    case.node("model", capacity_type_name="owned")
    case.node("any", gpu_model_name="a30-24gb", capacity_type_name="spot")
    assert micro(case, "node_uid") == [
        ("any", 10),
        ("label", 40),
        ("model", 20),
        ("node", 50),
        ("type", 30),
    ]


def test_a_later_price_replaces_one_of_its_rank_but_never_a_narrower_one():
    """For t4 2 from the start, 3 from 10 on; for any 9 from 20 on. A t4: 2 x 10 + 3 x 20 = 80.
    Another model: unpriced until 20, then 9 x 10 = 90.
    """
    case = Case(30)
    offer(case, 2 * 3600, 2, gpu_model_name="t4")
    offer(case, 3 * 3600, 2, gpu_model_name="t4", since=10)
    offer(case, 9 * 3600, 1, since=20)
    case.node("t4")
    case.node("other", gpu_model_name="a30-24gb")
    assert micro(case, "node_uid") == [("other", 90), ("t4", 80)]
    assert case.ask("select max(candidate_count) from core.price_spells") == [(1,)]


def test_two_prices_of_equal_rank_that_cover_a_node_differently_are_two_candidates():
    """One by model and cluster, one by model and type: which of them counts nobody has said."""
    case = Case()
    case.node("n", capacity_type_name="spot")
    offer(case, 3600, 2, gpu_model_name="t4", cluster_name="c")
    offer(case, 7200, 2, gpu_model_name="t4", capacity_type_name="spot")
    assert case.ask("select candidate_count from core.price_spells") == [(2,)]


def test_a_fraction_of_a_gpu_costs_its_fraction():
    """0.333333 of a GPU at 3600 for 3600 s: 1199.9988, so 1199; the 0.666667 left: 2400.0012, so
    2400. The whole is 3600: 1 is left over.
    """
    case = Case()
    third = {"resource_name": "x.com/third", "capacity_count": 3, "allocatable_count": 3}
    case.node("n", resources=[{**third, "share_micro_gpu": 333_333}])
    case.price(3600)
    case.pod("p", "n", requests=[{"resource_name": "x.com/third", "request_count": 1}])
    assert micro(case, "team_name") == [("__rounding__", 1), (FREE, 2400), (US, 1199)]


def test_the_price_book_of_a_configuration_costs_what_it_says():
    """Owned: (87,600 - 0) / (5 x 8760 h) = 2 an hour for the machine, of 2 GPUs 1 each. 1 GPU-hour
    held and 1 free: 1 each. Prices are for the T4 in any spelling, from the day on.
    """
    owned = {"capex": 87_600, "years": 5, "gpus": 2}
    price = {"valid_from": date(2026, 3, 2), "gpu_model": "Tesla T4", "owned": owned}
    case = Case()
    for row in frames(Config.model_validate({"prices": [price]}))["raw.prices"].to_dicts():
        assert row["valid_from_at"] == MIDNIGHT
        case.add(raw.PRICES, **row)
    case.node("n", gpus=2)
    case.pod("p", "n")
    assert micro(case, "team_name") == [(FREE, 1_000_000), (US, 1_000_000)]


def test_every_mart_of_money_sums_to_the_ledger_the_rounding_included():
    """3 GPUs for 10 s at 1500: 12.5 millionths, so 13; workloads have only what is held: 4."""
    case = Case(10)
    case.node("n", gpus=3)
    case.pod("p", "n")
    case.price(1500)
    total = Decimal("0.000013")
    for table, column in (
        ("core.ledger", "ledger_cost"),
        ("core.gpu_hours", "hour_cost"),
        ("mart.fleet_states", "state_cost"),
        ("mart.team_days", "team_cost"),
    ):
        assert case.ask(f"select sum({column}) from {table}") == [(total,)], table
    installed = "select step_cost from mart.fleet_waterfall where step_name = 'installed'"
    assert case.ask(installed) == [(total,)]
    assert case.ask("select workload_cost from mart.workload_days") == [(Decimal("0.000004"),)]


def test_a_new_rate_touches_only_the_seconds_after_it_and_no_later_price():
    """1800 s x 3.6 + 900 s x 7.2 + 900 s x 1.8 an hour = 1.8 + 1.8 + 0.45; the rate of second 3000
    is of a price that is over by then.
    """
    case = Case()
    case.node("n")
    offer(case, 3_600_000, 2)
    offer(case, 7_200_000, 2, rate_since=1800)
    offer(case, 1_800_000, 2, since=2700)
    offer(case, 9_000_000, 2, rate_since=3000)
    assert micro(case, "hour_at is null") == [(False, 4_050_000)]


def test_a_sum_of_which_nothing_has_a_price_is_null_and_not_0():
    """The priced node's pod starts for 100 s: 100 x 1 millionth of waste, and 0 of the unobserved,
    of which there is none. The other's runs 100 s later at a cost that nobody knows.
    """
    case = Case(200)
    case.node("dear")
    case.node("unpriced", gpu_model_name="a30-24gb")
    offer(case, 3600, 2, gpu_model_name="t4")
    case.pod("p", "dear", running_since_at=None, seen=100)
    case.pod("q", "unpriced", running_since_at=100)
    some = Decimal("0.0001")
    sums = "select gpu_model_name, state_name, sum({}) from {} group by all order by all"
    for column, table in (("hour_cost", "core.gpu_hours"), ("state_cost", "mart.fleet_states")):
        assert case.ask(sums.format(column, table)) == [
            ("a30-24gb", "starting", None),
            ("a30-24gb", "unobserved", None),
            ("t4", "starting", some),
            ("t4", "unallocated", some),
        ]
    workloads = "select workload_name, workload_cost, waste_cost from mart.workload_days order by 1"
    assert case.ask(workloads) == [("p", some, some), ("q", None, None)]
    teams = (
        "select team_name, team_cost, waste_cost, unobserved_cost from mart.team_days order by 1"
    )
    assert case.ask(teams) == [(FREE, some, 0, 0), (US, some, some, None)]
    steps = "select step_name, step_cost from mart.fleet_waterfall where gpu_model_name = '{}'"
    dear, unpriced = (dict(case.ask(steps.format(name))) for name in ("t4", "a30-24gb"))
    assert (dear["installed"], dear["allocated"], dear["started"]) == (2 * some, some, 0)
    assert (unpriced["installed"], unpriced["unobserved"]) == (None, None)
