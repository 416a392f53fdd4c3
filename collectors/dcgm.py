"""An hour of DCGM's series as rows: a reading of each quantity of a device at each scrape, once.

Which device and whose it is belongs to `dcgm_labels`, which values are none to `dcgm_names`, what a
GPU was doing to `sql`. Nothing is summed here and nothing averaged: of several series that tell one
quantity of a device at one time, the one that names no pod counts, for it is the device's own; else
the greatest, for what is told by pod is the device's value or a part of it.
"""

import polars as pl

from collectors.dcgm_hour import Hour, numbered
from collectors.dcgm_names import (
    BLANK_FP64,
    FIELDS,
    NVLINK,
    NVLINK_RECEIVED,
    NVLINK_SENT,
    QUANTITIES,
    Field,
)
from collectors.dcgm_rows import labels, samples
from collectors.prometheus import Fetched
from collectors.prometheus_selectors import quoted
from collectors.rejections import Rejections
from collectors.source import Settings
from collectors.tallies import Counts, Parsed, day_before, day_on, instant, kept, note, query
from models.table import INSTANT


def parse(fetched: Fetched, settings: Settings) -> Parsed:
    """The rows of raw.gpu_samples, raw.gpu_series and raw.rejections of a stretch."""
    rejections = Rejections(settings)
    note(fetched, "dcgm", rejections)
    if not kept(fetched):  # as most hours of a recording that is younger than the window
        return Parsed(list(rejections.batches()), Counts())
    hour = Hour(fetched, *numbered(fetched), rejections)
    _refuse_series(hour)
    _note_aside(hour)
    for quantity in QUANTITIES:
        _read(hour, quantity)
    _join_nvlink(hour)
    assert hour.counts.kept == kept(fetched), "a sample was counted twice, or not at all"
    return Parsed(
        [*samples(hour), *labels(hour), *rejections.batches()],
        hour.counts,
    )


def _refuse_series(hour: Hour) -> None:
    """Counts what no column holds, and refuses series that do not say which device they are of."""
    unused = hour.series.filter(pl.col("field").is_null())["samples"].sum()
    hour.counts += Counts(unused=int(unused))
    found = hour.series.filter(pl.col("field").is_not_null() & pl.col("fault").is_not_null())
    day = day_before(hour.fetched.segment.end, hour.zone)
    by = found.group_by("__name__", "fault", maintain_order=True)
    for name, fault, times, exporter in by.agg(
        pl.col("samples").sum(), pl.col("exporter_name").first()
    ).iter_rows():
        example = f"{name} of exporter {exporter}"
        hour.rejections.add(day, query(hour.fetched, name), fault, example, times)
        hour.counts += Counts(rejected=times)


def _note_aside(hour: Hour) -> None:
    """Counts readings whose owner is not known: their label stands at several places at once."""
    found = hour.series.filter(pl.col("quantity").is_not_null() & pl.col("aside").is_not_null())
    day = day_before(hour.fetched.segment.end, hour.zone)
    by = found.sort("aside", "aside_label", "node_name", "gpu_uuid").group_by(
        "aside", "aside_label", maintain_order=True
    )
    nodes, gpus = pl.col("node_name").unique(maintain_order=True), pl.col("gpu_uuid").unique()
    for aside, label, times, told, number in by.agg(
        pl.col("samples").sum(), nodes.head(3).str.join(", "), gpus.len()
    ).iter_rows():
        space, _, pod = aside.partition("/")
        place = query(hour.fetched, f"{{{label}={quoted(pod)}}}")
        example = f"{pod} of namespace {space or 'not told'} on {number} GPUs, of {told}"
        hour.rejections.add(day, place, "label_on_several_nodes", example, times)


def _why_none(field: Field) -> pl.Expr:
    """The reason why a raw value is no reading; null where it is one."""
    value = pl.col("value")
    is_blank = (value >= field.blank_from) | value.is_between(*BLANK_FP64, closed="left")
    is_beyond = value > field.maximum
    if field.is_whole:
        is_beyond |= value != value.floor()
    return (
        pl.when(value.is_null() | value.is_nan())
        .then(pl.lit("not_a_number"))
        .when(value < 0)
        .then(pl.lit("negative_reading"))
        .when(value.is_infinite())
        .then(pl.lit("out_of_range"))
        .when(is_blank)
        .then(pl.lit("sentinel"))
        .when(is_beyond)
        .then(pl.lit("out_of_range"))
    )


def _read(hour: Hour, quantity: str) -> None:
    """All samples of a quantity: refused, taken, or found to be copies."""
    frames = [s.filter(pl.col("quantity") == quantity).drop("quantity") for s in hour.samples]
    frame = pl.concat(frames) if frames else pl.DataFrame()
    if frame.is_empty():
        return
    frame = frame.with_columns(
        hour.keys(frame, "device").alias("key"),
        hour.series["field"].gather(frame["id"]).alias("field"),
    )
    hour.times.append(hour.keys(frame, "row").unique())
    numbers = frame["field"].unique().sort().to_list()
    reason, value = pl.lit(None, pl.String()), pl.col("value")
    for number in numbers:
        is_it = pl.col("field") == number
        reason = pl.when(is_it).then(_why_none(FIELDS[number])).otherwise(reason)
    if any(FIELDS[number].factor != FIELDS[number].divisor for number in numbers):
        # By a column: a division by a literal becomes a product with its inverse, which is not it.
        value = value * _of_field(numbers, "factor") / _of_field(numbers, "divisor")
    frame = frame.with_columns(
        reason.alias("reason"),
        value.alias("reading"),
        _of_field(numbers, "preference").alias("preference"),
    )
    split = _of_processes(hour, frame)
    is_good = pl.col("reason").is_null()
    _refuse(hour, frame.filter(~is_good))
    good = frame.filter(is_good)
    hour.told.append((quantity, hour.series["row"].gather(good["id"].unique()).unique()))
    if split is not None:
        parts = good.height
        good = good.join(split, on=["id", "at"], how="anti", maintain_order="left")
        hour.counts += Counts(copy=parts - good.height)
    _take(hour, quantity, good)


