"""The truth of gangs that stall: partial ones, deadlocks, livelocks, members who wait for others.

Every stretch is told, however short; from when on one is worth a finding is for its reader.
When a gang was whole, and what its members wait for meanwhile, belongs to `truth_attempts`.
"""

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise

from simulator.nodes import GPU
from simulator.truth_attempts import Attempt
from simulator.truth_facts import NEVER, Facts, Run
from simulator.world import World

GANG_COLUMNS = ("finding", "workload", "attempt", "begin", "end", "is_open", "size", "members")
LIVELOCK = 3
"""So many partial starts in a day, none complete."""


@dataclass(eq=False)
class Partial:
    """A stretch in which a gang that was never complete holds a part of what it needs."""

    attempt: Attempt
    begin: int
    end: int
    members: list[Facts]

    @property
    def pool(self) -> str:
        """Where all of its members go."""
        return self.attempt.pods[0].pod.pool


def gangs(tries: list[Attempt], world: World, window: Run, days: list[Run]) -> list[tuple]:
    """One row for each stretch of each gang."""
    wanted = [t for t in tries if t.size > 1 and any(p.units for p in t.pods)]
    partials = [p for attempt in wanted for p in _partials(attempt, window)]
    rows = [_row("gang_partial", p.attempt, (p.begin, p.end), window, p.members) for p in partials]
    for attempt in wanted:
        rows += _rendezvous(attempt, window)
    rows += _deadlocks(partials, world, window)
    rows += _livelocks(partials, wanted, days, window)
    return sorted(rows, key=lambda row: (row[3], row[0], str(row[1]), str(row[2])))


def _row(
    finding: str, attempt: Attempt, when: Run, window: Run, members: list[Facts]
) -> tuple[object, ...]:
    names = " ".join(sorted({p.pod.name for p in members}))
    first = min(attempt.pods, key=lambda p: (p.created, p.uid)).uid
    is_open = int(when[1] >= window[1])
    return (finding, attempt.workload, first, *when, is_open, attempt.size, names)


def _holds(pod: Facts, now: int) -> bool:
    gone = NEVER if pod.gone is None else pod.gone
    is_held = pod.bound is not None and not pod.pod.seen.is_refused
    return is_held and (pod.bound or 0) <= now < gone


def _complete(attempt: Attempt) -> int:
    """When the gang was first complete."""
    return next((t for t, cause in attempt.spells if cause in ("", "member_lost")), NEVER)


def _times(attempt: Attempt) -> set[int]:
    return {t for p in attempt.pods for t in (p.created, p.bound, p.gone) if t is not None}


def _partials(attempt: Attempt, window: Run) -> list[Partial]:
    found: list[Partial] = []
    last = min(_complete(attempt), window[1])
    times = sorted(t for t in _times(attempt) | {last, window[0]} if window[0] <= t <= last)
    for now, until in pairwise(times):
        members = [p for p in attempt.pods if _holds(p, now)]
        placed = len(members) + sum(p.has_succeeded(now) for p in attempt.pods)
        if members and placed < attempt.size:
            if found and found[-1].end == now:
                found[-1].end = until
                found[-1].members += members
            else:
                found.append(Partial(attempt, now, until, members))
    return found


def _rendezvous(attempt: Attempt, window: Run) -> list[tuple[object, ...]]:
    """From the first member that ran until as many as are needed had, or all have gone."""
    ran = [p for p in attempt.pods if p.first_run is not None]
    firsts = sorted(p.first_run for p in ran if p.first_run is not None)
    if not firsts:
        return []
    gone = max(window[1] if p.gone is None else p.gone for p in ran)
    end = firsts[attempt.size - 1] if len(firsts) >= attempt.size else gone
    begin, end = max(firsts[0], window[0]), min(end, window[1])
    if begin >= end:
        return []
    waited = [p for p in ran if p.first_run is not None and p.first_run < end]
    return [_row("rendezvous_wait", attempt, (begin, end), window, waited)]


def _deadlocks(partials: list[Partial], world: World, window: Run) -> list[tuple[object, ...]]:
    """Gangs of which none could be whole even if all else in their pool ended."""
    found: list[tuple[object, ...]] = []
    pools: dict[str, list[Partial]] = defaultdict(list)
    for partial in partials:
        pools[partial.pool].append(partial)
    for pool, here in pools.items():
        counts = {n.name: n.count for n in world.all_nodes if n.pool == pool}
        times = {t for p in here for t in (p.begin, p.end)}
        times |= {t for p in here for t in _times(p.attempt) if p.begin <= t < p.end}
        going: dict[int, list[int]] = {}
        for now, until in pairwise(sorted(times)):
            alive = [p for p in here if p.begin <= now < p.end]
            for partial in _stuck(alive, counts, now):
                spell = going.get(id(partial))
                if spell and spell[1] == now:
                    spell[1] = until
                else:
                    going[id(partial)] = [now, until]
        for partial in here:
            if spell := going.get(id(partial)):
                when = (spell[0], spell[1])
                row = _row("gang_deadlock", partial.attempt, when, window, partial.members)
                found.append(row)
    return found


def _stuck(alive: list[Partial], counts: dict[str, int], now: int) -> list[Partial]:
    """Those left when every one that could be whole has been, and has gone."""
    left = [p for p in alive if p.attempt.pods[0].pod.resource == GPU and _waits(p.attempt, now)]
    while left:
        room = dict(counts)
        for partial in left:
            for pod in partial.attempt.pods:
                if _holds(pod, now):
                    room[pod.pod.node_name] = room.get(pod.pod.node_name, 0) - pod.units
        fits = next((p for p in left if _fits(p.attempt, room, now)), None)
        if fits is None:
            return left if len(left) > 1 else []
        left.remove(fits)
    return []


def _waits(attempt: Attempt, now: int) -> bool:
    """A member is there and has no place."""
    return any(
        p.created <= now and not _holds(p, now) and (p.gone is None or now < p.gone)
        for p in attempt.pods
    )


def _fits(attempt: Attempt, room: dict[str, int], now: int) -> bool:
    units = attempt.pods[0].units
    missing = attempt.size - sum(_holds(p, now) for p in attempt.pods)
    return sum(max(0, free) // units for free in room.values()) >= missing


def _livelocks(
    partials: list[Partial], tries: list[Attempt], days: list[Run], window: Run
) -> list[tuple[object, ...]]:
    """A gang that starts again and again on a day, and is never whole."""
    found: list[tuple[object, ...]] = []
    for begin, end in days:
        starts: dict[str, list[Partial]] = defaultdict(list)
        for partial in partials:
            if partial.begin < end and partial.end > begin and partial.end < window[1]:
                starts[partial.attempt.workload].append(partial)
        for workload, mine in starts.items():
            whole = any(
                t.workload == workload and any(cause == "" and at < end for at, cause in t.spells)
                for t in tries
            )
            if len({id(p.attempt) for p in mine}) >= LIVELOCK and not whole:
                when = (max(begin, mine[0].begin), min(end, max(p.end for p in mine)))
                members = [pod for p in mine for pod in p.members]
                found.append(_row("gang_livelock", mine[0].attempt, when, window, members))
    return found
