"""A pod as kube-state-metrics tells it: each column by the metric that has it, and each trap."""

import math

import pytest

from collectors.kube_state import Counts
from collectors.source import Settings
from tests.kube_objects import SETTINGS
from tests.kube_state_case import MIDNIGHT, OLD, Told, pod

START = "kube_pod_container"


def test_a_pod_that_does_not_change_is_one_row():
    told = Told()
    pod(told)
    read = told.read(600, 1200)
    assert read.pods("observed_at", "change_name", "pod_uid") == [(30, "LISTED", "p")]


def test_what_changes_is_a_whole_row_at_the_scrape_that_tells_it():
    told = Told()
    labels = pod(told, end=600, phase="Pending", node="")
    pod(told, begin=600)
    told.tell("kube_pod_status_scheduled_time", MIDNIGHT + 575, 600, **labels)
    told.tell("kube_pod_owner", 1, owner_kind="Job", owner_name="j", owner_is_controller="true")
    columns = ("observed_at", "change_name", "node_name", "bound_at", "phase_name", "pod_name")
    assert told.read().pods(*columns) == [
        (30, "LISTED", None, None, "Pending", "p"),
        (630, "MODIFIED", "n", 575, "Running", "p"),
    ]


def test_a_pod_that_comes_later_was_added_and_one_that_is_gone_was_deleted_at_the_next_scrape():
    told = Told()
    pod(told, "always")
    pod(told, "brief", 300, 1000, created=MIDNIGHT + 280)
    found = told.read().pods("pod_uid", "observed_at", "change_name", "node_name")
    assert found == [
        ("always", 30, "LISTED", "n"),
        ("brief", 330, "ADDED", "n"),
        ("brief", 1050, "DELETED", "n"),
    ]


def test_a_name_that_is_used_again_is_another_pod():
    told = Told()
    pod(told, "first", end=600, labels={"pod": "worker-0"})
    pod(told, "second", 600, labels={"pod": "worker-0"})
    found = told.read().pods("pod_uid", "pod_name", "change_name")
    assert sorted(found) == [
        ("first", "worker-0", "DELETED"),
        ("first", "worker-0", "LISTED"),
        ("second", "worker-0", "ADDED"),
    ]


def test_requests_of_a_pod_that_is_over_are_told_on_but_it_has_finished():
    told = Told()
    labels = pod(told, end=600)
    pod(told, begin=600, phase="Succeeded")
    told.tell("kube_pod_completion_time", MIDNIGHT + 590, 600, **labels)
    found = told.read().pods("phase_name", "finished_at", "requests")
    asked = [{"resource_name": "nvidia.com/gpu", "request_count": 1}]
    assert found == [("Running", None, asked), ("Succeeded", 590, asked)]


def test_a_completion_time_counts_only_in_a_terminal_phase():
    told = Told()
    labels = pod(told)
    told.tell("kube_pod_completion_time", MIDNIGHT + 10, **labels)
    assert told.read().pods("finished_at") == [None]


def test_without_a_completion_time_the_end_is_the_first_scrape_that_saw_it():
    told = Told()
    labels = pod(told, end=600)
    pod(told, begin=600, phase="Failed")
    told.tell("kube_pod_status_reason", 1, 600, reason="Evicted", **labels)
    told.tell("kube_pod_status_reason", 0, 600, reason="NodeLost", **labels)
    told.tell("kube_pod_deletion_timestamp", MIDNIGHT + 5000, 1200, **labels)
    found = told.read().pods("observed_at", "finished_at", "reason_name")
    assert found == [(30, None, None), (630, 630, "Evicted"), (1230, 630, "Evicted")]


def test_a_node_without_a_scheduled_time_holds_from_the_first_scrape():
    told = Told()
    labels = pod(told)
    told.tell("kube_pod_status_scheduled", 1, condition="true", **labels)
    assert told.read().pods("node_name", "bound_at") == [("n", None)]


def test_the_node_is_read_from_the_requests_where_the_pod_s_own_is_not_kept():
    told = Told()
    labels = pod(told, node="", gpus=0)
    ask = labels | {"container": "main", "resource": "nvidia_com_gpu", "node": "n7"}
    told.tell(f"{START}_resource_requests", 2, **ask)
    assert told.read().pods("node_name") == ["n7"]


