"""The pages of what GPUs do, without a browser: use, idle, health and blind spots, by hand.

What every page must do is in test_dashboards.py; the rows behind these are in dashboard_gpus.py.
"""

import sys
from datetime import UTC, date, datetime, timedelta

import polars as pl
import pytest

from dashboards import figures
from dashboards.charts import gapless
from dashboards.heat import kinds
from dashboards.idling import by_pod
from dashboards.use import with_ratios
from lake.home import Home
from lake.read import Door
from models.mart_gpus import EPISODES, GPU_EPISODES, GPU_FINDINGS, USE_HOURS, USE_WORKLOADS
from tests import dashboard_data
from tests.dashboard_data import HOSTILE_JOB, HOSTILE_TEAM, LAST, published_home
from tests.dashboard_page import opened, shown, table, words

BEGIN, END = LAST - timedelta(days=29), LAST + timedelta(days=1)
SWEEP = "alpha/vision/sweep-17"
SERVING = "alpha/search-ranking/rank-serving"


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
        return door.query(query, {"first": BEGIN, "last": LAST}).pl()


def use(**hours: float | None) -> dict:
    """Ratios of a row with these GPU-hours, and money at 2 an hour where it is told."""
    names = ("available", "held", "active", "unobserved", "sm_observed", "effective")
    row = {f"{name}_gpu_seconds": 3600 * (hours.get(name) or 0) for name in names}
    return with_ratios(pl.DataFrame([row])).row(0, named=True)


# Allocated or used?


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


def test_in_money_what_has_no_price_is_in_no_ratio():
    """6 held at a cost of 12, of which 3 active; the unobserved have no price at all."""
    row = {"available_gpu_seconds": 1, "available_cost": 24.0, "held_cost": 12.0,
           "active_cost": 6.0, "unobserved_cost": None, "sm_observed_cost": None,
           "effective_cost": None}  # fmt: skip
    schema = {name: pl.Float64 for name in row}
    found = with_ratios(pl.DataFrame([row], schema=schema), "money").row(0, named=True)
    assert (found["allocation_ratio"], found["active_ratio"]) == (0.5, 0.5)
    assert found["utilisation_ratio"] is None


def test_the_ratios_on_the_page_are_those_of_the_mart(monkeypatch):
    found = shown(opened(monkeypatch, published_home(), "used"))
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


def test_a_workload_in_the_address_is_the_only_one_shown(monkeypatch):
    """sweep-17: 3 GPUs for 26 hours, never at work."""
    app = opened(monkeypatch, published_home(), "used", workload=SWEEP)
    found = shown(app)
    assert found["Utilisation ratio"] == found["Active ratio"] == "0 %"
    assert found["Idle and stalled"] == "78.0 GPU-h"
    assert "sweep-17 · namespace vision · team vision" in words(app)
    assert "78.0 GPU-h held" in words(app)


def test_where_nothing_measures_a_workload_its_ratios_are_not_measured(monkeypatch):
    [key] = asked(
        "select workload_key_uid from mart.use_workloads where cluster_name = 'beta' "
        "and day_on between $first and $last group by all having sum(unobserved_gpu_seconds) = sum(held_gpu_seconds) limit 1"
    )["workload_key_uid"]
    found = shown(opened(monkeypatch, published_home(), "used", workload=key))
    told = [found[name] for name in ("Utilisation ratio", "Active ratio", "Idle and stalled")]
    assert told == ["not measured"] * 3
    unpriced = shown(opened(monkeypatch, published_home(), "used", workload=key, unit="money"))
    assert unpriced["Utilisation ratio"] == "not measured"


@pytest.mark.parametrize("by", ["team", "workload", "GPU model", "node", "cluster"])
def test_each_way_down_holds_all_that_is_held(by, monkeypatch):
    app = opened(monkeypatch, published_home(), "used", by=by, period="7 days")
    held = sum(row["held_gpu_seconds"] for row in table(app, "utilisation_ratio"))
    [whole] = asked(
        "select sum(held_gpu_seconds) / 3600 as held from mart.use_hours "
        "where day_on between $last::date - 6 and $last and $first is not null"
    )["held"]
    assert held == pytest.approx(float(whole))


