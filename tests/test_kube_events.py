"""Events: both APIs' shapes, whom to trust with their times, repeats folded, pulls of images."""

import random
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.kube_events import EventRows, pull_of
from collectors.kubernetes import PARSERS
from collectors.quantities import seconds
from collectors.source import Settings, Unusable, Version
from collectors.streams import kind_of
from tests.kube_objects import parsed, pod, stamp
from tests.test_recording import line, read

KUBELET = {"component": "kubelet", "host": "n1"}


def event(message="Started container main", reason="Started", **more):
    """An event as the older recorder writes it."""
    about = {"kind": "Pod", "namespace": "ml", "name": "pod-1", "uid": "p-1"}
    return {
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": {"uid": "e-1", "name": "pod-1.18e", "namespace": "ml",
                     "creationTimestamp": stamp(9)},
        "involvedObject": about | more.pop("about", {}),
        "reason": reason,
        "message": message,
        "source": KUBELET,
        "type": "Normal",
        **more,
    }  # fmt: skip


def times(**more):
    row = parsed("Event", event(**more))
    return row["first_at"].second, row["last_at"].second, row["total_count"]


def test_the_older_recorder_tells_first_last_and_count():
    more = {"firstTimestamp": stamp(3), "lastTimestamp": stamp(8), "count": 4, "eventTime": None}
    assert times(**more) == (3, 8, 4)


def test_the_newer_recorder_tells_one_time_and_then_a_series():
    made = {"firstTimestamp": None, "lastTimestamp": None, "eventTime": stamp(2)}
    assert times(**made) == (2, 2, 1)
    assert times(**made, count=3) == (2, 2, 3)
    series = {"count": 28, "lastObservedTime": stamp(7)}
    assert times(**made, series=series) == (2, 7, 28)
    assert times(**made | {"lastTimestamp": stamp(4)}, series=series) == (2, 7, 28)


def test_others_tell_anything_and_the_creation_is_the_last_resort():
    assert times(lastTimestamp=stamp(9), count=1) == (9, 9, 1)
    assert times() == (9, 9, 1)


def test_a_last_time_before_the_first_is_kept_and_no_duration_is_negative():
    assert times(firstTimestamp=stamp(8), lastTimestamp=stamp(3)) == (3, 8, 1)


def test_a_time_that_cannot_be_gives_way_to_the_next_best_and_is_counted():
    notes = []
    item = event(firstTimestamp="2026-13-01T00:00:00Z", lastTimestamp="2027-03-01T00:00:00Z")
    row = parsed("Event", item, notes=notes)
    assert (row["first_at"].second, row["last_at"].second) == (9, 9)
    assert [reason for reason, _ in notes] == ["bad_event_time"] * 3


def test_the_newer_api_s_shape_is_the_same_event():
    old = event(
        firstTimestamp=stamp(3), lastTimestamp=stamp(8), count=4,
        about={"fieldPath": "spec.initContainers{fetch}"},
    )  # fmt: skip
    new = {
        "kind": "Event",
        "apiVersion": "events.k8s.io/v1",
        "metadata": old["metadata"],
        "regarding": old["involvedObject"],
        "reason": "Started",
        "note": old["message"],
        "deprecatedSource": KUBELET,
        "deprecatedFirstTimestamp": stamp(3),
        "deprecatedLastTimestamp": stamp(8),
        "deprecatedCount": 4,
        "type": "Normal",
    }
    assert parsed("Event", new) == parsed("Event", old)
    assert parsed("Event", new)["container_name"] == "fetch"
    assert kind_of("Event", "events.k8s.io/v1") == kind_of("Event", "v1") == "Event"


def test_who_tells_it_may_stand_in_three_places():
    told = {"source": {}, "reportingComponent": "default-scheduler", "reportingInstance": "s-1"}
    row = parsed("Event", event(**told, related={"kind": "Pod", "uid": "p-9"}, action="Preempting"))
    assert (row["component_name"], row["host_name"]) == ("default-scheduler", "s-1")
    assert (row["related_uid"], row["action_name"]) == ("p-9", "Preempting")
    newer = event(source={}, reportingController="kueue")
    assert parsed("Event", newer)["component_name"] == "kueue"


