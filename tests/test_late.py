"""What a day is told after it is over: HEARD rows, and how long news of it is taken up."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import polars as pl
import pytest

from collectors.recording import collect
from collectors.source import Settings
from models.window import Window
from tests.kube_objects import pod
from tests.test_recording import a_node, line

SETTINGS = Settings("alpha")
FIRST, SECOND, THIRD = (date(2026, 3, day) for day in (1, 2, 3))


def stamp(day, clock):
    return f"2026-03-{day:02}T{clock}Z"


def moment(day, clock):
    return datetime.fromisoformat(stamp(day, clock))


def a_pod(uid="p-1", bound=None, finished=None, created=(1, "10:00:00")):
    """A pod with the instants that it tells, each (day, clock)."""
    status: dict[str, Any] = {"phase": "Pending"}
    if bound:
        status["conditions"] = [
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": stamp(*bound)}
        ]
    if bound and finished:
        ended = {"exitCode": 0, "startedAt": stamp(*bound), "finishedAt": stamp(*finished)}
        status |= {
            "phase": "Succeeded",
            "containerStatuses": [{"name": "main", "state": {"terminated": ended}}],
        }
    item = pod(status=status, spec={"nodeName": "node-n-1"} if bound else {})
    item["metadata"] |= {"uid": uid, "name": uid, "creationTimestamp": stamp(*created)}
    return item


@pytest.fixture
def heard(tmp_path):
    def read(*lines, days=(FIRST, SECOND)):
        nodes = [line("09:00:00", "LISTED", a_node()), line("23:00:00", "MODIFIED", a_node(), 3)]
        (tmp_path / "nodes.jsonl").write_text("\n".join(nodes) + "\n")
        (tmp_path / "pods.jsonl").write_text("\n".join(lines) + "\n")
        window = Window("alpha", days[0], days[1])
        frames = [b.frame for b in collect(tmp_path, SETTINGS, window)]
        pods = [frame for frame in frames if "pod_uid" in frame.columns]
        rows = pl.concat(pods).filter(pl.col("change_name") == "HEARD") if pods else None
        return [] if rows is None else list(rows.sort("day_on").iter_rows(named=True))

    return read


RUNNING = line("10:00:01", "ADDED", a_pod(bound=(1, "10:00:00")))


def test_an_end_before_midnight_that_is_told_after_it_ends_the_day_it_lies_in(heard):
    told = a_pod(bound=(1, "10:00:00"), finished=(1, "23:59:59"))
    [row] = heard(RUNNING, line("00:00:00", "MODIFIED", told, 2))
    assert (row["day_on"], row["observed_at"]) == (FIRST, datetime(2026, 3, 2, tzinfo=UTC))
    assert row["finished_at"] == moment(1, "23:59:59")
    assert row["source_ref"] == "pods.jsonl:2"


def test_what_happened_after_midnight_is_no_news_of_the_day_before(heard):
    told = a_pod(bound=(1, "10:00:00"), finished=(2, "00:00:00"))
    assert heard(RUNNING, line("00:00:01", "MODIFIED", told, 2)) == []


def test_what_the_day_knew_already_is_not_told_again(heard):
    again = a_pod(bound=(1, "10:00:00"))
    assert heard(RUNNING, line("00:00:01", "MODIFIED", again, 2)) == []


def test_news_keeps_what_lies_after_the_day_to_itself(heard):
    told = a_pod(bound=(1, "23:59:58"), finished=(2, "00:00:03"), created=(1, "23:59:58"))
    [row] = heard(line("00:00:04", "ADDED", told, 2))
    assert row["bound_at"] == moment(1, "23:59:58")
    assert row["finished_at"] is None


def test_a_node_without_a_bind_is_not_moved_back_to_the_day_before(heard):
    late = a_pod(created=(1, "23:59:59"))
    late["spec"]["nodeName"] = "node-n-1"
    [row] = heard(line("00:00:04", "ADDED", late, 2))
    assert row["node_name"] is None


def test_news_is_taken_up_for_an_hour_and_no_longer(heard):
    told = a_pod(bound=(1, "10:00:00"), finished=(1, "23:59:59"))
    assert len(heard(RUNNING, line("00:59:58", "MODIFIED", told, 2))) == 1
    assert heard(RUNNING, line("01:00:00", "MODIFIED", told, 2)) == []


def test_after_a_gap_over_several_midnights_the_end_is_told_to_its_own_day(heard):
    told = a_pod(bound=(1, "10:00:00"), finished=(1, "20:00:00"))
    after = line("08:00:00", "LISTED", told, 3)
    [row] = heard(RUNNING, after)
    assert (row["day_on"], row["finished_at"]) == (FIRST, moment(1, "20:00:00"))
    assert heard(RUNNING, after, days=(SECOND, THIRD)) == []


def test_a_day_hears_the_same_alone_and_in_a_range(heard):
    told = a_pod(bound=(1, "10:00:00"), finished=(2, "23:59:59"))
    lines = [RUNNING, line("00:00:00", "MODIFIED", told, 3)]
    alone = heard(*lines, days=(SECOND, THIRD))
    together = heard(*lines, days=(FIRST, THIRD + timedelta(days=1)))
    assert alone == together
    assert [row["day_on"] for row in alone] == [SECOND]


def test_a_disruption_after_midnight_is_no_news_of_the_day_before(heard):
    hit = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
    told = []
    for at in ((1, "23:59:58"), (2, "00:00:01")):
        item = a_pod(bound=(1, "10:00:00"), finished=(1, "23:59:59"))
        item["status"]["conditions"].append(hit | {"lastTransitionTime": stamp(*at)})
        [row] = heard(RUNNING, line("00:00:02", "MODIFIED", item, 2))
        told.append((row["disruption_name"], row["disrupted_at"]))
    assert told == [("EvictionByEvictionAPI", moment(1, "23:59:58")), (None, None)]
