"""The control plane that other tests build upon: that it is a real one, and can be broken.

What our recorder makes of it is tested with the recorder.
"""

import itertools
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import kubernetes
import pytest
import requests

from tests.control_plane import FAST, ControlPlane
from tests.control_plane_api import Api, Refused, nodes, pod_path, pods, service_account
from tests.control_plane_etcd import Observer
from tests.prometheus_server import until

pytestmark = pytest.mark.whole

ROOT = Path(__file__).parents[1]
PODS = "/api/v1/namespaces/default/pods"
WITHOUT_END = """
import sys, time
from pathlib import Path
from tests.control_plane import ControlPlane
with ControlPlane(Path(sys.argv[1]), {"etcd": Path(sys.argv[2])}, names=["etcd"]) as plane:
    print(plane.processes["etcd"].pid, flush=True)
    time.sleep(600)
"""


@pytest.fixture(scope="module")
def plane(binaries, tmp_path_factory) -> Iterator[ControlPlane]:
    with ControlPlane(tmp_path_factory.mktemp("plane"), binaries, stages=FAST) as plane:
        plane.api().create_all(nodes(20))
        until(lambda: all(map(is_ready, plane.api().items("/api/v1/nodes"))))
        yield plane


@pytest.fixture
def api(plane) -> Api:
    return plane.api()


def is_ready(node) -> bool:
    conditions = {each["type"]: each["status"] for each in node["status"].get("conditions", ())}
    return conditions.get("Ready") == "True" and not node["spec"].get("taints")


def phases(api: Api, prefix: str) -> list[str]:
    found = (p for p in api.items(PODS) if p["metadata"]["name"].startswith(prefix))
    return [pod["status"]["phase"] for pod in found]


def versions_of(api: Api, path: str) -> set[tuple[str, str]]:
    """Every object of a list, as it is now."""
    return {(m["name"], m["resourceVersion"]) for m in (i["metadata"] for i in api.items(path))}


def test_twenty_nodes_turn_ready_with_the_gpus_that_they_report(api):
    found = api.items("/api/v1/nodes")
    assert [node["status"]["allocatable"]["nvidia.com/gpu"] for node in found] == ["8"] * 20


def test_pods_are_scheduled_by_their_gpus_and_run(api):
    api.create_all(pods(22, gpus=8, prefix="whole"))
    until(lambda: phases(api, "whole").count("Running") == 20)
    until(lambda: any("Insufficient nvidia.com/gpu" in told for told in reasons(api, "whole")))
    assert phases(api, "whole").count("Pending") == 2
    for number in range(22):
        api.delete(pod_path(f"whole-{number}"), grace=0)
    until(lambda: not phases(api, "whole"))


def reasons(api: Api, prefix: str) -> list[str]:
    found = [p for p in api.items(PODS) if p["metadata"]["name"].startswith(prefix)]
    conditions = (each for pod in found for each in pod["status"].get("conditions", ()))
    return [each.get("message", "") for each in conditions]


def test_the_observer_sees_every_version_that_a_watch_tells_and_the_end(plane, api):
    observer = Observer(plane.etcd)
    begun = api.get(PODS)["metadata"]["resourceVersion"]
    api.create_all(pods(5, prefix="seen"))
    until(lambda: phases(api, "seen").count("Running") == 5)
    api.evict("seen-0")
    for number in range(1, 5):
        api.delete(pod_path(f"seen-{number}"))
    until(lambda: not phases(api, "seen"))
    observer.catch_up()
    observer.close()
    seen = observer.of("/registry/pods/default/")
    told = changes(api, begun, len(seen))
    assert [each.revision for each in seen] == [int(meta["resourceVersion"]) for _, meta in told]
    assert [f"/registry/pods/default/{meta['name']}" for _, meta in told] == [e.key for e in seen]
    words = {("PUT", True): "ADDED", ("PUT", False): "MODIFIED", ("DELETE", False): "DELETED"}
    kinds = [words[each.change, each.previous is None] for each in seen]
    assert kinds == [kind for kind, _ in told]
    # Created, bound, run, and asked to go, each seen before the end.
    for number in range(5):
        mine = [e for e in seen if e.key.endswith(f"/seen-{number}")]
        assert len(mine) >= 5
        assert [e.previous for e in mine] == [None, *(e.revision for e in mine[:-1])]
    assert observer.fault is None


def changes(api: Api, version: str, count: int) -> list[tuple[str, dict]]:
    """The next changes after a version, as the API server tells them."""
    with closing(api.watch(PODS, version)) as events:
        found = itertools.islice(events, count)
        return [(event["type"], event["object"]["metadata"]) for event in found]


