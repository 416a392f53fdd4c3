"""The recorder's optional Lease, on a real API server: one records, the others wait for it."""

import json
from pathlib import Path

import pytest
import yaml

from collectors.recorder import Recorder
from collectors.spool_files import STATUS
from tests.prometheus_server import until
from tests.watch_case import state

pytestmark = pytest.mark.whole

FOLDER = Path(__file__).parents[1] / "deploy" / "kubernetes"
LEASE = {"namespace": "gpuledger", "seconds": 10}
PATH = "/apis/coordination.k8s.io/v1/namespaces/gpuledger/leases/gpuledger-watch"
ACCOUNT = "system:serviceaccount:gpuledger:gpuledger-watch"


@pytest.fixture(scope="module")
def account(plane) -> Path:
    """How the recorder's own account gets there, without the Lease's Role yet."""
    for each in yaml.safe_load_all((FOLDER / "access.yaml").read_text()):
        plane.api().create(each)
    return plane.kubeconfig(ACCOUNT)


def status(recorder: Recorder) -> dict:
    """What it says of itself, as soon as it does."""
    path = recorder.folder / STATUS
    return json.loads(path.read_text()) if path.exists() else {"faults": {}, "is_running": True}


def test_the_lease_is_held_by_one_recorder_and_the_next_waits_for_it(plane, account, recording):
    first = recording(account, "first", lease=LEASE)
    until(lambda: "cannot get resource" in status(first)["faults"].get("lease", ""))
    assert "forbidden: 403" in status(first)["faults"]["lease"] and not first.kinds
    for each in yaml.safe_load_all((FOLDER / "lease.yaml").read_text()):
        plane.api().create(each)
    until(lambda: state(first, "pods") == "watching")
    assert "lease" not in first.faults
    second = recording(account, "second", lease=LEASE)
    holder = plane.api().get(PATH)["spec"]["holderIdentity"]
    until(lambda: f"{holder} holds it" in status(second)["faults"].get("lease", ""))
    assert not second.kinds and state(first, "pods") == "watching"
    written = status(second)["written_at"]
    until(lambda: status(second)["written_at"] > written)  # it waits, and is alive

    first.stop.set()
    until(lambda: state(second, "pods") == "watching")
    assert plane.api().get(PATH)["spec"]["holderIdentity"] != holder

    lease = plane.api().get(PATH)
    lease["spec"]["holderIdentity"] = "somebody"
    plane.api().ask("PUT", PATH, lease)
    until(lambda: not status(second)["is_running"])
    assert "is lost: somebody holds it" in status(second)["faults"]["lease"]
