"""What a pod's container statuses say: since when all run that ask for the GPU, or why not.

What follows for the state of a hold belongs to `sql/core/runs.sql`.
"""

from typing import Any, NamedTuple

from collectors.quantities import count, part, parts, runtime_micros
from collectors.requests import is_sidecar

PULL_ERRORS = frozenset(
    ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")
)
TERMINAL = frozenset(("Succeeded", "Failed"))


class Runs(NamedTuple):
    """The columns that container statuses give."""

    running_since_at: int | None
    stopped_at: int | None
    finished_at: int | None
    waiting_cause_name: str | None
    start_order_text: str
    restart_count: int
    exit_code_number: int | None


class Current(NamedTuple):
    """A container's current run; `end` is None while it goes on."""

    begin: int | None
    end: int | None
    previous_end: int | None


def _current(status: dict[str, Any]) -> Current:
    state, last = part(status.get("state")), part(status.get("lastState"))
    before = part(last.get("terminated"))
    before_end = runtime_micros(before.get("finishedAt"))
    if running := part(state.get("running")):
        return Current(runtime_micros(running.get("startedAt")), None, before_end)
    if ended := part(state.get("terminated")):
        return Current(
            runtime_micros(ended.get("startedAt")),
            runtime_micros(ended.get("finishedAt")),
            before_end,
        )
    return Current(runtime_micros(before.get("startedAt")), before_end, None)  # it waits


def _is_running(status: dict[str, Any]) -> bool:
    return "running" in part(status.get("state"))


def _stretch(statuses: list[dict[str, Any] | None]) -> tuple[int | None, int | None]:
    """Begin and end of the stretch in which all of them ran, as far as these statuses tell."""
    known = [_current(status) for status in statuses if status is not None]
    begins = [run.begin for run in known if run.begin is not None]
    is_complete = len(begins) == len(statuses) > 0
    if all(status is not None and _is_running(status) for status in statuses):
        ends = [run.previous_end for run in known if run.previous_end is not None]
        return (max(begins) if is_complete else None), max(ends, default=None)
    end = min((run.end for run in known if run.end is not None), default=None)
    if is_complete and end is not None and (begin := max(begins)) <= end:
        return begin, end
    return None, end


def _init_is_open(spec: dict[str, Any], status: dict[str, Any], conditions: dict[str, Any]) -> bool:
    """Whether an init container that is no sidecar has not finished."""
    plain = {c.get("name") for c in parts(spec.get("initContainers")) if not is_sidecar(c)}
    told = parts(status.get("initContainerStatuses"))
    if not told and "Initialized" in conditions:
        return bool(plain) and conditions["Initialized"].get("status") != "True"
    done = set()
    for each in told:
        ended = part(part(each.get("state")).get("terminated"))
        if ended and ended.get("exitCode", 0) == 0:
            done.add(each.get("name"))
    return not plain <= done


def _waiting_cause(
    spec: dict[str, Any],
    status: dict[str, Any],
    conditions: dict[str, Any],
    told: list[dict[str, Any]],
) -> str:
    if _init_is_open(spec, status, conditions):
        return "init"
    reasons = {part(part(each.get("state")).get("waiting")).get("reason") for each in told}
    if reasons & PULL_ERRORS:
        return "image_pull"
    return "crash_loop" if "CrashLoopBackOff" in reasons else "undetermined"


def _start_order(spec: dict[str, Any], waited: frozenset[Any]) -> str:
    """The containers as a kubelet starts them, up to the last that is waited for."""
    listed = parts(spec.get("initContainers")) + parts(spec.get("containers"))
    names = [str(each.get("name")) for each in listed]
    last = max((place for place, name in enumerate(names, 1) if name in waited), default=0)
    return " ".join(names[:last])


def runs_of(
    spec: dict[str, Any],
    status: dict[str, Any],
    conditions: dict[str, Any],
    askers: frozenset[str],
    observed: int,
) -> Runs:
    """What the statuses say; `askers` are the containers and sidecars that ask for the GPU."""
    main = parts(spec.get("containers"))
    told = parts(status.get("containerStatuses"))
    beside = parts(status.get("initContainerStatuses"))
    sidecars = {c.get("name") for c in parts(spec.get("initContainers")) if is_sidecar(c)}
    lasting = told + [each for each in beside if each.get("name") in sidecars]
    named = {each.get("name"): each for each in lasting}
    waited = askers or frozenset(c.get("name") for c in main)
    begin, end = _stretch([named.get(name) for name in waited])

    is_over = status.get("phase") in TERMINAL
    finished = None
    if is_over:
        instants = [_current(each).end for each in lasting]
        finished = max((each for each in instants if each is not None), default=observed)
    goes_on = bool(waited) and all(name in named and _is_running(named[name]) for name in waited)
    is_waiting = not is_over and not goes_on
    ends = [
        part(part(each.get(key)).get("terminated"))
        for each in (*told, *beside)
        for key in ("state", "lastState")
    ]
    return Runs(
        begin,
        end,
        finished,
        _waiting_cause(spec, status, conditions, told + beside) if is_waiting else None,
        _start_order(spec, waited),
        sum(count(each.get("restartCount")) for each in lasting),
        max((count(end.get("exitCode")) for end in ends if end), default=None),
    )
