"""The metrics of a window: what is asked of a real Prometheus, what never again, what is known."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qs

import polars as pl
import pytest

from collectors import dcgm
from collectors.metrics import Reading
from collectors.prometheus_http import Patience
from collectors.source import Settings
from collectors.tallies import Counts, kept
from models.prometheus import PrometheusSource
from models.raw_metrics import METRIC_COVERAGE
from models.window import Window
from tests.prometheus_server import BEGIN, Proxy, Server, openmetrics, says, source, warns

HOUR = 3_600_000
GPUS, STEP = 4, 60_000
FIELDS = ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_POWER_USAGE")
DAY, NEXT_DAY = date(2026, 1, 1), date(2026, 1, 2)
HASTY = Patience(attempts=2, first_seconds=0.01)
NOTHING = pl.DataFrame(schema=METRIC_COVERAGE.schema)
EVER = datetime(2026, 1, 9, tzinfo=UTC)


def instant(milliseconds: int) -> datetime:
    return datetime.fromtimestamp((BEGIN + milliseconds) / 1000, UTC)


def reading(where, known=NOTHING, now=EVER, window=(DAY, NEXT_DAY), zone="UTC", **more) -> Reading:
    config = where if isinstance(where, PrometheusSource) else source(where)
    days = Window("c", window[0], window[1], zone)
    return Reading(config, Settings("c", zone=zone), days, known, now, patience=HASTY, **more)


def run(one: Reading) -> tuple[pl.DataFrame, list]:
    """Reads all; the coverage, and what was handed on."""
    handed = []
    for family, fetched in one.fetched():
        handed.append((family, fetched))
        counts = Counts(unused=kept(fetched))
        if family == "dcgm":
            counts = dcgm.parse(fetched, one.settings).counts
        one.counted(fetched, counts)
    coverage = one.coverage()
    assert coverage.schema == METRIC_COVERAGE.schema
    assert not coverage.select(METRIC_COVERAGE.grain).is_duplicated().any()
    parts = [f"{name}_count" for name in ("reading", "copy", "rejected", "unused")]
    assert (coverage["kept_sample_count"] == coverage.select(parts).sum_horizontal()).all()
    assert (coverage["read_sample_count"] >= coverage["kept_sample_count"]).all()
    for (_, _), mine in coverage.sort("begin_at").group_by("family_name", "day_on"):
        assert (mine["end_at"][:-1] == mine["begin_at"][1:]).all()  # tiled
    return coverage, handed


def of(coverage: pl.DataFrame, family: str) -> pl.DataFrame:
    return coverage.filter(pl.col("family_name") == family).sort("begin_at")


def kube() -> list[str]:
    """Lines of kube-state-metrics and cAdvisor, of three hours."""
    found = []
    for name, labels in (
        ("container_cpu_usage_seconds_total", 'namespace="ml",pod="a",container="main"'),
        ("container_cpu_usage_seconds_total", 'namespace="ml",pod="a"'),
        ("container_network_receive_bytes_total", 'namespace="ml",pod="a",interface="eth0"'),
        ("kube_node_status_condition", 'node="n",condition="Ready",status="true"'),
        ("kube_node_status_condition", 'node="n",condition="DiskPressure",status="true"'),
        ("kube_pod_container_resource_requests", 'pod="a",resource="cpu"'),
        ("kube_pod_container_resource_requests", 'pod="a",resource="nvidia_com_gpu"'),
        ("kube_pod_info", 'namespace="ml",pod="a",node="n",uid="u"'),
    ):
        times = range(BEGIN + 20_000, BEGIN + 3 * HOUR, STEP)
        found.append("".join(f"{name}{{{labels}}} 1 {at / 1000}\n" for at in times))
    return found


@pytest.fixture(scope="module")
def server(prometheus, tmp_path_factory):
    """Three hours of two fields of four GPUs, and some of the other families."""
    server = Server(prometheus, tmp_path_factory.mktemp("prometheus"))
    lines = list(openmetrics(FIELDS, GPUS, BEGIN, BEGIN + 3 * HOUR, STEP))
    server.load([*lines[:-1], *kube(), lines[-1]])
    server.start()
    yield server
    server.kill()


@pytest.fixture
def proxy(server):
    """A proxy that hands on, and remembers; a test may let it spoil."""
    made = Proxy(server.port, lambda path, number: None)
    yield made
    made.close()


def queries(proxy: Proxy) -> list[str]:
    """The questions about samples."""
    forms = [parse_qs(form) for path, form in proxy.asked if path == "/api/v1/query"]
    return [form["query"][0] for form in forms]


def test_a_day_is_read_hour_by_hour_and_every_sample_counted(proxy):
    one = reading(proxy.url)
    assert [s.family for s in one.segments[:3]] == ["dcgm", "kube_state", "cadvisor"]
    assert len(one.segments) == 24 * 3
    coverage, handed = run(one)
    assert len(handed) == 72
    mine = of(coverage, "dcgm")
    assert set(mine["read_name"]) == {"complete"} and set(mine["source_ref"]) == {proxy.url}
    # A sample at the begin is of the day before.
    assert mine["kept_sample_count"].to_list() == [2 * GPUS * 60] * 3 + [0] * 21
    told = mine["reading_count"] + mine["rejected_count"]
    assert told.sum() == 2 * GPUS * 180
    assert mine["metrics_text"][0] == ",".join(FIELDS)
    assert mine["try_count"].sum() == 0 and set(mine["read_at"]) == {EVER}


def test_what_is_no_accelerator_and_no_container_is_not_even_asked_for(proxy):
    coverage, _ = run(reading(proxy.url))
    # kube_pod_info, Ready, GPUs and CPU asked for; CPU of the container, and its network
    assert of(coverage, "kube_state")["kept_sample_count"].sum() == 4 * 180
    assert of(coverage, "cadvisor")["kept_sample_count"].sum() == 2 * 180
    assert not any("kube_pod_labels" in query for query in queries(proxy))  # it has none


def test_what_is_complete_is_never_asked_for_again(proxy):
    coverage, _ = run(reading(proxy.url))
    proxy.asked.clear()
    again = reading(proxy.url, coverage, EVER + timedelta(days=3))
    assert again.segments == []
    assert run(again)[0].equals(coverage)
    assert proxy.asked == []


def test_the_open_hour_goes_on_where_it_was_left_and_becomes_one_stretch(proxy):
    known, sums, spans = NOTHING, [], []
    for minute in (71, 76, 78, 82, 125):
        one = reading(proxy.url, known, instant(minute * 60_000), families=("dcgm",))
        spans.append(
            [((s.begin - BEGIN) // 60_000, (s.end - BEGIN) // 60_000) for s in one.segments]
        )
        known, _ = run(one)
        sums.append(known["kept_sample_count"].sum())
    # A minute is left for what is not stored yet; two minutes are too little to ask for.
    assert spans == [[(0, 60), (60, 70)], [(70, 75)], [], [(75, 81)], [(81, 120)]]
    assert sums[1] == sums[2] and sums == sorted(sums)
    told = of(known, "dcgm")
    states = [
        (r["begin_at"].hour, r["end_at"].hour, r["read_name"]) for r in told.iter_rows(named=True)
    ]
    assert states == [(0, 1, "complete"), (1, 2, "complete"), (2, 2, "open")]
    assert told["end_at"][-1] == instant(125 * 60_000)  # the future is not covered
    whole, _ = run(reading(proxy.url, families=("dcgm",)))
    assert told["kept_sample_count"].to_list()[:2] == whole["kept_sample_count"].to_list()[:2]


def test_a_day_before_anything_was_stored_says_that_it_has_no_metrics(proxy):
    one = reading(proxy.url, window=(date(2025, 12, 1), date(2025, 12, 2)))
    coverage, handed = run(one)
    assert {f.state for _, f in handed} == {"missing"} and queries(proxy) == []
    assert set(of(coverage, "dcgm")["reason_text"]) == {"no_dcgm_metrics"}
    assert set(of(coverage, "kube_state")["reason_text"]) == {"no_kube_state_metrics"}
    assert set(coverage["read_name"]) == {"missing"} and set(coverage["try_count"]) == {1}


def test_warnings_of_the_discovery_make_the_day_partial_and_it_is_read_again(server, proxy):
    proxy.choose = lambda path, number: warns if "label" in path else None
    coverage, _ = run(reading(proxy.url, families=("dcgm",)))
    assert set(coverage["read_name"]) == {"partial"} and coverage["kept_sample_count"].sum() > 1000
    assert set(coverage["reason_text"]) == {"store-2: no such host"}
    soon = EVER + timedelta(minutes=4)
    assert reading(proxy.url, coverage, soon, families=("dcgm",)).segments == []
    proxy.choose = lambda path, number: None
    better, _ = run(reading(proxy.url, coverage, EVER + timedelta(minutes=6), families=("dcgm",)))
    assert set(better["read_name"]) == {"complete"}
    assert better["kept_sample_count"].sum() == coverage["kept_sample_count"].sum()


def test_a_server_that_does_not_answer_leaves_what_was_there_and_says_why(proxy):
    coverage, _ = run(reading(proxy.url, families=("dcgm",)))
    partial = coverage.with_columns(
        pl.when(pl.col("begin_at") == instant(HOUR))
        .then(pl.lit("partial"))
        .otherwise("read_name")
        .alias("read_name"),
        pl.when(pl.col("begin_at") == instant(HOUR)).then(1).otherwise(0).alias("try_count"),
    )
    proxy.choose = lambda path, number: says(503)
    one = reading(proxy.url, partial, EVER + timedelta(hours=1), families=("dcgm",))
    assert [(s.begin - BEGIN, s.end - BEGIN) for s in one.segments] == [(HOUR, 2 * HOUR)]
    after, handed = run(one)
    assert handed == []  # nothing may be replaced by nothing
    row = after.filter(pl.col("begin_at") == instant(HOUR)).row(0, named=True)
    assert (row["read_name"], row["try_count"]) == ("partial", 2)
    assert row["reason_text"].startswith("fewer samples than before")
    assert after["kept_sample_count"].equals(coverage["kept_sample_count"])


def test_what_a_server_has_forgotten_since_is_kept(proxy):
    coverage, _ = run(reading(proxy.url, families=("dcgm",)))
    more = coverage.with_columns(
        pl.lit("partial").alias("read_name"),
        pl.lit(1).cast(pl.Int64).alias("try_count"),
        (pl.col("kept_sample_count") + 5).alias("kept_sample_count"),
        (pl.col("unused_count") + 5).alias("unused_count"),
        (pl.col("read_sample_count") + 5).alias("read_sample_count"),
    )
    after, handed = run(reading(proxy.url, more, EVER + timedelta(days=2), families=("dcgm",)))
    assert handed == []
    assert after["kept_sample_count"].equals(more["kept_sample_count"])


def test_a_server_that_is_away_is_not_asked_about_each_day(proxy):
    proxy.choose = lambda path, number: says(503)
    one = reading(proxy.url, window=(DAY, date(2026, 1, 8)), families=("dcgm",))
    coverage, _ = run(one)
    assert len(proxy.asked) == 2 * HASTY.attempts
    assert set(coverage["read_name"]) == {"missing"}
    assert len(set(coverage["reason_text"])) == 2
    assert set(coverage["try_count"]) == {1}


def test_days_are_those_of_the_accounting_zone(proxy):
    one = reading(proxy.url, window=(DAY, NEXT_DAY), zone="Asia/Kolkata", families=("dcgm",))
    coverage, handed = run(one)
    assert coverage["begin_at"].min() == datetime(2025, 12, 31, 18, 30, tzinfo=UTC)
    assert coverage["end_at"].max() == datetime(2026, 1, 1, 18, 30, tzinfo=UTC)
    assert set(coverage["day_on"]) == {DAY}
    assert len(handed) == 25 and coverage["kept_sample_count"].sum() > 1000


def test_what_became_of_samples_must_be_told_and_add_up(proxy):
    one = reading(proxy.url, families=("dcgm",), window=(DAY, NEXT_DAY))
    fetched = next(f for _, f in one.fetched() if kept(f))
    with pytest.raises(ValueError, match="counted"):
        one.counted(fetched, Counts(reading=1))
    with pytest.raises(RuntimeError, match="was not told"):
        one.coverage()


def folder(path: Path, text: str) -> PrometheusSource:
    (path / "metrics.om").write_text(text + "# EOF\n")
    return PrometheusSource.model_validate({"kind": "prometheus", "path": path})


def test_a_folder_without_dcgm_says_so_and_what_was_left_aside(tmp_path):
    (tmp_path / "README").write_text("")
    one = reading(folder(tmp_path, f'up{{job="x"}} 1 {BEGIN / 1000 + 60}\n'), families=("dcgm",))
    coverage, _ = run(one)
    assert set(coverage["reason_text"]) == {"no_dcgm_metrics"}
    assert set(coverage["source_ref"]) == {str(tmp_path)}
    assert one.notices == {"other_file": (1, "README")}


def test_an_hour_that_was_recorded_in_part_is_handed_on_state_by_state(tmp_path):
    label = 'UUID="GPU-0",gpu="0",Hostname="n"'
    times = [BEGIN // 1000 + minute * 60 for minute in range(10, 51)]
    text = "".join(f"DCGM_FI_DEV_GPU_UTIL{{{label}}} 1 {at}\n" for at in times)
    one = reading(folder(tmp_path, text), families=("dcgm",))
    coverage, handed = run(one)
    first = [f for _, f in handed if f.segment.end <= BEGIN + HOUR]
    assert [(f.state, kept(f)) for f in first] == [("missing", 0), ("complete", 41), ("missing", 0)]
    told = coverage.head(3).select("read_name", "kept_sample_count", "reason_text").rows()
    assert told == [
        ("missing", 0, "not_recorded"),
        ("complete", 41, None),
        ("missing", 0, "not_recorded"),
    ]


def test_what_is_known_of_other_sources_and_clusters_is_left_alone(proxy):
    coverage, _ = run(reading(proxy.url, families=("dcgm",)))
    other = coverage.with_columns(pl.lit("http://other").alias("source_ref"))
    assert len(reading(proxy.url, other, families=("dcgm",)).segments) == 24
    assert len(reading(proxy.url + "/", coverage, families=("dcgm",)).segments) == 0
