"""The recorded cluster's queue: Kueue's figures, users and owners, as counted from the objects.

Its pods, ledger and holds are in test_traces.
"""

import gzip
import json
import re
from datetime import date, datetime, timedelta

import pytest

from lake.home import Home
from lake.read import Door
from models.config import load
from models.kubernetes import KubernetesSource
from models.window import Window
from pipelines.process import process
from tests.test_traces import one

OWNERS = (
    "batch_v1_jobs",
    "jobset.x-k8s.io_v1alpha2_jobsets",
    "trainer.kubeflow.org_v1alpha1_trainjobs",
    "batch.volcano.sh_v1alpha1_jobs",
    "apps_v1_deployments",
    "apps_v1_replicasets",
)


@pytest.fixture(scope="module")
def recording(traces, tmp_path_factory):
    folder = tmp_path_factory.mktemp("recording")
    config = folder / "gpuledger.yaml"
    config.write_text("teams: [{name: us}]\nteam_rules: [{user: chen, team: us}]\n")
    source = KubernetesSource(kind="kubernetes", path=traces / "cluster-recording")
    outcome = process(Home(folder), load(config), "recorded", sources=[source])
    assert (outcome.broken, outcome.error) == ([], None)
    with Door(Home(folder)) as door:
        yield door


def objects(traces, name):
    with gzip.open(traces / "cluster-recording" / "watch" / f"{name}.jsonl.gz") as lines:
        for line in lines:
            told = json.loads(line)
            if told["type"] != "BOOKMARK":
                yield told["object"]


def controlling(item):
    above = [r for r in item["metadata"].get("ownerReferences", []) if r.get("controller")]
    return above[0] if above else None


def test_each_pod_s_top_is_what_a_walk_over_the_recorded_objects_gives(recording, traces):
    known = {o["metadata"]["uid"]: o for name in OWNERS for o in objects(traces, name)}
    expected = {}
    for pod in objects(traces, "v1_pods"):
        top = pod
        while above := controlling(top):
            top = known[above["uid"]]
        kind = top["kind"] if "volcano" not in top["apiVersion"] else "VolcanoJob"
        expected[pod["metadata"]["uid"]] = (kind, top["metadata"]["name"])
    query = "select pod_uid, workload_kind_name, workload_name from core.pods"
    found = {uid: (kind, name) for uid, kind, name in recording.query(query).fetchall()}
    assert len(found) == 1942
    assert found == expected


def test_workloads_that_got_quota_and_those_that_never_did(recording):
    query = """
        select count(*), count(*) filter (where times = 0), count(*) filter (where times > 1)
        from (select count(quota_reserved_at) as times from core.admissions group by workload_uid)
    """
    assert one(recording, query) == (483, 87, 94)


def test_the_first_waits_for_quota(recording):
    query = """
        select namespace_name, count(*),
            round(avg(date_diff('second', queued_at, quota_reserved_at)), 3)
        from core.admissions where attempt_number = 1 and quota_reserved_at is not null
        group by 1 order by 1
    """
    assert recording.query(query).fetchall() == [
        ("hpc", 52, 56.0),
        ("infra", 63, 24.27),
        ("llm", 161, 35.696),
        ("vision", 120, 45.792),
    ]


def test_the_waits_of_every_attempt_are_apart_from_the_first_ones(recording):
    """483 Workloads and 329 evictions; one eviction was overwritten by an admission 38 ms later and
    its Job ran to its end: 483 + 328 attempts.
    """
    query = """
        select count(*) filter (where attempt_number = 1), count(*),
            count(*) filter (where eviction_reason_name = 'Preempted'),
            count(*) filter (where eviction_reason_name = 'PodsReadyTimeout'),
            count(*) filter (where evicted_at is not null and quota_released_at is null),
            bool_and(is_queued_known and is_end_known)
        from core.admissions
    """
    assert one(recording, query) == (483, 811, 328, 1, 1, True)
    query = """
        select count(*), count(*) filter (where w.is_censored) from core.waits as w
        join core.attempts as a using (cluster_name, day_on, attempt_id)
        where w.wait_name = 'quota' and a.workload_uid is not null
    """
    served = one(recording, "select count(quota_reserved_at) from core.admissions")[0]
    assert one(recording, query) == (811, 811 - served)


def test_how_they_finished(recording):
    query = """
        select finish_reason_name, count(*) from core.admissions
        where finish_reason_name is not null group by 1 order by 1
    """
    assert recording.query(query).fetchall() == [("Failed", 21), ("Succeeded", 317)]


def test_each_pod_was_made_while_its_attempt_had_quota(recording):
    query = """
        select count(*), count(*) filter (
            where p.created_at between a.quota_reserved_at and coalesce(a.ended_at, p.created_at)
        ) from core.pods as p
        join core.admissions as a using (cluster_name, day_on, workload_uid, attempt_number)
    """
    assert one(recording, query) == (1506, 1506)
    rest = "select distinct workload_kind_name from core.pods where workload_uid is null order by 1"
    kinds = [kind for (kind,) in recording.query(rest).fetchall()]
    assert kinds == ["Deployment", "Job", "Pod", "VolcanoJob"]


