"""Each run of each container of a pod, as its statuses tell: the current one and the one before.

What that means for the whole pod is in `containers`.
"""

from collections.abc import Iterator
from typing import Any

from collectors.quantities import count, part, parts, runtime_micros, text
from collectors.requests import is_sidecar

Run = tuple[str, str, int, int | None, int | None, str | None, int]
"""Container, role, started, ended, exit code, why it ended, restarts until it."""


def container_runs(spec: dict[str, Any], status: dict[str, Any]) -> tuple[Run, ...]:
    """The runs of containers, init containers and sidecars that have begun, in no order."""
    sidecars = {c.get("name") for c in parts(spec.get("initContainers")) if is_sidecar(c)}
    found: list[Run] = []
    for each in parts(status.get("containerStatuses")):
        found += _runs(each, "main")
    for each in parts(status.get("initContainerStatuses")):
        found += _runs(each, "sidecar" if each.get("name") in sidecars else "init")
    return tuple(found)


def _runs(status: dict[str, Any], role: str) -> Iterator[Run]:
    name, restarts = text(status.get("name")) or "", count(status.get("restartCount"))
    state, last = part(status.get("state")), part(status.get("lastState"))
    running, ended = part(state.get("running")), part(state.get("terminated"))
    before = part(last.get("terminated"))
    now = running or ended
    if before and (begun := runtime_micros(before.get("startedAt"))) is not None:
        yield _run(name, role, begun, before, restarts - bool(now))
    if now and (begun := runtime_micros(now.get("startedAt"))) is not None:
        yield _run(name, role, begun, ended, restarts)


def _run(name: str, role: str, begun: int, ended: dict[str, Any], restarts: int) -> Run:
    end = runtime_micros(ended.get("finishedAt"))
    code = count(ended.get("exitCode")) if ended else None
    # A container that never ran has an end before its begin, or none that can be true.
    end = end if end is None or end >= begun else begun
    return name, role, begun, end, code, text(ended.get("reason")), max(0, restarts)


def image_of(spec: dict[str, Any], askers: frozenset[str]) -> str | None:
    """The image, as the pod names it, of the first container that asks for the GPU, else of all."""
    containers = parts(spec.get("containers"))
    asking = [c for c in containers if c.get("name") in askers] or containers
    return text(asking[0].get("image")) if asking else None
