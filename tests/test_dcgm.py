"""What becomes of each stored sample of DCGM: a reading, a copy, refused, unused; never summed."""

import pytest

from collectors.dcgm import parse
from collectors.dcgm_names import FIELDS, METRICS, NUMBERS
from models.raw import NOTICES
from models.raw_metrics import GPU_SAMPLES
from tests.exposition import BEGIN, SETTINGS, at, fetched, refused, rows

GPU = 'gpu="0",UUID="GPU-0",modelName="NVIDIA H100 80GB HBM3",Hostname="n1",instance="n1:9400"'
UTIL, POWER, XID = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_XID_ERRORS"


def pod(name: str, **more: str) -> str:
    told = {"pod": name, "namespace": "ml", "container": "main"} | more
    return ",".join(f'{key}="{value}"' for key, value in told.items())


def read(text: str):
    return parse(fetched(text), SETTINGS)


def one(text: str) -> dict:
    """The only row of samples."""
    [row] = rows(read(text), "raw.gpu_samples")
    return row


# Units and names


@pytest.mark.parametrize(
    ("metric", "value", "column", "expected"),
    [
        ("DCGM_FI_DEV_GPU_UTIL", "71", "utilisation_ratio", 0.71),
        ("DCGM_FI_DEV_GPU_UTIL_RATIO", "91", "utilisation_ratio", 0.91),  # in percent all the same
        ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "0.5", "gr_engine_ratio", 0.5),
        ("DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO", "1.003906", "gr_engine_ratio", 1.003906),
        (
            "DCGM_FI_PROF_SM_UTIL_RATIO",
            "1.7514509299667577e-09",
            "sm_ratio",
            1.7514509299667577e-09,
        ),
        ("DCGM_FI_PROF_TENSOR_UTIL_RATIO", "0.25", "tensor_ratio", 0.25),
        ("dcgm_fi_prof_dram_active", "0.25", "dram_ratio", 0.25),
        ("DCGM_FI_DEV_FB_USED", "77581", "memory_used_mib", 77581),
        ("DCGM_FI_DEV_BOARD_POWER_WATTS", "68.244", "power_watts", 68.244),
        ("DCGM_FI_DEV_BOARD_POWER_RAW_WATTS", "70", "power_watts", 70),
        ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "15152422938", "energy_joules", 15152422.938),
        ("DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL", "15152422", "energy_joules", 15152422),
        ("DCGM_FI_PROF_PCIE_RX_BYTES", "2147483632", "pcie_received_bytes_per_second", 2147483632),
        ("DCGM_FI_DEV_NVLINK_THROUGHPUT_TOTAL", "1000", "nvlink_bytes_per_second", 1.024e9),
        ("DCGM_FI_DEV_SM_CLOCK", "1980", "sm_clock_mhz", 1980),
        ("DCGM_FI_DEV_SM_CLOCK_HERTZ", "2619000000", "sm_clock_mhz", 2619),
        ("DCGM_FI_DEV_MEMORY_CLOCK_HERTZ", "2619000000", "memory_clock_mhz", 2619),
        ("DCGM_FI_DEV_GPU_TEMP_CELSIUS", "0", "temperature_celsius", 0),
        ("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "4", "throttle_number", 4),
        ("DCGM_FI_DEV_XID_ERROR", "79", "xid_number", 79),
        ("DCGM_FI_DEV_ROW_REMAP_FAILED", "1", "row_remap_failure_count", 1),
    ],
)
def test_a_value_becomes_its_column_s_unit(metric, value, column, expected):
    row = one(f"{metric}{{{GPU}}} {value}")
    assert row[column] == expected
    others = [c.name for c in GPU_SAMPLES.columns if c.nullable and c.name != column]
    assert all(row[name] is None for name in others)
    assert row["sampled_at"] == at(1000) and row["rejected_count"] == 0


def test_every_column_is_fed_and_every_name_is_one_field_s():
    columns = {c.name for c in GPU_SAMPLES.columns if c.nullable}
    assert columns <= {field.quantity for field in FIELDS}
    assert len(METRICS) == 2 * sum(len(field.names) for field in FIELDS) == len(NUMBERS)


