"""Time, money and waits are conserved in every fleet, and a range is its days one by one.

The laws of `pipelines/laws.py` run inside, and the same sums are made again in plain Python from
the fleet's own lines. Single rules with their figures are in test_sql.py.
"""

import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from uuid import uuid4

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lake.create import create
from lake.home import Home
from lake.read import Door
from lake.run import Run
from models.catalog import CATALOG
from models.window import Window
from pipelines.collect import gather, sources_of, window_of
from pipelines.compute import compute_table
from pipelines.graph import order
from pipelines.laws import broken
from pipelines.process import process
from tests.conftest import REQUIRE_ALL
from tests.kube_objects import node, pod
from tests.random_fleet import Fleet, Seen, fleets, identified, stamp
from tests.random_fleet_sums import Sums, by_hour, cost, sums

LENIENT = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture]
SECONDS = "date_diff('second', begin_at, end_at)"
Connection = duckdb.DuckDBPyConnection


@pytest.fixture(scope="module")
def home_of(tmp_path_factory):
    """Lakes in which nothing is published: one for each accounting zone."""
    homes: dict[str, Home] = {}

    def home(zone: str) -> Home:
        if zone not in homes:
            homes[zone] = Home(tmp_path_factory.mktemp("home"))
            create(homes[zone], zone, "USD")
        return homes[zone]

    return home


@contextmanager
def computed(home: Home, fleet: Fleet) -> Iterator[Connection]:
    """The fleet's tables, computed and judged as a run does it, but not published."""
    with tempfile.TemporaryDirectory() as folder:
        config = fleet.write(Path(folder), "alpha")
        sources = sources_of(config, "alpha")
        window = window_of(home, config, "alpha", sources)
        assert window
        run = Run(home, uuid4().hex[:12], window)
        try:
            gather(run, config, sources)
            for name in order():
                compute_table(run, name)
            assert broken(run) == []
            with run.connect() as con:
                yield con
        finally:
            run.discard()


def each_pod_holds_from_its_bind_to_its_end(con: Connection, told: Sums) -> None:
    rows = con.execute(
        "select day_on, pod_uid, epoch(begin_at)::bigint, epoch(end_at)::bigint from core.holds"
    ).fetchall()
    assert {(day, pod): (begin, end) for day, pod, begin, end in rows} == told.held


def each_hold_is_booked_or_unbooked_and_its_states_tile_it(con: Connection) -> None:
    parts, booked, seconds = Counter(), Counter(), Counter()
    for table, sign in (("hold_shares", 1), ("bookings", -1), ("unbooked", -1)):
        for hold, share, lasts in con.execute(
            f"select (hold_id, day_on), share_micro_gpu, {SECONDS} from core.{table}"
        ).fetchall():
            assert share >= 0
            assert lasts > 0
            parts[hold] += sign * share * lasts
            booked[hold] += share * lasts if table == "bookings" else 0
    assert not any(parts.values())
    for hold, lasts in con.execute(
        f"select (hold_id, day_on), {SECONDS} from core.holds union all "
        f"select (hold_id, day_on), -{SECONDS} from core.hold_states"
    ).fetchall():
        seconds[hold] += lasts
    assert not any(seconds.values())
    in_ledger = con.execute(
        "select (hold_id, day_on), (1000000 * sum(gpu_seconds))::hugeint from core.ledger "
        "where hold_id is not null group by all"
    ).fetchall()
    assert dict(in_ledger) == {hold: micro for hold, micro in booked.items() if micro}


def each_hour_of_a_node_has_what_is_installed_and_costs_its_price(
    con: Connection, fleet: Fleet, told: Sums
) -> None:
    hours, costs = Counter(), Counter()
    for *key, micro, money in con.execute(
        "select node_uid, epoch(hour_at)::bigint, price_micro_cost_per_gpu_hour, "
        "(1000000 * gpu_seconds)::bigint, (1000000 * ledger_cost)::bigint "
        "from core.ledger left join raw.prices using (price_id)"
    ).fetchall():
        assert micro >= 0
        assert (money is None) == (key[2] is None)
        hours[tuple(key)] += micro
        costs[tuple(key)] += money or 0
    on_nodes = {key: micro for key, micro in hours.items() if key[0] != "__unplaced__"}
    assert on_nodes == by_hour(fleet, told)
    for key, micro in hours.items():
        assert costs[key] == (cost(micro, key[2]) if key[2] else 0)

    # Where no node is known, what is held is what is installed.
    without = [day for day, node in told.installed if node == "__unplaced__"]
    [(held,)] = con.execute(
        f"select coalesce(sum(share_micro_gpu::hugeint * {SECONDS}), 0) from core.hold_shares "
        "where list_contains($1::date[], day_on)",
        [without],
    ).fetchall()
    assert hours.total() - sum(on_nodes.values()) == held


