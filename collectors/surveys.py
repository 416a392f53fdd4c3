"""What is known of recorded files without reading their objects again: which kinds, when, lists.

How a file is surveyed belongs to `streams`; what follows from surveys to `coverage`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson


class Run(NamedTuple):
    """A list inside a stream: its first and last line, when it began, and the line before it."""

    first: int
    last: int
    begin: int
    before: int | None


@dataclass
class Survey:
    """What one stream says of one kind; its lines may lie in any order."""

    first: int
    last: int
    runs: list[Run] = field(default_factory=list)
    is_watched: bool = False
    """Whether there are other lines than those of lists."""
    is_listing: bool = False
    """Whether its last line was one of a list."""


@dataclass
class Surveyed:
    """What a file holds: a survey of each kind, and lines of kinds that we do not use."""

    kinds: dict[str, Survey] = field(default_factory=dict)
    others: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Other kind -> lines, and when the first of them was observed."""
    good: int = 0
    fault: str = "other_file"
    """Why the file is not used, where it has no good line."""
    first: int | None = None
    last: int | None = None
    """When its lines were observed, of whatever kind."""


def _no_rows(table: str) -> Iterator[dict[str, Any]]:
    del table
    yield from ()


@dataclass
class Memory:
    """What the lake has of a spool already, and what this reading takes of it."""

    spool: str = ""
    """The spool's own name."""
    last: str = ""
    """The last segment that the lake has; segments are taken in order."""
    newest: int = 0
    """When its newest line was observed."""
    surveys: dict[str, dict[str, Survey]] = field(default_factory=dict)
    """Segment -> kind -> survey: of the first ones, and of those that the window may need."""
    rows: Callable[[str], Iterator[dict[str, Any]]] = _no_rows
    """Raw table -> the newest row of each object that was not deleted, as the parser gave it."""
    taken: dict[str, Surveyed] = field(default_factory=dict)
    """Segment -> what it holds, of those that were read."""


def packed(kinds: dict[str, Survey]) -> str:
    """The surveys of a file as text."""
    told = {
        kind: [s.first, s.last, s.is_watched, s.is_listing, [list(run) for run in s.runs]]
        for kind, s in kinds.items()
    }
    return orjson.dumps(told).decode()


def unpacked(text: str) -> dict[str, Survey]:
    """The surveys that `packed` gave."""
    return {
        kind: Survey(first, last, [Run(*run) for run in runs], is_watched, is_listing)
        for kind, (first, last, is_watched, is_listing, runs) in orjson.loads(text).items()
    }
