"""Scrapes of kube-state-metrics: gaps, replicas, stretches read apart, midnights, and coverage."""

from datetime import timedelta

import polars as pl
import pytest

from collectors.coverage import ROOM
from collectors.kube_state import Known
from collectors.prometheus_segments import State
from collectors.source import Settings
from tests.kube_state_case import DAY, GONE, MIDNIGHT, OLD, Told, known, lives, node, pod

SAMPLED = ("begin_at", "end_at", "coverage_name")


# Gaps


def test_a_pod_seen_before_and_after_a_gap_held_throughout_and_is_listed_again():
    told = Told()
    told.away(600, 1200)
    pod(told)
    read = told.read()
    assert read.pods("observed_at", "change_name") == [(30, "LISTED"), (1230, "LISTED")]
    assert read.rows("coverage", *SAMPLED) == [
        (30, 570, "sampled"),
        (570, 1230, "recorder_gap"),
        (1230, 3600, "sampled"),
    ]


def test_a_pod_that_vanished_in_a_gap_held_until_it_was_last_seen():
    told = Told()
    told.away(600, 1200)
    pod(told, "always")
    pod(told, "gone", end=900)
    pod(told, "new", begin=900)
    found = told.read().pods("pod_uid", "observed_at", "change_name")
    assert sorted(found) == [
        ("always", 30, "LISTED"),
        ("always", 1230, "LISTED"),
        ("gone", 30, "LISTED"),
        ("gone", 570, "DELETED"),
        ("new", 1230, "LISTED"),
    ]


def test_one_scrape_that_failed_is_no_gap():
    told = Told()
    told.away(600, 660)
    pod(told, "gone", end=600)
    pod(told, "always")
    read = told.read()
    assert read.rows("coverage", *SAMPLED) == [(30, 3600, "sampled")]
    assert ("gone", 690, "DELETED") in read.pods("pod_uid", "observed_at", "change_name")


def test_a_pod_that_a_scrape_lacks_but_the_next_one_has_was_there():
    told = Told()
    pod(told, "always")
    pod(told, "blinks", end=600)
    pod(told, "blinks", 720)
    found = told.read().pods("pod_uid", "observed_at", "change_name")
    assert found == [("always", 30, "LISTED"), ("blinks", 30, "LISTED")]


def test_a_target_that_has_just_begun_and_lists_little_ends_no_pod():
    told = Told(end=1800)
    node(told)
    for number in range(20):
        pod(told, f"p{number}", end=1170)
        pod(told, f"p{number}", 1210)
    assert "DELETED" not in told.read(1200).pods("change_name")
    for number in range(20, 40):
        pod(told, f"p{number}", end=1170)
    gone = told.read(1200).pods("change_name", "observed_at")
    assert gone.count(("DELETED", 1230)) == 20  # the next scrape lacks them too


def test_what_lived_between_two_scrapes_is_not_there_and_the_time_is_sampled():
    told = Told()
    pod(told, "always")
    pod(told, "brief", 635, 685)
    read = told.read()
    assert set(read.pods("pod_uid")) == {"always"}
    assert read.rows("coverage", *SAMPLED) == [(30, 3600, "sampled")]


def test_where_nothing_was_scraped_to_the_end_that_time_is_a_gap():
    told = Told()
    told.away(1800, 3600)
    pod(told)
    read = told.read()
    assert read.rows("coverage", *SAMPLED) == [
        (30, 1770, "sampled"),
        (1770, 3600, "recorder_gap"),
    ]
    assert read.pods("change_name") == ["LISTED"]  # nothing says that it ended


def test_a_stretch_that_was_not_read_whole_gives_no_rows_and_is_a_gap():
    told = Told()
    pod(told, "always")
    pod(told, "new", begin=1300)

    class Broken(Told):
        def parts(self, begin, end):
            for part in told.parts(begin, end):
                if begin == 1200:
                    part.stretches = [s._replace(state=State.PARTIAL) for s in part.stretches]
                yield part

    read = Broken().read(1200, 2400)
    assert read.rows("coverage", *SAMPLED) == [
        (30, 1200, "sampled"),
        (1200, 2430, "recorder_gap"),
        (2430, 3600, "sampled"),
    ]
    assert read.pods("pod_uid", "observed_at") == [("always", 30), ("always", 2430), ("new", 2430)]
    kept, readings, *_, unused = read.counts[1]
    assert (kept, readings, unused) == (kept, 0, kept) and kept > 0


# Replicas


