"""Dagster runs the same steps as the command line: one range is one run, and laws block it."""

import shutil
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest

from lake.errors import LakeError
from lake.home import Home
from lake.read import Door, published
from models.config import load
from pipelines import checks
from pipelines.assets import Ledger, ledger
from pipelines.definitions import defs
from pipelines.laws import LAWS
from pipelines.process import process
from pipelines.schedule import frequently, stretches
from simulator import build

RANGE = {
    "dagster/asset_partition_range_start": "alpha|2026-11-16",
    "dagster/asset_partition_range_end": "alpha|2026-11-17",
}
FIRST_DAY = {"dagster/partition": "alpha|2026-11-16"}
SECOND_DAY = {"dagster/partition": "alpha|2026-11-17"}
MARTS = ("mart.team_days", "mart.workload_days", "mart.fleet_states", "core.ledger")


@pytest.fixture(scope="module")
def fleet(tmp_path_factory) -> Path:
    return build(tmp_path_factory.mktemp("fleet"), seed=3, clusters=2, days=2, size="tiny")


@pytest.fixture
def home(tmp_path, monkeypatch, fleet) -> Home:
    monkeypatch.setenv("GPULEDGER_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GPULEDGER_CONFIG", str(fleet))
    return Home(tmp_path / "home")


def run(instance: dg.DagsterInstance, tags=RANGE) -> dg.ExecuteInProcessResult:
    instance.add_dynamic_partitions("cluster", ["alpha"])
    job = defs.resolve_job_def("everything")
    return job.execute_in_process(
        instance=instance, tags=tags, resources={"ledger": ledger()}, raise_on_error=False
    )


def rows(home: Home, table: str) -> list[tuple]:
    with Door(home) as door:
        return door.query(f"select * from {table} order by all").fetchall()


@pytest.mark.whole
def test_a_range_is_one_run_and_publishes_what_the_command_line_does(home, fleet, tmp_path):
    with dg.DagsterInstance.ephemeral() as instance:
        result = run(instance)
        assert result.success
        done = result.get_asset_check_evaluations()
    assert {check.check_name for check in done} >= {law.name for law in LAWS}
    assert all(check.passed for check in done)
    other = Home(tmp_path / "other")
    assert process(other, load(fleet), "alpha").exit_code == 0
    for table in MARTS:
        assert rows(home, table) == rows(other, table)


def test_a_broken_law_leaves_nothing_published_and_the_cluster_stale(home, monkeypatch):
    monkeypatch.setattr(checks, "breaches", lambda run, law: int(law.name == "waits_tile"))
    with dg.DagsterInstance.ephemeral() as instance:
        assert not run(instance, FIRST_DAY).success
    assert published(home) is None
    with pytest.raises(LakeError):
        Door(home)


@pytest.mark.whole
def test_a_day_whose_day_before_the_lake_lacks_is_run_from_the_record_s_begin(home):
    with dg.DagsterInstance.ephemeral() as instance:
        assert run(instance, SECOND_DAY).success
    assert rows(home, "(select distinct day_on from core.windows)") == [
        (date(2026, 11, 16),),
        (date(2026, 11, 17),),
    ]


def test_too_many_refused_rows_are_refused_here_too(home, fleet, monkeypatch, tmp_path):
    folder = tmp_path / "broken"
    shutil.copytree(fleet.parent, folder)
    record = folder / "recorded" / "alpha" / "v1_pods.jsonl"
    lines = record.read_text().splitlines(keepends=True)
    record.write_text("".join(line + ("broken\n" if n % 9 else "") for n, line in enumerate(lines)))
    monkeypatch.setenv("GPULEDGER_CONFIG", str(folder / fleet.name))
    with dg.DagsterInstance.ephemeral() as instance:
        result = run(instance)
    assert not result.success
    [failure] = [e for e in result.all_events if e.is_step_failure and e.step_key == "raw"]
    assert "import.max_rejected_ratio" in str(failure.event_specific_data)
    assert published(home) is None


def test_every_law_is_a_check_that_blocks():
    specs = [spec for check in checks.CHECKS for spec in check.check_specs]
    assert {spec.name for spec in specs} == {checks.CONTRACT, *(law.name for law in LAWS)}
    assert all(spec.blocking for spec in specs)


def test_days_with_gaps_become_several_runs():
    days = [date(2026, 1, n) for n in (5, 1, 2, 3, 7)]
    assert list(stretches(days)) == [
        (date(2026, 1, 1), date(2026, 1, 3)),
        (date(2026, 1, 5), date(2026, 1, 5)),
        (date(2026, 1, 7), date(2026, 1, 7)),
    ]


MINUTE = datetime(2026, 11, 17, 9, 20, tzinfo=UTC)


def asked(instance: dg.DagsterInstance, config: Path, now: datetime = MINUTE) -> list[str]:
    """The partitions that `frequently` asks for."""
    resource = Ledger(config=str(config), home=str(config.parent))
    with dg.build_schedule_context(
        instance=instance, scheduled_execution_time=now, resources={"ledger": resource}
    ) as context:
        requests = frequently.evaluate_tick(context).run_requests or ()
    return [request.tags["dagster/asset_partition_range_start"] for request in requests]


@pytest.fixture
def instance(tmp_path):
    """A Dagster of our own, which knows where it is."""
    (tmp_path / "dagster").mkdir()
    with dg.DagsterInstance.local_temp(str(tmp_path / "dagster")) as made:
        yield made


@pytest.fixture
def served(tmp_path) -> Path:
    """Two clusters with a server of metrics, one with a folder of them, one with none."""
    path = tmp_path / "gpuledger.yaml"
    path.write_text(
        """
        clusters:
          - {name: a, sources: [{kind: prometheus, url: "http://a.example.com"}]}
          - {name: b, sources: [{kind: prometheus, url: "http://b.example.com"}]}
          - {name: c, sources: [{kind: prometheus, path: recorded}]}
          - {name: d, sources: [{kind: kubernetes, path: recorded}]}
        """
    )
    return path


def test_a_cluster_with_a_server_of_metrics_is_refreshed_every_five_minutes(instance, served):
    minutes = set(str(frequently.cron_schedule).split()[0].split(","))
    assert minutes == {str(n) for n in range(0, 60, 5) if n != 5}  # then `hourly` runs
    assert asked(instance, served) == ["a|2026-11-17", "b|2026-11-17"]
    assert asked(instance, served, MINUTE.replace(hour=2, minute=35)) == []  # `nightly` does


@pytest.mark.parametrize("names", ["dagster/partition", " ".join(RANGE)])
def test_a_cluster_is_not_refreshed_while_a_run_of_it_goes_on(instance, served, names):
    now = datetime.now(UTC)
    instance.add_dynamic_partitions("cluster", ["a"])
    run = instance.create_run_for_job(
        defs.resolve_job_def("everything"),
        status=dg.DagsterRunStatus.STARTED,
        tags=dict.fromkeys(names.split(), "a|2026-11-16"),
    )
    assert [key[0] for key in asked(instance, served, now)] == ["b"]
    much_later = now + timedelta(days=1)  # it died with its machine
    assert [key[0] for key in asked(instance, served, much_later)] == ["a", "b"]
    instance.report_run_canceled(run)
    assert [key[0] for key in asked(instance, served, now)] == ["a", "b"]