def test_the_request_is_the_larger_of_the_init_containers_and_the_sum_of_the_others():
    told = Told()
    labels = pod(told, gpus=0)
    gpu = labels | {"resource": "nvidia_com_gpu"}
    told.tell(f"{START}_resource_requests", 1, container="a", **gpu)
    told.tell(f"{START}_resource_limits", 2, container="b", **gpu)
    told.tell("kube_pod_init_container_resource_requests", 4, container="i", **gpu)
    told.tell("kube_pod_init_container_resource_requests", 2, container="j", **gpu)
    told.tell(f"{START}_resource_requests", 0.25, container="a", resource="cpu", **labels)
    asked = [{"resource_name": "nvidia.com/gpu", "request_count": 4}]
    assert told.read().pods("requests", "cpu_milli_count") == [(asked, 250)]


def test_a_sidecar_is_one_where_its_restart_policy_is_told():
    told = Told()
    labels = pod(told)
    side = labels | {"container": "side"}
    gpu = {"resource": "nvidia_com_gpu"}
    told.tell("kube_pod_init_container_resource_requests", 1, **side, **gpu)
    told.tell("kube_pod_init_container_info", 1, restart_policy="Always", **side)
    asked = [{"resource_name": "nvidia.com/gpu", "request_count": 2}]
    assert told.read().pods("requests") == [asked]


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("nvidia_com_mig_1g_10gb", "nvidia.com/mig-1g.10gb"),
        ("nvidia_com_gpu_shared", "nvidia.com/gpu.shared"),
        ("amd_com_gpu", "amd.com/gpu"),
        ("example_com_npu", "example.com/npu"),
    ],
)
def test_resources_have_their_own_names_again(written, name):
    told = Told()
    pod(told, resource=written)
    found = told.read(settings=SETTINGS).pods("requests")
    assert found == [[{"resource_name": name, "request_count": 1}]]


def test_it_runs_since_the_latest_start_of_its_gpu_containers_and_until_one_of_them_ends():
    told = Told()
    labels = pod(told)
    main, second = labels | {"container": "main"}, labels | {"container": "b"}
    told.tell(f"{START}_resource_requests", 1, resource="nvidia_com_gpu", **second)
    told.tell(f"{START}_status_running", 1, **main)
    told.tell(f"{START}_state_started", MIDNIGHT + 5, **main)
    told.tell(f"{START}_status_running", 0, 0, 300, **second)
    told.tell(f"{START}_status_waiting_reason", 1, 0, 300, reason="ErrImagePull", **second)
    told.tell(f"{START}_status_running", 1, 300, 900, **second)
    told.tell(f"{START}_state_started", MIDNIGHT + 290, 300, 900, **second)
    told.tell(f"{START}_status_running", 0, 900, **second)
    told.tell(f"{START}_status_terminated_reason", 1, 900, reason="Error", **second)
    told.tell("kube_pod_completion_time", MIDNIGHT + 880, 900, **labels)
    columns = ("running_since_at", "stopped_at", "waiting_cause_name", "finished_at")
    assert told.read().pods(*columns, "exit_code_number") == [
        (None, None, "image_pull", None, None),
        (290, None, None, None, None),
        (290, 880, "undetermined", None, None),
    ]


def test_an_exit_code_that_is_not_told_is_unknown_and_a_completed_one_is_0():
    told = Told()
    for uid, reason in (("good", "Completed"), ("bad", "OOMKilled")):
        labels = pod(told, uid, phase="Failed") | {"container": "main"}
        told.tell(f"{START}_status_terminated_reason", 1, reason=reason, **labels)
    restarted = pod(told, "again") | {"container": "main"}
    told.tell(f"{START}_status_running", 1, **restarted)
    told.tell(f"{START}_status_last_terminated_reason", 1, reason="Error", **restarted)
    told.tell(f"{START}_status_last_terminated_exitcode", 137, **restarted)
    told.tell(f"{START}_status_restarts_total", 3, **restarted)
    found = told.read().pods("pod_uid", "exit_code_number", "restart_count")
    assert sorted(found) == [("again", 137, 3), ("bad", None, 0), ("good", 0, 0)]


def test_a_start_that_no_scrape_told_is_unknown_not_missing():
    told = Told()
    short = pod(told, "short", phase="Succeeded") | {"container": "main"}
    told.tell(f"{START}_status_terminated_reason", 1, reason="Completed", **short)
    plain = pod(told, "plain") | {"container": "main"}
    told.tell(f"{START}_status_running", 1, **plain)
    pulls = pod(told, "pulls", phase="Pending") | {"container": "main"}
    told.tell(f"{START}_status_waiting_reason", 1, reason="ImagePullBackOff", **pulls)
    found = told.read().pods("pod_uid", "is_start_known", "waiting_cause_name")
    assert sorted(found) == [
        ("plain", False, None),
        ("pulls", True, "image_pull"),
        ("short", False, None),
    ]


