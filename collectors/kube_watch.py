"""One kind of object, listed and then watched for as long as it is there.

A watch goes on from the last resourceVersion that is in the spool; where the server does not have
that any more, the kind is listed anew, and what lies between is a gap that readers see. When the
connection breaks, nothing is lost. All kinds together are `recorder`'s.
"""

import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson

from collectors.faults import Fault
from collectors.kube_api import Api, Gone, Refused, refused
from collectors.kube_kinds import KubeKind
from collectors.kube_scrub import scrubbed
from collectors.spool import Line, Spool, line, stamp
from collectors.spool_files import SpoolError

PAGE = 500
WATCH_SECONDS = (300, 420)
"""How long one watch lasts; not all end at once."""
SILENT_SECONDS = 150.0
"""The server sends a bookmark each minute; whoever sends nothing for so long is gone."""
FIRST_PAUSE_SECONDS, MOST_PAUSE_SECONDS = 0.5, 60.0
REFUSED_SECONDS = 300.0
"""After so long a kind that we may not read is tried again."""
FULL_SECONDS = 5.0
CHANGES = frozenset(("ADDED", "MODIFIED", "DELETED", "BOOKMARK"))


@dataclass
class State:
    """How a kind's recording goes."""

    state_name: str = "starting"
    """starting, listing, watching, failing, refused, full."""
    since_at: str = ""
    said: str = ""
    line_count: int = 0
    list_count: int = 0
    fault_count: int = 0
    observed_at: str = ""


class KindWatch:
    """Records one kind into the spool until it is told to stop."""

    def __init__(
        self,
        api: Api,
        kind: KubeKind,
        spool: Spool,
        stop: threading.Event,
        tell: Callable[[str], None],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ):
        self.api, self.kind, self.spool, self.stop = api, kind, spool, stop
        self.tell, self.now = tell, now
        self.name = f"{kind.api_version}/{kind.kind}"
        self.state = State()
        self._attempts = 0

    def run(self) -> None:
        """List if need be, watch, and begin again, until told to stop."""
        while not self.stop.is_set():
            try:
                if self.spool.stand(self.name).version is None:
                    self._set("listing")
                    self._list()
                self._watch(self.spool.stand(self.name).version or "")
                self._attempts = 0
            except Gone as fault:
                self._set("failing", f"what happened since is gone at the server: {fault.text}")
                self._list_anew()
            except Refused as fault:
                self._set("refused", str(fault))
                self.stop.wait(REFUSED_SECONDS)
            except Fault as fault:
                self._set("failing", str(fault))
                self._pause(fault.after)
            except SpoolError:
                return  # it was closed while we waited for a line

    def _list_anew(self) -> None:
        self.spool.forget(self.name)
        self._pause(None)

    def _list(self) -> None:
        aside = self.spool.folder / f"{self.kind.name}.part"
        try:
            self.spool.add_list(aside, self._listed())
        except OSError as error:  # a list that did not fit is read again
            aside.unlink(missing_ok=True)
            self._wait_for_disk(error)
            raise Fault("full", "the list is read again") from None
        self.state.list_count += 1

    def _listed(self) -> Iterator[Line]:
        """The lines of a list: a GAP if it is not the first, objects, the BOOKMARK that ends it."""
        is_first = self.spool.stand(self.name).observed_at is None
        query = {"limit": str(PAGE)}
        observed, version, count = "", "", 0
        while True:
            page = self.api.ask(self.kind.path, query)
            meta = page.get("metadata") or {}
            observed = observed or stamp(self.now())
            if not version:
                version = str(meta.get("resourceVersion") or "")
                if not is_first:
                    yield self._line("GAP", {"metadata": {}}, observed)
            for item in page.get("items") or []:
                count += 1
                yield self._line("LISTED", item, observed)
            if not meta.get("continue"):
                break
            query = {"limit": str(PAGE), "continue": str(meta["continue"])}
        if not version:
            raise Fault("bad_json", "a list without a resourceVersion")
        self.state.line_count += count
        self.state.observed_at = observed
        yield self._line("BOOKMARK", {"metadata": {"resourceVersion": version}}, observed)

    def _watch(self, version: str) -> None:
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(random.randint(*WATCH_SECONDS)),
        }
        for raw in self.api.lines(self.kind.path, query, SILENT_SECONDS):
            self._set("watching")
            if not raw:
                continue
            change, item = _event(raw)
            made = self._line(change, item, stamp(self.now()))
            if not made.version:
                raise Fault("bad_json", "an object without a resourceVersion")
            self._patiently(lambda made=made: self.spool.add(made))
            self.state.observed_at = made.observed_at
            self.state.line_count += change != "BOOKMARK"
            self._attempts = 0
            if self.stop.is_set():
                return

    def _line(self, change: str, item: dict[str, Any], observed: str) -> Line:
        return line(change, self.kind.api_version, self.kind.kind, scrubbed(item), observed)

    def _patiently(self, write: Callable[[], Any]) -> None:
        """Write as soon as the disk takes it: until then nothing more is read, and none is lost."""
        while True:
            try:
                write()
                return
            except OSError as error:
                if self._wait_for_disk(error):
                    raise Fault("stopped", "while the disk was full") from None

    def _wait_for_disk(self, error: OSError) -> bool:
        """True where we were told to stop meanwhile."""
        self._set("full", f"{self.spool.folder} takes no more: {error.strerror}")
        return self.stop.wait(FULL_SECONDS)

    def _pause(self, asked: float | None) -> None:
        """Ever longer, and not all at once."""
        self._attempts += 1
        longest = min(FIRST_PAUSE_SECONDS * 2**self._attempts, MOST_PAUSE_SECONDS)
        self.stop.wait(max(longest * random.uniform(0.5, 1.0), asked or 0.0))

    def _set(self, name: str, said: str = "") -> None:
        if name in ("failing", "refused", "full"):
            self.state.fault_count += 1
        if (name, said) == (self.state.state_name, self.state.said):
            return
        self.state.state_name, self.state.said = name, said
        self.state.since_at = stamp(self.now())
        if self.stop.is_set():
            return
        if said:
            self.tell(f"{self.kind.name}: {name}: {said}")
        elif name == "watching":
            self.tell(f"{self.kind.name}: watching")


def _event(raw: bytes) -> tuple[str, dict[str, Any]]:
    """What a line of a watch says; Fault where it is an error or none."""
    try:
        told = orjson.loads(raw)
        change, item = told["type"], told["object"]
        meta = item.get("metadata")
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
        raise Fault("bad_json", raw[:120].decode("utf-8", "replace")) from None
    if change == "ERROR":
        code = item.get("code")
        raise refused(code if isinstance(code, int) else 500, orjson.dumps(item))
    if change not in CHANGES or not isinstance(meta, dict):
        raise Fault("bad_json", f"a change called {change!r}"[:80])
    return change, item
