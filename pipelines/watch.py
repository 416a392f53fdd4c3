"""The `watch` command: a recorder for each cluster that the configuration says to watch.

What a recorder does belongs to `collectors.recorder`; its spool is read by `run` like any folder of
recorded answers.
"""

import signal
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from pipelines.cli_common import REFUSED, USAGE, answering, config_of, plain, stop

if TYPE_CHECKING:
    from collectors.recorder import Recorder
    from models.config import Config

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
MEND = "give a kubernetes source of a cluster `watch: {}`, or `watch: {in_cluster: true}`"


def watch(told: Path | None, names: list[str]) -> None:
    """Record until a signal comes; exits with 1 or 2 where a recorder could not begin or broke."""
    with answering():
        config = config_of(told)[0]
        recorders = _recorders(config, names)
    over = threading.Event()
    for sign in ENDING:
        signal.signal(sign, lambda *_: over.set())
    codes: list[int] = []
    threads = [
        threading.Thread(target=_record, args=(name, recorder, codes), name=name)
        for name, recorder in recorders.items()
    ]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads) and not over.wait(0.5):
        pass
    for recorder in recorders.values():
        recorder.stop.set()
    for thread in threads:
        thread.join()
    if codes:
        raise typer.Exit(min(codes))


def _recorders(config: "Config", names: list[str]) -> dict[str, "Recorder"]:
    from collectors.recorder import Recorder

    known = [cluster.name for cluster in config.clusters]
    for name in names:
        if name not in known:
            stop(f"{plain(name)} is no cluster of the configuration: {', '.join(known) or 'none'}")
    found = {
        cluster.name: Recorder(source.watch, source.path, _teller(cluster.name))
        for cluster in config.clusters
        if not names or cluster.name in names
        for source in cluster.sources
        if source.kind == "kubernetes" and source.watch is not None
    }
    if not found:
        stop(f"no cluster is to be watched: {MEND}")
    return found


def _teller(cluster: str):
    """Writes a line about a cluster, with its time: this command runs for months."""

    def tell(said: str) -> None:
        now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        print(plain(f"{now} {cluster}: {said}"), file=sys.stderr, flush=True)

    return tell


def _record(name: str, recorder: "Recorder", codes: list[int]) -> None:
    from collectors.faults import Fault
    from collectors.spool_files import SpoolError

    try:
        recorder.run()
    except SpoolError as error:
        recorder.tell(str(error))
        codes.append(REFUSED)
    except Fault as fault:
        recorder.tell(f"cannot go on: {fault}")
        codes.append(USAGE if fault.reason == "configuration" else REFUSED)
    else:
        recorder.tell("ended")
