"""A real Prometheus, read in bulk: nothing lost, nothing doubled, whatever it refuses or breaks."""

import random
import threading
import time

import polars as pl
import pytest

from collectors import prometheus as client_module
from collectors.prometheus import Prometheus
from collectors.prometheus_http import Patience
from collectors.prometheus_segments import HOUR, Segment, State, hours, learned, plan, tiled
from collectors.prometheus_selectors import Group, Matcher
from tests.prometheus_server import (
    BEGIN,
    Proxy,
    Server,
    breaks_off,
    openmetrics,
    resets,
    says,
    source,
    stalls,
    trickles,
    truncates,
    warns,
)

pytestmark = pytest.mark.whole

METRICS = ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_POWER_USAGE")
GPUS, STEP, DAYS = 12, 60_000, 3
END = BEGIN + DAYS * 24 * HOUR
HASTY = Patience(attempts=6, first_seconds=0.01)


@pytest.fixture(scope="module")
def server(prometheus, tmp_path_factory):
    server = Server(prometheus, tmp_path_factory.mktemp("prometheus"))
    server.load(openmetrics(METRICS, GPUS, BEGIN - 2 * STEP, END + 2 * STEP, STEP))
    server.start()
    yield server
    server.kill()


@pytest.fixture
def behind(server):
    """A proxy before the server that spoils what a function chooses."""
    made = []

    def make(choose):
        made.append(Proxy(server.port, choose))
        return made[-1]

    yield make
    for proxy in made:
        proxy.close()


def segments(begin=BEGIN, end=END, metrics=METRICS):
    return [Segment(Group.of(metric), *hour) for hour in hours(begin, end) for metric in metrics]


def counted(server, begin=BEGIN, end=END):
    """How many samples the server itself counts in (begin, end], by metric and GPU."""
    with Prometheus(source(server.url)) as client:
        found = {}
        for metric in METRICS:
            # This server's ranges have both ends; a millisecond less leaves the begin out.
            query = f"count_over_time({metric}[{end - begin - 1}ms])"
            for row in client.discovery.instant(query, end).result:
                found[metric, row["metric"]["UUID"]] = int(row["value"][1])
        return found


def rows(fetched):
    """All samples as (metric, GPU, time, value)."""
    frames = [
        data.samples.join(data.series, on="series_number").select(
            pl.col("labels").struct.field("__name__"),
            pl.col("labels").struct.field("UUID"),
            "at",
            "value",
        )
        for one in fetched
        for data in one.data
    ]
    return pl.concat(frames)


def by_series(frame):
    counts = frame.group_by("__name__", "UUID").len()
    return {(name, uuid): number for name, uuid, number in counts.iter_rows()}


def test_three_days_come_without_a_sample_lost_or_doubled_although_the_server_restarts(server):
    killer = threading.Timer(0.5, server.restart)
    killer.start()
    found = []
    with Prometheus(source(server.url), Patience(first_seconds=0.2)) as client:
        for place, one in enumerate(client.collect(segments())):
            found.append(one)
            if place == 20:
                server.restart()
            time.sleep(0.01)  # else all is over before the first restart
    killer.join()
    frame = rows(found)
    assert {one.state for one in found} == {State.COMPLETE}
    assert frame.unique(["__name__", "UUID", "at"]).height == frame.height
    assert by_series(frame) == counted(server)
    assert sum(by_series(frame).values()) == len(METRICS) * GPUS * DAYS * 24 * 60


def test_a_sample_at_midnight_belongs_to_the_day_that_ends(server):
    midnight = BEGIN + 24 * HOUR
    with Prometheus(source(server.url)) as client:
        before, after = client.collect(
            [
                Segment(Group.of(METRICS[0]), midnight - HOUR, midnight),
                Segment(Group.of(METRICS[0]), midnight, midnight + HOUR),
            ]
        )
    at = pl.lit(midnight * 1000).cast(pl.Datetime("us", "UTC"))
    assert rows([before]).filter(pl.col("at") == at).height == GPUS // 3
    assert rows([after]).filter(pl.col("at") <= at).is_empty()


