"""The simulator's own clock: instants in integer microseconds, events in order of time.

What happens at an event belongs to whoever asked for it.
"""

import heapq
from collections.abc import Callable
from functools import lru_cache
from itertools import count
from time import gmtime, strftime
from typing import Any

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 3600 * SECOND
DAY = 24 * HOUR


@lru_cache(maxsize=4096)
def _day(day: int) -> str:
    return strftime("%Y-%m-%dT", gmtime(day * 86400))


def iso(second: int) -> str:
    """An instant as Kubernetes writes it: whole seconds, UTC."""
    day, rest = divmod(second, 86400)
    hour, rest = divmod(rest, 3600)
    minute, second = divmod(rest, 60)
    return f"{_day(day)}{hour:02}:{minute:02}:{second:02}Z"


def iso_micro(instant: int) -> str:
    """An instant with its microseconds, as the recorder writes it."""
    second, micro = divmod(instant, SECOND)
    return f"{iso(second)[:-1]}.{micro:06}Z"


class Clock:
    """Runs what was asked for, in order of time; ties in order of asking."""

    def __init__(self, now: int):
        self.now = now
        self._heap: list[tuple[int, int, Callable[..., object], tuple[Any, ...]]] = []
        self._order = count()

    def at(self, instant: int, what: Callable[..., object], *args: Any) -> None:
        """Ask for a call at an instant; one in the past happens next."""
        heapq.heappush(self._heap, (max(instant, self.now), next(self._order), what, args))

    def after(self, delay: float, what: Callable[..., object], *args: Any) -> None:
        """Ask for a call some seconds from now."""
        self.at(self.now + int(delay * SECOND), what, *args)

    def run(self, until: int) -> None:
        """Run every event before an instant, then stand at it."""
        while self._heap and self._heap[0][0] < until:
            self.now, _, what, args = heapq.heappop(self._heap)
            what(*args)
        self.now = until
