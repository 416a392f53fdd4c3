"""The truth of attempts: which pods tried together, when they were whole, how long they waited.

The state of a held second belongs to `truth_states`, the facts of one pod to `truth_facts`.
"""

from collections import defaultdict
from dataclasses import dataclass, field

from simulator.groups import Group
from simulator.truth_facts import Facts
from simulator.world import World


@dataclass(eq=False)
class Attempt:
    """One try of a workload: its pods, and the PodGroup that they wait in."""

    workload: str
    pods: list[Facts]
    group: Group | None
    is_first: bool
    before: "Attempt | None" = None
    spells: list[tuple[int, str]] = field(default_factory=list)
    """From when on the gang waits for what; '' while it does not."""

    @property
    def size(self) -> int:
        """Members that start together."""
        return self.group.size if self.group else 1

    def whole(self) -> None:
        """Follow the gang through its life."""
        if self.size < 2:
            return
        times: set[int] = set()
        for pod in self.pods:
            times |= {pod.created}
            times |= {t for t in (pod.bound, pod.ended, pod.finished) if t is not None}
            times |= {t for run in pod.runs for t in run}
        is_complete = False
        for now in sorted(times):
            exist = placed = running = 0
            for pod in self.pods:
                if pod.has_succeeded(now):
                    exist, placed, running = exist + 1, placed + 1, running + 1
                elif pod.created <= now and (pod.ended is None or now < pod.ended):
                    exist += 1
                    placed += pod.bound is not None and pod.bound <= now
                    running += pod.is_running(now)
            is_complete = is_complete or running >= self.size
            if is_complete:
                cause = "member_lost" if running < self.size else ""
            elif exist < self.size:
                cause = "member_not_created"
            elif placed < self.size:
                cause = "member_unplaced"
            else:
                cause = "member_starting"
            if not self.spells or self.spells[-1][1] != cause:
                self.spells.append((now, cause))


def attempts(pods: list[Facts], world: World) -> list[Attempt]:
    """All attempts that the record knows of, PodGroups that never had a pod among them."""
    found: list[Attempt] = []
    by_workload: dict[str, list[Facts]] = defaultdict(list)
    for pod in sorted(pods, key=lambda p: (p.created, p.uid)):
        if pod.is_service:
            found.append(Attempt(pod.workload, [pod], None, True))
        else:
            by_workload[pod.workload].append(pod)
    for workload, members in by_workload.items():
        tries = [Attempt(workload, [members[0]], members[0].group, True)]
        for number, pod in enumerate(members[1:], 1):
            earlier = members[:number]
            if all(p.gone is not None and p.gone <= pod.created for p in earlier):
                tries.append(Attempt(workload, [pod], pod.group, False, tries[-1]))
            else:
                tries[-1].pods.append(pod)
        found += tries
    for attempt in found:
        attempt.whole()
        for pod in attempt.pods:
            pod.attempt = attempt
    for group in world.all_groups:
        if group.first is not None and group.workload not in by_workload:
            found.append(Attempt(group.workload, [], group, True))
    return found


Wait = tuple[object, ...]
WAIT_COLUMNS = (
    "workload",
    "attempt",
    "queue",
    "queued_at",
    "admitted_at",
    "placed_at",
    "started_at",
    "ended_at",
    "outcome",
    "gang_size",
    "asks_gpu",
)


def waits(tries: list[Attempt]) -> list[Wait]:
    """One row for each attempt."""
    rows = [_wait(attempt) for attempt in tries]
    return sorted(rows, key=lambda row: (str(row[0]), str(row[3]), str(row[1])))


def _nth(times: list[int | None], n: int, least: int) -> int | None:
    known = sorted(t for t in times if t is not None)
    return max(known[n - 1], least) if len(known) >= n else None


def _wait(attempt: Attempt) -> Wait:
    pods, group = attempt.pods, attempt.group
    first = min(pods, key=lambda p: (p.created, p.uid)) if pods else None
    if attempt.is_first and first and first.submitted is not None:
        queued = first.submitted
    elif group and attempt.is_first:
        queued = group.created // 1_000_000
    elif group and attempt.before:
        queued = max(p.gone for p in attempt.before.pods if p.gone is not None)
    else:
        assert first
        queued = first.created
    placed = _nth([p.bound for p in pods], attempt.size, queued)
    started = None
    if placed is not None:
        started = _nth([p.first_run for p in pods], attempt.size, placed)
    admitted = None
    if group:
        told = (t for t, phase in group.phases if t >= queued and phase in ("Inqueue", "Running"))
        admitted = next(told, None)
        if admitted is not None and placed is not None and admitted > placed:
            admitted = None
    ended = None
    if pods:
        ends = [p.gone for p in pods]
        if None not in ends:
            ended = max(e for e in ends if e is not None)
    elif group:
        ended = group.deleted
    outcome = "served" if placed is not None else "waiting" if ended is None else "left"
    queue = group.queue if group else first.queue if first else ""
    asks = bool(group.resource) if group else any(p.units for p in pods)
    uid = first.uid if first else group.uid if group else ""
    times = ("" if t is None else t for t in (queued, admitted, placed, started, ended))
    return (attempt.workload, uid, queue, *times, outcome, attempt.size, int(asks))
