"""One run or many, each of which knows the rows of those before it: the rows are the same."""

from dataclasses import replace
from itertools import pairwise

import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from collectors.prometheus_answers import Samples
from models.table import INSTANT
from tests.conftest import REQUIRE_ALL
from tests.kube_state_case import GONE, KEYS, MIDNIGHT, OLD, Read, Told, known, lives, node


def in_runs(told: Told, *cuts: int) -> dict[str, pl.DataFrame]:
    """The rows of the day where each stretch is read by a run of its own."""
    reads: list[Read] = []
    whole = told.end
    for begin, end in pairwise((0, *cuts, whole)):
        told.end = end
        reads.append(told.read(begin=begin, known=known(*reads)))
    told.end = whole
    return {
        name: pl.concat([read.tables[f"raw.{name}_versions"] for read in reads]).sort(
            "sequence_number"
        )
        for name in KEYS
    }


def differing(told: Told, *cuts: int) -> list[tuple]:
    """The rows that one run gives and many do not, or the other way round."""
    once, often = told.read(), in_runs(told, *cuts)
    found = []
    for name in KEYS:
        one = once.tables[f"raw.{name}_versions"].sort("sequence_number")
        shown = [KEYS[name], "observed_at", "change_name", "source_ref"]
        for left, right in ((one, often[name]), (often[name], one)):
            odd = left.join(right, on=left.columns, how="anti", nulls_equal=True)
            found += odd.select(shown).rows()
        assert one.height > 1
    return found


@pytest.mark.parametrize("cut", [600, 1110, 1801, 2399])
def test_an_answer_in_parts_of_time_comes_to_the_same_rows_and_counts(cut):
    class Parted(Told):
        def parts(self, begin, end):
            for part in super().parts(begin, end):
                at = pl.lit((MIDNIGHT + cut) * 1_000_000).cast(INSTANT)
                halves = [
                    Samples(data.series, data.samples.filter(side))
                    for data in part.data
                    for side in (pl.col("at") <= at, pl.col("at") > at)
                ]
                yield replace(part, data=halves)

    reads = []
    for kind in (Told, Parted):
        told = kind()
        told.replica("b", 45, 600, 2400)
        lives(told)
        reads.append(told.read())
    whole, parted = reads
    assert parted.counts == whole.counts and whole.counts[0].copies > 100
    for name in KEYS:
        assert parted.tables[f"raw.{name}_versions"].equals(whole.tables[f"raw.{name}_versions"])


cuts = st.lists(st.integers(1, 3599), min_size=1, max_size=5, unique=True).map(sorted)


@settings(max_examples=25 if REQUIRE_ALL else 5)
@given(cuts, st.integers(0, 59), st.integers(0, 30), st.integers(30, 60))
def test_beside_a_second_target_the_rows_of_many_runs_are_those_of_one(cuts, offset, first, last):
    # Of a target that has just ended a run cannot know yet that its last word is the last.
    assume(not any(0 <= cut - last * 60 <= 180 for cut in cuts))
    told = Told()
    told.replica("b" if offset % 2 else "A", offset, first * 60, last * 60)
    lives(told)
    assert differing(told, *cuts) == []


@settings(max_examples=10 if REQUIRE_ALL else 3)
@given(cuts, st.integers(0, 59))
def test_where_two_targets_share_the_objects_the_rows_of_many_runs_are_those_of_one(cuts, offset):
    told = Told()
    told.replica("b", offset)
    for number in range(12):
        labels = {"namespace": "ml", "pod": f"p{number}", "uid": f"p{number}"}
        by, begin, end = "ab"[number % 2], 200 * number, GONE if number % 3 else 1500 + 150 * number
        told.tell("kube_pod_created", OLD, begin, end, by=by, **labels)
        told.tell("kube_pod_info", 1, begin, end, by=by, node="n", **labels)
        phases = ("Pending", begin, begin + 130), ("Running", begin + 130, end)
        for phase, since, until in phases:
            told.tell("kube_pod_status_phase", 1, since, until, by=by, phase=phase, **labels)
    node(told)
    told.tell("kube_namespace_labels", 1, 0, 1900, namespace="ml", label_team="a")
    told.tell("kube_namespace_labels", 1, 1900, namespace="ml", label_team="b")
    node(told, "m", 700)
    assert differing(told, *cuts) == []
