"""Whose a pod is: its workload, its gang, its class, its queue."""

import pytest

from tests.kube_objects import JOB, JOBSET, LWS, owner, parsed, pod, stamp


@pytest.mark.parametrize(
    ("given_pod", "kind", "name", "key", "is_service"),
    [
        (pod(), "Pod", "pod-1", "p-1", False),
        (pod(owners=[owner("Node", "gpu-1")]), "Pod", "pod-1", "p-1", False),
        (
            pod(owners=[owner("ReplicaSet", "web-6f98")], labels={"pod-template-hash": "6f98"}),
            "Deployment",
            "web",
            "Deployment/ml/web",
            True,
        ),
        (pod(owners=[owner("ReplicaSet", "bare")]), "ReplicaSet", "bare", "u-1", True),
        (pod(owners=[owner("StatefulSet", "db")]), "StatefulSet", "db", "u-1", True),
        (
            pod(owners=[owner("StatefulSet", "nb")], labels={"notebook-name": "nb"}),
            "Notebook",
            "nb",
            "Notebook/ml/nb",
            False,
        ),
        (pod(owners=[owner("DaemonSet", "ds")]), "DaemonSet", "ds", "u-1", True),
        (
            pod(owners=[owner("Job", "nightly-2901", api="batch/v1")]),
            "Job",
            "nightly-2901",
            "u-1",
            False,
        ),
        (pod(owners=[JOB], labels=JOBSET), "JobSet", "js", "u-js", False),
        (
            pod(
                owners=[JOB],
                labels=JOBSET | {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"},
            ),
            "TrainJob",
            "js",
            "TrainJob/ml/js",
            False,
        ),
        (
            pod(owners=[owner("Job", "vj", api="batch.volcano.sh/v1alpha1")]),
            "VolcanoJob",
            "vj",
            "u-1",
            False,
        ),
        (
            pod(
                owners=[owner("PyTorchJob", "pt")],
                labels={
                    "training.kubeflow.org/job-name": "pt",
                    "training.kubeflow.org/operator-name": "pytorchjob-controller",
                },
            ),
            "PyTorchJob",
            "pt",
            "u-1",
            False,
        ),
        (
            pod(
                owners=[owner("Job", "mpi-launcher", api="batch/v1")],
                labels={
                    "training.kubeflow.org/job-name": "mpi",
                    "training.kubeflow.org/operator-name": "mpi-operator",
                },
            ),
            "MPIJob",
            "mpi",
            "MPIJob/ml/mpi",
            False,
        ),
        (
            pod(owners=[owner("StatefulSet", "lws-0")], labels={f"{LWS}/name": "lws"}),
            "LeaderWorkerSet",
            "lws",
            "LeaderWorkerSet/ml/lws",
            True,
        ),
        (pod(owners=[owner("RayCluster", "rc")]), "RayCluster", "rc", "u-1", False),
        (
            pod(
                owners=[owner("RayCluster", "rj-x7")],
                labels={
                    "ray.io/originated-from-cr-name": "rj",
                    "ray.io/originated-from-crd": "RayJob",
                },
            ),
            "RayJob",
            "rj",
            "RayJob/ml/rj",
            False,
        ),
        (
            pod(
                owners=[owner("ReplicaSet", "llm-predictor-6f98")],
                labels={
                    "pod-template-hash": "6f98",
                    "serving.kserve.io/inferenceservice": "llm",
                },
            ),
            "InferenceService",
            "llm",
            "InferenceService/ml/llm",
            True,
        ),
        (pod(owners=[owner("Workflow", "wf")]), "Workflow", "wf", "u-1", False),
        (
            pod(labels={"kueue.x-k8s.io/pod-group-name": "g"}),
            "PodGroup",
            "g",
            "PodGroup/ml/g",
            False,
        ),
        (pod(owners=[owner("AppThing", "x")]), "AppThing", "x", "u-1", False),
    ],
)
def test_the_workload_is_the_object_that_a_person_submitted(given_pod, kind, name, key, is_service):
    row = parsed("Pod", given_pod)
    assert (row["workload_kind_name"], row["workload_name"]) == (kind, name)
    assert (row["workload_key_uid"], row["is_service"]) == (key, is_service)


def test_all_parts_of_an_mpi_job_share_a_key_though_their_owners_differ():
    labels = {"training.kubeflow.org/job-name": "m"}
    launcher = pod(owners=[owner("Job", "m-launcher", "u-2", "batch/v1")], labels=labels)
    worker = pod(owners=[owner("MPIJob", "m", "u-3", "kubeflow.org/v2beta1")], labels=labels)
    keys = {parsed("Pod", each)["workload_key_uid"] for each in (launcher, worker)}
    assert keys == {"MPIJob/ml/m"}


def test_a_pod_group_has_the_key_of_its_pods():
    volcano = owner("Job", "vj", api="batch.volcano.sh/v1alpha1")
    replicas = owner("ReplicaSet", "web-6f98c")
    for reference, labels in ((volcano, {}), (replicas, {"pod-template-hash": "6f98c"})):
        theirs = parsed("Pod", pod(owners=[reference], labels=labels))["workload_key_uid"]
        group = {
            "metadata": {
                "uid": "g-1",
                "name": "g",
                "namespace": "ml",
                "creationTimestamp": stamp(0),
                "ownerReferences": [reference],
            },
            "spec": {"minMember": 4, "queue": "q", "minResources": {"nvidia.com/gpu": "32"}},
        }
        row = parsed("PodGroup", group)
        assert row["workload_key_uid"] == theirs
        assert (row["min_member_count"], row["queue_name"], row["phase_name"]) == (4, "q", None)
        assert row["requests"] == [{"resource_name": "nvidia.com/gpu", "request_count": 32}]


def test_the_chain_of_owners_is_kept_from_the_controller_up():
    row = parsed("Pod", pod(owners=[JOB], labels=JOBSET))
    assert [tuple(o.values()) for o in row["owners"]] == [
        ("Job", "js-worker-0", "u-1"),
        ("JobSet", "js", "u-js"),
    ]


def test_a_gang_is_named_by_its_group_and_a_deployment_is_none():
    grouped = {"scheduling.k8s.io/group-name": "g"}
    row = parsed("Pod", pod(annotations=grouped, owners=[owner("Job", "vj", api="batch/v1")]))
    assert (row["gang_name"], row["gang_size_count"]) == ("g", None)
    web = pod(
        annotations=grouped,
        owners=[owner("ReplicaSet", "web-6f98")],
        labels={"pod-template-hash": "6f98"},
    )
    assert parsed("Pod", web)["gang_name"] is None
    lws = pod(
        labels={f"{LWS}/name": "lws", f"{LWS}/group-index": "2"}, annotations={f"{LWS}/size": "4"}
    )
    row = parsed("Pod", lws)
    assert (row["gang_name"], row["gang_size_count"]) == ("lws-2", 4)


def test_the_class_is_the_first_override_s_or_else_the_kind_s():
    assert parsed("Pod", pod())["workload_class"] == "unknown"
    assert parsed("Pod", pod(namespace="nb-ana"))["workload_class"] == "interactive"
    assert parsed("Pod", pod(owners=[JOB]))["workload_class"] == "batch"


def test_queue_and_user_are_those_that_the_pod_names():
    row = parsed(
        "Pod",
        pod(labels={"kueue.x-k8s.io/queue-name": "local"}, annotations={"example.com/by": "ana"}),
    )
    assert (row["queue_name"], row["user_name"]) == ("local", "ana")


def test_the_model_asked_for_is_the_node_selector_s_or_a_required_affinity_s():
    chosen = pod(spec={"nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}})
    assert parsed("Pod", chosen)["asked_gpu_model_name"] == "h100-80gb"
    match = {"key": "nvidia.com/gpu.product", "operator": "In", "values": ["Tesla-T4"]}
    needs = {"nodeSelectorTerms": [{"matchExpressions": [match]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": needs}}
    row = parsed("Pod", pod(spec={"affinity": affinity}))
    assert row["asked_gpu_model_name"] == "t4"