def _of_field(numbers: list[int], name: str) -> pl.Expr:
    """What FIELDS says of the field of each sample."""
    values = {number: float(getattr(FIELDS[number], name)) for number in numbers}
    return pl.col("field").replace_strict(values)


def _of_processes(hour: Hour, frame: pl.DataFrame) -> pl.DataFrame | None:
    """The samples that tell a pod's part: their device's own is beside them, and differs.

    The exporter then names the pod by its uid; the parts are told for a split among pods that is
    not made here, for its sum is not the device's value.
    """
    ids = frame.select(pl.col("id").unique())
    some = hour.series.join(ids, on="id").select(
        *("id", "__name__", "device", "exporter_name", "is_bare", "pod_uid")
    )
    of = ["__name__", "device", "exporter_name"]
    bare = some.filter("is_bare")
    parts = some.filter(~pl.col("is_bare") & (pl.col("pod_uid") != "")).join(
        bare, on=of, how="semi"
    )
    if parts.is_empty():
        return None
    mine = frame.select("id", "at")
    beside = mine.join(bare, on="id").select("at", *of)
    return mine.join(parts, on="id").join(beside, on=["at", *of], how="semi").select("id", "at")


def _refuse(hour: Hour, bad: pl.DataFrame) -> None:
    if bad.is_empty():
        return
    hour.refused.append(bad["key"])
    hour.counts += Counts(rejected=bad.height)
    told = bad.with_columns(
        hour.series["__name__"].gather(bad["id"]).alias("name"),
        hour.series["gpu_uuid"].gather(bad["id"]).alias("uuid"),
        day_on((pl.col("at") * 1000).cast(INSTANT), hour.zone).alias("day"),
    ).sort("at", "id")
    first = [pl.col(name).first() for name in ("uuid", "at", "value")]
    by = told.group_by("name", "reason", "day", maintain_order=True).agg(pl.len(), *first)
    for name, reason, day, times, uuid, at, value in by.iter_rows():
        example = f"{name} of {uuid} at {instant(at).isoformat()}: {value}"
        hour.rejections.add(day, query(hour.fetched, name), reason, example, times)


def _take(hour: Hour, quantity: str, good: pl.DataFrame) -> None:
    """One reading for each key; what is left tells it once more."""
    if good.is_empty():
        return
    good = good.with_columns(
        hour.series["is_bare"].gather(good["id"]).alias("is_bare"),
    ).sort("key", "preference", "is_bare", "reading", descending=[False, False, True, True])
    is_first = (pl.col("key") != pl.col("key").shift()).fill_null(True)
    good = good.with_columns(is_first.alias("is_first"))
    taken = good.filter("is_first").select("key", pl.col("reading"))
    hour.readings[quantity] = taken
    hour.counts += Counts(reading=taken.height, copy=good.height - taken.height)
    if taken.height < good.height:
        _note_conflicts(hour, good)


def _note_conflicts(hour: Hour, good: pl.DataFrame) -> None:
    """Series of one field that differ by what they tell of a device at one time."""
    lead = [
        pl.when("is_first").then(pl.col(name)).forward_fill().alias(f"first_{name}")
        for name in ("reading", "field")
    ]
    differs = pl.col("reading") != pl.col("first_reading")
    found = good.with_columns(lead).filter(differs & (pl.col("field") == pl.col("first_field")))
    if found.is_empty():
        return
    series = hour.series.row(found["id"][0], named=True)
    day = day_before(hour.fetched.segment.end, hour.zone)
    place = query(hour.fetched, series["__name__"])
    values = f"{found['first_reading'][0]} and {found['reading'][0]}"
    example = f"{series['gpu_uuid']} at {instant(found['at'][0]).isoformat()}: {values}"
    hour.rejections.add(day, place, "conflicting_reading", example, found.height)


def _join_nvlink(hour: Hour) -> None:
    """What was sent and received is a reading where both are known and the total is not."""
    sent, received = (hour.readings.pop(name, None) for name in (NVLINK_SENT, NVLINK_RECEIVED))
    parts = [part for part in (sent, received) if part is not None]
    if not parts:
        return
    number = sum(part.height for part in parts)
    empty = pl.DataFrame(schema={"key": pl.Int64(), "reading": pl.Float64()})
    total = hour.readings.get(NVLINK, empty)
    both = empty
    if len(parts) == 2:
        pairs = parts[0].join(parts[1], on="key", suffix="_2")
        both = pairs.select("key", pl.col("reading") + pl.col("reading_2"))
    new = both.join(total, on="key", how="anti")
    copies = sum(part.join(total, on="key", how="semi").height for part in parts)
    if new.height:
        hour.readings[NVLINK] = pl.concat([total, new]).sort("key")
    unused = number - copies - 2 * new.height
    hour.counts += Counts(reading=2 * new.height - number, copy=copies, unused=unused)