def test_an_event_of_a_stranger_is_kept_as_it_is():
    about = {"kind": "RabbitMQ", "name": "pod/rabbit-0", "uid": None}
    row = parsed("Event", event("", "Created", about=about, lastTimestamp=stamp(3), source={}))
    assert (row["object_kind_name"], row["object_name"]) == ("RabbitMQ", "pod/rabbit-0")
    assert (row["object_uid"], row["component_name"], row["message_text"]) == (None, None, "")
    assert parsed("Event", event(type=None))["type_name"] == ""


def test_a_long_text_is_cut_and_says_so_but_is_read_in_full():
    reasons = ", ".join(f"{n} node(s) had untolerated taint {{p: {n:040}}}" for n in range(100))
    item = event(f"0/999 nodes are available: {reasons}.", "FailedScheduling")
    row = parsed("Event", item)
    assert (len(row["message_text"]), row["is_cut"]) == (2048, True)
    assert len(row["scheduling_reasons"]) == 100


def test_only_what_tells_of_a_wait_is_read_as_reasons():
    text = "couldn't assign flavors to pod set main: flavor f doesn't match node affinity"
    workload = {"kind": "Workload"}
    assert parsed("Event", event(text, "Pending", about=workload))["scheduling_reasons"]
    assert parsed("Event", event(text, "Pending"))["scheduling_reasons"] is None
    assert parsed("Event", event("x", "Unschedulable"))["scheduling_reasons"]


def test_words_of_a_scheduler_that_we_do_not_know_are_counted_and_kept():
    notes = []
    row = parsed("Event", event("stars misaligned", "FailedScheduling"), notes=notes)
    assert notes == [("unknown_scheduling_text", "stars misaligned")]
    [reason] = row["scheduling_reasons"]
    assert (reason["reason_name"], reason["reason_text"]) == ("other", "stars misaligned")


@pytest.mark.parametrize("item", [
    {"metadata": {}}, {"involvedObject": 7}, {"involvedObject": {}}, {"series": "x"},
    {"count": "many"}, {"message": 3},
])  # fmt: skip
def test_an_event_of_another_shape_is_refused(item):
    with pytest.raises(Unusable):
        parsed("Event", {**event(), **item})


# Image pulls


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("1m2.3s", "62.3"), ("850ms", "0.85"), ("1h2m3.5s", "3723.5"), ("0s", "0"),
        ("1.146417389s", "1.146417"), ("31m47.355s", "1907.355"), ("12.5\u00b5s", "0.000012"),
        ("7us", "0.000007"), ("2h", "7200"),
    ],
)  # fmt: skip
def test_a_duration_of_go_is_read_exactly(text, told):
    assert seconds(text) == Decimal(told).quantize(Decimal("0.000001"))


@pytest.mark.parametrize("text", ["", "5", "s", "1x", "1s 2s", "-3s", "1..5s", "99999999999h"])
def test_what_is_no_duration_is_none(text):
    assert seconds(text) is None


@given(st.integers(min_value=0, max_value=10**13))
def test_every_duration_that_go_writes_is_read(micro):
    whole, part = divmod(micro, 1_000_000)
    text = f"{whole // 3600}h{whole // 60 % 60}m{whole % 60}.{part:06}s"
    assert seconds(text) == Decimal(micro) / 1_000_000


DONE = 'Successfully pulled image "r.io/a:1"'
THERE = 'Container image "r.io/a:1" already present on machine'


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (DONE, (None, None, None, False)),
        (f"{DONE} in 1.146417389s", ("1.146417", None, None, False)),
        (f"{DONE} in 2.873s (31m47.355s including waiting)", ("2.873", "1907.355", None, False)),
        (
            f"{DONE} in 850ms (1m2.3s including waiting). Image size: 4403845 bytes.",
            ("0.85", "62.3", 4403845, False),
        ),
        (THERE, (None, None, None, True)),
        (f"{THERE} and can be accessed by the pod", (None, None, None, True)),
    ],
)
def test_a_pull_is_read_in_every_wording(message, told):
    pull = pull_of("Pulled", message)
    known = [None if value is None else Decimal(value) for value in told[:2]]
    assert pull == ("r.io/a:1", *known, *told[2:])


