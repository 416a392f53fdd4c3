"""The command line as a person or a script meets it: answers, files, exit codes."""

import csv
import io
import json
import shlex
from decimal import Decimal
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from lake.home import Home
from lake.read import Door
from models.config import load
from pipelines import cli_read, starter
from pipelines.cli import app
from pipelines.demo import NEXT
from simulator import build

COST = "select sum(team_cost) as cost from mart.team_days where team_name = '{}'"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory) -> Path:
    return build(tmp_path_factory.mktemp("fleet"), seed=5, clusters=2, days=2, size="tiny")


@pytest.fixture(scope="module")
def lake(tmp_path_factory, fleet) -> Home:
    home = Home(tmp_path_factory.mktemp("home"))
    answer = call("run", "--config", fleet, home=home)
    assert answer.exit_code == 0, answer.output
    return home


def call(*words: object, home: Home | Path) -> Result:
    path = home.path if isinstance(home, Home) else home
    return CliRunner().invoke(app, [str(w) for w in words], env={"GPULEDGER_HOME": str(path)})


def team(lake: Home) -> str:
    query = "select team_name from mart.workload_days group by 1 order by sum(workload_cost) desc"
    with Door(lake) as door:
        return door.query(query).fetchall()[0][0]


def test_demo_prints_laws_totals_and_where_to_go(tmp_path):
    answer = call("demo", "--no-serve", "--days", 1, "--home", tmp_path / "demo", home=tmp_path)
    assert answer.exit_code == 0, answer.output
    for words in ("time_is_conserved", "allocation ratio", "installed", "GPULEDGER_HOME="):
        assert words in answer.stdout
    *asked, last = NEXT
    assert last.startswith("init ")
    for words in asked:
        assert f"gpuledger {words}\n" in answer.stdout
        assert call(*shlex.split(words), home=tmp_path / "demo").exit_code == 0, words
    with Door(Home(tmp_path / "demo")) as door:
        clusters = door.query(
            "select cluster_name, sum(sm_observed_gpu_seconds) > 0, "
            "sum(unobserved_gpu_seconds) > 0 from mart.use_hours group by all order by all"
        ).fetchall()
        ways = door.query("select distinct is_open from mart.gpu_episodes").fetchall()
        causes = door.query(
            "select count(distinct likely_cause_name) from mart.gpu_episodes where is_open"
        ).fetchall()
        xids = door.query("select count(*) from mart.gpu_events").fetchall()
    assert clusters == [("alpha", True, True), ("beta", False, True)]  # something, and not all
    assert set(ways) == {(True,), (False,)}
    assert causes[0][0] > 1 and xids[0][0] > 0


def test_demo_leaves_a_real_lake_alone(lake):
    answer = call("demo", "--no-serve", "--home", lake.path, home=lake)
    assert answer.exit_code == 2
    assert lake.catalog.exists()


def test_init_writes_what_loads_and_never_over_a_file(tmp_path):
    path = tmp_path / "gpuledger.yaml"
    assert call("init", path, home=tmp_path).exit_code == 0
    assert load(path).clusters[0].name == "alpha"
    before = path.read_text()
    assert call("init", path, home=tmp_path).exit_code == 2
    assert path.read_text() == before == starter.text()


def test_doctor_finds_a_missing_path_and_says_how_to_mend_it(tmp_path):
    path = tmp_path / "gpuledger.yaml"
    path.write_text("clusters: [{name: a, sources: [{kind: kubernetes, path: nowhere}]}]")
    answer = call("doctor", "--config", path, home=tmp_path)
    assert answer.exit_code == 3
    assert "nowhere is not there" in answer.stdout
    assert "mend:" in answer.stdout


def test_doctor_counts_what_a_sound_fleet_has(lake, fleet):
    answer = call("doctor", "--config", fleet, home=lake)
    assert answer.exit_code == 0, answer.output
    assert "pod_versions" in answer.stdout
    assert "bytes per GPU-day" in answer.stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--from", "2026-11-18", "--to", "2026-11-17"], "is before --from"),
        (["--cluster", "nobody"], "known: alpha, beta"),
        (["--from", "yesterday"], ""),
    ],
)
def test_run_refuses_wrong_usage(words, told, lake, fleet):
    answer = call("run", *words, "--config", fleet, home=lake)
    assert answer.exit_code == 2
    assert told in answer.output


def test_run_of_one_day_replaces_that_day_by_the_same(lake, fleet):
    query = "select sum(team_cost), sum(gpu_seconds) from mart.team_days"
    with Door(lake) as door:
        before, number = door.query(query).fetchall(), door.snapshot.number
    day = "2026-11-17"
    answer = call(
        *("run", "--from", day, "--to", day, "--cluster", "alpha", "--config", fleet), home=lake
    )
    assert answer.exit_code == 0, answer.output
    with Door(lake) as door:
        assert door.query(query).fetchall() == before
        assert door.snapshot.number > number


def test_run_names_a_source_that_is_not_there(tmp_path):
    path = tmp_path / "gpuledger.yaml"
    path.write_text("clusters: [{name: a, sources: [{kind: kubernetes, path: nowhere}]}]")
    answer = call("run", "--config", path, home=tmp_path)
    assert answer.exit_code == 3
    assert "nowhere" in answer.stderr


