"""The state and the cause of each held second, told by a few versions of a pod and its gang.

Each test lists the stretches by hand, in seconds of the day. What nobody holds is in
test_sql_unheld; how container statuses become these rows is in test_kubernetes.
"""

from models import raw
from tests.sql_case import Case

GANG = {"workload_key_uid": "w", "gang_name": "g", "gang_size_count": 2}
END = 3600


def told(case, name, seen, **facts):
    """A version of a pod bound at 0, whose containers do not run unless told."""
    case.pod(name, "n", seen=seen, **{"bound_at": 0, "running_since_at": None, **facts})


def case_of(*gpus):
    case = Case()
    case.node("n", gpus=sum(gpus) or 1)
    return case


def test_until_its_containers_first_run_a_pod_starts_for_the_cause_last_observed():
    """Each known from 60 on, before that nothing is; running since 300, observed at 305."""
    causes = ("image_pull_queue", "image_pull", "volume", "init", "container_start", "crash_loop")
    assert set(causes) == set(raw.STARTING_CAUSES) - {"undetermined", "restart"}
    case = case_of(len(causes))
    for cause in causes:
        told(case, cause, 0)
        told(case, cause, 60, waiting_cause_name=cause)
        told(case, cause, 305, running_since_at=300)
    for cause in causes:
        assert case.states(cause) == [
            ("starting", "undetermined", 0, 60),
            ("starting", cause, 60, 300),
            ("unobserved", "no_series", 300, END),
        ]


def test_after_a_first_run_a_pod_restarts_and_from_an_observed_back_off_on_it_crash_loops():
    """Runs 100-200, observed at 205; back-off seen at 210; runs 400-500, of which the next back-off
    is first seen at 520: from 500 to 520 it is a restart, whatever was observed before that run.
    """
    case = case_of()
    told(case, "p", 0, waiting_cause_name="image_pull")
    told(case, "p", 105, running_since_at=100)
    told(case, "p", 205, stopped_at=200, waiting_cause_name="undetermined")
    told(case, "p", 210, stopped_at=200, waiting_cause_name="crash_loop")
    told(case, "p", 520, running_since_at=400, stopped_at=500, waiting_cause_name="crash_loop")
    assert case.states("p") == [
        ("starting", "image_pull", 0, 100),
        ("unobserved", "no_series", 100, 200),
        ("starting", "restart", 200, 210),
        ("starting", "crash_loop", 210, 400),
        ("unobserved", "no_series", 400, 500),
        ("starting", "restart", 500, 520),
        ("starting", "crash_loop", 520, END),
    ]


def test_a_failed_pull_after_a_first_run_is_a_restart():
    case = case_of()
    told(case, "p", 0, running_since_at=0)
    told(case, "p", 200, stopped_at=200, waiting_cause_name="image_pull")
    assert case.states("p")[1:] == [("starting", "restart", 200, END)]


def test_a_gang_waits_for_members_to_be_created_placed_and_started_and_then_for_a_lost_one():
    """b is created at 600, bound at 1200, runs from 1500 to 2400 and fails. c takes its place:
    created at 2500, bound at 2600, runs from 2700 on.
    """
    case = case_of(3)
    told(case, "a", 0, running_since_at=0, **GANG)
    case.pod("b", seen=600, created_at=600, **GANG)
    case.pod("b", "n", seen=1200, created_at=600, running_since_at=None, **GANG)
    case.pod("b", "n", seen=1500, created_at=600, bound_at=1200, **GANG)
    case.pod("b", "n", seen=2400, created_at=600, bound_at=1200, running_since_at=None,
             stopped_at=2400, finished_at=2400, phase_name="Failed", **GANG)  # fmt: skip
    case.pod("c", seen=2500, created_at=2500, **GANG)
    case.pod("c", "n", seen=2600, created_at=2500, running_since_at=2700, **GANG)
    assert case.states("a") == [
        ("gang_wait", "member_not_created", 0, 600),
        ("gang_wait", "member_unplaced", 600, 1200),
        ("gang_wait", "member_starting", 1200, 1500),
        ("unobserved", "no_series", 1500, 2400),
        ("gang_wait", "member_lost", 2400, 2700),
        ("unobserved", "no_series", 2700, END),
    ]
    assert case.states("b") == [
        ("starting", "undetermined", 1200, 1500),
        ("unobserved", "no_series", 1500, 2400),
    ]
    assert case.states("c") == [
        ("starting", "undetermined", 2600, 2700),
        ("unobserved", "no_series", 2700, END),
    ]
    assert case.ask("select count(distinct attempt_id) from core.attempts") == [(1,)]


