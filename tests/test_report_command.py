"""Reports asked for by command, and sent by schedule.

That mails arrive is tested in test_report_send.py.
"""

from datetime import UTC, date, datetime
from pathlib import Path

import dagster as dg
import pytest
from typer.testing import CliRunner, Result

from lake.home import Home
from lake.sent import named_snapshots
from models.config import load
from pipelines.assets import ledger
from pipelines.cli import app
from pipelines.schedule_reports import report_schedules
from tests.mail_server import Box, controller, free_port
from tests.report_data import WEEK, publish, usual

CONFIG = """
lake: {accounting_zone: Europe/Berlin, currency: EUR}
teams: [{name: vision, contacts: [lead@example.com]}]
mail: {host: localhost, port: PORT, security: none, sender: ledger@example.com}
reports:
  - {name: by-team, kind: team, on: wednesday, at: "06:05"}
  - {name: platform, kind: platform, recipients: [boss@example.com], on: sunday, at: "23:30"}
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Home:
    home = Home(tmp_path_factory.mktemp("home"))
    publish(home, usual())
    return home


@pytest.fixture
def config(tmp_path) -> Path:
    path = tmp_path / "gpuledger.yaml"
    path.write_text(CONFIG.replace("PORT", str(free_port())))
    return path


def call(home: Home, config: Path, *words: str) -> Result:
    given = ["report", *words, "--config", str(config)]
    return CliRunner().invoke(app, given, env={"GPULEDGER_HOME": str(home.path)})


def test_a_dry_run_prints_the_text_and_sends_and_notes_nothing(home, config):
    answer = call(home, config, "platform", "--to", str(WEEK.last_on), "--dry-run")
    assert answer.exit_code == 0, answer.output
    assert answer.stdout.startswith("GPU use of the platform, 2026-11-23 to 2026-11-29\n")
    assert named_snapshots(home) == set()


def test_a_dry_run_writes_the_html_of_each_team_to_a_file(home, config, tmp_path):
    page = tmp_path / "mail.html"
    words = ("by-team", "--to", str(WEEK.last_on), "--dry-run", "--html", str(page))
    assert call(home, config, *words, "--team", "vision").exit_code == 0
    assert "GPU use of vision" in page.read_text()
    answer = call(home, config, *words)
    assert answer.exit_code == 0
    assert "robotics: nobody to write to" in answer.stderr
    others = {path.name: path.read_text() for path in tmp_path.glob("mail-*.html")}
    assert sorted(others) == ["mail-1-robotics.html", "mail-2-vision.html"]
    assert "robotics" in others["mail-1-robotics.html"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("platfrom", "--dry-run"), "did you mean platform?"),
        (("by-team", "--team", "visoin", "--to", "2026-11-29"), "did you mean vision?"),
        (("platform", "--team", "vision", "--to", "2026-11-29"), "has no teams"),
        (("platform", "--recipient", "nobody"), "is no mail address"),
        (("platform", "--html", "x.html"), "goes with --dry-run"),
        (("platform", "--dry-run", "--snapshot", "999"), "snapshot 999"),
    ],
)
def test_what_is_asked_wrongly_is_told(home, config, words, said):
    answer = call(home, config, *words)
    assert answer.exit_code == 2
    assert said in answer.output


def test_without_reports_the_configuration_is_to_be_filled_in(home, tmp_path):
    path = tmp_path / "gpuledger.yaml"
    path.write_text("lake: {accounting_zone: Europe/Berlin}")
    answer = call(home, path, "platform", "--dry-run")
    assert answer.exit_code == 2
    assert "add reports:" in answer.output


def test_each_report_has_its_schedule_in_the_accounting_zone(config, monkeypatch):
    monkeypatch.setenv("GPULEDGER_CONFIG", str(config))
    found = {schedule.name: schedule for schedule in report_schedules()}
    assert {name: schedule.cron_schedule for name, schedule in found.items()} == {
        "report_by_team": "5 6 * * 3",
        "report_platform": "30 23 * * 0",
    }
    for schedule in found.values():
        assert schedule.execution_timezone == "Europe/Berlin"
        assert schedule.default_status is dg.DefaultScheduleStatus.RUNNING


def test_nothing_is_scheduled_where_no_report_is_configured(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert report_schedules() == []
    path = tmp_path / "gpuledger.yaml"
    path.write_text("lake: {accounting_zone: Europe/Berlin}")
    assert report_schedules() == []


def asked(schedule: dg.ScheduleDefinition, at: datetime) -> dg.RunRequest:
    """What a schedule asks for at its time."""
    with dg.DagsterInstance.ephemeral() as instance:
        context = dg.build_schedule_context(instance, scheduled_execution_time=at)
        requests = schedule.evaluate_tick(context).run_requests or ()
    assert len(requests) == 1
    return requests[0]


def test_a_run_that_is_late_is_still_of_the_week_before_its_time(config, monkeypatch):
    monkeypatch.setenv("GPULEDGER_CONFIG", str(config))
    found = {schedule.name: schedule for schedule in report_schedules()}
    wednesday = asked(found["report_by_team"], datetime(2026, 12, 2, 5, 5, tzinfo=UTC))
    # Sunday 23:30 in Berlin: the week that ends with this Sunday is not over yet.
    sunday = asked(found["report_platform"], datetime(2026, 11, 29, 22, 30, tzinfo=UTC))
    assert wednesday.run_key == "by-team 2026-11-29"
    assert sunday.run_key == "platform 2026-11-22"


def test_the_scheduled_job_sends_what_the_command_would(home, config, monkeypatch):
    box = Box()
    server = controller(box, None, "none")
    config.write_text(CONFIG.replace("PORT", str(server.port)))
    monkeypatch.setenv("GPULEDGER_CONFIG", str(config))
    monkeypatch.setenv("GPULEDGER_HOME", str(home.path))
    [_, schedule] = report_schedules()
    request = asked(schedule, datetime(2026, 12, 6, 22, 30, tzinfo=UTC))
    defs = dg.Definitions(schedules=[schedule], resources={"ledger": ledger()})
    job = defs.resolve_job_def(schedule.job_name)
    server.start()
    try:
        with dg.DagsterInstance.ephemeral() as instance:
            for _ in range(2):  # a second run finds that it is done
                done = job.execute_in_process(instance=instance, run_config=request.run_config)
                assert done.success
    finally:
        server.stop()
    home.mails.unlink()
    [mail] = box.mails
    dry = call(home, config, "platform", "--to", str(WEEK.last_on), "--dry-run")
    said = mail.get_body(("plain",)).get_content().replace("\r\n", "\n")  # type: ignore[union-attr]
    assert said == dry.stdout


def test_the_shipped_example_s_reports_go_out_on_monday(monkeypatch):
    path = Path(__file__).parents[1] / "examples" / "gpuledger.yaml"
    assert [plan.cron for plan in load(path).reports] == ["0 7 * * 1", "30 7 * * 1"]
    monkeypatch.setenv("GPULEDGER_CONFIG", str(path))
    assert [schedule.name for schedule in report_schedules()] == [
        "report_teams",
        "report_platform",
    ]


def test_the_week_of_a_report_ends_with_the_day_that_is_told(home, config):
    answer = call(home, config, "platform", "--to", str(date(2026, 11, 26)), "--dry-run")
    assert answer.stdout.startswith("GPU use of the platform, 2026-11-20 to 2026-11-26\n")
