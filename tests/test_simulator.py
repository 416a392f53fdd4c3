"""The simulated fleet: its truth keeps the laws, all that the rules speak of happens in it.

Whether the pipeline finds the same truth is for the tests of the pipeline.
"""

import ast
import csv
import json
import sys
from collections import Counter, defaultdict
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

import simulator
from simulator.devices import MODELS, exact_share, layouts

GPU = 1_000_000
FOLDER = Path(simulator.__file__).parent


@pytest.fixture(scope="module")
def fleet(tmp_path_factory) -> Path:
    """Two small clusters and a day, as a seed makes them."""
    return simulator.build(tmp_path_factory.mktemp("fleet"), seed=7, size="tiny", days=1).parent


@pytest.fixture(scope="module")
def cards(tmp_path_factory) -> Path:
    """A node for each layout of a card."""
    out = tmp_path_factory.mktemp("cards")
    return simulator.build(out, seed=7, size="layouts", days=1, clusters=1).parent


def rows(fleet: Path, table: str) -> list[dict[str, str]]:
    found = []
    for path in sorted((fleet / "truth").glob(f"*/{table}.csv")):
        with path.open() as file:
            found += [{"cluster": path.parent.name, **row} for row in csv.DictReader(file)]
    return found


def lines(fleet: Path, kind: str) -> list[dict]:
    paths = sorted((fleet / "recorded").glob(f"*/*{kind}.jsonl"))
    return [json.loads(line) for path in paths for line in path.read_text().splitlines()]


def levels(parts: list[dict[str, str]]) -> Counter[int]:
    """Seconds at each sum of micro-GPU."""
    steps: Counter[int] = Counter()
    for row in parts:
        steps[int(row["begin"])] += int(row["micro_gpu"])
        steps[int(row["end"])] -= int(row["micro_gpu"])
    found: Counter[int] = Counter()
    level = 0
    for now, until in pairwise(sorted(steps)):
        level += steps[now]
        found[level] += until - now
    return found


