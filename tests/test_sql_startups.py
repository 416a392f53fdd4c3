"""What is held before it works, and how long pods take to start, counted by hand.

Which state and cause a second has is tested in test_sql_states, what a pull is in test_sql_events.
"""

from datetime import timedelta

import duckdb
import pytest

from models.book import frame
from models.mart_workloads import POD_STARTS
from pipelines.laws import LAWS
from sql import VIEWS
from tests.sql_case import DAY, HOUR, Case, at, whole
from tests.told_events import tell

[LAW] = [law for law in LAWS if law.table == "mart.startups"]
COUNTS = "started_count, starting_count, left_count, disordered_count, unknown_count"


def case_of(gpus=8, price=None, seconds=HOUR):
    case = Case(seconds)
    case.node("n", gpus=gpus, created_at=-HOUR)
    if price:
        case.price(price)
    return case


def starting(case, name, since, ran=None, **told):
    """A pod bound at `since`; its containers run from `ran` on."""
    case.pod(name, "n", seen=since, **{"running_since_at": None, **told})
    if ran is not None:
        case.pod(name, "n", **{"seen": ran, "bound_at": since, "running_since_at": ran, **told})


def startups(case, columns="state_name, cause_name, pod_count, gpu_seconds, startup_cost"):
    return case.ask(f"select {columns} from mart.startups order by all")


def test_what_starts_is_summed_by_image_and_cause_with_its_pods():
    """At 3.60 an hour: a and b start 100 s and 50 s of one image, c 10 s of another: with two GPUs
    20 GPU-seconds. The run itself is not among them.
    """
    case = case_of(price=3_600_000)
    starting(case, "a", 0, 100, image_name="one")
    starting(case, "b", 0, 50, image_name="one", waiting_cause_name="image_pull")
    starting(case, "c", 0, 10, image_name="two",
             requests=[{"resource_name": "nvidia.com/gpu", "request_count": 2}])  # fmt: skip
    rows = startups(case, "image_name, cause_name, pod_count, gpu_seconds, startup_cost")
    assert [(*row[:3], float(row[3]), float(row[4])) for row in rows] == [
        ("one", "image_pull", 1, 50, 0.05),
        ("one", "undetermined", 1, 100, 0.1),
        ("two", "undetermined", 1, 20, 0.02),
    ]
    assert startups(case, "distinct node_name, gpu_model_name, workload_class") == [
        ("n", "t4", "training")
    ]


def test_pods_that_are_alike_are_one_row():
    case = case_of()
    for name in ("a", "b", "c"):
        starting(case, name, 0, 100, image_name="one")
    assert startups(case, "pod_count, gpu_seconds") == [(3, 300)]


def test_waiting_for_the_gang_and_loading_are_held_before_work_too():
    """a runs from 0 on and waits until b runs at 300; c serves, and is ready at 40."""
    gang = {"gang_name": "g", "gang_size_count": 2, "workload_key_uid": "w"}
    case = case_of()
    starting(case, "a", 0, 0, **gang)
    starting(case, "b", 0, 300, **gang)
    service = {"workload_class": "inference", "bound_at": 0, "running_since_at": 0}
    case.pod("c", "n", **service)
    case.pod("c", "n", seen=40, ready_since_at=40, **service)
    assert [row[:4] for row in startups(case)] == [
        ("gang_wait", "member_starting", 1, 300),
        ("loading", "none", 1, 40),
        ("starting", "undetermined", 1, 300),
    ]


def test_what_has_no_price_costs_no_nothing():
    case = case_of()
    starting(case, "a", 0, 100)
    assert startups(case, "gpu_seconds, unpriced_gpu_seconds, startup_cost") == [(100, 100, None)]


def test_an_image_that_no_source_tells_is_not_known():
    case = case_of()
    starting(case, "a", 0, 100)
    assert startups(case, "image_name") == [("__unknown__",)]


def test_the_law_counts_what_is_missing_and_what_is_too_much():
    case = case_of(price=3_600_000)
    starting(case, "a", 0, 100)
    assert case.ask(LAW.breaches) == [(0,)]
    con = case._answering
    assert con
    con.execute("update mart.startups set gpu_seconds = 99")
    assert con.execute(LAW.breaches).fetchall() == [(1,)]
    con.execute("delete from mart.startups")
    assert con.execute(LAW.breaches).fetchall() == [(1,)]


def starts(case, columns="pod_name, outcome_name, start_seconds"):
    return case.ask(f"select {columns} from mart.pod_starts order by all")


def test_a_start_takes_from_the_bind_to_the_first_run():
    case = case_of()
    starting(case, "a", 60, 160)
    assert starts(case, "bound_at, started_at, outcome_name, start_seconds, gpu_seconds") == [
        (at(60), at(160), "started", 100, 100)
    ]


def test_who_has_not_started_or_left_before_is_told_apart():
    """a still starts at the hour's end; b is deleted at 500 without having run."""
    case = case_of()
    starting(case, "a", 60, waiting_cause_name="image_pull")
    starting(case, "b", 100)
    case.pod("b", "n", seen=500, bound_at=100, running_since_at=None, change_name="DELETED")
    assert starts(case) == [("a", "starting", HOUR - 60), ("b", "left", 400)]
    assert starts(case, "pod_name, cause_name") == [("a", "image_pull"), ("b", "undetermined")]


def test_a_run_told_for_before_the_bind_is_no_start_of_length_nothing():
    case = case_of()
    starting(case, "a", 60, 60)
    case.pod("b", "n", seen=60, bound_at=60, running_since_at=50)
    assert starts(case) == [("a", "started", 0), ("b", "disordered", None)]


