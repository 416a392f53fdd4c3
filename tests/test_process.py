"""A whole run, from its sources to a published snapshot: killed at any instant, or breaking a law.

What a publisher alone does when killed is in test_lake_processes.py; what Dagster makes of a broken
law in test_dagster.py.
"""

import random
import time
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lake.home import Home
from lake.read import Door
from models.catalog import CATALOG
from models.config import Config, load
from pipelines import laws
from pipelines.cli import app
from pipelines.laws import Law
from pipelines.process import Outcome, process
from simulator import build
from tests.dashboard_page import opened
from tests.test_lake_processes import killed, started

TABLES = [name for name, table in CATALOG.items() if table.is_daily and table.layer != "meta"]
TURNS = 6
NOT_ALPHA = Law(
    "alpha_holds_nothing",
    "core.ledger",
    "A law that one cluster breaks.",
    "select count(*) from core.ledger where cluster_name = 'alpha' and hold_id is not null",
)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory) -> Path:
    return build(tmp_path_factory.mktemp("fleet"), seed=3, clusters=2, days=1, size="tiny")


def unpriced(config: Config) -> Config:
    """The same without a price book: what it gives differs from the whole one's."""
    return config.model_copy(update={"prices": ()})


def content(home: Home, layers: tuple[str, ...] = ("core", "mart")) -> dict[str, tuple[int, int]]:
    """All rows of the cluster alpha, table by table: how many, and the sum of their hashes."""
    with Door(home, clusters=["alpha"]) as door:
        return {
            name: door.query(f"select count(*), sum(hash(t)) from {name} as t").fetchall()[0]
            for name in TABLES
            if name.startswith(layers)
        }


def run_whole(home: Path, config: Path, told: Connection) -> None:
    loaded = load(config)
    told.send("ready")
    outcome = process(Home(home), loaded, "alpha")
    assert outcome.exit_code == 0


@pytest.mark.whole
def test_after_a_kill_at_any_instant_of_a_run_the_next_one_gives_the_same_tables(fleet, tmp_path):
    config, chance = load(fleet), random.Random(20261130)
    undisturbed, home = Home(tmp_path / "undisturbed"), Home(tmp_path / "home")
    begun = time.monotonic()
    assert process(undisturbed, config, "alpha").exit_code == 0
    lasts = time.monotonic() - begun
    after = content(undisturbed)
    assert process(home, unpriced(config), "alpha").exit_code == 0
    before = content(home)
    assert before != after

    for turn in range(TURNS):  # each in its part of a run, so that no part is left out
        child, told = started(run_whole, home.path, fleet)
        assert told.recv() == "ready"
        time.sleep(lasts * (turn + chance.random()) / TURNS)
        killed(child)
        assert content(home) in (before, after)  # one whole publication, the old or the new

    assert process(home, config, "alpha").exit_code == 0
    assert content(home, ("raw", "core", "mart")) == content(undisturbed, ("raw", "core", "mart"))
    assert [path.name for path in home.runs.iterdir()] == ["sweep.lock"]


@pytest.mark.whole
def test_a_cluster_that_breaks_a_law_keeps_its_figures_while_another_publishes(
    fleet, tmp_path, monkeypatch
):
    config, home = load(fleet), Home(tmp_path / "home")
    good = process(home, unpriced(config), "alpha")
    previous = content(home)
    beside: list[Outcome] = []

    def publish_beta(step: str, done: int, total: int) -> None:
        if step == "checking the laws":
            beside.append(process(home, config, "beta"))

    monkeypatch.setattr(laws, "LAWS", (*laws.LAWS, NOT_ALPHA))
    broken = process(home, config, "alpha", progress=publish_beta)
    [beta] = beside
    assert (broken.snapshot, broken.exit_code) == (None, 1)
    assert good.snapshot and beta.snapshot and beta.snapshot > good.snapshot

    assert content(home) == previous
    with Door(home) as door:
        assert door.snapshot.number == beta.snapshot
        assert door.query("select 1 from core.ledger where cluster_name = 'beta'").fetchall()
        [stale] = door.stale().to_dicts()
    assert stale["cluster_name"] == "alpha"
    assert NOT_ALPHA.name in stale["error_text"]

    monkeypatch.setenv("GPULEDGER_CONFIG", str(fleet))
    monkeypatch.setenv("GPULEDGER_HOME", str(home.path))
    said = CliRunner().invoke(app, ["status"]).stdout
    since = f"{stale['stale_since_at']:%Y-%m-%dT%H:%M:%SZ}"
    assert f"stale      alpha since {since}: {NOT_ALPHA.name}" in said
    [line] = [text.value for text in opened(monkeypatch, home.path).text]
    assert line.startswith(f"alpha, since {stale['stale_since_at']:%Y-%m-%d %H:%M}")
    assert NOT_ALPHA.name in line

    monkeypatch.setattr(laws, "LAWS", laws.LAWS[:-1])
    assert process(home, config, "alpha").exit_code == 0
    assert content(home) != previous
    with Door(home) as door:
        assert door.stale().is_empty()
