"""What a folder of recorded answers becomes: versions, gaps, coverage, and what was refused."""

import gzip
import json
from collections import Counter
from datetime import UTC, date, datetime

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collectors.recording import collect, span
from collectors.source import Settings
from models.raw import NOTICES
from models.window import Window
from tests.kube_objects import node, pod

SETTINGS = Settings("alpha")
DAY = date(2026, 3, 1)


def seen(clock, day=1):
    return f"2026-03-{day:02}T{clock}.250000Z"


def moment(clock, day=1):
    return datetime.fromisoformat(seen(clock, day))


def line(clock, change, item, day=1):
    return json.dumps({"observed_at": seen(clock, day), "type": change, "object": item})


def a_pod(uid, **more):
    item = pod(**more)
    item["metadata"] |= {"uid": uid, "name": f"pod-{uid}"}
    return item


def a_node(uid="n-1"):
    item = node()
    item["metadata"] |= {"uid": uid, "name": f"node-{uid}"}
    return item


def bookmark(kind="Pod"):
    return {"kind": kind, "apiVersion": "v1", "metadata": {"resourceVersion": "9"}}


@pytest.fixture
def folder(tmp_path):
    def write(**files):
        for name, content in files.items():
            path = tmp_path / name.replace("__", ".")
            text = content if isinstance(content, str) else "\n".join(content) + "\n"
            if path.suffix == ".gz":
                path.write_bytes(gzip.compress(text.encode()))
            else:
                path.write_text(text)
        return tmp_path

    return write


def read(path, window=None, told=SETTINGS):
    """Table -> rows."""
    found = {}
    for batch in collect(path, told, window):
        found.setdefault(batch.table, []).extend(batch.frame.to_dicts())
    return found


def versions(rows):
    return [(r["pod_uid"], r["change_name"], r["observed_at"]) for r in rows]


def covered(found):
    return [(r["coverage_name"], r["begin_at"], r["end_at"]) for r in found["raw.coverage"]]


WATCHED = {
    "nodes__jsonl": [line("10:00:00", "LISTED", a_node())],
    "pods__jsonl__gz": [
        line("10:00:00", "LISTED", a_pod("a")),
        line("10:00:05", "ADDED", a_pod("b")),
        line("10:05:00", "BOOKMARK", bookmark()),
    ],
}


def test_each_line_is_a_version_that_says_where_to_read_it_again(folder):
    rows = read(folder(**WATCHED))["raw.pod_versions"]
    assert versions(rows) == [
        ("a", "LISTED", moment("10:00:00")),
        ("b", "ADDED", moment("10:00:05")),
    ]
    assert [row["source_ref"] for row in rows] == ["pods.jsonl.gz:1", "pods.jsonl.gz:2"]
    assert rows[0]["day_on"] == DAY


def test_the_known_window_runs_from_the_first_to_the_last_line_bookmarks_included(folder):
    path = folder(**WATCHED)
    assert span(path, SETTINGS) == (moment("10:00:00"), moment("10:05:00"))
    assert covered(read(path)) == [("watched", moment("10:00:00"), moment("10:05:00"))]


def test_until_both_streams_have_begun_nothing_was_seen(folder):
    files = WATCHED | {"nodes__jsonl": [line("09:59:00", "LISTED", a_node())]}
    assert covered(read(folder(**files)))[0] == (
        "before_first_seen",
        moment("09:59:00"),
        moment("10:00:00"),
    )


def test_coverage_is_cut_at_midnight_of_the_accounting_zone(folder):
    files = WATCHED | {
        "pods__jsonl__gz": [
            line("10:00:00", "LISTED", a_pod("a")),
            line("10:00:00", "BOOKMARK", bookmark(), day=3),
        ]
    }
    rows = read(folder(**files), told=Settings("alpha", zone="Asia/Tokyo"))["raw.coverage"]
    assert [row["day_on"].day for row in rows] == [1, 2, 3]
    assert rows[1]["begin_at"] == datetime(2026, 3, 1, 15, tzinfo=UTC)
    assert [row["end_at"] for row in rows[:-1]] == [row["begin_at"] for row in rows[1:]]


