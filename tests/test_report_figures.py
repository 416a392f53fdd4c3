"""What a report says: sums told by hand, the same as on the pages, and nothing that is not known.

How it is laid out and sent is tested in test_report_mail.py and test_report_send.py.
"""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest

from lake.errors import LakeError
from lake.home import Home
from lake.run import Run
from models.window import Window
from pipelines.report import Period, Report, Table
from pipelines.report_basis import basis
from pipelines.report_figures import collect
from pipelines.report_html import html
from pipelines.report_text import text
from tests import dashboard_page
from tests.report_data import DAYS, WEEK, ZONE, episode, known, publish, use, usual


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Home:
    home = Home(tmp_path_factory.mktemp("home"))
    publish(home, usual())
    return home


def made(home: Home, team: str | None = None, snapshot: int | None = None) -> Report:
    return collect(home, basis(home, WEEK, snapshot), "weekly", team)


def of(tmp_path, frames, team: str | None = None) -> Report:
    home = Home(tmp_path / "home")
    publish(home, frames)
    return made(home, team)


def shown(report: Report) -> dict[str, tuple[str, str]]:
    return {figure.name: (figure.shown, figure.note) for figure in report.figures}


def moved(report: Report) -> dict[str, tuple[str, str]]:
    return {figure.name: (figure.before, figure.moved) for figure in report.figures}


def table(report: Report, title: str) -> Table:
    [found] = [table for table in report.tables if table.title == title]
    return found


def cells(report: Report, title: str) -> list[list[str]]:
    return [
        [f"{cell.main} ({cell.small})" if cell.small else cell.main for cell in line]
        for line in table(report, title).rows
    ]


def test_the_figures_of_the_platform_are_the_sums_told_by_hand(home):
    # A day: 100 h of vision, 10 h of robotics, 50 h of nobody; each hour costs 2.
    assert shown(made(home)) == {
        "Installed": ("1,120 GPU-h", ""),
        "Cost": ("EUR 2,240", "100 % of the time has a price"),
        "Allocated": ("770 GPU-h", "EUR 1,540"),
        "Allocation ratio": (
            "68.8 %",  # 110 of 160
            "of what was available; 98 % of the installed time is recorded",
        ),
        "Utilisation ratio": (
            "37.5 %",  # 30 of 80
            "over the 72.7 % of the held time that has an SM reading",  # 80 of 110
        ),
        "Active ratio": ("66.7 %", "over the 81.8 % of the held time that was measured"),
        "Idle and stalled": ("EUR 350.00", "175 GPU-h, 100 % of the time has a price"),
        "Idle": ("140 GPU-h", "EUR 280.00"),
        "Stalled": ("35.0 GPU-h", "EUR 70.00"),
        "Not measured": ("140 GPU-h", "18.2 % of the held time"),
        "Without a price": ("0 GPU-h", "0 % of the installed time"),
    }


def test_the_week_before_stands_beside_with_the_difference(home):
    found = moved(made(home, "vision"))
    assert found["Held"] == ("560 GPU-h", "+140 GPU-h (+25.0 %)")
    assert found["Cost"] == ("EUR 1,120", "+EUR 280.00 (+25.0 %)")
    assert found["Utilisation ratio"] == ("37.5 %", "no change")
    assert found["Active ratio"] == ("85.7 %", "−19.0 points")  # 60 of 90, 60 of 70


def page(monkeypatch, home: Home, **query: str) -> dict[str, str]:
    """The headlines of the page about the same week: the seven days that are published last."""
    app = dashboard_page.opened(monkeypatch, home.path, period="7 days", **query)
    return dashboard_page.shown(app)


def test_a_team_s_figures_are_those_of_its_page(home, monkeypatch):
    drawn, told = page(monkeypatch, home, team="vision"), shown(made(home, "vision"))
    assert (told["Held"][0], told["Cost"][0]) == (drawn["Held"], drawn["Cost"])


def test_use_and_idleness_are_those_of_the_pages_that_show_them(home, monkeypatch):
    for team in (None, "vision"):
        query = {"team": team} if team else {}
        told = shown(made(home, team))
        drawn = dashboard_page.shown(
            dashboard_page.opened(monkeypatch, home.path, "used", days="7", **query)
        )
        for name in ("Utilisation ratio", "Active ratio", *(() if team else ("Allocation ratio",))):
            assert told[name][0] == drawn[name], (team, name)


def test_the_platform_s_figures_are_those_of_its_pages(home, monkeypatch):
    drawn, told = page(monkeypatch, home), shown(made(home))
    for name in ("Installed", "Allocation ratio"):
        assert told[name][0] == drawn[name]
    assert told["Not measured"][0] == drawn["Unobserved"]
    assert told["Cost"][0] == page(monkeypatch, home, unit="money")["Installed"]


