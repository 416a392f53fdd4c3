"""Small random fleets as recorded watch streams: a strategy for hypothesis.

Clocks are askew, lists are missing or leave things out, nodes go from under their pods and come
back under the same name. What must hold of a fleet belongs in `random_fleet_sums` and the tests.
"""

import json
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from models.config import Config, load
from tests.kube_objects import container, node, owner, pod

START = datetime(2026, 3, 28, 20, tzinfo=UTC)
"""A record spans the night in which the clocks of Berlin skip an hour."""
ZONES = ("UTC", "Europe/Berlin", "Asia/Kolkata")
GPU, SHARED, MIG = "nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb"
A100, H100 = "NVIDIA-A100-SXM4-80GB", "NVIDIA-H100-80GB-HBM3"
NAMES = ("red", "blue")
"""Few names, so that they are reused."""

STEPS = st.sampled_from([0, 0.25, 1, 40.5, 900, 7000, 30_000])
SKEWS = st.sampled_from([0, 0, 0, 0.5, -0.5, -90, 200])
LAGS = st.sampled_from([0, 0, 0.75, 3, 50])


@dataclass(frozen=True)
class Seen:
    """A line of a stream; instants are seconds after START."""

    at: float
    kind: str
    change: str
    item: dict[str, Any]
    gpus: int = 0
    """Of a node: the physical GPUs that this version reports."""

    @property
    def uid(self) -> str:
        """The object's uid; a bookmark has none."""
        return self.item["metadata"].get("uid", "")


@dataclass
class Fleet:
    """What is recorded of a cluster, and what is configured for it."""

    zone: str
    files: dict[str, list[Seen]]
    prices: list[dict[str, Any]]
    owned: list[dict[str, Any]]
    vanished: dict[tuple[str, str], float] = field(default_factory=dict)
    """(kind, uid) -> when it was last known of, for what a later list lacks."""

    def seen(self) -> list[Seen]:
        """All lines."""
        return [line for lines in self.files.values() for line in lines]

    def write(self, folder: Path, *clusters: str) -> Config:
        """Write the record, and a configuration in which each of these clusters is read from it."""
        watch = folder / "watch"
        watch.mkdir(parents=True)
        for name, lines in self.files.items():
            text = (
                json.dumps({"observed_at": stamp(s.at), "type": s.change, "object": s.item})
                for s in lines
            )
            (watch / name).write_text("".join(f"{line}\n" for line in text))
        source = {"kind": "kubernetes", "path": "watch"}
        told = {
            "lake": {"accounting_zone": self.zone},
            "clusters": [{"name": name, "sources": [source]} for name in clusters],
            "prices": self.prices,
            "fleet": [row | {"cluster": name} for row in self.owned for name in clusters],
        }
        path = folder / "gpuledger.yaml"
        path.write_text(json.dumps(told))
        return load(path)


def stamp(seconds: float) -> str:
    """The instant, so many seconds after START, as the API writes it."""
    text = (START + timedelta(seconds=seconds)).isoformat(timespec="microseconds")
    return text.replace("+00:00", "Z")


def identified(item: dict[str, Any], uid: str, name: str, created: float) -> dict[str, Any]:
    """The object under this uid and name."""
    item["metadata"] |= {"uid": uid, "name": name, "creationTimestamp": stamp(created)}
    return item


def _flavour(draw: Any, gpus: int) -> tuple[dict[str, str], dict[str, str]]:
    """Labels and capacity of a node with that many physical GPUs."""
    match draw(st.sampled_from(["whole", "labelled", "sliced", "mig"])):
        case "whole":
            return {}, {GPU: str(gpus)}
        case "labelled":  # the label says more than the device plugin offers
            return {"nvidia.com/gpu.count": str(gpus)}, {GPU: str(max(0, gpus - 1))}
        case "sliced":
            replicas = draw(st.sampled_from([2, 3, 7]))
            return {"nvidia.com/gpu.replicas": str(replicas)}, {SHARED: str(gpus * replicas)}
        case _:
            labels = {"nvidia.com/gpu.count": str(gpus), "nvidia.com/mig.strategy": "mixed"}
            return labels, {MIG: str(7 * gpus), GPU: "0"}