GAPPED = {
    "nodes__jsonl": [line("10:00:00", "LISTED", a_node()), line("12:00:00", "MODIFIED", a_node())],
    "pods__jsonl": [
        line("10:00:00", "LISTED", a_pod("stays")),
        line("10:00:00", "LISTED", a_pod("goes")),
        line("10:10:00", "ADDED", a_pod("gone-before")),
        line("10:20:00", "DELETED", a_pod("gone-before")),
        line("10:30:00", "LISTED", a_pod("stays")),
        line("10:30:00", "LISTED", a_pod("new")),
        line("11:00:00", "DELETED", a_pod("new")),
    ],
}


def test_a_second_list_ends_a_gap_and_what_it_lacks_was_deleted_at_the_gap_s_begin(folder):
    found = read(folder(**GAPPED))
    rows = found["raw.pod_versions"]
    assert versions(rows)[4:] == [
        ("goes", "DELETED", moment("10:20:00")),
        ("stays", "LISTED", moment("10:30:00")),
        ("new", "LISTED", moment("10:30:00")),
        ("new", "DELETED", moment("11:00:00")),
    ]
    assert rows[4]["source_ref"] == "pods.jsonl:5 lacks it, last seen pods.jsonl:2"
    numbers = [row["sequence_number"] for row in rows]
    assert numbers == sorted(set(numbers))
    assert covered(found)[1] == ("recorder_gap", moment("10:20:00"), moment("10:30:00"))


def test_versions_count_in_the_order_in_which_they_were_observed_wherever_they_stand(folder):
    clocks = ("10:00:00", "12:00:00", "11:00:00", "10:30:00")
    files = WATCHED | {"pods__jsonl__gz": [line(c, "MODIFIED", a_pod("a")) for c in clocks]}
    rows = read(folder(**files))["raw.pod_versions"]
    rows.sort(key=lambda row: row["sequence_number"])
    assert [row["observed_at"] for row in rows] == [moment(c) for c in sorted(clocks)]


def test_the_known_window_begins_with_the_earliest_line_wherever_it_stands(folder):
    lines = [line(c, "MODIFIED", a_pod("a")) for c in ("12:00:00", "10:00:00", "11:00:00")]
    assert span(folder(pods__jsonl=lines), SETTINGS) == (moment("10:00:00"), moment("12:00:00"))


def test_a_file_that_goes_on_after_another_leaves_a_gap_between_them(folder):
    files = GAPPED | {
        "pods__jsonl": GAPPED["pods__jsonl"][:4],
        "pods2__jsonl": GAPPED["pods__jsonl"][4:],
    }
    found = read(folder(**files))
    assert ("goes", "DELETED", moment("10:20:00")) in versions(found["raw.pod_versions"])
    assert covered(found)[1] == ("recorder_gap", moment("10:20:00"), moment("10:30:00"))


def test_pages_of_one_list_are_no_gap(folder):
    files = WATCHED | {
        "pods__jsonl__gz": [
            line("10:00:00", "LISTED", a_pod("a")),
            line("10:00:09", "LISTED", a_pod("b")),
            line("10:05:00", "BOOKMARK", bookmark()),
        ]
    }
    assert [name for name, _, _ in covered(read(folder(**files)))] == ["watched"]


def test_a_day_read_alone_has_the_same_rows_as_in_a_longer_window(folder):
    files = GAPPED | {
        "pods__jsonl": [
            *GAPPED["pods__jsonl"],
            line("09:00:00", "MODIFIED", a_pod("stays"), day=2),
            line("09:30:00", "LISTED", a_pod("other"), day=2),
        ],
        "nodes__jsonl": [*GAPPED["nodes__jsonl"], line("23:00:00", "MODIFIED", a_node(), day=2)],
    }
    path = folder(**files)
    whole = read(path)
    for day in (1, 2):
        alone = read(path, Window("alpha", date(2026, 3, day), date(2026, 3, day + 1)))
        for table, rows in whole.items():
            assert alone.get(table, []) == [r for r in rows if r["day_on"].day == day], table
    deleted = [v for v in versions(whole["raw.pod_versions"]) if v[1] == "DELETED"]
    assert ("stays", "DELETED", moment("09:00:00", day=2)) in deleted


