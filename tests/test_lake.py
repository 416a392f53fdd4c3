"""What a run may write, and what is in the lake after it; also the rows that other tests publish.

Several processes at once are in test_lake_processes.py, reading in test_lake_reading.py.
"""

import atexit
import re
import shutil
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import polars as pl
import pytest

from lake.connect import attach
from lake.create import create, opened
from lake.errors import LakeError, StrayRowsError
from lake.home import Home
from lake.read import Door
from lake.run import Run, dirty_days, mark_dirty
from lake.staging import sweep
from lake.writer import transaction, writer
from models.catalog import CATALOG
from models.table import Kind, Table
from models.window import Window

FIRST = date(2026, 11, 16)
TEAM_DAYS = CATALOG["mart.team_days"]
LEDGER = CATALOG["core.ledger"]
PODS = CATALOG["raw.pod_versions"]
PRICES = CATALOG["raw.prices"]
NOTHING = {
    Kind.COUNT: 0,
    Kind.FLAG: False,
    Kind.INSTANT: datetime(2026, 11, 16, tzinfo=UTC),
    Kind.DAY: FIRST,
    Kind.DECIMAL: Decimal(0),
    Kind.RATIO: 0.0,
}


def day(number: int) -> date:
    return FIRST + timedelta(days=number)


def window(cluster: str, first: int = 0, days: int = 1) -> Window:
    return Window(cluster, day(first), day(first + days), "UTC")


def rows(table: Table, *given: dict[str, Any]) -> pl.DataFrame:
    """Rows that keep the contract, of which a test says only what it is about."""
    base = {}
    for column in table.columns:
        words = column.choices[0] if column.choices else "x"
        value = words if column.kind is Kind.TEXT else NOTHING.get(column.kind, [])
        base[column.name] = None if column.nullable else max(value, column.minimum or value)
    return pl.DataFrame([base | row for row in given], schema=table.schema)


def spent(cluster: str, number: int, **costs: int) -> pl.DataFrame:
    """A day of mart.team_days: team -> cost."""
    given = [
        {"cluster_name": cluster, "day_on": day(number), "team_name": team, "team_cost": cost}
        for team, cost in costs.items()
    ]
    return rows(TEAM_DAYS, *given)


def published_run(home: Home, run_id: str, span: Window, *frames: pl.DataFrame) -> int:
    """A whole run that stages these rows of mart.team_days."""
    run = Run(home, run_id, span)
    run.begin(TEAM_DAYS)
    for frame in frames:
        run.append(TEAM_DAYS, frame)
    number = run.publish()
    run.discard()
    return number


def stored(home: Home, table: Table = TEAM_DAYS) -> Counter:
    """The multiset of rows that the newest state of the lake has."""
    con = attach(home, read_only=True)
    try:
        return Counter(map(str, con.sql(f"from lake.{table.name}").pl().rows()))
    finally:
        con.close()


def costs(home: Home) -> dict[tuple[str, date, str], int]:
    with Door(home) as door:
        query = "select cluster_name, day_on, team_name, team_cost::bigint from mart.team_days"
        return {tuple(key): cost for *key, cost in door.query(query).fetchall()}


@cache
def _empty_home() -> Path:
    """A lake without rows, to be copied: making one takes longer than most tests."""
    home = Home(Path(mkdtemp(prefix="gpuledger-test-")) / "home")
    atexit.register(shutil.rmtree, home.path.parent, ignore_errors=True)
    create(home, "UTC", "USD")
    return home.path


def fresh_home(folder: Path) -> Home:
    return Home(shutil.copytree(_empty_home(), folder / "home"))


@pytest.fixture
def home(tmp_path) -> Home:
    return fresh_home(tmp_path)


def test_publishing_replaces_exactly_its_window(home):
    published_run(home, "r1", window("a", 0, 3), *(spent("a", n, x=n + 1) for n in range(3)))
    published_run(home, "r2", window("b", 1), spent("b", 1, x=7))
    published_run(home, "r3", window("a", 1), spent("a", 1, y=9))
    assert costs(home) == {
        ("a", day(0), "x"): 1,
        ("a", day(1), "y"): 9,
        ("a", day(2), "x"): 3,
        ("b", day(1), "x"): 7,
    }


