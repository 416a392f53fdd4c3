"""What the ledger says of a busy cluster with Kueue: each pod, hold and quota attempt of it.

Only `-m cluster` runs it. All is held against what the cluster's own objects said, as
`cluster_truth` folded them without any of our code; how it all is run is in `cluster_run`.
"""

from collections import Counter, defaultdict
from datetime import datetime
from typing import Any

import pytest

from lake.home import Home
from lake.read import Door
from tests.cluster_run import Ran, figures, processed, query, recorded, run

pytestmark = pytest.mark.cluster

SEEN_SECONDS = 5
"""By so much may two watchers differ in when they saw the same; what is told must be equal."""
PREFIXES = {
    "Pod": "/registry/pods/",
    "Node": "/registry/minions/",
    "Job": "/registry/jobs/",
    "JobSet": "/registry/jobset.x-k8s.io/jobsets/",
    "TrainJob": "/registry/trainer.kubeflow.org/trainjobs/",
    "Workload": "/registry/kueue.x-k8s.io/workloads/",
}


@pytest.fixture(scope="module")
def ran(kueue_binaries, tmp_path_factory, full_size) -> Ran:
    """All of it happens once, and all tests look at the same."""
    ran = run(tmp_path_factory.mktemp("cluster"), kueue_binaries, full_size)
    print(*(f"{name}: {told}" for name, told in figures(ran).items()), sep="\n")
    return ran


def test_what_the_cluster_did_is_worth_looking_at(ran, full_size):
    truth = ran.truth
    pods, tries = truth.pods.values(), [t for w in truth.works.values() for t in w.tries]
    assert len(pods) >= (5_000 if full_size else 200)
    reasons = Counter(each.reason for each in tries if each.evicted)
    assert reasons["Preempted"] >= (100 if full_size else 3)
    assert reasons["PodsReadyTimeout"] + reasons["Deactivated"] > 0
    kinds = Counter(truth.owners[work.owner].kind for work in truth.works.values())
    assert kinds.keys() >= {"Job", "JobSet", "TrainJob"}
    assert {"EvictionByEvictionAPI", "DeletionByPodGC"} <= {pod.disrupted for pod in pods}


def test_every_version_of_etcd_is_in_the_spool_once(ran):
    found: dict[str, Counter[int]] = defaultdict(Counter)
    for change, thing, _ in recorded(ran):
        if change in ("ADDED", "MODIFIED", "DELETED") and thing["kind"] in PREFIXES:
            found[thing["kind"]][int(thing["metadata"]["resourceVersion"])] += 1
    for kind, prefix in PREFIXES.items():
        seen = {each.revision for each in ran.observer.of(prefix)}
        assert seen, kind
        # It was there before, and what was there then is listed.
        assert {version for version in found[kind] if version >= min(seen)} == seen, kind
        assert set(found[kind].values()) == {1}, kind


def test_no_run_broke_a_law_or_refused_anything(ran):
    for outcome, _ in ran.runs:
        assert (outcome.exit_code, outcome.broken, outcome.rejected_count) == (0, [], 0)
    assert "recorder_gap" not in {
        row["coverage_name"] for row in query(ran, "select coverage_name from raw.coverage")
    }


def test_each_pods_timeline_is_what_its_object_said(ran):
    rows = query(
        ran,
        """
        select
            pod_uid, namespace_name || '/' || pod_name as name, node_name as node,
            epoch(created_at)::bigint as created, epoch(bound_at)::bigint as bound,
            epoch(first_started_at)::bigint as started, epoch(first_ready_at)::bigint as ready,
            epoch(deletion_asked_at)::bigint as asked, epoch(finished_at)::bigint as finished,
            epoch(deleted_at)::bigint as deleted, epoch(ended_at)::bigint as ended,
            disruption_name as disrupted, asked_micro_gpu
        from core.pods
        """,
    )
    wrong = []
    found = {row["pod_uid"]: row for row in rows}
    assert len(found) == len(rows)
    assert found.keys() == ran.truth.pods.keys()
    for uid, pod in ran.truth.pods.items():
        row = found[uid]
        told = ("name", "node", "created", "bound", "started", "ready", "asked", "disrupted")
        wrong += [(pod, row, n) for n in told if row[n] != getattr(pod, n)]
        wrong += [(pod, row, "gpus")] if row["asked_micro_gpu"] != pod.gpus * 1_000_000 else []
        wrong += [(pod, row, "deleted")] if not _near(row["deleted"], pod.deleted) else []
        for name in ("finished", "ended"):
            is_told = pod.told_finish is not None if name == "finished" else pod.is_end_told
            same = row[name] == getattr(pod, name) if is_told else _near(row[name], _at(pod, name))
            wrong += [] if same else [(pod, row, name)]
    assert not wrong, _some(wrong)


