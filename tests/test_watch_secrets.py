"""What is planted in a pod of a real cluster and is secret: it is in nothing that we write or show.

Which values are left out of objects, and which are kept, is in test_kube_scrub.py.
"""

import gzip
import json

import pytest

from lake.home import Home
from lake.read import Door
from models.catalog import CATALOG
from models.config import load
from pipelines.process import process
from tests.control_plane_api import pods
from tests.dashboard_page import opened, words
from tests.prometheus_server import until
from tests.watch_case import ended, has, state

PLANTED = "h7Wq2Zr9xK4pLm8vT3"


@pytest.mark.whole
def test_no_secret_that_is_planted_in_a_pod_is_in_spool_log_lake_or_page(
    plane, recording, tmp_path, monkeypatch
):
    recorder = recording()
    until(lambda: state(recorder, "pods") == "watching")
    [pod] = pods(1, prefix="planted")
    main = {
        **pod["spec"]["containers"][0],
        "env": [{"name": "HF_TOKEN", "value": PLANTED}, {"name": "NCCL_DEBUG", "value": "INFO"}],
        "args": ["--api-key", PLANTED, f"--token={PLANTED}"],
    }
    pod["spec"]["containers"] = [main]
    pod["metadata"]["annotations"] = {"example.com/password": PLANTED}
    plane.api().create(pod)
    plane.api().create({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"},
        "stringData": {"password": PLANTED},
    })  # fmt: skip
    until(lambda: recorder.kinds and has(recorder, "planted-0"))
    found = ended(recorder)
    told = [
        json.dumps(each) for each in found if each["object"]["metadata"].get("name") == "planted-0"
    ]
    assert told
    assert '"NCCL_DEBUG", "value": "INFO"' in told[0]
    for path in recorder.folder.parent.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert PLANTED.encode() not in (gzip.decompress(data) if path.suffix == ".gz" else data)
    assert {"Secret", "ConfigMap"}.isdisjoint(each["object"]["kind"] for each in found)

    config = tmp_path / "gpuledger.yaml"
    config.write_text(
        "clusters: [{name: alpha, sources: [{kind: kubernetes, path: spool, watch: {}}]}]\n"
    )
    home = Home(tmp_path / "home")
    assert process(home, load(config), "alpha").exit_code == 0
    with Door(home) as door:
        [(key,)] = door.query(
            "select distinct workload_key_uid from core.pods where pod_name = 'planted-0'"
        ).fetchall()
        for table in CATALOG.values():
            query = (
                f"select count(*) from {table.name} as t where contains(t::varchar, '{PLANTED}')"
            )
            if table.layer != "meta":
                assert door.query(query).fetchall() == [(0,)], table.name
    app = opened(monkeypatch, home.path, "workload", workload=key)
    shown = [words(app), *(each.value.to_csv() for each in app.dataframe)]
    assert "planted-0" in "".join(shown) and PLANTED not in "".join(shown)