def test_a_member_whose_containers_restart_is_lost_to_the_others_meanwhile():
    case = case_of(2)
    told(case, "a", 0, running_since_at=0, **GANG)
    told(case, "b", 0, running_since_at=0, **GANG)
    told(case, "b", 600, stopped_at=600, **GANG)
    told(case, "b", 900, running_since_at=900, **GANG)
    assert case.states("a")[1] == ("gang_wait", "member_lost", 600, 900)
    assert case.states("b")[1] == ("starting", "restart", 600, 900)


def test_a_member_that_has_succeeded_is_not_lost():
    case = case_of(2)
    told(case, "a", 0, running_since_at=0, **GANG)
    told(case, "b", 0, running_since_at=0, **GANG)
    told(case, "b", 600, finished_at=600, stopped_at=600, phase_name="Succeeded", **GANG)
    assert case.states("a") == [("unobserved", "no_series", 0, END)]


def test_a_gang_of_one_waits_for_nobody():
    case = case_of()
    told(case, "a", 0, running_since_at=0, **{**GANG, "gang_size_count": 1})
    assert case.states("a") == [("unobserved", "no_series", 0, END)]


def test_inference_loads_from_its_first_run_for_at_most_the_set_time():
    """Runs from 100 on, stops 500-700, is never ready: the cap of 1800 s ends it at 1900.
    A run before that of work of another class does not load.
    """
    case = case_of(2)
    service = {"workload_class": "inference"}
    told(case, "p", 0, running_since_at=100, **service)
    told(case, "p", 500, stopped_at=500, **service)
    told(case, "p", 700, running_since_at=700, **service)
    told(case, "training", 0, running_since_at=100)
    assert case.states("p") == [
        ("starting", "undetermined", 0, 100),
        ("loading", "none", 100, 500),
        ("starting", "restart", 500, 700),
        ("loading", "none", 700, 1900),
        ("unobserved", "no_series", 1900, END),
    ]
    assert case.states("training")[1] == ("unobserved", "no_series", 100, END)


def test_a_pod_once_ready_does_not_load_again():
    case = case_of()
    service = {"workload_class": "inference"}
    told(case, "p", 0, running_since_at=0, ready_since_at=300, **service)
    told(case, "p", 500, stopped_at=500, **service)
    told(case, "p", 600, running_since_at=600, **service)
    assert case.states("p") == [
        ("loading", "none", 0, 300),
        ("unobserved", "no_series", 300, 500),
        ("starting", "restart", 500, 600),
        ("unobserved", "no_series", 600, END),
    ]


def test_terminating_goes_before_starting_before_gang_wait_before_loading():
    """Inference in a gang of 2: a's own containers start until 200; b comes at 400 and runs at 600;
    both load until the cap of a (200 + 1800); the deletion of a, asked for at 900, ends that.
    """
    case = case_of(2)
    service = {"workload_class": "inference", **GANG}
    told(case, "a", 0, **service)
    told(case, "a", 205, running_since_at=200, **service)
    case.pod("b", "n", seen=400, created_at=400, running_since_at=600, **service)
    told(case, "a", 950, deletion_asked_at=900, **service)
    assert case.states("a") == [
        ("starting", "undetermined", 0, 200),
        ("gang_wait", "member_not_created", 200, 400),
        ("gang_wait", "member_starting", 400, 600),
        ("loading", "none", 600, 900),
        ("terminating", "none", 900, END),
    ]


def test_a_pod_that_never_ran_terminates_too_and_the_earliest_asking_counts():
    case = case_of()
    told(case, "p", 0, waiting_cause_name="crash_loop")
    told(case, "p", 700, deletion_asked_at=660)
    told(case, "p", 800, deletion_asked_at=600)
    assert case.states("p") == [
        ("starting", "crash_loop", 0, 600),
        ("terminating", "none", 600, END),
    ]


def test_what_runs_on_a_node_that_is_not_ready_is_unobserved_because_of_that():
    """The node is not ready from 600 to 900; the pod starts until 700, which goes before."""
    case = Case()
    for seen, is_ready in ((0, True), (600, False), (900, True)):
        case.node("n", gpus=2, seen=seen, is_ready=is_ready)
    told(case, "p", 0, running_since_at=700)
    told(case, "q", 0, running_since_at=0)
    assert case.states("p") == [
        ("starting", "undetermined", 0, 700),
        ("unobserved", "node_not_ready", 700, 900),
        ("unobserved", "no_series", 900, END),
    ]
    assert case.states("q")[1] == ("unobserved", "node_not_ready", 600, 900)


def test_where_a_source_tells_no_container_starts_what_is_held_is_unobserved():
    case = case_of()
    told(case, "p", 0, is_start_known=False)
    assert case.states("p") == [("unobserved", "no_series", 0, END)]