def test_what_was_only_seen_is_when_the_recorder_saw_it(ran):
    """Two watchers differ in when they see an end; ours is the instant that the spool holds."""
    seen = {}
    for change, thing, at in recorded(ran):
        if change == "DELETED" and thing["kind"] == "Pod":
            seen[thing["metadata"]["uid"]] = int(datetime.fromisoformat(at).timestamp())
    rows = query(
        ran,
        "select pod_uid, epoch(deleted_at)::bigint as at from core.pods "
        "where deleted_at is not null",
    )
    assert {row["pod_uid"]: row["at"] for row in rows} == seen


def test_each_pod_is_of_the_workload_above_its_owners(ran):
    rows = query(
        ran,
        "select pod_uid, workload_kind_name, workload_name, workload_key_uid from core.pods",
    )
    found = {row.pop("pod_uid"): tuple(row.values()) for row in rows}
    wrong, kinds = [], set()
    for uid, pod in ran.truth.pods.items():
        kind, (space, name), top = "Pod", pod.name.split("/"), uid
        chain = list(ran.truth.chain(pod.owner))
        if chain:
            top, owner = chain[-1]
            kind, name = owner.kind, owner.name
        kinds.add(kind)
        # Where not every pod knows the uid, a name stands for it.
        if found[uid] not in ((kind, name, top), (kind, name, f"{kind}/{space}/{name}")):
            wrong.append((pod, kind, name, top, found[uid]))
    assert not wrong, _some(wrong)
    assert kinds == {"Pod", "Job", "JobSet", "TrainJob", "Deployment"}


def test_each_hold_lasts_from_the_bind_to_the_end(ran):
    ((until_at, zone_seconds),) = (
        (row["until_at"], row["seconds"])
        for row in query(
            ran,
            "select epoch(end_at)::bigint as until_at, known_seconds as seconds from core.windows",
        )
    )
    assert zone_seconds > 0
    rows = query(
        ran,
        """
        select
            pod_uid, min(epoch(begin_at))::bigint as begun, max(epoch(end_at))::bigint as ended,
            sum(share_micro_gpu * date_diff('second', begin_at, end_at))::bigint as held,
            count(*) as pieces
        from core.holds
        group by pod_uid
        """,
    )
    found, wrong = {row["pod_uid"]: row for row in rows}, []
    for uid, pod in ran.truth.pods.items():
        row = found.pop(uid, None)
        if pod.bound is None or pod.ended == pod.bound:
            wrong += [(pod, row)] if row else []
            continue
        if row is None:
            # What lasted less than watchers differ may have no second.
            wrong += (
                []
                if pod.ended and not pod.is_end_told and _near(pod.ended, pod.bound)
                else [(pod,)]
            )
            continue
        ended = until_at if pod.ended is None else pod.ended
        is_exact = pod.ended is None or pod.is_end_told
        held = pod.gpus * 1_000_000 * (row["ended"] - row["begun"])
        same = row["ended"] == ended if is_exact else _near(row["ended"], ended)
        if not same or (row["begun"], row["held"]) != (pod.bound, held):
            wrong.append((pod, row))
    assert not wrong, _some(wrong)
    assert not found


def test_each_workloads_quota_attempts_are_what_its_conditions_said(ran):
    rows = query(
        ran,
        """
        select
            workload_uid, attempt_number,
            epoch(queued_at)::bigint as queued, epoch(quota_reserved_at)::bigint as reserved,
            epoch(admitted_at)::bigint as admitted, epoch(pods_ready_at)::bigint as ready,
            epoch(evicted_at)::bigint as evicted, eviction_reason_name as reason,
            epoch(quota_released_at)::bigint as released, epoch(finished_at)::bigint as finished,
            epoch(deleted_at)::bigint as deleted, epoch(ended_at)::bigint as ended,
            is_queued_known and is_end_known as is_known
        from core.admissions
        """,
    )
    found = {(row["workload_uid"], row["attempt_number"]): row for row in rows}
    expected = {
        (uid, number): each
        for uid, work in ran.truth.works.items()
        for number, each in enumerate(work.tries, 1)
    }
    assert len(found) == len(rows)
    assert found.keys() == expected.keys()
    wrong = []
    for key, each in expected.items():
        row = found[key]
        assert row["is_known"], row
        names = ["queued", "reserved", "admitted", "ready", "evicted", "reason", "released"]
        wrong += [(each, row, n) for n in [*names, "finished"] if row[n] != getattr(each, n)]
        seen = ["deleted"] if each.ended != each.deleted else ["deleted", "ended"]
        wrong += [(each, row, n) for n in seen if not _near(row[n], getattr(each, n))]
        if "ended" not in seen and row["ended"] != each.ended:
            wrong.append((each, row, "ended"))
    assert not wrong, _some(wrong)


