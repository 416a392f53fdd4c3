"""What the fleet's GPUs read each minute, as raw rows: samples, and whose the labels say they were.

The pods' behaviour decides: most work, some wait, spin, sleep or come and go; exporters fall
silent, some GPUs report an XID. Written hour by hour, as a collector stages it: a day of a large
fleet does not fit in memory. The pods themselves, and what else a recorder sees, belong in `rows`.
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import polars as pl

from benchmarks.fleet import DAY, Fleet
from models.gpus import catalogue
from models.raw_metrics import GPU_SAMPLES, GPU_SERIES, METRIC_COVERAGE
from models.table import INSTANT, Table

MINUTE = 60
HOUR = 3600
PRODUCTS = {
    "h100-80gb": "NVIDIA H100 80GB HBM3", "a100-80gb": "NVIDIA A100-SXM4-80GB",
    "l40s": "NVIDIA L40S",
}  # fmt: skip
KEYS = ("cluster_name", "day_on", "node_name", "gpu_uuid", "instance_number")
READINGS = tuple(c.name for c in GPU_SAMPLES.columns if c.nullable)
OF_INSTANCES = tuple(name for name in READINGS if name != "utilisation_ratio")
METRICS_TEXT = ",".join(READINGS)
INSTANCE_METRICS_TEXT = ",".join(OF_INSTANCES)
SOURCE = "prometheus:http://prometheus.example"

WORKS, WORKED, NEVER, SPINS, PULSES, BEATS = range(6)
"""What a pod's GPUs do: work; work for its first half; nothing; spin in its second third; work
three minutes in ten; sleep but for a minute in each quarter of an hour."""
ODDS = (70, 8, 4, 6, 8, 4)
"""Of a hundred pods."""

SILENT_NODES = 50
"""Of so many nodes the exporter of one falls silent for 20 minutes a day."""
LOST_SCRAPES = 400
"""Of so many scrapes of a node one is lost; and of each tenth GPU as many samples."""
ERRONEOUS = {43: 50, 31: 300, 79: 1000}
"""XID -> of so many GPUs one has it from some minute of the day on; the last one stands."""


def write(fleet: Fleet, folder: Path, cluster: str, epoch: datetime) -> int:
    """Write the raw rows of each day; the number of samples."""
    count = 0
    devices, spans = _devices(fleet), _spans(fleet)
    for number in range(fleet.size.days):
        day = epoch.date() + timedelta(days=number)
        series = []
        for hour in range(24):
            grid = _grid(devices, spans, number * DAY + hour * HOUR)
            grid = grid.with_columns(
                cluster_name=pl.lit(cluster), day_on=pl.lit(day), sampled_at=_instant("ms", epoch)
            )
            samples = _readings(grid.filter(pl.col("lane") == 0))
            count += samples.height
            _write(GPU_SAMPLES, samples, folder, f"{day}-{hour:02}")
            series.append(_series(grid))
        _write(GPU_SERIES, pl.concat(series), folder, f"{day}-00")
        _write(METRIC_COVERAGE, _coverage(cluster, day, count), folder, f"{day}-00")
    return count


def files_of(folder: Path, table: str, day: date) -> list[Path]:
    """Where the rows of a table's day are, hour by hour."""
    return sorted((folder / table).glob(f"{day}-??.parquet"))


def _write(table: Table, frame: pl.DataFrame, folder: Path, name: str) -> None:
    (folder / table.name).mkdir(parents=True, exist_ok=True)
    table.conform(frame).write_parquet(folder / table.name / f"{name}.parquet")


def _instant(milliseconds: str, epoch: datetime) -> pl.Expr:
    begin = int(epoch.timestamp()) * 1_000_000
    return (pl.col(milliseconds) * 1000 + begin).cast(INSTANT)


