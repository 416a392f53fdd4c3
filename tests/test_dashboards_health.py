"""The pages of health and of blind spots, without a browser: what is broken, and what is not known.

What every page must do is in test_dashboards.py; the rows behind these in dashboard_health.py.
"""

import sys
from datetime import timedelta

import polars as pl
import pytest

from dashboards.sight import said_once
from lake.home import Home
from lake.read import Door
from models import figures
from tests import dashboard_data
from tests.dashboard_data import LAST, published_home
from tests.dashboard_page import opened, shown, table, usual, words


@pytest.fixture(autouse=True)
def _main_module(monkeypatch) -> None:
    """AppTest puts the page in the place of `__main__`, which a spawned process would then run."""
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """The folder of a lake in which no GPU was ever measured."""
    folder = tmp_path_factory.mktemp("bare")
    dashboard_data.publish(Home(folder), 3, is_measured=False)
    return folder


def asked(query: str) -> pl.DataFrame:
    with Door(Home(published_home())) as door:
        return door.query(query, {"first": LAST - timedelta(days=29), "last": LAST}).pl()


def test_a_fault_over_midnight_is_one_and_says_since_when():
    """79 told 2.5 h before the end; the other from the 25th at 20:00 for 40 h: 42.5 GPU-h."""
    app = usual("health")
    found = shown(app)
    assert (found["Broken now"], found["Broken in the period"]) == ("1", "42.5 GPU-h")
    still, mended = table(app, "basis_name")
    assert (still["node_name"], still["state_name"], still["xid_number"]) == (
        "h100-07", "broken", 79,
    )  # fmt: skip
    assert f"{mended['begin_at']:%Y-%m-%d %H:%M}" == "2026-11-25 20:00"
    assert mended["broken_gpu_seconds"] == 40


def test_clean_up_noise_is_counted_and_shown_only_when_asked_for(monkeypatch):
    app = opened(monkeypatch, published_home(), "health")
    assert shown(app)["XIDs seen"] == "5"
    assert {row["xid_number"] for row in table(app, "meaning_text")} == {79, 64, 43, 31, 63}
    assert "clean-up XIDs (3 hidden)" in app.toggle[0].label
    app.toggle[0].set_value(True).run()
    assert len(table(app, "meaning_text")) == 8


def test_where_xids_are_not_told_health_is_unknown_and_never_good(bare, monkeypatch):
    app = usual("health", gpus="all GPUs")
    rows = table(app, "health_name")
    assert {r["health_name"] for r in rows if r["cluster_name"] == "beta"} == {"unknown"}
    assert {r["health_name"] for r in rows} == {"broken", "look at it", "unknown", "no fault told"}
    assert shown(app)["Health unknown"] == figures.percent(8 / 104)
    assert "Health is unknown" in words(opened(monkeypatch, bare, "health"))


def test_time_slowed_is_summed_by_node_with_what_was_told():
    """h100-06: 8 GPUs, 5400 s + 60 s x number a day, 7 days: 7 x (8 x 5400 + 60 x 28) / 3600."""
    app = usual("health", period="7 days")
    first = table(app, "told_gpu_seconds")[0]
    assert first["node_name"] == "h100-06"
    assert first["thermal_gpu_seconds"] == pytest.approx(7 * (8 * 5400 + 60 * 28) / 3600)


def test_a_blind_spot_says_which_nodes_since_when_why_and_what_it_costs():
    rows = table(usual("blind"), "quantity_text")
    found = {(row["quantity_text"], row["names_text"]): row for row in rows}
    silent, no_sm = found["exporter", "a100-04"], found["SM activity", "h100-08"]
    assert (silent["nodes_text"], silent["since_text"]) == ("1 of 12", "2026-11-29 09:00")
    assert silent["reason_text"] == "it fell silent"
    assert "idle cannot be told" in silent["evidence_text"]
    assert no_sm["evidence_text"].startswith("No utilisation ratio")
    assert no_sm["since_text"] == "before 2026-10-31"
    assert found["exporter", "l40s-01"]["told_ratio"] == 0


def test_a_node_without_an_exporter_is_one_blind_spot_and_not_one_for_each_quantity():
    rows = table(usual("blind"), "quantity_text")
    assert [r["quantity_text"] for r in rows if r["names_text"] == "l40s-01"] == ["exporter"]


def test_what_is_told_no_less_than_its_exporter_is_no_blind_spot_of_its_own():
    """n: an exporter for half of the time, its SM activity for a tenth; m: none at all."""
    told = [("n", "any", 50), ("n", "power_watts", 50), ("n", "sm_ratio", 10),
            ("m", "any", 0), ("m", "sm_ratio", 0), ("l", "sm_ratio", 0)]  # fmt: skip
    names = ["node_uid", "metric_name", "told_gpu_seconds"]
    short = pl.DataFrame(told, schema=names, orient="row").with_columns(cluster_name=pl.lit("c"))
    found = said_once(short, 0.98).select("node_uid", "metric_name").rows()
    assert found == [("n", "any"), ("n", "sm_ratio"), ("m", "any"), ("l", "sm_ratio")]


def test_hours_that_were_read_alike_are_one_stretch_on_the_page():
    [partial] = [r for r in table(usual("blind"), "try_count") if r["read_name"] == "partial"]
    assert partial["stretch_seconds"] == timedelta(days=1)
    assert partial["end_at"] - partial["begin_at"] == timedelta(days=1)


def test_what_could_not_be_read_and_what_was_refused_is_on_the_page(bare, monkeypatch):
    app = usual("blind")
    reads = table(app, "try_count")
    assert [(r["read_name"], r["stretch_seconds"]) for r in reads] == [
        ("partial", timedelta(days=1)), ("missing", timedelta(minutes=90)),
    ]  # fmt: skip
    assert shown(app)["Readings refused"] == "5,132"
    assert "3 rows lost" in words(app)
    assert len(table(app, "mend_text")) == 3
    assert "no metric of any GPU was read" in words(opened(monkeypatch, bare, "blind"))


def test_the_share_that_was_measured_is_that_of_the_use():
    found = shown(usual("blind"))
    [(held, unobserved)] = asked(
        "select sum(held_gpu_seconds), sum(unobserved_gpu_seconds) from mart.use_hours "
        "where day_on between $first and $last"
    ).iter_rows()
    assert found["Held time measured"] == figures.percent(float((held - unobserved) / held))
    assert found["Nodes that tell nothing now"] == "2"