def test_preemptors_are_workloads_that_are_there(recording):
    query = """
        select count(preemptor_uid), count(*) filter (where p.workload_uid is null)
        from core.admissions as a
        left join (select distinct workload_uid, owner_uid from core.admissions) as p
            on a.preemptor_uid = p.workload_uid and a.preemptor_job_uid = p.owner_uid
        where a.preemptor_uid is not null
    """
    assert one(recording, query) == (328, 0)


def test_every_workload_has_the_user_who_created_it(recording, traces):
    with gzip.open(traces / "cluster-recording" / "audit.log.gz") as lines:
        told = [json.loads(line) for line in lines]
    kinds = {"jobs": "Job", "jobsets": "JobSet", "trainjobs": "TrainJob", "pods": "Pod",
             "deployments": "Deployment"}  # fmt: skip
    expected = {}
    for event in told:
        target = event["objectRef"]
        kind = kinds.get(target["resource"])
        if event["verb"] == "create" and kind and not target.get("subresource"):
            if target.get("apiGroup") == "batch.volcano.sh":
                kind = "VolcanoJob"
            expected[kind, target["namespace"], target["name"]] = event["user"]["username"]
    query = (
        "select workload_kind_name, namespace_name, workload_name, user_name from core.workloads"
    )
    found = {(kind, ns, name): user for kind, ns, name, user in recording.query(query).fetchall()}
    assert found == {key: expected[key] for key in found}
    assert len(found) == 607
    assert set(found.values()) == {"ana", "bo", "chen", "dina"}


def test_a_team_rule_sees_the_user(recording):
    query = "select distinct user_name, team_name from core.pods where team_name = 'us' order by 1"
    assert recording.query(query).fetchall() == [("chen", "us")]
    query = """
        select distinct a.team_name from core.attempts as a
        join core.workloads as w using (day_on, workload_key_uid)
        where w.user_name = 'chen' and a.workload_uid is not null
    """
    assert recording.query(query).fetchall() == [("us",)]


EARLIER = timedelta(hours=3, minutes=7)
STAMP = re.compile(rb"2026-11-30T[0-9]{2}:[0-9]{2}:[0-9]{2}")
ATTEMPTS = """
    select workload_uid, attempt_number, {}, outcome_name, pod_count, gang_size_count
    from core.attempts where workload_uid is not null
    qualify row_number() over (partition by workload_uid, attempt_number order by day_on desc) = 1
""".format(
    ", ".join(
        f"epoch({step}_at)::bigint"
        for step in ("queued", "quota_reserved", "admitted", "placed", "started", "ended")
    )
)
PODS = """
    select pod_uid, workload_kind_name, workload_name, workload_uid, attempt_number, user_name
    from core.pods qualify row_number() over (partition by pod_uid order by day_on desc) = 1
"""


def earlier(found):
    stamp = datetime.fromisoformat(found[0].decode()) - EARLIER
    return stamp.isoformat().encode()


def test_midnight_in_the_middle_of_it_changes_no_attempt(recording, traces, tmp_path):
    """Told 3 h 7 min earlier, it lasts from 23:54 to 00:07: with what the first day hands on, the
    second one knows each attempt and each pod's as the one day did. The days are run one by one.
    """
    folder = tmp_path / "told"
    folder.mkdir()
    kinds = (*OWNERS, "v1_pods", "v1_nodes", "kueue.x-k8s.io_v1beta2_workloads",
             "scheduling.volcano.sh_v1beta1_podgroups")  # fmt: skip
    given = [traces / "cluster-recording" / "watch" / f"{kind}.jsonl.gz" for kind in kinds]
    for path in (*given, traces / "cluster-recording" / "audit.log.gz"):
        data = STAMP.sub(earlier, gzip.decompress(path.read_bytes()))
        (folder / path.name.removesuffix(".gz")).write_bytes(data)
    config = tmp_path / "gpuledger.yaml"
    config.write_text("teams: [{name: us}]\nteam_rules: [{user: chen, team: us}]\n")
    home, source = Home(tmp_path / "home"), KubernetesSource(kind="kubernetes", path=folder)
    for day in (date(2026, 11, 29), date(2026, 11, 30)):
        window = Window("recorded", day, day + timedelta(days=1))
        outcome = process(home, load(config), "recorded", window, sources=[source])
        assert (outcome.broken, outcome.error) == ([], None)
    seconds = int(EARLIER.total_seconds())
    with Door(home) as door:
        found, pods = door.query(ATTEMPTS).fetchall(), door.query(PODS).fetchall()
        teams = "select distinct team_name from core.pods where user_name = 'chen'"
        assert door.query(teams).fetchall() == [("us",)]
    moved = {
        (*row[:2], *(at if at is None else at + seconds for at in row[2:8]), *row[8:])
        for row in found
    }
    assert moved == set(recording.query(ATTEMPTS).fetchall())
    assert set(pods) == set(recording.query(PODS).fetchall())
