"""Laws of DCGM's samples for any labels and values: each counted once, each reading told before."""

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.dcgm import parse
from collectors.dcgm_names import FIELDS, NUMBERS
from collectors.source import Settings
from collectors.tallies import kept
from models.raw_metrics import GPU_SAMPLES, GPU_SERIES
from tests.exposition import BEGIN, of, table

STEP = 30_000
SOME = [
    *("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_GPU_UTIL_RATIO", "dcgm_fi_dev_gpu_util"),
    *("DCGM_FI_PROF_NVLINK_TX_BYTES", "DCGM_FI_PROF_NVLINK_RX_BYTES"),
    *("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "DCGM_FI_DEV_XID_ERRORS", "DCGM_FI_DEV_POWER_USAGE"),
    *("DCGM_FI_DEV_POWER_USAGE_INSTANT", "DCGM_EXP_XID_ERRORS_COUNT", "container_x"),
]
PODS = st.sampled_from(["", "a", "b", "dcgm-exporter-x7k2p", "tool-x7k2p"])
LABELS = st.fixed_dictionaries(
    {"__name__": st.sampled_from(SOME)},
    optional={
        "UUID": st.sampled_from(["", "GPU-0", "GPU-1"]),
        "uuid": st.just("GPU-2"),
        "GPU_I_ID": st.sampled_from(["", "1", "2", "x"]),
        "gpu": st.sampled_from(["0", "1", "?"]),
        "Hostname": st.sampled_from(["n1", "n2", "localhost", "tool-x7k2p"]),
        "node": st.just("n1"),
        "instance": st.sampled_from(["i1", "i2"]),
        "pod": PODS,
        "pod_name": PODS,
        "exported_pod": PODS,
        "exported_exported_pod": PODS,
        "namespace": st.sampled_from(["ml", "ops"]),
        "exported_namespace": st.sampled_from(["ml", ""]),
        "container": st.sampled_from(["main", "exporter"]),
        "pod_uid": st.sampled_from(["", "u1"]),
        "service": st.just("tool"),
        "vgpu": st.sampled_from(["0", "1"]),
        "err_code": st.just("31"),
        "hpc_job": st.sampled_from(["7", "12"]),
        "modelName": st.just("Tesla T4"),
    },
)
VALUES = st.one_of(
    st.sampled_from([0.0, 1.0, 31.0, 50.0, 100.0, 101.0, -1.0, 2147483632.0, 140737488355328.0]),
    st.sampled_from([9.223372036854776e18, float("inf"), float("nan"), None]),
    st.floats(0, 200),
)
SERIES = st.lists(
    st.tuples(LABELS, st.dictionaries(st.integers(1, 5), VALUES, max_size=5)),
    max_size=12,
    unique_by=lambda one: tuple(sorted(one[0].items())),
)


def given_as(series):
    told = [
        (n, BEGIN + at * STEP, v)
        for n, (_, values) in enumerate(series)
        for at, v in values.items()
    ]
    kinds = {"series_number": pl.UInt32(), "at": pl.Int64(), "value": pl.Float64()}
    frame = pl.DataFrame(told, schema=kinds, orient="row")
    return of([labels for labels, _ in series], frame, BEGIN, BEGIN + 3_600_000)


@settings(max_examples=40)
@given(SERIES)
def test_each_kept_sample_is_a_reading_a_copy_refused_or_unused(series):
    fetched = given_as(series)
    parsed = parse(fetched, Settings("c"))
    assert parsed.counts.kept == kept(fetched)
    samples = table(parsed, "raw.gpu_samples")
    # What NVLink sent and received are two readings of one cell.
    cells = samples.select(c.name for c in GPU_SAMPLES.columns if c.nullable)
    number = sum(cells.height - count for count in cells.null_count().row(0)) if cells.height else 0
    assert number <= parsed.counts.reading <= 2 * number
    if not any("PROF_NVLINK" in labels["__name__"] for labels, values in series if values):
        assert parsed.counts.reading == number
    assert not samples.select(GPU_SAMPLES.grain).is_duplicated().any()
    for column in GPU_SAMPLES.columns:
        if column.minimum is not None:
            assert (samples[column.name].drop_nulls() >= column.minimum).all()
        if column.maximum is not None:
            assert (samples[column.name].drop_nulls() <= column.maximum).all()
    unused = sum(len(v) for labels, v in series if labels["__name__"] not in NUMBERS)
    assert parsed.counts.unused >= unused


@settings(max_examples=40)
@given(SERIES)
def test_every_refusal_is_in_the_rejections_and_on_its_row(series):
    parsed = parse(given_as(series), Settings("c"))
    rejections = table(parsed, "raw.rejections")
    lost = rejections.filter(~pl.col("reason_name").is_in(["conflicting_reading"]))
    assert lost["rejected_count"].sum() == parsed.counts.rejected
    nameless = lost.filter(pl.col("reason_name").is_in(["no_gpu_uuid", "bad_gpu_instance"]))
    on_rows = table(parsed, "raw.gpu_samples")["rejected_count"].sum()
    assert on_rows == parsed.counts.rejected - nameless["rejected_count"].sum()
    assert not rejections.select("day_on", "source_ref", "reason_name").is_duplicated().any()


@settings(max_examples=40)
@given(SERIES)
def test_a_reading_was_told_by_a_series_of_its_device_at_its_time(series):
    samples = table(parse(given_as(series), Settings("c")), "raw.gpu_samples")
    told = {
        (labels.get("UUID") or labels.get("uuid"), at, value)
        for labels, values in series
        if NUMBERS.get(labels["__name__"]) is not None
        and FIELDS[NUMBERS[labels["__name__"]]].quantity == "utilisation_ratio"
        for at, value in values.items()
    }
    for uuid, at, ratio in (
        samples.drop_nulls("utilisation_ratio")
        .select("gpu_uuid", "sampled_at", "utilisation_ratio")
        .iter_rows()
    ):
        place = round((at.timestamp() * 1000 - BEGIN) / STEP)
        values = [v for u, t, v in told if (u, t) == (uuid, place) and v is not None]
        assert ratio in [v / 100 for v in values]


@settings(max_examples=40)
@given(SERIES, st.randoms())
def test_neither_the_order_of_series_nor_of_samples_matters(series, rng):
    other = list(series)
    rng.shuffle(other)
    found = [parse(given_as(one), Settings("c")) for one in (series, other)]
    assert found[0].counts == found[1].counts
    for contract in (GPU_SAMPLES, GPU_SERIES):
        first, second = (table(one, contract.name).sort(contract.grain) for one in found)
        assert first.equals(second)
