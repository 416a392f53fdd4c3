"""What a day hands on of owners, of Kueue's queue and of creators; each day read alone or together.

How pods are handed on is in test_carry, test_truth and test_properties.
"""

import json
from datetime import UTC, date, datetime

import pytest

from lake.home import Home
from lake.read import Door
from models.config import load
from models.window import Window
from pipelines.process import process
from tests.kube_objects import container, owner, pod
from tests.test_recording import a_node, line

CONFIG = """
clusters:
  - name: alpha
    sources: [{kind: kubernetes, path: recorded}]
team_rules: [{user: ana, team: vision}]
teams: [{name: vision}]
"""
FIRST, LAST = date(2026, 3, 1), date(2026, 3, 4)


def when(day, hour):
    return f"2026-03-{day:02}T{hour:02}:00:00Z"


def meta(kind, group, name, day, hour, owners=()):
    return {"kind": kind, "apiVersion": group, "metadata": {
        "uid": f"u-{name}", "name": name, "namespace": "ml", "creationTimestamp": when(day, hour),
        "ownerReferences": list(owners)}}  # fmt: skip


def jobset():
    return meta("JobSet", "jobset.x-k8s.io/v1alpha2", "js", 1, 9) | {"spec": {"suspend": True}}


def job(name="j", day=1, hour=9, owners=None):
    above = [owner("JobSet", "js", "u-js")] if owners is None else owners
    return meta("Job", "batch/v1", name, day, hour, above) | {"spec": {}}


def a_pod(name, day, hour, phase="Pending", of="j", node=None):
    item = pod(owners=[owner("Job", of, f"u-{of}", "batch/v1")], node=node, status={"phase": phase})
    item["metadata"] |= {"uid": name, "name": name, "creationTimestamp": when(day, hour)}
    for told in item["status"].get("conditions", []):
        told["lastTransitionTime"] = when(day, hour)
    return item


def queued(day, hour, *conditions, of="JobSet/js", name="w"):
    kind, above = of.split("/")
    item = meta("Workload", "kueue.x-k8s.io/v1beta2", name, day, hour,
                [owner(kind, above, f"u-{above}")])  # fmt: skip
    told = [{"type": t, "status": s, "reason": r, "message": "", "lastTransitionTime": when(d, h)}
            for t, s, r, d, h in conditions]  # fmt: skip
    pods = {"name": "main", "count": 1, "template": {"spec": {"containers": [container(gpus=1)]}}}
    return item | {"spec": {"queueName": "main", "podSets": [pods]},
                   "status": {"conditions": told}}  # fmt: skip


def reserved(status, day, hour, *more):
    return (("QuotaReserved", status, "r", day, hour), ("Admitted", status, "r", day, hour), *more)


CREATION = {
    "kind": "Event", "apiVersion": "audit.k8s.io/v1", "auditID": "1", "stage": "ResponseComplete",
    "verb": "create", "user": {"username": "ana"}, "responseStatus": {"code": 201},
    "objectRef": {"resource": "jobsets", "apiGroup": "jobset.x-k8s.io", "namespace": "ml",
                  "name": "js"},
    "requestReceivedTimestamp": "2026-03-01T08:59:59.900000Z",
    "stageTimestamp": "2026-03-01T09:00:00.100000Z",
}  # fmt: skip

LINES = [
    ("09:00:00", "LISTED", a_node(), 1),
    ("09:00:01", "ADDED", jobset(), 1),
    ("09:00:02", "ADDED", job(), 1),
    ("09:00:03", "ADDED", queued(1, 9), 1),
    ("12:00:00", "MODIFIED", queued(1, 9, *reserved("True", 1, 12)), 1),
    ("13:00:00", "ADDED", a_pod("one", 1, 13), 1),
    ("14:00:00", "MODIFIED", a_pod("one", 1, 13, "Running", node="gpu-1"), 1),
    # The first day's midnight: quota and pod are there; then the eviction, on the second day.
    ("06:00:00", "MODIFIED",
     queued(1, 9, *reserved("True", 1, 12, ("Evicted", "True", "Preempted", 2, 6))), 2),
    ("07:00:00", "DELETED", a_pod("one", 1, 13, "Running", node="gpu-1"), 2),
    ("08:00:00", "MODIFIED",
     queued(1, 9, *reserved("False", 2, 8, ("Evicted", "True", "Preempted", 2, 6))), 2),
    # The second midnight: it waits again; on the third day it gets quota, and loses its owners.
    ("03:00:00", "MODIFIED", queued(1, 9, *reserved("True", 3, 3)), 3),
    ("04:00:00", "ADDED", a_pod("two", 3, 4), 3),
    ("05:00:00", "DELETED", jobset(), 3),
    ("05:00:01", "DELETED", job(), 3),
    # The third midnight: owners gone, the pod is not; its next version names the Job alone.
    ("04:00:00", "MODIFIED", a_pod("two", 3, 4, "Running", node="gpu-1"), 4),
    ("12:00:00", "MODIFIED", a_node(), 4),
]  # fmt: skip


def record(folder):
    folder = folder / "recorded"
    folder.mkdir()
    text = "\n".join(line(at, change, item, day) for at, change, item, day in LINES)
    (folder / "all.jsonl").write_text(text + "\n")
    (folder / "audit.log").write_text(json.dumps(CREATION) + "\n")
    (folder.parent / "gpuledger.yaml").write_text(CONFIG)


def run(folder, *days):
    home = Home(folder / f"home{len(days)}")
    for window in [Window("alpha", *each) for each in days] or [None]:
        outcome = process(home, load(folder / "gpuledger.yaml"), "alpha", window)
        assert (outcome.error, outcome.broken) == (None, [])
    return home