def test_where_a_source_tells_no_starts_none_is_made_up():
    case = case_of()
    case.pod("a", "n", running_since_at=None, is_start_known=False)
    assert starts(case) == [("a", "unknown", None)]


def test_who_had_started_before_the_day_has_no_row_and_who_starts_on_it_has():
    """Both were bound before midnight."""
    case = case_of()
    case.pod("a", "n", bound_at=-500, running_since_at=-100, change_name="CARRIED")
    starting(case, "b", 0, 40, bound_at=-500)
    assert starts(case, "pod_name, start_seconds, bound_on, gpu_seconds") == [
        ("b", 540, DAY - timedelta(days=1), 40)
    ]


def test_a_pod_without_gpus_is_none_of_them():
    case = case_of()
    starting(case, "a", 0, 40, requests=[])
    assert starts(case) == []


def test_whether_an_event_tells_of_its_images_or_volumes_is_said():
    """That q was created, by whichever component, tells nothing of what it waited for."""
    case = case_of()
    starting(case, "p", 0, 40)
    starting(case, "q", 0, 40)
    tell(case, "Container image already present on machine", 20, reason_name="Pulled")
    tell(case, "Created container", 20, reason_name="Created", object_uid="q")
    assert starts(case, "pod_name, is_told") == [("p", True), ("q", False)]


def test_a_pull_that_was_none_and_one_of_a_pod_without_gpus_are_left_out():
    case = case_of()
    starting(case, "p", 0, 40, image_name="one")
    starting(case, "q", 0, 40, requests=[])
    pulled = 'Successfully pulled image "{}" in 5s (30s including waiting). Image size: 7 bytes.'
    for uid, image in (("p", "one"), ("q", "two")):
        tell(case, pulled.format(image), 31, reason_name="Pulled", object_uid=uid)
    tell(case, 'Container image "three" already present on machine', 32, reason_name="Pulled")
    assert case.ask(
        "select pod_name, image_name, pull_seconds, queue_seconds, total_seconds, image_bytes, "
        "asked_micro_gpu, node_name from mart.image_pulls"
    ) == [("p", "one", 5, 25, 30, 7, 1_000_000, "n")]


class Starts:
    """Pods, of which each took so long to start, or how else it went."""

    def __init__(self):
        self.rows = []

    def add(self, seconds, outcome="started", **told):
        self.rows.append(whole(POD_STARTS, **{
            "pod_uid": f"p{len(self.rows)}", "team_name": "t", "image_name": "one",
            "node_uid": "n", "gpu_model_name": "t4", "workload_class": "training",
            "bound_at": 0, "bound_on": DAY, "known_until_at": HOUR, "outcome_name": outcome,
            "start_seconds": seconds, "is_told": True, "gpu_seconds": 0,
            "unpriced_gpu_seconds": 0, **told,
        }))  # fmt: skip

    def ask(self, columns, where="grouping_name = 'all'", **told):
        with duckdb.connect() as con:
            con.execute("set TimeZone = 'UTC'")
            con.execute("create schema mart")
            con.execute(POD_STARTS.ddl(strict=False))
            con.register("given", frame(POD_STARTS, self.rows))
            con.execute("insert into mart.pod_starts by name from given")
            return con.execute(
                f"select {columns} from ({VIEWS['start_waits']}) as v where {where} order by all",
                {"begin_on": DAY, "end_on": DAY + timedelta(days=1), "clusters": None,
                 "teams": None, "kind": "all", "wanted": None, **told},
            ).fetchall()  # fmt: skip


def test_percentiles_are_of_the_started_and_the_rest_is_counted_beside_them():
    """10, 20, 30, 40: half take at most 25, one in ten takes more than 37."""
    pods = Starts()
    for seconds in (10, 20, 30, 40):
        pods.add(seconds)
    for outcome, seconds in (("starting", 3000), ("left", 900), ("disordered", None),
                             ("unknown", None)):  # fmt: skip
        pods.add(seconds, outcome)
    found = pods.ask("p50_start_seconds, p90_start_seconds, max_start_seconds, p99_start_seconds")
    assert found[0][0] == 25
    assert found[0][1] == pytest.approx(37)
    assert found[0][2:] == (40, None)
    assert pods.ask(f"pod_count, {COUNTS}") == [(8, 4, 1, 1, 1, 1)]


def test_where_none_has_started_there_is_no_percentile():
    pods = Starts()
    pods.add(3000, "starting")
    assert pods.ask("p50_start_seconds, mean_start_seconds") == [(None, None)]


def test_a_pod_with_a_row_on_two_days_counts_once_as_it_is_known_last():
    pods = Starts()
    pods.add(86_000, "starting", pod_uid="p")
    pods.add(86_900, pod_uid="p", day_on=DAY + timedelta(days=1))
    pods.add(10, bound_on=DAY - timedelta(days=1))
    assert pods.ask("pod_count, started_count, p50_start_seconds") == [(1, 1, 86_900)]


def test_starts_are_grouped_by_image_node_model_and_team():
    pods = Starts()
    pods.add(10)
    pods.add(30, image_name="two", node_uid="m", gpu_model_name="a100", team_name="u")
    names = {"image": "image_name", "node": "node_uid", "model": "gpu_model_name",
             "team": "team_name"}  # fmt: skip
    found = {
        grouping: pods.ask(f"{name}, p50_start_seconds", "true", wanted=grouping)
        for grouping, name in names.items()
    }
    assert found == {
        "image": [("one", 10), ("two", 30)],
        "node": [("m", 30), ("n", 10)],
        "model": [("a100", 30), ("t4", 10)],
        "team": [("t", 10), ("u", 30)],
    }
    assert pods.ask("cluster_name", "grouping_name = 'node'") == [("c",), ("c",)]
    assert pods.ask("pod_count", teams=["u"]) == [(1,)]
