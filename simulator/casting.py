"""Which pod plays which part: what each process did with its GPUs, and why a GPU of it was idle.

It has random numbers of its own, and looks at the events only after they have happened, so that no
event depends on it. The scripts are in `scripts`; who held what in `gpus`.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from random import Random

from simulator import phases
from simulator.clock import SECOND
from simulator.gpus import Device, GpuCard, Use, beat_at
from simulator.pods import Pod
from simulator.scripts import Change, Segment, batch, changed, follow, notebook, serving, training
from simulator.truth_facts import Run, both
from simulator.world import World

LONG = 95 * 60
"""A run this long has room for something to go wrong for more than half an hour."""
PARTS = {
    "training": (
        *("normal", "stall_collective", "work_ended", "normal", "waiting_for_input"),
        *("broken", "never_worked", "normal", "waiting_for_peers"),
    ),
    "batch": (
        *("normal", "never_worked", "work_ended", "normal", "waiting_for_input", "broken"),
        *("normal", "work_ended", "over_sized", "nvlink_silent"),
    ),
    "inference": ("normal", "stall_spin", "normal"),
}


@dataclass(frozen=True)
class Xid:
    """An error that the driver told of."""

    at: int
    card: GpuCard
    code: int
    kind: str  # fatal, application, cleanup


@dataclass(eq=False)
class Play:
    """A pod's part: what happened on each of its devices, in whole seconds."""

    pod: Pod
    kind: str  # class of its workload
    part: str
    devices: list[tuple[Device, Use]]
    runs: list[Run]
    segments: list[list[Segment]] = field(default_factory=list)
    """Of each device."""
    changes: list[Change] = field(default_factory=list)
    xids: list[Xid] = field(default_factory=list)

    @property
    def end(self) -> int:
        """When it gave back the last of its devices."""
        return max(use.end for _, use in self.devices)

    @property
    def has_nvlink(self) -> bool:
        """Its GPUs could talk over NVLink."""
        card = self.devices[0][0].card
        return len(self.devices) > 1 and card.model.name in phases.HAS_NVLINK


def kind_of(pod: Pod) -> str:
    """The class of its workload."""
    for start, kind in (("notebooks-", "interactive"), ("serving-", "inference")):
        if pod.namespace.startswith(start):
            return kind
    return pod.owner.workload_class if pod.owner else "unknown"


def cast(world: World, cards: list[GpuCard]) -> list[Play]:
    """Every pod that held a GPU, and what it did there."""
    held: dict[str, list[tuple[Device, Use]]] = defaultdict(list)
    for card in cards:
        for device in card.devices:
            for use in device.uses:
                held[use.pod.uid].append((device, use))
    pods = [p for p in world.all_pods if p.uid in held]
    pods.sort(key=lambda p: (p.devices_from or 0, p.uid))
    gangs: dict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        if pod.owner and pod.group and pod.group.size > 1:
            gangs[pod.owner.uid].append(pod)
    director = Director(world, gangs)
    return [director.play(pod, held[pod.uid]) for pod in pods]


def runs_of(pod: Pod, end: int) -> list[Run]:
    """When all containers with a GPU ran in truth, whoever was told."""
    last = min(t for t in (pod.devices_until, end * SECOND) if t is not None) // SECOND
    found: list[Run] | None = None
    for container in pod.asking():
        mine = [(b, last if e is None else min(e, last)) for b, e in container.runs]
        found = mine if found is None else both(found, mine)
    return [(b, e) for b, e in found or [] if b < e]