@pytest.mark.whole
def test_the_observer_goes_on_where_it_was_when_etcd_comes_back(plane, api):
    observer = Observer(plane.etcd)
    api.create_all(pods(2, prefix="before"))
    plane.kill("etcd")
    plane.start("etcd")
    until(lambda: serves(api))
    api.create_all(pods(2, prefix="after"))
    for name in ("before-0", "before-1", "after-0", "after-1"):
        api.delete(pod_path(name), grace=0)
    observer.catch_up()
    observer.close()
    seen = observer.of("/registry/pods/default/")
    for name in ("before-0", "before-1", "after-0", "after-1"):
        mine = [e for e in seen if e.key.endswith(f"/{name}")]
        assert [e.previous for e in mine] == [None, *(e.revision for e in mine[:-1])]
        assert mine[-1].change == "DELETE"
    assert observer.fault is None


def serves(api: Api) -> bool:
    try:
        return bool(api.items("/api/v1/nodes"))
    except (Refused, requests.RequestException):
        return False


@pytest.mark.whole
def test_a_killed_api_server_comes_back_with_the_same_objects(plane, api):
    # Pods that nobody changes.
    api.create_all(pods(3, prefix="kept", schedulerName="none"))
    before = {each for each in versions_of(api, PODS) if each[0].startswith("kept")}
    plane.kill("kube-apiserver")
    with pytest.raises(requests.ConnectionError):
        api.items(PODS)
    plane.start("kube-apiserver")
    assert {e for e in versions_of(api, PODS) if e[0].startswith("kept")} == before
    assert len(before) == 3
    for name, _ in before:
        api.delete(pod_path(name), grace=0)


@pytest.mark.whole
def test_a_restarted_api_server_knows_no_change_from_before(plane, api):
    old = api.get(PODS)["metadata"]["resourceVersion"]
    api.create_all(pods(2, prefix="forgotten"))
    assert len(changes(api, old, 2)) == 2
    plane.kill("kube-apiserver")
    plane.start("kube-apiserver")
    assert is_gone(lambda: changes(api, old, 1))
    for number in range(2):
        api.delete(pod_path(f"forgotten-{number}"), grace=0)


@pytest.mark.whole
def test_a_watch_and_a_next_page_from_before_a_compaction_are_gone(binaries, tmp_path):
    names, flags = ("etcd", "kube-apiserver"), {"kube-apiserver": ["--watch-cache=false"]}
    with ControlPlane(tmp_path, binaries, names=names, flags=flags) as plane:
        api = plane.api()
        api.create_all(pods(3))
        page = api.get(PODS, limit="1")["metadata"]
        api.create_all(pods(2, prefix="to-come"))

        def rest() -> list:
            return api.get(PODS, **{"limit": "9", "continue": page["continue"]})["items"]

        assert len(rest()) == 2  # without those to come: a list is of one moment
        assert len(changes(api, page["resourceVersion"], 2)) == 2
        plane.etcd.compact()
        assert is_gone(lambda: changes(api, page["resourceVersion"], 1))
        assert is_gone(rest)


def is_gone(ask: Callable[[], object]) -> bool:
    with pytest.raises(Refused) as refused:
        ask()
    return (refused.value.status, refused.value.reason) == (410, "Expired")


def test_an_account_without_a_role_may_not_list_pods(plane, api):
    api.namespace("team")
    api.create(service_account("curious", "team"))
    with pytest.raises(Refused) as refused:
        plane.api("system:serviceaccount:team:curious").items("/api/v1/pods")
    assert (refused.value.status, refused.value.reason) == (403, "Forbidden")


def test_a_kubeconfig_makes_a_client_that_account(plane, api):
    api.create(service_account("somebody", "default"))
    user = "system:serviceaccount:default:somebody"
    client = kubernetes.config.new_client_from_config(str(plane.kubeconfig(user)))
    refused = pytest.raises(kubernetes.client.ApiException, match=user)
    with client, refused:
        kubernetes.client.CoreV1Api(client).list_node()


def test_a_misspelt_field_is_refused(api):
    (pod,) = pods(1, prefix="misspelt", nodeSelektor={})
    with pytest.raises(Refused, match="nodeSelektor") as refused:
        api.create(pod)
    assert refused.value.status == 400


def test_what_has_started_ends_when_the_rest_cannot(binaries, tmp_path):
    false = {**binaries, "kube-apiserver": Path("/bin/false")}
    plane = ControlPlane(tmp_path, false)
    with pytest.raises(AssertionError, match="kube-apiserver ended"), plane:
        pass
    assert plane.processes["etcd"].poll() is not None


def test_all_of_it_ends_even_when_the_tests_are_killed(binaries, tmp_path):
    words = [sys.executable, "-c", WITHOUT_END, str(tmp_path), str(binaries["etcd"])]
    tests = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    with tests:
        assert tests.stdout
        etcd = Path(f"/proc/{int(tests.stdout.readline())}")
        assert etcd.exists()
        tests.kill()
    until(lambda: not etcd.exists())
