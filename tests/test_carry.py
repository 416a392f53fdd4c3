"""What a day hands on: a changed day makes the next one dirty, and a rerun of it mends that.

How a day is folded is in test_truth.py and test_properties.py.
"""

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from lake.home import Home
from lake.read import Door
from lake.run import dirty_days
from models.config import load
from models.window import Window
from pipelines.process import process
from simulator import build
from tests.kube_objects import owner, pod
from tests.test_recording import a_node, line

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


CONFIG = """
clusters:
  - name: alpha
    sources: [{kind: kubernetes, path: recorded}]
annotations: {submitted_at: [example.com/at]}
"""


def a_try(uid: str, day: int, hour: int, phase: str) -> dict:
    item = pod(
        owners=[owner("Job", "train", api="batch/v1")],
        annotations={"example.com/at": "2026-03-01T08:00:00Z"},
        status={"phase": phase},
    )
    created = f"2026-03-{day:02}T{hour:02}:00:00Z"
    item["metadata"] |= {"uid": uid, "name": uid, "creationTimestamp": created}
    return item


def test_an_attempt_days_after_the_first_does_not_wait_since_the_submission(tmp_path):
    folder = tmp_path / "recorded"
    folder.mkdir()
    lines = [
        line("09:00:00", "LISTED", a_node()),
        line("09:00:00", "ADDED", a_try("one", 1, 9, "Pending")),
        line("10:00:00", "MODIFIED", a_try("one", 1, 9, "Failed")),
        line("11:00:00", "ADDED", a_try("two", 3, 11, "Pending"), 3),
        line("12:00:00", "MODIFIED", a_node(), 3),
    ]
    (folder / "all.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "gpuledger.yaml").write_text(CONFIG)
    home = Home(tmp_path / "home")
    outcome = process(home, load(tmp_path / "gpuledger.yaml"), "alpha")
    assert (outcome.exit_code, outcome.broken) == (0, [])
    with Door(home) as door:
        found = door.query("select distinct queued_at from core.attempts order by 1").fetchall()
    assert [queued.astimezone(UTC) for (queued,) in found] == [
        datetime(2026, 3, 1, 8, tzinfo=UTC),
        datetime(2026, 3, 3, 11, tzinfo=UTC),
    ]
