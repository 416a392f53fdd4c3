"""The page of idle GPUs, without a browser: counts, money and messages by hand, and its filters.

What every page must do is in test_dashboards.py; the rows behind this one in dashboard_gpus.py.
"""

import sys
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from dashboards.idling import by_pod
from lake.home import Home
from lake.read import Door
from models.mart_gpus import EPISODES, GPU_EPISODES, GPU_FINDINGS, USE_HOURS, USE_WORKLOADS
from tests import dashboard_data
from tests.dashboard_data import HOSTILE_JOB, HOSTILE_TEAM, LAST, published_home
from tests.dashboard_page import opened, shown, table, usual, words

BEGIN, END = LAST - timedelta(days=29), LAST + timedelta(days=1)
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


def test_idle_and_stalled_gpus_are_counted_one_by_one_and_suspicions_apart():
    app = usual("idle")
    found = shown(app)
    assert (found["Idle GPUs"], found["Stalled GPUs"]) == ("17", "6")
    assert "in 7 pods" in words(app) and "4 by their metrics, 2 suspected" in words(app)


def test_a_pod_s_cost_a_day_is_its_idle_gpus_at_their_price():
    """llm-70b: 8 x 3.90 x 24 = 748.80 a day, 30.5 h so far = 951.60. sweep-17: 3 of 8 GPUs."""
    rows = table(usual("idle"), "per_day_cost")
    first, sweep = rows[0], next(row for row in rows if row["workload_name"] == "sweep-17")
    assert (first["gpus_text"], first["per_day_cost"]) == ("8 of 8", 748.8)
    assert first["episode_cost"] == pytest.approx(951.6)
    assert first["episode_seconds"] == timedelta(hours=30.5)
    assert (sweep["gpus_text"], sweep["per_day_cost"]) == ("3 of 8", pytest.approx(280.8))
    assert rows == sorted(rows, key=lambda row: -(row["per_day_cost"] or 0)), "the dearest first"


def test_what_has_no_price_costs_nobody_knows_what():
    app = usual("idle", cluster="beta")
    found = shown(app)
    assert (found["Idle GPUs"], found["Cost a day"], found["Cost so far"]) == (
        "2", "no price", "no price",
    )  # fmt: skip
    assert "Cost: no price." in app.code[0].value
    [row] = table(app, "per_day_cost")
    assert pl.Series([row["per_day_cost"]], strict=False).fill_nan(None)[0] is None


def test_a_shorter_episode_is_shown_when_asked_for():
    assert shown(usual("idle", least="30 min"))["Idle GPUs"] == "18"
    assert shown(usual("idle", least="12 h"))["Idle GPUs"] == "14"


@pytest.mark.parametrize(
    ("query", "pods"),
    [
        ({"cause": ("waiting for peers",)}, {"llm-70b", "asr-large"}),
        ({"state": "stalled"}, {"asr-large", "policy-8"}),
        ({"team": "vision"}, {"sweep-17", "notebook-ana"}),
        ({"cluster": "beta"}, {"embed-9"}),
        ({"workload": SERVING}, {"rank-serving"}),
        ({"period": "dates", "dates": ("2026-11-10", "2026-11-12"), "team": "vision"},
         {"sweep-17", "notebook-ana"}),
    ],
)  # fmt: skip
def test_the_filters_of_the_page_leave_what_they_name(query, pods):
    rows = table(usual("idle", **query), "per_day_cost")
    assert {row["workload_name"] for row in rows} == pods


def test_nothing_idle_with_the_filters_says_how_many_there_are_without():
    app = usual("idle", cause=("broken",))
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


def test_episodes_that_are_over_stand_apart_from_those_that_are_not():
    """sweep-16: 8 GPUs, 9.5 h at 3.90 = 296.40; asr-small: 2 GPUs, 4 h at 2.10 = 16.80;
    asr-tiny: 6 h at 2.10 = 12.60, open when its day ended, and not since.
    """
    app = usual("idle")
    found = {r["workload_name"]: r["episode_cost"] for r in table(app, "until_at", 1)}
    assert found == {
        "sweep-16": pytest.approx(296.4),
        "asr-small": pytest.approx(16.8),
        "asr-tiny": pytest.approx(12.6),
    }


def test_the_message_to_an_owner_says_how_many_since_when_why_and_what_it_costs():
    text = usual("idle", workload=SERVING).code[0].value
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


def test_names_in_the_message_stay_on_their_line():
    app = usual("idle", team=HOSTILE_TEAM)
    assert HOSTILE_JOB in app.code[0].value
    rendered = [str(e.value) for kind in (app.markdown, app.caption, app.info) for e in kind]
    assert not [text for text in rendered if "evil" in text or "<img" in text]


@pytest.mark.parametrize(("minutes", "colour"), [(10, "gray"), (20, "orange")])
def test_as_of_turns_amber_after_a_quarter_of_an_hour(minutes, colour, monkeypatch, tmp_path):
    until = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=minutes)
    monkeypatch.setattr(dashboard_data, "KNOWN_UNTIL", until)
    monkeypatch.setattr(dashboard_data, "LAST", until.date())
    dashboard_data.publish(Home(tmp_path), 2, is_measured=False)
    said = words(opened(monkeypatch, tmp_path, "idle"))
    assert f":{colour}-badge[:material/schedule: As of {until:%Y-%m-%d %H:%M} UTC" in said


def test_findings_are_said_in_words_with_their_cost():
    rows = table(usual("idle"), "finding_cost")
    found = {row["meaning_text"]: (row["gpus_text"], row["finding_cost"]) for row in rows}
    assert found["asks for more GPUs than it uses"] == ("3 of 8", pytest.approx(163.8))
    assert found["works, and nobody holds it"] == ("1", pytest.approx(29.4))


def test_a_viewer_of_one_team_sees_its_rows_alone():
    with Door(Home(published_home()), teams={"vision"}) as door:
        for mart in (USE_HOURS, USE_WORKLOADS, GPU_EPISODES, GPU_FINDINGS, EPISODES):
            rows = door.mart(mart, BEGIN, END)
            assert set(rows["team_name"]) == {"vision"}, mart.name
