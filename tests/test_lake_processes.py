"""Several processes at one lake: writers queue, readers never fail, and any of them may be killed.

What one run writes is in test_lake.py.
"""

import multiprocessing
import os
import random
import signal
import time
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from lake.errors import LakeError
from lake.home import Home
from lake.maintain import maintain
from lake.read import Door
from lake.run import Run, sweep
from lake.staging import staging
from lake.writer import locked
from tests.test_lake import LEDGER, TEAM_DAYS, costs, day, fresh_home, rows, spent, stored, window

SPAWN = multiprocessing.get_context("spawn")  # Polars does not survive a fork
TOTAL = 3_000


@pytest.fixture
def home(tmp_path) -> Home:
    return fresh_home(tmp_path)


def publish_version(home: Home, run_id: str, version: int, number: int = 0) -> int:
    """A day of cluster a in two tables, whose sums are TOTAL in every version."""
    parts = 1 + version % 7
    ledger = [
        {
            "cluster_name": "a",
            "day_on": day(number),
            "hold_id": f"{version}-{part}",
            "ledger_cost": TOTAL // parts if part else TOTAL - TOTAL // parts * (parts - 1),
        }
        for part in range(parts)
    ]
    run = Run(home, run_id, window("a", number))
    for table in (TEAM_DAYS, LEDGER):
        run.begin(table)
    run.append(TEAM_DAYS, spent("a", number, **{f"team{version}": TOTAL}))
    run.append(LEDGER, rows(LEDGER, *ledger))
    published = run.publish()
    run.discard()
    return published


def ending(seconds: float, all_here: Barrier) -> float:
    """When to end, counted from when every process has started, which takes seconds by itself."""
    all_here.wait()
    return time.time() + seconds


def write_days(path: Path, cluster: str, days: int) -> None:
    for number in range(days):
        run = Run(Home(path), f"{cluster}-{number}", window(cluster, number))
        run.append(TEAM_DAYS, spent(cluster, number, x=number + 1))
        run.publish()
        run.discard()


def write_for(path: Path, seconds: float, all_here: Barrier, told: Connection) -> None:
    publish_version(Home(path), "warm", 0)
    version, end = 0, ending(seconds, all_here)
    while time.time() < end or version < 3:  # three days to tell apart, on the slowest machine
        version += 1
        publish_version(Home(path), f"w{version}", version, version % 3)
    told.send(version)


def maintain_for(path: Path, seconds: float, all_here: Barrier) -> None:
    end = ending(seconds, all_here)
    while time.time() < end:
        maintain(Home(path))
        time.sleep(0.2)


def read_for(path: Path, seconds: float, all_here: Barrier, told: Connection) -> None:
    """Every answer must be whole: both tables of one publication, each day's total."""
    query = (
        "select (select sum(team_cost) from mart.team_days)::bigint, "
        "(select sum(ledger_cost) from core.ledger)::bigint, "
        "(select count(distinct day_on) from core.ledger)"
    )
    count, last, end = 0, 0, ending(seconds, all_here)
    while time.time() < end:
        with Door(Home(path)) as door:
            assert door.snapshot.number >= last
            last = door.snapshot.number
            for _ in range(3):
                [(team_cost, ledger_cost, days)] = door.query(query).fetchall()
                assert team_cost == ledger_cost == days * TOTAL > 0
                count += 1
    told.send(count)


def write_and_maintain_for_ever(path: Path, first: int, told: Connection) -> None:
    home, version = Home(path), first
    told.send("ready")
    while True:
        version += 1
        publish_version(home, f"v{version}", version)
        if version % 4 == 0:
            maintain(home)


def hold_the_lock(path: Path, told: Connection) -> None:
    with locked(Home(path)):
        told.send("held")
        time.sleep(60)


def stage_and_wait(path: Path, told: Connection) -> None:
    run = Run(Home(path), "dead", window("a"))
    run.append(TEAM_DAYS, spent("a", 0, x=1))
    told.send("staged")
    time.sleep(60)


