"""The files of `deploy/kubernetes`, applied to a real API server, and what they then allow.

What the recorder does with its rights is tested with the recorder.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from collectors.kube_kinds import WANTED
from models.config import Config
from tests.control_plane import ControlPlane
from tests.control_plane_api import Api, Refused
from tests.prometheus_server import until

pytestmark = pytest.mark.whole

FOLDER = Path(__file__).parents[1] / "deploy" / "kubernetes"
ACCOUNT = "system:serviceaccount:gpuledger:gpuledger-watch"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"
SERVED = ("", "apps", "batch", "scheduling.k8s.io", "autoscaling")
READ = ["get", "list", "watch"]


def objects(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((FOLDER / name).read_text()))


def rules() -> list[dict[str, list[str]]]:
    (role,) = (each for each in objects("access.yaml") if each["kind"] == "ClusterRole")
    return role["rules"]


@pytest.fixture(scope="module")
def plane(binaries, tmp_path_factory) -> Iterator[ControlPlane]:
    """Without a scheduler: the recorder's pod is made, and that is what matters."""
    folder, names = tmp_path_factory.mktemp("plane"), ("etcd", "kube-apiserver")
    with ControlPlane(folder, binaries, names=(*names, "kube-controller-manager")) as plane:
        for name in ("access.yaml", "watch.yaml"):
            for each in objects(name):
                plane.api().create(each)
        yield plane


@pytest.fixture
def api(plane) -> Api:
    return plane.api()


def test_the_role_names_each_kind_and_only_reads():
    for rule in rules():
        assert rule["verbs"] == READ
        named = {*rule["apiGroups"], *rule["resources"]}
        assert not named & {"*", "secrets", "configmaps"}
        assert rule.keys() == {"apiGroups", "resources", "verbs"}


def test_the_configuration_is_one_that_gpuledger_reads():
    (told,) = (each for each in objects("watch.yaml") if each["kind"] == "ConfigMap")
    config = Config.model_validate(yaml.safe_load(told["data"]["gpuledger.yaml"]))
    [source] = config.cluster("my-cluster").sources
    assert source.kind == "kubernetes" and source.watch
    assert source.watch.in_cluster


def test_the_role_grants_what_the_recorder_looks_for_and_nothing_else():
    granted = {
        (group, name) for r in rules() for group in r["apiGroups"] for name in r["resources"]
    }
    assert granted == {(group, name) for group, names in WANTED.items() for name in names}


def test_each_kind_of_the_role_that_kubernetes_serves_is_spelt_as_it_serves_it(api):
    preferred = {
        g["name"]: g["preferredVersion"]["groupVersion"] for g in api.get("/apis")["groups"]
    }
    for rule in rules():
        for group in rule["apiGroups"]:
            if group not in preferred and group:
                assert group not in SERVED
                continue
            served = api.get(f"/apis/{preferred[group]}" if group else "/api/v1")["resources"]
            assert set(rule["resources"]) <= {each["name"] for each in served}


def test_the_recorder_may_list_what_it_records_and_no_secret(plane, api):
    for rule in rules():
        for group in rule["apiGroups"]:
            for plural in rule["resources"]:
                assert all(api.may(ACCOUNT, verb, group, plural) for verb in READ)
                assert not api.may(ACCOUNT, "delete", group, plural)
    for plural in ("secrets", "configmaps", "pods/log", "pods/exec"):
        assert not any(api.may(ACCOUNT, verb, "", plural) for verb in (*READ, "create"))
    recorder = plane.api(ACCOUNT)
    assert isinstance(recorder.items("/api/v1/pods"), list)
    with pytest.raises(Refused) as refused:
        recorder.items("/api/v1/secrets")
    assert refused.value.status == 403


def test_the_recorder_may_see_which_kinds_there_are(plane):
    assert plane.api(ACCOUNT).get("/apis")["groups"]


def test_the_namespace_admits_the_recorders_pod(plane, api):
    """It enforces the restricted standard, which a controller's pod meets or is never made."""
    path = "/api/v1/namespaces/gpuledger/pods"
    until(lambda: bool(api.items(path)))
    (pod,) = api.items(path)
    assert pod["spec"]["serviceAccountName"] == "gpuledger-watch"
    (container,) = pod["spec"]["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert container["resources"]["requests"] == {"cpu": "500m", "memory": "300Mi"}
    writable = {m["name"] for m in container["volumeMounts"] if not m.get("readOnly")}
    volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
    assert "persistentVolumeClaim" in volumes["spool"]
    # Else only scratch: what is recorded outlives the pod.
    assert writable == {"spool", "tmp"}


def test_the_lease_is_optional_and_in_the_recorders_own_namespace_only(plane, api):
    recorder = plane.api(ACCOUNT)
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": {}}
    mine = {**lease, "metadata": {"name": "gpuledger-watch", "namespace": "gpuledger"}}
    with pytest.raises(Refused):
        recorder.create(mine)
    for each in objects("lease.yaml"):
        api.create(each)
    until(lambda: may_create(recorder, mine))
    path = f"{LEASES.format('gpuledger')}/gpuledger-watch"
    held = recorder.get(path)
    held["spec"]["holderIdentity"] = "one"
    assert recorder.ask("PUT", path, held)["spec"]["holderIdentity"] == "one"
    with pytest.raises(Refused):
        recorder.create({**lease, "metadata": {"name": "gpuledger-watch", "namespace": "default"}})


def may_create(recorder: Api, thing: dict[str, Any]) -> bool:
    """A new role is known to the server within moments."""
    try:
        recorder.create(thing)
    except Refused:
        return False
    return True