def test_a_rerun_changes_nothing(home):
    frame = spent("a", 0, x=1, y=2)
    published_run(home, "r1", window("a"), frame)
    before = stored(home)
    published_run(home, "r2", window("a"), frame)
    assert stored(home) == before


def test_a_table_staged_without_rows_empties_its_window(home):
    published_run(home, "r1", window("a"), spent("a", 0, x=1))
    published_run(home, "r2", window("a"))
    assert costs(home) == {}


@pytest.mark.parametrize("stray", [("b", 0), ("a", 1), ("a", -1)], ids=str)
def test_rows_outside_the_window_are_refused(home, stray):
    run = Run(home, "r1", window("a"))
    with pytest.raises(StrayRowsError, match=r"mart\.team_days: 1 rows outside a 2026-11-16") as e:
        run.append(TEAM_DAYS, spent(*stray, x=1))
    assert (e.value.table, e.value.count) == ("mart.team_days", 1)
    run.append(TEAM_DAYS, spent("a", 0, y=1))
    values = {"cluster": stray[0], "day": day(stray[1])}
    query = (
        "select * replace ($cluster as cluster_name, $day as day_on) from mart.team_days "
        "union all by name from mart.team_days"
    )
    with run.connect() as con:
        con.execute("create table source as from mart.team_days")
    with pytest.raises(StrayRowsError):
        run.fill(TEAM_DAYS, query.replace("mart.team_days", "source"), values)
    with run.connect() as con:
        assert con.sql("select team_name from mart.team_days").fetchall() == [("y",)]


def test_a_query_whose_columns_are_not_the_contracts_is_refused(home):
    run = Run(home, "r1", window("a"))
    run.append(TEAM_DAYS, spent("a", 0, x=1))
    with run.connect() as con:
        con.execute("create table source as from mart.team_days")
    for query, words in {
        "select * exclude (team_cost) from source": "team_cost DECIMAL(18,6) promised",
        "select *, 1 as more_count from source": "more_count INTEGER returned",
        "select * replace (1.5 as team_cost) from source": "team_cost DECIMAL(2,1) returned",
    }.items():
        with pytest.raises(LakeError, match=re.escape(words)):
            run.fill(TEAM_DAYS, query)
    assert run.fill(TEAM_DAYS, "-- fine\nfrom source;", {"unused": 1}) == 1


def test_a_query_that_takes_too_much_memory_is_refused_by_its_tables_name(home, monkeypatch):
    monkeypatch.setenv("GPULEDGER_MEMORY", "40MB")
    run = Run(home, "r", window("a"))
    greedy = "(select len(list(n)) from range(20_000_000) as t(n)) > 0"
    with pytest.raises(LakeError, match=r"mart\.team_days: .* raise GPULEDGER_MEMORY"):
        run.fill(TEAM_DAYS, f"select * from mart.team_days where {greedy}")
    run.discard()


def test_an_audit_names_the_rules_that_staged_rows_break(home):
    run = Run(home, "r1", window("a"))
    run.append(TEAM_DAYS, spent("a", 0, x=1, y=-2))
    run.append(TEAM_DAYS, spent("a", 0, x=1))
    found = {(breach.rule, breach.count) for breach in run.audit(TEAM_DAYS)}
    assert found == {("grain_is_unique", 1), ("team_cost_in_bounds", 1)}


def test_what_was_only_loaded_is_not_written_again(home):
    pods = rows(PODS, {"cluster_name": "a"})
    run = Run(home, "r1", window("a"))
    run.append(PODS, pods)
    run.publish()
    run.discard()

    run = Run(home, "r2", window("a"))
    assert run.load(PODS) == 1
    assert run.staged() == [PODS.name]
    before = files(home)
    run.publish()
    assert tables_of(home, files(home) - before) == {"meta.runs"}
    with run.connect() as con:
        con.execute("update raw.pod_versions set pod_name = 'touched by hand'")
    run.publish()
    assert tables_of(home, files(home) - before) == {"meta.runs", PODS.name}
    with Door(home) as door:
        query = "select pod_name from raw.pod_versions"
        assert door.query(query).fetchall() == [("touched by hand",)]


