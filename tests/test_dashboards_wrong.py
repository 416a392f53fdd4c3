"""The page of what went wrong, without a browser: a finding over midnight is one, kinds stay apart.

What every page must do is in test_dashboards.py; the rows behind this one in dashboard_findings.py.
"""

import sys
from datetime import date

import duckdb
import pytest

from dashboards.wrong import KINDS
from models.catalog import CATALOG
from tests.dashboard_data import HOSTILE_JOB, published_home
from tests.dashboard_page import opened, shown, table, usual, words


@pytest.fixture(autouse=True)
def _main_module(monkeypatch) -> None:
    """AppTest puts the page in the place of `__main__`, which a spawned process would then run."""
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])


def test_a_finding_over_midnight_is_one_with_the_time_and_money_of_both_days():
    app = usual("wrong")
    assert shown(app) == {
        "Findings": "2",
        "Still so": "1",
        "Most by gang deadlock": "80.0 GPU-h",
    }
    numbers = ("gpu_seconds", "finding_cost", "beside_gpu_seconds")
    assert [
        (row["finding_name"], row["is_open"], *(float(row[name]) for name in numbers))
        for row in table(app, "evidence_text")
    ] == [("gang deadlock", "no", 80, 288, 0), ("hold on a gone node", "yes", 0, 0, 4)]


def test_what_was_open_at_a_midnight_and_is_told_no_more_is_not_still_so():
    """Of two crash loops that go over midnight, each a finding of its day, one is over since."""
    con = duckdb.connect()
    con.execute("create schema mart")
    for name in ("mart.workload_findings", "mart.fleet_coverage"):
        con.execute(CATALOG[name].ddl(strict=False))
    for day, subjects in ((1, "ab"), (2, "a")):
        told = {"day": date(2026, 3, day)}
        con.execute(
            "insert into mart.fleet_coverage by name select 'c' as cluster_name, $day as day_on",
            told,
        )
        for subject in subjects:
            con.execute(
                "insert into mart.workload_findings by name select 'c' as cluster_name, "
                "$day as day_on, 'crash_loop' as finding_name, $subject as subject_text, "
                "'t' as team_name, $day::timestamptz as since_at, true as is_open, "
                "1 as gpu_seconds, 0 as beside_gpu_seconds",
                {**told, "subject": subject},
            )
    period = {"begin_on": date(2026, 3, 1), "end_on": date(2026, 3, 3)}
    wanted = {"clusters": ["c"], "teams": [], "workload": ""}
    row = con.execute(KINDS, {**period, **wanted}).fetchone()
    assert row and row[:3] == ("crash_loop", 3, 1)


def test_the_members_of_the_chosen_finding_are_listed_with_what_they_held():
    app = usual("wrong")
    found = table(app, "member_state_name")
    assert {(row["pod_name"], float(row["gpu_seconds"])) for row in found} == {
        ("pod-0", 40),
        (HOSTILE_JOB, 40),
    }
    assert HOSTILE_JOB in [text.value.removeprefix("2 of 3 members hold 16 GPUs on ")
                           for text in app.text]  # fmt: skip


def test_one_kind_alone_can_be_shown():
    app = usual("wrong", finding="hold on a gone node")
    [row] = table(app, "evidence_text")
    assert row["finding_name"] == "hold on a gone node"
    assert "No pod is left in it" in words(app)


def test_where_nothing_was_found_the_page_says_so(monkeypatch):
    app = opened(monkeypatch, published_home(), "wrong", cluster="beta")
    assert "Nothing was found in this period" in words(app)
