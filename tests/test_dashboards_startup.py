"""The page of startup, without a browser: its figures are the marts', what is unknown is said.

What every page must do is in test_dashboards.py; the rows behind this one in dashboard_starts.py.
"""

import sys
from datetime import timedelta

import pytest

from lake.home import Home
from lake.read import Door
from models import figures
from tests import dashboard_data, dashboard_starts
from tests.dashboard_data import LAST, published_home
from tests.dashboard_page import opened, shown, table, usual, words

BLIND = "No event about images or volumes was recorded of these pods"


@pytest.fixture(autouse=True)
def _main_module(monkeypatch) -> None:
    """AppTest puts the page in the place of `__main__`, which a spawned process would then run."""
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])


def asked(query: str) -> list[dict]:
    with Door(Home(published_home())) as door:
        days = {"first": LAST - timedelta(days=29), "last": LAST}
        return door.query(query, days).pl().to_dicts()


def is_unknown(value) -> bool:
    """What a table shows as a dash."""
    return value is None or value != value


PERIOD = "day_on between $first and $last"


def test_the_headlines_are_the_sums_of_the_marts():
    found = shown(usual("startup"))
    [sums] = asked(
        f"select sum(gpu_seconds) as spent, sum(startup_cost) as cost from mart.startups "
        f"where {PERIOD}"
    )
    [held] = asked(
        f"select sum(gpu_seconds) as held from mart.team_days where {PERIOD} and team_name "
        "not in ('__unallocated__', '__unavailable__', '__unknown__', '__rounding__')"
    )
    [starts] = asked("from start_waits($first, ($last + 1)::date) where grouping_name = 'all'")
    assert found == {
        "Held before work": figures.hours(sums["spent"]),
        "Share of held": figures.percent(float(sums["spent"] / held["held"])),
        "Half start within": figures.duration(starts["p50_start_seconds"]),
        "Slowest tenth takes over": figures.duration(starts["p90_start_seconds"]),
    }
    money = shown(usual("startup", unit="money"))
    assert money["Held before work"] == figures.money(sums["cost"], "USD")


@pytest.mark.parametrize("unit", ["GPU-hours", "money"])
@pytest.mark.parametrize("by", ["image", "node", "GPU model", "team"])
def test_the_causes_of_a_row_are_all_of_it_and_the_rows_are_all_there_is(by, unit):
    rows = table(usual("startup", by=by, unit=unit), "p50_start_seconds")
    of, ending = ("startup_cost", "_cost") if unit == "money" else ("gpu_seconds", "_gpu_seconds")
    apart = (of, "startup_cost", "gpu_seconds", "unpriced_gpu_seconds")
    for row in rows:
        parts = [row[name] for name in row if name.endswith(ending) and name not in apart]
        if not is_unknown(row[of]):
            assert sum(0 if is_unknown(each) else each for each in parts) == pytest.approx(row[of])
    [sums] = asked(f"select sum({of}) as total from mart.startups where {PERIOD}")
    scale = 1 if unit == "money" else 3600
    total = sum(row[of] for row in rows if not is_unknown(row[of]))
    assert total == pytest.approx(float(sums["total"]) / scale)


def test_where_nothing_has_a_price_the_causes_are_shown_in_hours_and_no_cost_is_made_up():
    app = usual("startup", cluster="beta", unit="money")
    assert shown(app)["Held before work"] == figures.NO_PRICE
    assert "Nothing of it has a price: the causes are shown in GPU-hours." in words(app)
    [sums] = asked(
        f"select sum(gpu_seconds) as spent from mart.startups where {PERIOD} "
        "and cluster_name = 'beta'"
    )
    rows = table(app, "p50_start_seconds")
    assert sum(row["gpu_seconds"] for row in rows) == pytest.approx(float(sums["spent"]) / 3600)
    assert all(is_unknown(row["startup_cost"]) for row in rows)


def test_a_team_in_the_address_is_the_only_one_shown():
    app = usual("startup", team="vision", by="team")
    assert {row["team_name"] for row in table(app, "p50_start_seconds")} == {"vision"}
    [sums] = asked(
        f"select sum(gpu_seconds) as spent from mart.startups where {PERIOD} "
        "and team_name = 'vision'"
    )
    assert shown(app)["Held before work"] == figures.hours(sums["spent"])


def test_who_has_not_started_and_where_clocks_disagree_is_said_beside_the_percentiles():
    """30 days of 30 pods: each day one has left, on the last one it still starts, one disorders."""
    said = words(usual("startup"))
    assert "840 of 900 pods started" in said
    assert "1 still start, 29 left before" in said
    assert "Of 30 pods clocks disagree" in said


def test_what_no_event_tells_is_said_and_where_there_are_no_events_at_all():
    """Of beta's pods no event was recorded, of alpha's of each; alpha's causes are all told."""
    blind = words(usual("startup", cluster="beta"))
    [sums] = asked(
        f"select sum(gpu_seconds) as blind from mart.startups where {PERIOD} "
        "and cause_name = 'undetermined'"
    )
    assert BLIND in blind
    assert f"nothing tells what {figures.hours(sums['blind'])} of starting" in blind
    both = words(usual("startup"))
    assert BLIND not in both
    assert f"No event tells*: {figures.hours(sums['blind'])}. Events about" in both
    assert "were recorded of 66.7 % of the pods" in both
    assert "No event tells" not in words(usual("startup", cluster="alpha"))


def test_the_longest_pulls_stand_first_and_a_queue_that_is_not_told_is_not_nothing():
    rows = table(usual("startup", period="7 days"), "queue_seconds")
    assert len(rows) == 100
    lengths = [row["total_seconds"] for row in rows]
    assert lengths == sorted(lengths, reverse=True)
    assert {is_unknown(row["queue_seconds"]) for row in rows} == {True, False}
    assert {row["node_name"] for row in rows} == {"alpha-h100", "alpha-a100"}


def test_where_no_event_was_recorded_no_pull_is_the_reason_said():
    said = words(usual("startup", cluster="beta"))
    assert "Kubelets tell them by events, of which none was recorded." in said


def test_pods_that_still_start_are_shown_whatever_the_period():
    app = usual("startup", period="7 days")
    [row] = table(app, "cause_name")
    assert row["pod_uid"] == f"{LAST}/4"
    assert row["cause_name"] == "image pull"
    assert row["gpu_share"] == 8


def test_days_computed_before_there_was_such_a_mart_are_not_days_without_starts(
    monkeypatch, tmp_path
):
    monkeypatch.setattr(dashboard_starts, "fill_marts", lambda *_: None)
    dashboard_data.publish(Home(tmp_path), 2, is_measured=False)
    said = words(opened(monkeypatch, tmp_path, "startup"))
    assert "has not been computed for this period" in said
    assert "None, as of this snapshot." in said
