"""The API server's audit log: which workload objects people created, for whose they are.

Files `audit*.log` and `audit*.log.gz` of a recorded folder, one `audit.k8s.io/v1` Event a line.
Whose a pod is, by the creator of its top-level object, follows in `sql/core`.
"""

import gzip
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from collectors.batches import Rows
from collectors.coverage import Days, micros_of
from collectors.quantities import count, micros, needed, part, text
from collectors.rejections import Rejections
from collectors.source import Batch, Settings, Unusable
from collectors.streams import OWNERS
from models.window import Window

FILES = re.compile(r"audit.*\.log(\.gz)?")
KINDS = {
    ("", "pods"): "Pod",
    ("scheduling.volcano.sh", "podgroups"): "PodGroup",
    **{(group, f"{k.removeprefix('Volcano').lower()}s"): k for k, group in OWNERS.items()},
}
"""Group and resource -> the word by which we call the kind."""
CREATING = re.compile(rb'"verb": ?"(?:create|patch|update)"')
"""Cheap to look for: nearly all of a log is about something else."""
CREATED = 201


def creations(
    path: Path, settings: Settings, window: Window | None, rejections: Rejections
) -> Iterator[Batch]:
    """Rows of raw.object_creations of the window's days; a request is one, however often logged."""
    days = Days(settings.zone)
    begin = micros_of(window.begin) if window else 0
    end = micros_of(window.end) if window else 2**62
    found: dict[str, dict[str, Any]] = {}
    for file in sorted(path.rglob("audit*.log*")):
        if not FILES.fullmatch(file.name):
            continue
        name, at = file.relative_to(path).as_posix(), begin
        for number, raw in _lines(file):
            try:
                if raw is None:
                    raise Unusable("file_broken", name)
                row = _row(raw, f"{name}:{number}")
            except Unusable as error:
                if begin <= at < end or error.reason == "file_broken":
                    example = f"{name}:{number} {error.example}"
                    rejections.add(days.of(at), name, error.reason, example)
                continue
            if row is None:
                continue
            at = row["created_at"]
            known = found.get(row["audit_id"])
            if begin <= at < end and (known is None or known["answered_at"] <= row["answered_at"]):
                row |= {"cluster_name": settings.cluster, "day_on": days.of(at)}
                found[row["audit_id"]] = row
    rows = Rows("raw.object_creations")
    for row in found.values():
        if row["object_name"] is None:
            example = f"{row['source_ref']} {row['kind_name']}"
            file_name = row["source_ref"].rpartition(":")[0]
            rejections.add(row["day_on"], file_name, "no_created_name", example)
            continue
        rows.add(row)
        yield from rows.full()
    yield from rows.rest()


def _lines(file: Path) -> Iterator[tuple[int, bytes | None]]:
    """The lines that may tell of a creation, numbered; None where the file breaks off."""
    number = 0
    with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as lines:
        try:
            for number, raw in enumerate(lines, 1):
                if CREATING.search(raw):
                    yield number, raw
        except (EOFError, zlib.error, gzip.BadGzipFile):
            yield number + 1, None


def _row(raw: bytes, place: str) -> dict[str, Any] | None:
    """A line as a row; None where it tells of no workload object that a person created.

    What controllers create is attributed through owners. An answer alone tells that it was created:
    a request that was only received may have failed.
    """
    try:
        event = orjson.loads(raw)
    except orjson.JSONDecodeError:
        raise Unusable("bad_json", raw[:80].decode("utf-8", "replace")) from None
    target = part(part(event).get("objectRef"))
    kind = KINDS.get((str(target.get("apiGroup", "")), str(target.get("resource", ""))))
    verb, code = event.get("verb"), count(part(event.get("responseStatus")).get("code"))
    if kind is None or event.get("stage") != "ResponseComplete" or target.get("subresource"):
        return None
    is_created = code == CREATED or (verb == "create" and 0 < code < 300)
    if not is_created or "dryRun=" in str(event.get("requestURI", "")):
        return None
    caller = needed(part(event.get("user")).get("username"), "no_name")
    meant = text(part(event.get("impersonatedUser")).get("username"))
    if (meant or caller).startswith("system:"):
        return None
    made = [
        part(part(event.get(key)).get("metadata")) for key in ("responseObject", "requestObject")
    ]
    names = (target.get("name"), made[0].get("name"), made[1].get("name"))
    received = micros(event.get("requestReceivedTimestamp"))
    answered = micros(event.get("stageTimestamp"))
    if received is None:
        raise Unusable("bad_instant", place)
    return {
        "audit_id": needed(event.get("auditID"), "no_uid"),
        "source_ref": place,
        "created_at": received,
        # At least the request's own second: the server's clock may have been set back.
        "answered_at": max(received, answered or received),
        "kind_name": kind,
        "namespace_name": text(target.get("namespace")) or "",
        "object_name": next((name for name in names if isinstance(name, str) and name), None),
        "object_uid": text(made[0].get("uid")) or text(target.get("uid")),
        "verb_name": str(verb),
        "user_name": meant or caller,
        "caller_name": caller if meant else None,
    }
