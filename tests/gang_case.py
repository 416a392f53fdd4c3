"""Gangs told in a few words, and what was found of them: for SQL tests of findings."""

from models import raw
from tests.sql_case import MIDNIGHT, Case

ZERO = int(MIDNIGHT.timestamp())
FOUND = (
    f"select finding_name, split_part(subject_text, '@', 1), epoch(begin_at)::bigint - {ZERO}, "
    f"epoch(end_at)::bigint - {ZERO}, is_open, missing_count, gpu_seconds::int "
    "from mart.workload_findings where finding_name = '{}' order by all"
)


def found(case, name):
    """Of each finding: subject, begin, end, whether it is open, members missing, GPU-seconds."""
    return [row[1:] for row in case.ask(FOUND.format(name))]


def members(case, name):
    query = (
        "select pod_name, node_name, member_state_name, gpu_seconds::int from "
        f"mart.finding_members where finding_name = '{name}' order by all"
    )
    return case.ask(query)


def policy(case, name, value):
    case.add(raw.POLICIES, policy_name=name, value_number=value)


def member(case, gang, number, node=None, seen=0.0, size=3, begun=None, **told):
    """A member of a gang of `size`, created when first told, that holds a GPU from then on."""
    name = f"{gang}{number}"
    since = seen if begun is None else begun
    told = {"created_at": 0, "workload_key_uid": gang, "workload_name": gang,
            "gang_size_count": size, "node_needs_json": "{}", **told}  # fmt: skip
    if node is not None:
        told = {"bound_at": since, "running_since_at": since, **told}
    case.pod(name, node, seen=seen, **told)


def gone(case, gang, number, node, begun, at, **told):
    """It is deleted at that second, all at once."""
    member(case, gang, number, node, at, begun=begun, change_name="DELETED", **told)


def nodes(case, count, first=0, **told):
    for number in range(first, first + count):
        case.node(f"n{number}", **told)


def two_gangs(until: int | None = 1000, pool=4):
    """Of four nodes each of two gangs of three holds two from 100 on; its third comes at 110."""
    case = Case()
    nodes(case, pool)
    for place, gang in enumerate("ab"):
        for number in (0, 1):
            where = f"n{2 * place + number}"
            member(case, gang, number, where, 100, created_at=100)
            if gang == "b" and until:
                gone(case, gang, number, where, 100, until, created_at=100)
        member(case, gang, 2, None, 110, created_at=110)
    if until:
        gone(case, "b", 2, None, 0, until, created_at=110)
    return case
