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
PLACES = {name: place for place, name in enumerate(METRICS)}
PAUSE = "POD"
"""The container that only holds a pod's network."""
NEAR = 30_000
"""Milliseconds. The kubelet reads containers one after another, each with a time of its own."""
LABELS = (
    *("__name__", "pod", "exported_pod", "namespace", "exported_namespace", "container"),
    *("exported_container", "interface", "cpu", "device", "instance", "exported_instance"),
)
TARGET = ("namespace_name", "pod_name", "exporter_name")
PART = (*TARGET, "__name__", "part_name")
"""One counter of a pod: a container's, or an interface's."""


def parse(fetched: Fetched, settings: Settings, pods: Collection[tuple[str, str]]) -> Parsed:
    """The rows of raw.pod_samples and raw.rejections of a stretch, for these (namespace, pod)."""
    rejections = Rejections(settings)
    note(fetched, "cadvisor", rejections)
    parts, frame = _numbered(fetched.data, pods)
    total = kept(fetched)
    if frame.is_empty():
        return Parsed(list(rejections.batches()), Counts(unused=total))
    reason = _why_none().alias("reason")
    bad = frame.select("part", reason).drop_nulls().join(parts, on="part")
    for name, why, times in (
        bad.group_by("__name__", "reason", maintain_order=True).agg(pl.len()).iter_rows()
    ):
        day = day_before(fetched.segment.end, settings.zone)
        rejections.add(day, query(fetched, name), why, name, times)
    good = frame.filter(_why_none().is_null())
    once = _told_once(good)
    whole = _whole(once)
    counts = Counts(
        reading=whole.height,
        copy=good.height - once.height,
        rejected=bad.height,
        unused=total - frame.height + once.height - whole.height,
    )
    return Parsed([*_rows(whole, parts, settings), *rejections.batches()], counts)


def _numbered(
    data: list[Samples], pods: Collection[tuple[str, str]]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The counters of these pods, and their samples, by the numbers of target, part, quantity."""
    pieces = [_of(one, pods) for one in data]
    every = (
        pl.concat(
            [
                pl.DataFrame(schema=dict.fromkeys(PART, pl.String())),
                *(piece.select(PART) for piece in pieces),
            ]
        )
        .unique()
        .sort(PART)
    )
    targets = every.select(TARGET).unique().sort(TARGET).with_row_index("target")
    parts = every.with_row_index("part").join(targets, on=TARGET, maintain_order="left")
    parts = parts.with_columns(
        pl.col("__name__").replace_strict(PLACES, return_dtype=pl.Int8()).alias("quantity")
    )
    frames = []
    for one, piece in zip(data, pieces, strict=True):
        mine = piece.join(parts, on=PART).select("series_number", "target", "part", "quantity")
        at = pl.col("at").cast(pl.Int64()) // 1000
        samples = one.samples.join(mine, on="series_number")
        frames.append(samples.select("target", "part", "quantity", at, "value"))
    return parts, pl.concat(frames) if frames else pl.DataFrame()


def _of(data: Samples, pods: Collection[tuple[str, str]]) -> pl.DataFrame:
    """The series that are counters of these pods, each with the counter's keys."""
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
        pl.when(is_container)
        .then(pl.concat_str(container, "cpu", "device", separator="/", ignore_nulls=True))
        .when(is_interface)
        .then(pl.col("interface"))
        .alias("part_name"),
    ).drop_nulls(["namespace_name", "pod_name", "part_name"])
    given = pl.DataFrame(list(pods), schema=["namespace_name", "pod_name"], orient="row")
    given = given.cast(pl.String())
    return series.join(given, on=["namespace_name", "pod_name"], how="semi")


def _why_none() -> pl.Expr:
    """The reason why a value is no reading; null where it is one."""
    value = pl.col("value")
    return (
        pl.when(value.is_null() | value.is_nan())
        .then(pl.lit("not_a_number"))
        .when(value < 0)
        .then(pl.lit("negative_reading"))
        .when(value.is_infinite())
        .then(pl.lit("out_of_range"))
    )


def _told_once(good: pl.DataFrame) -> pl.DataFrame:
    """Each counter once at each time of its pod: the times of the counter that is told most often.

    Of two that tell the same counter at once, the greater counts: the container's latest run.
    """
    often = good.group_by("target", "part").len().sort("len", "part", descending=[True, False])
    lead = often.unique("target", keep="first", maintain_order=True)["part"]
    times = good.filter(pl.col("part").is_in(lead.implode())).select("target", "at").unique()
    if good.join(times, on=["target", "at"], how="anti").height:
        near = times.with_columns(pl.col("at").alias("near")).sort("at")
        good = good.sort("at").join_asof(
            near, on="at", by="target", strategy="nearest", tolerance=NEAR, check_sortedness=False
        )
        good = good.with_columns(pl.coalesce("near", "at").alias("time")).drop("near")
    else:
        good = good.with_columns(pl.col("at").alias("time"))
    return good.sort("at", "value", descending=True).unique(
        ["part", "time"], keep="first", maintain_order=True
    )


def _whole(once: pl.DataFrame) -> pl.DataFrame:
    """Without the times at which a counter is missing that goes on afterwards.

    A sum without it would look as if the pod had begun anew.
    """
    lives = once.group_by("target", "quantity", "part").agg(
        pl.col("time").min().alias("first"), pl.col("time").max().alias("last")
    )
    cell = ["target", "quantity", "time"]
    there = once.group_by(cell).len("there")
    expected = (
        there.join(lives.drop("part"), on=["target", "quantity"])
        .filter(pl.col("time").is_between("first", "last"))
        .group_by(cell)
        .agg(pl.len().alias("expected"))
    )
    whole = there.join(expected, on=cell).filter(pl.col("there") == pl.col("expected"))
    return once.join(whole, on=cell, how="semi")


def _rows(whole: pl.DataFrame, parts: pl.DataFrame, settings: Settings) -> list[Batch]:
    if whole.is_empty():
        return []
    columns = [
        pl.col("value").filter(pl.col("quantity") == PLACES[name]).alias(quantity)
        for name, quantity in QUANTITIES.items()
    ]
    summed = whole.group_by("target", "time").agg(
        pl.when(column.count() > 0).then(column.sum()) for column in columns
    )
    at = (pl.col("time") * 1000).cast(INSTANT)
    rows = summed.join(parts.select("target", *TARGET).unique(), on="target")
    rows = rows.sort("target", "time").with_columns(
        pl.lit(settings.cluster).alias("cluster_name"),
        day_on(at, settings.zone).alias("day_on"),
        at.alias("sampled_at"),
    )
    return [Batch(POD_SAMPLES.name, POD_SAMPLES.conform(rows.drop("time", "target")))]
