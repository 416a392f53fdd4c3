"""Gangs that hold what each other needs: when it is a deadlock, whose, and when it is none.

What else goes wrong with gangs is in test_sql_gang_findings.
"""

import json

import pytest

from tests.gang_case import ZERO, found, gone, member, members, nodes, policy, two_gangs
from tests.kube_objects import parsed
from tests.kube_objects import pod as pod_object
from tests.sql_case import MIDNIGHT, Case


def test_two_gangs_that_hold_what_each_other_misses_are_a_deadlock_with_members_and_cost():
    """From 110, when all are there, until b is deleted: 890 s of 2 GPUs each, at 3.60 an hour."""
    case = two_gangs()
    case.price(3_600_000)
    assert found(case, "gang_deadlock") == [
        ("a", 110, 1000, False, 1, 1780),
        ("b", 110, 1000, False, 1, 1780),
    ]
    assert members(case, "gang_deadlock") == [
        ("a0", "n0", "running", 890),
        ("a1", "n1", "running", 890),
        ("a2", None, "pending", 0),
        ("b0", "n2", "running", 890),
        ("b1", "n3", "running", 890),
        ("b2", None, "pending", 0),
    ]
    query = (
        "select count(distinct deadlock_id), bool_and(is_certain), sum(finding_cost)::double, "
        "min(evidence_text) from mart.workload_findings where finding_name = 'gang_deadlock'"
    )
    [(deadlocks, is_certain, cost, text)] = case.ask(query)
    assert (deadlocks, is_certain, cost) == (1, True, 3.56)
    assert text == (
        "2 of 3 members hold 2 GPUs on n0, n1; cannot be complete since 2026-03-02 00:01:50 UTC, "
        "890 s, unless another gives up: x/b holds 2 GPUs on n2, n3 (2 of 3 members); "
        "1 pending since 2026-03-02 00:01:50 UTC"
    )


def test_a_gang_of_another_team_is_told_by_its_team_alone():
    case = two_gangs()
    for row in case.rows["raw.pod_versions"]:
        row["team_name"] = "team-" + row["workload_key_uid"]
    texts = case.ask(
        "select team_name, evidence_text from mart.workload_findings "
        "where finding_name = 'gang_deadlock' order by all"
    )
    assert [team for team, _ in texts] == ["team-a", "team-b"]
    assert "a gang of team team-b holds 2 GPUs (2 of 3 members)" in texts[0][1]
    assert not any(name in texts[0][1] for name in ("x/b", "n2", "n3"))


def test_what_goes_on_at_the_end_of_the_window_is_open():
    assert found(two_gangs(until=None), "gang_deadlock") == [
        ("a", 110, 3600, True, 1, 6980),
        ("b", 110, 3600, True, 1, 6980),
    ]


@pytest.mark.parametrize(("until", "is_found"), [(230, False), (231, True)])
def test_a_deadlock_lasts_for_longer_than_the_policy_says(until, is_found):
    case = two_gangs(until)
    assert bool(found(case, "gang_deadlock")) is is_found
    policy(case, "gang_deadlock_seconds", until - 111)
    assert found(case, "gang_deadlock")


@pytest.mark.parametrize(("until", "is_found"), [(620, False), (621, True)])
def test_only_the_time_in_which_both_are_stuck_counts(until, is_found):
    """a is stuck from 110 on until it is deleted, b from 500 on until the end: that is both."""
    case = Case()
    nodes(case, 4)
    for place, (gang, begin) in enumerate((("a", 100), ("b", 500))):
        for number in (0, 1):
            where = f"n{2 * place + number}"
            member(case, gang, number, where, begin, created_at=begin)
            if gang == "a":
                gone(case, gang, number, where, begin, until, created_at=begin)
        member(case, gang, 2, None, begin, created_at=begin)
    gone(case, "a", 2, None, 0, until, created_at=100)
    expected = [(gang, 500, until, False, 1, 2 * (until - 500)) for gang in "ab"]
    assert found(case, "gang_deadlock") == expected * is_found


def test_while_a_gpu_is_free_or_could_become_so_a_slow_start_is_partial_and_no_deadlock():
    """A fifth node is free; then a job holds it, which will end; then a service, which will not."""
    case = two_gangs(pool=5)
    assert found(case, "gang_deadlock") == []
    assert [row[0] for row in found(case, "gang_partial")] == ["a", "b"]
    case.pod("job", "n4")
    assert found(case, "gang_deadlock") == []
    case = two_gangs(pool=5)
    case.pod("service", "n4", is_service=True)
    assert [row[0] for row in found(case, "gang_deadlock")] == ["a", "b"]


def test_a_deadlock_begins_and_ends_with_the_room_for_it():
    """A fifth node is a service's from 300 to 1000, is cordoned from 2000, and a sixth comes."""
    case = two_gangs(until=None, pool=5)
    told = {"is_service": True, "bound_at": 300, "running_since_at": 300}
    case.pod("service", "n4", seen=300, **told)
    case.pod("service", "n4", seen=1000, change_name="DELETED", **told)
    case.node("n4", seen=2000, is_cordoned=True)
    case.node("n5", seen=3000, created_at=3000)
    spans = sorted({row[1:3] for row in found(case, "gang_deadlock")})
    assert spans == [(300, 1000), (2000, 3000)]


