"""Work on many files in several processes, its results in the order of the files.

What is done with a file belongs to whoever hands it on; it must be a function of its arguments.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

Result = TypeVar("Result")
WORTH_BYTES = 1 << 20
"""So much, packed, is about as much work as starting a process."""
AHEAD = 2
"""So many results more than processes are waited for, so that memory stays bounded."""


def process_count(files: Iterable[Path]) -> int:
    """How many processes are worth it for these files; 1: none beside this one."""
    told = os.environ.get("GPULEDGER_THREADS")
    cores = int(told) if told and told.isdigit() else len(os.sched_getaffinity(0))
    size = sum(path.stat().st_size for path in files)
    return max(1, min(cores, 8, size // WORTH_BYTES))


class Beside:
    """Processes that work while they are needed; with one, this process does it itself."""

    def __init__(self, count: int):
        self.count = count
        self._pool: ProcessPoolExecutor | None = None

    def results(
        self, work: Callable[..., Result], calls: Iterable[tuple[Any, ...]]
    ) -> Iterator[Result]:
        """What each call gives, in order; what it raises is raised here."""
        if self.count < 2:
            for args in calls:
                yield work(*args)
            return
        if self._pool is None:  # a fork would copy the locks of DuckDB's threads
            self._pool = ProcessPoolExecutor(self.count, mp_context=get_context("spawn"))
        coming: deque[Future[Result]] = deque()
        for args in calls:
            coming.append(self._pool.submit(work, *args))
            if len(coming) >= self.count + AHEAD:
                yield coming.popleft().result()
        while coming:
            yield coming.popleft().result()

    def close(self) -> None:
        """End the processes; work that was not taken is dropped."""
        if self._pool:
            self._pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def beside(files: Iterable[Path]) -> Iterator[Beside]:
    """As many processes as reading these files is worth."""
    found = Beside(process_count(files))
    try:
        yield found
    finally:
        found.close()
