"""The truth of one cluster: computed from what the simulator itself did, and written as CSV.

Of what it did, only that counts which the record shows: what happened in a gap is not known.
"""

import csv
from collections import defaultdict
from collections.abc import Callable, Iterable
from copy import copy
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from simulator.clock import SECOND
from simulator.pods import Pod
from simulator.settings import Config
from simulator.truth_attempts import WAIT_COLUMNS, attempts, waits
from simulator.truth_facts import NEVER, Facts, NodeFacts, Run, facts, node_facts
from simulator.truth_gangs import GANG_COLUMNS, gangs
from simulator.truth_ledger import Lost, Record, ledger, union
from simulator.truth_money import COST_COLUMNS, costs, prices
from simulator.truth_states import Hold, holds
from simulator.truth_teams import team, workload_class
from simulator.world import World

LEDGER_COLUMNS = (
    "node_uid",
    "gpu_model",
    "begin",
    "end",
    "holder",
    "workload",
    "state",
    "cause",
    "micro_gpu",
)
UNBOOKED_COLUMNS = (
    "node_uid",
    "node_name",
    "begin",
    "end",
    "pod_uid",
    "workload",
    "reason",
    "micro_gpu",
)


def write(world: World, told: Config, folder: Path) -> tuple[dict[str, list[Hold]], Run]:
    """Write all truth of a cluster under a folder; the holds of each node, and the window."""
    folder.mkdir(parents=True, exist_ok=True)
    pods = [facts(p) for p in world.all_pods if p.seen.first is not None]
    for pod in pods:
        pod.workload_class = workload_class(pod, told)
    record = _record(world, pods)
    days = _days(record.window, told)
    nodes = [node_facts(n, days) for n in world.all_nodes if n.versions]
    tries = attempts(pods, world)
    found, lost = _holds(world, told, pods, nodes, record.window, days)
    ledger_rows: list[tuple[object, ...]] = []
    cost_rows: list[tuple[object, ...]] = []
    for node in nodes:
        rows, unbooked = ledger(node, found[node.node.uid], record, days)
        lost += unbooked
        uid, model = node.node.uid, node.node.model.name
        ledger_rows += [
            (uid, model, begin, end, *key[1:], micro) for begin, end, key, micro in rows
        ]
        cost_rows += costs(uid, rows, prices(node.node, world.name, told, record.window))
    save(folder / "ledger.csv", LEDGER_COLUMNS, ledger_rows)
    save(folder / "cost.csv", COST_COLUMNS, cost_rows)
    save(folder / "waits.csv", WAIT_COLUMNS, waits(tries))
    save(folder / "gangs.csv", GANG_COLUMNS, gangs(tries, world, record.window, days))
    save(folder / "unbooked.csv", UNBOOKED_COLUMNS, _unbooked(lost))
    return found, record.window


def without_record(
    world: World, told: Config, is_visible: Callable[[Pod], bool]
) -> tuple[dict[str, list[Hold]], Run]:
    """The holds as they were, whatever the recorder saw; without PodGroups there are no gangs.

    That is what can be known from metrics alone, of the pods that they show.
    """
    window = (world.begin // SECOND, world.end // SECOND)
    days = _days(window, told)
    pods = []
    for pod in filter(is_visible, world.all_pods):
        shadow = copy(pod)
        shadow.seen, shadow.group, shadow.told = pod.whole, None, []
        shadow.containers = [copy(container) for container in pod.containers]
        for container in shadow.containers:
            container.known = dict(container.runs)
        pods.append(facts(shadow))
        pods[-1].workload_class = workload_class(pods[-1], told)
    nodes = []
    for node in world.all_nodes:
        shadow = copy(node)
        shadow.versions = [version for _, version, _ in node.history]
        shadow.deleted = node.removed
        nodes.append(node_facts(shadow, days))
    return _holds(world, told, pods, nodes, window, days)[0], window


def _record(world: World, pods: list[Facts]) -> Record:
    """The known window, what lies before the first list of pods, gaps, and pending pods."""
    streams = [world.streams["pods"], world.streams["nodes"]]
    window = (
        min(s.first for s in streams) // SECOND,
        max(s.last for s in streams) // SECOND,
    )
    pending = []
    for pod in pods:
        if pod.units:
            last = min(t for t in (pod.bound, pod.ended, NEVER) if t is not None)
            pending.append((pod.created, last))
    gaps = union([gap for stream in streams for gap in stream.gaps])
    before = (window[0], max(s.first for s in streams) // SECOND)
    return Record(window, before, gaps, union(pending))


def _days(window: Run, told: Config) -> list[Run]:
    """The days of the accounting zone that the window touches."""
    zone = ZoneInfo(told.get("lake", {}).get("accounting_zone", "UTC"))
    day = datetime.fromtimestamp(window[0], zone).replace(hour=0, minute=0, second=0)
    found: list[Run] = []
    while day.timestamp() < window[1]:
        after = (day + timedelta(hours=36)).replace(hour=0)
        found.append((int(day.timestamp()), int(after.timestamp())))
        day = after
    return found


def _holds(
    world: World,
    told: Config,
    pods: list[Facts],
    nodes: list[NodeFacts],
    window: Run,
    days: list[Run],
) -> tuple[dict[str, list[Hold]], list[Lost]]:
    """The holds of each node, and those on a name that was never seen."""
    by_name: dict[str, list[NodeFacts]] = defaultdict(list)
    for node in nodes:
        by_name[node.node.name].append(node)
    loading = told.get("policies", {}).get("loading_max_seconds", 1800)
    found: dict[str, list[Hold]] = defaultdict(list)
    lost: list[Lost] = []
    for pod in pods:
        if pod.bound is None or not pod.units:
            continue
        here = by_name[pod.pod.seen.node_name]
        for hold in holds(pod, team(pod, world, told), here, window, loading, days):
            if hold.node is None:
                lost.append(("", hold.begin, hold.end, hold, "not_installed", hold.micro))
            else:
                found[hold.node.node.uid].append(hold)
    return found, lost


def _unbooked(lost: list[Lost]) -> list[tuple[object, ...]]:
    rows = [
        (uid, hold.node_name, begin, end, hold.facts.uid, hold.facts.workload, reason, micro)
        for uid, begin, end, hold, reason, micro in lost
    ]
    return sorted(rows, key=lambda row: (row[2], str(row[4]), str(row[6])))


def save(path: Path, columns: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> None:
    """Write a table of the truth."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)
