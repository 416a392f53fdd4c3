"""An hour of cAdvisor's counters as rows: what the containers of each pod with a GPU used, in all.

Only CPU, throttling, files read and the network are kept, as evidence of why a GPU waits. Which
pods have a GPU is for the caller to say, what the counters mean for `sql`.
"""

from collections.abc import Collection

import polars as pl

from collectors.prometheus import Fetched
from collectors.prometheus_answers import Samples
from collectors.rejections import Rejections
from collectors.source import Batch, Settings
from collectors.tallies import Counts, Parsed, day_before, day_on, kept, note, query
from models.raw_metrics import POD_SAMPLES
from models.table import INSTANT

OF_CONTAINERS = {
    "container_cpu_usage_seconds_total": "cpu_seconds",
    "container_cpu_cfs_periods_total": "cfs_period_count",
    "container_cpu_cfs_throttled_periods_total": "cfs_throttled_count",
    "container_fs_reads_bytes_total": "file_read_bytes",
}
OF_INTERFACES = {
    "container_network_receive_bytes_total": "network_received_bytes",
    "container_network_transmit_bytes_total": "network_sent_bytes",
}
QUANTITIES = OF_CONTAINERS | OF_INTERFACES
METRICS = tuple(QUANTITIES)
PAUSE = "POD"
"""The container that only holds a pod's network."""
NEAR = 30_000
"""Milliseconds. The kubelet reads containers one after another, each with a time of its own."""
LABELS = (
    *("__name__", "pod", "exported_pod", "namespace", "exported_namespace", "container"),
    *("exported_container", "interface", "cpu", "device", "instance", "exported_instance"),
)
TARGET = ["namespace_name", "pod_name", "exporter_name"]
PART = [*TARGET, "quantity", "part"]
"""One counter of a pod: a container's, or an interface's."""


def parse(fetched: Fetched, settings: Settings, pods: Collection[tuple[str, str]]) -> Parsed:
    """The rows of raw.pod_samples and raw.rejections of a stretch, for these (namespace, pod)."""
    rejections = Rejections(settings)
    note(fetched, "cadvisor", rejections)
    frames = [_of(data, pods) for data in fetched.data]
    frame = pl.concat(frames) if frames else pl.DataFrame()
    total = kept(fetched)
    if frame.is_empty():
        return Parsed(list(rejections.batches()), Counts(unused=total))
    counts = Counts(unused=total - frame.height)
    bad = frame.filter(pl.col("reason").is_not_null())
    for name, reason, times in (
        bad.group_by("__name__", "reason", maintain_order=True).agg(pl.len()).iter_rows()
    ):
        day = day_before(fetched.segment.end, settings.zone)
        rejections.add(day, query(fetched, name), reason, name, times)
    good = frame.filter(pl.col("reason").is_null())
    once = _told_once(good)
    whole = _whole(once)
    counts += Counts(
        reading=whole.height,
        copy=good.height - once.height,
        rejected=bad.height,
        unused=once.height - whole.height,
    )
    return Parsed([*_rows(whole, settings), *rejections.batches()], counts)


