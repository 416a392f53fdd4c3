"""The page of allocated against used, without a browser: its ratios by hand, its ways down.

What every page must do is in test_dashboards.py; the rows behind this one in dashboard_gpus.py.
"""

import sys
from datetime import UTC, date, datetime, timedelta

import polars as pl
import pytest

from dashboards.charts import gapless
from dashboards.heat import kinds
from dashboards.use import with_ratios
from lake.home import Home
from lake.read import Door
from models import figures
from tests.dashboard_data import LAST, published_home
from tests.dashboard_page import shown, table, usual, words

SWEEP = "alpha/vision/sweep-17"


@pytest.fixture(autouse=True)
def _main_module(monkeypatch) -> None:
    """AppTest puts the page in the place of `__main__`, which a spawned process would then run."""
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])


def asked(query: str) -> pl.DataFrame:
    with Door(Home(published_home())) as door:
        return door.query(query, {"first": LAST - timedelta(days=29), "last": LAST}).pl()


def use(**hours: float | None) -> dict:
    """Ratios of a row with these GPU-hours, and money at 2 an hour where it is told."""
    names = ("available", "held", "active", "idle", "stalled", "unobserved", "sm_observed",
             "effective")  # fmt: skip
    row = {f"{name}_gpu_seconds": 3600 * (hours.get(name) or 0) for name in names}
    return with_ratios(pl.DataFrame([row])).row(0, named=True)


def test_each_ratio_is_over_what_is_known_of_it():
    """Of 10 available 8 are held; 2 of them unseen, 3 of 6 active; SM known of 4, 1 of it used."""
    found = use(available=10, held=8, unobserved=2, active=3, sm_observed=4, effective=1)
    assert found["allocation_ratio"] == 0.8
    assert (found["active_ratio"], found["measured_ratio"]) == (0.5, 0.75)
    assert (found["utilisation_ratio"], found["sm_known_ratio"]) == (0.25, 0.5)


def test_what_is_held_and_not_measured_has_no_ratio_rather_than_none():
    found = use(available=10, held=8, unobserved=8)
    assert (found["active_ratio"], found["utilisation_ratio"]) == (None, None)
    assert (found["measured_ratio"], found["sm_known_ratio"]) == (0, 0)


def test_a_fleet_that_nothing_measures_is_not_at_0_percent_because_its_pods_start():
    """Of 8 held 7 are unseen and 1 is starting: whether anything worked is not known."""
    found = use(available=10, held=8, unobserved=7)
    assert (found["active_ratio"], found["measured_ratio"]) == (None, 0.125)
    assert use(available=10, held=1)["active_ratio"] == 0, "all of it starting, nothing unseen"


def test_in_money_what_has_no_price_is_in_no_ratio():
    """6 held at a cost of 12, of which 3 active; the unobserved have no price at all."""
    row = {"available_gpu_seconds": 1, "active_gpu_seconds": 1, "idle_gpu_seconds": 0,
           "stalled_gpu_seconds": 0, "unobserved_gpu_seconds": 9, "available_cost": 24.0,
           "held_cost": 12.0, "active_cost": 6.0, "unobserved_cost": None, "sm_observed_cost": None,
           "effective_cost": None}  # fmt: skip
    schema = {name: pl.Float64 for name in row}
    found = with_ratios(pl.DataFrame([row], schema=schema), "money").row(0, named=True)
    assert (found["allocation_ratio"], found["active_ratio"]) == (0.5, 0.5)
    assert found["utilisation_ratio"] is None


