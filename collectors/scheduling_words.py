"""The grammar of what schedulers and queues say of work that waits: text in, reasons out. Pure.

Kubernetes' scheduler, Volcano and Kueue, in the wordings of all their versions that we know; what
we do not know is a reason `other` with its text, never an error. Which fields and events hold such
texts belongs to the parsers of objects; whether a resource was ever there, to `sql`.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

COMBINED = "(combined from similar events): "
NODES = re.compile(
    r"(?:(?:[0-9]{1,9}/([0-9]{1,9})|all|[0-9]{1,9}) nodes are (?:un)?available)(?:[:,.] ?|$)",
    re.IGNORECASE,
)
PREEMPTION = re.compile(r"\.{1,2} (?:[^.:]{1,200}, )?preemption: ")
AFTERWORD = re.compile(r"\.{1,2} (?:no new claims to deallocate|still not schedulable)\.?$")
PART = re.compile(r", (?=[0-9]{1,9} )")
COUNTED = re.compile(r"([0-9]{1,9}) (.+)", re.DOTALL)
PREDICATES = re.compile(
    r"(?:no nodes are available that match all of the (?:following )?predicates:{1,2}"
    r"|.*fit failure summary on nodes ?:) ?(.+)",
    re.IGNORECASE | re.DOTALL,
)
PREDICATE = re.compile(r"(.+?) \(([0-9]{1,9})\)")
SCALE_UP = re.compile(r"pod didn't trigger scale-up(?: \([^)]*\))?(?:: |$)", re.IGNORECASE)

POD_GROUP = re.compile(r"PodGroup \S+ unschedulable, reason: ")
GANG = re.compile(
    r"(?:[0-9]{1,9}/[0-9]{1,9} tasks in gang unschedulable: "
    r"|(?=(?:pod group|job) is (?:not )?ready))"
)
ORIGIN = re.compile(r"\.? *Origin reason is \S*?: ")
MEMBERS = re.compile(r"([0-9]{1,9}) ([A-Za-z]+)")
READY = frozenset(("Allocated", "Binding", "Bound", "Running", "Succeeded"))
"""Members that count as ready for a gang; pipelined ones only hope for what is being released."""

POD_SET = re.compile(r"couldn't assign flavors to pod set (\S+?): ")
TO_PREEMPT = re.compile(r"[.,;]? *(Pending the preemption of [0-9]+ workload\(s\))\.?$")
QUOTA = re.compile(
    r"insufficient unused quota(?: in cohort)? for (?P<full>\S+?)(?: in)? flavor "
    r"(?P<full_in>[^\s,;]+), (?P<more>[^\s,;]+) more needed"
    r"|insufficient quota for (?P<never>\S+?)(?: in)? flavor (?P<never_in>[^\s,;]+)"
    r"(?: in ClusterQueue)?(?:, (?:previously considered podsets requests \((?P<before>[^)]*)\) \+ "
    r"current podset request \((?P<now>[^)]*)\)|request) > maximum capacity "
    r"\((?P<most>[^)]*)\))?"
    r"|borrowing limit for (?P<limit>\S+) in flavor (?P<limit_in>[^\s,;]+) exceeded"
    r"|untolerated taint (?P<taint>\{[^}]*\}) in flavor (?P<taint_in>[^\s,;]+)"
    r"|flavor (?P<other_in>[^\s,;]+) (?P<other>[^,;]+)"
    r"|resource (?P<unknown>[^\s,;]+) unavailable in ClusterQueue"
)
TOPOLOGY = re.compile(
    r'topology "[^"]*" (?:allows to fit only (?P<fit>[0-9]{1,9}) out of (?P<of>[0-9]{1,9})'
    r"|doesn't allow to fit any of (?P<all>[0-9]{1,9})) pod\(s\)"
    r"(?:\. Total nodes: (?P<nodes>[0-9]{1,9})(?:; excluded: (?P<excluded>.*))?)?",
    re.DOTALL,
)
EXCLUDED = re.compile(r'(?P<what>\w+)(?: "(?P<name>[^"]*)")?: (?P<count>[0-9]{1,9})(?:, |$)')
EXCLUDERS = {"taint": "taint", "nodeSelector": "affinity", "affinity": "affinity"}

INSUFFICIENT = re.compile(r"insufficient (\S+)", re.IGNORECASE)
TAINT = re.compile(r"\{.*\}", re.DOTALL)
MEANINGS = tuple(
    (re.compile(pattern, re.IGNORECASE | re.DOTALL), reason)
    for pattern, reason in (
        (r"insufficient pods$|too many pods|pod number exceeded|maxpodnumber", "too_many_pods"),
        (r"^insufficient \S+$", "resource_short"),
        (r"queue resource quota insufficient|overused|exceeds? .*quota", "quota_full"),
        (r"taint", "taint"),
        (r"(?:were |node\(s\) |^)unschedulable|nodeunschedulable", "unschedulable"),
        (r"topology ?spread", "topology_spread"),
        (r"persistent ?volume|volume|free storage|disk conflict|diskconflict", "volume"),
        (r"available disk$|\bpvc\b", "volume"),
        (r"claim", "claim"),
        (r"free ports|hostports", "ports"),
        (r"affinity|node ?selector|requested (?:host|node) ?name|^hostname$", "affinity"),
        (r"bad node|not ?ready|pressure|out ?of ?disk|network ?unavailable", "node_unfit"),
        (r"preemption is not helpful", "preemption_useless"),
        (r"no (?:preemption )?victims found", "no_victims"),
        (r"not eligible due to", "preemption_not_eligible"),
        (r"pending the preemption of", "preemption_pending"),
        (r"no nodes available to schedule|^no nodes", "no_nodes"),
        (r"non-empty scheduling gates", "gated"),
        (r"can possibly be assigned to", "placeable"),
        (r"skip schedule deleting pod", "deleting"),
        (r"^(?:previously: )?preempted to accommodate", "preempted"),
        (r"exceeded the podsready timeout", "pods_not_ready"),
        (r"no longer fits after|overlapping preemption targets", "overtaken"),
        (
            r"(?:cluster|local)queue .*(?:inactive|stopped|doesn't exist|not found)",
            "queue_unusable",
        ),
        (r"(?:is inactive|not found|doesn't exist) *(?:in the cluster)?$", "queue_unusable"),
        (r"gang|minmember|minavailable", "gang"),
    )
)
"""What a text means, by the first that is found in it."""


class Reason(NamedTuple):
    """One reason that a text gives, in the order of `Kind.REASONS`."""

    section_name: str
    """scheduling, preemption (what would come of it), or scale_up (an autoscaler's own nodes)."""
    reason_name: str
    reason_text: str
    node_count: int | None = None
    total_node_count: int | None = None
    resource_name: str | None = None
    missing_count: int | None = None
    taint_text: str | None = None
    pod_set_name: str | None = None
    flavor_name: str | None = None
    is_cut: bool = False


@lru_cache(maxsize=8192)
def reasons(text: str) -> tuple[Reason, ...]:
    """All that a text gives as reasons; none only for a text that is empty."""
    body = text.removeprefix(COMBINED).strip()
    return tuple(_reasons(body)) if body else ()


def _reasons(body: str) -> Iterator[Reason]:
    if match := POD_GROUP.match(body):
        body = body[match.end() :]
    if match := GANG.match(body):
        yield from _of_gang(body, body[match.end() :])
    elif match := SCALE_UP.match(body):
        rest = body[match.end() :].removesuffix(".")
        parts = _counted(rest) if rest else [(None, body)]
        yield from (_meant("scale_up", part, count) for count, part in parts)
    elif POD_SET.search(body) or TO_PREEMPT.search(body):
        yield from _of_kueue(body)
    elif match := NODES.match(body):
        yield from _of_nodes(match, body)
    elif match := PREDICATES.match(body):
        found = [(int(m[2]), m[1].strip(" ,.")) for m in PREDICATE.finditer(match[1])]
        yield from (_meant("scheduling", part, count) for count, part in found or [(None, body)])
    else:
        yield _meant("scheduling", body, None)


def _meant(section: str, text: str, count: int | None, total: int | None = None) -> Reason:
    """A reason by what its text means."""
    plain = text.rstrip(". ")
    name = next((reason for known, reason in MEANINGS if known.search(plain)), "other")
    taint = TAINT.search(text) if name == "taint" else None
    resource = INSUFFICIENT.search(plain) if name in ("resource_short", "quota_full") else None
    if name == "quota_full" and resource:  # "...quota insufficient: insufficient nvidia.com/gpu"
        resource = list(INSUFFICIENT.finditer(plain))[-1]
    return Reason(
        section,
        name,
        plain or text,
        node_count=count,
        total_node_count=total,
        resource_name=resource[1].strip(",;:") or None if resource else None,
        taint_text=taint[0] if taint else None,
    )


def _counted(listed: str) -> list[tuple[int | None, str]]:
    """The parts of a list `2 this, 3 that`; reasons may have commas and colons of their own."""
    found: list[tuple[int | None, str]] = []
    for part in PART.split(listed):
        match = COUNTED.fullmatch(part)
        found.append((int(match[1]), match[2]) if match else (None, part))
    return found


def _of_nodes(head: re.Match[str], body: str) -> Iterator[Reason]:
    """`0/N nodes are available: ...`, and what follows of preemption."""
    total = int(head[1]) if head[1] else None
    rest = AFTERWORD.sub(".", body[head.end() :])
    split = PREEMPTION.search(rest)
    main, after = (rest[: split.start() + 1], rest[split.end() :]) if split else (rest, None)
    is_cut = _is_cut(after if after is not None else main, len(body))
    yield from _section("scheduling", main, body, total, is_cut, is_cut and after is None)
    if after is None:
        return
    again = NODES.match(after)
    if again:
        after, total = after[again.end() :], int(again[1]) if again[1] else None
    yield from _section("preemption", after, body, total if again else None, is_cut, is_cut)


def _is_cut(last: str, length: int) -> bool:
    """Whether a text breaks off: it says so, or its last part ends in the middle of nowhere."""
    if last.endswith("..."):
        return True
    if last.endswith(".") or not last:
        return False
    _, part = _counted(last)[-1]
    return length >= MOST_OF_SCHEDULER or _meant("scheduling", part, None).reason_name == "other"


MOST_OF_SCHEDULER = 1000
"""A text this long without a full stop was cut: the scheduler's own events end at 1,024."""


def _section(
    section: str, listed: str, body: str, total: int | None, is_cut: bool, is_end_cut: bool
) -> Iterator[Reason]:
    if not listed.strip(". "):
        yield _meant(section, body, None, total)
        return
    parts = _counted(listed.rstrip(". "))
    for place, (count, part) in enumerate(parts, 1):
        if is_end_cut and place == len(parts):
            whole = part if count is None else f"{count} {part}"
            yield Reason(section, "cut", whole, total_node_count=total, is_cut=True)
        else:
            yield _meant(section, part, count, total)._replace(is_cut=is_cut)


def _of_gang(body: str, rest: str) -> Iterator[Reason]:
    """Volcano's `A/B tasks in gang unschedulable: ...`; A/B is no fraction and says nothing."""
    origin = ORIGIN.search(body)
    told = body[: origin.start()] if origin else body
    first = re.split(r"[;.] ?", rest[: len(told) - len(body) + len(rest)], maxsplit=1)[0]
    members = {word: int(number) for number, word in MEMBERS.findall(first)}
    least = members.get("minAvailable")
    ready = sum(number for word, number in members.items() if word in READY)
    missing = None if least is None else max(0, least - ready)
    yield Reason("scheduling", "gang", told.strip(". "), missing_count=missing)
    inner = body[origin.end() :] if origin else rest
    if match := NODES.match(inner):
        yield from _of_nodes(match, inner)
    elif origin:
        yield _meant("scheduling", inner, None)


def _of_kueue(body: str) -> Iterator[Reason]:
    """Why no flavor was assigned, pod set by pod set, and what would have to be preempted."""
    pending = TO_PREEMPT.search(body)
    told = body[: pending.start()] if pending else body
    begins = [*POD_SET.finditer(told)]
    before = told[: begins[0].start()] if begins else told
    yield from _rest(before, None)
    for place, begin in enumerate(begins, 1):
        end = begins[place].start() if place < len(begins) else len(told)
        yield from _of_pod_set(begin[1], told[begin.end() : end].strip(" ;"))
    if pending:
        yield _meant("preemption", pending[1], None)


def _rest(text: str, pod_set: str | None) -> Iterator[Reason]:
    if left := text.strip(" ,;."):
        yield _meant("scheduling", left, None)._replace(pod_set_name=pod_set)


def _of_pod_set(pod_set: str, text: str) -> Iterator[Reason]:
    topology = TOPOLOGY.search(text)
    quotas = text[: topology.start()] if topology else text
    end = 0
    for match in QUOTA.finditer(quotas):
        yield from _rest(quotas[end : match.start()], pod_set)
        yield _quota(match)._replace(pod_set_name=pod_set)
        end = match.end()
    yield from _rest(quotas[end:], pod_set)
    if topology:
        yield from (reason._replace(pod_set_name=pod_set) for reason in _topology(topology))
        yield from _rest(text[topology.end() :], pod_set)


def _quota(match: re.Match[str]) -> Reason:
    text = match[0].strip()
    if match["full"]:
        return Reason(
            "scheduling",
            "quota_full",
            text,
            resource_name=match["full"],
            missing_count=_number(match["more"]),
            flavor_name=match["full_in"],
        )
    if match["never"]:
        return Reason(
            "scheduling",
            "quota_never",
            text,
            resource_name=match["never"],
            missing_count=_too_much(match),
            flavor_name=match["never_in"],
        )
    if match["limit"]:
        flavor = match["limit_in"]
        return Reason(
            "scheduling", "quota_full", text, resource_name=match["limit"], flavor_name=flavor
        )
    if match["taint"]:
        return Reason(
            "scheduling", "taint", text, taint_text=match["taint"], flavor_name=match["taint_in"]
        )
    if match["unknown"]:
        return Reason("scheduling", "quota_never", text, resource_name=match["unknown"])
    return _meant("scheduling", text, None)._replace(flavor_name=match["other_in"])


def _number(text: str | None) -> int | None:
    """A whole number; None for quantities with a unit, which stay in the text."""
    return int(text) if text and re.fullmatch("[0-9]{1,15}", text) else None


def _too_much(match: re.Match[str]) -> int | None:
    """By how much a request is greater than all that there could ever be."""
    if match["most"] is None:
        return None
    if match["before"] is not None:
        asked = [_number(match["before"]), _number(match["now"])]
        most = _number(match["most"])
    else:
        first, _, second = match["most"].partition(" > ")
        asked, most = [_number(first)], _number(second)
    known = [number for number in asked if number is not None]
    return sum(known) - most if most is not None and len(known) == len(asked) else None


def _topology(match: re.Match[str]) -> Iterator[Reason]:
    nodes = int(match["nodes"]) if match["nodes"] else None
    wanted = int(match["of"] or match["all"])
    yield Reason(
        "scheduling",
        "topology",
        match[0].partition(". Total")[0],
        total_node_count=nodes,
        missing_count=wanted - int(match["fit"] or 0),
    )
    excluded, end = match["excluded"] or "", 0
    for each in EXCLUDED.finditer(excluded):
        yield from _rest(excluded[end : each.start()], None)
        end, what, name = each.end(), each["what"], each["name"]
        yield Reason(
            "scheduling",
            "resource_short" if what == "resource" else EXCLUDERS.get(what, "other"),
            each[0].strip(", "),
            node_count=int(each["count"]),
            total_node_count=nodes,
            resource_name=name if what == "resource" else None,
            taint_text=name if what == "taint" else None,
        )
    yield from _rest(excluded[end:], None)
