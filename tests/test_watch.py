"""The recorder against a real API server: what etcd itself kept is what the spool holds, once.

Servers that refuse or break are in test_watch_faults.py, the spool alone is in test_spool.py.
"""

import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest

from lake.home import Home
from lake.read import Door
from models.config import load
from pipelines.process import process
from tests.api_between import Cable, rerouted
from tests.control_plane import ControlPlane
from tests.control_plane_api import pod_path, pods
from tests.control_plane_etcd import Observer
from tests.prometheus_server import until
from tests.watch_case import lines, of_kind, seconds, version

PHASE_SECONDS = 12
"""Five times, each with something that breaks at its end."""


class Load:
    """Makes, binds, evicts and deletes pods at a rate until it is closed."""

    def __init__(self, plane: ControlPlane, rate: float):
        self.api, self.rate, self.done, self.failed = plane.api(), rate, 0, 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def close(self) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        made = pods(10**9, space="load")
        begun, number = time.monotonic(), 0
        with ThreadPoolExecutor(8) as pool:
            while not self._over.is_set():
                pool.submit(self._live, next(made), number)
                number += 1
                time.sleep(max(0.0, begun + 4 * number / self.rate - time.monotonic()))

    def _live(self, pod: dict, number: int) -> None:
        name = pod["metadata"]["name"]
        pod["spec"]["schedulerName"] = "by-hand"
        for step in (
            lambda: self.api.create(pod),
            lambda: self.api.bind(name, f"gpu-{number % 12}", "load"),
            lambda: self.api.evict(name, "load") if number % 3 == 0 else None,
            lambda: self.api.delete(pod_path(name, "load"), 0),
        ):
            try:
                step()
                self.done += 1
            except Exception:
                self.failed += 1


@pytest.fixture
def command(tmp_path) -> Iterator[Callable[[Path], subprocess.Popen]]:
    """Starts `gpuledger watch` in a process of its own, which is killed with the test."""
    begun: list[subprocess.Popen] = []
    config = tmp_path / "gpuledger.yaml"

    def start(kubeconfig: Path) -> subprocess.Popen:
        config.write_text(
            "clusters:\n  - name: alpha\n    sources:\n      - kind: kubernetes\n"
            "        path: spool\n"
            f"        watch: {{kubeconfig: {kubeconfig}, segment_seconds: 3}}\n"
        )
        code = "from pipelines.cli import main; main()"
        with (tmp_path / "watch.log").open("ab") as log:
            begun.append(
                subprocess.Popen(
                    [sys.executable, "-c", code, "watch", "--config", str(config)],
                    stdout=log,
                    stderr=log,
                    env={**os.environ, "GPULEDGER_HOME": str(tmp_path / "home")},
                )
            )
        return begun[-1]

    yield start
    for each in begun:
        each.kill()
        each.wait()


@pytest.mark.whole
# What breaks off in the middle leaves sockets that nobody closes.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_every_version_that_etcd_kept_is_recorded_once_whatever_breaks(plane, tmp_path, command):
    """Beside changes at 50/s: the server killed, the cable cut, the recorder killed, history gone.

    What is missing lived and died within a gap that the coverage tells of.
    """
    plane.api().namespace("load")
    cable = Cable(int(plane.url.rsplit(":", 1)[1]))
    through = rerouted(plane.kubeconfig(), f"https://127.0.0.1:{cable.port}")
    observer, recorder = Observer(plane.etcd), command(through)
    folder = tmp_path / "spool"
    until(lambda: (folder / "status.json").exists() and "watching" in _status(folder, "pods"))
    load = Load(plane, 50)
    try:
        time.sleep(PHASE_SECONDS)
        plane.kill("kube-apiserver")
        time.sleep(1)
        plane.start("kube-apiserver")
        time.sleep(PHASE_SECONDS)
        cable.cut()
        time.sleep(2)
        cable.mend()
        time.sleep(PHASE_SECONDS)
        recorder.kill()
        recorder.wait()
        recorder = command(through)
        time.sleep(PHASE_SECONDS)
        # The server forgets what it has in memory, etcd what it has on its disk.
        recorder.kill()
        recorder.wait()
        time.sleep(2)
        plane.kill("kube-apiserver")
        plane.etcd.compact()
        plane.start("kube-apiserver")
        recorder = command(through)
        time.sleep(PHASE_SECONDS)
    finally:
        load.close()
    observer.catch_up()
    time.sleep(8)  # pauses between attempts grow to some seconds
    recorder.send_signal(signal.SIGTERM)
    assert recorder.wait(30) == 0, (tmp_path / "watch.log").read_text()
    observer.close()
    cable.close()

    found = of_kind(lines(folder), "Pod")
    gaps = _gaps(found)
    told = [each for each in found if each["type"] not in ("BOOKMARK", "GAP")]
    live = Counter(map(version, (each for each in told if each["type"] != "LISTED")))
    assert set(live.values()) == {1}
    seen = observer.of("/registry/pods/")
    assert load.done > 100 * PHASE_SECONDS
    recorded = set(map(version, told))
    assert recorded <= {each.revision for each in seen}
    ends = {each.previous: each.at for each in seen if each.previous}
    lives = [
        (each.at, ends.get(each.revision, each.at if each.change == "DELETE" else math.inf))
        for each in seen
        if each.revision not in recorded
    ]
    outside = [
        (born, died)
        for born, died in lives
        if not any(begin - 1 <= born and died <= end + 1 for begin, end in gaps)
    ]
    log = (tmp_path / "watch.log").read_text()
    assert outside == [], (gaps, log[-3000:])
    # A server that starts anew knows no change before its start: each of its two deaths may tell.
    assert len(gaps) in (1, 2)
    assert "is gone at the server" in log
    _same_in_the_lake(tmp_path, {each["object"]["metadata"]["uid"] for each in told}, gaps)


def _status(folder: Path, kind: str) -> str:
    return (
        json.loads((folder / "status.json").read_text())["kinds"]
        .get(kind, {})
        .get("state_name", "")
    )


def _gaps(found: list[dict]) -> list[tuple[float, float]]:
    """From the last line before a list to that list."""
    return [
        (seconds(before["observed_at"]), seconds(after["observed_at"]))
        for before, after in pairwise(found)
        if after["type"] == "GAP"
    ]


def _same_in_the_lake(folder: Path, uids: set[str], gaps: list[tuple[float, float]]) -> None:
    """A run takes each version once, and its coverage has the gap."""
    home = Home(folder / "home")
    outcome = process(home, load(folder / "gpuledger.yaml"), "alpha")
    assert (outcome.exit_code, outcome.broken) == (0, [])
    with Door(home) as door:
        rows = door.query(
            "select pod_uid, source_ref, change_name from raw.pod_versions "
            "where change_name not in ('CARRIED', 'HEARD')"
        ).fetchall()
        covered = door.query(
            "select epoch(begin_at), epoch(end_at) from raw.coverage "
            "where coverage_name = 'recorder_gap'"
        ).fetchall()
    assert {uid for uid, *_ in rows} == uids
    assert max(Counter(rows).values()) == 1
    for begin, end in gaps:
        assert any(one <= begin and end <= other for one, other in covered)
