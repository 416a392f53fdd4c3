"""The pages without a browser: each runs through its frame, and its figures are the marts' sums.

What only a browser shows (scrolling, console, the URL) is in test_dashboards_browser.py.
"""

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from dashboards import serve, tables
from dashboards.waiting import CURVE, Slice
from lake.create import create
from lake.home import Home
from lake.read import Door
from models import figures
from models.states import HELD_STATES, RESERVED, WASTE_STATES
from tests import dashboard_data
from tests.dashboard_data import BROKEN, HOSTILE_JOB, HOSTILE_TEAM, LAST, published_home
from tests.dashboard_page import opened, shown, words

PAGES = (
    "where", "who", "waits", "used", "idle", "startup", "wrong", "health",
    "blind", "find", "workload", "node",
)  # fmt: skip
FIRST_OF_30 = LAST - timedelta(days=29)


@pytest.fixture(autouse=True)
def _main_module(monkeypatch) -> None:
    """AppTest puts the page in the place of `__main__`, which a spawned process would then run."""
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])


def asked(query: str) -> pl.DataFrame:
    with Door(Home(published_home())) as door:
        return door.query(query, {"first": FIRST_OF_30, "last": LAST}).pl()


@pytest.mark.parametrize("page", PAGES)
def test_a_page_opens_and_asks_a_question(monkeypatch, page):
    assert opened(monkeypatch, published_home(), page).title[0].value.endswith("?")


@pytest.mark.parametrize("page", PAGES)
def test_a_page_says_its_snapshot_how_far_it_knows_and_its_coverage(monkeypatch, page):
    app = opened(monkeypatch, published_home(), page)
    with Door(Home(published_home())) as door:
        number = door.snapshot.number
    for said in (f"Snapshot {number}", "As of 2026-11-29", "Recorded", "Observed", "Priced"):
        assert said in words(app)


@pytest.mark.parametrize(("silent_hours", "colour"), [(20, "gray"), (30, "orange")])
def test_a_live_cluster_that_fell_silent_turns_as_of_amber(
    silent_hours, colour, monkeypatch, tmp_path
):
    until = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=silent_hours)
    monkeypatch.setattr(dashboard_data, "KNOWN_UNTIL", until)
    monkeypatch.setattr(dashboard_data, "LAST", until.date())
    dashboard_data.publish(Home(tmp_path), 2, is_measured=False)
    said = words(opened(monkeypatch, tmp_path, "waits"))
    assert f":{colour}-badge[As of {until:%Y-%m-%d %H:%M} UTC]" in said
    assert "2 of 7 days published" in said, "in a lake's first month a week is what is shown"


def test_a_stale_cluster_is_shown_with_since_when_and_why(monkeypatch):
    app = opened(monkeypatch, published_home())
    [line] = [text.value for text in app.text]
    assert line.startswith("beta, since 20")
    assert line.endswith(BROKEN)


def test_the_headlines_of_the_fleet_are_the_sums_of_its_states(monkeypatch):
    found = shown(opened(monkeypatch, published_home()))
    sums = dict(
        asked(
            "select state_name, sum(gpu_seconds) from mart.fleet_states "
            "where day_on between $first and $last group by 1"
        ).iter_rows()
    )
    installed, held = sum(sums.values()), sum(sums[s] for s in HELD_STATES)
    usable = installed - sums["unavailable"] - sums["unrecorded"]
    assert found == {
        "Installed": figures.hours(installed),
        "Allocation ratio": figures.percent(float(held / usable)),
        "Unallocated": figures.hours(sums["unallocated"]),
        "Unavailable": figures.hours(sums["unavailable"]),
        "Active": figures.hours(sums["active"]),
        "Waste": figures.hours(sum(sums[s] for s in WASTE_STATES)),
        "Unobserved": figures.hours(sums["unobserved"]),
        "Unrecorded": figures.hours(sums["unrecorded"]),
    }


