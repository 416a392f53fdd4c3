"""The pages of one workload and one node, and the search: on a lake that the pipeline made.

The cluster is small and made by hand: a gang of two that waits, runs and is preempted.
"""

import json
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest

from lake.home import Home
from models.config import Config
from models.kubernetes import KubernetesSource
from pipelines.process import process
from tests.dashboard_page import opened, shown, table, words
from tests.kube_objects import container, node, owner, pod, running

HOSTILE = "<img src=x onerror=alert(1)> [free](http://evil.example)"
GPU = "GPU-00000000-0000-4000-8000-000000000001"


def line(second, change, item):
    at = f"2026-03-01T10:{second // 60:02}:{second % 60:02}.000000Z"
    return json.dumps({"observed_at": at, "type": change, "object": item})


def member(number, at, name="train", **more):
    item = pod(
        [container(gpus=4, image="train:2")],
        owners=[owner("Job", name, f"u-{name}", "batch/v1")],
        labels={"batch.kubernetes.io/job-name": name},
        **more,
    )
    item["metadata"] |= {"uid": f"p-{name}-{number}", "name": f"{name}-{number}"}
    item["metadata"]["resourceVersion"] = str(1000 * number + at)
    return item


def event(number, reason, text, about, second):
    at = f"2026-03-01T10:00:{second:02}Z"
    return {
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": {"uid": f"e-{number}", "name": f"e-{number}", "namespace": "ml",
                     "creationTimestamp": at},
        "involvedObject": about,
        "reason": reason,
        "message": text,
        "type": "Normal",
        "count": 1,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "source": {"component": "kubelet"},
    }  # fmt: skip


@cache
def lake() -> Path:
    """A published lake of one cluster and half an hour."""
    folder = Path(mkdtemp())
    nodes = [line(0, "LISTED", node())]
    about = {"kind": "Pod", "namespace": "ml", "name": "train-0", "uid": "p-train-0"}
    pods, events = [], []
    for number in (0, 1):
        waiting = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                   "message": "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.",
                   "lastTransitionTime": "2026-03-01T10:00:02Z"}  # fmt: skip
        pods.append(line(2, "ADDED", member(number, 2, status={"conditions": [waiting]})))
        pods.append(line(6, "MODIFIED", member(number, 6, node="gpu-1")))
        status = {"phase": "Running", "containerStatuses": [running("main", 20)]}
        pods.append(line(21, "MODIFIED", member(number, 21, node="gpu-1", status=status)))
    pods.append(line(1800, "ADDED", member(0, 1800, name=HOSTILE)))
    events.append(line(8, "ADDED", event(1, "Pulling", f'Pulling image "{HOSTILE}"', about, 8)))
    for name, lines in (("pods", pods), ("nodes", nodes), ("events", events)):
        (folder / f"{name}.jsonl").write_text("\n".join(sorted(lines)) + "\n")
    home = Home(folder / "home")
    source = KubernetesSource(kind="kubernetes", path=folder)
    config = Config.model_validate({
        "prices": [{"gpu_model": "*", "per_gpu_hour": "2", "valid_from": "2026-01-01"}],
        "clusters": [{"name": "alpha", "sources": []}],
    })  # fmt: skip
    outcome = process(home, config, "alpha", sources=[source])
    assert (outcome.exit_code, outcome.broken) == (0, [])
    return home.path


@pytest.mark.parametrize(
    ("asked", "kind"),
    [("trai", "Job ml/train"), ("p-train-1", "Pod ml/train-1 on gpu-1"), ("GPU-1", "Node gpu-1")],
)
def test_a_part_of_a_name_or_a_uid_finds_it(monkeypatch, asked, kind):
    app = opened(monkeypatch, lake(), "find", find=asked)
    assert any(row["found_text"].startswith(kind) for row in table(app, "found_text"))


def test_what_stands_for_anything_in_a_pattern_stands_for_itself_in_a_search(monkeypatch):
    app = opened(monkeypatch, lake(), "find", find="tr_in%")
    assert "Nothing of that name is known" in words(app)


def test_a_found_pod_leads_to_its_workload_and_a_node_to_its_page(monkeypatch):
    app = opened(monkeypatch, lake(), "find", find="train-0")
    [row] = table(app, "about_url")
    assert row["about_url"].startswith("workload?workload=u-train")
    assert row["about_url"].endswith("&pod=p-train-0")
    [found] = table(opened(monkeypatch, lake(), "find", find="gpu-1"), "about_url")
    assert found["about_url"].startswith("node?node_uid=n-1")


def test_a_workload_s_page_shows_its_pods_waits_reasons_money_steps_and_events(monkeypatch):
    app = opened(monkeypatch, lake(), "workload", workload="u-train")
    cards = shown(app)
    assert cards["Pods"] == "2"
    assert cards["GPU-hours held"] == "3.99 GPU-h"  # 8 GPUs for 1,795 seconds
    assert "7.98" in cards["Cost"]
    [attempt] = table(app, "placement_seconds")
    assert attempt["placement_seconds"].total_seconds() == 4
    told = table(app, "total_node_count")
    assert {row["object_name"] for row in told} == {"train-0", "train-1"}
    assert {(row["resource_name"], row["node_count"]) for row in told} == {("nvidia.com/gpu", 1)}
    steps = {(row["pod_name"], row["stage_name"]) for row in table(app, "stage_name")}
    assert {("train-0", "created"), ("train-0", "bound"), ("train-1", "container started")} <= steps
    assert any(HOSTILE in row["latest_text"] for row in table(app, "latest_text", 1))
    spent = sum(float(row["gpu_seconds"]) for row in table(app, "state_name"))
    assert spent == pytest.approx(8 * 1795 / 3600)


def test_a_chosen_pod_narrows_the_steps(monkeypatch):
    app = opened(monkeypatch, lake(), "workload", workload="u-train", pod="p-train-1")
    assert {row["pod_name"] for row in table(app, "stage_name")} == {"train-1"}


def test_without_a_workload_the_largest_are_offered(monkeypatch):
    app = opened(monkeypatch, lake(), "workload")
    [row] = table(app, "workload_url")
    assert (row["workload_name"], row["workload_url"][:9]) == ("train", "workload?")


def test_a_workload_without_gpus_held_or_unknown_is_told(monkeypatch):
    app = opened(monkeypatch, lake(), "workload", workload=f"u-{HOSTILE}")
    assert shown(app)["GPU-hours held"] == "0 GPU-h"
    assert "held no GPU in this period" in words(app)
    assert "not known in this period" in words(
        opened(monkeypatch, lake(), "workload", workload="x")
    )


def test_a_node_s_page_shows_holders_states_and_that_nothing_tells_of_faults(monkeypatch):
    app = opened(monkeypatch, lake(), "node", node_uid="n-1")
    cards = shown(app)
    assert cards["GPUs"] == "8"
    assert cards["Held"].startswith("99")
    holders = {row["pod_name"] for row in table(app, "pod_name")}
    assert holders == {"train-0", "train-1"}
    assert "without DCGM's metrics nothing could" in words(app)
    assert sum(float(row["gpu_seconds"]) for row in table(app, "state_name")) == pytest.approx(4.0)


def test_without_a_node_all_are_offered(monkeypatch):
    [row] = table(opened(monkeypatch, lake(), "node"), "node_uid_url")
    assert row["node_uid_url"].startswith("node?")