def test_both_ways_of_nvlink_make_a_reading_only_together():
    sent, received = "DCGM_FI_PROF_NVLINK_TX_BYTES", "DCGM_FI_PROF_NVLINK_RX_BYTES"
    parsed = read(f"""
        {sent}{{{GPU}}} 100 {BEGIN + 30_000}
        {received}{{{GPU}}} 20 {BEGIN + 30_000}
        {sent}{{{GPU}}} 7 {BEGIN + 60_000}
        {sent}{{{GPU}}} 500000 {BEGIN + 90_000}
        {received}{{{GPU}}} 500000 {BEGIN + 90_000}
        DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL{{{GPU}}} 1 {BEGIN + 90_000}
    """)
    told = [r["nvlink_bytes_per_second"] for r in rows(parsed, "raw.gpu_samples")]
    assert told == [120, 1.024e6]
    counts = parsed.counts
    assert (counts.reading, counts.copy, counts.unused) == (3, 2, 1)


def test_a_field_in_two_units_is_told_once():
    parsed = read(f"""
        DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{{GPU}}} 1500
        DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL{{{GPU}}} 1
        DCGM_FI_DEV_POWER_USAGE_INSTANT{{{GPU}}} 90
        DCGM_FI_DEV_POWER_USAGE{{{GPU}}} 70
    """)
    [row] = rows(parsed, "raw.gpu_samples")
    assert (row["energy_joules"], row["power_watts"]) == (1.5, 70)
    assert (parsed.counts.reading, parsed.counts.copy) == (2, 2)
    assert not rows(parsed, "raw.rejections")  # other fields are no disagreement


# What is no reading


@pytest.mark.parametrize(
    ("metric", "value", "reason"),
    [
        ("DCGM_FI_PROF_SM_ACTIVE", "140737488355328.0", "sentinel"),
        ("DCGM_FI_PROF_SM_ACTIVE", "140737488355331.0", "sentinel"),
        ("DCGM_FI_PROF_SM_ACTIVE", "2147483634", "sentinel"),
        ("DCGM_FI_PROF_PCIE_TX_BYTES", "9223372036854775792", "sentinel"),
        ("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "9223372036854776000", "sentinel"),
        ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "9.223372036854776e18", "sentinel"),
        ("DCGM_FI_DEV_GPU_TEMP", "2147483634", "sentinel"),
        ("DCGM_FI_DEV_FB_USED", "2147483632", "sentinel"),
        ("DCGM_FI_DEV_GPU_UTIL", "4294967295", "sentinel"),
        ("DCGM_FI_DEV_GPU_UTIL", "808334905", "out_of_range"),
        ("DCGM_FI_DEV_GPU_UTIL", "1980", "out_of_range"),
        ("DCGM_FI_DEV_GPU_UTIL", "100.5", "out_of_range"),
        ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "1.6", "out_of_range"),
        ("DCGM_FI_DEV_POWER_USAGE", "+Inf", "out_of_range"),
        ("DCGM_FI_DEV_XID_ERRORS", "31.5", "out_of_range"),
        ("DCGM_FI_DEV_POWER_USAGE", "-1", "negative_reading"),
        ("DCGM_FI_DEV_POWER_USAGE", "-Inf", "negative_reading"),
        ("DCGM_FI_DEV_POWER_USAGE", "NaN", "not_a_number"),
    ],
)
def test_what_is_no_reading_is_refused_and_never_clamped(metric, value, reason):
    parsed = read(f"{metric}{{{GPU}}} {value}")
    [row] = rows(parsed, "raw.gpu_samples")
    assert all(row[c.name] is None for c in GPU_SAMPLES.columns if c.nullable)
    assert row["rejected_count"] == parsed.counts.rejected == 1
    [rejection] = rows(parsed, "raw.rejections")
    assert (rejection["reason_name"], rejection["is_row_lost"]) == (reason, False)
    assert rejection["source_ref"] == f"{metric}[3600000ms] @ 1767229200.000"
    assert rejection["example_text"].startswith(f"{metric} of GPU-0 at 2026-01-01T00:00:01+00:00")
    assert rejection["mend_text"] != "Check the source."


def test_of_a_blank_hour_what_was_not_blank_is_kept():
    blank = "140737488355328.0"
    row = one(f"""
        DCGM_FI_PROF_SM_ACTIVE{{{GPU}}} {blank}
        DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{{{GPU}}} {blank}
        DCGM_FI_PROF_PCIE_RX_BYTES{{{GPU}}} 9223372036854775792
        {POWER}{{{GPU}}} 69.437
        DCGM_FI_DEV_FB_USED{{{GPU}}} 0
    """)
    assert (row["power_watts"], row["memory_used_mib"], row["sm_ratio"]) == (69.437, 0, None)
    assert row["rejected_count"] == 3