def test_each_pod_is_of_the_attempt_that_had_quota_as_it_was_made(ran):
    rows = query(ran, "select pod_uid, workload_uid, attempt_number from core.pods")
    found = {r["pod_uid"]: (r["workload_uid"], r["attempt_number"]) for r in rows}
    wrong = [
        (pod, found[uid], ran.truth.try_of(pod))
        for uid, pod in ran.truth.pods.items()
        if found[uid] != (ran.truth.try_of(pod) or (None, None))
    ]
    assert not wrong, _some(wrong)


def test_each_attempts_waits_are_the_steps_of_its_objects(ran):
    """Quota from the queue on, the check, the placement of all its pods, and their start."""
    rows = query(
        ran,
        """
        select
            a.workload_uid, a.attempt_number, w.wait_name, epoch(w.begin_at)::bigint as begun,
            epoch(w.end_at)::bigint as ended
        from core.attempts as a
        inner join core.waits as w using (cluster_name, day_on, attempt_id)
        where a.workload_uid is not null and not w.is_censored
        """,
    )
    found = {
        (r["workload_uid"], r["attempt_number"], r["wait_name"]): (r["begun"], r["ended"])
        for r in rows
    }
    assert len(found) == len(rows)
    truth, members = ran.truth, defaultdict(list)
    for pod in truth.pods.values():
        if belongs := truth.try_of(pod):
            members[belongs].append(pod)
    expected = {}
    for uid, work in truth.works.items():
        for number, each in enumerate(work.tries, 1):
            key = (uid, number)
            # It is submitted with what owns it, and can wait for quota once it is there itself.
            submitted = truth.owners[work.owner].created
            if number == 1 and submitted < each.queued:
                expected[*key, "dependency"] = (submitted, each.queued)
            if each.reserved is None:
                continue
            expected[*key, "quota"] = (each.queued, each.reserved)
            if each.admitted is None:
                continue
            expected[*key, "check"] = (each.reserved, each.admitted)
            binds = sorted(p.bound for p in members[key] if p.bound is not None)
            starts = sorted(max(p.started, p.bound) for p in members[key] if p.started and p.bound)
            if len(binds) >= work.size:
                placed = max(binds[work.size - 1], each.admitted)
                expected[*key, "placement"] = (each.admitted, placed)
                if len(starts) >= work.size:
                    expected[*key, "start"] = (placed, max(placed, starts[work.size - 1]))
    wrong = [
        (key, expected.get(key), found.get(key))
        for key in sorted(expected.keys() | found.keys())
        if expected.get(key) != found.get(key)
    ]
    assert not wrong, _some(wrong)
    assert {name for *_, name in expected} >= {"quota", "check", "placement", "start"}


def test_the_ledger_is_the_plain_sum_of_the_holds(ran):
    """All of it is booked, or said to be of a node that is gone or held twice."""
    seconds = "date_diff('second', begin_at, end_at)"
    (held,) = query(ran, f"select sum(share_micro_gpu * {seconds})::bigint as s from core.holds")
    (booked,) = query(
        ran,
        "select (sum(gpu_seconds) * 1000000)::bigint as s from core.ledger "
        "where hold_id is not null",
    )
    rest = query(
        ran,
        f"select reason_name, sum(share_micro_gpu * {seconds})::bigint as s "
        "from core.unbooked group by all",
    )
    assert held["s"] == booked["s"] + sum(row["s"] for row in rest)
    print("held", held, "booked", booked, "unbooked", rest)


def test_what_was_taken_in_piece_by_piece_is_what_one_run_makes_of_it(ran):
    whole = ran.folder / "whole"
    outcome, _ = processed(whole, ran.folder / "gpuledger.yaml")
    assert (outcome.exit_code, outcome.broken) == (0, [])
    for table in ("pods", "holds", "admissions", "attempts", "waits", "ledger", "workloads"):
        kept = []
        for home in (ran.home, Home(whole)):
            with Door(home) as door:
                kept.append(Counter(map(str, door.query(f"select * from core.{table}").fetchall())))
        assert kept[0] == kept[1], (
            table,
            _some([*(kept[0] - kept[1])]),
            _some([*(kept[1] - kept[0])]),
        )


def _at(pod: Any, name: str) -> int | None:
    return getattr(pod, name)


def _near(one: int | None, other: int | None) -> bool:
    if one is None or other is None:
        return one is other
    return abs(one - other) <= SEEN_SECONDS


def _some(wrong: list[Any]) -> str:
    return f"{len(wrong)}: " + "\n".join(map(str, wrong[:10]))