def test_values_and_labels_are_those_that_were_stored(server):
    with Prometheus(source(server.url)) as client:
        (one,) = client.collect([Segment(Group.of(METRICS[0]), BEGIN, BEGIN + HOUR)])
    micros, value = rows([one]).select(pl.col("at").cast(pl.Int64), "value")
    assert [at // 1000 * 7919 // STEP % 1009 / 8 for at in micros] == list(value)
    label = one.data[0].series["labels"].struct.field("exported_namespace")
    assert label.unique().to_list() == ['ml "x" \\ ü']


def test_packed_answers_hold_the_same(server, behind):
    proxy = behind(lambda path, number: None)
    with Prometheus(source(proxy.url, headers={"accept-encoding": "gzip"})) as client:
        packed = list(client.collect(segments(end=BEGIN + HOUR)))
    assert {headers["accept-encoding"] for headers in proxy.headers} == {"gzip"}
    with Prometheus(source(server.url)) as client:
        assert rows(packed).equals(rows(client.collect(segments(end=BEGIN + HOUR))))


@pytest.mark.parametrize("most_samples", [400, 60, 7])
def test_a_server_that_gives_little_at_once_is_read_in_parts_by_time_and_by_series(
    prometheus, server, tmp_path, most_samples
):
    small = Server(prometheus, tmp_path)
    small.load(openmetrics(METRICS, GPUS, BEGIN, BEGIN + 2 * HOUR, STEP))
    small.start(f"--query.max-samples={most_samples}")
    try:
        with Prometheus(source(small.url)) as client:
            found = list(client.collect(segments(end=BEGIN + 2 * HOUR)))
    finally:
        small.kill()
    assert {one.state for one in found} == {State.COMPLETE}
    frame = rows(found)
    assert frame.unique(["__name__", "UUID", "at"]).height == frame.height
    assert by_series(frame) == counted(server, end=BEGIN + 2 * HOUR)


def test_an_answer_that_is_too_long_is_left_off_and_asked_for_in_parts(server, monkeypatch):
    monkeypatch.setattr("collectors.prometheus_http.MOST_BYTES", 10_000)
    with Prometheus(source(server.url)) as client:
        found = list(client.collect(segments(end=BEGIN + 3 * HOUR)))
        queries = client.query_count
    assert by_series(rows(found)) == counted(server, end=BEGIN + 3 * HOUR)
    assert queries < 3 * 2 * 8  # what was too long once is not asked for again


def test_whatever_breaks_on_the_way_costs_no_sample(server, behind):
    spoils = [
        says(429, Retry_After="0"),
        says(500),
        says(502),
        says(503),
        resets,
        breaks_off,
        truncates,
        stalls(2.5),
        trickles(2.5),
    ]
    dice = random.Random(4)

    def choose(path, number):
        if dice.random() < 0.1 and "3600000ms" in proxy.asked[number][1]:
            return says(422, kind="execution") if dice.random() < 0.5 else says(503, kind="timeout")
        return dice.choice(spoils) if dice.random() < 0.3 else None

    proxy = behind(choose)
    told = source(proxy.url, timeout_seconds=1, concurrency=4)
    with Prometheus(told, Patience(attempts=12, first_seconds=0.01)) as client:
        found = list(client.collect(segments(end=BEGIN + 24 * HOUR)))
    assert len(proxy.asked) > len(found)
    assert {one.state for one in found} == {State.COMPLETE}
    frame = rows(found)
    assert frame.unique(["__name__", "UUID", "at"]).height == frame.height
    assert by_series(frame) == counted(server, end=BEGIN + 24 * HOUR)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (says(429), "http_429"),
        (says(500), "http_500"),
        (says(503, "TSDB not ready"), "http_503: 503 TSDB not ready"),
        (says(422, "too many samples"), "too_much: "),
        (says(400, "bad"), "http_400"),
        (says(401, "who?"), "forbidden"),
        (says(302, Location="https://sso.example.com/login?state=abc"), "redirected"),
        (resets, "connection_broken"),
        (breaks_off, "connection_broken"),
        (truncates, "broken_answer"),
        (stalls(2.5), "stalled"),
        (trickles(2.5), "stalled"),
    ],
)
def test_what_cannot_be_had_is_missing_with_its_reason_and_the_rest_is_there(
    server, behind, spoil, reason
):
    begin, end = BEGIN, BEGIN + 2 * HOUR
    proxy = behind(lambda path, number: spoil if "GPU_UTIL" in proxy.asked[number][1] else None)
    told = source(proxy.url, timeout_seconds=1)
    with Prometheus(told, Patience(attempts=2, first_seconds=0.01)) as client:
        found = list(client.collect(segments(begin, end)))
    for one in found:
        is_spoilt = one.segment.group == Group.of(METRICS[0])
        assert one.state is (State.MISSING if is_spoilt else State.COMPLETE)
        assert len(proxy.asked) < 3 * client_module.MOST_REFUSALS
        assert all(s.reason.startswith(reason) for s in one.stretches) or not is_spoilt
        assert bool(one.data) is not is_spoilt
    there = {k: n for k, n in counted(server, begin, end).items() if k[0] == METRICS[1]}
    assert by_series(rows(found)) == there


def test_a_warning_makes_an_answer_partial_and_its_samples_are_kept(server, behind):
    proxy = behind(lambda path, number: warns)
    with Prometheus(source(proxy.url)) as client:
        (one,) = client.collect(segments(end=BEGIN + HOUR)[:1])
    assert one.state is State.PARTIAL
    assert one.stretches[0].reason == "store-2: no such host"
    assert rows([one]).height == GPUS * 60


