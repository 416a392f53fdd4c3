"""`run` against a Prometheus that is away, refuses us, or comes back: what is said and done."""

from datetime import date
from pathlib import Path

import pytest
from typer.testing import CliRunner

from collectors import prometheus as client
from collectors.prometheus_http import Patience
from collectors.source import Settings
from lake.create import create
from lake.home import Home
from lake.read import Door
from lake.run import Run
from models.prometheus import PrometheusSource
from models.window import Window
from pipelines.cli import app
from pipelines.collect import DAILY
from pipelines.metrics import Metrics
from simulator import build
from tests.doctor_fleet import sound
from tests.prometheus_server import Proxy, Server, says

pytestmark = pytest.mark.whole

DAY = "2026-11-16"
NOON = 1_794_830_400
"""Of that day."""


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    """Who waits two minutes for a dead port waits too long for a test."""
    monkeypatch.setattr(client, "Patience", lambda: Patience(attempts=2, first_seconds=0.01))


@pytest.fixture
def server(prometheus, tmp_path):
    """A server that holds half an hour of the day; it is not started."""
    made = Server(prometheus, tmp_path / "prometheus")
    made.load([*(line for s in dcgm() for line in s.lines(NOON)), "# EOF\n"])
    yield made
    made.kill()


def dcgm():
    return [series for series in sound() if series.metric.startswith("DCGM")]


@pytest.fixture
def config(tmp_path) -> Path:
    """A cluster with a record of one day, and a place for the address of a server."""
    fleet = build(tmp_path / "fleet", seed=3, clusters=1, days=1, size="tiny")
    path = tmp_path / "gpuledger.yaml"
    path.write_text(
        "clusters: [{name: alpha, sources: [{kind: kubernetes, path: "
        f"{fleet.parent / 'recorded' / 'alpha'}}}, {{kind: prometheus, url: 'URL'}}]}}]"
    )
    return path


def run(config: Path, url: str):
    told = config.with_name("told.yaml")
    told.write_text(config.read_text().replace("URL", url))
    words = ["run", "--from", DAY, "--to", DAY, "--config", str(told)]
    return CliRunner().invoke(app, words, env={"GPULEDGER_HOME": str(config.parent / "home")})


def told(config: Path, query: str) -> int:
    with Door(Home(config.parent / "home")) as door:
        return door.query(query).fetchall()[0][0]


def test_a_server_that_is_away_ends_with_3_and_what_it_has_comes_once_it_is_back(config, server):
    answer = run(config, server.url)
    assert answer.exit_code == 3, answer.output
    assert f"unreachable: {server.url}: unreachable" in answer.stderr
    assert "gpuledger doctor" in answer.stderr
    assert "published as snapshot" in answer.stdout
    holds = told(config, "select count(*) from core.holds")
    assert holds > 0
    server.start()
    answer = run(config, server.url)  # at once: somebody asked for it
    assert answer.exit_code == 0, answer.output
    assert told(config, "select count(*) from raw.gpu_samples") == 4 * 61
    assert told(config, "select count(*) from core.holds") == holds


def test_a_server_that_refuses_us_is_unreachable_too(config, server):
    server.start()
    proxy = Proxy(server.port, lambda path, number: says(401, "unauthorized"))
    answer = run(config, proxy.url)
    proxy.close()
    assert answer.exit_code == 3, answer.output
    assert "forbidden" in answer.stderr
    assert "published as snapshot" in answer.stdout


def test_a_run_tells_how_far_its_reading_is(tmp_path):
    folder = tmp_path / "recorded"
    folder.mkdir()
    lines = [line for series in sound() for line in series.lines(NOON)]
    (folder / "all.om").write_text("".join(lines) + "# EOF\n")
    home = Home(tmp_path / "home")
    create(home, "UTC", "USD")
    run = Run(home, "r", Window("m", date(2026, 11, 16), date(2026, 11, 17), "UTC"))
    for table in DAILY:
        run.begin(table)
    heard: list[str] = []
    source = PrometheusSource.model_validate({"kind": "prometheus", "path": folder})
    assert Metrics(run, source, Settings("m"), tell=heard.append).gather() == []
    run.discard()
    assert heard[-1].endswith("72 of 72 hours of metrics")  # of three families
    assert len(heard) >= 3
