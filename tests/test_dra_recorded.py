"""DRA in the recorded cluster: the ledger against the watch files, read here in plain Python."""

import gzip
import json
from collections import defaultdict
from datetime import datetime
from fractions import Fraction

import pytest

from tests.test_traces import recording

__all__ = ["recording"]

WATCH = "cluster-recording/watch"


def lines(traces, name):
    with gzip.open(traces / WATCH / f"{name}.jsonl.gz") as file:
        for line in map(json.loads, file):
            if line["type"] != "BOOKMARK":
                yield line["type"], instant(line["observed_at"]), line["object"]


def instant(text):
    return int(datetime.fromisoformat(text).timestamp())


@pytest.fixture(scope="module")
def pods(traces):
    """Pod name -> uid, bind and end, of those with claims; and the last second of the record."""
    found, last = {}, 0
    for change, seen, item in lines(traces, "v1_pods"):
        last = max(last, seen)
        if not item["spec"].get("resourceClaims"):
            continue
        pod = found.setdefault(item["metadata"]["name"], {"bound": None, "end": None})
        pod["uid"] = item["metadata"]["uid"]
        for each in item["status"].get("conditions", []):
            if (each["type"], each["status"]) == ("PodScheduled", "True"):
                pod["bound"] = instant(each["lastTransitionTime"])
        if item["status"]["phase"] in ("Succeeded", "Failed") or change == "DELETED":
            pod["end"] = pod["end"] or seen
    for _, seen, _ in lines(traces, "v1_nodes"):
        last = max(last, seen)
    return {name: pod | {"end": pod["end"] or last} for name, pod in found.items()}


@pytest.fixture(scope="module")
def allocated(traces):
    """Claim uid -> its devices, and the pods that it was ever reserved for; none is given back."""
    found = {}
    for change, _, item in lines(traces, "resource.k8s.io_v1_resourceclaims"):
        assert change != "DELETED"
        allocation = item["status"].get("allocation")
        if not allocation:
            assert item["metadata"]["uid"] not in found
            continue
        devices = {(r["pool"], r["device"]) for r in allocation["devices"]["results"]}
        uids = {each["uid"] for each in item["status"]["reservedFor"]}
        found[item["metadata"]["uid"]] = (devices, uids)
    return found


def test_each_pods_gpu_seconds_by_claims_are_those_of_the_objects(recording, pods, allocated):
    by_uid = {pod["uid"]: (name, pod) for name, pod in pods.items()}
    expected = defaultdict(Fraction)
    for devices, uids in allocated.values():
        sharers = [by_uid[uid] for uid in uids]
        for second in range(min(p["bound"] for _, p in sharers), max(p["end"] for _, p in sharers)):
            there = [name for name, p in sharers if p["bound"] <= second < p["end"]]
            for name in there:
                expected[name] += Fraction(len(devices), len(there))
    query = """
        select p.pod_name, sum(l.gpu_seconds) from core.ledger as l
        join core.holds as h on l.hold_id = h.hold_id and l.day_on = h.day_on
        join core.pods as p on h.pod_uid = p.pod_uid and h.day_on = p.day_on
        where h.claim_uid is not null group by all
    """
    found = {name: Fraction(seconds) for name, seconds in recording.query(query).fetchall()}
    assert found == expected
    assert len(found) == 5  # three have four GPUs each, two have one together


def test_every_second_of_the_shared_device_counts_once(recording, pods, allocated):
    [shared] = [claim for claim, (_, uids) in allocated.items() if len(uids) > 1]
    query = f"""
        select sum(s.share_micro_gpu * date_diff('second', s.begin_at, s.end_at)) / 1e6
        from core.hold_shares as s join core.holds as h on s.hold_id = h.hold_id
        where h.claim_uid = '{shared}'
    """
    [(seconds,)] = recording.query(query).fetchall()
    sharers = [pod for pod in pods.values() if pod["uid"] in allocated[shared][1]]
    assert seconds == max(p["end"] for p in sharers) - min(p["bound"] for p in sharers)


def test_a_claim_that_is_never_met_is_a_gpu_pod_that_waits(recording, traces, pods):
    asked = {}
    for _, _, item in lines(traces, "resource.k8s.io_v1_resourceclaims"):
        for owner in item["metadata"].get("ownerReferences", []):
            [request] = item["spec"]["devices"]["requests"]
            asked[owner["name"]] = request["exactly"]["count"]
    waiting = {name for name, pod in pods.items() if pod["bound"] is None}
    query = "select pod_name, asked_micro_gpu from core.pods where bound_at is null"
    found = dict(recording.query(query).fetchall())
    assert {name: found[name] for name in waiting} == {n: asked[n] * 10**6 for n in waiting}
    assert found["dra-never"] == 20_000_000


def test_nodes_with_slices_alone_have_their_devices_installed_and_free(recording, traces):
    devices = {
        item["spec"]["nodeName"]: {d["name"] for d in item["spec"]["devices"]}
        for _, _, item in lines(traces, "resource.k8s.io_v1_resourceslices")
    }
    query = """
        select n.node_name, n.installed_count, sum(s.unschedulable_micro_gpu)
        from core.nodes as n join core.node_spells as s on n.node_uid = s.node_uid
        where n.labels_json like '%"pool":"dra"%' group by all
    """
    found = {name: (count, off) for name, count, off in recording.query(query).fetchall()}
    assert found == {name: (len(names), 0) for name, names in devices.items()}