def contents(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_the_same_seed_gives_the_same_bytes_and_another_seed_does_not(fleet, tmp_path):
    simulator.build(tmp_path / "same", seed=7, size="tiny", days=1)
    assert contents(tmp_path / "same") == contents(fleet)
    simulator.build(tmp_path / "other", seed=8, size="tiny", days=1)
    assert contents(tmp_path / "other") != contents(fleet)


def test_it_imports_nothing_of_the_project():
    for path in FOLDER.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0, path
                names = [node.module or ""]
            roots = {name.split(".")[0] for name in names}
            assert roots <= sys.stdlib_module_names | {"simulator", "yaml"}, path


@pytest.mark.parametrize("which", ["fleet", "cards"])
def test_each_second_of_a_node_is_told_exactly_once(which, request):
    fleet = request.getfixturevalue(which)
    by_node = defaultdict(list)
    for row in rows(fleet, "ledger"):
        by_node[row["node_uid"]].append(row)
    installed = {
        line["object"]["metadata"]["uid"]: line["object"]["metadata"]["labels"]
        for line in lines(fleet, "nodes")
        if line["type"] != "BOOKMARK"
    }
    assert len(by_node) > 10
    for uid, parts in by_node.items():
        found = levels(parts)
        assert len(found) == 1, (uid, found)
        [total] = found
        count = int(installed[uid]["nvidia.com/gpu.count"])
        count //= 7 if "-MIG-" in installed[uid]["nvidia.com/gpu.product"] else 1
        assert total == count * GPU


def test_a_node_that_stays_is_told_from_the_window_s_begin_to_its_end(fleet):
    for cluster in ("alpha", "beta"):
        mine = [row for row in rows(fleet, "ledger") if row["cluster"] == cluster]
        begin, end = min(int(r["begin"]) for r in mine), max(int(r["end"]) for r in mine)
        assert (end - begin) in range(86_390, 86_400)
        seconds = Counter()
        for row in mine:
            seconds[row["node_uid"]] += int(row["micro_gpu"]) * (
                int(row["end"]) - int(row["begin"])
            )
        assert sum(n % (GPU * (end - begin)) == 0 for n in seconds.values()) >= len(seconds) - 4


def test_an_eight_slice_card_has_77_layouts_and_18_of_them_exceed_one_gpu():
    model = MODELS["h100-80gb"]
    names = {slices: name for name, slices in model.profiles.items()}
    sums = [sum(exact_share(model, names[kind]) for kind in layout) for layout in layouts()]
    assert len(layouts()) == len(set(layouts())) == 77
    assert sum(total > 1 for total in sums) == 18
    assert max(sums) == Fraction(31, 28)


def test_no_card_is_held_beyond_one_gpu(cards):
    held = defaultdict(list)
    for row in rows(cards, "ledger"):
        if row["workload"] and row["gpu_model"] == "a100-40gb":
            held[row["node_uid"]].append(row)
    assert len(held) == 77
    assert all(max(levels(parts)) <= GPU for parts in held.values())


def test_shares_of_a_hami_card_that_exceed_one_are_scaled_to_it(cards):
    held = [r for r in rows(cards, "ledger") if r["workload"] and r["gpu_model"] == "l40s"]
    shares = defaultdict(set)
    for row in held:
        shares[row["workload"]].add(int(row["micro_gpu"]))
    assert any(len(told) > 1 for told in shares.values())  # a neighbour came or went
    assert max(levels(held)) <= 4 * GPU * 2


STATES = {
    ("unrecorded", "before_first_seen"),
    ("unrecorded", "recorder_gap"),
    ("unavailable", "node_not_ready"),
    ("unavailable", "cordoned"),
    ("unavailable", "missing_from_allocatable"),
    ("unavailable", "provisioning"),
    ("unavailable", "driver_upgrade"),
    ("unavailable", "mig_reconfigure"),
    ("unallocated", "no_demand"),
    ("unallocated", "undetermined"),
    ("unallocated", "partition_remainder"),
    ("starting", "image_pull_queue"),
    ("starting", "volume"),
    ("starting", "container_start"),
    ("starting", "init"),
    ("starting", "image_pull"),
    ("starting", "crash_loop"),
    ("starting", "restart"),
    ("starting", "undetermined"),
    ("gang_wait", "member_not_created"),
    ("gang_wait", "member_unplaced"),
    ("gang_wait", "member_starting"),
    ("gang_wait", "member_lost"),
    ("loading", "none"),
    ("unobserved", "no_series"),
    ("unobserved", "node_not_ready"),
    ("terminating", "none"),
}


def test_every_state_and_cause_of_the_rules_occurs(fleet):
    assert {(row["state"], row["cause"]) for row in rows(fleet, "ledger")} == STATES


def test_what_is_not_booked_says_why(fleet):
    reasons = {row["reason"] for row in rows(fleet, "unbooked")}
    assert reasons == {"overlap", "node_gone", "not_installed"}


def test_attempts_are_served_leave_or_wait_still(fleet):
    told = rows(fleet, "waits")
    assert {row["outcome"] for row in told} == {"served", "left", "waiting"}
    gangs = [row for row in told if int(row["gang_size"]) > 1]
    assert {row["outcome"] for row in gangs} == {"served", "left", "waiting"}
    tries = Counter(row["workload"] for row in gangs)
    assert max(tries.values()) > 1  # a gang that failed and came again
    for row in told:
        order = [row[c] for c in ("queued_at", "placed_at", "started_at") if row[c]]
        assert order == sorted(order)
    assert any(row["admitted_at"] > row["queued_at"] for row in gangs)


def test_money_adds_up_to_the_price_of_each_node_s_hour(fleet):
    sums: dict[tuple, int] = defaultdict(int)
    for row in rows(fleet, "cost"):
        if row["price"]:
            sums[row["node_uid"], row["hour"], row["price"]] += int(row["cost_micro"])
    micro_seconds: dict[str, int] = defaultdict(int)
    for row in rows(fleet, "ledger"):
        seconds = int(row["end"]) - int(row["begin"])
        micro_seconds[row["node_uid"]] += seconds * int(row["micro_gpu"])
    prices = defaultdict(set)
    for uid, _, price in sums:
        prices[uid].add(price)
    steady = [uid for uid, told in prices.items() if told == {"0.912500"}]  # owned: derived
    assert steady
    for uid in steady:
        total = sum(cost for (node, _, _), cost in sums.items() if node == uid)
        exact = Fraction(micro_seconds[uid] * 912_500, 3_600_000_000)
        assert abs(total - exact) <= 13  # half a micro-unit an hour
    assert any(row["holder"] == "__rounding__" for row in rows(fleet, "cost"))
    assert any(not row["price"] for row in rows(fleet, "cost"))  # the late price
    assert any(told >= {"3.900000", "3.571429"} for told in prices.values())


def test_the_record_shows_what_real_clusters_show(fleet):
    pods = [line for line in lines(fleet, "pods") if line["type"] != "BOOKMARK"]
    last = {line["object"]["metadata"]["uid"]: line["object"] for line in pods}
    text = {line["type"] for line in lines(fleet, "nodes")}
    assert text == {"LISTED", "ADDED", "MODIFIED", "DELETED", "BOOKMARK"}
    reasons = {pod["status"].get("reason") for pod in last.values()}
    assert "UnexpectedAdmissionError" in reasons
    disruptions = {
        c["reason"]
        for pod in last.values()
        for c in pod["status"]["conditions"]
        if c["type"] == "DisruptionTarget"
    }
    assert disruptions == {"PreemptionByScheduler", "EvictionByEvictionAPI", "DeletionByPodGC"}
    deadlines = defaultdict(list)
    for line in pods:
        meta = line["object"]["metadata"]
        if "deletionTimestamp" in meta:
            deadlines[meta["uid"]].append(meta["deletionTimestamp"])
    assert any(told != sorted(told) for told in deadlines.values())  # it moves back
    nodes = defaultdict(set)
    for line in lines(fleet, "nodes"):
        meta = line["object"]["metadata"]
        nodes[meta.get("name")].add(meta.get("uid"))
    assert any(len(uids) > 1 for name, uids in nodes.items() if name)  # a name used again
    specs = [pod["spec"] for pod in last.values()]
    assert any("schedulingGates" in line["object"]["spec"] for line in pods)
    assert any(c.get("restartPolicy") for s in specs for c in s.get("initContainers", []))
    assert any("<img" in str(pod["metadata"].get("annotations")) for pod in last.values())
    kinds = {
        owner["kind"]
        for pod in last.values()
        for owner in pod["metadata"].get("ownerReferences", [{"kind": ""}])
    }
    assert kinds == {"", "Job", "ReplicaSet", "StatefulSet", "PyTorchJob"}


def test_the_observation_comes_after_the_fact_and_in_order(fleet):
    for path in (fleet / "recorded").glob("*/*.jsonl"):
        seen = [json.loads(line)["observed_at"] for line in path.read_text().splitlines()]
        assert seen == sorted(seen)


def test_what_nobody_saw_in_the_gap_is_nobody_s(fleet):
    names = {line["object"]["metadata"].get("name", "") for line in lines(fleet, "pods")}
    assert any(name.startswith("late-") for name in names)
    assert not any(name.startswith("unseen-") for name in names)


def test_a_given_configuration_is_used_with_the_fleet_s_clusters(fleet, tmp_path):
    told = yaml.safe_load((fleet / "gpuledger.yaml").read_text())
    told["team_rules"] = [{"team": "science", "namespace": "*"}]
    (tmp_path / "own.yaml").write_text(yaml.safe_dump(told))
    path = simulator.build(
        tmp_path / "out", seed=7, size="tiny", days=1, clusters=1, config=tmp_path / "own.yaml"
    )
    assert [c["name"] for c in yaml.safe_load(path.read_text())["clusters"]] == ["alpha"]
    holders = {row["holder"] for row in rows(path.parent, "ledger")}
    assert {h for h in holders if not h.startswith("__")} == {"science"}
