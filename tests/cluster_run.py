"""A busy cluster with Kueue, JobSet and the Trainer, recorded, and processed while it goes on.

What the cluster does is in `cluster_traffic`, what it says of itself in `cluster_truth`; what the
ledger makes of it is compared in `test_cluster`.
"""

import gzip
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import yaml

from lake.home import Home
from lake.read import Door
from models.config import load
from pipelines.process import Outcome, process
from tests.cluster_traffic import RUNTIMES, SPACE, Traffic, settled
from tests.cluster_truth import Truth
from tests.control_plane import ControlPlane
from tests.control_plane_api import nodes
from tests.control_plane_etcd import Observer
from tests.control_plane_kueue import QUEUE_NAMES, Queueing, queues, runtimes
from tests.prometheus_server import until

ACCOUNT = "system:serviceaccount:gpuledger:gpuledger-watch"
ACCESS = Path(__file__).parents[1] / "deploy" / "kubernetes" / "access.yaml"


@dataclass
class Ran:
    """What is left when the cluster has ended."""

    home: Home
    folder: Path
    truth: Truth
    observer: Observer
    runs: list[tuple[Outcome, float]]
    recorder: dict[str, float]


def run(folder: Path, binaries: dict[str, Path], full_size: bool) -> Ran:
    """The whole of it, from an empty cluster to the last run of the ledger."""
    size = 25 if full_size else 1
    with ControlPlane(folder / "plane", binaries) as plane:
        api = plane.api()
        Queueing(plane, binaries).start()
        for each in yaml.safe_load_all(ACCESS.read_text()):
            api.create(each)
        api.namespace(SPACE)
        traffic = Traffic(api, size, seed=5)
        queues(api, SPACE, dict.fromkeys(QUEUE_NAMES, traffic.gpus_of_queue))
        runtimes(api, RUNTIMES)
        config = _config(folder, plane)
        recorder = _recorder(folder, config)
        try:
            until(lambda: _is_watching(folder / "spool"))
            truth, observer = Truth(api), Observer(plane.etcd)
            api.create_all(nodes(traffic.node_count))
            runs: list[tuple[Outcome, float]] = []
            _happen(traffic, lambda: runs.append(processed(folder / "home", config)), full_size)
            # Nobody changes anything any more: all three watchers come to know the same.
            for name in [*plane.processes]:
                if name not in ("etcd", "kube-apiserver"):
                    plane.kill(name)
            time.sleep(10)
            observer.catch_up()
            truth.close()
            usage = _usage(recorder.pid)
            recorder.send_signal(signal.SIGTERM)
            assert recorder.wait(60) == 0, (folder / "watch.log").read_text()[-3000:]
            observer.close()
        finally:
            recorder.kill()
            recorder.wait()
    runs.append(processed(folder / "home", config))
    return Ran(Home(folder / "home"), folder, truth, observer, runs, usage)


def _happen(traffic: Traffic, run: Callable[[], None], full_size: bool) -> None:
    """Some minutes of a cluster, with runs of the ledger between them."""
    pause = 15 if full_size else 6
    traffic.bare()
    traffic.wave("first", "low")
    time.sleep(pause)
    run()
    traffic.wave("second", "middle")
    traffic.odd()
    time.sleep(pause)
    traffic.leave()
    traffic.withdraw("first")
    run()
    traffic.wave("third", "high")
    time.sleep(pause)
    traffic.withdraw("second")
    traffic.evict_members()
    run()
    settled(traffic.api, 600 if full_size else 150)


def _config(folder: Path, plane: ControlPlane) -> Path:
    """It is about noon there: what a midnight does is tested where its time is known."""
    behind = datetime.now(UTC).hour - 12
    zone = f"Etc/GMT{behind:+d}"  # its sign is the other way round
    path = folder / "gpuledger.yaml"
    told = {
        "lake": {"accounting_zone": zone},
        "clusters": [
            {
                "name": "alpha",
                "sources": [
                    {
                        "kind": "kubernetes",
                        "path": "spool",
                        "watch": {
                            "kubeconfig": str(plane.kubeconfig(ACCOUNT)),
                            "segment_seconds": 5,
                        },
                    }
                ],
            }
        ],
    }
    path.write_text(yaml.safe_dump(told))
    return path


def _recorder(folder: Path, config: Path) -> subprocess.Popen[bytes]:
    code = "from pipelines.cli import main; main()"
    with (folder / "watch.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-c", code, "watch", "--config", str(config)],
            stdout=log,
            stderr=log,
            env={**os.environ, "GPULEDGER_HOME": str(folder / "home")},
        )


def _is_watching(spool: Path) -> bool:
    path = spool / "status.json"
    if not path.exists():
        return False
    kinds = orjson.loads(path.read_bytes())["kinds"]
    wanted = ("pods", "nodes", "jobs", "jobsets", "trainjobs", "workloads")
    found = {name.split(".")[0]: each.get("state_name") for name, each in kinds.items()}
    return all(found.get(name) == "watching" for name in wanted)


def _usage(pid: int) -> dict[str, float]:
    """A process's peak memory in MB, and its CPU in seconds."""
    status = Path(f"/proc/{pid}/status").read_text()
    (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", status)
    times = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
    begun = Path(f"/proc/{pid}").stat().st_ctime
    cpu = sum(map(int, times)) / os.sysconf("SC_CLK_TCK")
    return {"peak_mb": int(peak) / 1024, "cpu_seconds": cpu, "seconds": time.time() - begun}


def processed(home: Path, config: Path) -> tuple[Outcome, float]:
    """A run of the ledger, and its seconds."""
    begun = time.monotonic()
    outcome = process(Home(home), load(config), "alpha")
    return outcome, time.monotonic() - begun


def figures(ran: Ran) -> dict[str, Any]:
    """How much there was of everything, and what it took."""
    truth = ran.truth
    tries = [each for work in truth.works.values() for each in work.tries]
    return {
        "pods": len(truth.pods),
        "bound": sum(pod.bound is not None for pod in truth.pods.values()),
        "ended": sum(pod.ended is not None for pod in truth.pods.values()),
        "disrupted": dict(Counter(pod.disrupted for pod in truth.pods.values())),
        "workloads": len(truth.works),
        "attempts": len(tries),
        "evictions": dict(Counter(each.reason for each in tries if each.evicted)),
        "versions in etcd": len(ran.observer.seen),
        "versions by plain watches": truth.version_count,
        "recorder": ran.recorder,
        "runs": [(round(took, 1), outcome.row_count) for outcome, took in ran.runs],
    }


def query(ran: Ran, sql: str) -> list[dict[str, Any]]:
    """Rows of the lake, by the names of their columns."""
    with Door(ran.home) as door:
        found = door.query(sql)
        names = [each[0] for each in found.description]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def recorded(ran: Ran) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Each line of the spool but of events: what happened, the object, and when it was seen."""
    for path in sorted((ran.folder / "spool").glob("*.jsonl.gz")):
        for raw in gzip.decompress(path.read_bytes()).splitlines():
            if b'"kind":"Event"' not in raw[:200]:
                line = orjson.loads(raw)
                yield line["type"], line["object"], line["observed_at"]