def test_episodes_of_a_workload_at_a_time_are_one_line_with_k_of_n_gpus(home):
    # Three of eight GPUs from Monday 23:00, for 30 hours, at 2 an hour: dearer than the notebook.
    assert cells(made(home), "Idle GPUs") == [
        [
            "train-llm (PyTorchJob in vision, team vision, by someone)",
            "3 of 8",
            "Mon 23 Nov, 23:00 (for 1 d 6 h)",
            "waiting for peers",
            "EUR 180.00 (90.0 GPU-h)",
        ],
        [
            "notebook (PyTorchJob in vision, team vision, by someone)",
            "1 of 1",
            "Fri 27 Nov, 09:00 (for 2 d 15 h, not over)",
            "interactive",
            "EUR 126.00 (63.0 GPU-h)",
        ],
    ]
    assert table(made(home), "Idle GPUs").note.startswith("2 idle spells, 153 GPU-h, EUR 306.00.")


def test_a_stall_without_prof_evidence_is_called_suspected(home):
    [line] = cells(made(home, "vision"), "Stalled GPUs")
    assert line[3:] == ["broken (suspected)", "EUR 4.00 (2.00 GPU-h)"]


def test_spells_apart_in_time_are_lines_apart_and_one_from_before_the_week_says_so(tmp_path):
    friday = datetime(2026, 11, 27, tzinfo=UTC)
    long = WEEK.begin - timedelta(hours=5), WEEK.begin + timedelta(hours=3)
    frames = [
        *(known(day) for day in DAYS),
        *(use(day, "vision", held=24, idle=24) for day in DAYS),
        episode(*long, "vision", "one"),
        episode(friday, friday + timedelta(hours=1), "vision", "one", 2),
    ]
    found = cells(of(tmp_path, frames), "Idle GPUs")
    assert [(line[1], line[2]) for line in found] == [
        ("1 of 8", "Mon 23 Nov, 00:00 or before (for 3 h)"),
        ("1 of 8", "Fri 27 Nov, 01:00 (for 1 h)"),
    ]


def test_what_is_not_listed_is_counted(tmp_path):
    begin = datetime(2026, 11, 25, tzinfo=UTC)
    frames = [
        *(known(day) for day in DAYS),
        *(use(day, "vision", held=24, idle=24) for day in DAYS),
        *(episode(begin, begin + timedelta(hours=n), "vision", f"job-{n}") for n in range(1, 13)),
    ]
    found = table(of(tmp_path, frames), "Idle GPUs")
    assert len(found.rows) == 10
    assert "12 idle spells, 78.0 GPU-h, EUR 156.00 in all; the 2 that cost least" in found.note


def test_over_sized_requests_are_added_up_over_the_week(home):
    assert cells(made(home, "vision"), "Over-sized requests") == [
        ["job of vision", "4 of 8", "2 of 7", "EUR 100.00 (50.0 GPU-h)"]
    ]


def test_use_without_a_hold_is_told_to_the_platform_alone(home):
    assert cells(made(home), "What does not fit together") == [
        ["used, although nobody held it", "1", "3.00 GPU-h", "EUR 6.00"]
    ]
    assert "What does not fit together" not in {t.title for t in made(home, "vision").tables}


@pytest.mark.parametrize(("team", "other"), [("vision", "robotics"), ("robotics", "vision")])
def test_a_team_s_report_holds_no_word_of_another_team(home, team, other):
    written = text(made(home, team)) + html(made(home, team))
    assert team in written
    for word in (other, "Installed", "770"):
        assert word not in written


def test_a_stale_cluster_s_reason_is_for_those_who_may_see_all(tmp_path):
    home = Home(tmp_path / "home")
    publish(home, usual())
    failed = Run(home, "failed", Window("alpha", DAYS[-1], WEEK.end_on, ZONE))
    failed.fail("time_is_conserved: a hold of robotics")
    failed.discard()
    publish(home, [known(day, cluster="beta") for day in DAYS], "beta")
    [whole] = made(home).warnings
    assert "Cluster alpha is stale" in whole and "a hold of robotics" in whole
    [own] = made(home, "vision").warnings
    assert "Cluster alpha is stale" in own and "robotics" not in own


def test_what_nothing_measures_is_not_measured_and_never_0(home):
    report = made(home, "robotics")
    told = shown(report)
    for name in ("Utilisation ratio", "Active ratio", "Idle and stalled", "Idle", "Stalled"):
        assert told[name][0] == "not measured", name
    assert told["Not measured"] == ("70.0 GPU-h", "100 % of the held time")
    assert table(report, "Idle GPUs").empty.startswith("Not measured")
    [line] = cells(report, "By workload")
    assert line[2:4] == ["not measured", "not measured"]


def test_active_time_without_an_sm_reading_has_no_utilisation_ratio(tmp_path):
    # What is measured of SM is only the idle part: 0 of it would be told as 0 % of all.
    frames = [known(day) for day in DAYS]
    frames += [use(day, "vision", held=24, active=20, idle=4, sm_observed=4) for day in DAYS]
    told = shown(of(tmp_path, frames, "vision"))
    assert told["Utilisation ratio"][0] == "not measured"
    assert told["Active ratio"][0] == "83.3 %"


