"""What must be conserved of a random fleet, added up in plain Python from its lines alone.

It shares no code with the product: the rules are those of docs/accounting.md. Instants are whole
seconds since 1970, GPUs are in millionths.
"""

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from math import floor
from zoneinfo import ZoneInfo

from tests.random_fleet import A100, START, Fleet, Seen

ORIGIN = int(START.timestamp())
LATEST = 1 << 60
ABSENT = "__not_in_cluster__/a100-80gb"
Span = tuple[int, int]
Hour = tuple[str, int, int | None]
"""Node, begin of the hour, price (None where there is none)."""


@dataclass
class Sums:
    """The days that are known, what is installed in them, and what pods hold."""

    days: dict[date, Span]
    known: Span
    installed: dict[tuple[date, str], list[tuple[Span, int]]]
    """(day, node) -> stretches and how many GPUs."""
    models: dict[str, str | None]
    held: dict[tuple[date, str], Span]
    """(day, pod) -> from when to when it holds what it asks for."""


def second(text: str) -> int:
    """An instant of an object, rounded down."""
    return floor(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp())


def cut(span: Span, other: Span) -> Span:
    """What two spans have in common; empty where the end is not after the begin."""
    return max(span[0], other[0]), min(span[1], other[1])


def sums(fleet: Fleet) -> Sums:
    """The fleet's sums."""
    zone = ZoneInfo(fleet.zone)
    main = [line for line in fleet.seen() if line.kind in ("Node", "Pod")]
    moments = [line.at for line in main]
    known = (floor(ORIGIN + min(moments)), floor(ORIGIN + max(moments)))
    day, days = datetime.fromtimestamp(known[0], zone).date(), {}
    while True:
        begins, ends = (
            int(datetime.combine(d, time(), zone).timestamp()) for d in (day, day + timedelta(1))
        )
        if begins >= known[1]:
            break
        days[day] = (begins, ends)
        day += timedelta(1)
    found = Sums(days, known, {}, {"__unplaced__": None}, {})
    for each in days:
        _pods(fleet, found, each)
        _nodes(fleet, found, each)
    return found


def _by_uid(fleet: Fleet, kind: str, until: int) -> dict[str, list[Seen]]:
    """The versions of each object that were observed before an instant."""
    found: dict[str, list[Seen]] = defaultdict(list)
    for line in fleet.seen():
        if line.kind == kind and line.change != "BOOKMARK" and ORIGIN + line.at < until:
            found[line.uid].append(line)
    return found


def _deleted(fleet: Fleet, lines: list[Seen], until: int) -> int | None:
    """When the object was first known to be gone, as known before an instant."""
    gone = [line.at for line in lines if line.change == "DELETED"]
    lost = fleet.vanished.get((lines[0].kind, lines[0].uid))
    moments = [ORIGIN + at for at in (*gone, *([] if lost is None else [lost]))]
    return min((floor(at) for at in moments if at < until), default=None)


def _nodes(fleet: Fleet, found: Sums, day: date) -> None:
    span = cut(found.days[day], found.known)
    is_any = False
    owned: list[tuple[int, int]] = []
    for uid, lines in _by_uid(fleet, "Node", found.days[day][1]).items():
        is_any = True  # once nodes were told of, none are none
        deleted = _deleted(fleet, lines, found.days[day][1])
        if deleted is not None and deleted < span[0]:
            continue
        meta = lines[0].item["metadata"]
        model = meta["labels"]["nvidia.com/gpu.product"]
        count = max(line.gpus for line in lines)
        until = span[1] if deleted is None else deleted
        exists = cut((second(meta["creationTimestamp"]), until), span)
        found.models[uid] = model
        if exists[0] < exists[1]:
            found.installed[day, uid] = [(exists, count)]
            if model == A100:
                owned += [(exists[0], -count), (exists[1], count)]
    if not is_any:
        found.installed[day, "__unplaced__"] = []
        return
    for row in fleet.owned:
        begins, ends = cut((second(row["from"]), span[1]), span)
        if begins < ends:
            owned += [(begins, row["count"]), (ends, -row["count"])]
            found.installed[day, ABSENT] = _above_nothing(owned)
            found.models[ABSENT] = A100


def _above_nothing(steps: list[tuple[int, int]]) -> list[tuple[Span, int]]:
    edges = sorted({at for at, _ in steps})
    found = []
    for begin, end in pairwise(edges):
        total = sum(step for at, step in steps if at <= begin)
        if total > 0:
            found.append(((begin, end), total))
    return found


