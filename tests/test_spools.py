"""A spool that is read piece by piece, run after run: the lake has the rows of one reading.

How segments are written is in test_spool.py, what a record is to say in test_recording.py.
"""

import gzip
import json
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from collectors.source import Unreadable
from collectors.spool_files import INGESTED, STATE
from lake.connect import NAME, attach
from lake.create import create
from lake.errors import LakeError
from lake.home import Home
from lake.run import Run
from models import raw
from models.config import Config
from models.window import Window
from pipelines.carry import publish
from pipelines.collect import gather, sources_of, widened
from pipelines.process import process
from pipelines.spools import tell_recorders
from tests.conftest import REQUIRE_ALL
from tests.kube_objects import node, pod
from tests.random_fleet import START, Fleet, Seen, fleets, identified, stamp

TABLES = (*(t for t in raw.TABLES if t.name.endswith("_versions")), raw.COVERAGE, raw.REJECTIONS)


class Spooled:
    """A fleet's record as a recorder's spool, of which segments come one by one."""

    def __init__(self, folder: Path, fleet: Fleet, cuts: list[int]):
        self.config = fleet.write(folder, "alpha")
        self.spool = folder / "watch"
        for path in self.spool.iterdir():
            path.unlink()
        (self.spool / STATE).write_text(json.dumps({"spool": "s", "segment": 0, "kinds": {}}))
        lines = sorted(fleet.seen(), key=lambda line: (line.at, line.change != "LISTED"))
        for number, line in enumerate(lines):  # what has a version is known again
            line.item["metadata"].setdefault("resourceVersion", str(number))
        bounds = sorted({0, len(lines), *(self._whole(lines, cut % len(lines)) for cut in cuts)})
        self.segments = [lines[a:b] for a, b in pairwise(bounds) if a < b]
        self.written = 0

    @staticmethod
    def _whole(lines: list[Seen], cut: int) -> int:
        """A list lies in one segment."""
        while 0 < cut < len(lines) and lines[cut].at == lines[cut - 1].at:
            cut -= 1
        return cut

    def write(self, count: int | None = None) -> None:
        """The next segments, or all that are left."""
        until = len(self.segments) if count is None else self.written + count
        for number, lines in enumerate(self.segments[self.written : until], self.written + 1):
            at = START + timedelta(seconds=lines[0].at)
            path = self.spool / f"{number:012d}-{at:%Y%m%dT%H%M%SZ}.jsonl.gz"
            with gzip.open(path, "wt") as file:
                for s in lines:
                    told = {"observed_at": stamp(s.at), "type": s.change, "object": s.item}
                    file.write(f"{json.dumps(told)}\n")
        self.written = min(until, len(self.segments))


def ingested(home: Home, config: Config, window: Window | None = None) -> Run:
    """A run's raw rows, published without what follows from them."""
    create(home, config.lake.accounting_zone, config.lake.currency)
    sources = sources_of(config, "alpha")
    window = widened(home, config, "alpha", window, sources)
    run = Run(home, f"r{len(list(home.path.iterdir()))}", window)
    gather(run, config, sources)
    publish(run)
    tell_recorders(run)
    run.discard()
    return run


def rows(home: Home) -> dict[str, pl.DataFrame]:
    """The lake's raw rows, in order; of coverage not which segments tell it."""
    con = attach(home, read_only=True)
    try:
        found = {t.name: con.sql(f"from {NAME}.{t.name} order by all").pl() for t in TABLES}
    finally:
        con.close()
    return found | {"raw.coverage": found["raw.coverage"].drop("source_ref")}


def differing(one: Home, other: Home) -> list[tuple]:
    """Rows that only one of two lakes has."""
    found = []
    these, those = rows(one), rows(other)
    for name in these:
        for which, left, right in (("one", these, those), ("other", those, these)):
            odd = left[name].join(right[name], on=left[name].columns, how="anti", nulls_equal=True)
            shown = [c for c in odd.columns if c in SHOWN]
            found += [(which, name, *row) for row in odd.select(shown).rows()]
        if not found:
            assert these[name].height == those[name].height
    return found


SHOWN = ("day_on", "observed_at", "change_name", "source_ref", "begin_at", "end_at", "pod_name")


def is_recorded(fleet: Fleet) -> bool:
    """Whether its lines come in the order in which a recorder writes them."""
    return all(
        a.at <= b.at for lines in fleet.files.values() for a, b in pairwise(lines)
    ) and not any(name.endswith("-1.jsonl") for name in fleet.files)


@settings(max_examples=8 if REQUIRE_ALL else 3)
@given(fleets(days=2), st.lists(st.integers(1, 10_000), min_size=1, max_size=3))
def test_segments_that_come_one_by_one_give_the_rows_of_all_at_once(fleet, cuts):
    assume(is_recorded(fleet) and {line.kind for line in fleet.seen()} >= {"Pod", "Node"})
    with tempfile.TemporaryDirectory() as folder:
        once, often = Home(Path(folder) / "once"), Home(Path(folder) / "often")
        spool = Spooled(Path(folder), fleet, cuts)
        for _ in spool.segments:
            spool.write(1)
            with suppress(Unreadable):  # nothing of pods or nodes yet
                ingested(often, spool.config)
        ingested(once, spool.config)
        assert differing(once, often) == []


@pytest.fixture
def spooled(tmp_path) -> Iterator[Spooled]:
    """Two nodes and a pod, in three segments of one hour each."""
    lines = {
        "Node.jsonl": [Seen(0, "Node", "LISTED", identified(node(), "n0", "red", -90))],
        "Pod.jsonl": [Seen(1, "Pod", "LISTED", identified(pod(node="red"), "p0", "pod", -60))],
    }
    lines["Pod.jsonl"] += [
        Seen(at, "Pod", "MODIFIED", identified(pod(node="red"), "p0", "pod", -60))
        for at in (3600, 7200)
    ]
    yield Spooled(tmp_path, Fleet("UTC", lines, [], []), [2, 3])


