"""What one version of a pod says: its request, its bind, its runs and its end; what is refused."""

from copy import deepcopy
from datetime import UTC, datetime

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.quantities import milli, whole
from collectors.source import Unusable
from tests.kube_objects import (
    JOB,
    JOBSET,
    LWS,
    at,
    container,
    ended,
    node,
    parsed,
    pod,
    running,
    stamp,
    waiting,
)


def requests(item):
    return {r["resource_name"]: r["request_count"] for r in parsed("Pod", item)["requests"]}


# What a pod asks for


def test_containers_add_up_and_an_init_container_only_raises_the_peak():
    item = pod([container("a", 2), container("b", 1)], [container("i", 4), container("j", 1)])
    assert requests(item) == {"nvidia.com/gpu": 4}


def test_a_sidecar_counts_with_the_containers_and_with_each_later_init_container():
    sidecar = container("s", 1, restartPolicy="Always")
    assert requests(pod([container("a", 2)], [sidecar])) == {"nvidia.com/gpu": 3}
    assert requests(pod([container("a", 1)], [sidecar, container("i", 3)])) == {"nvidia.com/gpu": 4}
    assert requests(pod([container("a", 1)], [container("i", 3), sidecar])) == {"nvidia.com/gpu": 3}


def test_a_limit_alone_is_a_request_and_overhead_is_added():
    item = pod(
        [{"name": "a", "resources": {"limits": {"nvidia.com/gpu": 2, "cpu": "1500m"}}}],
        spec={"overhead": {"cpu": "250m"}},
    )
    assert requests(item) == {"nvidia.com/gpu": 2}
    assert parsed("Pod", item)["cpu_milli_count"] == 1750


def test_cpu_stated_for_the_pod_as_a_whole_replaces_the_sum():
    item = pod(spec={"resources": {"requests": {"cpu": "3"}}})
    assert parsed("Pod", item)["cpu_milli_count"] == 3000


def test_mig_devices_and_listed_resources_are_accelerators_and_0_is_no_request():
    item = pod(
        [
            container("a", 2, "nvidia.com/mig-1g.10gb"),
            container("b", 1, "example.com/npu"),
            container("c", 0),
        ]
    )
    assert requests(item) == {"nvidia.com/mig-1g.10gb": 2, "example.com/npu": 1}


def test_what_looks_like_an_accelerator_but_is_not_listed_is_noted():
    notes = []
    item = pod([container("a", 1, "habana.ai/gaudi"), container("b", 5, "rdma/hca")])
    parsed("Pod", item, notes=notes)
    assert notes == [("unknown_resource", "habana.ai/gaudi")]


def test_a_pod_with_claims_is_noted_in_case_no_claim_was_recorded():
    notes = []
    parsed("Pod", pod(spec={"resourceClaims": [{"name": "gpu"}]}), notes=notes)
    assert notes == [("resource_claims", "ml/pod-1")]


def test_hami_devices_are_read_of_every_container():
    entry = "GPU-a,NVIDIA,8192,30:GPU-b,NVIDIA,0,0:"
    row = parsed("Pod", pod(annotations={"hami.io/vgpu-devices-allocated": f";{entry};"}))
    assert [tuple(device.values()) for device in row["devices"]] == [
        ("GPU-a", 8192, 30),
        ("GPU-b", 0, 0),
    ]


# When a pod is bound, runs and ends


def test_bind_is_the_transition_of_the_condition_and_needs_a_node():
    assert parsed("Pod", pod(node="gpu-1"))["bound_at"] == at(5)
    without = pod(node="gpu-1", status={"conditions": []})
    without["status"]["conditions"] = []
    row = parsed("Pod", without)
    assert (row["node_name"], row["bound_at"]) == ("gpu-1", None)


def test_deletion_was_asked_for_a_grace_period_before_the_deadline():
    item = pod(deletionTimestamp=stamp(50), deletionGracePeriodSeconds=30)
    assert parsed("Pod", item)["deletion_asked_at"] == at(20)


