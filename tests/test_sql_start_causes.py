"""Why a pod that holds a GPU does not run yet, second by second, by what its kubelet told.

What versions of the pod alone tell is in test_sql_states; how long a pull took in test_sql_events.
"""

from tests.sql_case import Case
from tests.test_sql_events import kubelet
from tests.told_events import tell

END = 3600
IMAGE = "r.io/a:1"
TOOK = f'Successfully pulled image "{IMAGE}" in '
PULLING = f'Pulling image "{IMAGE}"'
PRESENT = f'Container image "{IMAGE}" already present on machine'


def started(bound=0, runs=None, order: str | None = "main", **facts):
    """A pod p bound then, whose containers are prepared in that order and run from then on."""
    case = Case()
    case.node("n")
    told = {"bound_at": bound, "running_since_at": None, "start_order_text": order, **facts}
    case.pod("p", "n", seen=bound, **told)
    if runs is not None:
        seen = {"waiting_cause_name": None, "running_since_at": runs}
        case.pod("p", "n", seen=runs + 0.5, **{**told, **seen})
    return case


def told(case, *events):
    """Events of the kubelet as (second, reason, text[, container])."""
    for second, reason, message, *container in events:
        kubelet(case, reason, message, second, container=container[0] if container else "main")
    return case


def mount(case, reason, message, first, last):
    """A volume that failed from then to then."""
    tell(case, message, first, last, reason_name=reason, component_name="kubelet", total_count=9)


def causes(case):
    return [state[1:] for state in case.states("p") if state[0] == "starting"]


def test_a_pull_waits_in_its_nodes_queue_first_and_what_follows_is_the_containers_start():
    """Asked at 4, 31m47s with the wait, 2.9 s without, on a node that pulls one by one."""
    case = told(
        started(0, 1915),
        (4, "Pulling", PULLING),
        (1911, "Pulled", f"{TOOK}2.873s (31m47.355s including waiting). Image size: 9 bytes."),
        (1914, "Started", "Started container main"),
    )
    assert causes(case) == [
        ("volume", 0, 4),
        ("image_pull_queue", 4, 1908),
        ("image_pull", 1908, 1911),
        ("container_start", 1911, 1915),
    ]


def test_a_pull_that_did_not_wait_is_all_transfer():
    case = told(
        started(0, 130),
        (2, "Pulling", PULLING),
        (119, "Pulled", f"{TOOK}1m57.875s (1m57.875s including waiting)"),
    )
    assert causes(case)[1:] == [("image_pull", 2, 119), ("container_start", 119, 130)]


def test_a_pull_of_which_only_the_end_was_told_began_so_long_before_it():
    case = told(started(0, 50), (40, "Pulled", f"{TOOK}10s (25s including waiting)"))
    assert causes(case) == [
        ("volume", 0, 15),
        ("image_pull_queue", 15, 30),
        ("image_pull", 30, 40),
        ("container_start", 40, 50),
    ]


def test_the_pulls_of_init_containers_and_what_they_do_themselves_are_told_apart():
    """Bound 1 s before the init container's pull of 2 s; it runs to 107; the main image takes 74 s.

    The kubelet of that cluster tells one time, or none: the queue is not known.
    """
    case = told(
        started(100, 182, "fix main", waiting_cause_name="init"),
        (101, "Pulling", PULLING, "fix"),
        (103, "Pulled", f"{TOOK}1.92192449s", "fix"),
        (103, "Started", "Started container fix", "fix"),
        (107, "Pulling", PULLING),
        (181, "Pulled", f'Successfully pulled image "{IMAGE}"'),
    )
    assert causes(case) == [
        ("volume", 100, 101),
        ("image_pull", 101, 103),
        ("init", 103, 107),
        ("image_pull", 107, 181),
        ("container_start", 181, 182),
    ]


def test_an_image_that_is_there_is_not_pulled():
    case = told(started(0, 9), (3, "Pulled", PRESENT))
    assert causes(case) == [("volume", 0, 3), ("container_start", 3, 9)]


def test_an_image_that_is_found_again_at_each_restart_was_there_the_first_time():
    case = started(0, 9)
    kubelet(case, "Pulled", PRESENT, 3, 900, total_count=7)
    assert causes(case) == [("volume", 0, 3), ("container_start", 3, 9)]


def test_of_containers_that_pull_one_after_another_the_one_that_is_at_it_counts():
    case = told(
        started(0, 60, "a b"),
        (1, "Pulling", PULLING, "a"),
        (10, "Pulled", f"{TOOK}9s (9s including waiting)", "a"),
        (11, "Started", "Started container a", "a"),
        (12, "Pulling", PULLING, "b"),
        (50, "Pulled", f"{TOOK}30s (38s including waiting)", "b"),
    )
    assert causes(case) == [
        ("volume", 0, 1),
        ("image_pull", 1, 10),
        ("container_start", 10, 12),
        ("image_pull_queue", 12, 20),
        ("image_pull", 20, 50),
        ("container_start", 50, 60),
    ]


def test_the_pull_of_a_container_that_nobody_waits_for_counts_for_nothing():
    case = told(
        started(0, None),
        (1, "Pulled", PRESENT),
        (5, "Pulling", PULLING, "beside"),
        (90, "Pulled", f"{TOOK}85s (85s including waiting)", "beside"),
    )
    assert causes(case) == [("volume", 0, 1), ("container_start", 1, END)]


