"""The truth of gangs that stall: what the simulator scripts is found in it, and fits its ledger."""

import csv
from collections import Counter, defaultdict

import pytest

import simulator

SEEDS = (1, 7, 11)


@pytest.fixture(scope="module", params=SEEDS)
def truth(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(f"gangs_{request.param}")
    return simulator.build(folder, seed=request.param, size="tiny", days=2).parent / "truth/alpha"


def rows(truth, table):
    with (truth / f"{table}.csv").open() as file:
        return list(csv.DictReader(file))


def told(truth, finding):
    return [row for row in rows(truth, "gangs") if row["finding"] == finding]


def test_two_gangs_that_hold_what_the_other_needs_are_a_deadlock_until_one_is_withdrawn(truth):
    first, second = told(truth, "gang_deadlock")
    assert first["workload"] != second["workload"]
    assert (first["begin"], first["end"]) == (second["begin"], second["end"])
    assert 4 * 3600 - 300 < int(first["end"]) - int(first["begin"]) <= 4 * 3600
    assert {first["members"], second["members"]} == {
        "dl-a-worker-0 dl-a-worker-1",
        "dl-b-worker-0 dl-b-worker-1",
    }


def test_a_gang_that_begins_again_and_again_and_is_never_whole_is_a_livelock(truth):
    [row] = told(truth, "gang_livelock")
    assert "never-whole-worker-0" in row["members"].split()
    starts = [p for p in told(truth, "gang_partial") if p["workload"] == row["workload"]]
    assert len({p["attempt"] for p in starts}) >= 3


def test_a_deadlock_is_of_partial_gangs(truth):
    partial = {(r["attempt"], r["begin"]): int(r["end"]) for r in told(truth, "gang_partial")}
    for row in told(truth, "gang_deadlock"):
        assert any(
            attempt == row["attempt"] and int(begin) <= int(row["begin"]) < end
            for (attempt, begin), end in partial.items()
        )


def test_whoever_waits_in_a_gang_before_it_was_whole_waits_at_a_rendezvous(truth):
    meetings = defaultdict(list)
    for row in told(truth, "rendezvous_wait"):
        meetings[row["workload"]].append((int(row["begin"]), int(row["end"])))
    seen = Counter()
    for row in rows(truth, "ledger"):
        if row["state"] == "gang_wait" and row["cause"] != "member_lost":
            begin, end = int(row["begin"]), int(row["end"])
            seen[row["workload"]] += end - begin
            assert any(b <= begin and end <= e for b, e in meetings[row["workload"]]), row
    assert len(seen) > 3