def segments(home: Home) -> list[tuple]:
    """What the lake has of the spool."""
    con = attach(home, read_only=True)
    try:
        query = f"select segment_name, line_count from {NAME}.meta.segments order by all"
        return con.execute(query).fetchall()
    finally:
        con.close()


RED, MINE = identified(node(), "n0", "red", -90), identified(pod(), "p0", "pod", -60)


@pytest.mark.parametrize(
    "lines",
    [
        {
            "Node.jsonl": [
                *(Seen(at, "Node", "LISTED", RED) for at in (0, 15_000)),
                Seen(50_000, "Node", "MODIFIED", RED),
            ]
        },
        {
            "Node.jsonl": [Seen(at, "Node", "LISTED", RED) for at in (30_000, 45_000)],
            "Pod.jsonl": [Seen(at, "Pod", "LISTED", MINE) for at in (0, 20_000, 50_000)],
        },
    ],
    ids=["nothing but lists", "nodes a day later than pods"],
)
def test_a_record_begins_with_its_first_list_of_pods_or_nodes(tmp_path, lines):
    spool = Spooled(tmp_path, Fleet("UTC", lines, [], []), [2])
    assert len(spool.segments) == 2
    once, often = Home(tmp_path / "once"), Home(tmp_path / "often")
    for _ in spool.segments:
        spool.write(1)
        ingested(often, spool.config)
    ingested(once, spool.config)
    assert differing(once, often) == []


def test_a_segment_is_read_once_and_may_then_be_removed(spooled, tmp_path):
    home = Home(tmp_path / "home")
    for number in range(3):
        spooled.write(1)
        ingested(home, spooled.config)
        assert len(segments(home)) == number + 1
        assert json.loads((spooled.spool / INGESTED).read_text()) == {"segment": number + 1}
    before = rows(home)
    for path in sorted(spooled.spool.glob("*.gz"))[:2]:
        path.unlink()
    ingested(home, spooled.config)
    assert [lines for _, lines in segments(home)] == [2, 1, 1]
    assert all(rows(home)[name].equals(before[name]) for name in before)
    assert before["raw.pod_versions"].height == 3


def test_rows_are_added_to_a_day_and_not_written_again(spooled, tmp_path):
    home = Home(tmp_path / "home")
    for _ in range(3):
        spooled.write(1)
        ingested(home, spooled.config)
    con = attach(home, read_only=True)
    try:
        counts = con.execute(FILES).fetchall()
    finally:
        con.close()
    assert counts == [(1, None), (1, None), (1, None)]


FILES = """
    select f.record_count, f.end_snapshot
    from __ducklake_metadata_lake.ducklake_data_file as f
    inner join __ducklake_metadata_lake.ducklake_table as t using (table_id)
    where t.table_name = 'pod_versions' order by f.data_file_id
"""
"""The files of a table, also those that were replaced."""


def test_segments_read_in_several_processes_give_the_same_rows(spooled, tmp_path, monkeypatch):
    spooled.write()
    alone, beside = Home(tmp_path / "alone"), Home(tmp_path / "beside")
    ingested(alone, spooled.config)
    monkeypatch.setenv("GPULEDGER_THREADS", "2")
    monkeypatch.setattr("collectors.beside.WORTH_BYTES", 1)
    monkeypatch.setattr("collectors.streams._KNOWN", {})
    began = []
    pool = ProcessPoolExecutor
    monkeypatch.setattr(
        "collectors.beside.ProcessPoolExecutor",
        lambda count, **more: began.append(count) or pool(count, **more),
    )
    ingested(beside, spooled.config)
    assert began == [2, 2]  # to survey, and to read
    assert differing(alone, beside) == []


def test_a_run_that_does_not_know_what_another_took_meanwhile_publishes_nothing(spooled, tmp_path):
    home = Home(tmp_path / "home")
    spooled.write(1)
    ingested(home, spooled.config)
    spooled.write(1)
    sources = sources_of(spooled.config, "alpha")
    slow = Run(home, "slow", widened(home, spooled.config, "alpha", None, sources))
    gather(slow, spooled.config, sources)
    spooled.write(1)
    ingested(home, spooled.config)
    with pytest.raises(LakeError, match=r"another run took 1 segments .* run again"):
        publish(slow)
    slow.discard()
    assert rows(home)["raw.pod_versions"].height == 3


def test_a_spool_that_is_not_to_be_found_takes_nothing_out_of_the_lake(spooled, tmp_path):
    home = Home(tmp_path / "home")
    spooled.write()
    assert process(home, spooled.config, "alpha").exit_code == 0
    before = rows(home)
    spooled.spool.rename(tmp_path / "elsewhere")
    outcome = process(home, spooled.config, "alpha")
    assert (outcome.exit_code, outcome.snapshot) == (3, None)
    assert "start `gpuledger watch`" in outcome.unreachable[0]
    (tmp_path / "elsewhere").rename(spooled.spool)
    assert process(home, spooled.config, "alpha").exit_code == 0
    assert all(rows(home)[name].equals(before[name]) for name in before)


def test_a_spool_that_cannot_be_written_is_told(spooled, tmp_path):
    home = Home(tmp_path / "home")
    spooled.write()
    (spooled.spool / f"{INGESTED}.new").mkdir()
    outcome = process(home, spooled.config, "alpha")
    assert outcome.exit_code == 0
    assert any("removes none" in note for note in outcome.notes)