def test_a_pod_runs_when_the_last_container_that_asks_for_the_gpu_runs():
    item = pod([container("a", 1), container("b", 1), container("log")], node="gpu-1")
    item["status"]["containerStatuses"] = [running("a", 8), waiting("log", "ImagePullBackOff")]
    row = parsed("Pod", item)
    assert (row["running_since_at"], row["waiting_cause_name"]) == (None, "image_pull")
    item["status"]["containerStatuses"].append(running("b", 11))
    row = parsed("Pod", item)
    assert (row["running_since_at"], row["waiting_cause_name"]) == (at(11), None)


def test_all_containers_count_where_none_asks_for_the_gpu():
    item = pod([container("a"), container("b")], node="gpu-1")
    item["status"]["containerStatuses"] = [running("a", 8)]
    assert parsed("Pod", item)["running_since_at"] is None


def test_a_crash_ends_the_run_of_all_and_a_back_off_is_a_crash_loop():
    item = pod([container("a", 1), container("b", 1)], node="gpu-1")
    item["status"]["containerStatuses"] = [
        running("a", 8),
        waiting("b", "CrashLoopBackOff", 9, 20),
    ]
    row = parsed("Pod", item)
    assert (row["running_since_at"], row["stopped_at"]) == (at(9), at(20))
    assert row["waiting_cause_name"] == "crash_loop"
    item["status"]["containerStatuses"][1] = running(
        "b", 25, lastState={"terminated": {"startedAt": stamp(9), "finishedAt": stamp(20)}}
    )
    row = parsed("Pod", item)
    assert (row["running_since_at"], row["stopped_at"]) == (at(25), at(20))


def test_containers_that_never_ran_together_have_no_run():
    item = pod([container("a", 1), container("b", 1)], node="gpu-1")
    item["status"]["containerStatuses"] = [ended("a", 3, 6), running("b", 9)]
    row = parsed("Pod", item)
    assert (row["running_since_at"], row["stopped_at"]) == (None, at(6))


def test_a_run_that_was_over_when_first_seen_is_still_a_run():
    item = pod(node="gpu-1", status={"phase": "Succeeded"})
    item["status"]["containerStatuses"] = [ended("main", 8, 20)]
    row = parsed("Pod", item)
    assert (row["running_since_at"], row["stopped_at"]) == (at(8), at(20))
    assert (row["finished_at"], row["exit_code_number"]) == (at(20), 0)


def test_an_open_init_container_is_the_cause_before_all_others():
    item = pod([container("a", 1)], [container("i")], node="gpu-1")
    assert parsed("Pod", item)["waiting_cause_name"] == "init"
    item["status"]["initContainerStatuses"] = [ended("i", 6, 7, code=1)]
    item["status"]["containerStatuses"] = [waiting("a", "ErrImagePull")]
    assert parsed("Pod", item)["waiting_cause_name"] == "init"
    item["status"]["initContainerStatuses"] = [ended("i", 6, 7)]
    assert parsed("Pod", item)["waiting_cause_name"] == "image_pull"


def test_the_end_is_the_last_container_s_or_else_when_the_phase_was_seen():
    item = pod([container("a", 1), container("b")], node="gpu-1", status={"phase": "Failed"})
    item["status"]["reason"] = "UnexpectedAdmissionError"
    row = parsed("Pod", item)
    assert row["finished_at"] == datetime(2026, 3, 1, 10, 0, 30, 500_000, tzinfo=UTC)
    assert row["reason_name"] == "UnexpectedAdmissionError"
    item["status"]["containerStatuses"] = [ended("a", 6, 20, 137), ended("b", 6, 24)]
    row = parsed("Pod", item)
    assert (row["finished_at"], row["stopped_at"]) == (at(24), at(20))
    assert row["exit_code_number"] == 137