def test_a_run_that_ended_keeps_the_start_that_was_told_before():
    told = Told()
    labels = pod(told, end=600) | {"container": "main"}
    told.tell(f"{START}_status_running", 1, 0, 600, **labels)
    told.tell(f"{START}_state_started", OLD + 7, 0, 600, **labels)
    pod(told, begin=600, phase="Succeeded")
    told.tell(f"{START}_status_terminated_reason", 1, 600, reason="Completed", **labels)
    del labels["container"]
    told.tell("kube_pod_completion_time", MIDNIGHT + 590, 600, **labels)
    found = told.read().pods("running_since_at", "stopped_at", "is_start_known")
    assert found == [(OLD + 7 - MIDNIGHT, None, True), (OLD + 7 - MIDNIGHT, 590, True)]


def test_waiting_for_init_containers_is_told_by_what_the_others_wait_for():
    told = Told()
    for uid, reason in (("inits", "PodInitializing"), ("pulls", "ContainerCreating")):
        labels = pod(told, uid, phase="Pending")
        asks = {"resource": "nvidia_com_gpu", "container": "prepare"}
        told.tell("kube_pod_init_container_resource_requests", 1, **asks, **labels)
        wait = {"reason": reason, "container": "main"}
        told.tell(f"{START}_status_waiting_reason", 1, **wait, **labels)
    found = told.read().pods("pod_uid", "waiting_cause_name")
    assert sorted(found) == [("inits", "init"), ("pulls", "undetermined")]


def test_ready_since_its_ready_time_while_it_is_ready():
    told = Told()
    labels = pod(told)
    told.tell("kube_pod_status_ready_time", MIDNIGHT + 10, **labels)
    told.tell("kube_pod_status_ready", 1, 0, 600, condition="true", **labels)
    told.tell("kube_pod_status_ready", 0, 600, condition="true", **labels)
    assert told.read().pods("ready_since_at") == [10, None]


def test_deletion_was_asked_for_at_the_latest_when_it_is_first_told_or_due():
    told = Told()
    late, soon = pod(told, "late"), pod(told, "soon")
    told.tell("kube_pod_deletion_timestamp", MIDNIGHT + 3500, 600, **late)
    told.tell("kube_pod_deletion_timestamp", MIDNIGHT + 610, 600, **soon)
    told.tell("kube_pod_status_reason", 1, 1200, reason="Shutdown", **late)
    found = told.read().pods("pod_uid", "observed_at", "deletion_asked_at")
    assert found[2:] == [("late", 630, 630), ("soon", 630, 610), ("late", 1230, 630)]


def test_the_owner_s_owner_is_the_workload():
    told = Told()
    labels = pod(told)
    owner = {"owner_kind": "ReplicaSet", "owner_name": "web-1", "owner_is_controller": "true"}
    told.tell("kube_pod_owner", 1, **owner, **labels)
    hop = {"owner_kind": "Deployment", "owner_name": "web", "owner_is_controller": "true"}
    told.tell("kube_replicaset_owner", 1, namespace="ml", replicaset="web-1", **hop)
    columns = ("workload_kind_name", "workload_key_uid", "is_service", "workload_class")
    assert told.read().pods(*columns) == [
        ("Deployment", "Deployment/ml/web", True, "inference"),
    ]


@pytest.mark.parametrize(("above", "kind"), [("CronJob", "Job"), ("JobSet", "JobSet")])
def test_a_job_of_a_schedule_is_a_workload_of_its_own(above, kind):
    told = Told()
    labels = pod(told)
    owner = {"owner_kind": "Job", "owner_name": "j-1", "owner_is_controller": "true"}
    told.tell("kube_pod_owner", 1, **owner, **labels)
    hop = {"owner_kind": above, "owner_name": "top", "owner_is_controller": "true"}
    told.tell("kube_job_owner", 1, namespace="ml", job_name="j-1", **hop)
    assert told.read().pods("workload_kind_name") == [kind]


