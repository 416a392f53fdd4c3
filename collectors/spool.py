"""The spool: what a recorder saw, in segments that only grow, and where it stands after a crash.

A segment holds lines as `recording` reads them, {observed_at, type, object}, of all kinds in the
order in which they came. The open one ends in `.open`, so nobody reads it; sealed ones are packed
and never change. What is on the disk decides where the recorder goes on, nothing else.
"""

import gzip
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from uuid import uuid4

import filelock
import orjson

from collectors.spool_files import (
    SEALED,
    STATE,
    SpoolError,
    ingested_number,
    number_of,
    sync_folder,
    write_whole,
)
from collectors.streams import LISTING

OPEN, LOCK = ".open", "recorder.lock"
SPARE_BYTES = 64 << 20
"""So much of the disk is left to others; the state and a seal need some of it, too."""


class Line(NamedTuple):
    """One line, and what of it decides where the recorder goes on."""

    kind: str
    """apiVersion/kind."""
    change: str
    version: str
    """The resourceVersion."""
    observed_at: str
    raw: bytes


@dataclass
class Stand:
    """How far a kind was recorded."""

    version: str | None = None
    """Everything up to this resourceVersion is here; None where a list was never finished."""
    observed_at: str | None = None
    """When the last line was observed."""

    def take(self, change: str, version: str, observed_at: str) -> None:
        """A line more: a list is whole with the BOOKMARK that ends it."""
        if change in LISTING:
            self.version = None
        elif change == "BOOKMARK" or self.version is not None:
            self.version = version
        self.observed_at = observed_at


def line(change: str, api_version: str, kind: str, item: dict[str, Any], observed_at: str) -> Line:
    """An object as a line; items of a list do not name their kind."""
    told = {"apiVersion": api_version, "kind": kind, **item}
    raw = orjson.dumps({"observed_at": observed_at, "type": change, "object": told})
    version = str((item.get("metadata") or {}).get("resourceVersion") or "")
    return Line(f"{api_version}/{kind}", change, version, observed_at, raw + b"\n")


def stamp(now: datetime) -> str:
    """An instant as a line tells it."""
    return now.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


