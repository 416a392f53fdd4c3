"""What readers are shown: the published past, exactly, and of it only what is theirs to see."""

import threading
from collections.abc import Iterator
from datetime import timedelta

import pytest

import sql
from lake.errors import LakeError, ScopeError
from lake.home import Home
from lake.read import Door, published
from lake.run import Run
from lake.writer import transaction, writer
from models.catalog import CATALOG
from models.mart import QUEUE_WAITS
from tests.test_lake import (
    FIRST,
    LEDGER,
    TEAM_DAYS,
    day,
    fresh_home,
    published_run,
    rows,
    spent,
    window,
)

FLEET = CATALOG["mart.fleet_states"]
WAITS = CATALOG["mart.attempt_waits"]
ANYONE = [
    "select lake.mart.team_days.team_name from lake.mart.team_days",
    "from lake.core.ledger",
    "from memory.mart.team_days",
    "from system.information_schema.tables",
    "from information_schema.tables",
    "from __ducklake_metadata_lake.ducklake_snapshot",
    "from mart.team_days at (version => 1)",
    "from read_csv('/etc/passwd')",
    "select exists (from read_text('/etc/passwd'))",
    "from '/etc/passwd'",
    "from '{data}'",
    "from read_parquet('{data}')",
    "from glob('{data}')",
    '(with "{data}" as (select 1) from "{data}") union all from "{data}"',
    "from sqlite_scan('{catalog}', 'ducklake_table')",
    "from ducklake_snapshots('lake')",
    "from ducklake_cleanup_old_files('lake', cleanup_all => true)",
    "from query('from lake.core.ledger')",
    "from query_table('lake.core.ledger')",
    "from duckdb_views()",
    "from duckdb_settings()",
    "from sqlite_master",
    "from json_execute_serialized_sql('x')",
    "from frame",
    "show tables",
    "show all tables",
    "attach '{catalog}' as other",
    "set lock_configuration = false",
    "pragma database_list",
    "call pragma_version()",
    "copy (select 1) to '{data}'",
    "drop view mart.team_days",
    "insert into mart.team_days select * from mart.team_days",
    "install httpfs",
    "select 1; select 2",
    "",
    "no sql at all",
]
VIEWER_ONLY = [
    "from mart.fleet_states",
    "from core.ledger",
    "from raw.pod_versions",
    "from meta.runs",
    "from MART.Fleet_States",
    "select (select count(*) from core.ledger)",
    "with mine as (from mart.team_days) from mine join core.ledger using (team_name)",
    "select 1 where exists (from mart.fleet_states)",
    "describe core.ledger",
    "summarize mart.fleet_states",
    "from mart.team_days, lateral (from core.ledger)",
    "values ((select count(*) from core.ledger))",
]


@pytest.fixture
def home(tmp_path) -> Home:
    return fresh_home(tmp_path)


@pytest.fixture
def full(home) -> Home:
    """Two clusters, three teams, a platform mart and a ledger."""
    for cluster in ("a", "b"):
        run = Run(home, cluster, window(cluster, 0, 2))
        at = [{"cluster_name": cluster, "day_on": day(n)} for n in range(2)]
        for number in range(2):
            run.append(TEAM_DAYS, spent(cluster, number, red=1, green=2, blue=4))
        run.append(FLEET, rows(FLEET, *at))
        run.append(LEDGER, rows(LEDGER, *at))
        run.append(
            WAITS,
            rows(
                WAITS,
                *(
                    at[0] | {"attempt_id": team, "team_name": team, "queued_on": day(0)}
                    for team in ("red", "blue")
                ),
            ),
        )
        run.publish()
        run.discard()
    return home


def test_a_snapshot_reads_the_past_as_it_was(home):
    first = published_run(home, "r1", window("a"), spent("a", 0, x=1, y=2))
    with Door(home) as door:
        before = door.mart(TEAM_DAYS, day(0), day(1))
    published_run(home, "r2", window("a"), spent("a", 0, z=9))
    with Door(home, first) as door:
        assert door.mart(TEAM_DAYS, day(0), day(1)).equals(before)
        assert door.snapshot.number == first
    with Door(home) as door:
        assert door.mart(TEAM_DAYS, day(0), day(1))["team_name"].to_list() == ["z"]


def test_an_open_door_stays_at_its_snapshot(home):
    published_run(home, "r1", window("a"), spent("a", 0, x=1))
    with Door(home) as door:
        published_run(home, "r2", window("a"), spent("a", 0, y=2))
        assert door.query("select team_name from mart.team_days").fetchall() == [("x",)]


