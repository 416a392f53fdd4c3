"""What two days know of one wait, one event and one eviction that midnight falls into."""

from datetime import UTC, date, datetime

import pytest

from lake.home import Home
from lake.read import Door
from models.config import load
from pipelines.process import process
from tests.kube_objects import pod
from tests.test_carry import CONFIG
from tests.test_late import a_pod
from tests.test_recording import a_node, line

FIRST, SECOND = date(2026, 3, 1), date(2026, 3, 2)


def waiting():
    text = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
    told = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": text}
    item = pod(status={"conditions": [told]})
    item["metadata"] |= {"uid": "waits", "name": "waits"}
    return item


def evicted():
    item = a_pod("evicted", bound=(1, "10:00:00"))
    item["status"]["conditions"].append(
        {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "EvictionByEvictionAPI",
            "lastTransitionTime": "2026-03-01T23:59:59Z",
        }
    )
    return item


def tried(clock, count, day):
    return {
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": {"uid": "e", "name": "e", "creationTimestamp": "2026-03-01T23:00:00Z"},
        "involvedObject": {"kind": "Pod", "namespace": "ml", "name": "waits", "uid": "waits"},
        "reason": "FailedScheduling",
        "message": "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.",
        "source": {"component": "default-scheduler"},
        "type": "Warning",
        "firstTimestamp": "2026-03-01T23:00:00Z",
        "lastTimestamp": f"2026-03-{day:02}T{clock}Z",
        "count": count,
    }


@pytest.fixture(scope="module")
def days(tmp_path_factory):
    folder = tmp_path_factory.mktemp("midnight")
    (folder / "recorded").mkdir()
    lines = [
        line("09:00:00", "LISTED", a_node()),
        line("10:00:01", "ADDED", a_pod("evicted", bound=(1, "10:00:00"))),
        line("10:00:02", "ADDED", waiting()),
        line("23:00:00", "ADDED", tried("23:00:00", 1, 1)),
        line("23:59:00", "MODIFIED", tried("23:59:00", 40, 1)),
        line("00:00:00", "MODIFIED", evicted(), 2),
        line("00:01:00", "MODIFIED", tried("00:01:00", 41, 2), 2),
        line("00:09:00", "MODIFIED", tried("00:09:00", 50, 2), 2),
        line("09:00:00", "MODIFIED", a_node(), 2),
    ]
    (folder / "recorded" / "all.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "gpuledger.yaml").write_text(CONFIG)
    outcome = process(Home(folder / "home"), load(folder / "gpuledger.yaml"), "alpha")
    assert (outcome.exit_code, outcome.broken) == (0, [])
    with Door(Home(folder / "home")) as door:
        yield door


def test_each_day_counts_its_own_of_an_event_that_goes_on(days):
    query = "select day_on, event_count from core.events order by 1"
    assert days.query(query).fetchall() == [(FIRST, 40), (SECOND, 10)]


def test_the_next_day_knows_at_once_why_a_pod_still_waits(days):
    query = """
        select day_on, reason_name, told_count, first_at, is_current
        from core.scheduling_reasons where source_name = 'condition' order by 1
    """
    first, second = days.query(query).fetchall()
    assert first[:3] == (FIRST, "resource_full", 1)
    assert second[:3] == (SECOND, "resource_full", 1)
    assert second[3].astimezone(UTC) == datetime(2026, 3, 2, tzinfo=UTC)
    assert first[4] and second[4]


def test_an_eviction_of_which_the_next_day_hears_is_of_the_day_in_which_it_happened(days):
    query = "select day_on, victim_uid, way_name from core.disruptions"
    assert days.query(query).fetchall() == [(FIRST, "evicted", "evicted_by_api")]
