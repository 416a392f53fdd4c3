"""Objects that own pods as rows: gang sizes and their source, ends, keys; what is kept of them."""

import pytest

from collectors.owners import Unchanged
from collectors.streams import OWNERS
from tests.kube_objects import SEEN, container, owner, parsed, stamp


def thing(kind, spec=None, status=None, owners=(), labels=None, name="top", **meta):
    return {
        "kind": kind.removeprefix("Volcano"),
        "apiVersion": f"{OWNERS[kind]}/v1",
        "metadata": {
            "uid": f"u-{name}", "name": name, "namespace": "ml", "creationTimestamp": stamp(1),
            "labels": labels or {}, "ownerReferences": list(owners), **meta,
        },
        "spec": spec or {},
        "status": status or {},
    }  # fmt: skip


def template(gpus: int | None = 1):
    return {"spec": {"containers": [container(gpus=gpus)]}}


def job(parallelism=4, completions=4, mode="Indexed", gpus: int | None = 1, **more):
    return {"parallelism": parallelism, "completions": completions, "completionMode": mode,
            "template": template(gpus), **more}  # fmt: skip


def jobs(replicas, parallelism):
    return {"replicas": replicas, "template": {"spec": {"parallelism": parallelism}}}


@pytest.mark.parametrize(
    ("kind", "spec", "size", "source"),
    [
        ("Job", job(), 4, "Indexed Job (assumed)"),
        ("Job", job(mode="NonIndexed"), None, None),
        ("Job", job(completions=8), None, None),
        ("Job", job(1, 1), None, None),
        ("Job", job(gpus=None), None, None),
        ("Job", {}, None, None),
        ("JobSet", {"replicatedJobs": [jobs(1, 1), jobs(2, 4)]}, 9, "JobSet replicatedJobs"),
        ("JobSet", {"replicatedJobs": [{"template": {}}]}, None, None),
        ("TrainJob", {"trainer": {"numNodes": 4}}, 4, "TrainJob numNodes"),
        ("TrainJob", {}, None, None),
        (
            "PyTorchJob",
            {"pytorchReplicaSpecs": {"Master": {}, "Worker": {"replicas": 3}}},
            4,
            "PyTorchJob workers",
        ),
        (
            "MPIJob",
            {"mpiReplicaSpecs": {"Launcher": {"replicas": 1}, "Worker": {"replicas": 8}}},
            8,
            "MPIJob workers",
        ),
        ("LeaderWorkerSet", {"leaderWorkerTemplate": {"size": 4}}, 4, "LeaderWorkerSet size"),
        ("Deployment", {"replicas": 4}, None, None),
        ("RayCluster", {"workerGroupSpecs": [{"replicas": 8}]}, None, None),
    ],
)
def test_a_gang_s_size_and_where_it_is_said(kind, spec, size, source):
    row = parsed(kind, thing(kind, spec))
    assert (row["gang_size_count"], row["gang_source_name"]) == (size, source)


def condition(name, second, status="True"):
    return {"type": name, "status": status, "lastTransitionTime": stamp(second)}


@pytest.mark.parametrize(
    ("kind", "status", "end", "second"),
    [
        ("Job", {"conditions": [condition("SuccessCriteriaMet", 8)]}, None, None),
        ("Job", {"conditions": [condition("Complete", 9)], "completionTime": stamp(8)},
         "Complete", 8),
        ("Job", {"conditions": [condition("FailureTarget", 7), condition("Failed", 9)]},
         "Failed", 9),
        ("JobSet", {"conditions": [condition("Completed", 9)]}, "Completed", 9),
        ("JobSet", {"conditions": [condition("Failed", 9, "False")]}, None, None),
        ("TrainJob", {"conditions": [condition("Complete", 9)]}, "Complete", 9),
        ("PyTorchJob", {"conditions": [condition("Succeeded", 9)]}, "Succeeded", 9),
        ("RayJob", {"jobDeploymentStatus": "Complete", "endTime": stamp(9)}, "Complete", 9),
        ("RayJob", {"jobDeploymentStatus": "Running"}, None, None),
        ("Workflow", {"phase": "Error", "finishedAt": stamp(9)}, "Error", 9),
        ("VolcanoJob", {"state": {"phase": "Terminated", "lastTransitionTime": stamp(9)}},
         "Terminated", 9),
        ("VolcanoJob", {"state": {"phase": "Running", "lastTransitionTime": stamp(9)}},
         None, None),
        ("Deployment", {"conditions": [condition("Available", 9)]}, None, None),
    ],
)  # fmt: skip
def test_when_and_how_it_says_that_it_ended(kind, status, end, second):
    row = parsed(kind, thing(kind, status=status))
    found = row["finished_at"] and row["finished_at"].second
    assert (row["end_name"], found) == (end, second)


