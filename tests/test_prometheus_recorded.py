"""Recorded answers and metrics as text: the same samples as from the server that they came from."""

import gzip
from datetime import UTC, datetime

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.prometheus import Prometheus
from collectors.prometheus_recorded import Recorded
from collectors.prometheus_segments import HOUR, Segment, State, hours
from collectors.prometheus_selectors import Group, Matcher
from collectors.prometheus_text import chunks, labels_of
from tests.prometheus_server import BEGIN, Proxy, Server, openmetrics, source

METRICS = ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_POWER_USAGE")
END = BEGIN + 3 * HOUR
HOURS = [Segment(Group.of(m), *hour) for hour in hours(BEGIN, END) for m in METRICS]
FLEET = (METRICS, 12, BEGIN, END, 60_000)


def rows(fetched):
    """What was read as sorted (labels, microseconds, value)."""
    found = []
    for one in fetched:
        for data in one.data:
            labels = [
                tuple(sorted((k, v) for k, v in row.items() if v is not None))
                for row in data.series["labels"]
            ]
            for series, at, value in data.samples.with_columns(
                pl.col("at").cast(pl.Int64)
            ).iter_rows():
                found.append((labels[series], at, value))
    return sorted(found)


def read(path, segments=HOURS, **told):
    with Recorded(path, **told) as recorded:
        return list(recorded.collect(segments)), recorded


@pytest.fixture(scope="module")
def answers(prometheus, tmp_path_factory):
    """What a real server gave, and the bodies of its answers."""
    server = Server(prometheus, tmp_path_factory.mktemp("prometheus"))
    server.load(openmetrics(*FLEET))
    server.start()
    bodies = []

    class Recorder(Proxy):
        def fetch(self, handler, form):
            status, body = super().fetch(handler, form)
            bodies.append(body)
            return status, body

    proxy = Recorder(server.port, lambda path, number: None)
    with Prometheus(source(proxy.url, concurrency=1)) as client:
        fetched = list(client.collect(HOURS))
    proxy.close()
    server.kill()
    return rows(fetched), bodies


def test_recorded_answers_hold_what_the_server_gave_however_they_are_filed(answers, tmp_path):
    there, bodies = answers
    for place, body in enumerate(bodies[:2]):
        (tmp_path / f"{place}.json").write_bytes(body)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "rest.jsonl").write_bytes(b"\n".join(bodies[2:4]))
    (tmp_path / "more.jsonl.gz").write_bytes(gzip.compress(b"\n".join(bodies[4:])))
    fetched, recorded = read(tmp_path)
    assert rows(fetched) == there
    assert {one.state for one in fetched} == {State.COMPLETE}
    assert recorded.metrics(0, 1).result == list(METRICS)
    assert not recorded.notices


def test_metrics_as_text_hold_what_the_server_that_took_them_up_gives(answers, tmp_path):
    (tmp_path / "fleet.om.gz").write_bytes(gzip.compress("".join(openmetrics(*FLEET)).encode()))
    fetched, _ = read(tmp_path)
    assert rows(fetched) == answers[0]
    assert {one.state for one in fetched} == {State.COMPLETE}


def test_the_same_answer_twice_doubles_nothing(answers, tmp_path):
    there, bodies = answers
    for copy in "ab":
        (tmp_path / f"{copy}.jsonl").write_bytes(b"\n".join(bodies))
    fetched, _ = read(tmp_path)
    assert rows(fetched) == there
    twice = fetched[0].data[0].samples.height
    assert fetched[0].notices["duplicate_sample"] >= twice  # and what both of two hours hold


