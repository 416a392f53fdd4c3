"""The truth of GPUs: what each did while it was held, told in states, episodes and findings.

It is computed from what the simulated GPUs did, never from samples. The rules are those of the
product; where two samples at an edge could turn a verdict, or readings are missing there, the row
says that it is not to be scored.
"""

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise

from simulator.casting import Play
from simulator.exporters import Exporter
from simulator.scripts import Segment
from simulator.spoilt import Spoilt
from simulator.tracks import LOST, Track
from simulator.truth_facts import Run
from simulator.truth_ledger import union
from simulator.truth_states import Hold

IDLE_SECONDS, STALLED_SECONDS, EDGE_SECONDS = 300, 600, 60
LEAST = {"quiet": IDLE_SECONDS, "stalled": STALLED_SECONDS}


@dataclass(frozen=True)
class Stretch:
    """Time in which a device did one thing, as long as it lasted."""

    begin: int
    end: int
    kind: str  # active, quiet, stalled, lost
    context: tuple[Run, ...]
    """Where in it a process had a context."""

    def verdict(self, begin: int, end: int) -> str:
        """The state, if only this part of it counts."""
        long_enough = end - begin >= LEAST.get(self.kind, 0)
        names = {"quiet": "idle", "stalled": "stalled"}
        return names[self.kind] if self.kind in names and long_enough else "active"

    def is_sure(self, begin: int, end: int) -> bool:
        """Two samples more or less do not change the verdict."""
        least = LEAST.get(self.kind)
        return least is None or abs(end - begin - least) > EDGE_SECONDS


def kind(segment: Segment) -> str:
    """What a segment counts as."""
    if segment.phase is LOST:
        return "lost"
    if segment.phase.is_stalled:
        return "stalled"
    return "active" if segment.phase.is_active else "quiet"


def stretches(track: Track) -> list[Stretch]:
    """A device's whole life, cut where what it does changes its kind."""
    found: list[Stretch] = []
    group: list[Segment] = []
    for segment in [*track.segments, None]:
        if group and (segment is None or kind(segment) != kind(group[0])):
            context = union([(s.begin, s.end) for s in group if s.phase.has_context])
            found.append(Stretch(group[0].begin, group[-1].end, kind(group[0]), tuple(context)))
            group = []
        if segment:
            group.append(segment)
    return found


@dataclass(eq=False)
class Watched:
    """A device, what it did, and when that could be read."""

    track: Track
    stretches: list[Stretch]
    blind: list[tuple[int, int, str]]
    """When nothing valid was read, and why."""

    @classmethod
    def of(cls, track: Track, exporter: Exporter | None, spoilt: Spoilt | None) -> "Watched":
        """A device under an exporter, or under none."""
        device = track.device
        blind: list[tuple[int, int, str]] = []
        if exporter is None:
            blind.append((device.begin, device.end, "no_series"))
        else:
            blind += [(a, b, "exporter_down") for a, b in union(exporter.away)]
            first = exporter.reader.first
            for a, b in spoilt.blind if spoilt else ():
                blind.append((first + (a - 1) * 30, first + (b - 1) * 30, "rejected"))
        return cls(track, stretches(track), sorted(blind))

    def unread(self, now: int) -> str:
        """Why nothing was read at a second; '' where something was."""
        gone = "" if now < self.track.device.end else "no_series"
        return next((why for a, b, why in self.blind if a <= now < b), gone)

    def is_active(self, begin: int, end: int) -> bool:
        """It worked at some time of a run."""
        return any(s.kind == "active" and s.begin < end and begin < s.end for s in self.stretches)

    def seen_work(self, begin: int, end: int) -> int | None:
        """When a run is first seen to work: where it is read, and is not what ran before it."""
        works = [s for s in self.stretches if s.kind in ("active", "stalled") and s.begin < end]
        # Another's end may be known a scrape too late, and its work a reading and a scrape.
        uses = self.track.device.uses
        before = any(begin - 2 * EDGE_SECONDS < use.end <= begin for use in uses)
        for s in works:
            if s.end <= (begin + EDGE_SECONDS if before else begin):
                continue
            now = max(s.begin, begin)
            for a, b, _ in self.blind:
                if a <= now < b:
                    now = b
            if now < s.end:
                return now
        return None

    def first_work(self, begin: int, end: int) -> int | None:
        """When kernels ran for the first time in a run."""
        for s in self.stretches:
            if s.kind in ("active", "stalled") and s.begin < end and begin < s.end:
                return max(s.begin, begin)
        return None


@dataclass(frozen=True)
class Piece:
    """One state of a pod on one device."""

    begin: int
    end: int
    state: str
    cause: str
    unread: str
    is_sure: bool
    sharers: int


@dataclass(eq=False)
class Held:
    """A pod's hold on one device."""

    hold: Hold
    play: Play
    number: int  # of the pod's devices
    watched: Watched
    pieces: list[Piece]
    regions: list[Run]
    """When its containers ran and nothing above idle and active in rank applied."""
    loaded: int
    """From when on it is no longer loading."""


