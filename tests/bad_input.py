"""A small sound trace and a small sound recording, the ways to damage them, and their figures.

What each damage must come to is said in test_bad_input.py.
"""

import json
from collections.abc import Callable
from pathlib import Path

from typer.testing import CliRunner, Result

from lake.errors import LakeError
from lake.home import Home
from lake.read import Door
from pipelines.cli import app
from tests.kube_objects import container, node, pod

Files = dict[str, bytes]
Damage = Callable[[Files], None]

PRICES = '\n  - {valid_from: 2026-01-01, gpu_model: v100-32gb, per_gpu_hour: "1.20"}'
CONFIG = f"""\
clusters:
  - name: site
    sources: [SOURCE]
teams: [{{name: a}}, {{name: b}}]
team_rules:
  - {{team: a, namespace: ml-a}}
prices:{PRICES}
import: {{max_rejected_ratio: 0.2}}
"""
TABLE = "{kind: table, path: given, mapping: given/mapping.yaml}"
RECORDED = "{kind: kubernetes, path: given}"
MAPPING = """\
time: {unit: s, epoch: 2026-03-01T00:00:00Z}
window: {from: 0, to: 86400}
nodes:
  file: nodes.csv
  columns: {id: sn, name: host, gpu_count: gpus, gpu_model: model}
pods:
  file: pods.csv
  columns: {id: uid, created: made, bound: placed, started: begun, ended: gone, node: host,
            phase: phase, gpu_count: gpus, team: team}
"""
NODES = "sn,host,gpus,model\nn-1,one,8,V100M32\nn-2,two,4,V100M32\n"
PODS = """\
uid,made,placed,begun,gone,host,phase,gpus,team
p-1,0,60,90,3690,one,Succeeded,4,a
p-2,600,600,660,7860,one,Succeeded,2,b
p-3,0,30,60,,two,Running,1,a
p-4,100,100,130,50130,two,Failed,2,b
p-5,3000,,,9000,,Pending,8,b
"""
TRACE: Files = {
    "gpuledger.yaml": CONFIG.replace("SOURCE", TABLE).encode(),
    "given/mapping.yaml": MAPPING.encode(),
    "given/nodes.csv": NODES.encode(),
    "given/pods.csv": PODS.encode(),
}


def line(minute: int, change: str, item: dict) -> str:
    """A line of a watch stream."""
    seen = f"2026-03-01T10:{minute:02}:30.000000Z"
    return json.dumps({"observed_at": seen, "type": change, "object": item}) + "\n"


def a_node(uid: str = "n-1", name: str = "one", gpus: int = 8, **meta) -> dict:
    """A node with whole GPUs."""
    item = node(capacity={"nvidia.com/gpu": str(gpus)})
    item["metadata"] |= {"uid": uid, "name": name, **meta}
    return item


def a_pod(uid: str, gpus: int = 1, on: str | None = "one", **more) -> dict:
    """A pod that asks for whole GPUs."""
    item = pod([container(gpus=gpus)], node=on, **more)
    item["metadata"] |= {"uid": uid, "name": f"pod-{uid}", "namespace": "ml-a"}
    return item


STREAMS: Files = {
    "gpuledger.yaml": CONFIG.replace("SOURCE", RECORDED).replace("v100-32gb", '"*"').encode(),
    "given/nodes.jsonl": (
        line(0, "LISTED", a_node()) + line(0, "LISTED", a_node("n-2", "two", 4))
    ).encode(),
    "given/pods.jsonl": (
        line(0, "LISTED", a_pod("p-1", 4))
        + line(5, "ADDED", a_pod("p-2", 2, "two"))
        + line(20, "DELETED", a_pod("p-1", 4))
        + line(50, "BOOKMARK", {"kind": "Pod", "apiVersion": "v1", "metadata": {}})
    ).encode(),
}


def added(name: str, text: str | bytes) -> Damage:
    """More at the end of a file."""
    more = text.encode() if isinstance(text, str) else text
    return lambda files: files.update({name: files.get(name, b"") + more})


def swapped(name: str, old: str, new: str) -> Damage:
    """Another text in a file, wherever the old one is."""

    def work(files: Files) -> None:
        assert old.encode() in files[name]
        files[name] = files[name].replace(old.encode(), new.encode())

    return work


def made(name: str, content: bytes | Callable[[bytes], bytes]) -> Damage:
    """Another content of a file."""
    return lambda files: files.update(
        {name: content if isinstance(content, bytes) else content(files[name])}
    )


def lost(*names: str) -> Damage:
    """Files that are not there."""

    def work(files: Files) -> None:
        for name in names:
            del files[name]

    return work


def both(*damages: Damage) -> Damage:
    """One after the other."""

    def work(files: Files) -> None:
        for damage in damages:
            damage(files)

    return work


def written(folder: Path, base: Files, cluster: str, *damages: Damage) -> Path:
    """A damaged copy of a base, for a cluster of that name; its configuration."""
    files = dict(base)
    for damage in damages:
        damage(files)
    if "gpuledger.yaml" in files:
        config = files["gpuledger.yaml"].replace(b"name: site", f"name: {cluster}".encode())
        files["gpuledger.yaml"] = config
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder / "gpuledger.yaml"


def call(home: Path, *words: object) -> Result:
    """The command line, as a user types it."""
    answer = CliRunner().invoke(app, [str(w) for w in words], env={"GPULEDGER_HOME": str(home)})
    assert answer.exception is None or isinstance(answer.exception, SystemExit), answer.exception
    assert "Traceback" not in answer.output
    return answer


FIGURES = (
    """select node_uid, hour_at, team_name, state_name, cause_name, sum(gpu_seconds),
        sum(ledger_cost) from core.ledger where cluster_name = '{0}' group by all order by all""",
    "select * exclude cluster_name from mart.team_days where cluster_name = '{0}' order by all",
    "select * exclude cluster_name from mart.attempt_waits where cluster_name = '{0}' order by all",
    """select * exclude (cluster_name, rejected_count) from mart.fleet_coverage
        where cluster_name = '{0}' order by all""",
)


def published(home: Path, cluster: str, *queries: str) -> list[list[tuple]] | None:
    """The figures of a cluster that readers see; None where nothing of it is published."""
    try:
        with Door(Home(home)) as door:
            found = [door.query(q.format(cluster)).fetchall() for q in queries or FIGURES]
    except LakeError:
        return None
    return found if any(found) else None