def the_waits_of_an_attempt_tile_it(con: Connection) -> None:
    waits = defaultdict(list)
    for attempt, *span in con.execute(
        "select (attempt_id, day_on), begin_at, end_at from core.waits order by begin_at, end_at"
    ).fetchall():
        waits[attempt].append(span)
    for attempt, queued, started in con.execute(
        "select (attempt_id, day_on), queued_at, started_at from core.attempts"
    ).fetchall():
        tiles = waits.pop(attempt)
        assert tiles[0][0] == queued
        assert all(before[1] == after[0] for before, after in pairwise(tiles))
        assert all(begin <= end for begin, end in tiles)
        assert started in (None, tiles[-1][1])
    assert not waits


@pytest.mark.long
@settings(max_examples=15 if REQUIRE_ALL else 3, suppress_health_check=LENIENT)
@given(fleet=fleets())
def test_time_money_and_waits_are_conserved_in_every_fleet(home_of, fleet):
    told = sums(fleet)
    with computed(home_of(fleet.zone), fleet) as con:
        each_pod_holds_from_its_bind_to_its_end(con, told)
        each_hold_is_booked_or_unbooked_and_its_states_tile_it(con)
        each_hour_of_a_node_has_what_is_installed_and_costs_its_price(con, fleet, told)
        the_waits_of_an_attempt_tile_it(con)


def test_a_pod_that_ended_yesterday_with_no_container_to_say_when_holds_nothing_today(home_of):
    machine = identified(node(), "n", "red", 0)
    evicted = identified(pod(node="red", status={"phase": "Failed"}), "p", "pod-p", 0)
    evicted["status"]["conditions"][0]["lastTransitionTime"] = stamp(0)
    seen = [Seen(0, "Node", "ADDED", machine, 8), Seen(90_000, "Node", "MODIFIED", machine, 8)]
    gone = [Seen(60, "Pod", "MODIFIED", evicted), Seen(50_000, "Pod", "DELETED", evicted)]
    with computed(home_of("UTC"), Fleet("UTC", {"n.jsonl": seen, "p.jsonl": gone}, [], [])) as con:
        held = con.execute(
            "select date_diff('second', begin_at, end_at) from core.holds"
        ).fetchall()
    assert held == [(60,)]


def differing(home: Home) -> list[str]:
    """Tables in which the days of the cluster `apart` are not those of the cluster `whole`."""
    found = []
    with Door(home) as door:
        for name, table in CATALOG.items():
            if table.layer == "meta" or not table.is_daily:
                continue
            columns = ", ".join(c.name for c in table.columns if c.name != "cluster_name")
            sides = [
                f"(select {columns} from {name} where cluster_name = '{cluster}')"
                for cluster in ("whole", "apart")
            ]
            some, other = sides
            if door.query(
                f"({some} except all {other}) union all ({other} except all {some}) limit 1"
            ).fetchall():
                found.append(name)
    return found


@pytest.mark.whole
@settings(max_examples=3, suppress_health_check=LENIENT)
@given(fleet=fleets(days=3), data=st.data())
def test_a_range_in_one_run_equals_its_days_one_by_one_in_any_order(fleet, data):
    with tempfile.TemporaryDirectory() as folder:
        config = fleet.write(Path(folder), "whole", "apart")
        home = Home(Path(folder) / "home")
        outcome = process(home, config, "whole")
        assert (outcome.broken, outcome.error) == ([], None)
        assert outcome.window
        for day in data.draw(st.permutations(list(outcome.window.days()))):
            window = Window("apart", day, day + timedelta(days=1), fleet.zone)
            outcome = process(home, config, "apart", window)
            assert (outcome.broken, outcome.error) == ([], None)
        assert differing(home) == []
