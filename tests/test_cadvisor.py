"""cAdvisor's counters of a pod's containers as one row, without what would count them twice."""

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.cadvisor import METRICS, parse
from collectors.tallies import kept
from models.raw_metrics import POD_SAMPLES
from tests.exposition import BEGIN, SETTINGS, at, fetched, of, refused, rows, table

CPU, RECEIVED = "container_cpu_usage_seconds_total", "container_network_receive_bytes_total"
POD = 'namespace="ml",pod="job-1",instance="n1:10250"'
PODS = {("ml", "job-1")}


def read(text: str, pods=PODS):
    return parse(fetched(text), SETTINGS, pods)


def test_containers_are_summed_without_the_pod_s_own_row_and_its_pause():
    parsed = read(f"""
        {CPU}{{{POD},container="main"}} 100
        {CPU}{{{POD},container="sidecar"}} 20
        {CPU}{{{POD},container=""}} 125
        {CPU}{{{POD}}} 125
        {CPU}{{{POD},container="POD"}} 5
        container_cpu_cfs_periods_total{{{POD},container="main"}} 70
        container_cpu_cfs_throttled_periods_total{{{POD},container="main"}} 7
        container_fs_reads_bytes_total{{{POD},container="main",device="/dev/sda"}} 1000
        container_fs_reads_bytes_total{{{POD},container="main",device="/dev/sdb"}} 500
    """)
    [row] = rows(parsed, "raw.pod_samples")
    assert (row["cpu_seconds"], row["file_read_bytes"]) == (120, 1500)
    assert (row["cfs_period_count"], row["cfs_throttled_count"]) == (70, 7)
    assert row["network_sent_bytes"] is None  # not told is not none
    assert (row["exporter_name"], row["sampled_at"]) == ("n1:10250", at(1000))
    assert (parsed.counts.reading, parsed.counts.unused) == (6, 3)


def test_the_network_is_that_of_all_interfaces():
    parsed = read(f"""
        {RECEIVED}{{{POD},interface="eth0"}} 100
        {RECEIVED}{{{POD},interface="net1",container="POD"}} 11
        container_network_transmit_bytes_total{{{POD},interface="eth0"}} 5
        {RECEIVED}{{{POD}}} 111
    """)
    [row] = rows(parsed, "raw.pod_samples")
    assert (row["network_received_bytes"], row["network_sent_bytes"]) == (111, 5)
    assert (parsed.counts.reading, parsed.counts.unused) == (3, 1)


def test_only_pods_with_a_gpu_are_kept():
    other = POD.replace("job-1", "web-0")
    text = f'{CPU}{{{POD},container="main"}} 100\n{CPU}{{{other},container="main"}} NaN'
    parsed = read(text)
    assert [r["pod_name"] for r in rows(parsed, "raw.pod_samples")] == ["job-1"]
    assert (parsed.counts.reading, parsed.counts.unused) == (1, 1)
    none = read(text, set())
    assert none.batches == [] and none.counts.unused == 2


def test_labels_that_the_target_has_too_are_exported():
    target = 'namespace="kube-system",pod="kubelet-0",container="kubelet",instance="n1:10250"'
    mine = 'exported_namespace="ml",exported_pod="job-1"'
    parsed = read(f"""
        {CPU}{{{target},{mine},exported_container="main"}} 100
        {CPU}{{{target},{mine}}} 125
        {RECEIVED}{{{target},{mine},interface="eth0"}} 8
    """)
    [row] = rows(parsed, "raw.pod_samples")
    assert (row["cpu_seconds"], row["network_received_bytes"]) == (100, 8)
    assert parsed.counts.unused == 1  # the pod's own row, under the target's container


def test_containers_that_are_read_one_after_another_are_one_row():
    parsed = read(f"""
        {CPU}{{{POD},container="main"}} 100 {BEGIN + 30_000}
        {CPU}{{{POD},container="main"}} 110 {BEGIN + 60_000}
        {CPU}{{{POD},container="sidecar"}} 1 {BEGIN + 37_000}
        {CPU}{{{POD},container="sidecar"}} 2 {BEGIN + 66_000}
        {RECEIVED}{{{POD},interface="eth0"}} 7 {BEGIN + 24_000}
        {RECEIVED}{{{POD},interface="eth0"}} 9 {BEGIN + 55_000}
    """)
    found = rows(parsed, "raw.pod_samples")
    assert [(r["cpu_seconds"], r["network_received_bytes"]) for r in found] == [(101, 7), (112, 9)]
    assert parsed.counts.reading == 6


