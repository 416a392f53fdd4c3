"""The truth of the ledger: per node, what is booked of the holds and what nobody holds, and why.

What a hold is belongs to `truth_states`, what it costs to `truth_money`.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise

from simulator.truth_facts import WHOLE, NodeFacts, Run
from simulator.truth_states import Hold

Key = tuple[str, str, str, str, str]  # hold id, holder, workload, state, cause
Row = tuple[int, int, Key, int]  # begin, end, key, micro-GPU
Lost = tuple[str, int, int, Hold, str, int]  # node uid, begin, end, hold, reason, micro-GPU


@dataclass(eq=False)
class Record:
    """What the whole cluster's record says of time."""

    window: Run
    before: Run  # until the first list of pods
    gaps: list[Run]
    pending: list[Run]  # when a pod that asks for GPUs was pending


class Rows:
    """Rows of one node; stretches that go on unchanged become one row."""

    def __init__(self) -> None:
        self.done: list[Row] = []
        self._open: dict[Key, tuple[int, int, int]] = {}

    def put(self, begin: int, end: int, parts: dict[Key, int]) -> None:
        """What holds in a stretch; stretches come in order."""
        going: dict[Key, tuple[int, int, int]] = {}
        for key, micro in parts.items():
            before = self._open.pop(key, None)
            if before and before[1] == begin and before[2] == micro:
                going[key] = (before[0], end, micro)
            else:
                if before:
                    self.done.append((before[0], before[1], key, before[2]))
                going[key] = (begin, end, micro)
        self._close()
        self._open = going

    def _close(self) -> None:
        for key, (begin, end, micro) in self._open.items():
            self.done.append((begin, end, key, micro))

    def all(self) -> list[Row]:
        """Every row, by begin."""
        self._close()
        self._open = {}
        return sorted(self.done)


def ledger(
    node: NodeFacts, holds: list[Hold], record: Record, days: list[Run]
) -> tuple[list[Row], list[Lost]]:
    """All rows of one node, and what of its holds is not booked."""
    begin, end = max(node.begin, record.window[0]), min(node.end, record.window[1])
    lost: list[Lost] = [
        (node.node.uid, max(h.begin, node.end), h.end, h, "node_gone", h.micro)
        for h in holds
        if h.end > node.end
    ]
    cuts = {begin, end} | {day for day, _ in days} | {s.begin for s in node.spells}
    starts: dict[int, list[Hold]] = defaultdict(list)
    ends: dict[int, list[Hold]] = defaultdict(list)
    changes: dict[int, list[tuple[Hold, tuple[str, str]]]] = defaultdict(list)
    for hold in holds:
        cuts |= {hold.begin, hold.end} | {t for t, _ in hold.states}
        starts[hold.begin].append(hold)
        ends[hold.end].append(hold)
        for when, told in hold.states:
            changes[when].append((hold, told))
    for gap in (record.before, *record.gaps):
        cuts |= set(gap)
    rows = Rows()
    active: dict[str, Hold] = {}
    state: dict[str, tuple[str, str]] = {}
    spell, number = 0, 0
    ordered = sorted(c for c in cuts if begin <= c <= end)
    for now, until in pairwise(ordered):
        for hold in ends.get(now, ()):
            active.pop(hold.id, None)
        for hold in starts.get(now, ()):
            active[hold.id] = hold
        for hold, told in changes.get(now, ()):
            state[hold.id] = told
        while spell + 1 < len(node.spells) and node.spells[spell + 1].begin <= now:
            spell += 1
        number = node.installed_at(now) * WHOLE
        parts, missing = _book(node, active, state, number, now, until, lost)
        _rest(node, spell, number, now, until, parts, missing, record, rows)
    return rows.all(), lost


def _book(
    node: NodeFacts,
    active: dict[str, Hold],
    state: dict[str, tuple[str, str]],
    installed: int,
    now: int,
    until: int,
    lost: list[Lost],
) -> tuple[dict[Key, int], int]:
    """What is booked, and what is missing to whole GPUs."""
    if node.node.cards:
        cards: dict[str, int] = defaultdict(int)
        for hold in active.values():
            cards[hold.card] += hold.micro
        wants = {
            id_: h.micro * WHOLE // cards[h.card] if cards[h.card] > WHOLE else h.micro
            for id_, h in active.items()
        }
    else:
        wants = {id_: h.micro for id_, h in active.items()}
    if sum(wants.values()) > installed:
        left = installed
        for hold in sorted(active.values(), key=lambda h: (h.bound, h.id), reverse=True):
            booked = min(left, wants[hold.id])
            left -= booked
            if booked < wants[hold.id]:
                why = "overlap" if installed else "not_installed"
                over = wants[hold.id] - booked
                lost.append((node.node.uid, now, until, hold, why, over))
            wants[hold.id] = booked
    parts: dict[Key, int] = {}
    used: dict[str, int] = defaultdict(int)
    for id_, micro in wants.items():
        if micro:
            hold = active[id_]
            parts[(id_, hold.team, hold.facts.workload, *state[id_])] = micro
            used[hold.card] += micro
    return parts, sum(-micro % WHOLE for micro in used.values())


def _rest(
    node: NodeFacts,
    spell: int,
    installed: int,
    now: int,
    until: int,
    parts: dict[Key, int],
    missing: int,
    record: Record,
    rows: Rows,
) -> None:
    """Why what is not booked is not, and the stretch's rows."""
    rest = installed - sum(parts.values())
    unrecorded = ""
    if rest > 0 and record.before[0] <= now < record.before[1]:
        unrecorded = "before_first_seen"
    elif rest > 0 and any(a <= now < b for a, b in record.gaps):
        unrecorded = "recorder_gap"
    if unrecorded:
        parts[("", "__unknown__", "", "unrecorded", unrecorded)] = rest
        rest = 0
    if rest > 0:
        known = node.spells[spell]
        away = rest if known.is_all else min(rest, known.missing)
        if away:
            parts[("", "__unavailable__", "", "unavailable", known.cause)] = away
            rest -= away
    part = min(rest, missing)
    if part > 0:
        parts[("", "__unallocated__", "", "unallocated", "partition_remainder")] = part
        rest -= part
    if rest <= 0:
        if parts:
            rows.put(now, until, parts)
        return
    for begin, end, is_pending in spans(record.pending, now, until):
        cause = "undetermined" if is_pending else "no_demand"
        rows.put(begin, end, {**parts, ("", "__unallocated__", "", "unallocated", cause): rest})


def spans(runs: list[Run], begin: int, end: int) -> list[tuple[int, int, bool]]:
    """A stretch cut by where sorted runs lie in it."""
    found: list[tuple[int, int, bool]] = []
    index = max(0, bisect_right(runs, (begin, begin)) - 1)
    last = bisect_left(runs, (end, 0))
    for a, b in runs[index:last]:
        a, b = max(a, begin), min(b, end)
        if a >= b:
            continue
        if begin < a:
            found.append((begin, a, False))
        found.append((a, b, True))
        begin = b
    if begin < end:
        found.append((begin, end, False))
    return found


def union(runs: list[Run]) -> list[Run]:
    """Runs without overlap, in order."""
    found: list[Run] = []
    for begin, end in sorted(r for r in runs if r[0] < r[1]):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((begin, end))
    return found
