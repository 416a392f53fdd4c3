"""What is stored of the demo's metrics: a part, as answers of a Prometheus that its sources name.

What a demo shows of it is in test_cli.py; metrics of other sizes in test_simulator_metrics.py.
"""

import filecmp
import json
from itertools import pairwise

import pytest
import yaml

import simulator
from simulator.clock import SECOND
from simulator.fleet import BEGIN, live
from simulator.metrics import gauges
from simulator.openmetrics import Page, labelled
from simulator.scope import FIELDS, SCOPES
from tests.measured import Series, read

END = int(BEGIN.timestamp()) + 86400
SCOPE = SCOPES["demo"]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    out = tmp_path_factory.mktemp("demo")
    return simulator.build(out, seed=7, days=1, metrics=True).parent


def answers(path) -> list[Series]:
    """The series that answers of a Prometheus tell of."""
    found = []
    for line in path.read_text().splitlines():
        told = json.loads(line)
        assert told["status"] == "success" and told["data"]["resultType"] == "matrix"
        for one in told["data"]["result"]:
            labels = one["metric"]
            times, values = zip(*one["values"], strict=True)
            name = labels.pop("__name__")
            found.append(Series(name, labels, list(times), [float(v) for v in values]))
    return found


def test_answers_and_text_tell_the_same(tmp_path):
    page = Page()
    own = {"pod": 'a "b"\\\n{c="d",}', "team": "Zürich"}
    labels = labelled(own)
    page.add("m", lambda: [(labels, ["1", "", "2.5"], [" 1.005\n", " 2\n", " 3\n"])])
    page.add("m", lambda: [('a="b"', ["7"], [" 4\n"]), (labels, ["3"], [" 9.125\n"])])
    page.save(tmp_path / "text.om")
    page.save_answers(tmp_path / "answers.jsonl")
    told = answers(tmp_path / "answers.jsonl")
    text = list(read(tmp_path / "text.om"))
    assert [(s.times, s.values) for s in told] == [(s.times, s.values) for s in text]
    assert told[0] == Series("m", own, [1.005, 3, 9.125], [1, 2.5, 3])


def test_the_first_cluster_is_measured_every_minute_up_to_the_end(fleet):
    assert [path.name for path in (fleet / "prometheus").iterdir()] == ["alpha"]
    told = answers(fleet / "prometheus" / "alpha" / "answers.jsonl")
    times = sorted({t for one in told for t in one.times})
    assert SCOPE.last
    assert END - SCOPE.last < times[0] < END - SCOPE.last + 60
    assert END - 60 < times[-1] < END
    util = [one for one in told if one.name == "DCGM_FI_DEV_GPU_UTIL"]
    steps = {round(b - a) for one in util for a, b in pairwise(one.times)}
    assert min(steps) == 60
    assert not any(one.name.startswith(("kube_", "up", "scrape_")) for one in told)


def test_no_error_is_told_that_is_older_than_what_is_stored(fleet):
    """The exporters are as young as that: none remembers what happened before."""
    told = answers(fleet / "prometheus" / "alpha" / "answers.jsonl")
    times = sorted(t for one in told for t in one.times[:1])
    errors = [one for one in told if one.name == "DCGM_FI_DEV_XID_ERRORS"]
    assert {v for one in errors for v in one.values} > {0.0}
    first = times[0] + 60
    assert {v for one in errors if one.times[0] < first for v in one.values[:1]} == {0.0}


def test_what_is_stored_of_a_part_is_what_the_whole_has_of_it(fleet):
    """Every second scrape; but for noise, which goes by the number of the scrape."""
    begin = int(BEGIN.timestamp()) * SECOND
    world = live("alpha", 0, seed=7, size="demo", begin=begin, days=1, keeps=True)
    whole = {view.track.device.card.uuid: view for view in gauges(world, 0).views}
    part = {view.track.device.card.uuid: view for view in gauges(world, 0, SCOPE).views}
    assert set(part) == set(whole)
    for uuid, view in part.items():
        every = view.exporter.reader.stamps
        known = whole[uuid].exporter.reader.stamps
        assert every == known[-2 * len(every) + 1 :: 2]
        told = dict(zip(known, whole[uuid].values("used"), strict=True))
        mine = dict(zip(every, view.values("used"), strict=True))
        assert mine == {stamp: told[stamp] for stamp in every}


def test_the_configuration_names_what_was_written(fleet):
    clusters = yaml.safe_load((fleet / "gpuledger.yaml").read_text())["clusters"]
    kinds = {c["name"]: [s["kind"] for s in c["sources"]] for c in clusters}
    assert kinds == {"alpha": ["kubernetes", "prometheus"], "beta": ["kubernetes"]}
    assert (fleet / clusters[0]["sources"][1]["path"]).is_dir()


def test_metrics_change_no_event_of_a_demo(fleet, tmp_path):
    plain = simulator.build(tmp_path, seed=7, days=1).parent
    files = [p.relative_to(plain) for p in plain.rglob("*") if p.is_file()]
    assert not (plain / "prometheus").exists()
    for file in files:
        same = filecmp.cmp(plain / file, fleet / file, shallow=False)
        assert same is (file.name != "gpuledger.yaml"), file


def test_no_metric_is_left_out_that_a_page_asks_for(fleet):
    names = {one.name for one in answers(fleet / "prometheus" / "alpha" / "answers.jsonl")}
    dcgm = {name.upper() for name in names if name.lower().startswith("dcgm_fi_")}
    assert len(dcgm) == len(FIELDS)