def test_the_published_snapshot_is_the_newest_that_says_so(home):
    assert published(home) is None
    number = published_run(home, "r1", window("a", 0, 2), spent("a", 0, x=1))
    failed = Run(home, "r2", window("a"))
    failed.fail('a text with "published": true in it')
    failed.discard()
    found = published(home)
    assert found is not None
    assert found.number == number
    assert found.tag == {
        "published": True,
        "cluster": "a",
        "from": "2026-11-16",
        "to": "2026-11-18",
        "run": "r1",
    }
    assert found.committed_at.utcoffset() == timedelta(0)
    assert published(home, number) == found
    assert published(home, number + 1) is None


def test_what_is_found_fast_among_thousands_of_snapshots_is_the_newest(home):
    number = published_run(home, "r1", window("a"), spent("a", 0, x=1))
    metadata = "__ducklake_metadata_lake.ducklake_snapshot"
    with writer(home) as con:
        for table in (metadata, f"{metadata}_changes"):
            con.execute(
                f"insert into {table} select * replace ({number} + 1 + i as snapshot_id) "
                f"from {table}, range(5000) as _(i) where snapshot_id = {number}".replace(
                    "select *", f"select {table.split('.')[1]}.*"
                )
            )
    found = published(home)
    assert found is not None
    assert found.number == number + 5000


def test_a_lake_without_a_published_snapshot_says_so(home, tmp_path):
    with pytest.raises(LakeError, match="no published snapshot"):
        Door(home)
    with pytest.raises(LakeError, match="there is no lake"):
        Door(Home(tmp_path / "nowhere"))
    published_run(home, "r1", window("a"), spent("a", 0, x=1))
    with pytest.raises(LakeError, match="snapshot 99 is none of the published ones"):
        Door(home, 99)


def test_a_mart_gives_its_days_in_the_order_of_its_grain(full):
    with Door(full) as door:
        found = door.mart(TEAM_DAYS, day(0), day(1), clusters={"b"})
        assert found["team_name"].to_list() == ["blue", "green", "red"]
        assert found.schema == TEAM_DAYS.schema
        assert door.mart(TEAM_DAYS, day(0), day(2)).height == 12
        assert door.mart(TEAM_DAYS, day(2), day(9)).is_empty()
        assert door.days() is None  # no coverage was published


def test_the_published_days_are_those_of_the_coverage(home):
    coverage = CATALOG["mart.fleet_coverage"]
    for cluster, days in (("a", 3), ("b", 1)):
        run = Run(home, cluster, window(cluster, 0, days))
        given = ({"cluster_name": cluster, "day_on": day(n)} for n in range(days))
        run.append(coverage, rows(coverage, *given))
        run.publish()
        run.discard()
    with Door(home) as door:
        assert door.days() == (day(0), day(2))
        assert door.days("b") == (day(0), day(0))
        assert door.days("c") is None
    with Door(home, teams={"red"}, clusters={"b"}) as door:
        assert door.days() == (day(0), day(0))


def test_a_door_for_some_clusters_shows_no_others(full):
    with Door(full, clusters={"b"}) as door:
        for table in ("mart.team_days", "mart.fleet_states", "core.ledger", "meta.runs"):
            query = f"select distinct cluster_name from {table}"
            assert door.query(query).fetchall() == [("b",)]


def test_parameters_and_views_of_a_period_can_be_used_in_a_query(full):
    with Door(full) as door:
        query = "select count(*) from mart.team_days where team_name = $team and team_cost > $least"
        assert door.query(query, {"team": "red", "least": 0}).fetchall() == [(4,)]
        assert door.query("select ?::int + 1", [1]).fetchall() == [(2,)]
        if "queue_waits" in sql.VIEWS:
            counted = "select sum(attempt_count) from queue_waits(date '2026-11-16', '2026-11-17')"
            assert door.query(counted).fetchall()[0][0] > 0
            found = door.mart(QUEUE_WAITS, FIRST, day(1))
            assert set(found["team_name"].drop_nulls()) == {"red", "blue"}
            assert door.mart(QUEUE_WAITS, day(1), day(2))["attempt_count"].sum() == 0


@pytest.mark.parametrize("statement", ANYONE)
@pytest.mark.parametrize("teams", [None, {"red"}], ids=["operator", "viewer"])
def test_nobody_gets_past_the_door(doors, statement, teams):
    door = doors[teams is None]
    data, catalog = f"{door.home.data}/**/*.parquet", door.home.catalog
    with pytest.raises(ScopeError):
        door.query(statement.format(data=data, catalog=catalog)).fetchall()