def test_the_fleet_in_money_is_the_sum_of_its_costs(monkeypatch):
    found = shown(opened(monkeypatch, published_home(), unit="money"))
    [(cost,)] = asked(
        "select sum(state_cost) from mart.fleet_states where day_on between $first and $last"
    ).iter_rows()
    assert found["Installed"] == figures.money(cost, "USD")


def test_what_nothing_measures_is_not_zero_and_what_has_no_price_costs_no_nothing(monkeypatch):
    app = opened(monkeypatch, published_home(), cluster="beta")
    assert shown(app)["Active"] == "not measured"
    assert "no price · 0 % priced" in words(app)


def test_the_headlines_of_the_teams_are_the_sums_of_their_days(monkeypatch):
    found = shown(opened(monkeypatch, published_home(), "who"))
    teams = asked("from mart.team_days where day_on between $first and $last").filter(
        ~pl.col("team_name").is_in(RESERVED)
    )
    assert found["Cost of teams"] == figures.money(teams["team_cost"].sum(), "USD")
    assert found["Held by teams"] == figures.hours(teams["gpu_seconds"].sum())
    assert found["Waste"] == figures.money(teams["waste_cost"].sum(), "USD")


def test_a_team_in_the_url_is_the_only_one_shown(monkeypatch):
    found = shown(opened(monkeypatch, published_home(), "who", team="vision"))
    teams = asked("from mart.team_days where day_on between $first and $last").filter(
        team_name="vision"
    )
    assert found["Cost of teams"] == figures.money(teams["team_cost"].sum(), "USD")


def test_the_teams_and_the_reserved_holders_are_all_that_is_installed(monkeypatch):
    app = opened(monkeypatch, published_home(), "who")
    teams, _, apart = (list(table.value["gpu_seconds"]) for table in app.dataframe[-3:])
    [(installed,)] = asked(
        "select sum(gpu_seconds) / 3600 from mart.fleet_states "
        "where day_on between $first and $last"
    ).iter_rows()
    total = sum(float(hours) for hours in [*teams, *apart])
    assert total == pytest.approx(float(installed))


def test_the_headlines_of_the_waits_are_those_of_the_published_view(monkeypatch):
    found = shown(
        opened(monkeypatch, published_home(), "waits", kind="all jobs, also without GPUs")
    )
    rows = asked("from queue_waits($first, ($last + 1)::date)").filter(
        method_name="submission_to_start", grouping_name="all"
    )
    assert found["Half wait at most"] == figures.duration(rows["p50_wait_seconds"][0])


@pytest.mark.parametrize("kind", ["GPU jobs", "service replicas"])
def test_the_unserved_are_counted_apart(monkeypatch, kind):
    app = opened(monkeypatch, published_home(), "waits", kind=kind)
    table = app.dataframe[-3 if kind == "GPU jobs" else -2].value
    for row in table.to_dict("records"):
        unserved = row["left_count"] + row["still_waiting_count"]
        assert row["served_count"] + unserved == row["attempt_count"]


def test_waits_are_lengths_of_time_that_a_table_can_sort(monkeypatch):
    app = opened(monkeypatch, published_home(), "waits")
    for table in (each.value for each in app.dataframe[1:]):  # the first is of the coverage
        waits = [name for name in table.columns if name.endswith("_wait_seconds")]
        assert {table[name].dtype.kind for name in waits} == {"m"}, "m: a difference of times"


def test_the_waits_of_a_team_on_the_page_are_those_of_the_view_over_its_rows_alone(monkeypatch):
    app = opened(monkeypatch, published_home(), "waits", team="vision", cluster="alpha")
    wanted = Slice(app.session_state["reading"], "jobs")
    found = wanted.waits("all").sort("method_name")
    counts = asked(
        "select count(distinct attempt_id) as attempt_count from mart.attempt_waits where is_gpu "
        "and not is_service and team_name = 'vision' and cluster_name = 'alpha' "
        "and queued_on between $first and $last"
    )
    assert found.filter(method_name="served")["attempt_count"][0] == counts["attempt_count"][0]
    told = "$first, ($last + 1)::date, clusters := ['alpha'], teams := ['vision'], kind := 'jobs'"
    view = asked(f"from queue_waits({told}) where grouping_name = 'all'").sort("method_name")
    assert view.equals(found)