@pytest.mark.parametrize("end", [GONE, 2400])
def test_a_second_target_tells_the_same_again_and_nothing_is_summed(end):
    once, twice = Told(), Told()
    twice.replica("b", 45, 600, end)
    for told in (once, twice):
        lives(told)
    names = ("pod_uid", "change_name", "requests", "phase_name", "node_name", "bound_at")
    one, two = once.read(1200, 2400), twice.read(1200, 2400)
    assert sorted(map(str, two.pods(*names))) == sorted(map(str, one.pods(*names)))
    names = ("node_name", "gpu_count", "allocatable_micro_gpu", "change_name")
    assert sorted(two.nodes(*names)) == sorted(one.nodes(*names))
    kept, readings, copies, *_ = (sum(each) for each in zip(*two.counts, strict=True))
    ours = sum(count.kept for count in one.counts)
    assert kept - copies == readings == pytest.approx(ours, rel=0.02)


def test_of_two_targets_that_disagree_the_first_is_believed_throughout():
    told = Told()
    told.replica("b", 45)
    labels = pod(told, phase="")
    for by, since in (("a", 600), ("b", 1800)):  # b hears of it late
        told.tell("kube_pod_status_phase", 1, 0, since, by=by, phase="Pending", **labels)
        told.tell("kube_pod_status_phase", 1, since, by=by, phase="Running", **labels)
    assert told.read().pods("observed_at", "phase_name") == [(30, "Pending"), (630, "Running")]


def test_a_target_that_another_one_follows_loses_no_pod():
    told = Told(end=1800)
    told.scrapes = [(s, t) for s, t in told.scrapes if s < 900]
    told.replica("b", 0, 930)
    pod(told, "always")
    pod(told, "gone", end=910)
    read = told.read()
    assert read.pods("pod_uid", "observed_at", "change_name") == [
        ("always", 30, "LISTED"),
        ("gone", 30, "LISTED"),
        ("gone", 930, "DELETED"),
    ]
    assert read.rows("coverage", *SAMPLED) == [(30, 1800, "sampled")]


def test_two_targets_that_share_the_pods_tell_all_of_them():
    told = Told()
    told.replica("b", 45)
    for uid, by in (("p", "a"), ("q", "b"), ("r", "b")):
        labels = {"namespace": "ml", "pod": uid, "uid": uid}
        for metric, value in (("kube_pod_created", OLD), ("kube_pod_info", 1)):
            told.tell(metric, value, by=by, end=1500 if uid == "q" else GONE, **labels)
    found = told.read(1200).pods("pod_uid", "observed_at", "change_name")
    listed = [("p", 30, "LISTED"), ("q", 45, "LISTED"), ("r", 45, "LISTED")]
    assert found == [*listed, ("q", 1545, "DELETED")]


def test_a_metric_that_only_the_other_target_has_is_read_from_it():
    told = Told()
    told.replica("b", 45)
    labels = pod(told)
    told.tell("kube_pod_labels", 1, by="b", label_app="x", **labels)
    assert '{"app":"x"}' in told.read().pods("labels_json")


# Stretches read apart


@pytest.mark.parametrize("cuts", [(600, 1200, 1800, 2400, 3000), (1770,), (1150, 1210)])
def test_read_in_parts_or_at_once_the_rows_are_the_same(cuts):
    told = Told()
    told.away(3100, 3300)
    lives(told)
    at_once, in_parts = told.read(), told.read(*cuts)
    for table in ("pod_versions", "node_versions", "namespace_versions", "coverage"):
        whole, parts = at_once.tables[f"raw.{table}"], in_parts.tables[f"raw.{table}"]
        assert whole.height > 1
        order = "begin_at" if table == "coverage" else "sequence_number"
        assert whole.sort(order).equals(parts.sort(order)), table


def test_another_run_goes_on_from_the_newest_rows():
    told = Told()
    lives(told)
    whole = told.read()
    end, told.end = told.end, 1200
    first = told.read()
    told.end = end
    rest = told.read(begin=1200, known=known(first))
    for table in ("pod_versions", "node_versions", "namespace_versions"):
        parts = pl.concat([first.tables[f"raw.{table}"], rest.tables[f"raw.{table}"]])
        expected = whole.tables[f"raw.{table}"].sort("sequence_number")
        assert parts.sort("sequence_number").equals(expected), table
    assert rest.rows("coverage", *SAMPLED) == [(1200, 3600, "sampled")]


def test_a_day_that_knows_the_day_before_lists_nothing_anew():
    told = Told(end=1200)
    node(told)
    pod(told)
    first = told.read()
    again = told.read(known=known(first, scraped=-30))
    assert again.pods("pod_uid") == [] and again.nodes("node_name") == []


def test_what_was_known_and_is_not_there_was_deleted_or_vanished_before_the_day():
    told = Told(end=1200)
    pod(told, "always")
    both = Told(end=1200)
    pod(both, "always")
    pod(both, "gone")
    before = both.read()
    at_next = told.read(known=known(before, scraped=-30)).pods(
        "pod_uid", "observed_at", "change_name"
    )
    assert at_next == [("gone", 30, "DELETED")]
    in_gap = told.read(known=known(before, scraped=-4000)).pods(
        "pod_uid", "observed_at", "change_name"
    )
    assert in_gap == [("gone", 0, "DELETED"), ("always", 30, "LISTED")]


