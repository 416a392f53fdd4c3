"""How fast a recorder's spool comes into the lake, beside only unpacking and reading its JSON.

A day of pods on nodes of eight GPUs, six versions of each pod, as `gpuledger watch` writes them.
Printed are the seconds of each step of a run that takes all segments, of a second run that takes
the last one, and of reading every line of the same files as JSON and no more.

    python -m benchmarks.spool [--versions 1000000] [--nodes 500] [--data DIR]
"""

import argparse
import gzip
import heapq
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson

from benchmarks.measure import Clock, Measured, apart, finished
from collectors.spool import Line, Spool, line, stamp
from lake.home import Home
from models.config import Config
from models.kubernetes import KubernetesSource
from pipelines.process import process

DAY = datetime(2026, 3, 2, tzinfo=UTC)
LIFE = ("ADDED", "bound", "pulling", "running", "ended", "DELETED")
RULES = [
    {"name": f"kube-api-access-{number}", "projected": {"sources": [{"serviceAccountToken": {}}]}}
    for number in range(3)
]


def pod(number: int) -> dict[str, Any]:
    """A member of a training job, with what controllers and admission add to one."""
    name, uid = f"train-{number // 8:06d}", f"{number:08x}-aaaa-4bbb-8ccc-0123456789ab"
    labels = {
        "batch.kubernetes.io/controller-uid": f"job-{number // 8:06d}",
        "batch.kubernetes.io/job-name": f"{name}-worker-0",
        "jobset.sigs.k8s.io/jobset-name": name,
        "jobset.sigs.k8s.io/replicatedjob-name": "worker",
        "jobset.sigs.k8s.io/job-index": "0",
        "kueue.x-k8s.io/queue-name": "research",
        "team": f"team-{number % 12}",
    }
    container = {
        "name": "main",
        "image": "registry.example.com/train/torch:2.10",
        "args": [f"--flag-{n}=some-value-of-a-flag" for n in range(20)],
        "env": [{"name": f"SETTING_{n}", "looks_secret": False} for n in range(20)],
        "resources": {
            "limits": {"nvidia.com/gpu": "8", "rdma/hca": "1"},
            "requests": {"nvidia.com/gpu": "8", "cpu": "64", "memory": "900Gi"},
        },
        "volumeMounts": [{"name": rule["name"], "mountPath": "/var/run/x"} for rule in RULES],
    }
    return {
        "metadata": {
            "name": f"{name}-worker-0-{number % 8}",
            "namespace": f"team-{number % 12}",
            "uid": uid,
            "labels": labels,
            "annotations": dict.fromkeys(labels, "the same again, as controllers do"),
            "ownerReferences": [
                {
                    "apiVersion": "batch/v1",
                    "kind": "Job",
                    "name": f"{name}-worker-0",
                    "uid": f"job-{number // 8:06d}",
                    "controller": True,
                }
            ],
        },
        "spec": {
            "containers": [container],
            "volumes": RULES,
            "nodeSelector": {"pool": "batch"},
            "schedulerName": "default-scheduler",
            "tolerations": [{"key": f"key-{n}", "operator": "Exists"} for n in range(4)],
        },
        "status": {"phase": "Pending", "conditions": []},
    }


