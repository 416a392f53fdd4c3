"""What is read when: a complete stretch never again, the open hour every five minutes, no hole."""

import re

from hypothesis import given
from hypothesis import strategies as st

from collectors.prometheus_segments import (
    DAY,
    HOUR,
    REFRESH,
    SETTLE,
    State,
    Stretch,
    hours,
    is_due,
    learned,
    plan,
    tiled,
)
from collectors.prometheus_selectors import Group, Matcher, any_of

A, B = Group.of("a"), Group.of("b", Matcher("gpu", "=", "3"))
DONE = State.COMPLETE
STEPS = st.lists(
    st.tuples(
        st.integers(1, 3 * HOUR),
        st.lists(st.sampled_from([DONE, State.PARTIAL, State.MISSING]), max_size=6),
    ),
    max_size=12,
)


def spans(segments):
    return [(segment.begin, segment.end) for segment in segments]


def test_what_was_never_read_is_read_hour_by_hour_the_oldest_first():
    found = plan([A, B], HOUR // 2, 2 * HOUR, [], 9 * HOUR)
    assert spans(found) == [
        (HOUR // 2, HOUR),
        (HOUR // 2, HOUR),
        (HOUR, 2 * HOUR),
        (HOUR, 2 * HOUR),
    ]
    assert [segment.group for segment in found] == [A, B, A, B]


def test_a_complete_hour_is_never_read_again():
    known = [Stretch(A, 0, HOUR, DONE, read_at=HOUR)]
    assert spans(plan([A], 0, 2 * HOUR, known, 9 * HOUR)) == [(HOUR, 2 * HOUR)]
    assert plan([A], 0, HOUR, known, 10**12) == []


def test_samples_are_left_to_settle_before_they_are_read():
    now = HOUR + HOUR // 2
    assert spans(plan([A], HOUR, DAY, [], now)) == [(HOUR, now - SETTLE)]
    assert plan([A], HOUR, DAY, [], HOUR + SETTLE) == []


def test_the_open_hour_is_read_on_from_where_it_was_left_every_five_minutes():
    now = HOUR // 2
    known = [Stretch(A, 0, now - SETTLE, DONE, read_at=now)]
    assert plan([A], 0, DAY, known, now + REFRESH - 1) == []
    later = now + REFRESH
    assert spans(plan([A], 0, DAY, known, later)) == [(now - SETTLE, later - SETTLE)]


def test_the_rest_of_an_hour_that_ended_is_read_however_short():
    known = [Stretch(A, 0, HOUR - 1000, DONE)]
    assert spans(plan([A], 0, DAY, known, HOUR + SETTLE + 10))[0] == (HOUR - 1000, HOUR)


def test_what_failed_is_read_again_after_five_minutes_then_ten_at_last_once_a_day():
    stretch = Stretch(A, 0, HOUR, State.MISSING, "x", 1, read_at=5 * HOUR)
    waits = []
    for tries in (1, 2, 3, 12, 500):
        known = [stretch._replace(tries=tries)]
        waits.append(
            next(w for w in range(0, 2 * DAY, REFRESH) if plan([A], 0, HOUR, known, 5 * HOUR + w))
        )
    assert waits == [REFRESH, 2 * REFRESH, 4 * REFRESH, DAY, DAY]


def test_a_failed_stretch_does_not_hold_up_what_comes_after_it():
    now = HOUR // 2
    known = [Stretch(A, 0, HOUR // 4, State.PARTIAL, "x", 3, read_at=now)]
    assert spans(plan([A], 0, DAY, known, now)) == [(HOUR // 4, now - SETTLE)]


def test_what_is_read_replaces_what_was_known_of_its_time_only():
    known = [Stretch(A, 0, HOUR, State.MISSING, "x", 1, 5), Stretch(B, 0, HOUR, DONE, read_at=5)]
    read = [Stretch(A, HOUR // 4, HOUR // 2, DONE)]
    assert learned(known, read, 7) == [
        Stretch(A, 0, HOUR // 4, State.MISSING, "x", 1, 5),
        Stretch(A, HOUR // 4, HOUR // 2, DONE, read_at=7),
        Stretch(A, HOUR // 2, HOUR, State.MISSING, "x", 1, 5),
        Stretch(B, 0, HOUR, DONE, read_at=5),
    ]


def test_an_hour_refreshed_twelve_times_is_one_stretch_and_hours_stay_apart():
    known = []
    for begin in range(0, 2 * HOUR, REFRESH):
        known = learned(known, [Stretch(A, begin, begin + REFRESH, DONE)], begin + REFRESH)
    assert [(s.begin, s.end) for s in known] == [(0, HOUR), (HOUR, 2 * HOUR)]


def test_what_was_not_read_is_open_or_missing_never_nothing():
    known = [Stretch(A, HOUR, HOUR + 10, State.PARTIAL, "x", 1)]
    assert [
        (s.begin, s.end, s.state, s.reason)
        for s in tiled([A], 0, 3 * HOUR, known, 2 * HOUR + SETTLE)
    ] == [
        (0, HOUR, State.MISSING, "not_read"),
        (HOUR, HOUR + 10, State.PARTIAL, "x"),
        (HOUR + 10, 2 * HOUR, State.MISSING, "not_read"),
        (2 * HOUR, 3 * HOUR, State.OPEN, ""),
    ]


@given(STEPS, st.integers(0, HOUR), st.integers(1, 9 * HOUR))
def test_whatever_fails_the_tiles_have_no_hole_and_the_complete_is_not_read_twice(
    steps, begin, length
):
    end, now, known = begin + length, begin, []
    complete = []
    for wait, states in steps:
        now += wait
        planned = plan([A], begin, end, known, now)
        for segment in planned:
            assert begin <= segment.begin < segment.end <= min(end, now - SETTLE)
            assert segment.end - segment.begin <= HOUR
            for done_begin, done_end in complete:
                assert segment.end <= done_begin or done_end <= segment.begin
        read = [
            Stretch(*segment, state, "" if state is DONE else "x")
            for segment, state in zip(planned, states, strict=False)
        ]
        complete += [(s.begin, s.end) for s in read if s.state is DONE]
        known = learned(known, read, now)
        tiles = list(tiled([A], begin, end, known, now))
        edges = [begin, *(tile.end for tile in tiles)]
        assert [tile.begin for tile in tiles] == edges[:-1]
        assert edges[-1] == end
        done = sum(t.end - t.begin for t in tiles if t.state is DONE)
        assert done == sum(e - b for b, e in complete)
        assert all(is_due(s, now + DAY) for s in known if s.state is not DONE)


@given(STEPS)
def test_once_all_can_be_had_all_is_complete(steps):
    end, now, known = 5 * HOUR, 0, []
    for wait, states in steps:
        now += wait
        planned = zip(plan([A], 0, end, known, now), states, strict=False)
        known = learned(known, [Stretch(*p, state) for p, state in planned], now)
    for _ in range(2):
        now += 2 * DAY
        known = learned(known, [Stretch(*p, DONE) for p in plan([A], 0, end, known, now)], now)
    assert [t[1:4] for t in tiled([A], 0, end, known, now)] == [(*h, DONE) for h in hours(0, end)]


LABELS = st.dictionaries(st.sampled_from(["__name__", "x", "y"]), st.text(), max_size=3)


@given(st.lists(st.text(), min_size=2, unique=True), LABELS)
def test_the_halves_of_a_group_share_no_series_and_have_all(values, labels):
    first, second = Group.of("a").halves("x", values)
    is_whole = Group.of("a").accepts(labels)
    assert first.accepts(labels) + second.accepts(labels) == is_whole
    for value in values:
        assert first.accepts({"__name__": "a", "x": value}) != second.accepts(
            {"__name__": "a", "x": value}
        )


@given(st.text())
def test_a_value_of_a_label_meets_its_own_matcher_and_stays_in_its_quotes(value):
    for matcher in (Matcher("x", "=", value), any_of("x", [value])):
        assert matcher.accepts({"x": value})
        assert re.fullmatch(r'x=~?"(?:[^"\\\n]|\\.)*"', str(matcher), re.DOTALL)
