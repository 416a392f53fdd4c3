"""Public traces and a recorded cluster, with figures that are known from elsewhere."""

import gzip
import json
import re
from decimal import Decimal
from pathlib import Path

import pytest

from lake.home import Home
from lake.read import Door
from models.config import TableSource, load
from models.kubernetes import KubernetesSource
from pipelines.process import process

EXAMPLE = Path(__file__).parent.parent / "examples" / "openb"


@pytest.fixture(scope="module")
def openb(traces, tmp_path_factory):
    folder = tmp_path_factory.mktemp("openb")
    source = TableSource(
        kind="table", path=traces / "openb-gpu-2023", mapping=EXAMPLE / "mapping.yaml"
    )
    outcome = process(Home(folder), load(EXAMPLE / "gpuledger.yaml"), "openb", sources=[source])
    assert (outcome.broken, outcome.error) == ([], None)
    with Door(Home(folder)) as door:
        yield door


def one(door, query: str):
    [row] = door.query(query).fetchall()
    return row


@pytest.mark.long
def test_openb_has_its_nodes_and_gpus(openb):
    query = """
        select count(*), sum(installed_count), count(*) filter (where installed_count > 0)
        from core.nodes where day_on = (select max(day_on) from core.nodes)
    """
    assert one(openb, query) == (1523, 6212, 1213)


@pytest.mark.long
def test_openb_waits_with_the_unserved_counted(openb):
    query = """
        select attempt_count, served_count, left_count, round(mean_wait_seconds, 3),
            p50_wait_seconds, p75_wait_seconds, p90_wait_seconds, round(p95_wait_seconds, 2),
            round(p99_wait_seconds, 2), max_wait_seconds
        from queue_waits('2023-01-01', '2023-06-01')
        where method_name = '{}' and grouping_name = '{}'
    """
    served = one(openb, query.format("served", "all"))
    assert served[:5] + served[6:7] + served[8:] == (
        8152, 7255, 897, 61.302, 2.0, 106.0, 889.64, 14330.0,
    )  # fmt: skip
    assert one(openb, query.format("kaplan_meier", "all"))[4:9] == (3.0, 37.0, 278.0, 596.0, 3069.0)
    gpu = one(openb, query.format("served", "gpu"))
    assert (gpu[0], gpu[1], gpu[3]) == (7064, 6203, 69.951)
    assert gpu[6:9] == (139.0, 276.9, 1108.78)
    assert one(openb, query.format("kaplan_meier", "gpu"))[4:9] == (3.0, 69.0, 313.0, 667.0, 3354.0)


@pytest.mark.long
def test_openb_held_by_share_installed_and_failed(openb):
    hours = "round(sum(gpu_seconds)::double / 3600, 3)"
    assert one(openb, f"select {hours} from core.gpu_hours") == (22264774.311,)
    held = f"select {hours} from core.gpu_hours where state_name = 'unobserved'"
    assert one(openb, held) == (51470.674,)
    causes = "select distinct state_name, cause_name from core.gpu_hours order by 1"
    assert openb.query(causes).fetchall() == [
        ("rounding", "none"),
        ("unallocated", "undetermined"),
        ("unobserved", "no_series"),
    ]
    whole = """
        select round(sum(ceil(share_micro_gpu / 1e6) * date_diff('second', begin_at, end_at))
            / 3600, 3) from core.holds
    """
    assert one(openb, whole) == (59612.211,)
    failed = """
        select round(sum(l.gpu_seconds)::double / 3600, 3) from core.ledger as l
        where split_part(l.hold_id, '/', 1) in (
            select pod_uid from core.pods where phase_name = 'Failed'
        )
    """
    assert one(openb, failed) == (935.974,)


@pytest.fixture(scope="module")
def recording(traces, tmp_path_factory):
    folder = tmp_path_factory.mktemp("recording")
    config = folder / "gpuledger.yaml"
    config.write_text('prices: [{valid_from: 2026-01-01, gpu_model: "*", per_gpu_hour: "2.5"}]\n')
    path = traces / "cluster-recording" / "watch"
    source = KubernetesSource(kind="kubernetes", path=path)
    outcome = process(Home(folder), load(config), "recorded", sources=[source])
    assert (outcome.broken, outcome.error) == ([], None)
    with Door(Home(folder)) as door:
        yield door


def test_the_recorded_cluster_has_its_pods(recording):
    query = """
        select namespace_name, count(*), count(bound_at) from core.pods group by all order by 1
    """
    assert recording.query(query).fetchall() == [
        ("hpc", 584, 563),
        ("infra", 286, 261),
        ("llm", 624, 597),
        ("loose", 6, 5),
        ("serving", 45, 35),
        ("vision", 397, 366),
    ]


def test_the_recorded_clusters_ledger_in_whole_seconds(recording):
    query = """
        select w.namespace_name, sum(l.gpu_seconds) from core.ledger as l
        join core.workloads as w on l.workload_key_uid = w.workload_key_uid
        join core.holds as h on l.hold_id = h.hold_id and l.day_on = h.day_on
        where h.resource_name = 'nvidia.com/gpu'
        group by all order by 1
    """
    found = dict(recording.query(query).fetchall())
    assert found == {
        "hpc": Decimal(136362),
        "infra": Decimal(40389),
        "llm": Decimal(84867),
        "loose": Decimal(20208),
        "serving": Decimal(7509),
        "vision": Decimal(51542),
    }
    assert sum(found.values()) == 340877


def test_what_lies_on_the_deleted_node_is_not_held_by_anyone(recording):
    query = "select reason_name, sum(gpu_seconds) from core.unbooked group by all"
    assert recording.query(query).fetchall() == [("node_gone", Decimal(464))]


