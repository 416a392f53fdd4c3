"""The database file that one run stages its tables in, and the end of files whose run is dead.

A file belongs to the process that made it, which holds a lock beside it for as long as it lives:
whoever gets the lock of another's file knows that nobody will ever use that file again. What is
staged in it belongs in `run`.
"""

import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import filelock

from lake.connect import NAME, attach_to, opened_database
from lake.errors import LakeError
from lake.home import Home
from models.window import Window

SPILL_SECONDS = 48 * 3600
"""Age at which a spill folder is certain to be a dead process's."""

BOOK = "main.staged_tables"
"""In each file: the staged tables, and of those that only hold what the lake has, a fingerprint."""
SPOOLS = "main.spools"
"""Likewise: the recorders' spools that the run reads, and up to where the lake had them."""


class Staging:
    """One run's file; one object per file and process, so that all of it shares one database."""

    def __init__(self, home: Home, run_id: str):
        self.home = home
        self.path = home.staging(run_id)
        self.began_at = datetime.now(UTC)
        self.attaching = threading.RLock()
        self.window: Window | None = None
        """The window, where the run took another than it was made with."""
        self._con: duckdb.DuckDBPyConnection | None = None
        self._is_discarded = False
        self._lock = filelock.FileLock(_lock_of(self.path), thread_local=False)
        home.make()
        sweep(home)
        with _sweeping(home):
            try:
                self._lock.acquire(timeout=0)
            except filelock.Timeout as error:
                raise LakeError(f"run {run_id} is under way in another process") from error

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """A connection of the caller's own to the file, which is made with the first one."""
        with self.attaching:
            if self._is_discarded:
                raise LakeError(f"what run {self.path.stem} had staged was discarded")
            if self._con is None:
                self._con = opened_database(self.home, self.path)
                # It is thrown away when it is closed, or read again from its log.
                self._con.execute("pragma disable_checkpoint_on_shutdown")
                for layer in ("raw", "core", "mart", "meta"):
                    self._con.execute(f"create schema if not exists {layer}")
                self._con.execute(
                    f"create table if not exists {BOOK} "
                    "(table_name varchar primary key, fingerprint_text varchar)"
                )
                self._con.execute(
                    f"create table if not exists {SPOOLS} "
                    "(spool_name varchar primary key, last_name varchar, folder_text varchar)"
                )
            return self._con.cursor()

    @contextmanager
    def with_lake(self, *, read_only: bool) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection that also sees the lake, for one thread at a time."""
        with self.attaching:
            cursor = self.cursor()
            try:
                attach_to(cursor, self.home, read_only=read_only)
                try:
                    yield cursor
                finally:
                    cursor.execute(f"detach {NAME}")
            finally:
                cursor.close()

    def discard(self) -> None:
        """Remove the file; what was staged is gone."""
        with _registry_lock:
            _registry.pop(self.path, None)
        with self.attaching:
            if self._is_discarded:
                return
            self._is_discarded = True
            if self._con is not None:
                self._con.close()
                self._con = None
            with _sweeping(self.home):
                _remove(self.path)
                self._lock.release()
                _lock_of(self.path).unlink(missing_ok=True)


_registry: dict[Path, Staging] = {}
_registry_lock = threading.Lock()


def staging(home: Home, run_id: str) -> Staging:
    """The run's file in this process; LakeError where another process has it."""
    path = home.staging(run_id)
    with _registry_lock:
        if path not in _registry:
            _registry[path] = Staging(home, run_id)
        return _registry[path]


def sweep(home: Home) -> int:
    """Remove what dead runs left behind; the number of files of runs that are gone."""
    if not home.runs.is_dir():
        return 0
    count = 0
    with _sweeping(home):
        left = {path.with_suffix("") for path in home.runs.glob("*.lock")}
        left |= {path.with_suffix("") for path in home.runs.glob("*.duckdb")}
        for stem in sorted(left - {home.runs / "sweep"}):
            path = stem.parent / f"{stem.name}.duckdb"
            lock = filelock.FileLock(_lock_of(path))
            with suppress(filelock.Timeout):
                lock.acquire(timeout=0)
                count += path.exists()
                _remove(path)
                lock.release()
                _lock_of(path).unlink(missing_ok=True)
        for spill in home.runs.glob("spill-*"):
            with suppress(OSError):
                if time.time() - spill.stat().st_mtime > SPILL_SECONDS:
                    shutil.rmtree(spill)
    return count


def _sweeping(home: Home) -> filelock.BaseFileLock:
    """Held while lock files come and go, so that nobody locks a file that is being removed."""
    return filelock.FileLock(home.runs / "sweep.lock", timeout=60, poll_interval=0.01)


def _lock_of(path: Path) -> Path:
    return path.parent / f"{path.name.removesuffix('.duckdb')}.lock"


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.with_name(f"{path.name}.wal").unlink(missing_ok=True)
