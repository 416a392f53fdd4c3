"""What doctor says of a recorder, from the status that it writes."""

import json
from datetime import UTC, datetime

import pytest

from collectors.spool_files import STATUS
from pipelines.cli_common import REFUSED
from pipelines.doctor_watch import recorder

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
PODS = {"api_version": "v1", "state_name": "watching", "line_count": 1200, "said": "",
        "since_at": "2026-03-02T11:00:00.000000Z"}  # fmt: skip


def told(folder, **news) -> list[tuple[str, str, int]]:
    status = {"written_at": "2026-03-02T11:59:55.000000Z", "is_running": True, "faults": {},
              "kinds": {"pods": PODS}}  # fmt: skip
    (folder / STATUS).write_text(json.dumps(status | news))
    prefix = f"alpha: recorder of {folder}"
    return [(f.what.removeprefix(prefix), f.mend, f.code) for f in recorder("alpha", folder, NOW)]


def test_one_that_runs_is_sound_and_says_what_it_records(tmp_path):
    assert told(tmp_path) == [(": 1 kinds are recorded, 1,200 lines since it began", "", 0)]


@pytest.mark.parametrize(
    "news", [{"is_running": False}, {"written_at": "2026-03-02T11:58:00.000000Z"}]
)
def test_one_that_ended_or_hangs_is_named_with_since_when(tmp_path, news):
    said, mend, code = told(tmp_path, **news)[0]
    assert "does not run since 2026-03-02 11:5" in said and "is lost" in said
    assert (mend, code) == ("start `gpuledger watch`", REFUSED)


def test_a_kind_that_may_not_be_read_is_a_note_and_one_that_fails_a_fault(tmp_path):
    kinds = {
        name: PODS | {"state_name": state, "said": state}
        for name, state in (("jobs.batch", "refused"), ("pods", "failing"), ("nodes", "full"))
    }
    found = told(tmp_path, kinds=kinds)
    assert [(what.split(" since")[0], code) for what, _, code in found] == [
        (": jobs.batch is refused", 0),
        (": nodes is full", REFUSED),
        (": pods is failing", REFUSED),
    ]
    assert "access.yaml" in found[0][1] and "room" in found[1][1]


def test_a_fault_of_the_whole_is_told(tmp_path):
    found = told(tmp_path, faults={"spool": "/x takes no more"})
    assert (": spool: /x takes no more", "see the recorder's own log", REFUSED) in found


def test_one_that_never_ran_is_to_be_started(tmp_path):
    [found] = recorder("alpha", tmp_path / "spool", NOW)
    assert "has not run yet" in found.what and "gpuledger watch" in found.mend


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"written_at": "soon"}'])
def test_a_status_that_cannot_be_read_is_told(tmp_path, text):
    (tmp_path / STATUS).write_text(text)
    [found] = recorder("alpha", tmp_path, NOW)
    assert "cannot be read" in found.what