def test_lists_alone_cover_from_the_earliest_bind_that_still_holds_a_gpu(folder):
    held = a_pod("held", node="node-n-1")
    done = a_pod("done", node="node-n-1", status={"phase": "Succeeded"})
    for item, day in ((held, "2026-02-27"), (done, "2026-02-20")):
        item["metadata"]["creationTimestamp"] = f"{day}T07:00:00Z"
        item["status"]["conditions"][0]["lastTransitionTime"] = f"{day}T08:00:00Z"
    machine = a_node()
    machine["metadata"]["creationTimestamp"] = "2026-02-01T00:00:00Z"
    path = folder(
        all__json=json.dumps({"kind": "List", "apiVersion": "v1", "items": [held, done, machine]})
    )
    told = Settings("alpha", observed_at=moment("10:00:00"))
    begin = datetime(2026, 2, 27, 8, tzinfo=UTC)
    assert span(path, told) == (begin, moment("10:00:00"))
    found = read(path, told=told)
    assert {row["coverage_name"] for row in found["raw.coverage"]} == {"list_only"}
    # each day of the window knows the nodes and pods that were there by its end
    days = Counter(row["day_on"] for row in found["raw.node_versions"])
    assert days == {date(2026, 2, 27): 1, date(2026, 2, 28): 1, DAY: 1}
    refs = {row["source_ref"] for row in found["raw.pod_versions"] if row["pod_uid"] == "held"}
    assert refs == {"all.json:1"}


def test_a_list_was_read_when_its_newest_time_says_unless_it_is_told(folder):
    items = {"kind": "PodList", "apiVersion": "v1", "items": [a_pod("a", node="node-n-1")]}
    path = folder(pods__json=json.dumps(items), node__json=json.dumps(a_node()))
    newest = datetime(2026, 3, 1, 10, 0, 5, tzinfo=UTC)
    assert {row["observed_at"] for row in read(path)["raw.pod_versions"]} == {newest}


def refusals(found):
    rows = found.get("raw.rejections", [])
    return {(r["source_ref"], r["reason_name"]): r["rejected_count"] for r in rows}


def test_lines_that_cannot_be_used_are_counted_by_file_and_reason(folder):
    bad = a_pod("x")
    del bad["metadata"]["creationTimestamp"]
    files = WATCHED | {
        "pods__jsonl__gz": [
            WATCHED["pods__jsonl__gz"][0],
            '{"observed_at": "2026-03-01T10:00:01Z", "type": "ADD',
            "not json",
            line("10:00:02", "REPLACED", a_pod("y")),
            line("10:00:03", "ADDED", bad),
            line("10:00:04", "ADDED", bad),
            *WATCHED["pods__jsonl__gz"][1:],
        ]
    }
    found = read(folder(**files))
    assert refusals(found) == {
        ("pods.jsonl.gz", "bad_json"): 2,
        ("pods.jsonl.gz", "unknown_type"): 1,
        ("pods.jsonl.gz", "no_creation"): 2,
    }
    assert len(found["raw.pod_versions"]) == 2
    [row] = [r for r in found["raw.rejections"] if r["reason_name"] == "no_creation"]
    assert row["example_text"].startswith("pods.jsonl.gz:5")
    assert row["mend_text"]