def test_the_day_before_can_be_loaded_and_is_not_published(home):
    run = Run(home, "r1", window("a", 0))
    run.append(PODS, rows(PODS, {"cluster_name": "a", "day_on": day(0)}))
    run.publish()
    before = stored(home, PODS)

    run = Run(home, "r2", window("a", 1))
    assert run.load(PODS, begin_on=day(0), end_on=day(1)) == 1
    run.append(PODS, rows(PODS, {"cluster_name": "a", "day_on": day(1)}))
    run.publish()
    assert stored(home, PODS).total() == 2
    assert before < stored(home, PODS)
    assert run.trim(PODS) == 1
    with run.connect() as con:
        assert con.sql("select day_on from raw.pod_versions").fetchall() == [(day(1),)]


def test_a_table_without_days_is_replaced_whole_and_only_if_it_differs(home):
    def publish(run_id: str, price: str) -> set[str]:
        run = Run(home, run_id, window("a"))
        run.begin(PRICES)
        run.append(PRICES, rows(PRICES, {"price_id": price}))
        before = files(home)
        run.publish()
        run.discard()
        return tables_of(home, files(home) - before)

    assert publish("r1", "p") == {"meta.runs", "raw.prices"}
    assert publish("r2", "p") == {"meta.runs"}
    assert publish("r3", "q") == {"meta.runs", "raw.prices"}
    assert stored(home, PRICES).total() == 1


def test_a_run_that_breaks_off_while_publishing_leaves_no_row(home, monkeypatch):
    published_run(home, "r1", window("a"), spent("a", 0, x=1))
    before = stored(home)
    run = Run(home, "r2", window("a"))
    run.append(TEAM_DAYS, spent("a", 0, x=2))

    def refuse(*_: object) -> None:
        raise LakeError("the last statement fails")

    monkeypatch.setattr("lake.publish._record", refuse)
    with pytest.raises(LakeError, match="last statement"):
        run.publish()
    monkeypatch.undo()
    assert stored(home) == before
    run.publish()
    assert costs(home) == {("a", day(0), "x"): 2}


def test_a_closed_period_refuses_to_be_replaced(home):
    number = published_run(home, "r1", window("a", 0, 2), spent("a", 0, x=1), spent("a", 1, x=1))
    close(home, "a", 0, 2, number)
    before = stored(home)
    for first, days in ((1, 1), (-3, 4), (0, 9)):
        run = Run(home, f"r{first}-{days}", window("a", first, days))
        run.begin(TEAM_DAYS)
        with pytest.raises(LakeError, match=f"2026-11-18 was closed at snapshot {number}"):
            run.publish()
        run.discard()
    assert stored(home) == before
    published_run(home, "r3", window("a", 2), spent("a", 2, x=1))
    published_run(home, "r4", window("b", 0), spent("b", 0, x=1))


def test_one_cluster_that_fails_keeps_its_rows_and_is_shown_as_stale(home):
    published_run(home, "r1", window("a"), spent("a", 0, x=1))
    failed = Run(home, "r2", window("a"))
    failed.append(TEAM_DAYS, spent("a", 0, x=666))
    failed.fail("law of money: 1 != 2")
    failed.discard()
    published_run(home, "r3", window("b"), spent("b", 0, x=2))
    assert costs(home) == {("a", day(0), "x"): 1, ("b", day(0), "x"): 2}
    with Door(home) as door:
        [stale] = door.stale().to_dicts()
        assert (stale["cluster_name"], stale["error_text"]) == ("a", "law of money: 1 != 2")

        again = Run(home, "r4", window("a"))
        again.fail("source unreachable")
        again.discard()
        [later] = door.stale().to_dicts()
        assert later["error_text"] == "source unreachable"
        assert later["stale_since_at"] == stale["stale_since_at"]

        published_run(home, "r5", window("a"), spent("a", 0, x=3))
        assert door.stale().is_empty()