def test_of_a_segment_only_the_part_that_failed_is_asked_for_again(server, behind, monkeypatch):
    monkeypatch.setattr("collectors.prometheus_http.MOST_BYTES", 10_000)
    late = f"time={(BEGIN + HOUR) // 1000}"
    is_broken = [True]

    def choose(path, number):
        return says(500) if is_broken[0] and late in proxy.asked[number][1] else None

    proxy = behind(choose)
    group, now = Group.of(METRICS[0]), END + 24 * HOUR
    with Prometheus(source(proxy.url), Patience(attempts=2, first_seconds=0.01)) as client:
        # The first hour's last question fails; what was read before it is complete.
        warm = list(client.collect([Segment(group, BEGIN + HOUR, BEGIN + 2 * HOUR)]))
        (first,) = client.collect([Segment(group, BEGIN, BEGIN + HOUR)])
        assert warm[0].state is State.COMPLETE
        assert first.state is State.PARTIAL
        assert [s.state for s in first.stretches] == [State.COMPLETE, State.MISSING]
        known = learned([], first.stretches, now)
        is_broken[0] = False
        again = plan([group], BEGIN, BEGIN + HOUR, known, now + HOUR)
        assert [(s.begin, s.end) for s in again] == [first.stretches[1][1:3]]
        (second,) = client.collect(again)
    known = learned(known, second.stretches, now + HOUR)
    assert {s.state for s in tiled([group], BEGIN, BEGIN + HOUR, known, now)} == {State.COMPLETE}
    wanted = {k: n for k, n in counted(server, end=BEGIN + HOUR).items() if k[0] == METRICS[0]}
    assert by_series(rows([first, second])) == wanted


def test_a_server_to_which_no_one_listens_is_not_asked_for_every_segment(server, behind):
    proxy = behind(lambda path, number: None)
    proxy.close()
    with Prometheus(source(proxy.url, concurrency=1), HASTY) as client:
        found = list(client.collect(segments()))
        assert client.query_count <= 2 * client_module.MOST_DOWN * HASTY.attempts
    assert {one.state for one in found} == {State.MISSING}
    assert found[0].stretches[0].reason.startswith("unreachable")
    assert len(found) == len(segments())


def test_a_server_that_recovered_is_asked_with_all_patience_again(server, behind):
    ends = [str(hour[1] // 1000) for hour in hours(BEGIN, END)]
    failed = set()

    def choose(path, number):
        asked = proxy.asked[number][1]
        if any(end in asked for end in ends[:4]):
            return says(500)
        if ends[20] in asked and not failed:  # once, long after the others
            failed.add(ends[20])
            return says(500)
        return None

    proxy = behind(choose)
    with Prometheus(source(proxy.url, concurrency=1), HASTY) as client:
        found = list(client.collect(segments(metrics=METRICS[:1])[:24]))
    assert failed
    assert [one.state for one in found] == [State.MISSING] * 4 + [State.COMPLETE] * 20


def test_a_day_of_runs_every_five_minutes_reads_each_sample_about_once(server):
    groups = [Group.of(metric) for metric in METRICS]
    day = BEGIN + 24 * HOUR
    known, found = [], []
    with Prometheus(source(server.url)) as client:
        for now in range(BEGIN + 123_456, day + HOUR, 300_000):
            fetched = list(client.collect(plan(groups, BEGIN, day, known, now)))
            known = learned(known, [s for one in fetched for s in one.stretches], now)
            found += fetched
        read = client.read_count
    frame = rows(found)
    assert by_series(frame) == counted(server, end=day)
    assert frame.unique(["__name__", "UUID", "at"]).height == frame.height
    assert read / frame.height <= 1.1
    assert {s.state for s in tiled(groups, BEGIN, day, known, day + HOUR)} == {State.COMPLETE}
    assert len(known) == 2 * 24


def test_what_a_server_has_is_discovered_not_assumed(server):
    with Prometheus(source(server.url)) as client:
        found = client.discovery
        assert found.metrics(BEGIN, BEGIN + HOUR).result == list(METRICS)
        assert found.metrics(BEGIN - 900 * HOUR, BEGIN - 899 * HOUR).result == []
        group = Group.of(METRICS[0], Matcher("gpu", "=", "3"))
        assert found.values("Hostname", group, BEGIN, BEGIN + HOUR).result == ["node-0", "node-1"]
        assert "UUID" in found.labels(group, BEGIN, BEGIN + HOUR).result
        assert found.status("buildinfo")["version"]
        assert found.status("flags")["query.max-samples"]
        told = found.instant(f"count({METRICS[0]})", BEGIN + HOUR)
    assert (told.result[0]["value"][1], told.warnings) == (str(GPUS), [])


def test_discovery_keeps_the_warnings_that_its_library_drops(behind):
    proxy = behind(lambda path, number: warns)
    with Prometheus(source(proxy.url)) as client:
        assert client.discovery.instant("vector(1)", BEGIN).warnings == ["store-2: no such host"]
        assert client.discovery.metrics(BEGIN, END).warnings == ["store-2: no such host"]
