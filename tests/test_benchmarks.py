"""The benchmarks run, on a tiny fleet, and measure a fleet as it should be; no test asserts a time.

How fast the product is, is measured by `python -m benchmarks` and stated in the README.
"""

import io
from contextlib import redirect_stdout

import pytest

from benchmarks.__main__ import measure
from benchmarks.fleet import Size
from lake.connect import plain_database
from lake.home import Home
from lake.read import Door

pytestmark = pytest.mark.whole
TINY = Size(gpus=160, days=1, holds=1500, is_sampled=True)


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """What a benchmark printed, and the door to the lake that it left."""
    folder, printed = tmp_path_factory.mktemp("benchmark"), io.StringIO()
    with redirect_stdout(printed):
        measure(TINY, folder, is_refreshed=True)
    with Door(Home(folder / "home")) as door:
        yield printed.getvalue(), door


def test_a_benchmark_prints_steps_seconds_memory_rows_and_what_they_are_held_against(measured):
    printed, _ = measured
    for words in (
        *("core.ledger", "checking the laws", "peak memory", "rows/s", "plain Parquet"),
        *("sorts them once", "the open hour", "first figures"),
    ):
        assert words in printed


def test_what_is_measured_of_an_open_hour_leaves_the_lake_as_a_whole_run_does(measured):
    _, door = measured
    [(samples, times)] = door.query(
        "select count(*), count(distinct date_trunc('minute', sampled_at)) from raw.gpu_samples"
    ).fetchall()
    [(told,)] = door.query("select sum(sample_count) from core.gpus").fetchall()
    assert (samples, times) == (told, 1440)


def test_the_measured_fleet_has_as_many_holds_as_were_asked_for(measured):
    _, door = measured
    [(count,)] = door.query("select count(*) from core.holds").fetchall()
    assert 0.8 < count / TINY.holds < 1.4


def test_the_measured_fleet_is_known_whole_and_nothing_in_it_overlaps(measured):
    _, door = measured
    [(installed,)] = door.query("select sum(gpu_seconds) from core.ledger").fetchall()
    assert installed == TINY.gpus * TINY.seconds
    assert door.query("select distinct reason_name from core.unbooked").fetchall() == []


def test_the_measured_fleet_has_gangs_services_restarts_partitions_and_a_crowded_queue(measured):
    _, door = measured
    states = "select distinct state_name from core.hold_states"
    found = {name for (name,) in door.query(states).fetchall()}
    assert found >= {"starting", "gang_wait", "loading", "terminating", "unobserved"}
    assert found >= {"active", "idle", "stalled"}
    for query in (
        "select 1 from core.attempts where gang_size_count >= 8",
        "select 1 from core.attempts where is_service",
        "select 1 from core.attempts where outcome_name = 'queued'",
        "select 1 from core.restarts where restart_kind_name = 'container'",
        "select 1 from core.hold_shares where share_micro_gpu < 1000000",
        "select 1 from core.ledger where ledger_cost > 0",
    ):
        assert door.query(f"{query} limit 1").fetchall(), query


def test_the_measured_fleet_is_sampled_each_minute_and_some_gpus_report_errors(measured):
    _, door = measured
    [(devices, samples)] = door.query(
        "select count(*), sum(sample_count) from core.gpus where sample_seconds between 59 and 61"
    ).fetchall()
    assert devices == TINY.gpus - 8 + 8 * 7  # the GPUs of one node are cut in seven
    assert 0.97 < samples / (devices * 1440) < 1
    [(known,)] = door.query(
        "select sum(date_diff('second', begin_at, end_at)) from core.gpu_states "
        "where activity_name <> 'unobserved'"
    ).fetchall()
    assert 0.95 < known / (devices * TINY.seconds) < 1
    for query in (
        "select 1 from core.gpu_errors",
        "select 1 from core.gpu_states where activity_name = 'stalled'",
        "select 1 from mart.gpu_episodes where episode_name = 'idle'",
        "select 1 from core.hold_parts where basis_name = 'label' and is_shared",
        "select 1 from core.gpu_stretches where kind_name = 'exporter_down'",
    ):
        assert door.query(f"{query} limit 1").fetchall(), query


def test_an_asof_join_is_never_run_as_each_row_against_all_others(tmp_path):
    # DuckDB does so where it expects few rows on the left; behind a few joins it always does.
    con = plain_database(Home(tmp_path))
    con.execute("create table seen as select i % 9 as node, i as seconds from range(99) as t(i)")
    con.execute("create table asked as select 1 as node, 5 as seconds")
    plan = con.execute("explain from asked asof join seen using (node, seconds)").fetchall()[0][1]
    con.close()
    assert "ASOF" in plan and "NESTED" not in plan
