"""The steps in the life of a pod: which source tells each, and what does not count."""

from tests.sql_case import Case, at
from tests.told_events import second, tell


def run(started, ended=None, restarts=0, name="main", role="main", code=None, reason=None):
    return {
        "container_name": name,
        "role_name": role,
        "started_at": at(started),
        "ended_at": None if ended is None else at(ended),
        "exit_code_number": code,
        "reason_name": reason,
        "restart_count": restarts,
    }


def steps(case, *names, pod="p"):
    rows = case.ask(
        "select stage_name, container_name, stage_at, source_name, detail_text, is_disordered "
        f"from core.timelines where pod_uid = '{pod}' order by stage_at, stage_name"
    )
    return [(n, c, second(t), *rest) for n, c, t, *rest in rows if not names or n in names]


def test_a_life_from_creation_to_removal():
    case = Case()
    case.node("n")
    case.pod("p", None, 10, created_at=10, is_gated=True)
    case.pod("p", None, 20, created_at=10, is_gated=False)
    told = {"created_at": 10, "bound_at": 30, "is_gated": False}
    case.pod("p", "n", 32, running_since_at=None, sandbox_ready_at=31, **told)
    tell(case, 'Pulling image "a"', 33, reason_name="Pulling", container_name="main")
    tell(case, 'Successfully pulled image "a" in 5s (12s including waiting)', 45,
         reason_name="Pulled", container_name="main")  # fmt: skip
    init = run(32, 33, name="fetch", role="init", code=0)
    case.pod("p", "n", 50, container_runs=[init, run(46)], ready_since_at=48, **told)
    over = [init, run(46, 60, code=0, reason="Completed")]
    case.pod("p", "n", 60, container_runs=over, finished_at=60, phase_name="Succeeded", **told)
    case.pod("p", "n", 90, container_runs=over, finished_at=60, phase_name="Succeeded",
             change_name="DELETED", deletion_asked_at=80, **told)  # fmt: skip
    assert steps(case) == [
        ("created", "", 10, "object", None, False),
        ("eligible", "", 20, "observed", None, False),
        ("bound", "", 30, "condition", "n", False),
        ("sandbox_ready", "", 31, "condition", None, False),
        ("container_started", "fetch", 32, "status", "init", False),
        ("container_ended", "fetch", 33, "status", "exit code 0", False),
        ("init_done", "", 33, "status", None, False),
        ("pull_begun", "main", 33, "event", "a", False),
        ("pulled", "main", 45, "event", "a: 12 s in all, 7 s of it in a queue", False),
        ("container_started", "main", 46, "status", None, False),
        ("ready", "", 48, "condition", None, False),
        ("container_ended", "main", 60, "status", "Completed, exit code 0", False),
        ("finished", "", 60, "status", "Succeeded", False),
        ("deletion_asked", "", 80, "object", None, False),
        ("gone", "", 90, "observed", None, False),
    ]


def test_restarts_are_runs_with_their_exit_codes_and_the_first_ready_is_the_step():
    case = Case()
    case.node("n")
    case.pod("p", "n", 10, container_runs=[run(12)], ready_since_at=14)
    killed = run(12, 20, code=137, reason="OOMKilled")
    case.pod("p", "n", 30, container_runs=[killed, run(25, None, 1)])
    case.pod("p", "n", 40, container_runs=[run(25, None, 1)], ready_since_at=35)
    assert steps(case, "container_started", "container_ended", "ready") == [
        ("container_started", "main", 12, "status", None, False),
        ("ready", "", 14, "condition", None, False),
        ("container_ended", "main", 20, "status", "OOMKilled, exit code 137", False),
        ("container_started", "main", 25, "status", "restart 1", False),
    ]


def test_a_run_whose_begin_is_told_anew_when_it_ends_is_one_run():
    case = Case()
    case.node("n")
    case.pod("p", "n", 10, container_runs=[run(12)])
    case.pod("p", "n", 30, container_runs=[run(29, 29, code=0)])
    assert [(n, t) for n, _, t, *_ in steps(case, "container_started", "container_ended")] == [
        ("container_started", 12),
        ("container_ended", 29),
    ]


def test_a_sandbox_told_after_the_containers_ran_says_nothing():
    case = Case()
    case.node("n")
    case.pod("p", "n", 10, container_runs=[run(12)], sandbox_ready_at=18)
    assert steps(case, "sandbox_ready") == []


def test_a_step_before_the_one_before_it_is_marked_and_not_moved():
    case = Case()
    case.node("n")
    early = [run(25)]
    case.pod("p", "n", 30, bound_at=30, ready_since_at=20, created_at=5, container_runs=early)
    assert steps(case, "ready") == [("ready", "", 20, "condition", None, True)]
    assert steps(case, "bound") == [("bound", "", 30, "condition", "n", False)]
    assert steps(case, "container_started")[0][-1]


def test_a_day_tells_its_own_steps_and_of_a_pod_it_is_the_first_to_know_those_before():
    case = Case()
    case.node("n")
    case.pod("new", "n", 10, created_at=-500, bound_at=-400)
    case.pod("old", "n", 0, created_at=-500, bound_at=-400, change_name="CARRIED")
    case.pod("old", "n", 50, created_at=-500, bound_at=-400, ready_since_at=40)
    assert [s[:3] for s in steps(case, pod="new")] == [("created", "", -500), ("bound", "", -400)]
    assert [s[:3] for s in steps(case, pod="old")] == [("ready", "", 40)]


def test_whoever_was_preempted_is_told_for_whom():
    case = Case()
    case.node("n")
    case.pod("p", "n", 10, namespace_name="ml")
    case.pod("big", None, 20, namespace_name="ml", pod_name="big")
    case.pod("p", "n", 30, namespace_name="ml", disruption_name="PreemptionByScheduler",
             disrupted_at=29)  # fmt: skip
    tell(case, "Preempted by pod big on node n", 29, reason_name="Preempted")
    [(_, _, when, _, detail, _)] = steps(case, "disrupted")
    assert when == 29 and "preempted by scheduler, for big" in detail