@pytest.mark.parametrize(("gpus", "is_found"), [(4, True), (5, False)])
def test_groups_of_a_service_that_wait_hold_what_they_hold_once(gpus, is_found):
    """Two replicas of a LeaderWorkerSet, each with two of three, on one node of four or five."""
    case = Case()
    case.node("n", gpus)
    for gang in "ab":
        told = {"is_service": True, "gang_name": gang, "created_at": 100}
        for number in (0, 1):
            member(case, gang, number, "n", 100, **told)
        member(case, gang, 2, None, 110, **told)
    assert bool(found(case, "gang_deadlock")) is is_found


def test_a_free_gpu_that_is_cordoned_helps_nobody():
    case = two_gangs()
    case.node("n4", is_cordoned=True)
    assert [row[0] for row in found(case, "gang_deadlock")] == ["a", "b"]


def test_a_free_gpu_of_another_pool_helps_nobody_and_gangs_of_two_pools_lock_nobody():
    def pools(first, second):
        case = two_gangs()
        for row in case.rows["raw.node_versions"]:
            row["labels_json"] = json.dumps({"pool": first if row["node_uid"] < "n2" else second})
        for row in case.rows["raw.pod_versions"]:
            pool = first if row["workload_key_uid"] == "a" else second
            row["node_needs_json"] = json.dumps({"pool": [pool]})
        return case

    case = pools("x.y/tight", "x.y/tight")
    case.node("n9", gpus=8, labels_json='{"pool": "other"}')
    assert [row[0] for row in found(case, "gang_deadlock")] == ["a", "b"]
    assert found(pools("one", "two"), "gang_deadlock") == []


def test_where_the_nodes_that_they_need_are_not_told_it_is_suspected():
    for needs in (None, '{"zone": []}'):
        case = two_gangs()
        for row in case.rows["raw.pod_versions"]:
            row["node_needs_json"] = needs
        assert (
            case.ask(
                "select is_certain, evidence_text like 'suspected: %' from mart.workload_findings "
                "where finding_name = 'gang_deadlock'"
            )
            == [(False, True)] * 2
        )


def test_what_would_fit_nowhere_waits_for_nobody():
    """Each needs five of four nodes: whoever gives up, the other is not complete."""
    case = two_gangs()
    for row in case.rows["raw.pod_versions"]:
        row["gang_size_count"] = 5
    assert found(case, "gang_deadlock") == []
    assert len(found(case, "gang_partial")) == 2


def test_a_third_gang_that_can_be_complete_lets_the_others_go_on():
    """c holds one of six and misses one: where nothing else is free it is one of the deadlock;
    with a node free for it, all can be complete one after the other."""

    def three(pool):
        case = two_gangs(pool=pool)
        member(case, "c", 0, "n4", 100, size=2, created_at=100)
        member(case, "c", 1, None, 110, size=2, created_at=110)
        return case

    assert [row[0] for row in found(three(5), "gang_deadlock")] == ["a", "b", "c"]
    assert found(three(6), "gang_deadlock") == []


def test_a_gang_that_a_queue_holds_back_waits_for_no_place():
    case = two_gangs()
    for row in case.rows["raw.pod_versions"]:
        row["is_gated"] = row["pod_uid"] in ("a2", "b2")
    assert found(case, "gang_deadlock") == []


def test_a_deadlock_over_midnight_began_when_it_began():
    """Known since yesterday; the day counts its own seconds."""
    case = two_gangs()
    for row in case.rows["raw.node_versions"]:
        row["created_at"] = MIDNIGHT.replace(day=1)
    for row in case.rows["raw.pod_versions"]:
        for name in ("created_at", "bound_at", "running_since_at"):
            if row[name] is not None:
                row[name] -= MIDNIGHT - MIDNIGHT.replace(day=1)
        if row["change_name"] != "DELETED":
            row["change_name"], row["observed_at"] = "CARRIED", MIDNIGHT
    assert found(case, "gang_deadlock") == [
        ("a", 0, 1000, False, 1, 2000),
        ("b", 0, 1000, False, 1, 2000),
    ]
    since = f"select distinct epoch(since_at)::bigint - {ZERO} from core.gang_deadlocks"
    assert case.ask(since) == [(110 - 86400,)]


# What a pod needs of its node


@pytest.mark.parametrize(
    ("terms", "needs"),
    [
        ([], {"pool": ["a"]}),
        ([[("zone", "In", ["x", "y"])]], {"pool": ["a"], "zone": ["x", "y"]}),
        ([[("zone", "NotIn", ["x"])]], {"pool": ["a"], "zone": []}),
        ([[("pool", "In", ["a", "b"])]], {"pool": []}),
        ([[("zone", "In", ["x"])], [("zone", "In", ["y"])]], {"": [], "pool": ["a"]}),
    ],
)
def test_what_a_pod_needs_of_its_node_is_read_and_what_is_not_judged_is_marked(terms, needs):
    keys = ("key", "operator", "values")
    told = [{"matchExpressions": [dict(zip(keys, e, strict=True)) for e in term]} for term in terms]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": told}}
    spec = {"nodeSelector": {"pool": "a"}, "affinity": {"nodeAffinity": required}}
    assert json.loads(parsed("Pod", pod_object(spec=spec))["node_needs_json"]) == needs


def test_deadlocks_are_found_by_equal_keys_which_can_be_hashed():
    """Each node against each moment would be squares of a fleet."""
    plan = two_gangs().plan("core.gang_queues")
    assert "NESTED_LOOP" not in plan and "CROSS_PRODUCT" not in plan