def test_what_lies_outside_the_recording_is_missing_and_not_empty(tmp_path):
    text = openmetrics(METRICS[:1], 1, BEGIN + HOUR // 2, BEGIN + HOUR, 60_000)
    (tmp_path / "a.om").write_text("".join(text))
    (first, other, second, *_), _ = read(tmp_path)
    assert [(s.state, s.reason) for s in first.stretches] == [
        (State.MISSING, "not_recorded"),
        (State.COMPLETE, ""),
    ]
    assert first.stretches[0].end == BEGIN + HOUR // 2 - 1
    assert (first.state, second.state, other.state) == (
        State.PARTIAL,
        State.MISSING,
        State.MISSING,
    )
    assert not other.data


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("x.json", b'{"status":"success","data":{"resultType":"matrix","result":[', "file_broken"),
        ("x.json", b'{"status":"error","errorType":"timeout","error":"x"}', "file_broken"),
        ("x.om", b"up 1 1767225700.5\n", "cut_short"),
        ("x.om.gz", gzip.compress(b"up 1\n" * 99, mtime=0)[:-9], "file_broken"),
        ("x.prom", b"up{a=1} 1 1767225700000\n", "bad_line"),
        ("x.prom", b"up one 1767225700000\n", "bad_line"),
        ("x.prom", b"up 1\n", "no_time"),
    ],
)
def test_a_file_that_says_less_than_it_should_makes_all_partial(tmp_path, name, content, reason):
    (tmp_path / name).write_bytes(content)
    (tmp_path / "sound.om").write_text("".join(openmetrics(*FLEET)))
    fetched, recorded = read(tmp_path)
    assert recorded.notices[reason] >= 1
    assert {one.state for one in fetched} == {State.PARTIAL}
    assert all(name in stretch.reason for one in fetched for stretch in one.stretches)


def test_a_warning_in_a_recorded_answer_makes_all_partial(answers, tmp_path):
    (tmp_path / "a.json").write_bytes(answers[1][0].replace(b"{", b'{"warnings":["half"],', 1))
    (one, *_), _ = read(tmp_path, HOURS[:1])
    assert (one.state, one.stretches[0].reason) == (State.PARTIAL, "a.json: half")


def test_files_and_answers_of_another_kind_are_noted_and_harm_nothing(tmp_path):
    (tmp_path / "a.om").write_text("".join(openmetrics(*FLEET)))
    (tmp_path / "README.md").write_text("hello")
    (tmp_path / "labels.json").write_text('{"status":"success","data":["up"]}')
    fetched, recorded = read(tmp_path)
    assert recorded.notices == {"other_file": 1, "other_answer": 1}
    assert {one.state for one in fetched} == {State.COMPLETE}


def test_text_without_times_was_true_when_it_was_read(tmp_path):
    text = '# TYPE a gauge\na{x="1"} 5\nb 6\nc_bucket{le="1"} 7 # {id="}"} 0.5 3\nd NaN\n'
    (tmp_path / "a.prom").write_text(text)
    when = datetime(2026, 1, 1, 0, 30, tzinfo=UTC)
    every = Segment(Group((Matcher("__name__", "=~", ".+"),)), BEGIN, BEGIN + HOUR)
    (one,), _ = read(tmp_path, [every], observed_at=when)
    at = round(when.timestamp() * 1_000_000)
    assert [(dict(labels)["__name__"], t, v) for labels, t, v in rows([one])] == [
        ("a", at, 5.0),
        ("b", at, 6.0),
        ("c_bucket", at, 7.0),
        ("d", at, None),
    ]
    assert one.notices == {"not_a_number": 1}


def test_seconds_and_milliseconds_are_told_apart():
    lines = ["a 1 1767225600.25\n", "a 1 1767225600250\n", "# EOF\n"]
    (frame,) = chunks(lines, lambda labels: 0, None, lambda *_: pytest.fail("noted"))
    assert frame["at"].to_list() == [1_767_225_600_250] * 2


@given(
    st.dictionaries(st.sampled_from(["a", "b_c", "GPU_I_ID"]), st.text(min_size=1)),
    st.sampled_from(["plain", "with.dot", "ü"]),
)
def test_labels_as_text_are_read_back_whatever_they_hold(labels, name):
    def written(value):
        return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

    inside = ",".join(f'{key}="{written(value)}"' for key, value in labels.items())
    assert labels_of(f"{name}{{{inside}") == {"__name__": name, **labels}
    assert labels_of(f'{{"{name}",{inside}') == {"__name__": name, **labels}