def _pods(fleet: Fleet, found: Sums, day: date) -> None:
    span = cut(found.days[day], found.known)
    until = found.days[day][1]
    for uid, lines in _by_uid(fleet, "Pod", LATEST).items():
        own = [line for line in lines if ORIGIN + line.at < until]
        told = _heard(fleet, found, lines, day)
        bound = _bound(own, [at for at, key in told if key == "bound"])
        if not own and not told:
            continue
        ends = [
            _deleted(fleet, lines, until),
            _finished(own, [at for at, key in told if key == "finished"]),
        ]
        ended = min((at for at in ends if at is not None), default=span[1])
        asked = lines[0].item["spec"]["containers"][0]["resources"]["requests"]
        if bound is not None and asked:
            held = cut((bound, ended), span)
            if held[0] < held[1]:
                found.held[day, uid] = held


def _instants(line: Seen) -> list[tuple[int, str]]:
    """What a version tells of when something happened."""
    meta, status = line.item["metadata"], line.item["status"]
    found = [(second(meta["creationTimestamp"]), "created")]
    if "nodeName" in line.item["spec"]:
        for each in status.get("conditions", []):
            found.append((second(each["lastTransitionTime"]), "bound"))
    for each in status.get("containerStatuses", []):
        [(state, told)] = each["state"].items()
        found.append((second(told["startedAt"]), "started"))
        if state == "terminated" and status["phase"] in ("Succeeded", "Failed"):
            found.append((second(told["finishedAt"]), "finished"))
    if "deletionTimestamp" in meta:
        asked = second(meta["deletionTimestamp"]) - meta["deletionGracePeriodSeconds"]
        found.append((asked, "asked"))
    return found


def _heard(fleet: Fleet, found: Sums, lines: list[Seen], day: date) -> list[tuple[int, str]]:
    """What this day and those before heard of an object within an hour after their ends."""
    told = []
    first = ORIGIN + min(line.at for line in fleet.seen() if line.kind in ("Node", "Pod"))
    for begins, ends in (span for each, span in found.days.items() if each <= day):
        for line in lines:
            instants = _instants(line)
            is_late = ends <= ORIGIN + line.at < _late(fleet, ends)
            is_news = any(max(begins, first) <= at < ends for at, _ in instants)
            if is_late and is_news and instants[0][0] < ends:
                told += [(at, key) for at, key in instants if at < ends]
    return told


def _late(fleet: Fleet, ends: int) -> float:
    """Until when a day that ended then hears of it: an hour, and not less after a gap."""
    until: float = ends + 3600
    lines = sorted((s for s in fleet.seen() if s.kind == "Pod"), key=lambda line: line.at)
    for before, line in pairwise(lines):
        is_gap = line.change == "LISTED" and before.at < line.at
        if is_gap and ORIGIN + before.at < until and ORIGIN + line.at > ends:
            until = ORIGIN + line.at + 3600
    return until


def _bound(lines: list[Seen], heard: list[int]) -> int | None:
    with_node = [line for line in lines if "nodeName" in line.item["spec"]]
    told = [at for line in with_node for at, key in _instants(line) if key == "bound"]
    seen = [floor(ORIGIN + line.at) for line in with_node]
    return min([*told, *heard] or seen, default=None)


def _finished(lines: list[Seen], heard: list[int]) -> int | None:
    over = [line for line in lines if line.item["status"]["phase"] in ("Succeeded", "Failed")]
    told = [at for line in over for at, key in _instants(line) if key == "finished"]
    seen = [floor(ORIGIN + line.at) for line in over]
    return max([*told, *heard]) if told or heard else min(seen, default=None)


def price_at(fleet: Fleet, model: str | None, at: int) -> int | None:
    """The price in millionths that applies to a model at an instant."""
    found = [
        (row["gpu_model"] != "*", second(row["valid_from"]), row["per_gpu_hour"])
        for row in fleet.prices
        if row["gpu_model"] in ("*", model) and second(row["valid_from"]) <= at
    ]
    return round(float(max(found)[2]) * 1_000_000) if found else None


def by_hour(fleet: Fleet, found: Sums) -> dict[Hour, int]:
    """The micro-GPU-seconds installed in each hour of each node at each price."""
    changes = {second(row["valid_from"]) for row in fleet.prices}
    totals: dict[Hour, int] = defaultdict(int)
    for (day, uid), stretches in found.installed.items():
        midnight, end = found.days[day]
        for span, count in stretches:
            for hour in range(midnight, end, 3600):
                inside = cut(span, (hour, min(hour + 3600, end)))
                edges = sorted({*inside, *(c for c in changes if inside[0] < c < inside[1])})
                for piece in pairwise(edges):
                    if inside[0] < inside[1] and count:
                        price = price_at(fleet, found.models[uid], piece[0])
                        totals[uid, hour, price] += (piece[1] - piece[0]) * count * 1_000_000
    return dict(totals)


def cost(micro_gpu_seconds: int, price: int) -> int:
    """GPU-time x price, half up to the micro-unit."""
    return (2 * micro_gpu_seconds * price + 3_600_000_000) // 7_200_000_000


def instant(at: int) -> datetime:
    """The instant as the tables give it."""
    return datetime.fromtimestamp(at, UTC)
