"""The percentiles of waits over a period, each computed by hand on a few attempts.

What one attempt waits for is in test_sql_waits. The view reads mart.attempt_waits alone, so the
tests fill that.
"""

from datetime import date, timedelta

import duckdb
import pytest

from models.book import frame
from models.mart import ATTEMPT_WAITS
from sql import VIEWS
from tests.sql_case import DAY, at, whole

P = "p50_wait_seconds, p75_wait_seconds, p90_wait_seconds, p95_wait_seconds, p99_wait_seconds"
COUNTS = "attempt_count, served_count, left_count, still_waiting_count"


class Queue:
    """Attempts, of which each waited so long and was served (else said how it ended)."""

    def __init__(self):
        self.rows = []

    def add(self, wait, outcome="served", **told):
        queued = told.pop("queued", 0)
        placed = at(queued + wait) if outcome == "served" else None
        ended = at(queued + wait) if outcome == "left" else None
        self.rows.append(whole(ATTEMPT_WAITS, **{
            "attempt_id": f"w{len(self.rows)}", "workload_key_uid": f"w{len(self.rows)}",
            "queue_name": "q", "team_name": "t", "gpu_shape_name": "t4 x 1 x 1", "is_gpu": True,
            "queued_at": queued, "queued_on": DAY, "placed_at": placed, "started_at": placed,
            "ended_at": ended,
            "known_until_at": 86_400, "outcome_name": outcome, "queue_wait_seconds": wait,
            "quota_wait_seconds": 0, "is_start_known": True, "asked_micro_gpu": 1_000_000,
            "waited_gpu_seconds": wait, **told,
        }))  # fmt: skip

    def ask(self, columns, method="served", where="grouping_name = 'all'", begin=DAY, days=1):
        con = duckdb.connect()
        con.execute("set TimeZone = 'UTC'")
        con.execute("create schema mart")
        con.execute(ATTEMPT_WAITS.ddl(strict=False))
        con.register("given", frame(ATTEMPT_WAITS, self.rows))
        con.execute("insert into mart.attempt_waits by name from given")
        found = con.execute(
            f"select {columns} from ({VIEWS['queue_waits']}) as v "
            f"where method_name = '{method}' and {where} order by all",
            {
                "begin_on": begin,
                "end_on": begin + timedelta(days=days),
                **{"clusters": None, "teams": None, "kind": "all", "wanted": None},
            },
        ).fetchall()
        con.close()
        return found


def queue(*waits):
    """Served after so many seconds; a negative one has left, one with a half waits still."""
    found = Queue()
    for wait in waits:
        outcome = "left" if wait < 0 else "served" if wait == int(wait) else "waiting"
        found.add(int(abs(wait)), outcome)
    return found


def test_percentiles_of_the_served_lie_between_their_neighbours():
    """Of 0, 10, 20, 100: mean 32.5; p50 at place 1.5: 15; p75 at 2.25: 20 + 0.25 x 80 = 40; p90 at
    2.7: 76; p95 at 2.85: 88. Those that left or wait are counted, and change none of these.
    """
    found = queue(10, 100, 0, 20, -5000, 7000.5)
    assert found.ask(COUNTS) == [(6, 4, 1, 1)]
    [(mean, p50, p75, p90, p95, p99, longest)] = found.ask(
        f"mean_wait_seconds, {P}, max_wait_seconds"
    )
    assert (mean, p50, p75, longest) == (32.5, 15, 40, 100)
    assert (p90, p95, p99) == (pytest.approx(76), pytest.approx(88), None)


def test_as_if_nobody_had_left_each_who_left_still_counts_as_having_waited_so_long():
    """10 served, 20 left, 30 served, 40 waits, 50 served. At risk 5, 4, 3, 2, 1.

    S(10) = 4/5; S(30) = 4/5 x 2/3 = 8/15; S(50) = 0: p50, p75, p90, p95 at 50.
    """
    found = queue(10, -20, 30, 40.5, 50)
    assert found.ask(P, "kaplan_meier") == [(50, 50, 50, 50, None)]


def test_at_a_tie_the_served_come_before_those_who_left():
    """Two served and two left at 10, all at risk: S(10) = 1 - 2/4 = 1/2, which is the median. Had
    those who left gone first, S(10) were 1 - 2/2 = 0 and every percentile 10.
    """
    assert queue(10, -10, 10, -10).ask(P, "kaplan_meier") == [(10, None, None, None, None)]


def test_a_percentile_that_the_served_do_not_get_down_to_is_not_reached():
    """Two of six served at 10: S(10) = 2/3, above 1/2; the longest wait known of is 30."""
    found = queue(10, -10, 10, -10, 30.5, -20)
    assert found.ask(f"{P}, max_wait_seconds", "kaplan_meier") == [(None,) * 5 + (30,)]


def test_steps_whose_product_is_exactly_the_quantile_reach_it():
    """Ten served after 1 … 10: S(5) = 9/10 x 8/9 x … x 5/6 = 1/2, S(9) = 1/10 in floating point."""
    found = queue(*range(1, 11))
    assert found.ask(P, "kaplan_meier") == [(5, 8, 9, 10, None)]


