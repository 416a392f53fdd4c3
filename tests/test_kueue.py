"""Kueue Workloads as rows: of both versions of its API, of Jobs and of groups of pods."""

import json

import pytest

from tests.kube_objects import container, owner, parsed, stamp


def pod_set(name="main", count=1, gpus: int | None = 1, min_count=None, **inner):
    spec = {"containers": [container(gpus=gpus)]}
    told = {"name": name, "count": count, "template": {"metadata": inner, "spec": spec}}
    return told if min_count is None else told | {"minCount": min_count}


def condition(name, status, second, reason="r", message="m"):
    return {"type": name, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": stamp(second)}  # fmt: skip


def workload(pod_sets=None, conditions=(), owners=None, version="v1beta2", spec=None, **status):
    return {
        "kind": "Workload",
        "apiVersion": f"kueue.x-k8s.io/{version}",
        "metadata": {
            "uid": "w-1", "name": "job-j-1a2b3", "namespace": "ml", "creationTimestamp": stamp(1),
            "ownerReferences": [owner("Job", "j", "u-j", "batch/v1")] if owners is None else owners,
        },
        "spec": {"queueName": "main", "active": True, "podSets": pod_sets or [pod_set()],
                 **(spec or {})},
        "status": {"conditions": list(conditions), **status},
    }  # fmt: skip


def row(*args, **more):
    return parsed("Workload", workload(*args, **more))


def test_its_owner_queue_and_what_its_pod_sets_ask_for():
    """A driver without GPUs and 4 workers of 8, of which 3 may start: 4 pods, 32 GPUs."""
    found = row(
        [pod_set("driver", gpus=None), pod_set("worker", 4, 8, 3, labels={"app": "train"})],
        spec={"priority": 10},
        admission={"clusterQueue": "llm"},
    )
    asked = [{"resource_name": "nvidia.com/gpu", "request_count": 32}]
    assert (found["pod_count"], found["requests"]) == (4, asked)
    assert found["pod_requests"][0]["request_count"] == 8
    assert json.loads(found["pod_sets_json"])[1]["minCount"] == 3
    assert json.loads(found["labels_json"]) == {"app": "train"}
    assert (found["owner_kind_name"], found["owner_uid"]) == ("Job", "u-j")
    assert (found["queue_name"], found["cluster_queue_name"]) == ("main", "llm")
    assert (found["workload_key_uid"], found["priority_number"]) == ("u-j", 10)
    assert row(spec={"priority": -5})["priority_number"] == -5


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_its_conditions_are_columns_and_one_that_is_not_told_is_unknown(version):
    found = row(
        conditions=[
            condition("QuotaReserved", "False", 9, "Pending", "8 more needed"),
            condition("Admitted", "False", 8),
            condition("Evicted", "True", 7, "PodsReadyTimeout", "late"),
            condition("Finished", "True", 9, "Failed"),
        ],
        version=version,
        requeueState={"count": 2, "requeueAt": stamp(30)},
        schedulingStats={"evictions": [{"reason": "a", "count": 2}, {"reason": "b", "count": 1}]},
        admissionChecks=[{"name": "prov", "state": "Ready", "lastTransitionTime": stamp(5)}],
    )
    flags = ("quota_reserved", "admitted", "pods_ready", "evicted", "preempted", "finished")
    assert [found[f"is_{name}"] for name in flags] == [False, False, None, True, None, True]
    assert [found["quota_reserved_at"].second, found["evicted_at"].second] == [9, 7]
    assert found["pods_ready_at"] is None
    assert (found["pending_reason_name"], found["pending_text"]) == ("Pending", "8 more needed")
    assert (found["eviction_reason_name"], found["finish_reason_name"]) == (
        "PodsReadyTimeout",
        "Failed",
    )
    assert (found["requeue_count"], found["eviction_count"]) == (2, 3)
    assert found["requeue_at"].second == 30
    assert json.loads(found["checks_json"])[0]["state"] == "Ready"


def test_the_preemptor_is_named_by_uid_while_the_eviction_stands():
    text = "Preempted to accommodate a workload (UID: a4b1805d-c451, JobUID: 87-aa) due to priority"
    told = [condition("Evicted", "True", 9, "Preempted", text),
            condition("Preempted", "True", 9, "InClusterQueue", text)]  # fmt: skip
    found = row(conditions=told)
    assert (found["preemptor_uid"], found["preemptor_job_uid"]) == ("a4b1805d-c451", "87-aa")
    assert found["preemption_reason_name"] == "InClusterQueue"
    over = ("False", 9, "QuotaReserved", f"Previously: {text}")
    before = [condition("Evicted", *over), condition("Preempted", *over)]
    again = row(conditions=before)
    assert (again["preemptor_uid"], again["eviction_text"], again["is_evicted"]) == (
        None,
        None,
        False,
    )


def pods(*names):
    return [{"apiVersion": "v1", "kind": "Pod", "name": name, "uid": f"u-{name}"} for name in names]


@pytest.mark.parametrize(
    ("owners", "uid", "key"),
    [
        (pods("a", "b"), None, "PodGroup/ml/job-j-1a2b3"),
        (pods("a"), "u-a", "u-a"),
        ([owner("TrainJob", "t", "u-t")], "u-t", "TrainJob/ml/t"),
        ([], None, "PodGroup/ml/job-j-1a2b3"),
    ],
)
def test_a_workload_of_many_pods_is_a_group_and_one_of_a_pod_is_that_pod(owners, uid, key):
    found = row(owners=owners)
    assert (found["owner_uid"], found["workload_key_uid"]) == (uid, key)
    assert len(found["owners"]) == len(owners)


def test_a_deactivated_workload_is_not_active_and_one_that_says_nothing_is():
    assert row(spec={"active": False})["is_active"] is False
    assert row(spec={"active": None})["is_active"] is True


def test_an_older_version_that_counts_no_evictions_leaves_them_unknown():
    assert (row()["eviction_count"], row()["requeue_count"]) == (None, None)


@pytest.mark.parametrize(
    "broken", [{"podSets": {}}, {"podSets": [{"count": "2"}]}, {"priority": "high"}]
)
def test_what_is_not_shaped_like_a_workload_is_refused(broken):
    with pytest.raises(Exception, match="malformed"):
        row(spec=broken)