def test_time_without_a_price_has_no_cost_and_is_counted(tmp_path):
    frames = [known(day) for day in DAYS]
    frames += [use(day, "vision", None, held=24, active=14, idle=10) for day in DAYS]
    begin = datetime(2026, 11, 25, tzinfo=UTC)
    frames += [episode(begin, begin + timedelta(hours=5), "vision", "job", price=None)]
    report = of(tmp_path, frames, "vision")
    told = shown(report)
    assert told["Cost"] == ("no price", "0 % of the time has a price")
    assert told["Idle"] == ("70.0 GPU-h", "no price")
    assert told["Without a price"] == ("168 GPU-h", "100 % of the held time")
    assert cells(report, "Idle GPUs")[0][-1] == "no price (5.00 GPU-h)"
    assert moved(report)["Cost"] == ("no price", "not wholly priced")


def test_a_cost_of_which_a_part_has_no_price_says_how_much(tmp_path):
    frames = [known(day) for day in DAYS]
    for day in DAYS:
        frames += [use(day, "vision", held=30, idle=30)]
        other = use(day, "vision", None, held=10, idle=10)
        frames += [{"mart.use_hours": [r | {"node_uid": "b"} for r in other["mart.use_hours"]]}]
    told = shown(of(tmp_path, frames, "vision"))
    assert told["Idle"] == ("280 GPU-h", "EUR 420.00 (75 % of it priced)")


def test_a_week_that_is_not_whole_says_so_and_is_not_compared(tmp_path):
    frames = [known(day) for day in DAYS[:-1]] + [known(DAYS[-1], 14)]
    frames += [use(day, "vision", held=24, idle=24) for day in DAYS]
    report = of(tmp_path, frames, "vision")
    [warning] = report.warnings
    assert "10 h of the week are not in the figures" in warning
    assert report.known_until == "2026-11-29 14:00 Europe/Berlin"
    assert "this week is not complete" in report.incomparable
    assert moved(report)["Held"] == ("", "")


def test_a_first_week_has_nothing_to_be_compared_with(tmp_path):
    frames = [part for day in DAYS[7:] for part in (known(day), use(day, "vision", held=24))]
    report = of(tmp_path, frames)
    assert "nothing of it is known" in report.incomparable
    assert moved(report)["Cost"] == ("", "")
    assert "Week before" not in html(report)


def test_a_minute_that_is_missing_is_said_and_the_weeks_are_still_compared(tmp_path):
    frames = [known(day) for day in DAYS[:-1]] + [known(DAYS[-1], 24 - 1 / 60)]
    frames += [use(day, "vision", held=24, idle=24) for day in DAYS]
    report = of(tmp_path, frames, "vision")
    assert "1 min of the week are not in the figures" in report.warnings[0]
    assert moved(report)["Held"] == ("168 GPU-h", "no change")


def test_a_team_without_gpus_held_none_and_has_no_tables(home):
    report = made(home, "nobody")
    assert "held no GPUs" in report.lead
    assert (report.figures, report.tables) == ((), ())


def test_a_week_in_which_nothing_was_held_is_0_beside_the_week_before(tmp_path):
    frames = [known(day) for day in DAYS]
    frames += [use(day, "vision", held=24, idle=24) for day in DAYS[:7]]
    report = of(tmp_path, frames, "vision")
    assert "held no GPUs" in report.lead
    assert shown(report)["Held"][0] == "0 GPU-h"
    assert moved(report)["Held"] == ("168 GPU-h", "−168 GPU-h (−100.0 %)")
    assert shown(report)["Utilisation ratio"][0] == "–"


def test_the_same_snapshot_is_printed_again_to_the_letter(tmp_path):
    home = Home(tmp_path / "home")
    number = publish(home, usual())
    before = made(home)
    failed = Run(home, "failed", Window("alpha", DAYS[-1], WEEK.end_on, ZONE))
    failed.fail("broken")
    failed.discard()
    publish(home, [*(known(day) for day in DAYS), use(DAYS[-1], "vision", held=1)])
    assert text(made(home)) != text(before)
    after = made(home, snapshot=number)
    assert (text(after), html(after)) == (text(before), html(before))


def test_days_of_another_zone_than_the_lake_s_are_refused(home):
    with pytest.raises(LakeError, match=r"Europe/Berlin, not of UTC"):
        basis(home, replace(WEEK, zone="UTC"))


def test_a_full_week_is_from_monday_to_sunday_whenever_it_is_asked_for():
    for today in (date(2026, 11, 30), date(2026, 12, 3), date(2026, 12, 6)):
        assert Period.full_week(today, ZONE) == WEEK
    assert Period.full_week(date(2026, 12, 7), ZONE).begin_on == WEEK.end_on


def test_a_week_with_a_change_of_the_clocks_is_an_hour_longer():
    assert Period.until(date(2026, 10, 25), ZONE).seconds == 169 * 3600
