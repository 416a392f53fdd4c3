"""Recorded files of a Kubernetes API: watch streams line by line, lists item by item.

Only what stands around the objects is read here (when, what happened, which kind), cheaply, for
most lines of a long record lie outside the window asked for. Objects belong to `kubernetes`, what
the record covers to `coverage`.
"""

import gzip
import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from collectors.beside import beside
from collectors.quantities import micros
from collectors.source import Unusable
from collectors.surveys import Run, Survey, Surveyed

OWNERS = {
    "Job": "batch",
    "ReplicaSet": "apps",
    "Deployment": "apps",
    "StatefulSet": "apps",
    "DaemonSet": "apps",
    "JobSet": "jobset.x-k8s.io",
    "TrainJob": "trainer.kubeflow.org",
    "PyTorchJob": "kubeflow.org",
    "TFJob": "kubeflow.org",
    "XGBoostJob": "kubeflow.org",
    "PaddleJob": "kubeflow.org",
    "JAXJob": "kubeflow.org",
    "MPIJob": "kubeflow.org",
    "Notebook": "kubeflow.org",
    "LeaderWorkerSet": "leaderworkerset.x-k8s.io",
    "RayJob": "ray.io",
    "RayCluster": "ray.io",
    "RayService": "ray.io",
    "Workflow": "argoproj.io",
    "InferenceService": "serving.kserve.io",
    "LLMInferenceService": "serving.kserve.io",
    "VolcanoJob": "batch.volcano.sh",
}
"""Kinds of objects that own pods, and their group; Volcano's Job is called VolcanoJob here."""
READ = {
    **{(group, kind.removeprefix("Volcano")): kind for kind, group in OWNERS.items()},
    ("kueue.x-k8s.io", "Workload"): "Workload",
    ("", "Namespace"): "Namespace",
    ("", "Node"): "Node",
    ("scheduling.volcano.sh", "PodGroup"): "PodGroup",
    ("", "Pod"): "Pod",
    ("resource.k8s.io", "ResourceClaim"): "ResourceClaim",
    ("resource.k8s.io", "ResourceSlice"): "ResourceSlice",
    ("", "Event"): "Event",
    ("events.k8s.io", "Event"): "Event",
}
"""Group and kind -> the word by which we call it; other kinds are not read."""
KINDS = tuple(dict.fromkeys(READ.values()))
TYPES = frozenset(("GAP", "LISTED", "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"))
LISTING = ("GAP", "LISTED")
"""A GAP begins a list that may be empty."""
HEAD = re.compile(
    rb'\{"observed_at": ?"([^"]{19,40})", ?"type": ?"([A-Z]+)", ?"object": ?\{'
    rb'(?:"apiVersion": ?"([^"]+)", ?)?(?:"kind": ?"(\w+)")?(?:, ?"apiVersion": ?"([^"]+)")?'
)
TAIL = re.compile(rb'"kind": ?"(\w+)"(?:, ?"apiVersion": ?"([^"]+)")?\}\}\s*$')
PAGE_SECONDS = 60
"""Pages of one list come within this time of each other."""


class Line(NamedTuple):
    """A line of a watch stream, its object not read yet."""

    number: int
    observed: int
    change: str
    kind: str
    raw: bytes


class Refused(NamedTuple):
    """A line that cannot be used."""

    number: int
    after: int | None
    """When the good line before it was observed."""
    reason: str
    example: str


def kind_of(kind: str, version: str) -> str:
    """The kind as we call it; other groups' kinds of the same name are told apart."""
    group = version.rpartition("/")[0]
    return READ.get((group, kind)) or f"{version}/{kind}"


def _slow_head(raw: bytes) -> tuple[int, str, str]:
    try:
        line = orjson.loads(raw)
    except orjson.JSONDecodeError:
        raise Unusable("bad_json", raw[:120].decode("utf-8", "replace")) from None
    example = raw[:120].decode("utf-8", "replace")
    if not isinstance(line, dict) or not isinstance(line.get("object"), dict):
        raise Unusable("malformed", example)
    if not isinstance(line.get("type"), str):
        raise Unusable("unknown_type", example)
    item = line["object"]
    observed = micros(line.get("observed_at"))
    if observed is None:
        raise Unusable("bad_observed_at", example)
    kind = kind_of(str(item.get("kind", "")), str(item.get("apiVersion", "")))
    return observed, line["type"], kind


