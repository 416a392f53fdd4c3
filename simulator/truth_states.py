"""The truth of holds: which share of which node, from when to when, in which state.

What is booked of them, and what nobody holds, belongs to `truth_ledger`.
"""

from bisect import bisect_right
from dataclasses import dataclass

from simulator.nodes import GPU
from simulator.truth_facts import NEVER, WHOLE, Facts, NodeFacts, Run, share, version_at
from simulator.truth_starting import starting

State = tuple[str, str]


@dataclass(eq=False)
class Hold:
    """A pod's share of a node, or of one card of it."""

    id: str
    facts: Facts
    team: str
    node: NodeFacts | None
    node_name: str
    bound: int
    begin: int
    end: int
    micro: int
    card: str
    states: list[tuple[int, State]]


def holds(
    pod: Facts,
    team: str,
    nodes: list[NodeFacts],
    window: tuple[int, int],
    loading: int,
    days: list[Run],
) -> list[Hold]:
    """The holds of a pod inside the window; none where the kubelet refused it."""
    if pod.bound is None or not pod.units or pod.pod.seen.is_refused:
        return []
    begin = max(pod.bound, window[0])
    end = min(NEVER if pod.ended is None else pod.ended, window[1])
    if begin >= end:
        return []
    name = pod.pod.seen.node_name
    known = [n for n in nodes if n.begin <= pod.bound]
    node = max(known, key=lambda n: n.begin) if known else None
    states = _states(pod, node, begin, end, loading, days)
    return [
        Hold(
            f"{pod.uid}/{resource}" + (f"/{card}" if card else ""),
            pod,
            team,
            node,
            name,
            pod.bound,
            begin,
            end,
            micro,
            card,
            states,
        )
        for resource, card, micro in _shares(pod, node)
    ]


def _shares(pod: Facts, node: NodeFacts | None) -> list[tuple[str, str, int]]:
    resource = pod.pod.resource
    if pod.pod.entries:
        memory = node.node.model.memory_mib if node else 1
        return [
            (GPU, card, min(WHOLE, max(mib * WHOLE // memory, cores * WHOLE // 100)))
            for card, mib, cores in pod.pod.entries
        ]
    if node is None:
        return [(resource, "", pod.units * WHOLE)]
    version = version_at(node.node, pod.bound or 0, resource)
    return [(resource, "", pod.units * share(node.node, version, resource))]


def _states(
    pod: Facts, node: NodeFacts | None, begin: int, end: int, loading: int, days: list[Run]
) -> list[tuple[int, State]]:
    """From when on which state, inside the hold."""
    waiting = pod.pod.seen.waiting
    spells = pod.attempt.spells if pod.attempt else []
    node_spells = node.spells if node else []
    ready = pod.pod.seen.ready
    times = {begin, pod.asked, ready}
    times |= {t for run in pod.runs for t in run} | {t for t, _ in waiting}
    times |= {t for t, _ in spells} | {s.begin for s in node_spells}
    causes = starting(pod, begin, end, days)
    times |= {t for t, _ in causes}
    cause_at = [t for t, _ in causes]
    first = pod.first_run
    if first is not None:
        times.add(first + loading)
    waiting_at, gang_at = [t for t, _ in waiting], [t for t, _ in spells]
    node_at = [s.begin for s in node_spells]

    def state(now: int) -> State:
        if pod.asked is not None and now >= pod.asked:
            return "terminating", "none"
        if not pod.is_running(now):
            told = bisect_right(waiting_at, now) - 1
            cause = waiting[told][1] if told >= 0 else "undetermined"
            if first is not None and now >= first:
                return "starting", "crash_loop" if cause == "crash_loop" else "restart"
            return "starting", causes[bisect_right(cause_at, now) - 1][1]
        told = bisect_right(gang_at, now) - 1
        if told >= 0 and spells[told][1]:
            return "gang_wait", spells[told][1]
        if pod.workload_class == "inference" and first is not None:
            is_ready = ready is not None and now >= ready
            if not is_ready and now < first + loading:
                return "loading", "none"
        told = bisect_right(node_at, now) - 1
        is_up = told < 0 or node_spells[told].is_ready
        return "unobserved", "no_series" if is_up else "node_not_ready"

    found: list[tuple[int, State]] = []
    for now in sorted(t for t in times if t is not None and begin <= t < end):
        now_state = state(now)
        if not found or found[-1][1] != now_state:
            found.append((now, now_state))
    return found