def started(target, *args):
    """The process and the end of the pipe on which it tells something."""
    ours, theirs = SPAWN.Pipe(duplex=False)
    process = SPAWN.Process(target=target, args=(*args, theirs), daemon=True)
    process.start()
    theirs.close()
    return process, ours


def killed(process) -> None:
    os.kill(process.pid, signal.SIGKILL)
    process.join()


@pytest.mark.whole
def test_two_writers_queue_up_and_lose_nothing(home):
    writers = [
        SPAWN.Process(target=write_days, args=(home.path, cluster, 6)) for cluster in ("a", "b")
    ]
    for process in writers:
        process.start()
    for process in writers:
        process.join()
    assert [process.exitcode for process in writers] == [0, 0]
    expected = {(c, day(n), "x"): n + 1 for c in ("a", "b") for n in range(6)}
    assert costs(home) == expected


def test_a_writer_waits_its_time_and_then_names_who_holds_the_lake(home):
    process, told = started(hold_the_lock, home.path)
    assert told.recv() == "held"
    run = Run(home, "r1", window("a"))
    run.append(TEAM_DAYS, spent("a", 0, x=1))
    begun = time.monotonic()
    with pytest.raises(LakeError, match=f"written by process {process.pid}; waited 1 s"):
        run.publish(timeout_seconds=1)
    assert time.monotonic() - begun >= 1
    killed(process)
    run.publish(timeout_seconds=1)  # a dead holder holds nothing
    run.discard()


def test_a_dead_runs_files_are_swept_and_a_living_ones_are_not(home):
    process, told = started(stage_and_wait, home.path)
    assert told.recv() == "staged"
    assert sweep(home) == 0
    with pytest.raises(LakeError, match="under way in another process"):
        Run(home, "dead", window("a"))
    assert home.staging("dead").exists()
    killed(process)
    run = Run(home, "next", window("a"))
    assert not home.staging("dead").exists()
    assert Run(home, "dead", window("a")).staged() == []
    staging(home, "dead").discard()
    run.discard()
    assert [path.name for path in home.runs.iterdir()] == ["sweep.lock"]


@pytest.mark.whole
def test_readers_see_whole_publications_while_one_writes_and_one_maintains(home):
    for number in range(3):
        publish_version(home, f"first{number}", 0, number)
    shared = (home.path, 30, SPAWN.Barrier(5))
    writing, wrote = started(write_for, *shared)
    reading = [started(read_for, *shared) for _ in range(3)]
    maintaining = SPAWN.Process(target=maintain_for, args=shared)
    maintaining.start()
    counts = [told.recv() for _, told in reading]
    version = wrote.recv()
    for process in (writing, maintaining, *(process for process, _ in reading)):
        process.join()
        assert process.exitcode == 0
    assert min(counts) > 0
    last = range(version - 2, version + 1)
    assert costs(home) == {("a", day(v % 3), f"team{v}"): TOTAL for v in last}
    assert stored(home, LEDGER).total() == sum(1 + v % 7 for v in last)


@pytest.mark.long
def test_after_a_kill_at_any_instant_the_next_run_gives_the_same_tables(home, tmp_path, full_size):
    chance = random.Random(20261130)
    publish_version(home, "first", 0)
    for turn in range(12 if full_size else 2):
        process, told = started(write_and_maintain_for_ever, home.path, turn * 1000)
        assert told.recv() == "ready"
        time.sleep(chance.uniform(0, 1.5))
        killed(process)

        [team] = {team for _, _, team in costs(home)}  # one whole version, the old or the new
        version = int(team.removeprefix("team"))
        assert stored(home, LEDGER).total() == 1 + version % 7

    publish_version(home, "last", 5)
    (tmp_path / "undisturbed").mkdir()
    undisturbed = fresh_home(tmp_path / "undisturbed")
    publish_version(undisturbed, "only", 5)
    for table in (TEAM_DAYS, LEDGER):
        assert stored(home, table) == stored(undisturbed, table)
    assert [path.name for path in home.runs.iterdir()] == ["sweep.lock"]