def test_a_link_goes_one_step_down_and_keeps_the_filters(monkeypatch):
    app = opened(monkeypatch, published_home(), "used", period="7 days", cluster="alpha")
    urls = [row["team_url"] for row in table(app, "team_url")]
    assert "used?period=7+days&cluster=alpha&team=vision" in urls
    app = opened(monkeypatch, published_home(), "used", team="vision")
    assert any(r["workload_url"].endswith("vision%2Fsweep-17") for r in table(app, "workload_url"))


def test_a_workload_that_is_not_there_says_so(monkeypatch):
    app = opened(monkeypatch, published_home(), "used", workload="no/such")
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


# Which GPUs are idle now?


def test_idle_and_stalled_gpus_are_counted_one_by_one_and_suspicions_apart(monkeypatch):
    app = opened(monkeypatch, published_home(), "idle")
    found = shown(app)
    assert (found["Idle GPUs"], found["Stalled GPUs"]) == ("17", "6")
    assert "in 7 pods" in words(app) and "4 by their metrics, 2 suspected" in words(app)


def test_a_pod_s_cost_a_day_is_its_idle_gpus_at_their_price(monkeypatch):
    """llm-70b: 8 x 3.90 x 24 = 748.80 a day, 30.5 h so far = 951.60. sweep-17: 3 of 8 GPUs."""
    rows = table(opened(monkeypatch, published_home(), "idle"), "per_day_cost")
    first, sweep = rows[0], next(row for row in rows if row["workload_name"] == "sweep-17")
    assert (first["gpus_text"], first["per_day_cost"]) == ("8 of 8", 748.8)
    assert first["episode_cost"] == pytest.approx(951.6)
    assert first["episode_seconds"] == timedelta(hours=30.5)
    assert (sweep["gpus_text"], sweep["per_day_cost"]) == ("3 of 8", pytest.approx(280.8))
    assert rows == sorted(rows, key=lambda row: -(row["per_day_cost"] or 0)), "the dearest first"


def test_what_has_no_price_costs_nobody_knows_what(monkeypatch):
    app = opened(monkeypatch, published_home(), "idle", cluster="beta")
    found = shown(app)
    assert (found["Idle GPUs"], found["Cost a day"], found["Cost so far"]) == (
        "2", "no price", "no price",
    )  # fmt: skip
    assert "Cost: no price." in app.code[0].value
    [row] = table(app, "per_day_cost")
    assert pl.Series([row["per_day_cost"]], strict=False).fill_nan(None)[0] is None


def test_a_shorter_episode_is_shown_when_asked_for(monkeypatch):
    assert shown(opened(monkeypatch, published_home(), "idle", least="30 min"))["Idle GPUs"] == "18"
    assert shown(opened(monkeypatch, published_home(), "idle", least="12 h"))["Idle GPUs"] == "14"


@pytest.mark.parametrize(
    ("query", "pods"),
    [
        ({"cause": ["waiting for peers"]}, {"llm-70b", "asr-large"}),
        ({"state": "stalled"}, {"asr-large", "policy-8"}),
        ({"team": "vision"}, {"sweep-17", "notebook-ana"}),
        ({"cluster": "beta"}, {"embed-9"}),
        ({"workload": SERVING}, {"rank-serving"}),
        ({"period": "dates", "dates": ["2026-11-10", "2026-11-12"], "team": "vision"},
         {"sweep-17", "notebook-ana"}),
    ],
)  # fmt: skip
def test_the_filters_of_the_page_leave_what_they_name(query, pods, monkeypatch):
    rows = table(opened(monkeypatch, published_home(), "idle", **query), "per_day_cost")
    assert {row["workload_name"] for row in rows} == pods