def test_a_job_is_volcano_s_where_its_label_says_so_and_has_a_uid_where_one_is_told():
    told = Told()
    for uid, label in (
        ("v", {"label_volcano_sh_job_name": "train"}),
        ("k", {"label_batch_kubernetes_io_job_name": "train",
               "label_batch_kubernetes_io_controller_uid": "u-9"}),
    ):  # fmt: skip
        labels = pod(told, uid)
        owner = {"owner_kind": "Job", "owner_name": "train", "owner_is_controller": "true"}
        told.tell("kube_pod_owner", 1, **owner, **labels)
        told.tell("kube_pod_labels", 1, **label, **labels)
    found = told.read().pods("pod_uid", "workload_kind_name", "workload_key_uid")
    assert sorted(found) == [("k", "Job", "u-9"), ("v", "VolcanoJob", "VolcanoJob/ml/train")]


@pytest.mark.parametrize("nobody", ["", "<none>"])
def test_a_pod_without_an_owner_is_its_own_workload(nobody):
    told = Told()
    owner = {"owner_kind": nobody, "owner_name": nobody, "owner_is_controller": nobody}
    told.tell("kube_pod_owner", 1, **owner, **pod(told))
    assert told.read().pods("workload_kind_name", "workload_key_uid") == [("Pod", "p")]


def test_labels_have_the_keys_that_the_rules_name():
    told = Told()
    written = {"label_cost_example_com_team": "vision", "label_app": "x", "label_un_known": "y"}
    told.tell("kube_pod_labels", 1, **written, **pod(told))
    settings = Settings("c", label_keys=("cost.example.com/Team",))
    expected = '{"app":"x","cost.example.com/Team":"vision","un_known":"y"}'
    assert told.read(settings=settings).pods("labels_json") == [expected]


def test_labels_that_the_target_has_itself_are_exported():
    told = Told()
    own = {"namespace": "monitoring", "pod": "ksm-0", "container": "ksm", "node": "n-monitor"}
    mine = {"exported_namespace": "ml", "exported_pod": "job-0"}
    for uid, where in (("bound", {"exported_node": "n"}), ("pending", {})):
        labels = own | mine | {"uid": uid}
        told.tell("kube_pod_created", OLD, **labels)
        told.tell("kube_pod_info", 1, **labels, **where)
        ask = labels | {"resource": "nvidia_com_gpu", "exported_container": "main"}
        told.tell(f"{START}_resource_requests", 1, **ask, **where)
    found = told.read().pods("pod_uid", "namespace_name", "pod_name", "node_name")
    assert sorted(found) == [("bound", "ml", "job-0", "n"), ("pending", "ml", "job-0", None)]


def test_a_value_that_cannot_be_true_is_refused_and_counted():
    told = Told(end=120)
    labels = pod(told)
    told.tell("kube_pod_status_scheduled_time", -5, **labels)
    told.tell("kube_pod_status_ready_time", math.nan, **labels)
    told.tell(f"{START}_status_restarts_total", math.inf, container="main", **labels)
    told.tell(f"{START}_resource_limits", -1, container="main", resource="cpu", **labels)
    told.tell("kube_pod_status_reason", 7, reason="Evicted", **labels)
    told.tell(f"{START}_state_started", -62135596800, container="main", **labels)
    told.tell("kube_pod_info", 1, namespace="ml", pod="no uid")
    told.tell("kube_pod_tolerations", 1, **labels)
    read = told.read()
    assert read.pods("bound_at", "ready_since_at", "restart_count", "reason_name") == [
        (None, None, 0, None)
    ]
    # As often as a row would have changed; that each was told twice says the coverage.
    refused = dict(read.rows("rejections", "reason_name", "rejected_count"))
    assert refused == {
        "absurd_instant": 1,
        "not_a_number": 1,
        "absurd_quantity": 2,
        "negative_quantity": 1,
        "no_uid": 1,
    }
    assert read.counts == [Counts(24, 8, 0, 12, 4)]


def test_hostile_names_are_only_names():
    told = Told()
    name = """'"; drop table pods; --{}\\<b>=1+1"""
    labels = pod(told, "p", labels={"pod": name, "namespace": name}, node=name)
    told.tell("kube_pod_labels", 1, label_a=name, **labels)
    owner = {"owner_kind": "ReplicaSet", "owner_name": name, "owner_is_controller": "true"}
    told.tell("kube_pod_owner", 1, **owner, **labels)
    found = told.read().pods("pod_name", "namespace_name", "node_name", "workload_name")
    assert found == [(name, name, name, name)]


def test_a_pod_of_which_no_creation_is_told_is_refused_with_its_reason():
    told = Told()
    told.tell("kube_pod_info", 1, namespace="ml", pod="x", uid="u")
    read = told.read()
    assert read.pods("pod_uid") == []
    assert read.rows("rejections", "reason_name", "is_row_lost") == [("no_creation", True)]