def test_publishing_cleans_the_days_it_computed_but_not_marks_made_meanwhile(home):
    mark_dirty(home, "a", [day(0), day(1)], "late segment")
    mark_dirty(home, "b", [day(0)], "late segment")
    run = Run(home, "r1", window("a", 0, 2))
    run.begin(TEAM_DAYS)
    mark_dirty(home, "a", [day(1)], "another late segment")
    run.publish()
    left = dirty_days(home).select("cluster_name", "day_on", "reason_text").rows()
    assert left == [("a", day(1), "another late segment"), ("b", day(0), "late segment")]


def test_a_lake_is_made_once_and_its_zone_and_currency_are_fixed(home):
    assert create(home, "UTC", "USD") == opened(home)
    with pytest.raises(LakeError, match=r"accounting zone .* is UTC and cannot become Asia/Tokyo"):
        create(home, "Asia/Tokyo", "USD")
    with pytest.raises(LakeError, match=r"currency .* is USD and cannot become EUR"):
        create(home, "UTC", "EUR")
    with pytest.raises(LakeError, match="'Mars/Base' is no IANA time zone"):
        create(home, "Mars/Base", "USD")
    assert opened(home).zone == "UTC"


def test_a_newer_lake_is_refused(home):
    published_run(home, "r1", window("a"), spent("a", 0, x=1))
    with writer(home) as con:
        con.execute("update lake.meta.lake set schema_number = 2")
    for use in (opened, Door, lambda home: create(home, "UTC", "USD")):
        with pytest.raises(LakeError, match="schema 2, newer than this gpuledger's 1"):
            use(home)


def test_what_a_newer_contract_has_is_added_and_nothing_else_changes(home):
    published_run(home, "r1", window("a"), spent("a", 0, x=1))
    before = stored(home)
    with writer(home) as con:
        con.execute("drop table lake.core.ledger")
        con.execute("alter table lake.mart.team_days drop column parent_team_name")
    opened(home)
    assert stored(home, LEDGER) == Counter()
    assert Counter(map(sorted_text, stored(home))) == Counter(map(sorted_text, before))
    published_run(home, "r2", window("a"), spent("a", 0, x=1))


def test_a_home_can_be_moved(home, tmp_path):
    published_run(home, "r1", window("a"), spent("a", 0, x=1))
    moved = Home(home.path.rename(tmp_path / "elsewhere"))
    published_run(moved, "r2", window("b"), spent("b", 0, x=2))
    assert len(costs(moved)) == 2


@pytest.mark.parametrize("run_id", ["../../etc/x", "a/b", "", "lake", ".hidden", "raw"])
def test_a_run_cannot_be_named_out_of_its_folder(home, run_id):
    with pytest.raises(LakeError, match="cannot name a run"):
        Run(home, run_id, window("a"))


def test_all_objects_of_one_run_share_what_is_staged(home):
    Run(home, "r1", window("a")).append(TEAM_DAYS, spent("a", 0, x=1))
    Run(home, "r1", window("a")).append(TEAM_DAYS, spent("a", 0, y=1))
    assert sweep(home) == 0
    Run(home, "r1", window("a")).publish()
    assert len(costs(home)) == 2
    Run(home, "r1", window("a")).discard()
    assert [path.name for path in home.runs.iterdir()] == ["sweep.lock"]


def sorted_text(row: str) -> str:
    """A row without the order of its columns, which an added column changes."""
    return "".join(sorted(row))


def files(home: Home) -> set[Path]:
    return set(home.data.rglob("*.parquet"))


def tables_of(home: Home, written: set[Path]) -> set[str]:
    """The tables that these files belong to."""
    return {".".join(path.relative_to(home.data).parts[:2]) for path in written}


def close(home: Home, cluster: str, first: int, days: int, number: int) -> None:
    with writer(home) as con:
        transaction(
            con,
            lambda: con.execute(
                "insert into lake.meta.closed_periods by name select $c as cluster_name, "
                "$b as begin_on, $e as end_on, $n as snapshot_number, now() as closed_at",
                {"c": cluster, "b": day(first), "e": day(first + days), "n": number},
            ),
        )
