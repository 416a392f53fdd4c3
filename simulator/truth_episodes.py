"""The truth of episodes and findings: idle and stalled GPUs, pods too large, use without a hold.

The states that they are made of are in `truth_gpus`.
"""

from dataclasses import dataclass
from itertools import pairwise

from simulator.truth_facts import Run
from simulator.truth_gpus import EDGE_SECONDS, IDLE_SECONDS, STALLED_SECONDS, Held, kind

EPISODE_SECONDS = 1800
ACTIVE_SHARE = 0.01
BEAT_SECONDS, SAMPLE_SECONDS = 10, 30
NATURAL = {"inference": "no_requests", "interactive": "interactive"}


@dataclass(frozen=True)
class Episode:
    """A GPU that its holder had and did not use."""

    held: Held
    since: int  # its containers ran, and it was not used
    begin: int  # the same, when it no longer counted as loading
    end: int
    is_open: bool
    cause: str
    context: str
    beats: int
    is_sure: bool


def idle(held: Held, last: int) -> list[Episode]:
    """Half an hour or more with less than a hundredth of it active, region by region."""
    found: list[Episode] = []
    for region in held.regions:
        group: list[Run] = []
        for run in [*_quiet(held, region), None]:
            if group and (run is None or not _goes_on([*group, run])):
                found += _episode(held, region, group, last)
                group = []
            if run:
                group.append(run)
    return found


def _quiet(held: Held, region: Run) -> list[Run]:
    found = []
    for stretch in held.watched.stretches:
        begin, end = max(stretch.begin, region[0]), min(stretch.end, region[1])
        if stretch.kind == "quiet" and end - begin >= IDLE_SECONDS:
            found.append((begin, end))
    return found


def _active(group: list[Run]) -> list[int]:
    return [later[0] - earlier[1] for earlier, later in pairwise(group)]


def _goes_on(group: list[Run]) -> bool:
    return sum(_active(group)) < ACTIVE_SHARE * (group[-1][1] - group[0][0])


def _episode(held: Held, region: Run, group: list[Run], last: int) -> list[Episode]:
    since, end = group[0][0], group[-1][1]
    if end - since < EPISODE_SECONDS:
        return []
    begin = min(max(since, held.loaded), end)
    beats = _active(group)
    read = [SAMPLE_SECONDS if b < BEAT_SECONDS else b + EDGE_SECONDS for b in beats]
    away = [w for w in held.watched.blind if w[0] < end and since < w[1]]
    is_sure = (
        sum(read) < ACTIVE_SHARE * (end - since)
        and end - begin > EPISODE_SECONDS + EDGE_SECONDS
        and not any(b - a > EDGE_SECONDS for a, b, _ in away)
        and all(p.sharers == 1 for p in held.pieces if p.begin < end and since < p.end)
    )
    middle = (since + end) // 2
    with_context = any(a <= middle < b for s in held.watched.stretches for a, b in s.context)
    return [
        Episode(
            held=held,
            since=since,
            begin=begin,
            end=end,
            is_open=end >= last,
            cause=_cause(held, since, end),
            context="memory_held" if with_context else "empty",
            beats=len(beats),
            is_sure=is_sure,
        )
    ]


def _cause(held: Held, begin: int, end: int) -> str:
    """Why, as the one who wrote the script knows it."""
    best, most = NATURAL.get(held.play.kind, "unknown"), 0
    for change in held.play.changes:
        over = min(change.end, end) - max(change.begin, begin)
        is_here = change.only is None or held.number in change.only
        if change.cause and is_here and over > most:
            best, most = change.cause, over
    return best


def stalled(held: Held) -> list[tuple[Run, str, bool]]:
    """Ten minutes or more in which kernels run and nothing is done; by which kernel."""
    found = []
    for stretch in held.watched.stretches:
        if stretch.kind != "stalled":
            continue
        for region in held.regions:
            begin, end = max(stretch.begin, region[0]), min(stretch.end, region[1])
            if end - begin < STALLED_SECONDS:
                continue
            blind = held.watched.blind
            away = any(a < end and begin < b and b - a > EDGE_SECONDS for a, b, _ in blind)
            segments = held.watched.track.segments
            name = next(s.phase.name for s in segments if s.end > begin)
            is_sure = end - begin > STALLED_SECONDS + EDGE_SECONDS and not away
            found.append(((begin, end), name, is_sure))
    return found


def unused(mine: list[Held]) -> list[Held]:
    """Of a pod's GPUs, those that never worked while others did; when one breaks, all stop."""
    if len(mine) < 2 or any(map(_is_broken, mine)):
        return []
    works = [h.watched.is_active(h.hold.begin, h.hold.end) for h in mine]
    return [h for h, has in zip(mine, works, strict=True) if not has] if any(works) else []


def _is_broken(held: Held) -> bool:
    """At some time of the hold."""
    faults = held.watched.track.device.card.faults
    return any(f.begin < held.hold.end and held.hold.begin < f.end for f in faults)


def without_nvlink(held: Held) -> int:
    """Seconds in which a GPU of several worked over PCIe, and NVLink was silent."""
    return sum(
        min(s.end, held.hold.end) - max(s.begin, held.hold.begin)
        for s in held.watched.track.segments
        if kind(s) == "active"
        and not s.phase.nvlink
        and s.phase.rx + s.phase.tx > 5e9
        and s.begin < held.hold.end
        and held.hold.begin < s.end
    )