@st.composite
def node_lives(draw: Any, number: int, end: float) -> list[Seen]:
    """The versions of one node, to its deletion or the record's end."""
    uid, name = f"n{number}", draw(st.sampled_from(NAMES))
    created = draw(st.sampled_from([-90_000, -600, 0, 3000.5, 20_000, 70_000]))
    product = draw(st.sampled_from([A100, A100, H100]))
    gpus = draw(st.integers(0, 3))
    labels, capacity = _flavour(draw, gpus)
    found, at, allocatable, is_ready, cordon = [], created, dict(capacity), True, {}
    for turn in range(draw(st.integers(1, 5))):
        told = {"nvidia.com/gpu.product": product, **labels}
        item = identified(node(told, capacity, allocatable, **cordon), uid, name, created)
        item["status"]["conditions"][0]["status"] = "True" if is_ready else "False"
        offered = gpus if any(map(int, capacity.values())) else 0
        said = int(labels.get("nvidia.com/gpu.count", offered))
        found.append(Seen(at + draw(LAGS), "Node", "MODIFIED" if turn else "ADDED", item, said))
        at = found[-1].at + draw(STEPS)
        match draw(st.sampled_from(["ready", "cordon", "gone plugin", "more", "fewer", "upgrade"])):
            case "ready":
                is_ready = not is_ready
            case "cordon":
                cordon = {} if cordon else {"unschedulable": True}
            case "gone plugin":
                capacity = dict.fromkeys(capacity, "0")
                allocatable = dict(capacity)
            case "more" if "nvidia.com/gpu.count" in labels:
                gpus += 1
                labels = labels | {"nvidia.com/gpu.count": str(gpus)}
            case "fewer":
                allocatable = {r: str(int(a) // 2) for r, a in capacity.items()}
            case _:
                labels = labels | {"nvidia.com/gpu-driver-upgrade-state": "drain-required"}
    if draw(st.booleans()):
        found.append(replace(found[-1], at=at, change="DELETED"))
    return [line for line in found if line.at < end]


def _owned_by(draw: Any, item: dict[str, Any]) -> None:
    """Put the pod into one of few workloads, some of them gangs."""
    meta = item["metadata"]
    match draw(st.sampled_from(["alone", "job", "deployment", "gang"])):
        case "job":
            meta["ownerReferences"] = [owner("Job", "train", "u-job", "batch/v1")]
        case "deployment":
            meta["labels"]["pod-template-hash"] = "5d4f8c7b9"
            meta["ownerReferences"] = [owner("ReplicaSet", "web-5d4f8c7b9", "u-rs")]
        case "gang":
            meta["annotations"]["scheduling.k8s.io/group-name"] = "gang"
            meta["ownerReferences"] = [
                owner("Job", "gang", "u-gang", "batch.volcano.sh/v1alpha1"),
            ]


@st.composite
def pod_lives(draw: Any, number: int, end: float) -> list[Seen]:
    """The versions of one pod: pending, bound, running, asked to go, over, deleted, or fewer."""
    uid = f"p{number}"
    created = draw(st.sampled_from([-40_000, -10, 5, 3600.5, 13_000, 50_000]))
    resource = draw(st.sampled_from([GPU, GPU, GPU, SHARED, MIG]))
    asked = draw(st.sampled_from([None, 1, 1, 2, 3]))
    base = pod([container(gpus=asked, resource=resource)], namespace="ml")
    identified(base, uid, f"pod-{number % 2}", created)
    _owned_by(draw, base)
    found: list[Seen] = []

    def observe(at: float, change: str = "MODIFIED") -> None:
        copy = json.loads(json.dumps(base))
        found.append(Seen(max(at + draw(LAGS), found[-1].at if found else at), "Pod", change, copy))

    meta, spec, status = base["metadata"], base["spec"], base["status"]
    at = created
    if draw(st.booleans()):
        observe(at, "ADDED")
    at += draw(STEPS)
    begun = at
    if draw(st.integers(0, 3)):
        spec["nodeName"] = draw(st.sampled_from([*NAMES, *NAMES, "ghost"]))
        if draw(st.integers(0, 3)):
            bind = {"type": "PodScheduled", "status": "True"}
            status["conditions"] = [bind | {"lastTransitionTime": stamp(at + draw(SKEWS))}]
        observe(at)
        at += draw(STEPS)
        begun = at + draw(SKEWS)
        if draw(st.integers(0, 3)):
            status["phase"] = "Running"
            running = {"name": "main", "state": {"running": {"startedAt": stamp(begun)}}}
            status["containerStatuses"] = [running]
            observe(at)
            at += draw(STEPS)
    is_asked = draw(st.booleans())
    if is_asked:
        meta["deletionGracePeriodSeconds"] = 30
        meta["deletionTimestamp"] = stamp(at + draw(SKEWS) + draw(st.sampled_from([30, 0])))
        observe(at)
        at += draw(st.sampled_from([0, 30, 5000]))
    if draw(st.booleans()):
        status["phase"] = draw(st.sampled_from(["Succeeded", "Failed"]))
        if "containerStatuses" in status and draw(st.booleans()):
            told = {"startedAt": stamp(begun), "finishedAt": stamp(at + draw(SKEWS))}
            status["containerStatuses"] = [
                {"name": "main", "state": {"terminated": told | {"exitCode": 0}}}
            ]
        observe(at)
        at += draw(STEPS)
    if is_asked or draw(st.booleans()):
        observe(at, "DELETED")
    return [line for line in found if line.at < end]


@st.composite
def group_lives(draw: Any, end: float) -> list[Seen]:
    """The versions of the gang's PodGroup."""
    created = draw(st.sampled_from([-20_000, 0, 2000.5]))
    found, at = [], created
    phases = draw(st.sampled_from(["", "P", "PI", "PIR", "PRC", "IPI"]))
    for letter in phases:
        phase = {"P": "Pending", "I": "Inqueue", "R": "Running", "C": "Completed"}[letter]
        item = {
            "kind": "PodGroup",
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "metadata": {
                "namespace": "ml",
                "annotations": {},
                "ownerReferences": [owner("Job", "gang", "u-gang", "batch.volcano.sh/v1alpha1")],
            },
            "spec": {"minMember": draw(st.integers(1, 3)), "queue": "q"},
            "status": {"phase": phase},
        }
        found.append(Seen(at, "PodGroup", "MODIFIED", identified(item, "g0", "gang", created)))
        at += draw(STEPS)
    if found and draw(st.booleans()):
        found.append(replace(found[-1], at=at, change="DELETED"))
    return [line for line in found if line.at < end]


def _gaps(draw: Any, lines: list[Seen], end: float) -> list[tuple[float, float]]:
    """Stretches in which the recorder was away, most of them when something happened."""
    begins = sorted({line.at - 0.5 for line in lines if line.at > 0}) or [3000]
    chosen = draw(st.lists(st.sampled_from([*begins, 13_000]), max_size=2))
    length = draw(st.sampled_from([130, 2000.5, 9000]))
    return [(b, b + length) for b in sorted(set(chosen)) if b + length < end]


def _listed(lines: list[Seen], at: float) -> list[Seen]:
    """What a list at that instant shows: the latest version of whatever is there."""
    latest = {line.uid: line for line in lines if line.at <= at}
    there = (line for line in latest.values() if line.change != "DELETED")
    return [replace(line, at=at, change="LISTED") for line in there]


def _with_lists(lines: list[Seen], gaps: list[tuple[float, float]]) -> list[Seen]:
    """The stream as it is recorded: it begins with a list, and after each gap with another."""
    kept = [line for line in lines if line.at > 0]
    kept = [line for line in kept if not any(b < line.at <= e for b, e in gaps)]
    lists = [line for at in (0, *(e for _, e in gaps)) for line in _listed(lines, at)]
    return sorted([*lists, *kept], key=lambda line: (line.at, line.change != "LISTED"))


def _vanished(lines: list[Seen]) -> dict[tuple[str, str], float]:
    """What the lists after the first lines lack, and when the stream last spoke before them."""
    found: dict[tuple[str, str], float] = {}
    alive: set[str] = set()
    for place, line in enumerate(lines):
        before = lines[place - 1] if place else None
        if line.change == "LISTED" and before and before.at < line.at:
            listed = {s.uid for s in lines if s.change == "LISTED" and s.at == line.at}
            found |= {(line.kind, uid): before.at for uid in alive - listed}
            alive &= listed
        if line.change == "DELETED":
            alive.discard(line.uid)
        elif line.change != "BOOKMARK":
            alive.add(line.uid)
    return found


@st.composite
def fleets(draw: Any, days: int = 1) -> Fleet:
    """A fleet of at most three nodes and five pods, recorded for at least so many days."""
    end = draw(st.sampled_from([5000.25, 20_000, 90_000, 150_000.5][{1: 0, 2: 2, 3: 3}[days] :]))
    nodes, pods = draw(st.sampled_from([2, 1, 3, 0])), draw(st.integers(0, 5))
    lines = {
        "Node": [line for n in range(nodes) for line in draw(node_lives(n, end))],
        "Pod": [line for n in range(pods) for line in draw(pod_lives(n, end))],
        "PodGroup": draw(group_lives(end)),
    }
    order = draw(st.sampled_from(["lists", "lists", "lists", "one file", "split", "shuffled"]))
    vanished: dict[tuple[str, str], float] = {}
    for kind in lines:
        lines[kind].sort(key=lambda line: line.at)
        if order in ("lists", "one file"):
            gaps = _gaps(draw, lines[kind], end)
            lines[kind] = _with_lists(lines[kind], gaps)
            vanished |= _vanished(lines[kind])
        else:  # nothing was listed: what came before the record is not seen
            lines[kind] = [line for line in lines[kind] if line.at >= 0]
    mark = {"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": "9"}}
    lines["Pod"].append(Seen(end, "Pod", "BOOKMARK", mark))
    prices = [
        {"valid_from": stamp(at), "gpu_model": model, "per_gpu_hour": f"{2 + n}.{n}00123"}
        for n, (at, model) in enumerate(
            draw(
                st.lists(
                    st.tuples(
                        st.sampled_from([-(10**6), 0, 3601, 40_000.5]), st.sampled_from(["*", A100])
                    ),
                    max_size=3,
                    unique=True,
                )
            )
        )
    ]
    owned = [
        {"gpu_model": A100, "count": count, "from": stamp(begins)}
        for count, begins in draw(
            st.lists(st.tuples(st.integers(1, 6), st.sampled_from([-(10**6), 9000])), max_size=1)
        )
    ]
    return Fleet(draw(st.sampled_from(ZONES)), _files(draw, order, lines), prices, owned, vanished)


def _files(draw: Any, order: str, lines: dict[str, list[Seen]]) -> dict[str, list[Seen]]:
    """The lines as files: a kind each, all in one, each kind in two, or in no order at all."""
    if order == "one file":
        everything = [line for found in lines.values() for line in found]
        return {"all.jsonl": sorted(everything, key=lambda line: line.at)}
    files: dict[str, list[Seen]] = {}
    for kind, found in lines.items():
        if order == "split":
            files[f"{kind}-1.jsonl"], files[f"{kind}-2.jsonl"] = found[::2], found[1::2]
        else:
            files[f"{kind}.jsonl"] = draw(st.permutations(found)) if order == "shuffled" else found
    return {name: found for name, found in files.items() if found}
