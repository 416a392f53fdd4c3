"""Holds from kube-state-metrics alone against the simulator's truth for whoever has no record.

What a single series means is tested in test_kube_state.py. Here whole clusters live, their scrapes
are read hour by hour, and the ledger is computed from them and nothing else.
"""

from collections import defaultdict
from datetime import date, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import pytest

from collectors.prometheus_recorded import Recorded
from collectors.source import settings as settings_of
from lake.create import create
from lake.home import Home
from lake.run import Run
from models.catalog import CATALOG
from models.config import load
from models.window import Window
from pipelines.carry import carry
from pipelines.collect import DAILY
from simulator import kube_metrics, truth
from simulator import settings as simulated
from simulator.clock import SECOND
from simulator.fleet import BEGIN, live
from simulator.metrics import Gauges
from simulator.openmetrics import Page
from tests.kube_state_case import broken, collected, computed, tables

pytestmark = pytest.mark.whole

STEP = 60
CASES = {"alpha": (0, "measured", 1), "beta": (1, "measured", 1), "two days": (0, "tiny", 2)}
START = int(BEGIN.timestamp())


class Lived(NamedTuple):
    """A cluster that lived, what was made of its scrapes, and its truth."""

    con: Any
    holds: list[Any]
    rows: dict[str, pl.DataFrame]
    begin: int
    """The first scrape, from which on the folder knows anything."""
    end: int
    """The last one."""
    unseen: set[str]
    """Pods that no scrape found on a node."""


@pytest.fixture(scope="module", params=CASES)
def lived(request, tmp_path_factory) -> Lived:
    number, size, days = CASES[request.param]
    name, folder = ("alpha", "beta")[number], tmp_path_factory.mktemp("kube")
    begin = START * SECOND
    told = simulated.load(None, [name], START, days)
    (folder / "gpuledger.yaml").write_text(simulated.dump(told))
    world = live(name, number, seed=7, size=size, begin=begin, days=days, keeps=True)
    page = Page()
    gauges = Gauges([], [], [], {}, [], kube_metrics.tell(page, world, number), page)
    gauges.save(folder / "prometheus" / "kube.om")
    found, _ = truth.without_record(world, told, gauges.shows)
    config = load(folder / "gpuledger.yaml")
    first = date.fromisoformat(BEGIN.date().isoformat())
    known = Window(name, first, first + timedelta(days=days), "UTC")
    with Recorded(folder / "prometheus") as source:
        rows = tables(collected(source, settings_of(config, name), known, is_whole=number > 0))
    if days > 1:
        rows |= _carried(folder / "home", known, rows)
    (folder / "prometheus" / "kube.om").unlink()
    unseen = {pod.uid for pod in world.all_pods if pod.bound and not gauges.shows(pod)}
    holds = [hold for mine in found.values() for hold in mine]
    stamps = [float(stamp) for t in gauges.targets for stamp in t.stamps[t.first : t.last]]
    span = int(min(stamps)), int(max(stamps))
    return Lived(computed(config, rows), holds, rows, *span, unseen)


def _carried(home: Path, window: Window, rows: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The rows with those that one day hands to the next."""
    create(Home(home), "UTC", "USD")
    run = Run(Home(home), "run", window)
    for table in CATALOG.values():
        if table.layer == "raw":
            run.begin(table)
    for table in DAILY:
        run.append(table, rows[table.name])
    carry(run, window.begin_on)
    with run.connect() as con:
        return {table.name: con.sql(f"from {table.name}").pl() for table in DAILY}


def held(lived: Lived) -> dict[str, tuple[Any, ...]]:
    """Pod -> begin, end, node, share; the day pieces of a hold are one."""
    rows = lived.con.execute(
        "select h.pod_uid, min(epoch(h.begin_at))::bigint, max(epoch(h.end_at))::bigint, "
        "any_value(n.node_name), max(h.share_micro_gpu), sum(epoch(h.end_at - h.begin_at))::bigint "
        "from core.holds as h left join core.nodes as n using (cluster_name, day_on, node_uid) "
        "group by 1"
    ).fetchall()
    return {uid: tuple(rest) for uid, *rest in rows}


def test_every_hold_begins_to_the_second_and_ends_within_a_scrape(lived):
    found, exact = held(lived), 0
    true = defaultdict(list)
    for hold in lived.holds:
        true[hold.facts.uid].append(hold)
    assert len(true) > 80
    for uid, holds in true.items():
        begin, end = max(holds[0].begin, lived.begin), min(holds[0].end, lived.end)
        ours = found.pop(uid)
        if holds[0].facts.pod.has_condition:
            assert ours[0] == begin, uid
        else:  # its manifest names the node: no one scheduled it
            assert begin <= ours[0] < begin + STEP, uid
        assert end <= ours[1] <= end + STEP, uid
        assert ours[2] == holds[0].node_name
        assert ours[4] == ours[1] - ours[0]  # no piece is missing between
        exact += ours[1] == end
    assert exact > 0.7 * len(true)  # completion times; the rest was removed while it ran
    assert found == {}


def test_shares_are_the_truth_s_but_while_a_node_s_new_layout_was_not_scraped_yet(lived):
    found, late = held(lived), 0
    for hold in lived.holds:
        if hold.card or found[hold.facts.uid][3] == hold.micro:  # cards are told by annotations
            continue
        told = lived.con.execute(
            "select count(*) from raw.node_versions where node_name = ? and "
            "epoch(observed_at) between ? and ?",
            [hold.node_name, hold.begin, hold.begin + STEP],
        ).fetchall()
        assert told > [(0,)], hold.facts.uid
        late += 1
    assert late < 0.05 * len(lived.holds)


def test_the_laws_hold(lived):
    assert broken(lived.con) == []


def test_what_lived_between_scrapes_is_not_there_and_the_time_is_sampled(lived):
    assert not lived.unseen & set(held(lived))
    names = lived.rows["raw.coverage"]["coverage_name"].unique().to_list()
    assert names == ["sampled"]
    [(recorded, known)] = lived.con.execute(
        "select sum(watched_seconds), sum(known_seconds) from core.windows"
    ).fetchall()
    assert recorded == known == lived.end - lived.begin


def test_nodes_come_and_go_as_they_did(lived):
    rows = lived.con.execute(
        "select node_name, max(installed_count), min(epoch(begin_at))::bigint, "
        "max(epoch(end_at))::bigint from core.nodes group by node_name, created_at"
    ).fetchall()
    true = {
        (hold.node.node.name, hold.node.node.created // SECOND): hold.node
        for hold in lived.holds
        if hold.node
    }
    assert len(rows) >= len(true) > 3
    for (name, created), node in true.items():
        [mine] = [r for r in rows if r[0] == name and r[2] == max(created, lived.begin)]
        assert mine[1] == node.installed_at(lived.end)
        assert min(node.end, lived.end) <= mine[3] <= min(node.end + STEP, lived.end)


def test_reading_tells_what_became_of_every_sample(lived):
    assert lived.rows["raw.rejections"].is_empty()