def head(raw: bytes) -> tuple[int, str, str]:
    """When a line was observed, what it says happened, and to which kind."""
    match = HEAD.match(raw)
    if not match:
        found = _slow_head(raw)
    else:
        kind, version = match[4], match[3] or match[5] or b""
        if kind is None:
            tail = TAIL.search(raw, max(0, len(raw) - 200))
            kind, version = (tail[1], tail[2] or version) if tail else (None, b"")
        if kind is None or not version:
            found = _slow_head(raw)
        else:
            observed = micros(match[1].decode())
            if observed is None:
                raise Unusable("bad_observed_at", match[1].decode())
            found = observed, match[2].decode(), kind_of(kind.decode(), version.decode())
    if found[1] not in TYPES:
        raise Unusable("unknown_type", found[1])
    return found


def lines(path: Path) -> Iterator[Line | Refused]:
    """The lines of a watch stream; a file that breaks off gives what could be read of it."""
    after, number = None, 0
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        try:
            for number, raw in enumerate(file, 1):
                try:
                    observed, change, kind = head(raw)
                except Unusable as error:
                    if raw.strip():
                        yield Refused(number, after, error.reason, error.example)
                    continue
                after = observed
                yield Line(number, observed, change, kind, raw)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            yield Refused(number + 1, after, "file_broken", str(error))


_KNOWN: dict[tuple[Path, int, int], Surveyed] = {}
"""Surveys of files as they were, by path, time of change and size."""
MOST_KNOWN = 10_000


def survey(path: Path) -> Surveyed:
    """What a stream holds; kept while the file does not change."""
    return surveys([path])[0]


def surveys(paths: Sequence[Path]) -> list[Surveyed]:
    """What many streams hold, read beside each other where it is worth it."""
    keys = [(path, state.st_mtime_ns, state.st_size) for path in paths for state in [path.stat()]]
    unknown = [key[0] for key in keys if key not in _KNOWN]
    if len(_KNOWN) > MOST_KNOWN:
        _KNOWN.clear()
        unknown = list(paths)
    with beside(unknown) as workers:
        found = dict(zip(unknown, workers.results(_survey, [(p,) for p in unknown]), strict=True))
    _KNOWN.update((key, found[key[0]]) for key in keys if key[0] in found)
    return [_KNOWN[key] for key in keys]


def _survey(path: Path) -> Surveyed:
    found = Surveyed()
    for line in lines(path):
        if isinstance(line, Refused):
            if line.reason in ("bad_json", "file_broken"):
                found.fault = line.reason
            continue
        found.good += 1
        found.first = line.observed if found.first is None else min(found.first, line.observed)
        found.last = line.observed if found.last is None else max(found.last, line.observed)
        if line.kind not in KINDS:
            times, first = found.others.get(line.kind, (0, line.observed))
            found.others[line.kind] = (times + 1, first)
            continue
        known = found.kinds.get(line.kind)
        if known is None:
            known = found.kinds[line.kind] = Survey(line.observed, line.observed)
            before = None
        else:
            before = known.last
        if line.change not in LISTING:
            known.is_watched = True
        elif (
            line.change == "LISTED"
            and known.is_listing
            and before is not None
            and line.observed - before < PAGE_SECONDS * 1_000_000
        ):
            known.runs[-1] = known.runs[-1]._replace(last=line.number)
        else:
            known.runs.append(Run(line.number, line.number, line.observed, before))
        known.is_listing = line.change in LISTING
        known.first = min(known.first, line.observed)
        known.last = max(known.last, line.observed)
    return found


class Listed(NamedTuple):
    """A file of a list or a single object, read whole."""

    items: list[tuple[int, str, dict[str, Any]]]
    """Place in the file, kind, object."""
    newest: int | None
    """The newest time found in it."""


STAMP = re.compile(rb'"(20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:]{8}(?:\.[0-9]+)?Z)"')


def listed(path: Path) -> Listed:
    """The objects of a `kubectl get -o json`; Unusable where the file is none."""
    raw = path.read_bytes()
    try:
        content = orjson.loads(raw)
    except orjson.JSONDecodeError:
        raise Unusable("bad_json", raw[:120].decode("utf-8", "replace")) from None
    if not isinstance(content, dict) or not isinstance(content.get("kind"), str):
        raise Unusable("other_file", raw[:120].decode("utf-8", "replace"))
    group = str(content.get("apiVersion", ""))
    objects = [content]
    inner = content["kind"]
    if inner.endswith("List") and isinstance(content.get("items"), list):
        objects, inner = content["items"], inner.removesuffix("List")
    items = []
    for place, item in enumerate(objects, 1):
        if not isinstance(item, dict):
            raise Unusable("malformed", f"item {place}")
        kind = kind_of(str(item.get("kind", inner)), str(item.get("apiVersion", group)))
        items.append((place, kind, item))
    stamps = [stamp.decode() for stamp in set(STAMP.findall(raw))]
    return Listed(items, max((micros(stamp) or 0 for stamp in stamps), default=None))