def held(hold: Hold, play: Play, watched: dict[int, Watched], loading: int) -> list[Held]:
    """What a pod's hold is on each of its devices."""
    mine = [watched[id(device)] for device, _ in play.devices]
    first = hold.facts.first_run
    loaded = doubted = hold.begin
    if first is not None and play.kind != "inference":
        works = [w.first_work(first, hold.end) for w in mine]
        known = [t for t in works if t is not None]
        loaded = min([first + loading, *known])
        seen = [w.seen_work(first, hold.end) for w in mine]
        doubted = min([first + loading, *(t for t in seen if t is not None)])
    found = []
    for number, one in enumerate(mine):
        if play.pod.entries and one.track.device.card.uuid != hold.card:
            continue
        regions = _regions(hold, one)
        pieces = _pieces(hold, one, regions, loaded, doubted)
        found.append(Held(hold, play, number, one, pieces, regions, loaded))
    return found


def _base(hold: Hold) -> list[tuple[int, int, tuple[str, str]]]:
    """The states without any reading."""
    ends = [t for t, _ in hold.states[1:]] + [hold.end]
    return [(t, end, told) for (t, told), end in zip(hold.states, ends, strict=True)]


def _regions(hold: Hold, one: Watched) -> list[Run]:
    runs = [(b, e) for b, e, (state, _) in _base(hold) if state == "unobserved"]
    found: list[Run] = []
    for begin, end in union(runs):
        for fault in one.track.device.card.faults:
            if fault.begin < end and begin < fault.end:
                if begin < fault.begin:
                    found.append((begin, fault.begin))
                begin = min(end, fault.end)
        if begin < end:
            found.append((begin, end))
    return found


def _pieces(hold: Hold, one: Watched, regions: list[Run], loaded: int, doubted: int) -> list[Piece]:
    """Its states; from `loaded` until `doubted` no reading says that it works."""
    device = one.track.device
    base = _base(hold)
    cuts = {hold.begin, hold.end, loaded, doubted}
    cuts |= {t for b, e, _ in base for t in (b, e)}
    cuts |= {t for a, b, _ in one.blind for t in (a, b)}
    cuts |= {t for f in device.card.faults for t in (f.begin, f.end)}
    for stretch in one.stretches:
        if stretch.end > hold.begin and stretch.begin < hold.end:
            cuts |= {stretch.begin, stretch.end, *(t for run in stretch.context for t in run)}
    if device.replicas > 1:
        cuts |= {t for use in device.uses for t in (use.begin, use.end)}
    starts = [s.begin for s in one.stretches]
    base_at = [b for b, _, _ in base]
    found: list[Piece] = []
    for begin, end in pairwise(sorted(c for c in cuts if hold.begin <= c <= hold.end)):
        told = base[bisect_right(base_at, begin) - 1][2]
        stretch = one.stretches[max(0, bisect_right(starts, begin) - 1)]
        is_doubted = told[0] == "unobserved" and loaded <= begin < doubted
        sharers = sum(u.begin <= begin < u.end for u in device.uses)
        state, cause, is_sure = _state(told, stretch, begin, one, regions, loaded)
        unread = ""
        if state in ("active", "idle", "stalled", "loading"):
            unread = "node_not_ready" if told[1] == "node_not_ready" else one.unread(begin)
        is_sure = is_sure and not is_doubted
        piece = Piece(begin, end, state, cause, unread, is_sure, max(1, sharers))
        if found and _same(found[-1], piece):
            piece = Piece(found[-1].begin, end, state, cause, unread, is_sure, max(1, sharers))
            found.pop()
        found.append(piece)
    return found


def _same(this: Piece, that: Piece) -> bool:
    return this.end == that.begin and (
        (this.state, this.cause, this.unread, this.is_sure, this.sharers)
        == (that.state, that.cause, that.unread, that.is_sure, that.sharers)
    )


def _state(
    told: tuple[str, str],
    stretch: Stretch,
    now: int,
    one: Watched,
    regions: list[Run],
    loaded: int,
) -> tuple[str, str, bool]:
    """The state at a second, by rank."""
    faults = one.track.device.card.faults
    if any(f.begin <= now < f.end for f in faults):
        return "unavailable", "gpu_unhealthy", True
    if told == ("gang_wait", "member_lost"):
        state = stretch.verdict(stretch.begin, stretch.end)
        return ("active", "none", stretch.kind == "active") if state == "active" else (*told, True)
    if told[0] != "unobserved":
        return (*told, True)
    if now < loaded:
        return "loading", "none", True
    state = stretch.verdict(stretch.begin, stretch.end)
    region = next((r for r in regions if r[0] <= now < r[1]), (now, now))
    begin, end = max(stretch.begin, region[0], loaded), min(stretch.end, region[1])
    seen = _seen(begin, end, now, one)
    ways = ((stretch.begin, stretch.end), (begin, end), seen)
    is_sure = all(stretch.is_sure(*w) and stretch.verdict(*w) == state for w in ways)
    cause = "none"
    if state == "idle":
        cause = "memory_held" if any(a <= now < b for a, b in stretch.context) else "empty"
    return state, cause, is_sure


def _seen(begin: int, end: int, now: int, one: Watched) -> Run:
    """The part of a stretch around a second that was read without a break."""
    for a, b, _ in one.blind:
        if b <= now:
            begin = max(begin, b)
        elif a > now:
            end = min(end, a)
    return begin, max(begin, end)