@dataclass
class Spool:
    """A cluster's spool, of which this process is the only writer."""

    folder: Path
    segment_seconds: float = 240
    segment_bytes: int = 64 << 20
    keep_days: int = 14
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    stands: dict[str, Stand] = field(default_factory=dict)
    """apiVersion/kind -> how far it was recorded."""

    def __post_init__(self) -> None:
        self._guard = threading.Lock()
        self._file: BinaryIO | None = None
        self._path = self.folder
        self._size, self._opened_at = 0, self.now()
        self._is_dirty = self._is_closed = False
        self._number = 0
        self.name = uuid4().hex
        """By which a lake knows this spool, wherever its folder is moved."""
        self._lock = filelock.FileLock(self.folder / LOCK, thread_local=False)

    def open(self) -> None:
        """Take the folder and find where the last recorder stood; SpoolError if another has it."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=0)
        except filelock.Timeout:
            raise SpoolError(f"another recorder writes to {self.folder}: one is enough") from None
        except OSError as error:
            raise SpoolError(f"{self.folder} cannot be written: {error.strerror}") from error
        self._recover()

    def close(self) -> None:
        """Seal what is open, and let go of the folder."""
        try:
            with self._guard:
                self._is_closed = True
                self._seal()
        finally:
            self._lock.release()

    @property
    def is_open(self) -> bool:
        """Whether this recorder has the folder."""
        return self._lock.is_locked

    def add(self, *lines: Line) -> None:
        """Lines of one instant, all or none of them; OSError where the disk is full.

        They are safe against a crash of the machine with the next `sync`.
        """
        data = b"".join(each.raw for each in lines)
        with self._guard:
            file = self._writable(len(data))
            try:
                file.write(data)
                file.flush()
            except OSError:
                with self._cutting(file):
                    raise
            self._size += len(data)
            self._is_dirty = True
            for each in lines:
                self._take(each)
            self._seal_if_due()

    def add_list(self, path: Path, lines: Iterator[Line]) -> int:
        """A whole list, written aside first so that no reader and no crash sees a part of it."""
        count, last = 0, None
        with path.open("wb") as aside:
            for count, last in enumerate(lines, 1):  # noqa: B007 - both are needed afterwards
                aside.write(last.raw)
        with self._guard:
            file = self._writable(path.stat().st_size)
            try:
                with path.open("rb") as aside:
                    shutil.copyfileobj(aside, file, 1 << 20)
                file.flush()
            except OSError:
                with self._cutting(file):
                    raise
            self._size += path.stat().st_size
            self._is_dirty = True
            if last:
                self._take(last)
            self._seal_if_due()
        path.unlink()
        return count

    def stand(self, kind: str) -> Stand:
        """How far a kind was recorded."""
        with self._guard:
            return self.stands.setdefault(kind, Stand())

    def forget(self, kind: str) -> None:
        """What was recorded of a kind is no place to go on from: it will be listed anew."""
        with self._guard:
            self.stands.setdefault(kind, Stand()).version = None

    def sync(self) -> None:
        """Bring what was added to the disk; seal the segment and remove old ones if it is time."""
        with self._guard:
            if self._is_dirty and self._file:
                os.fsync(self._file.fileno())
                self._is_dirty = False
            self._seal_if_due()

    def sealed(self) -> list[Path]:
        """The sealed segments, the oldest first."""
        return sorted(self.folder.glob(f"*{SEALED}"))

    def _take(self, added: Line) -> None:
        stand = self.stands.setdefault(added.kind, Stand())
        stand.take(added.change, added.version, added.observed_at)

    def _writable(self, size: int) -> BinaryIO:
        if self._is_closed:
            raise SpoolError(f"{self.folder} was closed")
        free = shutil.disk_usage(self.folder).free
        if free < size + SPARE_BYTES:
            raise OSError(28, "No space left on device", str(self.folder))
        if self._file is None:
            self._number += 1
            self._opened_at = self.now()
            name = f"{self._number:012d}-{self._opened_at.astimezone(UTC):%Y%m%dT%H%M%SZ}"
            self._path = self.folder / f"{name}{OPEN}"
            self._file = self._path.open("ab")
            self._size = 0
            sync_folder(self.folder)
        return self._file

    @contextmanager
    def _cutting(self, file: BinaryIO) -> Iterator[None]:
        """Without what was written of lines that did not fit."""
        try:
            yield
        finally:
            file.close()
            with self._path.open("rb+") as whole:
                whole.truncate(self._size)
            self._file = self._path.open("ab")

    def _seal_if_due(self) -> None:
        age = (self.now() - self._opened_at).total_seconds()
        if self._file and (self._size >= self.segment_bytes or age >= self.segment_seconds):
            self._seal()

    def _seal(self) -> None:
        if self._file is None:
            return
        self._file.close()
        self._file = None
        if self._size:
            _pack(self._path)
        self._path.unlink()
        self._write_state()
        self._forget()

    def _write_state(self) -> None:
        """Where the recorder stands after the last sealed segment."""
        told = {
            "spool": self.name,
            "segment": self._number,
            "kinds": {
                kind: {"version": stand.version, "observed_at": stand.observed_at}
                for kind, stand in sorted(self.stands.items())
            },
        }
        write_whole(self.folder / STATE, told)

    def _forget(self) -> None:
        """Remove what the lake has and is older than it is kept."""
        oldest = self.now() - timedelta(days=self.keep_days)
        ingested = ingested_number(self.folder)
        for path in self.sealed():
            is_old = datetime.fromtimestamp(path.stat().st_mtime, UTC) < oldest
            if not is_old or number_of(path.name) > ingested:
                return
            path.unlink()

    def _recover(self) -> None:
        """Seal what a crash left open, without a line or a list that breaks off."""
        known = self._read_state()
        for path in self.folder.glob("*.part"):
            path.unlink()
        for path in self.sealed():
            if number_of(path.name) > known:
                with gzip.open(path, "rb") as file:
                    self._replay(file)
        for path in sorted(self.folder.glob(f"*{OPEN}")):
            if path.with_suffix(SEALED).exists():  # it was sealed, and not yet removed
                path.unlink()
                continue
            self._mend(path)
        numbers = [number_of(path.name) for path in self.sealed()]
        self._number = max([known, *numbers])
        self._write_state()

    def _read_state(self) -> int:
        path = self.folder / STATE
        if not path.exists():
            return 0
        try:
            told = orjson.loads(path.read_bytes())
            self.stands = {kind: Stand(**stand) for kind, stand in told["kinds"].items()}
            self.name = str(told.get("spool") or self.name)
            return int(told["segment"])
        except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
            raise SpoolError(
                f"{path} is not what a recorder wrote: remove it, then all kinds are listed anew"
            ) from None

    def _mend(self, path: Path) -> None:
        """Take over an open segment: lines of a list that has no end are left out."""
        with path.open("rb") as file:
            whole = self._replay(file)
        left = {kind for kind, stand in self.stands.items() if stand.version is None}
        aside = path.with_suffix(".mended.part")
        with path.open("rb") as file, aside.open("wb") as kept:
            unfinished = _unfinished(file, left) if left else set()
            file.seek(0)
            for number, raw in enumerate(file):
                if number < whole and number not in unfinished:
                    kept.write(raw)
            kept.flush()
            os.fsync(kept.fileno())
        aside.replace(path)
        if path.stat().st_size:
            _pack(path)
        path.unlink()

    def _replay(self, file: BinaryIO | gzip.GzipFile) -> int:
        """How far the lines lead; how many of them are whole."""
        number = 0
        for number, raw in enumerate(file, 1):
            found = _read(raw)
            if found is None:
                return number - 1
            kind, change, version, observed_at = found
            self.stands.setdefault(kind, Stand()).take(change, version, observed_at)
        return number


def _read(raw: bytes) -> tuple[str, str, str, str] | None:
    """Kind, change, version and instant of a line; None where it breaks off."""
    if not raw.endswith(b"\n"):
        return None
    try:
        told = orjson.loads(raw)
        item = told["object"]
        kind = f"{item['apiVersion']}/{item['kind']}"
        version = str(item["metadata"].get("resourceVersion") or "")
        return kind, told["type"], version, told["observed_at"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return None


def _unfinished(file: BinaryIO, kinds: set[str]) -> set[int]:
    """The places of the last list's lines of each of these kinds."""
    found: dict[str, set[int]] = {}
    for number, raw in enumerate(file):
        told = _read(raw)
        if told and told[0] in kinds:
            if told[1] in LISTING:
                found.setdefault(told[0], set()).add(number)
            elif told[1] == "BOOKMARK":
                found.pop(told[0], None)
    return set().union(*found.values())


def _pack(path: Path) -> None:
    """A sealed segment beside the open one; it is there whole or not at all."""
    aside = path.with_suffix(".sealed.part")
    with path.open("rb") as plain, aside.open("wb") as packed:
        with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=5, mtime=0) as file:
            shutil.copyfileobj(plain, file, 1 << 20)
        packed.flush()
        os.fsync(packed.fileno())
    aside.replace(path.with_suffix(SEALED))
    sync_folder(path.parent)
