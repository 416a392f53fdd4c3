"""The truth beside a cluster's metrics, as CSV; what it says is worked out in its neighbours."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from simulator.casting import Play, Xid
from simulator.clock import SECOND
from simulator.dcgm import View
from simulator.exporters import Exporter
from simulator.metrics import Gauges
from simulator.tracks import Track
from simulator.truth import save
from simulator.truth_episodes import idle, stalled, unused, without_nvlink
from simulator.truth_facts import Run
from simulator.truth_gpus import Held, Watched, held
from simulator.truth_states import Hold

Row = tuple[object, ...]
GPU = ("node_uid", "node_name", "gpu_uuid", "gi_id")
POD = ("pod_uid", "workload")
COLUMNS = {
    "gpu_states": (
        *(*GPU, *POD, "begin", "end", "state", "cause"),
        *("unobserved", "is_scored", "sharers"),
    ),
    "gpu_activity": (*GPU, "begin", "end", "kind"),
    "idle_episodes": (
        *(*GPU, *POD, "since", "begin", "end", "is_open", "likely_cause_name", "cause"),
        *("heartbeats", "pod_gpus", "is_scored", "is_cause_scored"),
    ),
    "stalled_episodes": (*GPU, *POD, "begin", "end", "kernel", "confidence", "is_scored"),
    "used_without_hold": (*GPU, "begin", "end"),
    "over_sized": (*POD, "begin", "end", "pod_gpus", "unused_gpus", "unused_gpu_uuids"),
    "nvlink_silent": (*POD, "begin", "end", "pod_gpus", "active_seconds"),
    "xids": (*GPU[:3], "at", "code", "kind", "is_told"),
    "gaps": (*GPU, "begin", "end", "cause"),
    "rejected": (*GPU, "metric", "at", "value", "reason"),
    "pods": (
        *("pod_uid", "namespace_name", "pod_name", "node_uid", "node_name", "resource", "units"),
        *("part", "bound_at", "run_at", "released_at", "removed_at", "is_recorded", "gpu_uuids"),
    ),
    "samples": ("metric", "samples"),
}


OF_HOLDS = ("gpu_states", "idle_episodes", "stalled_episodes", "over_sized", "nvlink_silent")
"""What depends on which holds are known."""


def write(
    folder: Path, gauges: Gauges, holds: dict[str, list[Hold]], window: Run, loading: int
) -> None:
    """Write all of it under a folder; what depends on no hold only where it is not yet above."""
    is_first = not folder.parent.joinpath("gpu_states.csv").exists()
    folder.mkdir(parents=True, exist_ok=True)
    tracks, exporters, views = gauges.tracks, gauges.exporters, gauges.views
    spoilt = {id(v.track): v.spoilt for v in views}
    watched = {
        id(t.device): Watched.of(t, exporters.get(t.device.card.node.uid), spoilt.get(id(t)))
        for t in tracks
    }
    by_pod = {play.pod.uid: play for play in gauges.plays}
    mine: dict[str, list[Held]] = defaultdict(list)
    for hold in (h for found in holds.values() for h in found):
        if play := by_pod.get(hold.facts.uid):
            mine[hold.facts.uid] += held(hold, play, watched, loading)
    all_held = [h for found in mine.values() for h in found]
    tables: dict[str, Iterable[Row]] = {
        "gpu_states": _states(all_held),
        "gpu_activity": _activity(watched.values(), window),
        "idle_episodes": _idle(all_held, window),
        "stalled_episodes": _stalled(all_held, exporters),
        "used_without_hold": (
            (*_gpu(t), max(begin, window[0]), min(end, window[1]))
            for t in tracks
            for begin, end in t.rogue
        ),
        "over_sized": _over_sized(mine),
        "nvlink_silent": _silent(mine),
        "xids": _xids(gauges.xids, exporters, window),
        "gaps": (
            (*_gpu(w.track), begin, end, why)
            for w in watched.values()
            for a, b, why in w.blind
            for begin in [max(a, window[0], w.track.device.begin)]
            for end in [min(b, window[1], w.track.device.end)]
            if begin < end
        ),
        "rejected": _rejected(views),
        "pods": _pods(gauges.plays),
        "samples": sorted(gauges.page.counts.items()),
    }
    for name, rows in tables.items():
        if is_first or name in OF_HOLDS:
            save(folder / f"{name}.csv", COLUMNS[name], rows)


def _gpu(track: Track) -> Row:
    card = track.device.card
    return card.node.uid, card.node.name, card.uuid, track.device.instance


def _of(one: Held) -> Row:
    return *_gpu(one.watched.track), one.hold.facts.uid, one.hold.facts.workload


def _states(found: list[Held]) -> Iterable[Row]:
    for one in found:
        for p in one.pieces:
            yield (
                *(*_of(one), p.begin, p.end, p.state, p.cause),
                *(p.unread, int(p.is_sure and p.sharers == 1), p.sharers),
            )


def _activity(found: Iterable[Watched], window: Run) -> Iterable[Row]:
    for watched in found:
        for s in watched.stretches:
            begin, end = max(s.begin, window[0]), min(s.end, window[1])
            if begin < end:
                yield *_gpu(watched.track), begin, end, s.kind


def _idle(found: list[Held], window: Run) -> Iterable[Row]:
    for one in found:
        for e in idle(one, window[1]):
            is_begun = e.since > window[0] + 60  # else nobody knows whether it had ever worked
            end = "" if e.is_open else e.end
            yield (
                *(*_of(one), e.since, e.begin, end, int(e.is_open), e.cause, e.context),
                *(e.beats, len(one.play.devices), int(e.is_sure), int(e.is_sure and is_begun)),
            )


def _stalled(found: list[Held], exporters: dict[str, Exporter]) -> Iterable[Row]:
    for one in found:
        exporter = exporters.get(one.watched.track.device.card.node.uid)
        for (begin, end), kernel, is_sure in stalled(one):
            has = exporter is not None and exporter.setup.has_prof
            confidence = "likely" if has else "suspected" if exporter else "unseen"
            told = is_sure and exporter is not None
            yield *_of(one), begin, end, kernel, confidence, int(told)


def _over_sized(mine: dict[str, list[Held]]) -> Iterable[Row]:
    for found in mine.values():
        if idle_ones := unused(found):
            hold = found[0].hold
            uuids = " ".join(h.watched.track.device.card.uuid for h in idle_ones)
            pod = (hold.facts.uid, hold.facts.workload, hold.begin, hold.end)
            yield *pod, len(found), len(idle_ones), uuids


def _silent(mine: dict[str, list[Held]]) -> Iterable[Row]:
    for found in mine.values():
        devices = [h.watched.track.device for h in found]
        if len(found) < 2 or not found[0].play.has_nvlink or devices[0].instance >= 0:
            continue
        seconds = sum(without_nvlink(h) for h in found) // len(found)
        if seconds >= 600:
            hold = found[0].hold
            yield (
                *(hold.facts.uid, hold.facts.workload, hold.begin, hold.end),
                *(len(found), seconds),
            )


def _xids(found: list[Xid], exporters: dict[str, Exporter], window: Run) -> Iterable[Row]:
    """A gauge shows the last one before a scrape, and nothing where that is the one it showed."""
    scrapes = {
        id(xid): exporters[xid.card.node.uid].reader.number(xid.at)
        for xid in found
        if xid.card.node.uid in exporters and xid.at < window[1]
    }
    newest = {(xid.card.uuid, scrapes[id(xid)]): xid for xid in found if id(xid) in scrapes}
    last: dict[tuple[str, str], int] = {}
    for xid in found:
        card = xid.card
        number = scrapes.get(id(xid))
        is_told = False
        if number is not None and newest[card.uuid, number] is xid:
            targets = exporters[card.node.uid].targets
            here = [t for t in targets if t.is_up and t.begin <= number < t.end]
            if here:
                key = (card.uuid, here[-1].pod)
                is_told = last.get(key) != xid.code
                last[key] = xid.code
        if window[0] <= xid.at < window[1]:
            place = (card.node.uid, card.node.name, card.uuid)
            yield *place, xid.at, xid.code, xid.kind, int(is_told)


def _rejected(views: list[View]) -> Iterable[Row]:
    for view in views:
        for name, stamp, value, reason in view.rejected():
            yield *_gpu(view.track), name, stamp.strip(), value, reason


def _pods(plays: list[Play]) -> Iterable[Row]:
    for play in plays:
        pod = play.pod
        if not pod.node:
            continue
        times = (pod.bound, None, pod.devices_until, pod.removed)
        bound, _, released, removed = ("" if t is None else t // SECOND for t in times)
        uuids = " ".join(d.card.uuid for d, _ in play.devices)
        yield (
            *(pod.uid, pod.namespace, pod.name, pod.node.uid, pod.node.name),
            *(pod.resource, pod.units, play.part, bound),
            play.runs[0][0] if play.runs else "",
            *(released, removed, int(pod.seen.first is not None), uuids),
        )
