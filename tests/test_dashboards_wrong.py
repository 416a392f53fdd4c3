"""The page of what went wrong, without a browser: a finding over midnight is one, kinds stay apart.

What every page must do is in test_dashboards.py; the rows behind this one in dashboard_findings.py.
"""

import sys

import pytest

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
