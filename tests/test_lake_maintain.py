"""What maintenance takes away, and what it must never take."""

import os
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from lake.connect import attach
from lake.errors import LakeError
from lake.home import Home
from lake.maintain import Report, maintain
from lake.read import Door, published
from lake.run import Run, mark_dirty
from tests.test_lake import (
    PODS,
    TEAM_DAYS,
    close,
    costs,
    day,
    files,
    fresh_home,
    published_run,
    rows,
    spent,
    stored,
    window,
)


@pytest.fixture
def home(tmp_path) -> Home:
    return fresh_home(tmp_path)


def age(home: Home, hours: float) -> None:
    """Let the catalogue and the files look as they will look in some hours."""
    shift = f"-{hours} hours"
    with closing(sqlite3.connect(home.catalog)) as con:
        for table, column in (
            ("ducklake_snapshot", "snapshot_time"),
            ("ducklake_files_scheduled_for_deletion", "schedule_start"),
        ):
            con.execute(
                f"update {table} set {column} = "
                f"strftime('%Y-%m-%d %H:%M:%f', substr({column}, 1, 23), ?) || '+00'",
                [shift],
            )
        con.commit()
    for path in files(home):
        old = path.stat().st_mtime - hours * 3600
        os.utime(path, (old, old))


def readable(home: Home, numbers: list[int]) -> list[int]:
    found = []
    for number in numbers:
        if published(home, number):
            with Door(home, number) as door:
                door.mart(TEAM_DAYS, day(-99), day(99))
            found.append(number)
    return found


def versions(home: Home, count: int) -> list[int]:
    """So many publications of the same window."""
    return [
        published_run(home, f"r{n}", window("a"), spent("a", 0, **{f"team{n}": 1}))
        for n in range(count)
    ]


def test_nothing_younger_than_48_hours_is_taken(home):
    numbers = versions(home, 4)
    before = files(home)
    age(home, 47)
    report = maintain(home)
    assert (report.expired_count, report.removed_count) == (0, 0)
    assert before <= files(home)
    assert readable(home, numbers) == numbers


def test_old_snapshots_expire_but_not_the_newest_published_nor_a_closed_periods(home):
    numbers = versions(home, 5)
    close(home, "a", 0, 1, numbers[1])
    mark_dirty(home, "a", [day(5)], "not published, and newer")
    age(home, 49)
    with Door(home, numbers[1]) as door:
        closed = door.mart(TEAM_DAYS, day(0), day(1))
    report = maintain(home)
    assert report.expired_count >= 3
    assert readable(home, numbers) == [numbers[1], numbers[4]]
    with Door(home, numbers[1]) as door:
        assert door.mart(TEAM_DAYS, day(0), day(1)).equals(closed)
    with pytest.raises(LakeError, match="expired, or never published"):
        Door(home, numbers[0])


def test_files_of_expired_snapshots_are_removed_48_hours_later(home):
    versions(home, 5)
    before = files(home)
    age(home, 49)
    assert maintain(home).removed_count == 0
    assert files(home) >= before
    age(home, 49)
    assert maintain(home).removed_count >= 4
    assert len(files(home)) < len(before)
    assert costs(home) == {("a", day(0), "team4"): 1}
    again = maintain(home)
    assert (again.expired_count, again.removed_count) == (0, 0)


def test_files_that_a_killed_writer_left_are_removed_when_they_are_old(home):
    versions(home, 1)
    orphan = home.data / "mart" / "team_days" / "orphan.parquet"
    orphan.write_bytes(b"x")
    maintain(home)
    assert orphan.exists()
    os.utime(orphan, (0, 0))
    assert maintain(home).removed_count == 1
    assert not orphan.exists()
    assert len(costs(home)) == 1


def test_many_small_files_become_few_and_the_past_stays_readable(home):
    for number in range(12):
        mark_dirty(home, "a", [day(number)], "x")
    numbers = versions(home, 2)
    for number in range(4):
        mark_dirty(home, "b", [day(number)], "x")
    before = stored_dirty(home)
    with Door(home, numbers[0]) as door:
        past = door.query("from meta.dirty_days order by all").fetchall()
    assert maintain(home).merged_count > 0
    assert stored_dirty(home) == before
    with Door(home, numbers[0]) as door:
        assert door.query("from meta.dirty_days order by all").fetchall() == past


def test_raw_rows_are_deleted_only_when_their_retention_is_told(home):
    now = datetime.now(UTC).date()
    ages = [0, 89, 91, 400]
    for number, days in enumerate(ages):
        on = now - timedelta(days=days)
        span = window("a", (on - day(0)).days)
        run = Run(home, f"r{number}", span)
        run.append(PODS, rows(PODS, {"cluster_name": "a", "day_on": on}))
        run.append(TEAM_DAYS, spent("a", (on - day(0)).days, x=1))
        run.publish()
        run.discard()
    assert maintain(home).raw_row_count == 0
    assert stored(home, PODS).total() == 4
    assert maintain(home, raw_retention_days=90).raw_row_count == 2
    assert stored(home, PODS).total() == 2
    assert stored(home).total() == 4


def test_the_retention_of_a_trace_counts_back_from_its_own_last_day(home):
    for number in (-1000, -940, -900):
        run = Run(home, f"r{number}", window("old", number))
        run.append(PODS, rows(PODS, {"cluster_name": "old", "day_on": day(number)}))
        run.publish()
        run.discard()
    assert maintain(home, raw_retention_days=90).raw_row_count == 1
    assert stored(home, PODS).total() == 2


def test_the_bytes_of_each_layer_are_told(home):
    versions(home, 1)
    report = maintain(home)
    assert set(report.layer_bytes) == {"raw", "core", "mart", "meta", "catalog"}
    assert report.layer_bytes["mart"] > 0
    assert report.layer_bytes["raw"] == 0
    assert sum(Report().layer_bytes.values()) == 0


def test_less_than_48_hours_and_a_missing_lake_are_refused(home, tmp_path):
    with pytest.raises(LakeError, match="at least 48 hours, not 1"):
        maintain(home, keep_hours=1)
    with pytest.raises(LakeError, match="there is no lake"):
        maintain(Home(tmp_path / "nowhere"))


def stored_dirty(home: Home) -> list[tuple]:
    con = attach(home, read_only=True)
    try:
        return con.sql("from lake.meta.dirty_days order by all").fetchall()
    finally:
        con.close()