def test_nothing_idle_with_the_filters_says_how_many_there_are_without(monkeypatch):
    app = opened(monkeypatch, published_home(), "idle", cause=["broken"])
    assert "No GPU is idle or stalled with these filters" in words(app)
    assert "24 are with other ones" in words(app)


def test_where_nothing_is_measured_idle_is_not_known_rather_than_none(bare, monkeypatch):
    app = opened(monkeypatch, bare, "idle")
    assert set(shown(app).values()) == {"not measured"}
    assert "Whether a GPU is idle is not known" in words(app)


def test_a_fleet_all_of_which_is_idle_is_listed_whole():
    with Door(Home(published_home())) as door:
        one = door.mart(EPISODES, BEGIN, END).filter("is_open").head(1)
    fleet = pl.concat(
        one.with_columns(pod_uid=pl.lit(f"pod-{n}"), hold_id=pl.lit(f"pod-{n}/gpu"))
        for n in range(1000)
    )
    pods = by_pod(fleet)
    assert pods.height == 1000
    assert pods["gpu_count"].sum() == 1000


def test_episodes_that_are_over_stand_apart_from_those_that_are_not(monkeypatch):
    """sweep-16: 8 GPUs, 9.5 h at 3.90 = 296.40; asr-small: 2 GPUs, 4 h at 2.10 = 16.80."""
    app = opened(monkeypatch, published_home(), "idle")
    found = {r["workload_name"]: r["episode_cost"] for r in table(app, "until_at", 1)}
    assert found == {"sweep-16": pytest.approx(296.4), "asr-small": pytest.approx(16.8)}


def test_the_message_to_an_owner_says_how_many_since_when_why_and_what_it_costs(monkeypatch):
    text = opened(monkeypatch, published_home(), "idle", workload=SERVING).code[0].value
    with Door(Home(published_home())) as door:
        number = door.snapshot.number
    for said in (
        "To: oncall@example.com",
        "Subject: 2 GPUs of rank-serving idle since 2026-11-29 08:00 UTC",
        "rank-serving-7c9f-fghij on a100-01: 1 of 2 GPUs idle since 2026-11-29 09:00 UTC (5 h)",
        "SM activity at most 0 %, GPU_UTIL 0 %, 38,000 MiB of memory held, power 62 W",
        "likely cause: no requests",
        "Cost so far USD 23.10, USD 100.80 a day",
        f"As of 2026-11-29 14:00 UTC, gpuledger snapshot {number}.",
    ):
        assert said in text


def test_names_in_the_message_stay_on_their_line(monkeypatch):
    app = opened(monkeypatch, published_home(), "idle", team=HOSTILE_TEAM)
    assert HOSTILE_JOB in app.code[0].value
    rendered = [str(e.value) for kind in (app.markdown, app.caption, app.info) for e in kind]
    assert not [text for text in rendered if "evil" in text or "<img" in text]


@pytest.mark.parametrize(("minutes", "colour"), [(10, "gray"), (20, "orange")])
def test_as_of_turns_amber_after_a_quarter_of_an_hour(minutes, colour, monkeypatch, tmp_path):
    until = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=minutes)
    monkeypatch.setattr(dashboard_data, "KNOWN_UNTIL", until)
    monkeypatch.setattr(dashboard_data, "LAST", until.date())
    dashboard_data.publish(Home(tmp_path), 2)
    said = words(opened(monkeypatch, tmp_path, "idle"))
    assert f":{colour}-badge[:material/schedule: As of {until:%Y-%m-%d %H:%M} UTC" in said


def test_findings_are_said_in_words_with_their_cost(monkeypatch):
    rows = table(opened(monkeypatch, published_home(), "idle"), "finding_cost")
    found = {row["meaning_text"]: (row["gpus_text"], row["finding_cost"]) for row in rows}
    assert found["asks for more GPUs than it uses"] == ("3 of 8", pytest.approx(163.8))
    assert found["works, and nobody holds it"] == ("1", pytest.approx(29.4))


