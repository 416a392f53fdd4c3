"""The recorder of one cluster: its kinds, each watched in a thread, and what they write together.

How one kind is watched belongs to `kube_watch`, how lines are kept to `spool`.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from collectors.faults import Fault
from collectors.kube_api import Api
from collectors.kube_kinds import KubeKind, discovered
from collectors.kube_lease import HeldLease
from collectors.kube_watch import KindWatch
from collectors.spool import Spool, stamp
from collectors.spool_files import STATUS, write_whole
from models.kubernetes import Watch

SYNC_SECONDS = 1.0
GRACE_SECONDS = 2.0
STATUS_SECONDS = 10.0
DISCOVERY = "discovery"
Tell = Callable[[str], None]


@dataclass
class Watched:
    """A kind's watch, its thread, and what ends it alone."""

    watch: KindWatch
    thread: threading.Thread
    stop: threading.Event


@dataclass
class Recorder:
    """Records a cluster until it is told to stop."""

    told: Watch
    folder: Path
    tell: Tell
    stop: threading.Event = field(default_factory=threading.Event)
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def __post_init__(self) -> None:
        self.spool = Spool(
            self.folder,
            segment_seconds=self.told.segment_seconds,
            segment_bytes=self.told.segment_mib << 20,
            keep_days=self.told.keep_days,
            now=self.now,
        )
        self.kinds: dict[KubeKind, Watched] = {}
        self.faults: dict[str, str] = {}

    def run(self) -> None:
        """Record; SpoolError where the folder is not ours.

        Fault where no API can be named, or where the Lease is lost.
        """
        self.spool.open()
        api = lease = None
        try:
            api = Api(self.told)
            if self.told.lease:
                lease = HeldLease(api, self.told.lease, self.stop, self._lease_said)
            if lease is None or lease.take(self._write_status):
                self.faults.pop("lease", None)
                self._loop(api)
            if lease and lease.fault:
                self.faults["lease"] = str(lease.fault)
                raise lease.fault
        finally:
            self.stop.set()
            for each in self.kinds.values():
                each.stop.set()
            # Most wait for a line that may not come for a minute; what they read then is not kept.
            until = time.monotonic() + GRACE_SECONDS
            for each in self.kinds.values():
                each.thread.join(timeout=max(0.0, until - time.monotonic()))
            if lease:
                lease.close()
            if api:
                api.close()
            self.spool.close()
            self._write_status()

    def _lease_said(self, said: str) -> None:
        """What becomes of the Lease is told, and stands in the status while we wait for it."""
        self.tell(said)
        self.faults["lease"] = said
        self._write_status()

    def _loop(self, api: Api) -> None:
        passed, discovery, status = 0.0, 0.0, 0.0
        while not self.stop.is_set():
            if passed >= discovery:
                discovery = passed + self.told.discover_seconds
                self._discover(api)
            self._sync()
            if passed >= status:
                status = passed + STATUS_SECONDS
                self._write_status()
            self.stop.wait(SYNC_SECONDS)
            passed += SYNC_SECONDS

    def _discover(self, api: Api) -> None:
        """Begin with kinds that are new, end with those that are gone."""
        try:
            found = discovered(api)
        except Fault as fault:
            self._note(DISCOVERY, str(fault))
            return
        told = {f"{DISCOVERY} {group}": said for group, said in found.faults.items()}
        for what in [w for w in self.faults if w.startswith(DISCOVERY) and w not in told]:
            del self.faults[what]
        for what, said in told.items():
            self._note(what, said)
        if not told:
            for kind in [kind for kind in self.kinds if kind not in found.kinds]:
                self.tell(f"{kind.name}: is no longer served")
                self.kinds.pop(kind).stop.set()
        for kind in found.kinds:
            if kind not in self.kinds:
                self._begin(api, kind)

    def _begin(self, api: Api, kind: KubeKind) -> None:
        stop = threading.Event()
        watch = KindWatch(api, kind, self.spool, stop, self.tell, self.now)
        thread = threading.Thread(target=watch.run, name=kind.name, daemon=True)
        self.kinds[kind] = Watched(watch, thread, stop)
        thread.start()

    def _note(self, what: str, said: str) -> None:
        if self.faults.get(what) != said:
            self.tell(f"{what}: {said}")
        self.faults[what] = said

    def _sync(self) -> None:
        try:
            self.spool.sync()
            self.faults.pop("spool", None)
        except OSError as error:
            self._note("spool", f"{self.folder} takes no more: {error.strerror}")

    def _write_status(self) -> None:
        """How it goes, for whoever looks: whole or not at all."""
        told = {
            "written_at": stamp(self.now()),
            "is_running": not self.stop.is_set(),
            "faults": self.faults,
            "kinds": {
                kind.name: {"api_version": kind.api_version, **asdict(each.watch.state)}
                for kind, each in sorted(self.kinds.items())
            },
        }
        try:
            write_whole(self.folder / STATUS, told)
        except OSError as error:
            self._note("status", str(error.strerror))