def test_the_curve_passes_through_the_median_of_the_view(monkeypatch):
    app = opened(monkeypatch, published_home(), "waits", period="7 days")
    wanted = Slice(app.session_state["reading"], "jobs")
    curve = wanted.rows(CURVE)
    median = wanted.waits("all").filter(method_name="kaplan_meier")["p50_wait_seconds"][0]
    assert curve.height < 400, "the curve is thinned out, so it may miss the median's instant"
    assert curve.filter(pl.col("survival_ratio") <= 0.5)["queue_wait_seconds"].min() == median


def test_a_figure_says_how_it_moved_or_that_there_is_no_earlier_period(monkeypatch):
    moved = opened(monkeypatch, published_home()).metric
    assert all("%" in m.delta or "points" in m.delta or m.delta == "0" for m in moved)
    whole = opened(monkeypatch, published_home(), period="90 days").metric
    assert {m.delta for m in whole} == {"no earlier period"}


def test_a_period_without_data_says_so_and_what_to_do(monkeypatch):
    app = opened(monkeypatch, published_home(), period="dates", dates=["2026-01-01", "2026-01-31"])
    assert "No data published for this period" in words(app)
    assert "gpuledger run --from 2026-01-01 --to 2026-01-31" in words(app)


def test_a_missing_lake_is_no_crash(monkeypatch, tmp_path):
    assert "gpuledger demo" in words(opened(monkeypatch, tmp_path / "nowhere"))


def test_a_lake_without_a_publication_says_so(monkeypatch, tmp_path):
    create(Home(tmp_path), "UTC", "USD")
    assert "Nothing has been published yet" in words(opened(monkeypatch, tmp_path))


def test_a_broken_catalogue_is_shown_with_its_reason(monkeypatch, tmp_path):
    home = Home(tmp_path)
    home.make()
    home.catalog.write_text("this is no catalogue")
    assert "cannot be read" in words(opened(monkeypatch, tmp_path))


@pytest.mark.parametrize("page", PAGES)
def test_no_name_from_a_cluster_is_rendered(monkeypatch, page):
    app = opened(monkeypatch, published_home(), page, team=HOSTILE_TEAM)
    rendered = [str(e.value) for kind in (app.markdown, app.caption, app.info) for e in kind]
    assert not [text for text in rendered if "evil" in text or "<img" in text]


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\tx", "\nx", HOSTILE_TEAM])
def test_a_formula_is_harmless_in_a_csv_and_a_number_stays_one(text):
    frame = pl.DataFrame({"team_name": [text], "change_cost": [-1.5]})
    written = pl.read_csv(tables.csv(frame))
    assert written["team_name"][0] == f"'{text}"
    assert written["change_cost"][0] == -1.5


def test_a_name_in_a_chart_is_no_markup():
    assert "<" not in figures.plain(HOSTILE_JOB)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (59, "59 s"), (60, "1 min"), (8040, "2 h 14 min"), (90061, "1 d 1 h"),
     (86_460, "1 d"), (None, "not reached")],
)  # fmt: skip
def test_a_wait_is_written_in_its_two_largest_units(seconds, text):
    assert figures.duration(seconds) == text


def test_all_and_nothing_are_said_only_where_they_are_true():
    assert [figures.percent(v) for v in (0, 0.0001, 0.5, 0.9999, 1, None)] == [
        "0 %", "< 0.1 %", "50 %", "> 99.9 %", "100 %", "–",
    ]  # fmt: skip


def test_the_pages_are_served_on_loopback_without_usage_statistics():
    command = serve.command(Path("/somewhere"), 8501)
    assert "--server.address=127.0.0.1" in command
    assert "--browser.gatherUsageStats=false" in command
    assert serve.environment(Path("/somewhere"))["GPULEDGER_HOME"] == "/somewhere"