def test_what_is_not_about_an_image_is_no_pull():
    assert pull_of("Failed", "Error: ErrImagePull") == (None,) * 5
    assert pull_of("Failed", 'Failed to pull image "a": rpc error').image_name == "a"
    assert pull_of("Pulling", 'Pulling image "a"').image_name == "a"


# Folding


FIRST, SECOND = date(2026, 3, 1), date(2026, 3, 2)
MIDNIGHT = 1_772_409_600_000_000  # of the second day


def version(number, message="m", at=0, count=1, first=0, change="MODIFIED", uid="e-1"):
    """A version observed `at` seconds after the second day's midnight, told that it was then."""
    observed = MIDNIGHT + at * 1_000_000 + 500_000
    day = SECOND if at >= 0 else FIRST
    clocks = [
        datetime.fromtimestamp(MIDNIGHT // 10**6 + second, UTC).isoformat()
        for second in (first, at)
    ]
    item = event(message, firstTimestamp=clocks[0], lastTimestamp=clocks[1], count=count)
    item["metadata"] |= {"uid": uid, "creationTimestamp": clocks[0]}
    made = Version(number, observed, day, change, f"f:{number}", item)
    return PARSERS["Event"][1](made, Settings("alpha"))


def folded(*versions, most_open=100):
    rows = EventRows("UTC", most_open=most_open)
    for each in versions:
        rows.add(each)
    [batch] = rows.rest()
    found = sorted(batch.frame.rows(named=True), key=lambda row: row["sequence_number"])
    return [(r["message_text"], r["total_count"], r["before_count"]) for r in found]


def test_a_thousand_updates_of_one_event_are_one_row_with_the_latest_count():
    updates = [version(n, at=n, count=n, change="ADDED" if n == 1 else "MODIFIED")
               for n in range(1, 1001)]  # fmt: skip
    assert folded(*updates) == [("m", 1000, 0)]


def test_an_event_of_which_texts_change_has_a_row_for_each_and_the_counts_add_up():
    steps = [("a", 1), ("a", 2), ("b", 3), ("b", 7), ("a", 8)]
    versions = [version(n, text, n, count) for n, (text, count) in enumerate(steps)]
    assert folded(*versions) == [("a", 2, 0), ("b", 7, 2), ("a", 8, 7)]


def test_what_never_counts_is_counted_by_its_news():
    assert folded(*(version(n, at=n, count=0) for n in range(3))) == [("m", 3, 0)]


def test_versions_told_twice_count_once():
    versions = [version(n, at=n, count=n + 1) for n in range(3)]
    assert folded(*versions, *versions) == folded(*versions)


def test_an_event_that_expires_takes_nothing_back():
    assert folded(version(1, count=3), version(2, count=3, change="DELETED")) == [("m", 3, 0)]
    rows = EventRows("UTC")
    rows.add(version(2, change="DELETED"))  # one that was never seen while it was there
    assert [*rows.rest()] == []


def test_a_day_knows_how_much_of_a_count_is_of_the_days_before():
    assert folded(version(1, at=5, count=9, first=-60)) == [("m", 9, 8)]
    assert folded(version(1, at=5, count=9, first=2)) == [("m", 9, 0)]
    listed = version(1, at=-5, count=9, first=-60, change="LISTED") | {"day_on": SECOND}
    assert folded(listed) == [("m", 9, 9)]


def test_each_day_has_its_own_row():
    found = folded(version(1, at=-5, count=2, first=-60), version(2, at=5, count=3, first=-60))
    assert found == [("m", 2, 0), ("m", 3, 2)]


def test_however_little_is_kept_in_memory_the_counts_are_the_same():
    dice = random.Random(5)
    versions, counts = [], dict.fromkeys("abcdef", 0)
    for number in range(300):
        uid = dice.choice("abcdef")
        counts[uid] += 1
        versions.append(version(number, at=number, count=counts[uid], uid=uid))
    for most_open in (1, 3, 100):
        rows = EventRows("UTC", most_open=most_open)
        for each in versions:
            rows.add(dict(each))
            assert len(rows.open) <= most_open
        [batch] = rows.rest()
        for uid, of_one in batch.frame.sort("sequence_number").group_by("event_uid"):
            totals = [0, *of_one["total_count"]]
            assert sum(after - before for before, after in pairwise(totals)) == counts[uid[0]]


def test_a_folder_s_events_are_read_and_a_second_list_loses_none(tmp_path):
    def seen(second, uid, change="ADDED"):
        item = event("hello", firstTimestamp=f"2026-03-01T10:00:{second:02}Z")
        item["metadata"] |= {"uid": uid}
        return line(f"10:00:{second:02}", change, item)

    lines = [seen(1, "a", "LISTED"), seen(2, "b"), seen(9, "c", "LISTED")]
    (tmp_path / "events.jsonl").write_text("\n".join(lines) + "\n")
    events = read(tmp_path)["raw.event_versions"]
    told = sorted((row["event_uid"], row["change_name"]) for row in events)
    assert told == [("a", "LISTED"), ("b", "ADDED"), ("c", "LISTED")]


# What objects say of themselves


def test_a_pod_says_by_a_condition_why_it_waits_and_in_full():
    text = f"0/9 nodes are available: {'9 Insufficient nvidia.com/gpu.'}"
    waiting = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": text,
        "lastTransitionTime": stamp(2),
    }
    row = parsed("Pod", pod(status={"conditions": [waiting]}))
    assert (row["unscheduled_reason_name"], row["unscheduled_text"]) == ("Unschedulable", text)
    assert [r["reason_name"] for r in row["scheduling_reasons"]] == ["resource_short"]
    bound = parsed("Pod", pod(node="n1"))
    assert bound["unscheduled_text"] is None and bound["scheduling_reasons"] is None