def test_other_kinds_and_other_files_are_noted_and_nothing_is_lost_by_it(folder):
    quota = {"kind": "ResourceQuota", "apiVersion": "v1", "metadata": {"name": "e"}}
    group = {"kind": "PodGroup", "apiVersion": "scheduling.k8s.io/v1alpha2", "metadata": {}}
    files = WATCHED | {
        "quotas__jsonl": [line("10:00:00", "ADDED", quota), line("10:00:01", "ADDED", quota)],
        "groups__jsonl": [line("10:00:00", "ADDED", group)],
        "calls__jsonl": ['{"at": 1, "call": "get"}'],
        "prometheus__json": '{"status": "success", "data": {}}',
    }
    found = refusals(read(folder(**files)))
    assert found == {
        ("quotas.jsonl", "unknown_kind"): 2,
        ("groups.jsonl", "unknown_kind"): 1,
        ("calls.jsonl", "other_file"): 1,
        ("prometheus.json", "other_file"): 1,
    }
    assert {reason for _, reason in found} <= set(NOTICES)


def test_a_compressed_file_that_breaks_off_gives_what_could_be_read(folder, tmp_path):
    path = folder(**WATCHED)
    whole = gzip.compress(
        "\n".join([line("10:00:00", "LISTED", a_pod(str(n))) for n in range(200)]).encode()
    )
    (path / "pods.jsonl.gz").write_bytes(whole[: len(whole) * 2 // 3])
    found = read(path)
    assert refusals(found)["pods.jsonl.gz", "file_broken"] == 1
    assert 0 < len(found["raw.pod_versions"]) < 200


def test_a_folder_without_pods_and_nodes_has_no_known_window(folder):
    path = folder(calls__jsonl=['{"at": 1}'])
    assert span(path, SETTINGS) is None
    assert set(read(path)) == {"raw.rejections"}


def test_what_is_no_folder_is_told(tmp_path):
    with pytest.raises(FileNotFoundError, match="no folder of recorded answers"):
        span(tmp_path / "none", SETTINGS)


CHANGES = st.sampled_from(["LISTED", "ADDED", "MODIFIED", "DELETED", "BOOKMARK"])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    changes=st.lists(st.tuples(CHANGES, st.sampled_from("abc"), st.integers(0, 600)), min_size=2)
)
def test_coverage_tiles_the_known_window_whatever_the_stream_says(folder, changes):
    clock, lines = 0, []
    for change, uid, pause in changes:
        clock += pause
        at = f"{10 + clock // 3600}:{clock // 60 % 60:02}:{clock % 60:02}"
        if clock >= 13 * 3600:
            break
        lines.append(line(at, change, bookmark() if change == "BOOKMARK" else a_pod(uid)))
    path = folder(pods__jsonl=lines, nodes__jsonl=[line("10:00:00", "MODIFIED", a_node())])
    known = span(path, SETTINGS)
    assert known
    begin, end = known
    parts = read(path).get("raw.coverage", [])
    edges = [begin, *(part["end_at"] for part in parts)]
    assert [part["begin_at"] for part in parts] == edges[:-1]
    assert edges[-1] == end


def test_the_recorded_cluster_gives_its_pods_and_binds(traces):
    batches = collect(traces / "cluster-recording/watch", SETTINGS)
    frames = [b.frame for b in batches if b.table == "raw.pod_versions"]
    pods = pl.concat(frames)
    assert pods["pod_uid"].n_unique() == 1942
    bound = pods.filter(pl.col("bound_at").is_not_null())
    found = bound.group_by("namespace_name").agg(pl.col("pod_uid").n_unique()).rows()
    assert dict(found) == {
        "hpc": 563,
        "infra": 261,
        "llm": 597,
        "loose": 5,
        "serving": 35,
        "vision": 366,
    }


def test_a_day_without_nodes_after_some_were_told_of_has_none_and_one_before_is_unknown(folder):
    """Pods from day 1 on, a node from day 2 to day 3, none on day 4."""
    path = folder(
        pods__jsonl=[
            line("10:00:00", "ADDED", a_pod("p")),
            line("10:00:00", "MODIFIED", a_pod("p"), 4),
        ],
        nodes__jsonl=[
            line("09:00:00", "ADDED", a_node(), 2),
            line("09:00:00", "DELETED", a_node(), 3),
        ],
    )
    rows = read(path)["raw.coverage"]
    assert {(row["day_on"].day, row["is_inventory_known"]) for row in rows} == {
        (1, False),
        (2, True),
        (3, True),
        (4, True),
    }