@pytest.mark.parametrize(
    ("kind", "owners", "expected"),
    [
        ("Job", [], ("Job", "top", "u-top", "batch", False)),
        ("TrainJob", [], ("TrainJob", "top", "TrainJob/ml/top", "training", False)),
        ("Deployment", [], ("Deployment", "top", "Deployment/ml/top", "inference", True)),
        ("ReplicaSet", [owner("Deployment", "web")],
         ("Deployment", "web", "Deployment/ml/web", "inference", True)),
        ("Job", [owner("JobSet", "js", "u-js")], ("JobSet", "js", "u-js", "training", False)),
        ("Job", [owner("CronJob", "nightly")], ("Job", "top", "u-top", "batch", False)),
        ("Deployment", [owner("NIMService", "nim", "u-nim")],
         ("NIMService", "nim", "u-nim", "inference", True)),
        ("Job", [owner("Job", "vj", "u-vj", "batch.volcano.sh/v1alpha1")],
         ("VolcanoJob", "vj", "u-vj", "training", False)),
    ],
)  # fmt: skip
def test_the_top_as_far_as_an_object_tells_itself(kind, owners, expected):
    """A kind that we do not know is what its child is; what submits again and again is no top."""
    row = parsed(kind, thing(kind, owners=owners))
    columns = ("workload_kind_name", "workload_name", "workload_key_uid", "workload_class",
               "is_service")  # fmt: skip
    assert tuple(row[column] for column in columns) == expected
    assert row["owner_uid"] == (owners[0]["uid"] if owners else None)


def test_what_else_is_kept_of_it():
    told = {"example.com/by": "ana", "example.com/at": stamp(0)}
    labels = {"kueue.x-k8s.io/queue-name": "main"}
    row = parsed("Job", thing("Job", {"suspend": True}, {"startTime": stamp(3)}, labels=labels,
                              annotations=told))  # fmt: skip
    assert (row["queue_name"], row["user_name"], row["is_suspended"]) == ("main", "ana", True)
    assert (row["submitted_at"].second, row["started_at"].second) == (0, 3)
    assert row["is_creation_seen"] is True
    assert parsed("VolcanoJob", thing("VolcanoJob", {"queue": "vq"}))["queue_name"] == "vq"
    assert parsed("MPIJob", thing("MPIJob", {"runPolicy": {"suspend": True}}))["is_suspended"]


def test_who_was_there_long_before_it_was_seen_has_a_past_that_is_not_known():
    old = thing("Job", creationTimestamp="2026-03-01T09:00:00Z")
    assert parsed("Job", old)["is_creation_seen"] is False


@pytest.mark.parametrize("spec", [{"parallelism": "4", "completions": "4"}, {"template": []}])
def test_what_is_not_shaped_like_its_kind_is_refused(spec):
    with pytest.raises(Exception, match="malformed"):
        parsed("Job", thing("Job", job() | spec))


def test_every_kind_that_owns_pods_can_be_parsed():
    for kind in OWNERS:
        assert parsed(kind, thing(kind))["kind_name"] == kind


def test_only_what_changed_is_kept_and_numbers_in_a_message_are_no_change():
    known = Unchanged()

    def row(number, change="MODIFIED", **told):
        frame = {"sequence_number": number, "observed_at": SEEN + number, "change_name": change}
        return {**frame, "source_ref": f"f:{number}", "is_creation_seen": True, "day_on": 1, **told}

    assert [
        known("u", row(1, "ADDED", pending_text="64 more needed")),
        known("u", row(2, pending_text="8 more needed")),
        known("v", row(3, pending_text="8 more needed")),
        known("u", row(4, pending_text="8 more needed. Pending the preemption of 1")),
        known("u", row(5, pending_text="8 more needed. Pending the preemption of 1", day_on=2)),
        known("u", row(6, "DELETED", pending_text=None, day_on=2)),
    ] == [False, True, False, False, False, False]