def test_where_nobody_is_served_no_percentile_is_reached_and_there_is_no_mean():
    found = queue(-10, 20.5)
    assert found.ask(f"mean_wait_seconds, {P}", "served") == [(None,) * 6]
    assert found.ask(P, "kaplan_meier") == [(None,) * 5]
    assert found.ask(COUNTS, "kaplan_meier") == [(2, 0, 1, 1)]


def test_under_a_hundred_there_is_no_99th_percentile():
    """1 … 100 served: p99 at place 98.01: 99.01; as if nobody had left S(99) = 1/100: 99. 1 … 99:
    none. 99 served and one who left at once: none of the served, but as if nobody had left
    there are 100.
    """
    assert queue(*range(1, 101)).ask("p99_wait_seconds") == [(pytest.approx(99.01),)]
    assert queue(*range(1, 101)).ask("p99_wait_seconds", "kaplan_meier") == [(99,)]
    for method in ("served", "kaplan_meier", "submission_to_start"):
        assert queue(*range(1, 100)).ask("p99_wait_seconds", method) == [(None,)], method
    found = queue(*range(1, 100), -0.1)
    assert found.ask("p99_wait_seconds") == [(None,)]
    assert found.ask("p99_wait_seconds", "kaplan_meier") == [(99,)]


def test_each_grouping_counts_every_attempt_once_and_that_of_gpus_leaves_cpu_work_out():
    """a: 10 s in q1 of red. b: 30 s in q1 of blue. c: 50 s in q2 of blue, cpu alone."""
    found = Queue()
    found.add(10, queue_name="q1", team_name="red")
    found.add(30, queue_name="q1", team_name="blue", gpu_shape_name="t4 x 2 x 4")
    found.add(50, queue_name="q2", team_name="blue", gpu_shape_name="cpu", is_gpu=False)
    named = "grouping_name, queue_name, team_name, gpu_shape_name, served_count, mean_wait_seconds"
    assert sorted(found.ask(named, where="true"), key=str) == sorted([
        ("all", None, None, None, 3, 30),
        ("gpu", None, None, None, 2, 20),
        ("queue", "q1", None, None, 2, 20),
        ("queue", "q2", None, None, 1, 50),
        ("team", None, "red", None, 1, 10),
        ("team", None, "blue", None, 2, 40),
        ("shape", None, None, "t4 x 1 x 1", 1, 10),
        ("shape", None, None, "t4 x 2 x 4", 1, 30),
        ("shape", None, None, "cpu", 1, 50),
        ("each", "q1", "red", "t4 x 1 x 1", 1, 10),
        ("each", "q1", "blue", "t4 x 2 x 4", 1, 30),
        ("each", "q2", "blue", "cpu", 1, 50),
    ], key=str)  # fmt: skip
    for method in ("kaplan_meier", "submission_to_start"):
        assert len(found.ask("grouping_name", method, "true")) == 12, method


def test_the_gpu_time_waited_for_is_of_all_attempts_served_or_not():
    """8 GPUs x 100 s served and 2 GPUs x 50 s left: 900 GPU-seconds."""
    found = Queue()
    found.add(100, asked_micro_gpu=8_000_000, waited_gpu_seconds=800)
    found.add(50, "left", asked_micro_gpu=2_000_000, waited_gpu_seconds=100)
    for method in ("served", "kaplan_meier", "submission_to_start"):
        assert found.ask("waited_gpu_seconds", method) == [(900,)], method


def test_the_cohort_is_who_was_queued_in_the_period_as_known_last():
    """One attempt of two days: on the first it waits (100 s so far), on the second it is served
    after 300. Queued on the first day, it counts there once, as served. One of the day after and
    one of the day before do not count.
    """
    found = Queue()
    next_day = DAY + timedelta(days=1)
    found.add(100, "waiting", attempt_id="a")
    found.add(300, attempt_id="a", day_on=next_day)
    found.add(7, queued_on=next_day, day_on=next_day)
    found.add(9, queued_on=date(2026, 3, 1))
    assert found.ask(f"{COUNTS}, max_wait_seconds") == [(1, 1, 0, 0, 300)]
    assert found.ask(COUNTS, days=2) == [(2, 2, 0, 0)]


def test_the_headline_is_of_each_workload_from_its_submission_to_its_first_start():
    """w is queued at 100, leaves, is queued again at 500 and starts at 700: 600 s. v is evicted
    before it starts and waits still; so does s, which is placed and has not started yet. u has left
    twice. A service, and a source that tells no starts, are not in it.
    """
    found = Queue()
    found.add(50, "left", queued=100, workload_key_uid="w")
    found.add(150, queued=500, started_at=700, workload_key_uid="w")
    found.add(10, started_at=None, ended_at=20, workload_key_uid="v")
    found.add(10, "waiting", queued=400, workload_key_uid="v")
    found.add(10, started_at=None, workload_key_uid="s")
    found.add(10, "left", workload_key_uid="u")
    found.add(10, "left", queued=50, workload_key_uid="u")
    found.add(5, is_service=True)
    found.add(5, is_start_known=False)
    [row] = found.ask(
        f"{COUNTS}, mean_wait_seconds, p50_wait_seconds, max_wait_seconds", "submission_to_start"
    )
    assert row == (4, 1, 1, 2, 600, 600, 600)
