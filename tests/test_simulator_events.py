"""What the simulated components tell: the shapes of their times, repeats, and what gets lost.

Whether the pipeline concludes the truth from it is in test_truth.
"""

import json
from collections import Counter, defaultdict
from datetime import datetime

import pytest

import simulator


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    return simulator.build(tmp_path_factory.mktemp("told"), seed=1, size="tiny", days=2).parent


@pytest.fixture(scope="module")
def told(fleet):
    """The lines of both clusters' events, bookmarks apart."""
    texts = [p.read_text() for p in sorted(fleet.glob("recorded/*/v1_events.jsonl"))]
    found = [json.loads(line) for text in texts for line in text.splitlines()]
    return [line for line in found if line["type"] != "BOOKMARK"]


def instant(text):
    return datetime.fromisoformat(text)


def test_times_come_in_three_shapes(told):
    shapes = defaultdict(set)
    for line in told:
        event = line["object"]
        names = ("eventTime", "firstTimestamp", "lastTimestamp", "count")
        who = event["reportingComponent"] or event["source"]["component"]
        shapes[who].add(tuple(name for name in names if event.get(name)))
    assert shapes == {
        "kubelet": {("firstTimestamp", "lastTimestamp", "count")},
        "default-scheduler": {("eventTime",)},
        "volcano": {("eventTime",), ("lastTimestamp",)},
    }


def test_a_series_is_written_late_and_seldom(told):
    series = [line for line in told if "series" in line["object"] and line["type"] == "MODIFIED"]
    written = Counter(line["object"]["metadata"]["uid"] for line in series)
    assert max(line["object"]["series"]["count"] for line in series) > 10
    for line in series[:200]:
        seen = instant(line["observed_at"])
        assert (seen - instant(line["object"]["eventTime"])).total_seconds() >= 300
    assert max(written.values()) < 200


def test_an_event_is_forgotten_an_hour_after_its_last_version(told):
    seen = {}
    gone = 0
    for line in told:
        uid = line["object"]["metadata"]["uid"]
        if line["type"] == "DELETED" and uid in seen:
            before, kind = seen[uid]
            if kind != "LISTED":  # its last version may have been before the list
                gone += 1
                lived = (instant(line["observed_at"]) - before).total_seconds()
                assert 3595 < lived < 3605 or kind == "gap"
        else:
            seen[uid] = (instant(line["observed_at"]), line["type"])
    assert gone > 1000


def test_a_recorder_drops_what_goes_beyond_25_and_joins_similar_texts(told):
    most = Counter()
    for line in told:
        event = line["object"]
        if line["type"] in ("ADDED", "MODIFIED") and event["source"].get("component") == "kubelet":
            most[event["involvedObject"]["uid"]] += 1
    assert 25 <= max(most.values()) < 25 + 2 * 86400 // 300
    joined = [line for line in told if line["object"]["message"].startswith("(combined from ")]
    assert max(line["object"]["count"] for line in joined) > 3


def test_of_some_pods_the_end_of_a_pull_is_never_told(told):
    asked, done = set(), set()
    for line in told:
        event = line["object"]
        key = (event["involvedObject"]["uid"], event["involvedObject"].get("fieldPath"))
        (
            asked
            if event["reason"] == "Pulling"
            else done
            if event["reason"] == "Pulled"
            else set()
        ).add(key)
    assert 0 < len(asked - done) < len(asked) / 4


def test_every_cause_of_starting_happens(fleet):
    causes = set()
    for path in fleet.glob("truth/*/ledger.csv"):
        for line in path.read_text().splitlines():
            parts = line.split(",")
            if parts[6] == "starting":
                causes.add(parts[7])
    assert causes == {
        *("image_pull_queue", "image_pull", "volume", "init", "container_start"),
        *("restart", "crash_loop", "undetermined"),
    }
