"""Pods that are no workload, for GPUs of several nodes carry their name at the same time.

Which label is a pod's belongs to `dcgm_labels`. A pod is on one node, so under its name one index
is one GPU's; what another hop on the way puts on all that it forwards is on many.
"""

from collections.abc import Sequence

import polars as pl

from collectors.prometheus_answers import Samples

INDEX = ("place", "pod", "gpu")
MOST_INTERVALS = 1.5
"""A GPU that is silent under a pod for longer than so many usual intervals is not its meanwhile."""


def proxies(named: pl.DataFrame, data: Sequence[Samples]) -> list[str]:
    """The pods of `named` that are on several GPUs of one index at once.

    A row is a series (`piece`, `series_number`, `gpu`, `gpu_uuid`) with a `pod` that it names.
    """
    named = named.drop_nulls(["gpu", "gpu_uuid"])
    spans = named.group_by(*INDEX, "gpu_uuid").agg(pl.col("begin").min(), pl.col("end").max())
    suspects = named.join(_at_once(spans), on="pod", how="semi")
    # From first to last is no proof: a pod of one name may come back to where it was.
    return [] if suspects.is_empty() else _at_once(_stretches(suspects, data))["pod"].to_list()


def _at_once(spans: pl.DataFrame) -> pl.DataFrame:
    """The pods of which two spans of one index have a moment in common."""
    spans = spans.sort("begin", "gpu_uuid")
    before = pl.col("end").shift().cum_max().over(INDEX)
    return spans.filter(pl.col("begin") <= before).select("pod").unique().sort("pod")


def _stretches(named: pl.DataFrame, data: Sequence[Samples]) -> pl.DataFrame:
    """When each GPU was seen under a pod without a break; one metric of it, its fullest, tells.

    A label may hang on for a sample after its pod has gone: the last of three or more is left out.
    """
    of = [*INDEX, "gpu_uuid"]
    fullest = (
        named.group_by(*of, "__name__")
        .agg(pl.col("samples").sum())
        .sort("samples", "__name__", descending=[True, False])
        .unique(of, keep="first")
    )
    some = named.join(fullest, on=[*of, "__name__"], how="semi")
    frames = [
        each.samples.join(some.filter(pl.col("piece") == piece), on="series_number").select(
            *of, "piece", "series_number", (pl.col("at").cast(pl.Int64()) // 1000).alias("at")
        )
        for piece, each in enumerate(data)
    ]
    times = pl.concat(frames).sort("at")
    # Of one series: those of two replicas lie closer together.
    gap = pl.col("at").diff().over(*of, "piece", "series_number")
    usual = times.with_columns(gap.alias("gap")).group_by(INDEX).agg(pl.col("gap").median())
    times = times.select(*of, "at").unique().join(usual, on=INDEX).sort("at")
    is_new = pl.col("at").diff().over(of) > MOST_INTERVALS * pl.col("gap")
    number = is_new.fill_null(True).cast(pl.Int64()).cum_sum().over(of)
    at = pl.col("at")
    last = pl.when(pl.len() > 2).then(at.sort().get(-2, null_on_oob=True)).otherwise(at.max())
    return times.group_by(*of, number.alias("number")).agg(
        at.min().alias("begin"), last.alias("end")
    )
