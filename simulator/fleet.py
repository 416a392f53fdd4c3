"""The whole simulated fleet: builds clusters, lets them live, writes their records and the truth.

How a cluster lives belongs to the modules named in `live`; what can be known of it to `truth`.
"""

from datetime import UTC, datetime
from pathlib import Path

from simulator import metrics as gauged
from simulator import settings, truth, truth_measured
from simulator.clock import DAY, SECOND
from simulator.controllers import Platform
from simulator.faults import Faults
from simulator.kubelet import Kubelet
from simulator.layouts import fill
from simulator.owners import KINDS
from simulator.players import Players
from simulator.pools import build_nodes
from simulator.schedulers import Schedulers
from simulator.scope import SCOPES, WHOLE, Scope
from simulator.tenants import Tenants, make_namespaces, quotas
from simulator.truth_facts import Run
from simulator.truth_states import Hold
from simulator.world import World

BEGIN = datetime(2026, 11, 16, tzinfo=UTC)
NAMES = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta")


def build(
    out: Path,
    *,
    seed: int,
    clusters: int = 2,
    days: int = 7,
    size: str = "demo",
    begin: datetime = BEGIN,
    config: Path | None = None,
    metrics: bool = False,
) -> Path:
    """Write a fleet's configuration, records and truth under a folder; where the first is.

    With `metrics`, also what Prometheus would hold of it: what and how, `scope` says by size.
    """
    start = int(begin.timestamp()) * SECOND
    scope = SCOPES.get(size, WHOLE)
    names = [NAMES[n] if n < len(NAMES) else f"cluster-{n}" for n in range(clusters)]
    told = settings.load(config, names, start // SECOND, days)
    out.mkdir(parents=True, exist_ok=True)
    for number, name in enumerate(names):
        keeps = metrics and (scope.clusters is None or number < scope.clusters)
        world = live(name, number, seed=seed, size=size, begin=start, days=days, keeps=keeps)
        folder = out / "recorded" / name
        folder.mkdir(parents=True, exist_ok=True)
        for stream in world.streams.values():
            (folder / f"{stream.file}.jsonl").write_text("".join(stream.lines))
        holds, window = truth.write(world, told, out / "truth" / name)
        if keeps:
            _measure(world, number, scope, told, out, (holds, window))
    if metrics and scope.is_source:
        settings.measure(told, names[: scope.clusters])
    path = out / "gpuledger.yaml"
    path.write_text(settings.dump(told))
    return path


def _measure(
    world: World,
    number: int,
    scope: Scope,
    told: settings.Config,
    out: Path,
    held: tuple[dict[str, list[Hold]], Run],
) -> None:
    """Write what a Prometheus has of a cluster, and the truth of it where it has all."""
    name = world.name
    gauges = gauged.gauges(world, number, scope)
    if scope.is_source:
        gauges.save(out / "prometheus" / name / "answers.jsonl")
        return
    gauges.save(out / "prometheus" / f"{name}.om")
    loading = told.get("policies", {}).get("loading_max_seconds", 1800)
    facts = out / "truth" / name
    truth_measured.write(facts, gauges, *held, loading)
    held = truth.without_record(world, told, gauges.shows)
    truth_measured.write(facts / "prometheus", gauges, *held, loading)


def live(
    name: str, number: int, *, seed: int, size: str, begin: int, days: int, keeps: bool = False
) -> World:
    """One cluster's life, recorded; `keeps` every version for what is made of them later."""
    end = begin + days * DAY
    world = World(name, seed, begin, end, keeps=keeps)
    make_namespaces(world)
    build_nodes(world, size, number)
    kubelet = Kubelet(world)
    platform = Platform(world, kubelet, Schedulers(world, kubelet, quotas(world, number)))
    if size == "layouts":
        fill(platform)
    else:
        Tenants(platform, number, size).start()
        faults = Faults(platform, number, size)
        faults.plan()
        if size == "measured" and number % 2 == 0:
            Players(platform).plan(faults.when)
    clock = world.clock
    clock.at(begin + SECOND, world.list_all, "nodes")
    clock.at(begin + 2 * SECOND, world.list_all, "namespaces")
    clock.at(begin + 3 * SECOND, world.list_all, "groups")
    clock.at(begin + 4 * SECOND, world.list_all, "events")
    for kind in KINDS:
        clock.at(begin + 5 * SECOND, world.list_all, kind)
    clock.at(begin + (95 if number else 20) * SECOND, world.list_all, "pods")
    clock.at(begin + 600 * SECOND, world.bookmark_idle)
    clock.run(end - 4 * SECOND)
    clock.now = end - SECOND
    for stream in world.streams.values():
        stream.bookmark(world.now, world.revision)
    return world