@pytest.fixture(scope="module", params=["at once", "day by day"])
def door(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("carried")
    record(folder)
    days = [(date(2026, 3, day), date(2026, 3, day + 1)) for day in (1, 2, 3, 4)]
    with Door(run(folder, *(days if request.param == "day by day" else ()))) as door:
        yield door


def of(day, hour):
    return datetime(2026, 3, day, hour, tzinfo=UTC)


def rows(door, query):
    utc = [
        tuple(v.astimezone(UTC) if isinstance(v, datetime) else v for v in row)
        for row in door.query(query).fetchall()
    ]
    return utc


def test_a_pod_finds_its_top_although_its_owners_were_deleted_on_the_day_before(door):
    found = rows(door, "select distinct day_on, workload_kind_name, workload_key_uid, user_name,"
                       " team_name from core.pods order by all")  # fmt: skip
    assert found == [
        (date(2026, 3, day), "JobSet", "u-js", "ana", "vision") for day in (1, 2, 3, 4)
    ]


def test_an_attempt_is_the_same_one_on_each_day_and_waits_since_it_was_queued(door):
    found = rows(door, "select day_on, attempt_number, queued_at, quota_reserved_at, ended_at,"
                       " outcome_name from core.attempts order by all")  # fmt: skip
    first, second = (of(1, 9), of(1, 12)), (of(2, 8), of(3, 3))
    assert found == [
        (date(2026, 3, 1), 1, *first, None, "alive"),
        (date(2026, 3, 2), 1, *first, of(2, 8), "evicted"),
        (date(2026, 3, 2), 2, of(2, 8), None, None, "queued"),
        (date(2026, 3, 3), 2, *second, None, "queued"),
        (date(2026, 3, 4), 2, *second, None, "alive"),
    ]
    assert rows(door, "select count(distinct attempt_id) from core.attempts") == [(2,)]
    pods = "select distinct pod_uid, attempt_number from core.pods order by 1"
    assert rows(door, pods) == [("one", 1), ("two", 2)]


def test_an_owner_that_is_gone_with_its_pods_is_carried_no_further(door):
    found = rows(door, "select day_on, list(distinct object_name order by object_name), "
                       "bool_or(deleted_at is not null) from raw.owner_versions "
                       "where change_name = 'CARRIED' group by 1 order by 1")  # fmt: skip
    assert found == [
        (date(2026, 3, 2), ["j", "js"], False),
        (date(2026, 3, 3), ["j", "js"], False),
        (date(2026, 3, 4), ["j", "js"], True),
    ]


def test_a_pod_that_outlives_its_quota_and_its_workload_keeps_its_attempt(tmp_path):
    """Quota is given back at 22:00 and the Workload deleted at 23:00; the pod goes the next day."""
    folder = tmp_path / "recorded"
    folder.mkdir()
    told = reserved("False", 1, 22, ("Evicted", "True", "Preempted", 1, 21))
    lines = [
        line("09:00:00", "LISTED", a_node()),
        line("09:00:01", "ADDED", job(owners=())),
        line("10:00:00", "ADDED", queued(1, 9, *reserved("True", 1, 10), of="Job/j")),
        line("11:00:00", "ADDED", a_pod("one", 1, 11, "Running", node="gpu-1")),
        line("22:00:00", "MODIFIED", queued(1, 9, *told, of="Job/j")),
        line("23:00:00", "DELETED", queued(1, 9, *told, of="Job/j")),
        line("05:00:00", "DELETED", a_pod("one", 1, 11, "Running", node="gpu-1"), 2),
        line("12:00:00", "MODIFIED", a_node(), 3),
    ]
    (folder / "all.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "gpuledger.yaml").write_text(CONFIG)
    with Door(run(tmp_path)) as door:
        found = rows(door, "select day_on, attempt_number, quota_reserved_at, ended_at"
                           " from core.attempts where pod_count > 0 order by 1")  # fmt: skip
        pods = rows(door, "select count(distinct attempt_id), min(attempt_number) from core.pods")
        carried = (
            "select day_on, count(*) from raw.workload_versions "
            "where change_name = 'CARRIED' group by 1"
        )
        left = rows(door, carried)
    assert found == [
        (date(2026, 3, 1), 1, of(1, 10), None),
        (date(2026, 3, 2), 1, of(1, 10), of(2, 5)),
    ]
    assert pods == [(1, 1)]
    assert left == [(date(2026, 3, 2), 1)]


def test_a_workload_made_anew_days_later_does_not_wait_since_its_owner_was_made(tmp_path):
    """The Job's first Workload is deleted on the first day; another one comes on the third."""
    folder = tmp_path / "recorded"
    folder.mkdir()
    alone = job(owners=())
    first = queued(1, 9, *reserved("True", 1, 10), of="Job/j", name="w1")
    lines = [
        line("09:00:00", "LISTED", a_node()),
        line("09:00:01", "ADDED", alone),
        line("09:00:02", "ADDED", first),
        line("11:00:00", "DELETED", first),
        line("08:00:00", "ADDED", queued(3, 8, of="Job/j", name="w2"), 3),
        line("12:00:00", "MODIFIED", a_node(), 3),
    ]
    (folder / "all.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "gpuledger.yaml").write_text(CONFIG)
    with Door(run(tmp_path)) as door:
        found = rows(door, "select day_on, queued_at from core.attempts order by 1")
    assert found == [(date(2026, 3, 1), of(1, 9)), (date(2026, 3, 3), of(3, 8))]