def test_ten_values_over_100_leave_no_utilisation_at_all():
    values = (101, 1980, 2619, 1000, 200000, 808334905, 131072, 105, 2000, 1410)
    lines = [f"{UTIL}{{{GPU}}} {v} {BEGIN + 30_000 * n}" for n, v in enumerate(values, 1)]
    parsed = read("\n".join(lines))
    assert {r["utilisation_ratio"] for r in rows(parsed, "raw.gpu_samples")} == {None}
    assert refused(parsed) == {(UTIL, "out_of_range"): 10}


def test_a_windowed_count_and_an_unknown_name_are_unused_and_fail_nothing():
    parsed = read(f"""
        DCGM_EXP_XID_ERRORS_COUNT{{{GPU},xid="42",window_size_in_ms="300000"}} 1
        DCGM_FI_DEV_XID_ERRORS_ACTIVE{{{GPU},xid="42"}} 1
        DCGM_FI_PROF_PIPE_FP{{{GPU}}} 0.1
        DCGM_FI_DEV_MEMORY_TEMP{{{GPU}}} 9223372036854775794
        DCGM_FI_DEV_GPU_TEMP{{{GPU}}} 40
    """)
    [row] = rows(parsed, "raw.gpu_samples")
    assert row["temperature_celsius"] == 40 and row["rejected_count"] == 0
    assert row["xid_number"] is None  # not exported: unknown, not none
    assert (parsed.counts.reading, parsed.counts.unused) == (1, 4)


def test_an_empty_exposition_is_no_row_and_no_fault():
    parsed = read("")
    assert parsed.batches == [] and parsed.counts.kept == 0


# Copies, parts and disagreement


@pytest.mark.parametrize("metric", ["DCGM_FI_PROF_GR_ENGINE_ACTIVE", POWER])
def test_a_copy_for_a_sharing_pod_is_never_summed(metric):
    parsed = read("\n".join(f'{metric}{{{GPU},{pod(f"w{n}")},vgpu="{n}"}} 0.714' for n in range(3)))
    [row] = rows(parsed, "raw.gpu_samples")
    assert {row["gr_engine_ratio"], row["power_watts"]} == {0.714, None}
    assert (parsed.counts.reading, parsed.counts.copy) == (1, 2)
    assert [r["pod_name"] for r in rows(parsed, "raw.gpu_series")] == ["w0", "w1", "w2"]
    assert not rows(parsed, "raw.rejections")


def test_a_gpu_whose_pod_changes_is_one_gpu():
    text = [f"{UTIL}{{{GPU},{pod(f'w{n}')}}} {n} {BEGIN + 30_000 * n}" for n in range(1, 4)]
    parsed = read("\n".join(text))
    assert [r["utilisation_ratio"] for r in rows(parsed, "raw.gpu_samples")] == [0.01, 0.02, 0.03]
    assert len(rows(parsed, "raw.gpu_series")) == 3


def test_by_process_the_row_without_a_pod_is_the_device_s():
    parsed = read(f"""
        {UTIL}{{{GPU}}} 60
        {UTIL}{{{GPU},{pod("a", pod_uid="ua")}}} 95
        {UTIL}{{{GPU},{pod("b", pod_uid="ub")}}} 0
    """)
    [row] = rows(parsed, "raw.gpu_samples")
    assert row["utilisation_ratio"] == 0.6
    assert (parsed.counts.reading, parsed.counts.copy) == (1, 2)
    assert not rows(parsed, "raw.rejections")  # a part differs from the whole: no disagreement
    assert {r["pod_uid"] for r in rows(parsed, "raw.gpu_series")} == {"", "ua", "ub"}


def test_by_process_a_pod_s_part_is_not_taken_where_the_device_s_own_is_blank():
    parsed = read(f"""
        {UTIL}{{{GPU}}} 4294967295
        {UTIL}{{{GPU},{pod("a", pod_uid="ua")}}} 95
    """)
    [row] = rows(parsed, "raw.gpu_samples")
    assert (row["utilisation_ratio"], row["rejected_count"]) == (None, 1)
    assert (parsed.counts.reading, parsed.counts.copy, parsed.counts.rejected) == (0, 1, 1)


def test_a_pod_uid_alone_does_not_make_a_part():
    parsed = read(f"""
        {UTIL}{{{GPU}}} 0 {BEGIN + 30_000}
        {UTIL}{{{GPU},{pod("a", pod_uid="ua")}}} 95 {BEGIN + 60_000}
    """)
    assert [r["utilisation_ratio"] for r in rows(parsed, "raw.gpu_samples")] == [0, 0.95]