def _devices(fleet: Fleet) -> pl.DataFrame:
    """Each device; one that several pods share has a lane for each of them."""
    found = []
    for node in fleet.nodes:
        kind, number = node["kind"], node["number"]
        parts = 7 if kind.name == "mig" else 1
        lanes = kind.units // 8 if kind.name == "sliced" else 1
        found += [
            (node["node"], number, gpu, part if parts > 1 else -1, lane, kind.model)
            for gpu in range(8)
            for part in range(parts)
            for lane in range(lanes)
        ]
    names = ("node_name", "number", "gpu_number", "instance_number", "lane", "gpu_model_name")
    watts = {name: gpu.tdp_watts for name, gpu in catalogue().items()}
    serial = pl.col("number") * 8 + pl.col("gpu_number")
    return pl.DataFrame(found, schema=names, orient="row").with_columns(
        gpu_uuid=pl.format(
            "GPU-{}-5d0c-4b5e-8f3a-{}",
            serial.cast(pl.String).str.zfill(8),
            (serial * 7919).cast(pl.String).str.zfill(12),
        ),
        limit_watts=pl.col("gpu_model_name").replace_strict(watts).cast(pl.Float64),
        dice=serial.hash(11),
    )


def _spans(fleet: Fleet) -> pl.DataFrame:
    """When each pod's containers ran, on each of its devices."""
    pods = pl.DataFrame(
        [
            (
                pod["number"], pod["slot"], pod["kind"], pod["asked"], pod["started"],
                pod["ended"] or pod["removed"] or fleet.size.seconds + DAY,
                pod["uid"], f"{pod['workload']}-{pod['uid'][:8]}",
                "{}-{}".format(pod["team"], 0 if pod["gang_size"] else pod["number"] % 3),
            )
            for pod in fleet.pods
            if pod["slot"] is not None
        ],
        schema=[
            "number", "slot", "kind", "asked", "started", "ended", "pod_uid", "pod_name",
            "pod_namespace_name",
        ],
        orient="row",
    )  # fmt: skip
    kind, slot = pl.col("kind"), pl.col("slot")
    thrown = pl.col("pod_uid").hash(7) % 100
    behaviour = pl.lit(BEATS)
    for number in reversed(range(len(ODDS) - 1)):
        least = sum(ODDS[: number + 1])
        behaviour = pl.when(thrown < least).then(pl.lit(number)).otherwise(behaviour)
    return (
        pods.with_columns(place=pl.int_ranges(0, "asked"), behaviour=behaviour.cast(pl.Int8))
        .explode("place")
        .with_columns(
            gpu_number=pl.when(kind == "mig").then(slot // 7)
            .when(kind == "sliced").then(slot // 4)
            .when(pl.col("asked") > 1).then("place").otherwise("slot"),
            instance_number=pl.when(kind == "mig").then(slot % 7).otherwise(-1),
            lane=pl.when(kind == "sliced").then(slot % 4).otherwise(0),
            begin_ms=pl.col("started") * 1000,
        )
        .sort("begin_ms")
    )  # fmt: skip


def _grid(devices: pl.DataFrame, spans: pl.DataFrame, begin: int) -> pl.DataFrame:
    """A row for each scrape of each device's lane in the hour, with the pod that had it."""
    minutes = pl.DataFrame({"minute": range(begin // MINUTE, (begin + HOUR) // MINUTE)})
    keys = ["number", "gpu_number", "instance_number", "lane"]
    # A node is scraped at its own second; a sample at midnight is the day before's.
    ms = pl.col("minute") * 60_000 + 1000 * (pl.col("number") * 7 % 59) + 137
    near = spans.filter(
        pl.col("begin_ms") < (begin + HOUR) * 1000, pl.col("ended") >= begin
    ).select(*keys, "begin_ms", "ended", "behaviour", "pod_uid", "pod_name", "pod_namespace_name")
    node_dice = (pl.col("number") + 1_000_003 * (begin // DAY)).hash(5)
    silence = (node_dice // 1000) % 1400
    of_day = pl.col("minute") % 1440
    is_silent = ((pl.col("number") + begin // DAY) % SILENT_NODES == 0) & of_day.is_between(
        silence, silence + 19
    )
    is_lost = (pl.struct("number", "minute").hash(3) % LOST_SCRAPES == 0) | (
        (pl.col("dice") % 10 == 3)
        & (pl.struct("number", "gpu_number", "minute").hash(4) % LOST_SCRAPES == 0)
    )
    held = pl.col("ms") < pl.col("ended") * 1000
    cleared = ("behaviour", "pod_uid", "pod_name", "pod_namespace_name")
    return (
        devices.join(minutes, how="cross")
        .filter(~is_silent, ~is_lost)
        .with_columns(ms=ms)
        .sort("ms")
        .join_asof(
            near, left_on="ms", right_on="begin_ms", by=keys, strategy="backward",
            check_sortedness=False,
        )
        .with_columns(pl.when(held).then(pl.col(name)).alias(name) for name in cleared)
    )  # fmt: skip


def _works() -> pl.Expr:
    """Whether the device works at a scrape; null where nobody has it."""
    age = (pl.col("ms") - pl.col("begin_ms")) // 60_000
    length = (pl.col("ended") * 1000 - pl.col("begin_ms")) // 60_000
    of = pl.col("behaviour")
    works = (
        (of == WORKS)
        | ((of == WORKED) & (age * 2 < length))
        | ((of == SPINS) & ((age * 3 < length) | (age * 3 > 2 * length)))
        | ((of == PULSES) & (age % 10 < 3))
        | ((of == BEATS) & (age % 15 == 7))
    )
    is_broken = (pl.col("dice") % ERRONEOUS[79] == 1) & _is_since()
    return works & (age >= 1) & ~is_broken


def _is_since() -> pl.Expr:
    """Whether a GPU that has an error has it by now."""
    return pl.col("minute") % 1440 >= pl.col("dice") // 1000 % 1440


def _random(seed: int) -> pl.Expr:
    """Between 0 and 1, for each device and minute."""
    return pl.struct("gpu_uuid", "instance_number", "minute").hash(seed) % 1_000_003 / 1_000_003


def _readings(grid: pl.DataFrame) -> pl.DataFrame:
    """What DCGM tells of each device at each scrape."""
    works = pl.col("works")
    spins = (pl.col("behaviour") == SPINS) & ~works & (pl.col("age") > 1)
    held = pl.col("behaviour").is_not_null()

    def busy(least: float, most: float, place: str, spinning: float = 0.0) -> pl.Expr:
        reading = least + (most - least) * pl.col(place)
        return pl.when(works).then(reading).when(spins).then(spinning).otherwise(0.0).round(4)

    xid = pl.lit(0)
    for number, odds in ERRONEOUS.items():
        found = (pl.col("dice") % odds == 1) & _is_since()
        xid = pl.when(found).then(pl.lit(number)).otherwise(xid)
    draws = pl.when(works).then(pl.col("limit_watts") * (0.45 + 0.5 * pl.col("a")))
    rest = pl.col("limit_watts") * pl.when(held).then(0.17).otherwise(0.1)
    memory = pl.when(held & (pl.col("age") > 1)).then(20_000 + 50_000 * pl.col("b")).otherwise(3)
    return (
        grid.with_columns(
            works=_works().fill_null(False),
            age=(pl.col("ms") - pl.col("begin_ms")) // 60_000,
            a=_random(1), b=_random(2), c=_random(3), d=_random(4),
        )
        .with_columns(used=memory.round(0), watts=draws.otherwise(rest + 4 * pl.col("b")).round(2))
        .select(
            *KEYS, "sampled_at",
            utilisation_ratio=pl.when(pl.col("instance_number") < 0).then(
                busy(0.5, 1.0, "a", 1.0).round(2)
            ),
            gr_engine_ratio=busy(0.5, 1.0, "a", 0.99),
            sm_ratio=busy(0.3, 0.9, "a", 0.15),
            tensor_ratio=busy(0.1, 0.5, "c"),
            dram_ratio=busy(0.2, 0.6, "d"),
            memory_used_mib="used",
            memory_free_mib=81_000.0 - pl.col("used"),
            power_watts="watts",
            energy_joules=1e9 + pl.col("ms") * 0.3 + pl.col("watts"),
            pcie_received_bytes_per_second=(busy(1e8, 3e9, "b") + 1e5 * pl.col("d")).round(0),
            pcie_sent_bytes_per_second=(busy(1e7, 1e9, "c") + 1e5 * pl.col("d")).round(0),
            nvlink_bytes_per_second=busy(1e9, 9e10, "d").round(0),
            sm_clock_mhz=pl.when(works).then(1980.0).otherwise(345.0),
            memory_clock_mhz=pl.lit(2619.0),
            temperature_celsius=(32 + busy(10, 40, "a") + 2 * pl.col("b")).round(0),
            throttle_number=pl.when(works & (pl.col("a") > 0.9)).then(4)
            .when(works).then(0).otherwise(1),
            xid_number=xid,
            uncorrectable_remapped_row_count=pl.lit(0),
            correctable_remapped_row_count=(pl.col("dice") % 200 == 0).cast(pl.Int64),
            row_remap_failure_count=pl.lit(0),
            rejected_count=(pl.col("a") > 0.9999).cast(pl.Int64),
        )
        .cast({c.name: c.kind.polars for c in GPU_SAMPLES.columns})
    )  # fmt: skip


def _series(grid: pl.DataFrame) -> pl.DataFrame:
    """What the labels said in the hour."""
    pod = ("pod_namespace_name", "pod_name")
    is_whole = pl.col("instance_number") < 0
    return (
        grid.with_columns(pl.col(*pod).fill_null(""))
        .group_by(
            *KEYS, "gpu_number", "gpu_model_name", *pod, maintain_order=True
        )
        .agg(
            begin_at=pl.col("sampled_at").min(),
            end_at=pl.col("sampled_at").max(),
            sample_count=pl.col("sampled_at").n_unique(),
        )
        .with_columns(
            exporter_name=pl.format("{}:9400", "node_name"),
            driver_version_text=pl.lit("550.54.15"),
            pod_uid=pl.lit(""),
            container_name=pl.when(pl.col("pod_name") == "").then(pl.lit(""))
            .otherwise(pl.lit("main")),
            gpu_product_name=pl.col("gpu_model_name").replace_strict(PRODUCTS),
            mig_profile_name=pl.when(~is_whole).then(pl.lit("1g.10gb")),
            hpc_job_name=pl.lit(None, pl.String),
            claim_name=pl.lit(None, pl.String),
            metrics_text=pl.when(is_whole).then(pl.lit(METRICS_TEXT))
            .otherwise(pl.lit(INSTANCE_METRICS_TEXT)),
            source_ref=pl.lit(f'{SOURCE} {{__name__=~"DCGM_FI_.*"}}[3600000ms]'),
        )
        .cast({c.name: c.kind.polars for c in GPU_SERIES.columns})
    )  # fmt: skip


def _coverage(cluster: str, day: date, count: int) -> pl.DataFrame:
    begin = datetime(day.year, day.month, day.day, tzinfo=UTC)
    kept = count * len(READINGS)
    row = {
        "cluster_name": cluster, "day_on": day, "source_ref": SOURCE, "family_name": "dcgm",
        "begin_at": begin, "end_at": begin + timedelta(days=1), "read_name": "complete",
        "reason_text": None, "try_count": 0, "read_at": begin + timedelta(days=1),
        "read_sample_count": kept, "kept_sample_count": kept, "reading_count": kept,
        "copy_count": 0, "rejected_count": 0, "unused_count": 0, "metrics_text": None,
    }  # fmt: skip
    return pl.DataFrame([row], schema=METRIC_COVERAGE.schema)


def batches(folder: Path, table: str, day: date) -> Iterator[pl.DataFrame]:
    """The rows of a table's day, hour by hour, as they come from a server."""
    for path in files_of(folder, table, day):
        yield pl.read_parquet(path)
