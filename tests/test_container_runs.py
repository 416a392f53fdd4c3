"""Each run of each container, as the statuses of a pod tell it."""

from collectors.containers import runs_of
from tests.kube_objects import SEEN, at, container, ended, parsed, pod, running, waiting

SIDECAR = container("proxy", restartPolicy="Always")


def runs(item):
    found = parsed("Pod", item)["container_runs"]
    return [tuple(run.values()) for run in found]


def test_the_current_run_and_the_one_before_are_told_with_their_ends():
    again = {**running("main", 20), "lastState": ended("main", 5, 9, 137)["state"]}
    again["restartCount"] = 3
    assert runs(pod(status={"containerStatuses": [again]})) == [
        ("main", "main", at(5), at(9), 137, None, 2),
        ("main", "main", at(20), None, None, None, 3),
    ]


def test_a_container_that_waits_to_be_restarted_has_its_last_run_only():
    again = {**waiting("main", "CrashLoopBackOff", 5, 9), "restartCount": 2}
    assert runs(pod(status={"containerStatuses": [again]})) == [
        ("main", "main", at(5), at(9), 1, None, 2)
    ]


def test_init_containers_and_sidecars_are_told_apart():
    told = [ended("fetch", 1, 4), running("proxy", 5)]
    item = pod(
        init=[container("fetch"), SIDECAR],
        status={"initContainerStatuses": told, "containerStatuses": [running("main", 6)]},
    )
    assert [run[:3] for run in runs(item)] == [
        ("main", "main", at(6)),
        ("fetch", "init", at(1)),
        ("proxy", "sidecar", at(5)),
    ]


def test_a_container_that_never_ran_has_no_run_and_its_pod_is_not_refused():
    never = ended("main", 5, 9, 128)
    never["state"]["terminated"] |= {"startedAt": "1970-01-01T00:00:00Z", "reason": "StartError"}
    item = pod(status={"phase": "Failed", "containerStatuses": [never]})
    row = parsed("Pod", item)
    assert (row["container_runs"], row["running_since_at"], row["finished_at"]) == ([], None, at(9))
    spec, status = item["spec"], item["status"]
    assert runs_of(spec, status, {}, frozenset({"main"}), SEEN).exit_code_number == 128


def test_the_image_is_that_of_the_container_with_the_gpu():
    beside = container("log", image="log:1")
    item = pod(containers=[beside, container(gpus=1, image="train:2")])
    assert parsed("Pod", item)["image_name"] == "train:2"
    assert parsed("Pod", pod(containers=[beside]))["image_name"] == "log:1"