def test_a_pull_that_never_ended_goes_on():
    assert causes(told(started(0), (7, "Pulling", PULLING))) == [
        ("volume", 0, 7),
        ("image_pull", 7, END),
    ]


def test_a_pull_that_fails_again_and_again_goes_on_all_the_while():
    case = started(0)
    kubelet(case, "Pulling", PULLING, 7, 400, total_count=5)
    kubelet(case, "Failed", f'Failed to pull image "{IMAGE}": not found', 8, 401, total_count=5)
    told(case, (900, "Pulled", f"{TOOK}3s (3s including waiting)"))
    assert causes(case)[1:] == [("image_pull", 7, 900), ("container_start", 900, END)]


def test_how_long_a_pull_took_whose_end_was_lost_is_not_known():
    case = told(started(0, 500), (7, "Pulling", PULLING))
    assert causes(case) == [("volume", 0, 7), ("undetermined", 7, 500)]
    case = told(
        started(0, 500, "fix main", waiting_cause_name="init"),
        (7, "Pulling", PULLING, "fix"),
        (50, "Created", "Created container fix", "fix"),
        (90, "Pulled", PRESENT),
    )
    assert causes(case) == [
        ("volume", 0, 7),
        ("undetermined", 7, 50),
        ("init", 50, 90),
        ("container_start", 90, 500),
    ]


def test_what_came_after_one_container_is_not_known_where_the_next_ones_pull_was_lost():
    case = told(
        started(0, 500, "a b"),
        (1, "Pulling", PULLING, "a"),
        (10, "Pulled", f"{TOOK}9s (9s including waiting)", "a"),
    )
    assert causes(case) == [("volume", 0, 1), ("image_pull", 1, 10), ("undetermined", 10, 500)]


def test_without_events_of_the_first_container_nothing_is_known_of_what_came_before():
    case = told(started(0, 500, "a b"), (60, "Pulled", PRESENT, "b"))
    assert causes(case) == [("undetermined", 0, 60), ("container_start", 60, 500)]


def test_volumes_are_waited_for_as_long_as_they_fail_and_no_container_is_begun():
    case = started(0)
    mount(case, "FailedMount", "MountVolume.SetUp failed", 20, 300)
    assert causes(case) == [("volume", 0, END)]
    told(case, (700, "Pulled", PRESENT))
    assert causes(case) == [("volume", 0, 700), ("container_start", 700, END)]


def test_where_the_first_containers_events_were_lost_a_failing_volume_tells_until_it_last_failed():
    case = started(0, 900)
    mount(case, "FailedAttachVolume", "Multi-Attach error", 20, 300)
    assert causes(case) == [("volume", 0, 300), ("undetermined", 300, 900)]


def test_that_some_container_was_made_tells_nothing_of_volumes_or_images():
    case = started(0, 90)
    tell(case, "Created container", 40, reason_name="Created", component_name="kwok_controller")
    assert causes(case) == [("undetermined", 0, 90)]


def test_of_a_pod_bound_on_an_earlier_day_the_first_event_need_not_be_its_first():
    case = told(started(0, 90, bound_at=-60), (60, "Pulled", PRESENT))
    assert causes(case) == [("undetermined", 0, 60), ("container_start", 60, 90)]
    case = told(started(0, 90, bound_at=-60), (60, "Pulled", f"{TOOK}10s (2m including waiting)"))
    assert causes(case)[:2] == [("image_pull_queue", 0, 50), ("image_pull", 50, 60)]


def test_what_a_version_says_of_a_crash_or_a_pull_is_believed_until_the_last_image_is_there():
    case = started(0, 900, "proxy main")
    case.pod("p", "n", seen=30, bound_at=0, running_since_at=None, start_order_text="proxy main",
             waiting_cause_name="crash_loop")  # fmt: skip
    told(case, (2, "Pulled", PRESENT, "proxy"), (20, "Pulled", PRESENT, "main"))
    assert causes(case)[1:3] == [("container_start", 2, 30), ("crash_loop", 30, 900)]
    case = started(0, 900, waiting_cause_name="image_pull")
    told(case, (800, "Pulled", f"{TOOK}2s"))
    assert causes(case) == [
        ("volume", 0, 798),
        ("image_pull", 798, 800),
        ("container_start", 800, 900),
    ]


def test_where_the_order_of_containers_is_not_told_a_pull_is_one_all_the_same():
    case = told(
        started(0, 90, None, waiting_cause_name="init"),
        (1, "Pulling", PULLING),
        (20, "Pulled", f"{TOOK}4s (19s including waiting)"),
    )
    assert causes(case) == [
        ("init", 0, 1),
        ("image_pull_queue", 1, 16),
        ("image_pull", 16, 20),
        ("init", 20, 90),
    ]


def test_a_container_that_runs_again_restarts_whatever_is_pulled_for_it():
    case = told(started(0, 10), (5, "Pulled", PRESENT), (200, "Pulling", PULLING))
    case.pod("p", "n", seen=100, bound_at=0, running_since_at=None, stopped_at=100)
    assert causes(case)[-1] == ("restart", 100, END)