@pytest.mark.parametrize("statement", VIEWER_ONLY)
def test_a_viewer_cannot_ask_for_what_has_no_team(doors, statement):
    doors[True].query(statement).fetchall()
    with pytest.raises(ScopeError):
        doors[False].query(statement).fetchall()


def test_a_viewer_sees_only_their_teams_rows(full):
    with Door(full, teams={"red", "o'brien"}) as door:
        assert set(door.mart(TEAM_DAYS, day(0), day(9))["team_name"]) == {"red"}
        query = "select distinct team_name from mart.team_days"
        assert door.query(query).fetchall() == [("red",)]
        if "queue_waits" in sql.VIEWS:
            found = door.mart(QUEUE_WAITS, FIRST, day(1))
            assert set(found["team_name"].drop_nulls()) == {"red"}
        with pytest.raises(ScopeError, match=r"mart\.fleet_states is not here .* or not in your"):
            door.mart(FLEET, day(0), day(9))
        described = door.query("describe mart.team_days").fetchall()
        assert [name for name, *_ in described] == list(TEAM_DAYS.schema)
    with Door(full, teams=()) as door:
        assert door.mart(TEAM_DAYS, day(0), day(9)).is_empty()


def test_the_viewers_database_has_no_way_to_the_lake(full):
    """Even a statement that the parser's verdict let through by mistake would find nothing."""
    with Door(full, teams={"red"}) as door:
        door.mart(TEAM_DAYS, day(0), day(9))
        inside = door._con.cursor()
        names = inside.execute("select database_name from duckdb_databases()").fetchall()
        assert {name for (name,) in names} == {"memory", "system", "temp"}
        teams = inside.execute("select distinct team_name from mart.team_days").fetchall()
        assert teams == [("red",)]
        for statement in (
            f"from read_parquet('{full.data}/**/*.parquet')",
            f"attach '{full.catalog}'",
            "set enable_external_access = true",
        ):
            with pytest.raises(Exception, match=r"disabled|locked|Cannot"):
                inside.execute(statement)


def test_an_operators_door_reads_no_file_but_the_lakes(full):
    with Door(full) as door:
        for statement in ("from read_text('/etc/passwd')", "attach '/tmp/other.duckdb'"):
            with pytest.raises(Exception, match=r"disabled|Cannot"):
                door._con.cursor().execute(statement)


def test_a_door_can_be_shared_by_threads(full):
    found, failed = [], []

    def ask(door: Door) -> None:
        try:
            for _ in range(5):
                found.append(door.mart(TEAM_DAYS, day(0), day(2)).height)
                door.query("select count(*) from core.ledger").fetchall()
        except Exception as error:
            failed.append(error)

    for teams, height in ((None, 12), ({"red"}, 4)):
        found.clear()
        with Door(full, teams=teams) as door:
            target = (
                ask
                if teams is None
                else lambda d: found.append(d.mart(TEAM_DAYS, day(0), day(2)).height)
            )
            threads = [threading.Thread(target=target, args=(door,)) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert not failed
        assert set(found) == {height}


def test_an_older_snapshot_shows_newer_tables_and_columns_as_empty(home):
    published_run(home, "r1", window("a"), spent("a", 0, x=1))

    def older() -> None:
        con.execute("call lake.set_commit_message('x', 'x', extra_info => '{\"published\": true}')")
        con.execute("drop table lake.core.ledger")
        con.execute("alter table lake.mart.team_days drop column parent_team_name")

    with writer(home) as con:
        transaction(con, older)
    with Door(home) as door:
        assert door.query("from core.ledger").columns == list(LEDGER.schema)
        assert door.query("from core.ledger").fetchall() == []
        found = door.mart(TEAM_DAYS, day(0), day(1))
        assert found.schema == TEAM_DAYS.schema
        assert found["parent_team_name"].to_list() == [None]


def test_what_is_read_is_in_utc_whatever_the_machine_says(full, monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    with Door(full) as door:
        query = "select current_setting('TimeZone'), max(hour_at)::varchar from core.ledger"
        assert door.query(query).fetchall() == [("UTC", "2026-11-16 00:00:00+00")]


@pytest.fixture(scope="module")
def doors(tmp_path_factory) -> Iterator[dict[bool, Door]]:
    """One lake's doors for the many statements that are refused: True the operator's."""
    home = fresh_home(tmp_path_factory.mktemp("once"))
    run = Run(home, "r1", window("a"))
    run.append(TEAM_DAYS, spent("a", 0, red=1, blue=2))
    run.append(LEDGER, rows(LEDGER, {"cluster_name": "a", "team_name": "blue"}))
    run.publish()
    run.discard()
    with Door(home) as operator, Door(home, teams={"red"}) as viewer:
        yield {True: operator, False: viewer}