def node(number: int) -> dict[str, Any]:
    """A machine of eight GPUs."""
    gpus = {"nvidia.com/gpu": "8", "cpu": "128", "memory": "2000Gi"}
    return {
        "metadata": {
            "name": f"gpu-{number:04d}",
            "uid": f"node-{number:04d}",
            "creationTimestamp": told(DAY - timedelta(days=9)),
            "labels": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "pool": "batch"},
        },
        "spec": {},
        "status": {
            "capacity": gpus,
            "allocatable": gpus,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def told(at: datetime) -> str:
    """An instant as an API server writes it."""
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def step_of(item: dict[str, Any], step: int, at: datetime, number: int, nodes: int) -> None:
    """The pod as it is after a step of its life."""
    meta, spec, status = item["metadata"], item["spec"], item["status"]
    if step == 0:
        meta["creationTimestamp"] = told(at)
    elif step == 1:
        spec["nodeName"] = f"gpu-{number % nodes:04d}"
        bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": told(at)}
        status["conditions"] = [bound]
    elif step == 2:
        waiting = {"waiting": {"reason": "ContainerCreating"}}
        status["containerStatuses"] = [{"name": "main", "restartCount": 0, "state": waiting}]
    elif step == 3:
        status["phase"] = "Running"
        status["containerStatuses"][0]["state"] = {"running": {"startedAt": told(at)}}
    elif step == 4:
        status["phase"] = "Succeeded"
        begun = status["containerStatuses"][0]["state"]["running"]["startedAt"]
        ended = {"exitCode": 0, "startedAt": begun, "finishedAt": told(at)}
        status["containerStatuses"][0]["state"] = {"terminated": ended}


def lives(count: int, nodes: int) -> Iterator[tuple[datetime, str, dict[str, Any]]]:
    """So many versions of pods, each node one pod at a time, in the order of time."""
    apart = 85_000 * len(LIFE) / count
    held = 0.9 * apart * nodes
    steps = [0.0, 0.1 * held, 0.1 * held + 1, 0.2 * held, held, held + 1]
    coming = [(number * apart, 0, number) for number in range(count // len(LIFE))]
    pods: dict[int, dict[str, Any]] = {}
    heapq.heapify(coming)
    while coming:
        at, step, number = heapq.heappop(coming)
        moment = DAY + timedelta(seconds=at)
        item = pods.setdefault(number, pod(number))
        step_of(item, step, moment, number, nodes)
        yield moment, LIFE[step] if LIFE[step].isupper() else "MODIFIED", item
        if step + 1 < len(LIFE):
            heapq.heappush(coming, (number * apart + steps[step + 1], step + 1, number))
        else:
            del pods[number]


def write(folder: Path, versions: int, nodes: int) -> int:
    """The spool; bytes of its lines."""
    now, size = DAY, 0
    spool = Spool(folder, now=lambda: now)
    spool.open()
    listed = [line("LISTED", "v1", "Node", node(n), stamp(DAY)) for n in range(nodes)]
    ends = {"metadata": {"resourceVersion": "1"}}
    begins = [
        line("GAP", "v1", "Pod", ends, stamp(DAY)),
        line("BOOKMARK", "v1", "Pod", ends, stamp(DAY)),
    ]
    spool.add(*listed, *begins)
    for number, (moment, change, item) in enumerate(lives(versions, nodes), 2):
        now = moment
        item["metadata"]["resourceVersion"] = str(number)
        made: Line = line(change, "v1", "Pod", item, stamp(moment))
        size += len(made.raw)
        spool.add(made)
    spool.close()
    return size


def read(folder: Path) -> tuple[int, float]:
    """Lines of all segments as JSON, and how long it took."""
    begun, count = time.monotonic(), 0
    for path in sorted(folder.glob("*.jsonl.gz")):
        with gzip.open(path) as file:
            for raw in file:
                orjson.loads(raw)
                count += 1
    return count, time.monotonic() - begun


def ingested(home: Path, folder: Path) -> Measured:
    """A run of all that the lake has not yet."""
    measured, begun, name = Measured(), time.monotonic(), ""
    clock = Clock(measured)

    def report(step: str, done: int, total: int) -> None:
        nonlocal name
        clock.done(name)
        name = step

    source = KubernetesSource(kind="kubernetes", path=folder)
    outcome = process(Home(home), Config(), "alpha", sources=[source], progress=report)
    if outcome.exit_code:
        raise RuntimeError("; ".join([*outcome.broken, outcome.error or "", *outcome.unreachable]))
    measured.counts = outcome.counts
    return finished(measured, begun)


def show(what: str, measured: Measured, count: int, plain: float) -> None:
    """What a run took, and how many times as long as only reading the lines."""
    reading = measured.steps["reading sources"] + measured.steps["collecting"]
    print(
        f"{what}: {measured.seconds:.0f} s, {measured.peak_bytes / 1e9:.2f} GB; of it ingestion "
        f"{reading:.0f} s and publishing {measured.steps['publishing']:.0f} s; ingestion took "
        f"{reading / plain:.2f} x as long as reading {count:,} lines as JSON ({plain:.1f} s)",
        flush=True,
    )


def main(argv: list[str] | None = None) -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spool", description=__doc__)
    parser.add_argument("--versions", type=int, default=1_000_000)
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--data", type=Path, help="a folder that is kept, and used again")
    asked = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="gpuledger-benchmark-") as made:
        folder = (asked.data or Path(made)) / f"spool-{asked.versions}-{asked.nodes}"
        if not folder.exists():
            size = apart(write, folder, asked.versions, asked.nodes)
            print(f"{asked.versions:,} versions, {size / 1e9:.2f} GB of JSON", flush=True)
        [*_, last] = sorted(folder.glob("*.jsonl.gz"))
        aside = last.rename(Path(made) / last.name)
        home = Path(made) / "home"
        count, plain = apart(read, folder)
        show("all but the last segment", apart(ingested, home, folder), count, plain)
        aside.rename(last)
        count, plain = apart(read_one, last)
        show("the last segment", apart(ingested, home, folder), count, plain)


def read_one(path: Path) -> tuple[int, float]:
    """Likewise of one segment."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / path.name).symlink_to(path)
        return read(Path(folder))


if __name__ == "__main__":
    main()
