"""Where a recorder has an object on a day its rows win, and what it missed is filled by scrapes."""

import polars as pl

from collectors import recorded_first
from models import raw
from models.book import frame
from tests.sql_case import DAY, at, whole


def rows(table, *told):
    return frame(table, [whole(table, sequence_number=n, **row) for n, row in enumerate(told)])


def cover(*stretches, known=True):
    told = {"is_placed": True, "is_inventory_known": known}
    return rows(
        raw.COVERAGE,
        *(
            {"begin_at": b, "end_at": e, "coverage_name": how, "source_ref": how, **told}
            for b, e, how in stretches
        ),
    )


def stretches(found):
    zero = pl.lit(at(0))
    seconds = ((pl.col(name) - zero).dt.total_seconds() for name in ("begin_at", "end_at"))
    return found.select(*seconds, "coverage_name").rows()


def test_a_pod_that_the_recorder_has_that_day_is_the_recorder_s():
    sampled = rows(
        raw.POD_VERSIONS,
        {"pod_uid": "both"},
        {"pod_uid": "ours"},
        {"pod_uid": "both", "day_on": DAY.replace(day=3)},
    )
    recorded = rows(raw.POD_VERSIONS, {"pod_uid": "both"}, {"pod_uid": "theirs"})
    kept = recorded_first.pods(sampled, recorded)
    assert kept.select("pod_uid", "day_on").rows() == [
        ("ours", DAY),
        ("both", DAY.replace(day=3)),
    ]


def test_a_node_goes_by_its_name_and_creation_for_its_uids_differ():
    sampled = rows(
        raw.NODE_VERSIONS,
        {"node_uid": "kube-state/a", "node_name": "a", "created_at": 5},
        {"node_uid": "kube-state/b", "node_name": "b", "created_at": 5},
        {"node_uid": "kube-state/c", "node_name": "c", "created_at": None},
        {"node_uid": "kube-state/d", "node_name": "d", "created_at": 5},
    )
    recorded = rows(
        raw.NODE_VERSIONS,
        {"node_uid": "1", "node_name": "a", "created_at": 5.4},
        {"node_uid": "2", "node_name": "b", "created_at": 900},  # another one of that name
        {"node_uid": "3", "node_name": "c", "created_at": 7},
    )
    kept = recorded_first.nodes(sampled, recorded)
    assert sorted(kept["node_name"]) == ["b", "d"]
    assert kept.schema == raw.NODE_VERSIONS.schema


def test_a_node_carried_with_the_uid_that_we_made_gives_way_to_the_recorder_s():
    staged = rows(
        raw.NODE_VERSIONS,
        {"node_uid": "kube-state/a@1", "node_name": "a", "created_at": 5, "change_name": "CARRIED"},
        {"node_uid": "real", "node_name": "a", "created_at": 5},
        {"node_uid": "kube-state/b@1", "node_name": "b", "created_at": 5},
    )
    assert sorted(recorded_first.carried_nodes(staged)["node_uid"]) == ["kube-state/b@1", "real"]


def test_a_namespace_of_the_recorder_s_day_is_the_recorder_s():
    sampled = rows(raw.NAMESPACE_VERSIONS, {"namespace_name": "a"}, {"namespace_name": "b"})
    recorded = rows(raw.NAMESPACE_VERSIONS, {"namespace_name": "a"})
    assert recorded_first.namespaces(sampled, recorded)["namespace_name"].to_list() == ["b"]


def test_watched_wins_and_a_recorder_s_gap_that_scrapes_fill_is_sampled():
    recorded = cover((100, 200, "watched"), (200, 300, "recorder_gap"), (300, 400, "watched"))
    sampled = cover((0, 250, "sampled"), (250, 260, "recorder_gap"), (260, 500, "sampled"))
    assert stretches(recorded_first.coverage(sampled, recorded)) == [
        (0, 100, "sampled"),
        (100, 200, "watched"),
        (200, 250, "sampled"),
        (250, 260, "recorder_gap"),
        (260, 300, "sampled"),
        (300, 400, "watched"),
        (400, 500, "sampled"),
    ]


def test_scrapes_know_more_than_a_list_and_than_what_came_before_the_first_one():
    recorded = cover((0, 50, "before_first_seen"), (50, 100, "list_only"), known=False)
    found = recorded_first.coverage(cover((0, 100, "sampled")), recorded)
    assert stretches(found) == [(0, 100, "sampled")]
    alone = recorded_first.coverage(cover((0, 100, "recorder_gap")), recorded)
    assert stretches(alone) == [(0, 50, "before_first_seen"), (50, 100, "list_only")]


def test_either_source_alone_stays_as_it_is():
    recorded = cover((0, 100, "watched"), (100, 200, "recorder_gap"))
    nothing = pl.DataFrame(schema=raw.COVERAGE.schema)
    assert recorded_first.coverage(nothing, recorded).equals(recorded)
    assert recorded_first.coverage(recorded, nothing).equals(recorded)
    assert recorded_first.coverage(nothing, nothing).equals(nothing)


def test_each_second_is_covered_once_and_by_whom_is_told():
    recorded = cover((0, 60, "watched"))
    found = recorded_first.coverage(cover((30, 90, "sampled")), recorded)
    assert found["source_ref"].to_list() == ["watched", "sampled"]
    assert stretches(found) == [(0, 60, "watched"), (60, 90, "sampled")]
