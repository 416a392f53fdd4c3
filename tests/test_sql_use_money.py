"""Allocated against used in money: each ratio has its own sums, as it has in hours.

What counts as held, active or effective is tested with the states.
"""

from tests.sql_case import Case


def test_what_is_available_and_what_is_not_measured_have_their_cost():
    """2 GPUs for an hour at 4.00, one held and measured by nothing: 8, 8, 4, 4 and none."""
    case = Case()
    case.price(4_000_000)
    case.node("n", gpus=2)
    case.pod("p", "n")
    assert case.ask(
        "select sum(installed_cost), sum(available_cost), sum(held_cost), sum(unobserved_cost), "
        "sum(sm_observed_cost) from mart.use_hours"
    ) == [(8, 8, 4, 4, 0)]
    assert case.ask(
        "select held_cost, unobserved_cost, sm_observed_cost from mart.use_workloads"
    ) == [(4, 4, 0)]


def test_without_a_price_they_are_not_known_rather_than_nothing():
    case = Case()
    case.node("n")
    case.pod("p", "n")
    assert case.ask(
        "select available_cost, unobserved_cost, unpriced_gpu_seconds from mart.use_hours"
    ) == [(None, None, 3600)]
