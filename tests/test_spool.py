"""The recorder's spool: nothing that was written is lost or doubled, whatever ends the recorder.

What stands in it comes from an API server in test_watch.py; here the lines are made by hand.
"""

import gzip
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors import spool as module
from collectors.spool import OPEN, Line, Spool, line
from collectors.spool_files import SEALED, SpoolError, tell_ingested

POD = "v1/Pod"


class Clock:
    """A clock that a test sets."""

    def __init__(self):
        self.now = datetime(2026, 3, 2, 9, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def crash(spool: Spool) -> None:
    """What the end of a process does."""
    if spool._file:
        spool._file.close()
    spool._lock.release()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def made(tmp_path, clock):
    """Opens the spool anew, as a recorder that starts does."""
    opened: list[Spool] = []

    def make(**told) -> Spool:
        while opened:
            crash(opened.pop())
        spool = Spool(tmp_path / "spool", now=clock, **told)
        spool.open()
        opened.append(spool)
        return spool

    yield make
    while opened:
        crash(opened.pop())


def a_line(change: str, version: int, kind: str = "Pod", **more) -> Line:
    meta = {"name": f"p{version}", "uid": f"u{version}", "resourceVersion": str(version), **more}
    return line(change, "v1", kind, {"metadata": meta}, f"2026-03-02T09:00:00.{version:06d}Z")


def versions(folder: Path, kind: str = "Pod") -> list[str]:
    """A kind's lines in the sealed segments: the change's first letter, and the version."""
    found = []
    for path in sorted(folder.glob(f"*{SEALED}")):
        for raw in gzip.decompress(path.read_bytes()).splitlines():
            told = json.loads(raw)
            if told["object"]["kind"] == kind:
                found.append(told["type"][0] + told["object"]["metadata"]["resourceVersion"])
    return found


def test_what_was_added_is_read_once_it_is_sealed_and_not_before(made):
    spool = made()
    spool.add(a_line("LISTED", 1), a_line("BOOKMARK", 5))
    spool.add(a_line("ADDED", 6))
    assert versions(spool.folder) == []
    assert [path.suffix for path in spool.folder.glob("0*")] == [OPEN]
    spool.close()
    assert versions(spool.folder) == ["L1", "B5", "A6"]


def test_a_segment_is_sealed_when_it_is_old_or_long(made, clock):
    spool = made(segment_seconds=60, segment_bytes=1000)
    spool.add(a_line("BOOKMARK", 1))
    clock.now += timedelta(seconds=59)
    spool.sync()
    assert not spool.sealed()
    clock.now += timedelta(seconds=1)
    spool.sync()
    assert len(spool.sealed()) == 1
    for version in range(2, 12):
        spool.add(a_line("ADDED", version))
    assert len(spool.sealed()) == 2
    spool.close()
    assert versions(spool.folder) == ["B1", *(f"A{v}" for v in range(2, 12))]


def test_after_a_crash_the_recorder_goes_on_from_the_last_line_on_the_disk(made):
    spool = made()
    spool.add(a_line("LISTED", 1), a_line("BOOKMARK", 5))
    spool.add(a_line("MODIFIED", 7))
    again = made()
    assert again.stand(POD).version == "7"
    assert again.stand("v1/Node").version is None
    again.add(a_line("DELETED", 8))
    again.close()
    assert versions(again.folder) == ["L1", "B5", "M7", "D8"]


def test_a_line_that_breaks_off_is_left_out_and_comes_again(made):
    spool = made()
    spool.add(a_line("BOOKMARK", 5), a_line("ADDED", 6))
    [path] = spool.folder.glob(f"*{OPEN}")
    with path.open("ab") as file:
        file.write(a_line("ADDED", 7).raw[:40])
    again = made()
    assert again.stand(POD).version == "6"
    assert versions(again.folder) == ["B5", "A6"]


def test_a_list_that_breaks_off_is_left_out_whole_and_other_kinds_stay(made):
    spool = made()
    spool.add(a_line("BOOKMARK", 5), a_line("BOOKMARK", 5, "Node"))
    spool.add(a_line("LISTED", 2), a_line("LISTED", 3))
    spool.add(a_line("MODIFIED", 9, "Node"))
    again = made()
    assert again.stand(POD).version is None
    assert again.stand("v1/Node").version == "9"
    assert versions(again.folder) == ["B5"]
    assert versions(again.folder, "Node") == ["B5", "M9"]


def test_a_list_is_written_aside_and_comes_whole(made, tmp_path):
    def lines(count):
        yield from (a_line("LISTED", number) for number in range(1, count))
        if count > 5:
            raise RuntimeError("the server is gone")
        yield a_line("BOOKMARK", count)

    spool = made()
    aside = spool.folder / "pods.part"
    with pytest.raises(RuntimeError):
        spool.add_list(aside, lines(6))
    assert spool.stand(POD).version is None
    assert spool.add_list(aside, lines(4)) == 4
    assert spool.stand(POD).version == "4"
    spool.close()
    assert versions(spool.folder) == ["L1", "L2", "L3", "B4"]


def test_a_seal_that_a_crash_interrupts_is_neither_lost_nor_doubled(made, monkeypatch):
    def killed(path):
        raise KeyboardInterrupt

    spool = made()
    spool.add(a_line("BOOKMARK", 5), a_line("ADDED", 6))
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", killed)
        with pytest.raises(KeyboardInterrupt):
            spool.close()
    assert len(list(spool.folder.glob("0*"))) == 2
    again = made()
    assert again.stand(POD).version == "6"
    assert versions(again.folder) == ["B5", "A6"]


def test_a_full_disk_takes_all_of_a_line_or_nothing(made, monkeypatch):
    spool = made()
    spool.add(a_line("BOOKMARK", 5))
    with monkeypatch.context() as patch:
        patch.setattr(module, "SPARE_BYTES", 1 << 62)
        with pytest.raises(OSError, match="No space left"):
            spool.add(a_line("ADDED", 6))
    assert spool.stand(POD).version == "5"
    spool.add(a_line("ADDED", 6))
    spool.close()
    assert versions(spool.folder) == ["B5", "A6"]


def test_a_second_recorder_of_the_folder_is_refused(made, tmp_path):
    made()
    with pytest.raises(SpoolError, match="another recorder writes to"):
        Spool(tmp_path / "spool").open()


def test_a_state_that_nobody_can_read_is_told_and_not_guessed(made):
    spool = made()
    spool.add(a_line("BOOKMARK", 5))
    spool.close()
    (spool.folder / "state.json").write_text("{")
    with pytest.raises(SpoolError, match=r"state\.json .* remove it"):
        made()


def test_old_segments_that_a_lake_has_are_removed_and_where_it_stands_is_not_forgotten(made, clock):
    spool = made(keep_days=1)
    spool.add(a_line("BOOKMARK", 5))
    spool.close()
    clock.now = datetime.now(UTC) + timedelta(days=2)
    [first] = spool.sealed()
    again = made(keep_days=1)
    again.add(a_line("ADDED", 6))
    again.close()
    assert len(again.sealed()) == 2  # no lake has told that it has them
    tell_ingested(again.folder, first.name)
    third = made(keep_days=1)
    third.add(a_line("ADDED", 7))
    third.close()
    assert first not in third.sealed() and len(third.sealed()) == 2
    assert made().stand(POD).version == "7"
    assert made().name == spool.name


@settings(max_examples=60)
@given(
    data=st.lists(st.sampled_from(["add", "node", "list", "sync", "seal", "crash", "torn"])),
    size=st.sampled_from([300, 10_000]),
)
def test_whatever_ends_it_each_version_is_there_once_and_in_order(data, size, tmp_path_factory):
    folder, clock = tmp_path_factory.mktemp("spool") / "s", Clock()

    def opened() -> Spool:
        spool = Spool(folder, segment_seconds=60, segment_bytes=size, now=clock)
        spool.open()
        return spool

    spool, version = opened(), 1
    expected: dict[str, list[str]] = {"Pod": [], "Node": []}
    for kind in expected:
        spool.add(a_line("BOOKMARK", 1, kind))
        expected[kind].append("B1")
    for what in data:
        version += 1
        match what:
            case "add" | "node":
                kind = "Pod" if what == "add" else "Node"
                spool.add(a_line("MODIFIED", version, kind))
                expected[kind].append(f"M{version}")
            case "list":
                told = [a_line("LISTED", version), a_line("BOOKMARK", version)]
                spool.add_list(folder / "pods.part", iter(told))
                expected["Pod"] += [f"L{version}", f"B{version}"]
            case "sync":
                spool.sync()
            case "seal":
                clock.now += timedelta(seconds=60)
                spool.sync()
            case "crash" | "torn":
                for path in folder.glob(f"*{OPEN}") if what == "torn" else ():
                    with path.open("ab") as file:
                        file.write(a_line("MODIFIED", version).raw[:-1])
                crash(spool)
                spool = opened()
        for kind, told in expected.items():
            assert spool.stand(f"v1/{kind}").version == told[-1][1:]
    spool.close()
    assert {kind: versions(folder, kind) for kind in expected} == expected
