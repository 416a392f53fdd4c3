"""What went wrong with gangs of the recorded cluster, as computed from its objects in plain Python.

Its pods, ledger and events are in test_traces, its queue in test_traces_kueue.
"""

import gzip
import json
from datetime import datetime, timedelta
from decimal import Decimal

import pytest

from lake.home import Home
from lake.read import Door
from models.config import load
from models.kubernetes import KubernetesSource
from pipelines.process import process

PRICE = "3.6"  # of a GPU-hour: a thousandth of a GPU-second
SIZE = 3


@pytest.fixture(scope="module")
def recording(traces, tmp_path_factory):
    folder = tmp_path_factory.mktemp("recording")
    config = folder / "gpuledger.yaml"
    config.write_text(
        f'prices: [{{valid_from: 2026-01-01, gpu_model: "*", per_gpu_hour: "{PRICE}"}}]\n'
    )
    source = KubernetesSource(kind="kubernetes", path=traces / "cluster-recording")
    outcome = process(Home(folder), load(config), "recorded", sources=[source])
    assert (outcome.broken, outcome.error) == ([], None)
    with Door(Home(folder)) as door:
        yield door


def instant(text):
    return datetime.fromisoformat(text).replace(microsecond=0)


@pytest.fixture(scope="module")
def gangs(traces):
    """Gang -> pod -> node, GPUs, and when it was created, bound, asked to go and ended."""
    told = {}
    with gzip.open(traces / "cluster-recording" / "watch" / "v1_pods.jsonl.gz") as lines:
        for line in lines:
            item = json.loads(line)
            meta = item["object"]["metadata"]
            if meta.get("namespace") != "loose":
                continue
            pod = told.setdefault(meta["ownerReferences"][0]["name"], {}).setdefault(
                meta["name"], {"created": instant(meta["creationTimestamp"])}
            )
            spec, status = item["object"]["spec"], item["object"]["status"]
            pod["gpus"] = int(spec["containers"][0]["resources"]["limits"]["nvidia.com/gpu"])
            pod["node"] = spec.get("nodeName")
            for condition in status.get("conditions", ()):
                if condition["type"] == "PodScheduled" and condition["status"] == "True":
                    pod["bound"] = instant(condition["lastTransitionTime"])
            if "deletionTimestamp" in meta:
                grace = timedelta(seconds=meta["deletionGracePeriodSeconds"])
                asked = instant(meta["deletionTimestamp"]) - grace
                pod["asked"] = min(asked, pod.get("asked", asked))
            if item["type"] == "DELETED":
                pod["ended"] = instant(item["observed_at"])
    return told


def stuck(pods):
    """From when a gang holds some of its GPUs and waits for the rest, and until when."""
    assert len(pods) == SIZE
    late = max(pods.values(), key=lambda pod: ("bound" not in pod, pod.get("bound")))
    gone = [pod["asked"] for pod in pods.values() if "asked" in pod]
    return late["created"], min([*gone, *([late["bound"]] if "bound" in late else [])])


def test_the_two_gangs_in_deadlock_are_found_with_members_begin_end_and_cost(recording, gangs):
    begins, ends = zip(*map(stuck, gangs.values()), strict=True)
    begin, end = max(begins), min(ends)
    assert [f"{moment:%T}" for moment in (begin, end)] == ["03:02:07", "03:11:12"]
    expected = {}
    for gang, pods in gangs.items():
        for name, pod in pods.items():
            first = max(begin, pod.get("bound", end))
            seconds = int((end - first).total_seconds()) if first < end else 0
            where = pod["node"] if seconds else None
            expected[gang, name] = (where, seconds * pod["gpus"])
    assert sum(seconds for _, seconds in expected.values()) == 2 * 2 * 8 * 545
    query = """
        select w.workload_name, m.pod_name, m.node_name, m.gpu_seconds::int, m.member_cost
        from mart.finding_members as m join mart.workload_findings as w
            using (day_on, finding_name, subject_text, team_name, since_at)
        where finding_name = 'gang_deadlock'
    """
    rows = recording.query(query).fetchall()
    assert {(gang, pod): (node, seconds) for gang, pod, node, seconds, _ in rows} == expected
    assert all(cost == Decimal(seconds) / 1000 for *_, seconds, cost in rows)
    query = """
        select workload_name, begin_at, end_at, is_open, member_count, missing_count, is_certain,
            gpu_seconds::int, finding_cost from mart.workload_findings
        where finding_name = 'gang_deadlock' order by 1
    """
    assert recording.query(query).fetchall() == [
        (gang, begin, end, False, 3, 1, True, 8720, Decimal("8.72")) for gang in ("dl-a", "dl-b")
    ]
    query = """
        select count(distinct deadlock_id), count(distinct attempt_id) from core.gang_deadlocks
    """
    assert recording.query(query).fetchall() == [(1, 2)]


def test_no_other_gang_of_it_is_partial_for_long(recording, gangs):
    query = """
        select workload_name, gpu_seconds::int from mart.workload_findings
        where finding_name = 'gang_partial' order by 1
    """
    expected = []
    for gang, pods in sorted(gangs.items()):
        _, end = stuck(pods)
        held = [p for p in pods.values() if p.get("bound", end) < end]
        seconds = sum(int((end - p["bound"]).total_seconds()) * p["gpus"] for p in held)
        expected.append((gang, seconds))
    assert recording.query(query).fetchall() == expected


def test_the_pod_that_stayed_on_the_deleted_node_is_a_finding_beside_the_ledger(recording):
    query = """
        select n.node_name, m.pod_name, w.beside_gpu_seconds::int, w.gpu_seconds::int
        from mart.workload_findings as w join mart.finding_members as m
            using (day_on, finding_name, subject_text, team_name, since_at)
        join core.nodes as n on w.subject_text = n.node_uid
        where finding_name = 'hold_on_gone_node'
    """
    assert recording.query(query).fetchall() == [("gpu-010", "js-117-worker-0-3-vgmd7", 464, 0)]


def test_gangs_preempted_before_they_were_complete_again_and_again_are_in_livelock(recording):
    """Of each the stretches in which any pod held GPUs and was not asked to go are three or more;
    none was ever whole. One of two, whose work was done by one after the other, is none.
    """
    query = """
        select w.workload_name, g.start_count, p.bound_at, p.gone_at, a.complete_at
        from mart.workload_findings as w
        join core.gang_findings as g using (day_on, finding_name, subject_text)
        join core.pods as p using (day_on, workload_key_uid)
        join core.attempts as a using (day_on, attempt_id)
        where w.finding_name = 'gang_livelock' and p.bound_at < p.gone_at
            and p.asked_micro_gpu > 0
        order by p.bound_at
    """
    starts, until, told = {}, {}, {}
    for name, count, bound, gone, complete in recording.query(query).fetchall():
        assert complete is None
        told[name] = count
        starts[name] = starts.get(name, 0) + (name not in until or bound > until[name])
        until[name] = max(gone, until.get(name, gone))
    assert starts == told
    assert set(starts) == {"js-058", "js-103", "tj-054", "tj-091", "tj-224"}
    assert min(starts.values()) == 3
