"""What is concluded from events: how often what was told, and how long images took to pull."""

from decimal import Decimal

from tests.sql_case import Case
from tests.told_events import UIDS, second, tell

# core.events


def events(case):
    rows = case.ask(
        "select text_pattern_name, event_count, first_at, last_at, latest_text from core.events "
        "order by first_at, text_pattern_name"
    )
    return [(a, b, second(c), second(d), e) for a, b, c, d, e in rows]


def test_texts_that_differ_in_numbers_and_uids_are_of_one_kind():
    case = Case()
    tell(case, "2 more needed", 5, 9, total_count=3)
    tell(case, "11 more needed", 7, 20, total_count=4)
    tell(case, f"by {UIDS[0]}", 30)
    tell(case, f"by {UIDS[1]}", 31)
    assert events(case) == [
        ("# more needed", 7, 5, 20, "11 more needed"),
        ("by <uid>", 2, 30, 31, f"by {UIDS[1]}"),
    ]


def test_similar_events_that_a_recorder_counts_together_are_of_the_kind_that_they_are_similar_to():
    case = Case()
    tell(case, "2 more needed", 5)
    tell(case, "(combined from similar events): 3 more needed", 9, total_count=8)
    assert events(case)[0][:2] == ("# more needed", 9)
    assert case.ask("select is_combined from core.events") == [(True,)]


def test_what_a_count_had_reached_before_the_day_is_not_of_the_day():
    case = Case()
    tell(case, "old", -60, 9, total_count=9, before_count=8)
    tell(case, "long gone", -60, -50, total_count=9, before_count=9)
    assert events(case) == [("old", 1, -60, 9, "old")]


def test_rows_of_one_event_count_only_what_each_adds():
    case = Case()
    for count in (4, 9):
        tell(case, "again", 0, count, total_count=count, event_uid="one")
    assert events(case)[0][1] == 9


def test_one_word_of_two_components_or_types_stays_apart():
    case = Case()
    tell(case, "full", type_name="Warning", reason_name="Unschedulable")
    tell(case, "full", type_name="Normal", reason_name="Unschedulable")
    tell(case, "full", component_name="other", reason_name="Unschedulable")
    assert len(events(case)) == 3


# core.image_pulls

IMAGE = "r.io/a:1"


def pulls(case):
    rows = case.ask(
        "select container_name, pull_number, begun_at, pulled_at, pull_seconds, queue_seconds, "
        "total_seconds, is_cached, failed_count from core.image_pulls order by 1, 2"
    )
    return [
        (a, b, second(c), second(d), *(None if x is None else float(x) for x in (e, f, g)), h, i)
        for a, b, c, d, e, f, g, h, i in rows
    ]


def kubelet(case, reason, message, first, last=None, container="main", **told):
    tell(case, message, first, last, reason_name=reason, container_name=container,
         component_name="kubelet", host_name="n1", **told)  # fmt: skip


def test_a_short_pull_after_a_long_wait_is_mostly_queueing():
    case = Case()
    kubelet(case, "Pulling", f'Pulling image "{IMAGE}"', 10)
    done = "in 2.873s (31m47.355s including waiting). Image size: 1000 bytes."
    kubelet(case, "Pulled", f'Successfully pulled image "{IMAGE}" {done}', 1918)
    assert pulls(case) == [("main", 1, 10, 1918, 2.873, 1904.482, 1907.355, False, 0)]
    rows = case.ask("select image_bytes, node_name, image_name from core.image_pulls")
    assert rows == [(1000, "n1", IMAGE)]


def test_an_old_kubelet_tells_one_time_or_none():
    case = Case()
    for container, begin, end, words in (
        ("a", 10, 12, " in 1.92192449s"), ("b", 20, 94, ""),
    ):  # fmt: skip
        kubelet(case, "Pulling", f'Pulling image "{IMAGE}"', begin, container=container)
        kubelet(case, "Pulled", f'Successfully pulled image "{IMAGE}"{words}', end,
                container=container)  # fmt: skip
    assert pulls(case) == [
        ("a", 1, 10, 12, 1.921924, None, 1.921924, False, 0),
        ("b", 1, 20, 94, None, None, 74, False, 0),
    ]


def test_a_pull_asked_for_before_midnight_is_known_by_the_time_it_took():
    case = Case()
    kubelet(case, "Pulled", f'Successfully pulled image "{IMAGE}" in 1s (15s including waiting)', 5)
    assert pulls(case) == [("main", 1, -10, 5, 1, 14, 15, False, 0)]


def test_an_image_that_is_there_is_not_pulled():
    case = Case()
    kubelet(case, "Pulled", f'Container image "{IMAGE}" already present on machine', 5)
    assert pulls(case) == [("main", 1, None, 5, None, None, None, True, 0)]


def test_a_pull_that_fails_has_begun_and_is_not_done():
    case = Case()
    kubelet(case, "Pulling", f'Pulling image "{IMAGE}"', 10, 70, total_count=3)
    kubelet(case, "Failed", f'Failed to pull image "{IMAGE}": rpc error', 20, 71, total_count=3)
    kubelet(case, "Failed", "Error: ErrImagePull", 20, 71, total_count=3)
    kubelet(
        case, "Failed", 'Failed to pull image "other": denied', 20, container="x", total_count=2
    )
    assert pulls(case) == [
        ("main", 1, 10, None, None, None, None, False, 3),
        ("x", 1, None, None, None, None, None, False, 2),
    ]


def test_a_second_pull_of_a_restarted_container_is_a_pull_of_its_own():
    case = Case()
    kubelet(case, "Pulling", f'Pulling image "{IMAGE}"', 10, 100, total_count=2)
    for end, took in ((12, "2s"), (101, "1s")):
        text = f'Successfully pulled image "{IMAGE}" in {took} ({took} including waiting)'
        kubelet(case, "Pulled", text, end)
    assert [row[1:4] for row in pulls(case)] == [(1, 10, 12), (2, 100, 101)]


def test_a_pull_of_which_the_asking_was_not_told_has_begun_before_its_end():
    case = Case()
    kubelet(case, "Pulling", f'Pulling image "{IMAGE}"', 10)
    for end in (12, 101):
        text = f'Successfully pulled image "{IMAGE}" in 1s (3s including waiting)'
        kubelet(case, "Pulled", text, end)
    assert [row[1:4] for row in pulls(case)] == [(1, 10, 12), (2, 98, 101)]


def test_sums_of_seconds_are_exact_to_the_microsecond():
    case = Case()
    kubelet(
        case, "Pulled", f'Successfully pulled image "{IMAGE}" in 0.1s (0.3s including waiting)', 5
    )
    [(queue,)] = case.ask("select queue_seconds from core.image_pulls")
    assert queue == Decimal("0.200000")
