"""Which exporter runs where, how it is set up, when it is away, and which pod of it answers.

What it tells is in `dcgm`; what a reading is in `readings`.
"""

from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import NamedTuple

from simulator.clock import SECOND
from simulator.nodes import Node
from simulator.readings import Reader
from simulator.scope import WHOLE, Scope
from simulator.world import World


@dataclass(frozen=True)
class Setup:
    """How the exporter of a pool is set up; every difference is one that real clusters have."""

    is_new: bool = False  # names of DCGM 4.6, and `hostname` as 4.8.3 writes it
    honors: str = ""  # honorLabels: no, yes; or a scrape by annotation
    has_prof: bool = True  # PROF_*
    has_sm: bool = True  # PROF_SM_ACTIVE, off by default
    is_rich: bool = False  # clocks, temperature, throttling, remapped rows, windowed XIDs
    sharing: str = "one"  # one: last pod wins; every: copies; process: some values by pod; none
    is_old: bool = False  # -o: the label names of old, and metrics in lower case
    has_dra: bool = False
    has_jobs: bool = False  # the label of a job of an HPC scheduler
    lag: int = 0  # seconds until a pod's label comes


SETUPS: tuple[dict[str, Setup | None], ...] = (
    {
        "train": Setup(),
        "owned": Setup(has_sm=False, has_jobs=True),
        "serve": Setup(has_prof=False),
        "mig": Setup(lag=40),
        "single": Setup(is_old=True),
        "slice": Setup(sharing="one"),
        "slice2": Setup(sharing="every", is_rich=True),
        "hami": None,
        "ghost": None,
    },
    {
        "train": Setup(is_new=True, is_rich=True),
        "owned": Setup(is_new=True, has_dra=True),
        "serve": Setup(is_new=True, honors="annotation", has_sm=False),
        "mig": Setup(is_new=True),
        "slice": Setup(is_new=True, sharing="process"),
        "hami": Setup(sharing="none"),
        "ghost": None,
    },
)
"""Of the even clusters and of the odd ones; no exporter at all where there is none."""
HONORS = ("no", "yes")
DRIVERS = ("580.95.05", "580.105.08")


class Target(NamedTuple):
    """One pod of the exporter, from one scrape to another."""

    begin: int
    end: int
    pod: str
    address: str
    is_up: bool
    driver: str


@dataclass(eq=False)
class Exporter:
    """A node's exporter through the recorded time."""

    node: Node
    setup: Setup
    honors: str
    reader: Reader
    targets: list[Target] = field(default_factory=list)
    away: list[tuple[int, int]] = field(default_factory=list)
    """When nothing of the node was read, in whole seconds."""
    unmapped: list[tuple[int, int]] = field(default_factory=list)
    """Scrapes in which it did not learn which pod has which GPU."""

    def is_read(self, number: int) -> bool:
        """A scrape worked."""
        return any(t.is_up and t.begin <= number < t.end for t in self.targets)


def exporters(world: World, number: int, scope: Scope = WHOLE) -> list[Exporter]:
    """The exporters of the n-th cluster."""
    rng = Random(f"{world.seed}/{world.name}/exporters")
    found: list[Exporter] = []
    seen: dict[str, int] = {}
    for place, node in enumerate(world.all_nodes):
        setup = SETUPS[number % 2].get(node.pool, Setup(is_new=number % 2 == 1))
        index = seen[node.pool] = seen.get(node.pool, -1) + 1
        if setup is None or not node.count:
            continue
        reader = Reader.of(world, node.name, scope)
        exporter = Exporter(node, setup, setup.honors or HONORS[number % 2], reader)
        _live(exporter, world, rng, f"10.{number}.{place}", index)
        found.append(exporter)
    return found


def _live(exporter: Exporter, world: World, rng: Random, network: str, index: int) -> None:
    """When it runs, when it does not answer, when its pod is another one."""
    node, reader = exporter.node, exporter.reader
    begin, end = world.begin // SECOND, world.end // SECOND
    span = end - begin
    labelled = [now for now, _, labels in node.history if "nvidia.com/gpu.count" in labels]
    born, gone = max(begin, labelled[0] if labelled else end), node.removed or end
    silent = _spells(exporter, lambda state: state.driver == "pod-restart-required")
    silent += _cutting(node)
    failing = _spells(exporter, lambda state: not state.is_ready)
    moves: list[int] = []
    if (node.pool, index) == ("owned", 0):
        failing.append((begin + int(span * 0.487), begin + int(span * 0.487) + 390))
    if (node.pool, index) == ("train", 0):
        failing.append((begin + int(span * 0.205), begin + int(span * 0.205) + 1500))
        exporter.unmapped = [_numbers(reader, begin + int(span * 0.36), 3)]
    if (node.pool, index) in (("serve", 0), ("train", 1)):
        moves.append(begin + int(span * 0.84))
    cuts = sorted(
        {born, gone, *moves} | {t for run in (*silent, *failing) for t in run if born < t < gone}
    )
    pod, address = _name(rng), f"{network}.{rng.randrange(2, 250)}:9400"
    done = next((now for now, s, _ in node.history if s.driver == "upgrade-required"), end)
    for since, until in pairwise(cuts):
        if any(a <= since < b for a, b in silent):
            pod, address = _name(rng), f"{network}.{rng.randrange(2, 250)}:9400"
            continue
        is_up = not any(a <= since < b for a, b in failing)
        first, last = reader.number(since), reader.number(until)
        if since in moves:  # both are asked twice, the old one and the new one
            if exporter.targets:
                old = exporter.targets[-1]
                exporter.targets[-1] = old._replace(end=min(reader.count, first + 2))
            pod, address = _name(rng), f"{network}.{rng.randrange(2, 250)}:9400"
        if first < last:
            driver = DRIVERS[since >= done]
            exporter.targets.append(Target(first, last, pod, address, is_up, driver))
    exporter.away = [
        run for run in [*silent, *failing, (begin, born), (gone, end)] if run[0] < run[1]
    ]


def _name(rng: Random) -> str:
    return "dcgm-exporter-" + "".join(rng.choices("bcdfghjklmnpqrstvwxz2456789", k=5))


def _numbers(reader: Reader, since: int, scrapes: int) -> tuple[int, int]:
    first = reader.number(since)
    return first, min(first + scrapes, reader.count)


def _spells(exporter: Exporter, is_so) -> list[tuple[int, int]]:
    """When the node said something of itself."""
    found: list[tuple[int, int]] = []
    since: int | None = None
    for now, state, _ in exporter.node.history:
        if is_so(state) and since is None:
            since = now
        elif since is not None and not is_so(state):
            found.append((since, now))
            since = None
    return found


def _cutting(node: Node) -> list[tuple[int, int]]:
    """While its MIG devices are cut anew."""
    times = [now for now, _ in node.cuts]
    return list(zip(times[::2], times[1::2], strict=False))
