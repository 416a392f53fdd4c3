"""The audit log: creations by people as rows, each request once, everything else left aside."""

import gzip
import json
from datetime import date
from typing import Any

import pytest

from collectors.recording import collect
from models.window import Window
from tests.kube_objects import SETTINGS

SERVICE = "system:serviceaccount:kube-system:job-controller"


def event(
    name: str | None = "j",
    resource: str = "jobs",
    group: str | None = "batch",
    user: str = "ana",
    second: int = 24,
    **more: Any,
) -> dict[str, Any]:
    target = {"resource": resource, "namespace": "ml", "apiGroup": group, "name": name}
    target |= more.pop("target", {})
    return {
        "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Request",
        "auditID": more.pop("id", f"{name}-{second}"), "stage": "ResponseComplete",
        "requestURI": "/apis", "verb": "create", "user": {"username": user},
        "objectRef": {key: value for key, value in target.items() if value is not None},
        "responseStatus": {"code": 201},
        "requestReceivedTimestamp": f"2026-03-01T03:01:{second:02}.154289Z",
        "stageTimestamp": f"2026-03-01T03:01:{second:02}.167430Z", **more,
    }  # fmt: skip


def read(folder, window=None):
    tables = {}
    for batch in collect(folder, SETTINGS, window):
        tables.setdefault(batch.table, []).extend(batch.frame.iter_rows(named=True))
    return tables.get("raw.object_creations", []), tables.get("raw.rejections", [])


def write(folder, *events, name="audit.log"):
    text = "".join(f"{e if isinstance(e, str) else json.dumps(e)}\n" for e in events)
    data = text.encode()
    (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)


@pytest.mark.parametrize("name", ["audit.log", "audit.log.gz", "audit-2026-03-01T04-00-00.log"])
def test_who_created_which_object_when(tmp_path, name):
    write(tmp_path, event(), name=name)
    [[found], rejected] = read(tmp_path)
    assert (found["kind_name"], found["namespace_name"], found["object_name"]) == ("Job", "ml", "j")
    assert (found["user_name"], found["caller_name"], found["verb_name"]) == ("ana", None, "create")
    assert (found["created_at"].microsecond, found["answered_at"].microsecond) == (154289, 167430)
    assert (found["day_on"], found["source_ref"]) == (date(2026, 3, 1), f"{name}:1")
    assert rejected == []


LEFT_ASIDE = {
    "by a controller": event(user=SERVICE),
    "by a node": event(user="system:node:gpu-1"),
    "as a controller": event(impersonatedUser={"username": SERVICE}),
    "not yet answered": event(stage="RequestReceived", responseStatus=None),
    "refused": event(responseStatus={"code": 403}),
    "a try only": event(requestURI="/apis/batch/v1/namespaces/ml/jobs?dryRun=All"),
    "an eviction": event(resource="pods", group=None, target={"subresource": "eviction"}),
    "no workload": event(resource="configmaps", group=None),
    "a change": event(verb="patch", responseStatus={"code": 200}),
    "a deletion": event(verb="delete"),
    "a look": event(verb="get"),
}


@pytest.mark.parametrize("why", LEFT_ASIDE)
def test_what_is_no_creation_by_a_person_is_left_aside(tmp_path, why):
    write(tmp_path, LEFT_ASIDE[why])
    assert read(tmp_path) == ([], [])


def test_who_was_impersonated_counts_and_the_caller_is_kept(tmp_path):
    write(tmp_path, event(user="system:serviceaccount:portal:web",
                          impersonatedUser={"username": "bo"}))  # fmt: skip
    [[found], _] = read(tmp_path)
    assert found["user_name"] == "bo"
    assert found["caller_name"] == "system:serviceaccount:portal:web"


def test_an_apply_that_created_is_a_creation(tmp_path):
    write(tmp_path, event(verb="patch"))
    [[found], _] = read(tmp_path)
    assert found["verb_name"] == "patch"


def test_a_generated_name_stands_in_the_answer_only(tmp_path):
    told: Any = {"responseObject": {"metadata": {"name": "train-x7k2p", "uid": "u-9"}},
            "requestObject": {"metadata": {"generateName": "train-"}}}  # fmt: skip
    write(tmp_path, event(name=None, id="a", **told), event(name=None, id="b", level="Metadata"))
    [[found], [rejected]] = read(tmp_path)
    assert (found["object_name"], found["object_uid"]) == ("train-x7k2p", "u-9")
    assert (rejected["reason_name"], rejected["is_row_lost"]) == ("no_created_name", False)
    assert "RequestResponse" in rejected["mend_text"]


def test_a_request_is_one_however_many_stages_and_servers_logged_it(tmp_path):
    write(tmp_path, event(id="a", stage="RequestReceived"), event(id="a"), event("k", id="b"))
    write(tmp_path, event(id="a"), name="audit-2.log")
    found, _ = read(tmp_path)
    assert sorted(row["audit_id"] for row in found) == ["a", "b"]


@pytest.mark.parametrize(
    ("resource", "group", "kind"),
    [
        ("jobs", "batch.volcano.sh", "VolcanoJob"),
        ("trainjobs", "trainer.kubeflow.org", "TrainJob"),
        ("leaderworkersets", "leaderworkerset.x-k8s.io", "LeaderWorkerSet"),
        ("inferenceservices", "serving.kserve.io", "InferenceService"),
        ("pods", None, "Pod"),
    ],
)
def test_kinds_are_told_apart_by_their_group(tmp_path, resource, group, kind):
    write(tmp_path, event(resource=resource, group=group))
    [[found], _] = read(tmp_path)
    assert found["kind_name"] == kind


def test_a_line_that_is_cut_off_and_a_file_that_breaks_off_are_counted(tmp_path):
    write(tmp_path, event(), '{"verb":"create", "objectRef": {"resou', event("k", second=30))
    whole = gzip.compress(json.dumps(event("m", second=40)).encode())
    (tmp_path / "audit-2.log.gz").write_bytes(whole[:-12])
    found, rejected = read(tmp_path)
    assert {row["object_name"] for row in found} == {"j", "k"}
    assert {row["reason_name"] for row in rejected} == {"bad_json", "file_broken"}


def test_only_the_window_s_days_are_read(tmp_path):
    write(tmp_path, event())
    window = Window("alpha", date(2026, 3, 2), date(2026, 3, 3))
    assert read(tmp_path, window) == ([], [])