def _of(data: Samples, pods: Collection[tuple[str, str]]) -> pl.DataFrame:
    """The samples of counters of these pods, each with the counter's keys."""
    names = {field.name for field in data.series.schema["labels"].fields}  # type: ignore[attr-defined]
    told = [
        pl.col("labels").struct.field(name) if name in names else pl.lit(None, pl.String())
        for name in LABELS
    ]
    series = data.series.select(
        "series_number", *(each.alias(name) for name, each in zip(LABELS, told, strict=True))
    )
    series = series.with_columns(pl.when(pl.col(n) != "").then(pl.col(n)) for n in LABELS)
    # Where the target has labels of these names, a container that is not told leaves the target's.
    container = pl.when(pl.col("exported_pod").is_null()).then(pl.col("container"))
    container = pl.coalesce("exported_container", container)
    name = pl.col("__name__")
    is_container = name.is_in(list(OF_CONTAINERS)) & (container != PAUSE)
    is_interface = name.is_in(list(OF_INTERFACES)) & pl.col("interface").is_not_null()
    series = series.select(
        "series_number",
        "__name__",
        pl.coalesce("exported_namespace", "namespace").alias("namespace_name"),
        pl.coalesce("exported_pod", "pod").alias("pod_name"),
        pl.coalesce("exported_instance", "instance").fill_null("").alias("exporter_name"),
        name.replace_strict(QUANTITIES, default=None, return_dtype=pl.String()).alias("quantity"),
        pl.when(is_container)
        .then(pl.concat_str(container, "cpu", "device", separator="/", ignore_nulls=True))
        .when(is_interface)
        .then(pl.col("interface"))
        .alias("part"),
    ).drop_nulls(["namespace_name", "pod_name", "quantity", "part"])
    given = pl.DataFrame(list(pods), schema=["namespace_name", "pod_name"], orient="row").cast(
        pl.String()
    )
    mine = series.join(given, on=["namespace_name", "pod_name"], how="semi")
    value = pl.col("value")
    reason = (
        pl.when(value.is_null() | value.is_nan())
        .then(pl.lit("not_a_number"))
        .when(value < 0)
        .then(pl.lit("negative_reading"))
        .when(value.is_infinite())
        .then(pl.lit("out_of_range"))
    )
    samples = data.samples.select("series_number", pl.col("at").cast(pl.Int64()) // 1000, "value")
    return samples.join(mine, on="series_number").with_columns(reason.alias("reason"))


def _told_once(good: pl.DataFrame) -> pl.DataFrame:
    """Each counter once at each time of its pod: the times of the counter that is told most often.

    Of two that tell the same counter at once, the greater counts: the container's latest run.
    """
    often = good.group_by(PART).len().sort("len", *PART, descending=[True, *(False for _ in PART)])
    lead = often.unique(TARGET, keep="first", maintain_order=True).select(PART)
    times = good.join(lead, on=PART, how="semi").select(*TARGET, "at").unique()
    if good.join(times, on=[*TARGET, "at"], how="anti").height:
        near = times.with_columns(pl.col("at").alias("near")).sort("at")
        good = good.sort("at").join_asof(
            near, on="at", by=TARGET, strategy="nearest", tolerance=NEAR, check_sortedness=False
        )
        good = good.with_columns(pl.coalesce("near", "at").alias("time")).drop("near")
    else:
        good = good.with_columns(pl.col("at").alias("time"))
    return good.sort("at", "value", descending=True).unique(
        [*PART, "time"], keep="first", maintain_order=True
    )


def _whole(once: pl.DataFrame) -> pl.DataFrame:
    """Without the times at which a counter is missing that goes on afterwards.

    A sum without it would look as if the pod had begun anew.
    """
    lives = once.group_by(PART).agg(
        pl.col("time").min().alias("first"), pl.col("time").max().alias("last")
    )
    cell = [*TARGET, "quantity", "time"]
    there = once.group_by(cell).len("there")
    expected = (
        there.join(lives, on=[*TARGET, "quantity"])
        .filter(pl.col("time").is_between("first", "last"))
        .group_by(cell)
        .agg(pl.len().alias("expected"))
    )
    whole = there.join(expected, on=cell).filter(pl.col("there") == pl.col("expected"))
    return once.join(whole, on=cell, how="semi")


def _rows(whole: pl.DataFrame, settings: Settings) -> list[Batch]:
    if whole.is_empty():
        return []
    columns = [
        pl.col("value").filter(pl.col("quantity") == quantity).alias(quantity)
        for quantity in QUANTITIES.values()
    ]
    summed = whole.group_by(*TARGET, "time").agg(
        pl.when(column.count() > 0).then(column.sum()) for column in columns
    )
    at = (pl.col("time") * 1000).cast(INSTANT)
    rows = summed.sort(*TARGET, "time").with_columns(
        pl.lit(settings.cluster).alias("cluster_name"),
        day_on(at, settings.zone).alias("day_on"),
        at.alias("sampled_at"),
    )
    return [Batch(POD_SAMPLES.name, POD_SAMPLES.conform(rows.drop("time")))]
