"""Which stretches of time of which series are to be read now, and what is known of each.

Pure: no clock, no network; times are milliseconds since 1970. A stretch is (begin, end], for a
sample speaks for the time before it: what was stored at midnight belongs to the day that ends.
Complete says that all that the server had was read, not that it had anything.
"""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

from collectors.prometheus_selectors import Group

HOUR = 3_600_000
DAY = 24 * HOUR
SETTLE = 60_000
"""Younger samples may not all be there yet: a scrape is stored when it ends."""
REFRESH = 300_000
"""The open hour is read again after so long, and a failed stretch no sooner."""


class State(StrEnum):
    """What is known of a stretch."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    MISSING = "missing"
    OPEN = "open"


class Segment(NamedTuple):
    """Series and the stretch of at most an hour that is asked for."""

    group: Group
    begin: int
    end: int


class Stretch(NamedTuple):
    """What is known of series over (begin, end]."""

    group: Group
    begin: int
    end: int
    state: State
    reason: str = ""
    tries: int = 0
    """How often it was read in vain."""
    read_at: int = 0


Span = tuple[int, int]


def hours(begin: int, end: int) -> Iterator[Span]:
    """The stretch cut at full hours."""
    while begin < end:
        cut = min(end, begin - begin % HOUR + HOUR)
        yield begin, cut
        begin = cut


def without(span: Span, taken: Iterable[Span]) -> Iterator[Span]:
    """What is left of a span without those taken."""
    begin, end = span
    for taken_begin, taken_end in sorted(taken):
        if taken_end <= begin or taken_begin >= end:
            continue
        if begin < taken_begin:
            yield begin, taken_begin
        begin = max(begin, taken_end)
    if begin < end:
        yield begin, end


def is_due(stretch: Stretch, now: int) -> bool:
    """Whether what failed may be read again: after 5 minutes, then 10, at last once a day."""
    return now >= stretch.read_at + min(REFRESH << min(max(stretch.tries - 1, 0), 20), DAY)


def plan(
    groups: Iterable[Group], begin: int, end: int, known: Iterable[Stretch], now: int
) -> list[Segment]:
    """What to read now of (begin, end], oldest first; what is complete never again."""
    until = min(end, now - SETTLE)
    of_group = _by_group(known)
    found: list[Segment] = []
    for group in dict.fromkeys(groups):
        taken = [
            (s.begin, s.end)
            for s in of_group.get(group, ())
            if s.state is State.COMPLETE
            or (s.state in (State.PARTIAL, State.MISSING) and s.tries and not is_due(s, now))
        ]
        for hour in hours(begin, until):
            is_open = hour[1] == until < end and until % HOUR
            for left in without(hour, taken):
                if is_open and left[1] == until and until - left[0] < REFRESH:
                    continue
                found.append(Segment(group, *left))
    return sorted(found, key=lambda segment: segment.begin)


def learned(known: Iterable[Stretch], read: Iterable[Stretch], now: int) -> list[Stretch]:
    """What is known after stretches were read; each replaces what was known of its time."""
    of_group = _by_group(known)
    for stretch in read:
        before = of_group.get(stretch.group, [])
        span = (stretch.begin, stretch.end)
        overlapping = [s for s in before if s.begin < stretch.end and stretch.begin < s.end]
        is_whole = stretch.state is State.COMPLETE
        tries = 0 if is_whole else 1 + max((s.tries for s in overlapping), default=0)
        rest = [
            old._replace(begin=left[0], end=left[1])
            for old in before
            for left in without((old.begin, old.end), [span])
        ]
        of_group[stretch.group] = [*rest, stretch._replace(tries=tries, read_at=now)]
    return [joined for stretches in of_group.values() for joined in _joined(sorted(stretches))]


def tiled(
    groups: Iterable[Group], begin: int, end: int, known: Iterable[Stretch], now: int
) -> Iterator[Stretch]:
    """All of (begin, end], hour by hour: the states of what was read, open or missing else."""
    of_group = _by_group(known)
    for group in dict.fromkeys(groups):
        mine = sorted(of_group.get(group, ()))
        for hour in hours(begin, end):
            inside = [
                s._replace(begin=max(s.begin, hour[0]), end=min(s.end, hour[1]))
                for s in mine
                if s.begin < hour[1] and hour[0] < s.end
            ]
            is_open = hour[1] > now - SETTLE
            state, reason = (State.OPEN, "") if is_open else (State.MISSING, "not_read")
            unread = [
                Stretch(group, *left, state, reason)
                for left in without(hour, [(s.begin, s.end) for s in inside])
            ]
            yield from sorted([*inside, *unread])


def worst(states: Iterable[State]) -> State:
    """The state of a stretch of which parts were read apart: some there, some not is partial."""
    found = set(states)
    return found.pop() if len(found) == 1 else State.PARTIAL


def _by_group(known: Iterable[Stretch]) -> dict[Group, list[Stretch]]:
    found: dict[Group, list[Stretch]] = {}
    for stretch in known:
        found.setdefault(stretch.group, []).append(stretch)
    return found


def _joined(stretches: list[Stretch]) -> Iterator[Stretch]:
    """Complete neighbours of one hour as one, lest a day of refreshes leave 288 of them."""
    held: Stretch | None = None
    for stretch in stretches:
        if (
            held
            and held.state is stretch.state is State.COMPLETE
            and held.end == stretch.begin
            and held.end % HOUR
        ):
            held = held._replace(end=stretch.end, read_at=max(held.read_at, stretch.read_at))
            continue
        if held:
            yield held
        held = stretch
    if held:
        yield held