class Director:
    """Deals out the parts of one cluster."""

    def __init__(self, world: World, gangs: dict[str, list[Pod]]):
        self.world, self.gangs = world, gangs
        self.end = world.end // SECOND
        self.seed = f"{world.seed}/{world.name}/work"
        self.next: dict[str, int] = {}
        self.parts: dict[str, str] = {}
        order = Random(self.seed)
        self.line = {kind: order.sample(parts, len(parts)) for kind, parts in PARTS.items()}

    def play(self, pod: Pod, devices: list[tuple[Device, Use]]) -> Play:
        """One pod's part."""
        rng = Random(f"{self.seed}/{pod.uid}")
        kind = kind_of(pod)
        play = Play(pod, kind, "normal", devices, runs_of(pod, self.end))
        gang = self.gangs.get(pod.owner.uid if pod.owner else "", [])
        whole = self._whole(pod, gang) if gang else None
        base: list[Segment] = []
        longest = (0, 0)
        for begin, end in play.runs:
            spells = both([(begin, end)], whole) if whole is not None else [(begin, end)]
            longest = max([longest, *spells], key=lambda run: run[1] - run[0])
        play.part = self._part(play, gang, longest[1] - longest[0])
        for run in play.runs:
            base += self._run(play, run, whole, rng)
        play.changes = list(self._changes(play, gang, longest, rng))
        for number in range(len(devices)):
            segments = base
            for change in play.changes:
                if change.only is None or number in change.only:
                    segments = changed(segments, change)
            play.segments.append(segments)
        return play

    def _whole(self, pod: Pod, gang: list[Pod]) -> list[Run]:
        """When enough members ran at the same time as this one."""
        assert pod.group
        steps: list[tuple[int, int]] = []
        for member in gang:
            for begin, end in runs_of(member, self.end):
                steps.append((begin, 1))
                if not (member.phase == "Succeeded" and end == runs_of(member, self.end)[-1][1]):
                    steps.append((end, -1))
        found: list[Run] = []
        running, since = 0, 0
        for now, step in [*sorted(steps), (self.end, -len(gang))]:
            was, running = running, running + step
            if was < pod.group.size <= running:
                since = now
            elif running < pod.group.size <= was and since < now:
                found.append((since, now))
        return found

    def _part(self, play: Play, gang: list[Pod], seconds: int) -> str:
        pod, device = play.pod, play.devices[0][0]
        if pod.plan.part:
            return pod.plan.part if seconds > 2400 else "normal"
        if seconds < LONG or play.kind not in PARTS or device.replicas > 1:
            return "normal"
        key = pod.owner.uid if gang and pod.owner else pod.uid
        if key not in self.parts:
            number = self.next[play.kind] = self.next.get(play.kind, -1) + 1
            self.parts[key] = self.line[play.kind][number % len(self.line[play.kind])]
        part = self.parts[key]
        if part == "waiting_for_peers" and len(gang) < 2:
            return "stall_spin" if not device.profile else "normal"
        if part in ("over_sized", "nvlink_silent") and not play.has_nvlink:
            return "normal"
        return part

    def _run(self, play: Play, run: Run, whole: list[Run] | None, rng: Random) -> list[Segment]:
        """The script of one run, before anything goes wrong."""
        begin, end = run
        pod = play.pod
        phase = phases.TRAIN if play.has_nvlink else phases.TRAIN_ALONE
        if play.part == "nvlink_silent":
            phase = phases.TRAIN_PCIE
        if play.kind == "inference":
            return follow(serving(rng, begin, pod.plan.load or 60), begin, end)
        if play.kind == "interactive":
            return follow(notebook(rng), begin, end)
        if whole is None:
            steps = training(rng, phase) if play.kind == "training" or play.has_nvlink else None
            return follow(steps or batch(rng), begin, end)
        found: list[Segment] = []
        now = begin
        for since, until in both([run], whole):
            if now < since:
                found += self._alone(now, since, is_first=now == begin)
            found += follow(training(rng, phase), since, until)
            now = until
        return found + (self._alone(now, end, is_first=now == begin) if now < end else [])

    @staticmethod
    def _alone(begin: int, end: int, *, is_first: bool) -> list[Segment]:
        """A member without its gang: it looks for the others, or hangs in a collective."""
        if not is_first:
            return [Segment(begin, end, phases.COLLECTIVE, 0.86)]
        ready = min(end, begin + 25)
        found = [Segment(begin, ready, phases.IMPORTS, 0.0)]
        return found + ([Segment(ready, end, phases.PEERS, 0.01)] if ready < end else [])

    def _changes(self, play: Play, gang: list[Pod], run: Run, rng: Random):
        """What goes wrong, and when."""
        pod, part = play.pod, play.part
        begin, end = run
        if gang:  # the members share their fate
            rng = Random(f"{self.seed}/{pod.owner.uid if pod.owner else ''}/{begin}")
        at = begin + int((end - begin) * rng.uniform(0.3, 0.42))
        some = at + int(rng.uniform(42, 52) * 60)
        half = len(play.devices) // 2
        first = pod is min(gang, key=lambda p: p.name) or pod.name.endswith("-0") if gang else True
        match part:
            case "never_worked":
                phase = rng.choice((phases.EMPTY, phases.HELD))
                yield Change(begin + 35, end, phase, 0.02 * phase.has_context, part)
            case "work_ended":
                phase = rng.choice((phases.EMPTY, phases.HELD))
                yield Change(at, end, phase, 0.6 * phase.has_context, part)
            case "heartbeat":
                at = begin + (end - begin) // 8
                yield Change(at, end, phases.HELD, 0.6, "work_ended")
                now = at + 4500
                while now < end - 1800:
                    beat = beat_at(self.world, play.devices[0][0].card.node, now)
                    yield Change(beat, beat + 3, phases.BEAT, 0.6)
                    now += 4500 + rng.randrange(300)
            case "waiting_for_input":
                is_limited = "cpu" in pod.asking()[0].limits
                phase = phases.THROTTLED if is_limited else phases.READS
                yield Change(at, some, phase, 0.6, part)
            case "waiting_for_peers" if first:
                yield Change(at, some, phases.READS, 0.6, "waiting_for_input")
            case "waiting_for_peers":
                yield Change(at, some, phases.PEERS, 0.6, part)
            case "broken":
                yield Change(at, end, phases.HELD, 0.86, part)
                code = rng.choice((13, 31))
                play.xids.append(Xid(at, play.devices[0][0].card, code, "application"))
            case "stall_spin" | "stall_collective":
                phase = phases.SPIN if part == "stall_spin" else phases.COLLECTIVE
                yield Change(at, end if rng.random() < 0.5 else some, phase, 0.86)
            case "over_sized":
                only = range(max(half, 1), len(play.devices))
                for since, until in play.runs:
                    yield Change(since, until, phases.EMPTY, 0.0, "never_worked", only)
