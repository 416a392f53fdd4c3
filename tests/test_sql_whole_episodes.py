"""What the days' pieces of an episode become over a period; instants in seconds of the first day.

What a day's piece is belongs in test_sql_episodes. The view reads mart.gpu_episodes alone, so the
tests fill that.
"""

from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import duckdb

from models.book import frame
from models.mart_gpus import GPU_EPISODES
from sql import VIEWS
from tests.sql_case import DAY, MIDNIGHT, whole

NIGHT = 86_400
ALL = {"clusters": None, "teams": None, "kind": "all", "wanted": None}


def piece(begin: int, end: int, **told: Any) -> dict[str, Any]:
    """A piece of GPU g; what touches midnight goes on there unless told."""
    return whole(GPU_EPISODES, **{
        "day_on": DAY + timedelta(days=begin // NIGHT), "begin_at": begin, "end_at": end,
        "episode_name": "idle", "hold_id": "h", "part_number": 1, "pod_gpu_count": 1,
        "active_before_seconds": 0 if begin % NIGHT == 0 else None,
        "active_after_seconds": 0 if end % NIGHT == 0 else None,
        "is_open": end % NIGHT == 0, "least_seconds": 1800, "most_active_ratio": 0.01,
        "idle_seconds": end - begin, "gpu_seconds": Decimal(end - begin),
        "unpriced_gpu_seconds": Decimal(0), "episode_cost": Decimal(1),
        "likely_cause_name": "unknown", "evidence_text": f"from {begin}", **told,
    })  # fmt: skip


def read(*pieces: dict[str, Any], columns: str = "", days: int = 9, begin: date = DAY):
    """Since, until, seconds of activity (and more columns) of each episode."""
    con = duckdb.connect()
    con.execute("set TimeZone = 'UTC'")
    con.execute("create schema mart")
    con.execute(GPU_EPISODES.ddl(strict=False))
    con.register("given", frame(GPU_EPISODES, list(pieces)))
    con.execute("insert into mart.gpu_episodes by name from given")
    zero = int(MIDNIGHT.timestamp())
    chosen = columns or (
        f"epoch(since_at)::bigint - {zero}, epoch(until_at)::bigint - {zero}, active_seconds"
    )
    found = con.execute(
        f"select {chosen} from ({VIEWS['episodes']}) as v order by since_at",
        {"begin_on": begin, "end_on": begin + timedelta(days=days), **ALL},
    ).fetchall()
    con.close()
    return found


def test_what_goes_on_at_midnight_is_one_episode_over_any_days():
    pieces = piece(80_000, NIGHT), piece(NIGHT, 2 * NIGHT), piece(2 * NIGHT, 2 * NIGHT + 600)
    assert read(*pieces) == [(80_000, 2 * NIGHT + 600, 0)]
    assert read(*pieces, days=1) == [(80_000, NIGHT, 0)]
    assert read(*pieces, columns="is_open, episode_cost::int") == [(False, 3)]


def test_a_heartbeat_at_midnight_does_not_end_it():
    """30 s of work just after it, and 90 s around the next one: 30 + 45 + 45 of 2 days."""
    pieces = (
        piece(70_000, NIGHT),
        piece(NIGHT + 30, 2 * NIGHT - 45, active_before_seconds=30, active_after_seconds=45),
        piece(2 * NIGHT + 45, 2 * NIGHT + 400, active_before_seconds=45),
    )
    assert read(*pieces) == [(70_000, 2 * NIGHT + 400, 120)]


def test_a_hundredth_of_both_pieces_and_what_is_between_ends_it():
    """5,000 s before midnight and 4,900 after it: of 10,000 in all 100 are a hundredth."""
    for between, whole_ones in ((99, 1), (100, 2)):
        first = piece(NIGHT - 5000, NIGHT)
        then = piece(NIGHT + between, NIGHT + 5000, active_before_seconds=between)
        assert len(read(first, then)) == whole_ones
    first = piece(NIGHT - 5000, NIGHT, active_seconds=40)
    then = piece(NIGHT + 30, NIGHT + 5000, active_before_seconds=30, active_seconds=30)
    assert len(read(first, then)) == 2


def test_without_any_work_between_them_pieces_are_one_however_the_rule_is():
    strict = {"most_active_ratio": 0.0}
    pieces = piece(80_000, NIGHT, **strict), piece(NIGHT, NIGHT + 900, **strict)
    assert read(*pieces) == [(80_000, NIGHT + 900, 0)]


def test_pieces_with_a_day_between_them_or_that_end_before_midnight_are_apart():
    assert read(piece(80_000, NIGHT), piece(2 * NIGHT, 2 * NIGHT + 2000)) == [
        (80_000, NIGHT, 0),
        (2 * NIGHT, 2 * NIGHT + 2000, 0),
    ]
    assert read(piece(80_000, 84_000), piece(NIGHT, NIGHT + 2000)) == [
        (80_000, 84_000, 0),
        (NIGHT, NIGHT + 2000, 0),
    ]


def test_a_short_piece_that_joins_nothing_is_no_episode():
    assert read(piece(NIGHT + 30, NIGHT + 1200, active_before_seconds=30)) == []


def test_the_newest_day_that_knows_a_cause_tells_it_with_its_evidence():
    columns = "likely_cause_name, evidence_text"
    worked = piece(80_000, NIGHT, likely_cause_name="work_ended")
    since = piece(NIGHT, 2 * NIGHT)
    assert read(worked, since, columns=columns) == [
        ("work_ended", "from 86400; on 2026-03-02: from 80000")
    ]
    hungry = piece(NIGHT, 2 * NIGHT, likely_cause_name="waiting_for_input")
    assert read(worked, hungry, columns=columns) == [("waiting_for_input", "from 86400")]
    assert read(piece(80_000, NIGHT), since, columns=columns) == [("unknown", "from 86400")]