def test_the_ratios_on_the_page_are_those_of_the_mart():
    found = shown(usual("used"))
    [sums] = asked(
        "select sum(held_gpu_seconds) as held, sum(available_gpu_seconds) as available, "
        "sum(unobserved_gpu_seconds) as unobserved, sum(active_gpu_seconds) as active, "
        "sum(effective_gpu_seconds) as effective, sum(sm_observed_gpu_seconds) as sm_observed, "
        "sum(idle_gpu_seconds + stalled_gpu_seconds) as wasted "
        "from mart.use_hours where day_on between $first and $last"
    ).to_dicts()
    assert found == {
        "Allocation ratio": figures.percent(float(sums["held"] / sums["available"])),
        "Utilisation ratio": figures.percent(float(sums["effective"] / sums["sm_observed"])),
        "Active ratio": figures.percent(
            float(sums["active"] / (sums["held"] - sums["unobserved"]))
        ),
        "Idle and stalled": figures.hours(sums["wasted"]),
    }


def test_a_workload_in_the_address_is_the_only_one_shown():
    """sweep-17: 3 GPUs for 26 hours, never at work."""
    app = usual("used", workload=SWEEP)
    found = shown(app)
    assert found["Utilisation ratio"] == found["Active ratio"] == "0 %"
    assert found["Idle and stalled"] == "78.0 GPU-h"
    assert "sweep-17 · namespace vision · team vision" in words(app)
    assert "78.0 GPU-h held" in words(app)


def test_where_nothing_measures_a_workload_its_ratios_are_not_measured():
    [key] = asked(
        "select workload_key_uid from mart.use_workloads where cluster_name = 'beta' "
        "and day_on between $first and $last group by all "
        "having sum(unobserved_gpu_seconds) = sum(held_gpu_seconds) limit 1"
    )["workload_key_uid"]
    found = shown(usual("used", workload=key))
    told = [found[name] for name in ("Utilisation ratio", "Active ratio", "Idle and stalled")]
    assert told == ["not measured"] * 3
    unpriced = shown(usual("used", workload=key, unit="money"))
    assert unpriced["Utilisation ratio"] == "not measured"


@pytest.mark.parametrize("by", ["team", "workload", "GPU model", "node", "cluster"])
def test_each_way_down_holds_all_that_is_held(by):
    app = usual("used", by=by, period="7 days")
    held = sum(row["held_gpu_seconds"] for row in table(app, "utilisation_ratio"))
    [whole] = asked(
        "select sum(held_gpu_seconds) / 3600 as held from mart.use_hours "
        "where day_on between $last::date - 6 and $last and $first is not null"
    )["held"]
    assert held == pytest.approx(float(whole))


def test_a_link_goes_one_step_down_and_keeps_the_filters():
    app = usual("used", period="7 days", cluster="alpha")
    urls = [row["team_url"] for row in table(app, "team_url")]
    assert "used?period=7+days&cluster=alpha&team=vision" in urls
    app = usual("used", team="vision")
    assert any(r["workload_url"].endswith("vision%2Fsweep-17") for r in table(app, "workload_url"))


def test_a_workload_that_is_not_there_says_so():
    app = usual("used", workload="no/such")
    assert "held nothing in this period" in words(app)
    assert not app.metric


def test_a_cell_without_a_share_says_why():
    row = {"held_gpu_seconds": [0, 10, 10], "active_ratio": [None, None, 0.0]}
    assert kinds(pl.DataFrame(row), "active")["kind"].to_list() == ["free", "blind", "known"]


def test_a_day_without_a_row_is_a_gap_in_the_line():
    at = [datetime(2026, 11, day, tzinfo=UTC) for day in (1, 2, 4)]
    rows = gapless(pl.DataFrame({"begin_at": at, "active_ratio": [0.1, 0.2, 0.4]}), "UTC")
    assert rows["active_ratio"].to_list() == [0.1, 0.2, None, 0.4]


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Asia/Kolkata"])
def test_a_day_of_another_length_is_no_gap(zone):
    days = pl.datetime_range(
        date(2026, 10, 23), date(2026, 10, 28), "1d", time_zone=zone, eager=True
    )
    rows = pl.DataFrame({"begin_at": days.dt.convert_time_zone("UTC")}).with_columns(share=1)
    assert gapless(rows, zone)["share"].to_list() == [1] * 6, "one of 25 hours among them"
