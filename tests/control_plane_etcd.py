"""What etcd itself knows, over its JSON gateway: an observer that owes the API server nothing.

Only keys and revisions are read: a built-in kind is stored as protobuf. A key's revision is the
resourceVersion that the API server gives to that version of the object.
"""

import base64
import contextlib
import threading
import time
from dataclasses import dataclass
from typing import Any

import orjson
import requests

ALL, END = "/registry/", "/registry0"
"""From the first key of an API server to the first key after its last: `0` comes after `/`."""
MARK = "/registry/observer-mark"
"""No kind of object is kept there."""


@dataclass(frozen=True)
class Seen:
    """One version of one object, or its end."""

    key: str
    revision: int
    change: str
    """PUT or DELETE."""
    previous: int | None
    """The revision of the version before; None for a new object."""
    at: float
    """When it was seen, in seconds since 1970."""


class Etcd:
    """The store behind an API server."""

    def __init__(self, url: str):
        self.url = url

    def ask(self, path: str, body: object) -> dict[str, Any]:
        """One call to its gateway."""
        with requests.Session() as session:
            session.trust_env = False
            answer = session.post(self.url + path, data=orjson.dumps(body), timeout=10)
        answer.raise_for_status()
        return answer.json()

    def is_ready(self) -> bool:
        """Whether it answers."""
        try:
            return self.revision() > 0
        except requests.RequestException:
            return False

    def revision(self) -> int:
        """The revision of its newest change."""
        told = self.ask("/v3/kv/range", {"key": _coded(ALL), "count_only": True})
        return int(told["header"]["revision"])

    def mark(self) -> int:
        """Makes a change that is nobody's object, and says its revision."""
        told = self.ask("/v3/kv/put", {"key": _coded(MARK), "value": _coded("x")})
        return int(told["header"]["revision"])

    def compact(self) -> int:
        """Forgets all history before now, and says what now is."""
        revision = self.revision()
        self.ask("/v3/kv/compaction", {"revision": str(revision), "physical": True})
        return revision


class Observer:
    """Writes down every change of every object from when it begins, while etcd lives."""

    def __init__(self, etcd: Etcd):
        self.etcd = etcd
        self.seen: list[Seen] = []
        self.fault: str | None = None
        """Why its record has a gap; None while it is whole."""
        self._reached = etcd.revision()
        self._is_closed = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends it; what it saw stays."""
        self._is_closed.set()
        with contextlib.suppress(requests.RequestException):
            self.etcd.mark()  # wakes it
        self._thread.join(30)

    def catch_up(self, seconds: float = 30) -> None:
        """Waits until it has seen all that happened before this call."""
        target, limit = self.etcd.mark(), time.monotonic() + seconds
        while self._reached < target:
            assert self.fault is None, self.fault
            assert time.monotonic() < limit, f"it is at {self._reached}, not at {target}"
            time.sleep(0.01)

    def of(self, prefix: str) -> list[Seen]:
        """What it saw of keys that begin so, such as `/registry/pods/ml/`, in order."""
        return [each for each in self.seen if each.key.startswith(prefix)]

    def _run(self) -> None:
        while not self._is_closed.is_set() and self.fault is None:
            try:
                self._follow()
            except (requests.RequestException, orjson.JSONDecodeError):
                # etcd is away, or its answer was cut: it goes on after what is known.
                self._is_closed.wait(0.1)

    def _follow(self) -> None:
        wanted = {
            "key": _coded(ALL),
            "range_end": _coded(END),
            "start_revision": str(self._reached + 1),
            "prev_kv": True,
        }
        with requests.Session() as session:
            session.trust_env = False
            answer = session.post(
                f"{self.etcd.url}/v3/watch",
                data=orjson.dumps({"create_request": wanted}),
                stream=True,
                timeout=(10, None),
            )
            with answer:
                for line in answer.iter_lines(chunk_size=65_536):
                    if self._is_closed.is_set():
                        return
                    self._take(orjson.loads(line))

    def _take(self, told: dict[str, Any]) -> None:
        result = told.get("result", {})
        if "error" in told or result.get("canceled"):
            self.fault = f"etcd ended the watch: {told}"
            return
        now = time.time()
        for event in result.get("events", ()):
            pair, before = event["kv"], event.get("prev_kv")
            revision = int(pair["mod_revision"])
            key = base64.b64decode(pair["key"]).decode()
            if key != MARK:
                previous = int(before["mod_revision"]) if before else None
                self.seen.append(Seen(key, revision, event.get("type", "PUT"), previous, now))
            self._reached = revision


def _coded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