def test_readiness_and_disruption_count_only_while_they_are_true():
    conditions = [
        {"type": "Ready", "status": "True", "lastTransitionTime": stamp(9)},
        {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"},
    ]
    row = parsed("Pod", pod(node="gpu-1", status={"conditions": conditions}))
    assert (row["ready_since_at"], row["disruption_name"]) == (at(9), "EvictionByEvictionAPI")
    for condition in conditions:
        condition["status"] = "False"
    row = parsed("Pod", pod(node="gpu-1", status={"conditions": conditions}))
    assert (row["ready_since_at"], row["disruption_name"]) == (None, None)


def test_a_submission_time_is_read_in_both_spellings_and_a_bad_one_is_noted():
    for spelling in (stamp(0), str(int(at(0).timestamp()))):
        row = parsed("Pod", pod(annotations={"example.com/at": spelling}))
        assert row["submitted_at"] == at(0)
    notes = []
    row = parsed("Pod", pod(annotations={"example.com/at": "yesterday"}), notes=notes)
    assert row["submitted_at"] is None
    assert notes == [("bad_submission_time", "yesterday")]


# What cannot be used


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda o: o["metadata"].pop("uid"), "no_uid"),
        (lambda o: o["metadata"].pop("name"), "no_name"),
        (lambda o: o["metadata"].pop("namespace"), "no_namespace"),
        (lambda o: o["metadata"].pop("creationTimestamp"), "no_creation"),
        (
            lambda o: o["metadata"].update(creationTimestamp="1984-01-01T00:00:00Z"),
            "absurd_instant",
        ),
        (
            lambda o: o["metadata"].update(creationTimestamp="2027-01-01T00:00:00Z"),
            "absurd_instant",
        ),
        (lambda o: o["metadata"].update(creationTimestamp="soon"), "bad_instant"),
        (lambda o: o["metadata"].update(labels=["a"]), "malformed"),
        (lambda o: o["spec"].update(containers="a"), "malformed"),
        (lambda o: o["spec"].update(containers=[container(gpus=-1)]), "negative_quantity"),
        (lambda o: o["spec"].update(containers=[container(gpus="many")]), "bad_quantity"),
        (lambda o: o["spec"].update(containers=[container(gpus="1e99")]), "absurd_quantity"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_reason(change, reason):
    item = pod()
    change(item)
    with pytest.raises(Unusable) as caught:
        parsed("Pod", item)
    assert caught.value.reason == reason


def test_quantities_are_read_in_every_spelling():
    assert [whole(q) for q in ("4", 4, "4k", "1Ki", "1e3", "100m")] == [4, 4, 4000, 1024, 1000, 1]
    assert [milli(q) for q in ("250m", "1.5", "2", "1u")] == [250, 1500, 2000, 1]


GARBAGE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
FULL_POD = pod(
    [container("a", 1), container("b", "2")],
    [container("i", 1), container("s", 1, restartPolicy="Always")],
    labels=JOBSET | {f"{LWS}/name": "l", "ray.io/originated-from-cr-name": "r"},
    annotations={
        "hami.io/vgpu-devices-allocated": "GPU-a,NVIDIA,1,2:;",
        "example.com/at": stamp(0),
        f"{LWS}/size": "4",
    },
    owners=[JOB],
    node="gpu-1",
    deletionTimestamp=stamp(40),
    deletionGracePeriodSeconds=30,
    spec={"nodeSelector": {"a": "b"}, "overhead": {"cpu": "1"}},
    status={
        "containerStatuses": [running("a", 8, restartCount=1), ended("b", 8, 9, 1)],
        "initContainerStatuses": [ended("i", 5, 6)],
    },
)
FULL_NODE = node(
    {"nvidia.com/gpu.count": "2", "nvidia.com/gpu.replicas": "2"},
    {"nvidia.com/gpu": "1", "nvidia.com/mig-1g.10gb": "7"},
    annotations={"hami.io/node-nvidia-register": "GPU-a,10,1,100,N,0,true:"},
)


def places(item, trail=()):
    """Every place inside an object."""
    pairs = item.items() if isinstance(item, dict) else enumerate(item)
    for key, inner in pairs:
        yield (*trail, key)
        if isinstance(inner, dict | list):
            yield from places(inner, (*trail, key))


@pytest.mark.parametrize(("kind", "item"), [("Pod", FULL_POD), ("Node", FULL_NODE)])
@given(data=st.data())
def test_an_object_damaged_anywhere_is_parsed_or_refused_but_breaks_nothing(kind, item, data):
    damaged = deepcopy(item)
    *above, last = data.draw(st.sampled_from(list(places(item))))
    there = damaged
    for key in above:
        there = there[key]
    there[last] = data.draw(GARBAGE)
    try:
        row = parsed(kind, damaged)
    except Unusable as error:
        assert error.reason
    else:
        assert orjson.loads(row["labels_json"]) is not None