def test_a_gated_pod_waits_for_its_queue():
    gates = [{"name": "kueue.x-k8s.io/admission"}]
    assert parsed("Pod", pod(spec={"schedulingGates": gates}))["is_gated"]
    assert parsed("Pod", pod())["is_gated"] is False


def test_when_a_pod_was_disrupted_is_read_from_its_condition():
    hit = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
    row = parsed("Pod", pod(status={"conditions": [hit | {"lastTransitionTime": stamp(7)}]}))
    assert row["disrupted_at"].second == 7
    off = [hit | {"status": "False", "lastTransitionTime": stamp(7)}]
    assert parsed("Pod", pod(status={"conditions": off}))["disrupted_at"] is None


@pytest.mark.parametrize(
    ("scheduled", "phase", "waits"),
    [(None, "Unknown", True), (5, "Inqueue", True), (7, "Inqueue", True), (7, "Running", False),
     (9, "Inqueue", False)],
)  # fmt: skip
def test_the_newer_condition_of_a_pod_group_counts_for_none_is_ever_taken_back(
    scheduled, phase, waits
):
    lack = {
        "type": "Unschedulable", "status": "True", "reason": "NotEnoughResources",
        "message": "12/8 tasks in gang unschedulable: pod group is not ready, 20 minAvailable, "
        "8 Running", "lastTransitionTime": stamp(7),
    }  # fmt: skip
    conditions = [lack]
    if scheduled:
        ready = {"type": "Scheduled", "status": "True", "lastTransitionTime": stamp(scheduled)}
        conditions.append(ready)
    group = {
        "kind": "PodGroup",
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "metadata": {"uid": "g-1", "name": "g", "namespace": "ml", "creationTimestamp": stamp(1)},
        "spec": {"minMember": 20},
        "status": {"phase": phase, "conditions": conditions},
    }
    row = parsed("PodGroup", group)
    assert (row["unscheduled_text"] is not None) == waits
    if waits:
        assert row["scheduling_reasons"][0]["missing_count"] == 12
