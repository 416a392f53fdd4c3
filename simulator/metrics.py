"""The metrics of one cluster: OpenMetrics text for Prometheus, and the truth that goes with it.

What is told of GPUs is in `dcgm`, of objects in `kube_metrics`, of containers in `cadvisor`; here
they come together, with what Prometheus itself tells of its scrapes.
"""

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from simulator import cadvisor, dcgm, kube_metrics, readings, spoilt
from simulator.casting import Play, Xid, cast
from simulator.dcgm import View
from simulator.exporters import Exporter, exporters
from simulator.gpus import deal
from simulator.kube_metrics import Scraped
from simulator.openmetrics import Page, Series, labelled
from simulator.pods import Pod
from simulator.scope import WHOLE, Scope
from simulator.tracks import Track, tracks
from simulator.world import World


@dataclass(eq=False)
class Gauges:
    """What a cluster's GPUs did, and how it is told."""

    plays: list[Play]
    tracks: list[Track]
    xids: list[Xid]
    exporters: dict[str, Exporter]
    views: list[View]
    targets: list[Scraped]
    page: Page

    def shows(self, pod: Pod) -> bool:
        """Some scrape of kube-state-metrics found a pod that had its node."""
        if pod.bound is None:
            return False
        first = self.targets[0].number(pod.bound)
        last = self.targets[0].count if pod.removed is None else self.targets[0].number(pod.removed)
        return first < last

    def save(self, path: Path) -> None:
        """Write all metrics into one file, as text or as answers of a Prometheus."""
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".jsonl":
            self.page.save_answers(path)
        else:
            self.page.save(path)


def gauges(world: World, number: int, scope: Scope = WHOLE) -> Gauges:
    """All that is measured of the n-th cluster, ready to be written."""
    since = scope.since(world)
    cards = deal(world)
    plays = [play for play in cast(world, cards) if scope.last is None or play.end > since]
    found, xids = tracks(world, cards, plays)
    if scope.last is not None:  # the exporters are as young as what is stored of them
        xids = [xid for xid in xids if xid.at >= since]
    told = {e.node.uid: e for e in exporters(world, number, scope)}
    views = _views(world, found, told, xids)
    page = Page()
    for view in views:
        dcgm.tell(page, view, scope.fields)
    targets = [] if scope.is_source else kube_metrics.tell(page, world, number)
    cadvisor.tell(page, world, plays, scope)
    if not scope.is_source:
        _scrapes(page, list(told.values()), targets)
    return Gauges(plays, found, xids, told, views, targets, page)


def _views(
    world: World, found: list[Track], told: dict[str, Exporter], xids: list[Xid]
) -> list[View]:
    """Every device that an exporter sees; the instances of a GPU share its power and errors."""
    pairs = [(t, told[t.device.card.node.uid]) for t in found if t.device.card.node.uid in told]
    bad = spoilt.spoil(world, pairs)
    views: list[View] = []
    by_card = defaultdict(list)
    for track, exporter in pairs:
        by_card[track.device.card.uuid].append((track, exporter.reader.spans(track.segments)))
    for mine in by_card.values():
        card = mine[0][0].device.card
        exporter = told[card.node.uid]
        power = readings.watts(card, mine, exporter.reader.count)
        errors = [x for x in xids if x.card is card]
        for track, spans in mine:
            views.append(View(track, exporter, spans, power, errors, bad[id(track)]))
    return views


def _scrapes(page: Page, found: list[Exporter], targets: list[Scraped]) -> None:
    """`up` and what else Prometheus tells of each scrape."""
    for name, good, bad in (
        ("up", "1", "0"),
        ("scrape_duration_seconds", "0.041", "10.001"),
        ("scrape_samples_scraped", "160", "0"),
    ):
        for exporter in found:
            page.add(name, lambda e=exporter, values=(bad, good): _exporter(e, values))
        for target in targets:
            page.add(name, lambda t=target, v=good: _target(t, v))


def _target(target: Scraped, value: str) -> list[Series]:
    stamps = target.stamps[target.first : target.last]
    return [(target.labels, [value] * len(stamps), stamps)]


def _exporter(exporter: Exporter, values: tuple[str, str]):
    for target in exporter.targets:
        labels = {"instance": target.address, "job": "dcgm-exporter", "pod": target.pod}
        labels |= {"namespace": "gpu-operator", "container": "nvidia-dcgm-exporter"}
        if exporter.honors == "annotation":
            labels = {
                "instance": target.address,
                "job": "kubernetes-pods",
                "kubernetes_pod_name": target.pod,
            }
        stamps = exporter.reader.stamps[target.begin : target.end]
        yield labelled(labels), [values[target.is_up]] * len(stamps), stamps