def test_a_sum_that_lacks_a_container_is_unknown_not_smaller():
    parsed = read(f"""
        {CPU}{{{POD},container="main"}} 100 {BEGIN + 30_000}
        {CPU}{{{POD},container="main"}} 110 {BEGIN + 60_000}
        {CPU}{{{POD},container="main"}} 120 {BEGIN + 90_000}
        {CPU}{{{POD},container="sidecar"}} 1 {BEGIN + 30_000}
        {CPU}{{{POD},container="sidecar"}} 3 {BEGIN + 90_000}
    """)
    found = rows(parsed, "raw.pod_samples")
    assert [r["cpu_seconds"] for r in found] == [101, 123]
    assert (parsed.counts.reading, parsed.counts.unused) == (4, 1)


def test_two_runs_of_a_container_at_one_time_are_not_summed():
    parsed = read(f"""
        {CPU}{{{POD},container="main",id="/a"}} 100
        {CPU}{{{POD},container="main",id="/b"}} 3
    """)
    [row] = rows(parsed, "raw.pod_samples")
    assert row["cpu_seconds"] == 100
    assert (parsed.counts.reading, parsed.counts.copy) == (1, 1)


def test_what_is_no_count_is_refused():
    parsed = read(f"""
        {CPU}{{{POD},container="main"}} NaN
        {CPU}{{{POD},container="sidecar"}} -1
        {RECEIVED}{{{POD},interface="eth0"}} +Inf
    """)
    assert not rows(parsed, "raw.pod_samples")
    assert refused(parsed) == {
        (CPU, "not_a_number"): 1,
        (CPU, "negative_reading"): 1,
        (RECEIVED, "out_of_range"): 1,
    }


LABELS = st.fixed_dictionaries(
    {"__name__": st.sampled_from([*METRICS, "up"])},
    optional={
        "namespace": st.sampled_from(["ml", "b"]),
        "exported_namespace": st.just("ml"),
        "pod": st.sampled_from(["job-1", "job-2", "x"]),
        "exported_pod": st.sampled_from(["job-1", ""]),
        "container": st.sampled_from(["", "main", "POD"]),
        "exported_container": st.sampled_from(["", "side"]),
        "interface": st.sampled_from(["eth0", "net1"]),
        "instance": st.sampled_from(["i1", "i2"]),
        "id": st.sampled_from(["/a", "/b"]),
    },
)
SERIES = st.lists(
    st.tuples(
        LABELS,
        st.dictionaries(st.integers(1, 200), st.one_of(st.none(), st.floats(-1, 100)), max_size=5),
    ),
    max_size=12,
    unique_by=lambda one: tuple(sorted(one[0].items())),
)


@settings(max_examples=60)
@given(SERIES)
def test_each_kept_sample_is_counted_once_and_rows_keep_their_grain(series):
    told = [
        (n, BEGIN + second * 1000, value)
        for n, (_, values) in enumerate(series)
        for second, value in values.items()
    ]
    kinds = {"series_number": pl.UInt32(), "at": pl.Int64(), "value": pl.Float64()}
    frame = pl.DataFrame(told, schema=kinds, orient="row")
    whole = of([labels for labels, _ in series], frame, BEGIN, BEGIN + 3_600_000)
    parsed = parse(whole, SETTINGS, {("ml", "job-1"), ("ml", "job-2")})
    assert parsed.counts.kept == kept(whole)
    found = table(parsed, "raw.pod_samples")
    assert not found.select(POD_SAMPLES.grain).is_duplicated().any()
    assert bool(found.height) == bool(parsed.counts.reading)
    reasons = ["not_a_number", "negative_reading", "out_of_range"]
    refused = table(parsed, "raw.rejections").filter(pl.col("reason_name").is_in(reasons))
    assert refused["rejected_count"].sum() == parsed.counts.rejected
