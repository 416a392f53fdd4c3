"""Time, money and waits are conserved in every fleet, and a range is its days one by one.

The laws of `pipelines/laws.py` run inside, and the same sums are made again in plain Python from
the fleet's own lines. Single rules with their figures are in test_sql.py.
"""
import tempfile
from collections import defaultdict
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lake.create import create
from lake.home import Home
from lake.run import Run
from pipelines.collect import sources_of, stage_raw, window_of
from pipelines.compute import compute_table
from pipelines.graph import order
from pipelines.laws import broken
from tests.random_fleet import Fleet, fleets
from tests.random_fleet_sums import by_hour, cost, sums


@contextmanager
def computed(home_of, fleet: Fleet):
    """A connection with the fleet's tables, computed and judged but not published."""
    with tempfile.TemporaryDirectory() as folder:
        config = fleet.write(Path(folder), "alpha")
        home = home_of(fleet.zone)
        sources = sources_of(config, "alpha")
        window = window_of(config, "alpha", sources)
        assert window
        run = Run(home, uuid4().hex[:12], window)
        try:
            stage_raw(run, config, sources)
            for name in order():
                compute_table(run, name)
            assert broken(run) == []
            with run.connect() as con:
                yield con
        finally:
            run.discard()


@pytest.fixture(scope="module")
def home_of(tmp_path_factory):
    homes: dict[str, Home] = {}

    def home(zone: str) -> Home:
        if zone not in homes:
            homes[zone] = Home(tmp_path_factory.mktemp("home"))
            create(homes[zone], zone, "USD")
        return homes[zone]

    return home


def check(con, fleet: Fleet):
    told = sums(fleet)
    # holds
    held = con.execute(
        "select day_on, pod_uid, epoch(begin_at)::bigint, epoch(end_at)::bigint from core.holds"
    ).fetchall()
    assert {(d, p): (b, e) for d, p, b, e in held} == told.held
    # conservation of holds
    parts = defaultdict(int)
    for table, sign in (("hold_shares", 1), ("bookings", -1), ("unbooked", -1)):
        for hold, day, share, seconds in con.execute(
            f"select hold_id, day_on, share_micro_gpu, date_diff('second', begin_at, end_at) from core.{table}"
        ).fetchall():
            assert share >= 0 and seconds > 0
            parts[hold, day] += sign * share * seconds
    assert not any(parts.values())
    # installed
    ledger = defaultdict(int)
    costs = defaultdict(int)
    for node, hour, price, gpu, money in con.execute(
        "select node_uid, epoch(hour_at)::bigint, price_micro_cost_per_gpu_hour, (gpu_seconds*1000000)::bigint, (ledger_cost*1000000)::bigint "
        "from core.ledger left join raw.prices using (price_id)"
    ).fetchall():
        assert gpu >= 0
        ledger[node, hour, price] += gpu
        if money is not None:
            costs[node, hour, price] += money
    expected = by_hour(fleet, told)
    unplaced = {k: v for k, v in ledger.items() if k[0] == "__unplaced__"}
    assert {k: v for k, v in ledger.items() if k[0] != "__unplaced__"} == expected
    for key, micro in ledger.items():
        if key[2] is not None:
            assert costs[key] == cost(micro, key[2])
        else:
            assert key not in costs
    # unplaced: installed is what is held
    days = {d for d, n in told.installed if n == "__unplaced__"}
    booked = con.execute("select coalesce(sum(share_micro_gpu::hugeint * date_diff('second', begin_at, end_at)),0) from core.hold_shares where list_contains($1, day_on)", [list(days)]).fetchall()[0][0]
    assert sum(unplaced.values()) == booked
    # waits
    waits = defaultdict(list)
    for day, attempt, b, e in con.execute("select day_on, attempt_id, begin_at, end_at from core.waits order by begin_at, end_at").fetchall():
        waits[day, attempt].append((b, e))
    for day, attempt, queued, started, known in con.execute("select day_on, attempt_id, queued_at, started_at, known_until_at from core.attempts").fetchall():
        tiles = waits.pop((day, attempt))
        assert tiles[0][0] == queued
        assert all(a[1] == b[0] for a, b in zip(tiles, tiles[1:], strict=False))
        assert all(a[1] >= a[0] for a in tiles)
        if started is not None:
            assert tiles[-1][1] == started
    assert not waits


import os
N=int(os.environ.get("N","10"))
@settings(max_examples=N, suppress_health_check=list(HealthCheck))
@given(fleet=fleets())
def test_time_money_and_waits_are_conserved_in_every_fleet(home_of, fleet):
    with computed(home_of, fleet) as con:
        check(con, fleet)