def test_a_viewer_of_one_team_sees_its_rows_alone():
    with Door(Home(published_home()), teams={"vision"}) as door:
        for mart in (USE_HOURS, USE_WORKLOADS, GPU_EPISODES, GPU_FINDINGS, EPISODES):
            rows = door.mart(mart, BEGIN, END)
            assert set(rows["team_name"]) == {"vision"}, mart.name


# GPU health


def test_a_fault_over_midnight_is_one_and_says_since_when(monkeypatch):
    """79 told 2.5 h before the end; the other from the 25th at 20:00 for 40 h: 42.5 GPU-h."""
    app = opened(monkeypatch, published_home(), "health")
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
    app = opened(monkeypatch, published_home(), "health", gpus="all GPUs")
    rows = table(app, "health_name")
    assert {r["health_name"] for r in rows if r["cluster_name"] == "beta"} == {"unknown"}
    assert {r["health_name"] for r in rows} == {"broken", "look at it", "unknown", "no fault told"}
    assert shown(app)["Health unknown"] == figures.percent(8 / 104)
    assert "Health is unknown" in words(opened(monkeypatch, bare, "health"))


def test_time_slowed_is_summed_by_node_with_what_was_told(monkeypatch):
    """h100-06: 8 GPUs, 5400 s + 60 s x number a day, 7 days: 7 x (8 x 5400 + 60 x 28) / 3600."""
    app = opened(monkeypatch, published_home(), "health", period="7 days")
    first = table(app, "told_gpu_seconds")[0]
    assert first["node_name"] == "h100-06"
    assert first["thermal_gpu_seconds"] == pytest.approx(7 * (8 * 5400 + 60 * 28) / 3600)


# What are we blind to?


def test_a_blind_spot_says_which_nodes_since_when_why_and_what_it_costs(monkeypatch):
    rows = table(opened(monkeypatch, published_home(), "blind"), "quantity_text")
    found = {(row["quantity_text"], row["names_text"]): row for row in rows}
    silent, no_sm = found["exporter", "a100-04"], found["SM activity", "h100-08"]
    assert (silent["nodes_text"], silent["since_text"]) == ("1 of 12", "2026-11-29 09:00")
    assert silent["reason_text"] == "the exporter fell silent"
    assert "idle cannot be told" in silent["evidence_text"]
    assert no_sm["evidence_text"].startswith("No utilisation ratio")
    assert no_sm["since_text"] == "before 2026-10-31"
    assert found["exporter", "l40s-01"]["told_ratio"] == 0


def test_a_node_without_an_exporter_is_one_blind_spot_and_not_one_for_each_quantity(monkeypatch):
    rows = table(opened(monkeypatch, published_home(), "blind"), "quantity_text")
    assert [r["quantity_text"] for r in rows if r["names_text"] == "l40s-01"] == ["exporter"]


def test_what_could_not_be_read_and_what_was_refused_is_on_the_page(bare, monkeypatch):
    app = opened(monkeypatch, published_home(), "blind")
    reads = table(app, "try_count")
    assert [(r["read_name"], r["stretch_seconds"]) for r in reads] == [
        ("partial", timedelta(days=1)), ("missing", timedelta(minutes=90)),
    ]  # fmt: skip
    assert shown(app)["Readings refused"] == "5,132", "a notice loses nothing"
    assert len(table(app, "mend_text")) == 3
    assert "no metric of any GPU was read" in words(opened(monkeypatch, bare, "blind"))


def test_the_share_that_was_measured_is_that_of_the_use(monkeypatch):
    found = shown(opened(monkeypatch, published_home(), "blind"))
    [(held, unobserved)] = asked(
        "select sum(held_gpu_seconds), sum(unobserved_gpu_seconds) from mart.use_hours "
        "where day_on between $first and $last"
    ).iter_rows()
    assert found["Held time measured"] == figures.percent(float((held - unobserved) / held))
    assert found["Nodes that tell nothing now"] == "2"