# Nodes


def test_a_node_whose_name_another_took_is_gone_when_it_was_first_missed():
    told = Told()
    pod(told)
    node(told, end=600)
    node(told, begin=900, created=MIDNIGHT + 880)
    found = told.read().nodes("node_uid", "observed_at", "change_name", "created_at")
    old, new = "kube-state/n@2026-02-28T23:00:00Z", "kube-state/n@2026-03-02T00:14:40Z"
    assert found == [
        (old, 30, "LISTED", OLD - MIDNIGHT),
        (old, 630, "DELETED", OLD - MIDNIGHT),
        (new, 930, "ADDED", 880),
    ]


def test_a_node_has_the_uid_that_a_recorder_gave_it():
    told = Told()
    node(told)
    first = told.read()
    named = first.tables["raw.node_versions"].with_columns(node_uid=pl.lit("real"))
    again = told.read(known=Known(nodes=named, scraped_at=(MIDNIGHT - 30) * 1_000_000))
    assert again.nodes("node_uid") == []
    moved = told.read(known=Known(nodes=named, scraped_at=(MIDNIGHT - 4000) * 1_000_000))
    assert moved.nodes("node_uid", "change_name") == [("real", "LISTED")]


def test_replicas_and_mig_are_taken_out_of_a_node_s_count():
    told = Told()
    labels = {
        "label_nvidia_com_gpu_product": "NVIDIA-A100-SXM4-80GB",
        "label_nvidia_com_gpu_replicas": "4",
        "label_nvidia_com_gpu_sharing_strategy": "time-slicing",
    }
    node(told, gpus=8, **labels)
    node(told, "m", gpus=0, label_nvidia_com_gpu_product="NVIDIA-A100-SXM4-80GB")
    mig = {"node": "m", "resource": "nvidia_com_mig_1g_10gb"}
    for kind in ("capacity", "allocatable"):
        told.tell(f"kube_node_status_{kind}", 7, **mig)
    found = told.read().nodes("node_name", "gpu_count", "gpu_model_name", "count_source_name")
    assert sorted(found) == [
        ("m", 1, "a100-80gb", "capacity"),
        ("n", 2, "a100-80gb", "capacity"),
    ]


def test_a_node_of_which_no_condition_is_kept_counts_as_ready_and_that_is_noted():
    told = Told()
    told.tell("kube_node_created", OLD, node="n")
    told.tell("kube_node_status_capacity", 4, node="n", resource="nvidia_com_gpu")
    read = told.read()
    assert read.nodes("is_ready", "allocatable_micro_gpu") == [(True, 4_000_000)]
    assert read.rows("rejections", "reason_name", "is_row_lost") == [("metric_missing", False)]


# Midnights


def test_a_day_hears_within_an_hour_what_happened_in_it():
    day = 86_400
    told = Told(end=day + 3600)
    labels = pod(told, begin=day, created=MIDNIGHT + day - 20)
    told.tell("kube_pod_status_scheduled_time", MIDNIGHT + day - 10, day, **labels)
    pod(told, "other", begin=day, created=MIDNIGHT + day - 5)
    pod(told, "always")
    read = told.read(day)
    assert sorted(read.pods("pod_uid", "change_name", "bound_at", "day_on")) == [
        ("always", "LISTED", None, DAY),
        ("other", "HEARD", None, DAY),
        ("p", "HEARD", day - 10, DAY),
    ]
    assert len(set(read.pods("sequence_number"))) == 3
    both = told.read(day, days=2)
    assert ("p", "ADDED", DAY + timedelta(days=1)) in both.pods("pod_uid", "change_name", "day_on")


def test_rows_have_places_in_their_day_that_no_recorder_gives():
    told = Told()
    lives(told)
    read = told.read()
    for table in ("pod_versions", "node_versions"):
        frame = read.tables[f"raw.{table}"]
        places = frame["sequence_number"]
        assert places.is_unique().all()
        quarters = (places % ROOM // (ROOM // 4)).unique().sort().to_list()
        assert quarters == [1, 3]  # a recorder has 0 and 2
        ordered = frame.sort("sequence_number")
        assert ordered["observed_at"].is_sorted()


def test_a_row_says_which_question_reads_it_again():
    told = Told()
    pod(told)
    [ref] = told.read(settings=Settings("c")).pods("source_ref")
    labels = '__name__=~"kube_pod_.+",uid="p",job="ksm",instance="a"'
    assert ref == f"prometheus: {{{labels}}} @ {MIDNIGHT + 30}.000"