def test_two_exporters_of_a_node_tell_a_gpu_once_at_each_time():
    other = GPU.replace("n1:9400", "10.0.0.9:9400")
    parsed = read(f"{UTIL}{{{GPU}}} 50\n{UTIL}{{{other}}} 50")
    assert len(rows(parsed, "raw.gpu_samples")) == 1
    assert [r["exporter_name"] for r in rows(parsed, "raw.gpu_series")] == [
        "10.0.0.9:9400",
        "n1:9400",
    ]
    assert not rows(parsed, "raw.rejections")


def test_where_series_disagree_the_bare_one_counts_and_the_disagreement_is_told():
    other = GPU.replace("n1:9400", "10.0.0.9:9400")
    parsed = read(f"{UTIL}{{{GPU}}} 50\n{UTIL}{{{other},{pod('a')}}} 80")
    [row] = rows(parsed, "raw.gpu_samples")
    assert row["utilisation_ratio"] == 0.5
    [notice] = rows(parsed, "raw.rejections")
    assert (notice["reason_name"], notice["is_row_lost"]) == ("conflicting_reading", False)
    assert "0.5 and 0.8" in notice["example_text"] and "conflicting_reading" in NOTICES


def test_among_pods_that_disagree_the_greatest_counts_not_the_sum_nor_the_mean():
    parsed = read(f"{UTIL}{{{GPU},{pod('a')}}} 20\n{UTIL}{{{GPU},{pod('b')}}} 60")
    [row] = rows(parsed, "raw.gpu_samples")
    assert row["utilisation_ratio"] == 0.6
    assert refused(parsed) == {(UTIL, "conflicting_reading"): 1}


# Instances of a GPU


def part(instance: int) -> str:
    return f'{GPU},GPU_I_PROFILE="1g.11gb",GPU_I_ID="{instance}"'


def test_instances_are_devices_of_one_gpu_that_repeat_its_power():
    parsed = read("\n".join(f"{POWER}{{{part(n)}}} 120" for n in (7, 8)))
    found = rows(parsed, "raw.gpu_samples")
    assert [(r["gpu_uuid"], r["instance_number"]) for r in found] == [("GPU-0", 7), ("GPU-0", 8)]
    assert [r["power_watts"] for r in found] == [120, 120]
    profiles = {r["mig_profile_name"] for r in rows(parsed, "raw.gpu_series")}
    assert profiles == {"1g.11gb"}  # as it is spelt, not as it is asked for


def test_an_instance_has_no_utilisation_not_one_of_0():
    parsed = read(f"{UTIL}{{{part(7)}}} 0\nDCGM_FI_PROF_GR_ENGINE_ACTIVE{{{part(7)}}} 0.4")
    [row] = rows(parsed, "raw.gpu_samples")
    assert (row["utilisation_ratio"], row["gr_engine_ratio"]) == (None, 0.4)
    assert (parsed.counts.reading, parsed.counts.unused) == (1, 1)
    [labels] = rows(parsed, "raw.gpu_series")
    assert labels["metrics_text"] == "gr_engine_ratio"


# Errors


def test_an_xid_is_read_at_each_scrape_though_its_code_makes_a_new_series():
    parsed = read(f"""
        {XID}{{{GPU}}} 0 {BEGIN + 30_000}
        {XID}{{{GPU},err_code="31",err_msg="GPU memory page fault"}} 31 {BEGIN + 60_000}
        {XID}{{{GPU},err_code="31",err_msg="GPU memory page fault"}} 31 {BEGIN + 90_000}
        {XID}{{{GPU}}} 0 {BEGIN + 120_000}
    """)
    assert [r["xid_number"] for r in rows(parsed, "raw.gpu_samples")] == [0, 31, 31, 0]
    [labels] = rows(parsed, "raw.gpu_series")
    assert labels["sample_count"] == 4


# Days


def test_a_sample_at_midnight_belongs_to_the_day_that_ends():
    text = f"""
        {UTIL}{{{GPU}}} 1 {BEGIN}
        {UTIL}{{{GPU}}} 2 {BEGIN + 1}
    """
    found = parse(fetched(text, BEGIN - 3_600_000, BEGIN + 3_600_000), SETTINGS)
    days = [r["day_on"].isoformat() for r in rows(found, "raw.gpu_samples")]
    assert days == ["2025-12-31", "2026-01-01"]
    labels = [(r["day_on"].isoformat(), r["sample_count"]) for r in rows(found, "raw.gpu_series")]
    assert labels == [("2025-12-31", 1), ("2026-01-01", 1)]
