"""The recorder before an API server that refuses, breaks, hangs or changes, and before a full disk.

That nothing is lost meanwhile is in test_watch.py, what is not kept in test_watch_secrets.py.
"""

import json
import re
import threading
import time
from collections import Counter, defaultdict

import pytest

from collectors import kube_watch, spool
from tests.api_between import Spoiler, rerouted, says
from tests.control_plane_api import pods
from tests.control_plane_etcd import Observer
from tests.prometheus_server import until
from tests.watch_case import ended, has, of_kind, state, version

pytestmark = pytest.mark.whole


def test_what_nobody_may_read_is_told_and_the_rest_is_recorded(plane, recording):
    api = plane.api()
    api.namespace("watched")
    account = {"name": "reader", "namespace": "watched"}
    api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})
    rules = [{"apiGroups": [""], "resources": ["pods", "nodes"], "verbs": ["get", "list", "watch"]}]
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}
    api.create({**role, "metadata": {"name": "reader"}, "rules": rules})
    api.create({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": role["apiVersion"].split("/")[0], "kind": role["kind"],
                    "name": "reader"},
        "subjects": [{"kind": "ServiceAccount", **account}],
    })  # fmt: skip
    recorder = recording(plane.kubeconfig("system:serviceaccount:watched:reader"))
    until(lambda: state(recorder, "nodes") == "watching" == state(recorder, "pods"))
    until(lambda: state(recorder, "jobs.batch") == "refused")
    found = ended(recorder)
    assert len({each["object"]["metadata"].get("name") for each in of_kind(found, "Node")}) == 13
    status = json.loads((recorder.folder / "status.json").read_text())
    assert re.search("forbidden: 403 .*cannot list", status["kinds"]["jobs.batch"]["said"])
    assert "jobs.batch: refused: forbidden" in (recorder.folder.parent / "said").read_text()


def test_a_kind_that_comes_later_is_found_and_one_that_goes_is_left(plane, recording):
    recorder = recording(discover_seconds=1)
    until(lambda: state(recorder, "pods") == "watching")
    api = plane.api()
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    names = {"plural": "podgroups", "singular": "podgroup", "kind": "PodGroup", "listKind": "Ps"}
    versions = [
        {"name": name, "served": True, "storage": name == "v1beta1",
         "schema": {"openAPIV3Schema": schema}}
        for name in ("v1alpha1", "v1beta1")
    ]  # fmt: skip
    made = api.create({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "podgroups.scheduling.volcano.sh"},
        "spec": {"group": "scheduling.volcano.sh", "scope": "Namespaced", "names": names,
                 "versions": versions},
    })  # fmt: skip
    until(lambda: state(recorder, "podgroups.scheduling.volcano.sh") == "watching")
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"}, "spec": {"minMember": 2},
    }  # fmt: skip
    path = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
    api.ask("POST", path, group)
    kind = next(k for k in recorder.kinds if k.plural == "podgroups")
    until(lambda: recorder.kinds[kind].watch.state.line_count == 1)
    api.delete(
        f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{made['metadata']['name']}"
    )
    until(lambda: kind not in recorder.kinds)
    found = of_kind(ended(recorder), "PodGroup")
    assert {each["object"]["apiVersion"] for each in found} == {"scheduling.volcano.sh/v1beta1"}
    assert next(each["type"] for each in found if each["type"] != "BOOKMARK") == "ADDED"


def test_a_server_that_is_busy_broken_or_talks_nonsense_costs_no_version(
    plane, recording, monkeypatch
):
    """Its first answers are no answers: to the list, and then to the watch."""
    monkeypatch.setattr(kube_watch, "FIRST_PAUSE_SECONDS", 0.01)
    error = {"type": "ERROR", "object": {"kind": "Status", "code": 500, "message": "etcd: slow"}}
    faults = [
        says(429, "slow down", Retry_After="0"), says(500, '{"message": "boom"}'),
        says(200, "<html>hello</html>"), says(503), says(200, json.dumps(error) + "\n"),
        says(200, '{"type": "ADDED", "object": {"metadata"'), says(200, '{"type": "NEW"}\n'),
    ]  # fmt: skip
    asked: dict[str, int] = defaultdict(int)

    def spoil(path: str, _: int):
        if not path.startswith("/api/v1/pods"):
            return None
        what = "watch" if "watch" in path else "list"
        asked[what] += 1
        return faults[asked[what] - 1] if asked[what] <= len(faults) else None

    spoiler = Spoiler(plane, spoil)
    recorder = recording(rerouted(plane.kubeconfig(), spoiler.url))
    observer = Observer(plane.etcd)
    until(lambda: asked["watch"] > 0)
    for number in range(15):
        plane.api().create_all(pods(2, prefix=f"busy-{number}"))
        time.sleep(0.1)
    until(lambda: asked["watch"] > len(faults) and state(recorder, "pods") == "watching")
    observer.catch_up()
    newest = max(each.revision for each in observer.of("/registry/pods/"))
    until(lambda: int(recorder.spool.stand("v1/Pod").version or 0) >= newest)
    found = of_kind(ended(recorder), "Pod")
    observer.close()
    spoiler.close()
    listed = min(version(each) for each in found if each["type"] == "BOOKMARK")
    told = Counter(version(each) for each in found if each["type"] != "BOOKMARK")
    revisions = {each.revision for each in observer.of("/registry/pods/")}
    seen = {each for each in revisions if listed < each <= newest}
    assert len(seen) >= 60
    assert seen <= set(told)
    assert set(told.values()) == {1}


def test_a_watch_that_never_sends_a_byte_is_begun_again(plane, recording, monkeypatch):
    monkeypatch.setattr(kube_watch, "SILENT_SECONDS", 0.5)
    monkeypatch.setattr(kube_watch, "FIRST_PAUSE_SECONDS", 0.01)
    quiet = threading.Event()

    def silent(handler) -> None:
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.flush()
        quiet.wait(20)

    spoiler = Spoiler(
        plane, lambda path, _: silent if "pods?watch" in path and not quiet.is_set() else None
    )
    recorder = recording(rerouted(plane.kubeconfig(), spoiler.url))
    until(lambda: state(recorder, "pods") == "failing")
    quiet.set()
    plane.api().create_all(pods(1, prefix="heard"))
    until(lambda: has(recorder, '"heard-0"'))
    spoiler.close()
    said = (recorder.folder.parent / "said").read_text()
    assert "pods: failing: stalled: nothing came in time" in said


def test_a_full_disk_is_told_and_nothing_is_lost_when_there_is_room_again(
    plane, recording, monkeypatch
):
    recorder = recording()
    until(lambda: state(recorder, "pods") == "watching")
    monkeypatch.setattr(kube_watch, "FULL_SECONDS", 0.1)
    with monkeypatch.context() as patch:
        patch.setattr(spool, "SPARE_BYTES", 1 << 62)
        plane.api().create_all(pods(5, prefix="full"))
        until(lambda: state(recorder, "pods") == "full")
    until(lambda: all(has(recorder, f'"full-{number}"') for number in range(5)))
    said = (recorder.folder.parent / "said").read_text()
    assert "pods: full:" in said and "No space left on device" in said
