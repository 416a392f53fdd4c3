"""The readings of a stretch as rows of raw.gpu_samples, and its labels as rows of raw.gpu_series.

What is a reading belongs to `dcgm`.
"""

from collections.abc import Iterator

import polars as pl

from collectors import dcgm_labels
from collectors.dcgm_hour import Hour
from collectors.prometheus_selectors import quoted
from collectors.source import Batch
from collectors.tallies import day_on, query
from models.raw_metrics import GPU_SAMPLES, GPU_SERIES
from models.table import Kind

MOST_ROWS = 200_000
OTHERS = ("gpu_number", "gpu_model_name", "gpu_product_name", "mig_profile_name", "label")
"""What a row of labels says besides; of several the first in the alphabet."""
COLUMNS = tuple(c.name for c in GPU_SAMPLES.columns if c.nullable)


def samples(hour: Hour) -> Iterator[Batch]:
    """The rows of raw.gpu_samples, device by device."""
    keys = [*(frame["key"] for frame in hour.readings.values()), *hour.refused]
    if not keys:
        return
    wide = pl.DataFrame({"key": pl.concat(keys).unique().sort()})
    for quantity in COLUMNS:
        column = pl.lit(None, pl.Float64()).alias(quantity)
        if (found := hour.readings.pop(quantity, None)) is not None:
            if found.height == wide.height:
                column = found["reading"].alias(quantity)
            else:
                found = found.rename({"reading": quantity})
                wide = wide.join(found, on="key", how="left", maintain_order="left")
                continue
        wide = wide.with_columns(column)
    refused = pl.concat([pl.Series("key", dtype=pl.Int64()), *hour.refused])
    counted = refused.to_frame().group_by("key").agg(pl.len().alias("rejected_count"))
    wide = wide.join(counted, on="key", how="left", maintain_order="left")
    devices = hour.series.unique("device").sort("device")
    names = ["node_name", "gpu_uuid", "instance_number"]
    for rows in wide.iter_slices(MOST_ROWS):
        device = rows["key"] // hour.length
        at = hour.at(pl.col("key"))
        frame = rows.with_columns(
            pl.lit(hour.rejections.settings.cluster).alias("cluster_name"),
            at.alias("sampled_at"),
            day_on(at, hour.zone).alias("day_on"),
            *(devices[name].gather(device) for name in names),
            pl.col("rejected_count").fill_null(0).cast(pl.Int64()),
            *(
                pl.col(c.name).cast(pl.Int64())
                for c in GPU_SAMPLES.columns
                if c.nullable and c.kind is Kind.COUNT
            ),
        )
        yield Batch(GPU_SAMPLES.name, GPU_SAMPLES.conform(frame.drop("key")))


def labels(hour: Hour) -> Iterator[Batch]:
    """The rows of raw.gpu_series."""
    if not hour.times:
        return
    every = pl.DataFrame({"key": pl.concat(hour.times).unique().sort()})
    at = hour.at(pl.col("key"))
    spans = (
        every.select(
            (pl.col("key") // hour.length).alias("row"),
            at.alias("at"),
            day_on(at, hour.zone).alias("day_on"),
        )
        .group_by("row", "day_on", maintain_order=True)
        .agg(
            pl.col("at").min().alias("begin_at"),
            pl.col("at").max().alias("end_at"),
            pl.len().cast(pl.Int64()).alias("sample_count"),
        )
    )
    told = pl.concat(
        [
            pl.DataFrame({"row": rows}).with_columns(pl.lit(place).alias("place"))
            for place, (_, rows) in enumerate(hour.told)
        ]
    )
    names = dict(enumerate(quantity for quantity, _ in hour.told))
    metrics = told.group_by("row").agg(
        pl.col("place")
        .sort()
        .replace_strict(names, return_dtype=pl.String())
        .str.join(",")
        .alias("metrics_text")
    )
    used = hour.series.filter(pl.col("quantity").is_not_null())
    label = (
        pl.when(pl.col("UUID").is_not_null())
        .then(pl.lit("UUID"))
        .when(pl.col("uuid").is_not_null())
        .then(pl.lit("uuid"))
        .otherwise(pl.lit("gpu_uuid"))
    )
    rows = (
        used.with_columns(label.alias("label"))
        .group_by("row")
        .agg(
            *(pl.col(name).first() for name in dcgm_labels.SERIES),
            *(pl.col(name).min() for name in OTHERS),
            *(_all_of(name) for name in ("hpc_job_name", "claim_name")),
        )
    )
    frame = spans.join(rows, on="row").join(metrics, on="row", how="left").sort("row", "day_on")
    refs = [
        query(hour.fetched, f"{{{label}={quoted(uuid)}}}")
        for label, uuid in frame.select("label", "gpu_uuid").iter_rows()
    ]
    frame = frame.with_columns(
        pl.lit(hour.rejections.settings.cluster).alias("cluster_name"),
        pl.col("metrics_text").fill_null(""),
        pl.Series("source_ref", refs, pl.String()),
    )
    yield Batch(GPU_SERIES.name, GPU_SERIES.conform(frame.drop("row", "label")))


def _all_of(name: str) -> pl.Expr:
    """All that the series of a row say, by comma; null where none says any."""
    joined = pl.col(name).drop_nulls().unique().sort().str.join(",")
    return pl.when(pl.col(name).is_not_null().any()).then(joined).otherwise(None).alias(name)