def test_a_wrong_configuration_is_told_without_a_traceback(tmp_path):
    path = tmp_path / "gpuledger.yaml"
    path.write_text("clustres: []")
    answer = call("run", "--config", path, home=tmp_path)
    assert answer.exit_code == 2
    assert "clusters" in answer.stderr
    assert "Traceback" not in answer.output


def test_query_gives_decimals_exactly_in_csv_and_json(lake):
    query = COST.format(team(lake))
    with Door(lake) as door:
        [(cost,)] = door.query(query).fetchall()
    [row] = csv.DictReader(io.StringIO(call("query", query, "--format", "csv", home=lake).stdout))
    [found] = json.loads(call("query", query, "--format", "json", home=lake).stdout)
    assert Decimal(row["cost"]) == Decimal(found["cost"]) == cost
    assert "snapshot" in call("query", query, home=lake).stderr


def test_query_of_a_snapshot_that_is_not_there_is_refused(lake):
    answer = call("query", "select 1", "--snapshot", 99999, home=lake)
    assert answer.exit_code == 2
    assert "99999" in answer.stderr


@pytest.mark.parametrize("value", ["=1+1", "+x", "-x", "@x", "\tx", " =1"])
def test_no_cell_is_a_formula(value):
    assert cli_read.safe(value) == f"'{value}"
    assert cli_read.safe(Decimal("-0.000001")) == "-0.000001"


@pytest.mark.parametrize("words", [["select"], ["drop table x"], ["from mart.nothing"]])
def test_a_wrong_query_is_told_without_a_traceback(words, lake):
    answer = call("query", *words, home=lake)
    assert answer.exit_code == 2
    assert "Traceback" not in answer.output


def test_explain_goes_from_a_figure_to_the_line_of_its_file(lake):
    answer = call("explain", "mart.team_days", "team_cost", f"team_name={team(lake)}", home=lake)
    assert answer.exit_code == 0, answer.output
    assert "equals the figure" in answer.stdout
    assert ".jsonl:" in answer.stdout
    assert "per GPU-hour" in answer.stdout


@pytest.mark.parametrize(
    ("table", "column", "key"),
    [
        ("mart.fleet_states", "gpu_seconds", "state_name=unallocated"),
        ("mart.fleet_waterfall", "step_cost", "step_name=installed"),
        ("mart.fleet_waterfall", "gpu_seconds", "step_name=available"),
        ("mart.fleet_coverage", "held_gpu_seconds", "cluster_name=alpha"),
        ("mart.fleet_coverage", "unpriced_gpu_seconds", "cluster_name=alpha"),
        ("mart.workload_days", "waste_cost", "cluster_name=alpha"),
        ("core.gpu_hours", "hour_cost", "cluster_name=beta"),
        ("core.ledger", "ledger_cost", "cluster_name=beta"),
        ("mart.team_days", "unobserved_cost", "day_on=2026-11-16"),
    ],
)
def test_every_sum_of_the_ledger_is_explained_to_the_last_digit(table, column, key, lake):
    answer = call("explain", table, column, key, home=lake)
    assert answer.exit_code == 0, answer.output
    assert "equals the figure" in answer.stdout


def test_explain_does_not_call_a_figure_0_that_nobody_knows(lake):
    answer = call("explain", "mart.fleet_waterfall", "step_cost", "step_name=active", home=lake)
    assert answer.exit_code == 0, answer.output
    assert "figure null, which is not 0" in answer.stdout


@pytest.mark.parametrize(
    "words",
    [
        ["mart.nothing", "team_cost", "team_name=a"],
        ["mart.team_days", "nothing", "team_name=a"],
        ["mart.team_days", "team_cost", "nothing=a"],
        ["mart.team_days", "team_cost", "team_name"],
        ["mart.team_days", "team_cost", "day_on=never"],
    ],
)
def test_explain_refuses_what_it_does_not_know(words, lake):
    answer = call("explain", *words, home=lake)
    assert answer.exit_code == 2
    assert "Traceback" not in answer.output


def test_status_names_snapshot_clusters_and_coverage(lake):
    answer = call("status", home=lake)
    assert answer.exit_code == 0, answer.output
    for words in ("snapshot", "alpha", "beta", "2026-11-17", "dirty, stale: none"):
        assert words in answer.stdout


@pytest.mark.parametrize("words", [["status"], ["query", "select 1"], ["maintain"]])
def test_without_a_lake_a_reader_is_told_so(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answer = call(*words, home=tmp_path / "none")
    assert answer.exit_code == 2
    assert "lake" in answer.stderr


def test_import_takes_a_recorded_folder_to_a_published_snapshot(tmp_path, fleet, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = fleet.parent / "recorded" / "alpha"
    answer = call("import", folder, "--cluster", "old", home=tmp_path / "home")
    assert answer.exit_code == 0, answer.output
    with Door(Home(tmp_path / "home")) as door:
        assert door.query("select distinct cluster_name from core.ledger").fetchall() == [("old",)]


def test_maintain_says_what_it_did(lake):
    answer = call("maintain", home=lake)
    assert answer.exit_code == 0, answer.output
    assert "expired snapshots" in answer.stdout
    assert call("maintain", "--keep-hours", 1, home=lake).exit_code == 2
