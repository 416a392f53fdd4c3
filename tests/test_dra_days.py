"""Recorded claims and slices through the whole pipeline, over midnights: what a day hands on."""

import json
from contextlib import contextmanager
from decimal import Decimal

import pytest

from lake.home import Home
from lake.read import Door
from models.config import load
from pipelines.process import process
from tests.dra_objects import claim, gpu, result, slice_of
from tests.kube_objects import node, pod, running
from tests.test_recording import line

CONFIG = "clusters: [{name: alpha, sources: [{kind: kubernetes, path: recorded}]}]\n"
SHARED = [{"name": "gpu", "resourceClaimName": "claim-1"}]
DAY = 86_400


def a_pod(name, phase="Running"):
    main = {"name": "main", "resources": {"claims": [{"name": "gpu"}]}}
    status = {"phase": phase, "containerStatuses": [running("main", 6)]}
    item = pod([main], node="gpu-1", status=status, spec={"resourceClaims": SHARED})
    item["metadata"] |= {"uid": name, "name": name}
    return item


def a_node(is_ready=True):
    item = node(capacity={})
    item["status"]["conditions"] = [{"type": "Ready", "status": str(is_ready)}]
    return item


def given(*pods):
    return claim(results=[result()], pods=pods)


SLICE = slice_of([gpu("gpu-0", "GPU-0"), gpu("gpu-1", "GPU-1")])
OTHERS = [
    line("10:00:00", "LISTED", a_node()),
    line("10:00:00", "LISTED", SLICE),
    line("10:00:00", "LISTED", a_pod("a")),
    line("10:00:00", "LISTED", a_pod("b")),
    line("06:00:00", "MODIFIED", a_node(), 2),
    line("06:00:00", "DELETED", a_pod("b"), 3),
    line("12:00:00", "MODIFIED", a_node(False), 3),
    line("18:00:00", "DELETED", SLICE, 3),
    line("06:00:00", "MODIFIED", a_node(False), 4),
]
CLAIMS = [
    line("10:00:00", "LISTED", given("a", "b")),
    line("06:00:01", "MODIFIED", given("a"), 3),
    line("12:00:00", "MODIFIED", claim(), 3),
]


@pytest.fixture
def asked(tmp_path):
    @contextmanager
    def run(lines):
        (tmp_path / "recorded").mkdir()
        (tmp_path / "recorded" / "all.jsonl").write_text("\n".join(lines) + "\n")
        (tmp_path / "gpuledger.yaml").write_text(CONFIG)
        outcome = process(Home(tmp_path / "home"), load(tmp_path / "gpuledger.yaml"), "alpha")
        assert (outcome.exit_code, outcome.broken) == (0, [])
        with Door(Home(tmp_path / "home")) as door:
            yield lambda query: door.query(query).fetchall()

    return run


def test_claims_and_slices_go_on_over_midnight(asked):
    with asked(OTHERS + CLAIMS) as ask:
        held = ask(
            "select day(l.day_on)::int, h.pod_uid, sum(l.gpu_seconds) from core.ledger as l "
            "join core.holds as h on l.hold_id = h.hold_id and l.day_on = h.day_on "
            "group by all order by 1, 2"
        )
        installed = ask("select installed_count, count_source_name from core.nodes")
        causes = ask("select cause_name from core.node_spells where day_on = '2026-03-04'")
        devices = ask("select distinct device_uuid from core.holds")
        refused = ask("select * from raw.rejections")
    first, quarter = Decimal(14 * 3600 - 5), Decimal(6 * 3600)
    assert held == [
        (1, "a", first / 2),  # both from their bind at 10:00:05
        (1, "b", first / 2),
        (2, "a", Decimal(DAY) / 2),
        (2, "b", Decimal(DAY) / 2),
        (3, "a", quarter / 2 + quarter),  # alone from 06:00 to 12:00
        (3, "b", quarter / 2),
    ]
    assert installed == [(2, "resource_slices")] * 4  # also when its slices are gone
    assert {cause for (cause,) in causes} == {"node_not_ready"}  # it was ready with its slices
    assert devices == [("GPU-0",)]  # every day knows by its slices which it is
    assert refused == []


def test_pods_whose_claims_were_not_recorded_are_counted(asked):
    query = "select reason_name, sum(rejected_count)::int, bool_or(is_row_lost) from raw.rejections"
    with asked(OTHERS) as ask:
        notices, holds = ask(f"{query} group by all"), ask("select * from core.holds")
    assert (notices, holds) == ([("resource_claims", 3, False)], [])


def test_lists_alone_tell_of_claims_and_slices_as_of_pods(tmp_path):
    (tmp_path / "recorded").mkdir()
    items = [a_node(), SLICE, a_pod("a"), a_pod("b"), given("a", "b")]
    items[0]["metadata"]["annotations"] = {"last-seen": "2026-03-02T06:00:00Z"}
    listed = {"kind": "List", "apiVersion": "v1", "items": items}
    (tmp_path / "recorded" / "all.json").write_text(json.dumps(listed))
    config = tmp_path / "gpuledger.yaml"
    config.write_text(CONFIG)
    outcome = process(Home(tmp_path / "home"), load(config), "alpha")
    assert (outcome.exit_code, outcome.broken) == (0, [])
    with Door(Home(tmp_path / "home")) as door:
        held = door.query(
            "select day(day_on)::int, pod_uid, share_micro_gpu, "
            "date_diff('second', begin_at, end_at) from core.holds order by 1, 2"
        ).fetchall()
    night = 6 * 3600
    assert held == [
        (1, "a", 1_000_000, 14 * 3600 - 5),
        (1, "b", 1_000_000, 14 * 3600 - 5),
        (2, "a", 1_000_000, night),
        (2, "b", 1_000_000, night),
    ]
