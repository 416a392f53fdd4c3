"""The writer lock and the transaction: one process writes, the others queue up for it.

SQLite refuses a second writer at random moments; the lock makes them queue, and what still
collides (a foreign process, a reader's checkpoint) is tried again.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

import duckdb
import filelock

from lake.connect import attach
from lake.errors import LakeError
from lake.home import Home

TRIES = 8
FIRST_PAUSE_SECONDS = 0.1
COLLISIONS = ("database is locked", "transaction conflict", "database table is locked")

Result = TypeVar("Result")


@contextmanager
def locked(home: Home, timeout_seconds: float = 600) -> Iterator[None]:
    """Hold the writer lock; LakeError naming its holder when the time is over."""
    home.make()
    lock = filelock.FileLock(home.lock)
    try:
        lock.acquire(timeout=timeout_seconds, poll_interval=0.05)
    except filelock.Timeout as error:
        raise LakeError(
            f"the lake in {home.path} is being written by process {holder(home)}; "
            f"waited {timeout_seconds:g} s for it"
        ) from error
    try:
        home.lock.write_text(str(os.getpid()))
        yield
    finally:
        lock.release()


def holder(home: Home) -> str:
    """The process that holds, or last held, the writer lock."""
    with suppress(OSError):  # Windows does not let others read a locked file
        return home.lock.read_text().strip() or "unknown"
    return "unknown"


@contextmanager
def writer(home: Home, timeout_seconds: float = 600) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection that may write to the lake, while holding the lock; errors as in `locked`."""
    with locked(home, timeout_seconds):
        con = attach(home, read_only=False)
        try:
            yield con
        finally:
            con.close()


def transaction(con: duckdb.DuckDBPyConnection, work: Callable[[], Result]) -> Result:
    """Do the work in one transaction, again from its begin when it collides with another.

    The work must be a function of what is in the database, so that doing it twice is no harm.
    """
    for tried in range(1, TRIES + 1):
        try:
            con.execute("begin")
            result = work()
            con.execute("commit")
            return result
        except BaseException as error:
            with suppress(duckdb.Error):  # a failed commit has rolled back already
                con.execute("rollback")
            collided = isinstance(error, duckdb.Error) and any(
                text in str(error).lower() for text in COLLISIONS
            )
            if not collided or tried == TRIES:
                raise
        time.sleep(FIRST_PAUSE_SECONDS * 2 ** (tried - 1))
    raise AssertionError("unreachable: the last try returns or raises")
