"""What each GPU or instance did from the first second to the last, whoever had it.

What one process did is in `casting`; how an exporter reads a track in `readings`.
"""

from dataclasses import dataclass, field
from itertools import pairwise
from random import Random

from simulator import phases
from simulator.casting import Play, Xid
from simulator.clock import SECOND
from simulator.gpus import Device, GpuCard
from simulator.phases import Phase
from simulator.scripts import Change, Segment, changed
from simulator.world import World

LOST = Phase("lost", has_context=False)
OVERHEAD_MIB = 430
"""What a context takes before anything is put into it."""
RESERVED_MIB = 1200
"""What no pod can take."""


@dataclass(eq=False)
class Track:
    """One device, and what it did; memory in MiB."""

    device: Device
    segments: list[Segment] = field(default_factory=list)
    rogue: list[tuple[int, int]] = field(default_factory=list)


def tracks(world: World, cards: list[GpuCard], plays: list[Play]) -> tuple[list[Track], list[Xid]]:
    """The track of every device, and every error of a GPU."""
    xids = [xid for play in plays for xid in play.xids]
    for card in cards:
        for fault in card.faults:
            xids.append(Xid(fault.begin, card, fault.code, "fatal"))
            _break(card, fault.begin, plays)
    xids += _clean_up(world, plays)
    by_device: dict[int, list[list[Segment]]] = {}
    for play in plays:
        for (device, _), segments in zip(play.devices, play.segments, strict=True):
            mine = [s._replace(memory=_mib(device, s)) for s in segments]
            by_device.setdefault(id(device), []).append(mine)
    found = [
        Track(device, _all(world, device, by_device.get(id(device), [])))
        for card in cards
        for device in card.devices
    ]
    _rogues(world, found)
    for track in found:
        for fault in track.device.card.faults:
            if fault.is_lost:
                away = Change(fault.begin, fault.end, LOST, 0.0)
                track.segments = changed(track.segments, away)
    return found, sorted(xids, key=lambda x: (x.at, x.card.uuid))


def _mib(device: Device, segment: Segment) -> float:
    used = segment.memory * (device.memory_mib - RESERVED_MIB)
    return used + OVERHEAD_MIB if segment.phase.has_context else used


def _break(card: GpuCard, at: int, plays: list[Play]) -> None:
    """A pod that loses one of its GPUs does nothing more with any of them."""
    for play in plays:
        if any(d.card is card and use.begin <= at < use.end for d, use in play.devices):
            change = Change(at, play.end, phases.HELD, 0.86, "broken")
            play.changes.append(change)
            play.segments = [changed(segments, change) for segments in play.segments]


def _clean_up(world: World, plays: list[Play]) -> list[Xid]:
    """Errors 43 and 45 come when a process is killed, and mean nothing."""
    rng = Random(f"{world.seed}/{world.name}/xids")
    found = []
    for play in plays:
        device, use = play.devices[0]
        killed = play.pod.asked is not None and play.runs and play.runs[-1][1] >= use.end - 40
        if killed and play.kind in ("training", "batch") and rng.random() < 0.5:
            code = rng.choice((43, 45, 45))
            found.append(Xid(play.runs[-1][1], device.card, code, "cleanup"))
    return found


def _all(world: World, device: Device, parts: list[list[Segment]]) -> list[Segment]:
    """The device's whole life in the record; where several share it, the busiest one leads."""
    begin, end = max(device.begin, world.begin // SECOND - 3600), device.end
    flat = sorted(s for segments in parts for s in segments if s.end > begin and s.begin < end)
    if device.replicas > 1:
        flat = _overlaid(flat, device.memory_mib - RESERVED_MIB)
    found: list[Segment] = []
    now = begin
    for segment in flat:
        since, until = max(segment.begin, now), min(segment.end, end)
        if since >= until:
            continue
        if now < since:
            found.append(Segment(now, since, phases.EMPTY, 0.0))
        found.append(segment._replace(begin=since, end=until))
        now = until
    if now < end:
        found.append(Segment(now, end, phases.EMPTY, 0.0))
    return found


def _overlaid(flat: list[Segment], most: float) -> list[Segment]:
    """One track of several; together they take no more memory than there is."""
    cuts = sorted({t for s in flat for t in (s.begin, s.end)})
    found: list[Segment] = []
    going: list[Segment] = []
    index = 0
    for begin, end in pairwise(cuts):
        going = [s for s in going if s.end > begin]
        while index < len(flat) and flat[index].begin <= begin:
            going.append(flat[index])
            index += 1
        if going:
            lead = max(going, key=lambda s: (s.phase.sm, s.phase.has_context, s.phase.cpu))
            memory = min(most, sum(s.memory for s in going))
            found.append(Segment(begin, end, lead.phase, memory))
    return found


def _rogues(world: World, found: list[Track]) -> None:
    """Twice someone uses a GPU that Kubernetes has given to nobody."""
    rng = Random(f"{world.seed}/{world.name}/rogues")
    free = [
        (track, since + 600, since + 600 + int(rng.uniform(40, 70) * 60))
        for track in found
        if not track.device.profile and track.device.replicas == 1
        for since, until in _gaps(track.device, world)
        if until - since > 6000 and since >= world.begin // SECOND
    ]
    for track, begin, end in rng.sample(free, min(2, len(free))):
        memory = 0.35 * track.device.memory_mib
        track.segments = changed(track.segments, Change(begin, end, phases.ROGUE, memory))
        track.rogue.append((begin, end))


def _gaps(device: Device, world: World) -> list[tuple[int, int]]:
    edges = [max(device.begin, world.begin // SECOND)]
    for use in device.uses:
        edges += [use.begin, use.end]
    edges.append(device.end)
    faults = device.card.faults
    return [
        (begin, end)
        for begin, end in zip(edges[::2], edges[1::2], strict=True)
        if not any(f.begin < end and begin < f.end for f in faults)
    ]
