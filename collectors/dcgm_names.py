"""The fields of DCGM that feed a column of raw.gpu_samples: names, units, what is no value.

DCGM 4.6 renamed fields and kept their values; the exporter prints the name that its list has, and
with `-o` in lower case. Fields that differ in unit are rows of their own. What labels say belongs
to `dcgm_labels`, how rows come to be to `dcgm`.
"""

from typing import NamedTuple

NVLINK_SENT, NVLINK_RECEIVED = "nvlink_sent", "nvlink_received"
"""Quantities that make a column only together."""
NVLINK = "nvlink_bytes_per_second"
UTILISATION = "utilisation_ratio"

SMALL, LARGE, HUGE = 2147483632.0, 1.4e14, 1e18
"""From where on a value says blank: the INT32 of fields that are small, the FP64 of fields that may
be larger, the INT64 of counters that may be larger still. Thresholds, for floats are not exact."""
BLANK_FP64 = (140737488355328.0, 140737488355332.0)
"""Blank in a field of any size."""


class Field(NamedTuple):
    """A field: a value is worth `value * factor / divisor` of its quantity."""

    quantity: str
    """The column, or a part of it."""
    names: tuple[str, ...]
    """After DCGM_FI_, the oldest first."""
    maximum: float
    """The greatest raw value that can be true; none is below 0."""
    blank_from: float = SMALL
    factor: float = 1.0
    divisor: float = 1.0
    is_whole: bool = False
    preference: int = 0
    """Which field counts where several tell of a quantity: the lowest."""


MIB, MEGAHERTZ, WATTS, RATE = 1 << 24, 20_000.0, 20_000.0, 1e14

FIELDS = (
    # Called a ratio since 4.6, and still in percent.
    Field(UTILISATION, ("DEV_GPU_UTIL", "DEV_GPU_UTIL_RATIO"), 100, divisor=100),
    # Up to half over 1 was seen on MIG and is kept as it was read.
    Field("gr_engine_ratio", ("PROF_GR_ENGINE_ACTIVE", "PROF_GR_ENGINE_UTIL_RATIO"), 1.5),
    Field("sm_ratio", ("PROF_SM_ACTIVE", "PROF_SM_UTIL_RATIO"), 1.5),
    Field("tensor_ratio", ("PROF_PIPE_TENSOR_ACTIVE", "PROF_TENSOR_UTIL_RATIO"), 1.5),
    Field("dram_ratio", ("PROF_DRAM_ACTIVE", "PROF_DRAM_UTIL_RATIO"), 1.5),
    Field("memory_used_mib", ("DEV_FB_USED",), MIB),
    Field("memory_free_mib", ("DEV_FB_FREE",), MIB),
    Field("power_watts", ("DEV_POWER_USAGE", "DEV_BOARD_POWER_WATTS"), WATTS),
    Field(
        "power_watts",
        ("DEV_POWER_USAGE_INSTANT", "DEV_BOARD_POWER_RAW_WATTS"),
        WATTS,
        preference=1,
    ),
    Field("energy_joules", ("DEV_TOTAL_ENERGY_CONSUMPTION",), 1e17, HUGE, divisor=1000),
    Field("energy_joules", ("DEV_GPU_ENERGY_JOULES_TOTAL",), 1e14, HUGE, preference=1),
    Field("pcie_received_bytes_per_second", ("PROF_PCIE_RX_BYTES",), RATE, LARGE),
    Field("pcie_sent_bytes_per_second", ("PROF_PCIE_TX_BYTES",), RATE, LARGE),
    # A rate in spite of its name, of both ways, in units of 1000 KiB a second.
    Field(
        NVLINK,
        ("DEV_NVLINK_BANDWIDTH_TOTAL", "DEV_NVLINK_THROUGHPUT_TOTAL"),
        1e8,
        factor=1.024e6,
    ),
    Field(NVLINK_SENT, ("PROF_NVLINK_TX_BYTES",), RATE, LARGE),
    Field(NVLINK_RECEIVED, ("PROF_NVLINK_RX_BYTES",), RATE, LARGE),
    Field("sm_clock_mhz", ("DEV_SM_CLOCK",), MEGAHERTZ),
    Field("sm_clock_mhz", ("DEV_SM_CLOCK_HERTZ",), 2e10, LARGE, divisor=1e6, preference=1),
    Field("memory_clock_mhz", ("DEV_MEM_CLOCK",), MEGAHERTZ),
    Field("memory_clock_mhz", ("DEV_MEMORY_CLOCK_HERTZ",), 2e10, LARGE, divisor=1e6, preference=1),
    Field("temperature_celsius", ("DEV_GPU_TEMP", "DEV_GPU_TEMP_CELSIUS"), 200),
    Field(
        "throttle_number",
        ("DEV_CLOCK_THROTTLE_REASONS", "DEV_CLOCKS_EVENT_REASONS"),
        SMALL - 1,
        is_whole=True,
    ),
    Field("xid_number", ("DEV_XID_ERRORS", "DEV_XID_ERROR"), 100_000, is_whole=True),
    Field(
        "uncorrectable_remapped_row_count",
        ("DEV_UNCORRECTABLE_REMAPPED_ROWS", "DEV_ROW_REMAP_UNCORRECTABLE_TOTAL"),
        1_000_000,
        is_whole=True,
    ),
    Field(
        "correctable_remapped_row_count",
        ("DEV_CORRECTABLE_REMAPPED_ROWS", "DEV_ROW_REMAP_CORRECTABLE_TOTAL"),
        1_000_000,
        is_whole=True,
    ),
    Field(
        "row_remap_failure_count",
        ("DEV_ROW_REMAP_FAILURE", "DEV_ROW_REMAP_FAILED"),
        1,
        is_whole=True,
    ),
)


def _spellings(field: Field) -> list[str]:
    names = [f"DCGM_FI_{name}" for name in field.names]
    return [*names, *(name.lower() for name in names)]


NUMBERS = {name: n for n, field in enumerate(FIELDS) for name in _spellings(field)}
"""Name of a metric, in every spelling -> the place of its field in FIELDS."""
METRICS = tuple(NUMBERS)
"""What to ask for, where a source has it. Windowed counts of XIDs are not used, so not asked for;
nor is the temperature of the memory, which reads 0 where there is no sensor."""
QUANTITIES = tuple(dict.fromkeys(field.quantity for field in FIELDS))
