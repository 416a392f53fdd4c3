"""Which rows of a trace cannot be true, so that they are refused and not read as something else.

How a sound row is read is in test_table.py, what a user is told in test_bad_input.py.
"""

from collections import Counter
from datetime import UTC, datetime

import polars as pl
import pytest

from collectors import table
from collectors.source import Settings
from models.raw import NOTICES
from tests.bad_input import TRACE, added, made, swapped, written

MAPPING, PODS = "given/mapping.yaml", "given/pods.csv"


@pytest.fixture
def read(tmp_path):
    """The rows of a damaged trace, and how many were refused by reason."""

    def work(*damages):
        given = written(tmp_path, TRACE, "t", *damages).parent / "given"
        rows, counts = [], Counter()
        for batch in table.collect(given, Settings("t", mapping=given / "mapping.yaml")):
            if batch.table == "raw.pod_versions":
                rows += batch.frame.to_dicts()
            if batch.table == "raw.rejections":
                for refused in batch.frame.iter_rows(named=True):
                    if refused["reason_name"] not in NOTICES:
                        counts[refused["reason_name"]] += refused["rejected_count"]
        return rows, counts

    return work


def test_an_id_that_is_there_twice_is_found_in_a_file_that_is_read_in_parts(read, monkeypatch):
    monkeypatch.setattr(table, "BYTES_A_PART", 10)
    again = added(PODS, "p-1,1,2,3,4,one,Running,1,a\np-3,1,2,3,4,one,Running,1,a\n")
    assert read(again)[1] == {"duplicate_uid": 2}


SHARES = swapped(MAPPING, "gpu_count: gpus, team", "gpu_count: gpus, gpu_milli: team, team")


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("9,0,0,0,1,one,Running,9,1000", "absurd_quantity"),  # the largest node has 8
        ("9,0,,,1,,Pending,9,1000", None),  # it may ask for what is not there
        ("9,0,0,0,1,one,Running,1,1001", "absurd_quantity"),
        ("9,0,0,0,1,one,Running,1,9", "absurd_quantity"),
        ("9,0,0,0,1,one,Running,1,0.4", "bad_column_value"),
        ("9,0,0,0,1,one,Running,1e14,1e14", "bad_column_value"),
        ("9,0,0,0,1,one,Running,1,-5", "negative_quantity"),
        ("9,-900000000,0,0,1,one,Running,1,1000", "absurd_instant"),
    ],
)
def test_a_quantity_of_another_unit_is_refused_where_it_cannot_be_true(read, row, reason):
    shares = made(PODS, TRACE[PODS].replace(b",a\n", b",1000\n").replace(b",b\n", b",500\n"))
    assert read(SHARES, shares, added(PODS, row + "\n"))[1] == ({reason: 1} if reason else {})


def test_without_places_no_pod_holds_more_than_all_nodes_have(read):
    unplaced = swapped(MAPPING, "ended: gone, node: host", "ended: gone")
    rows = added(PODS, "p-6,0,0,0,1,,Running,12,a\np-7,0,0,0,1,,Running,13,a\n")
    assert read(unplaced, rows)[1] == {"absurd_quantity": 1}


def test_a_clock_time_that_was_skipped_is_refused_and_not_taken_for_none(read, tmp_path):
    def moment(hour, minute=0):
        return datetime(2026, 3, 29, hour, minute)  # noqa: DTZ001 - clocks have no zone

    frame = pl.read_csv(TRACE[PODS]).head(2)
    ends = pl.Series("gone", [moment(2, 30), moment(4)])
    begun = pl.lit(moment(1))
    frame = frame.with_columns(ends, made=begun, placed=begun, begun=begun)
    (tmp_path / "given").mkdir()
    frame.write_parquet(tmp_path / "given/pods.parquet")
    rows, refused = read(
        swapped(MAPPING, "{unit: s, epoch: 2026-03-01T00:00:00Z}", "{zone: Europe/Berlin}"),
        swapped(MAPPING, "from: 0", 'from: "2026-03-29 00:00:00"'),
        swapped(MAPPING, "to: 86400", 'to: "2026-03-30 00:00:00"'),
        swapped(MAPPING, "pods.csv", "pods.parquet"),
    )
    assert refused == {"bad_column_value": 1}
    assert rows[-1]["observed_at"] == datetime(2026, 3, 29, 2, tzinfo=UTC)
