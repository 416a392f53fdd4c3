"""What a day hands on: a changed day makes the next one dirty, and a rerun of it mends that.

How a day is folded is in test_truth.py and test_properties.py.
"""

import json
from datetime import date, timedelta
from pathlib import Path

import pytest

from lake.home import Home
from lake.run import dirty_days
from models.config import load
from models.window import Window
from pipelines.process import process
from simulator import build

FIRST = date(2026, 11, 16)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory) -> Path:
    return build(tmp_path_factory.mktemp("fleet"), seed=3, clusters=1, days=2, size="tiny")


def run(home: Home, fleet: Path, first: int, last: int) -> None:
    begin_on, end_on = FIRST + timedelta(days=first), FIRST + timedelta(days=last + 1)
    days = Window("alpha", begin_on, end_on)
    outcome = process(home, load(fleet), "alpha", days)
    assert (outcome.exit_code, outcome.broken) == (0, [])


def dirty(home: Home) -> list[date]:
    return dirty_days(home)["day_on"].to_list()


def without_the_last_line_of_the_first_day(record: Path) -> str:
    """Leaves out a pod's only line, so that the next day does not know it at midnight."""
    lines = record.read_text().splitlines(keepends=True)
    items = [json.loads(line) for line in lines]
    seen: dict[str, list[int]] = {}
    for number, item in enumerate(items):
        uid = item["object"]["metadata"].get("uid")
        if uid and item["observed_at"] < str(FIRST + timedelta(days=1)):
            seen.setdefault(uid, []).append(number)
    alive = [
        numbers
        for numbers in seen.values()
        if items[numbers[-1]]["type"] != "DELETED"
        and items[numbers[-1]]["object"]["status"]["phase"] == "Running"
    ]
    gone = set(alive[-1])
    return "".join(line for number, line in enumerate(lines) if number not in gone)


def test_a_changed_day_makes_the_next_one_dirty_until_that_is_computed_again(tmp_path, fleet):
    home, record = Home(tmp_path / "home"), fleet.parent / "recorded" / "alpha" / "v1_pods.jsonl"
    run(home, fleet, 0, 1)
    run(home, fleet, 0, 0)
    assert dirty(home) == []  # the same again changes nothing
    told = record.read_text()
    record.write_text(without_the_last_line_of_the_first_day(record))
    try:
        run(home, fleet, 0, 0)
        assert dirty(home) == [FIRST + timedelta(days=1)]
        run(home, fleet, 1, 1)
        assert dirty(home) == []
    finally:
        record.write_text(told)