def test_uncut_holds_agree_within_a_second_a_pod(recording):
    query = """
        select w.namespace_name, sum(h.share_micro_gpu / 1e6
            * date_diff('second', h.begin_at, h.end_at))
        from core.holds as h join core.workloads as w on h.workload_key_uid = w.workload_key_uid
        where h.resource_name = 'nvidia.com/gpu'
        group by all
    """
    stated = {
        "hpc": (136784.8, 563),
        "infra": (40704.4, 261),
        "llm": (85851.5, 597),
        "loose": (20221.6, 5),
        "serving": (7528.9, 35),
        "vision": (51788.3, 366),
    }
    for namespace, seconds in recording.query(query).fetchall():
        figure, pods = stated[namespace]
        assert abs(seconds - figure) <= pods * 8


def watched(traces, name):
    """Each line of the recording of a kind: what happened, and the object."""
    with gzip.open(traces / "cluster-recording" / "watch" / f"{name}.jsonl.gz") as lines:
        for line in lines:
            item = json.loads(line)
            if item["type"] != "BOOKMARK":
                yield item["type"], item["object"]


def test_thousands_of_updates_of_one_wait_are_counts_not_rows(recording, traces):
    updates, counts = 0, {}
    for change, event in watched(traces, "v1_events"):
        if event["reason"] == "Pending":
            updates += change == "MODIFIED"
            counts[event["metadata"]["uid"]] = (event["involvedObject"]["uid"], event["count"])
    expected = {}
    for workload, count in counts.values():
        expected[workload] = expected.get(workload, 0) + count
    query = """
        select object_uid, sum(event_count) from core.events
        where reason_name = 'Pending' group by all
    """
    assert updates == 4796
    assert dict(recording.query(query).fetchall()) == expected
    [rows] = one(recording, "select count(*) from raw.event_versions where reason_name = 'Pending'")
    assert rows < len(counts) + 100  # a few have texts that change


def test_every_text_of_its_three_schedulers_is_understood(recording):
    query = "select count(*) from core.scheduling_reasons where reason_name in ('other', 'cut')"
    assert one(recording, query) == (0,)
    query = "from raw.rejections where reason_name in ('unknown_scheduling_text', 'bad_event_time')"
    assert recording.query(query).fetchall() == []


def test_the_pods_that_wait_at_its_end_are_those_whose_condition_says_so(recording, traces):
    waiting = {}
    for change, pod in watched(traces, "v1_pods"):
        conditions = {c["type"]: c for c in pod["status"].get("conditions", ())}
        told = conditions.get("PodScheduled", {})
        is_waiting = told.get("status") == "False" and "message" in told and change != "DELETED"
        waiting[pod["metadata"]["uid"]] = is_waiting
    query = """
        select distinct object_uid from core.scheduling_reasons
        where object_kind_name = 'Pod' and is_current
    """
    found = {uid for (uid,) in recording.query(query).fetchall()}
    assert found == {uid for uid, is_waiting in waiting.items() if is_waiting} != set()


def test_the_two_gangs_in_deadlock_wait_for_nodes_that_are_full(recording):
    query = """
        select distinct split_part(object_name, '-', 2), resource_name, node_count,
            total_node_count, missing_count
        from core.scheduling_reasons
        where object_namespace_name = 'loose' and reason_name = 'resource_full'
            and source_name = 'event' and not is_preemption
    """
    [(_, *first), (_, *second)] = sorted(recording.query(query).fetchall())
    assert first == second == ["nvidia.com/gpu", 4, 78, None]


def test_who_preempted_whom_is_known_by_uid(recording, traces):
    names, pods, queues = {}, set(), set()
    for _, pod in watched(traces, "v1_pods"):
        names[pod["metadata"]["uid"]] = pod["metadata"]["name"]
    for _, event in watched(traces, "v1_events"):
        victim, text = event["involvedObject"], event["message"]
        if by := re.search("Preempted by pod ([0-9a-f-]+) on node", text):
            pods.add((victim["uid"], by[1], names[by[1]]))
        elif victim["kind"] == "Workload" and text.startswith("Preempted to accommodate"):
            queues.add((victim["uid"], re.findall("UID: ([0-9a-f-]+)", text)[0]))
    assert len(pods) == 114 and len(queues) > 200
    query = "select victim_uid, by_uid{} from core.disruptions where way_name = '{}'"
    told = query.format(", by_name", "preempted_by_scheduler") + " and by_uid is not null"
    assert set(recording.query(told).fetchall()) == pods
    told = query.format("", "preempted_by_queue")
    assert queues <= set(recording.query(told).fetchall())
    unknown = """
        select count(*) from core.disruptions as d
        anti join core.workloads as w on d.{} = w.workload_key_uid
        where d.by_uid is not null
    """
    for who in ("workload_key_uid", "by_workload_key_uid"):
        assert one(recording, unknown.format(who)) == (0,), who


def test_a_pod_of_it_that_had_succeeded_was_not_disrupted_by_its_eviction(recording, traces):
    over, hit = set(), {}
    for _, pod in watched(traces, "v1_pods"):
        uid, status = pod["metadata"]["uid"], pod["status"]
        conditions = {c["type"]: c for c in status.get("conditions", ())}
        if conditions.get("DisruptionTarget", {}).get("status") == "True":
            hit.setdefault(uid, uid in over or status["phase"] == "Succeeded")
        if status["phase"] in ("Succeeded", "Failed"):
            over.add(uid)
    query = "select victim_uid from core.disruptions where victim_kind_name = 'Pod'"
    found = {uid for (uid,) in recording.query(query).fetchall()}
    assert found == {uid for uid, was_over in hit.items() if not was_over}
    assert any(hit.values())
