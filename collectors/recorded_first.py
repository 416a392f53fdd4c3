"""Two sources of one cluster's objects: where a recorder has an object on a day, its rows win.

Pure functions on frames of one cluster's raw rows; which source is read for which time belongs to
`pipelines`. Rows of kube-state-metrics are those that `kube_state` made, carried ones included.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import polars as pl

from collectors.batches import TABLES
from collectors.kube_state_objects import MADE

COVERAGE = TABLES["raw.coverage"]
RANKS = {"watched": 0, "table": 0, "sampled": 1, "list_only": 2, "before_first_seen": 3}
"""What is known best comes first; of gaps the recorder's own word counts."""
DAY = ["cluster_name", "day_on"]


def pods(sampled: pl.DataFrame, recorded: pl.DataFrame) -> pl.DataFrame:
    """The sampled versions of pods that the recorder has not that day."""
    return sampled.join(recorded.select(*DAY, "pod_uid").unique(), on=[*DAY, "pod_uid"], how="anti")


def nodes(sampled: pl.DataFrame, recorded: pl.DataFrame) -> pl.DataFrame:
    """The sampled versions of nodes that the recorder has not that day.

    Their uids differ, so a node goes by its name and its creation, to the second; a name of which
    either does not tell the creation goes by itself.
    """
    known = recorded.select(*DAY, "node_name", _created()).unique()
    told = sampled.with_columns(_created())
    same = [*DAY, "node_name"]
    unsure = known.filter(pl.col("second").is_null())
    rest = told.join(known, on=[*same, "second"], how="anti").join(unsure, on=same, how="anti")
    vague = rest.filter(pl.col("second").is_null()).join(known, on=same, how="anti")
    return pl.concat([rest.drop_nulls("second"), vague]).drop("second")


def carried_nodes(staged: pl.DataFrame) -> pl.DataFrame:
    """All versions of nodes of a lake's days, without those whose uid we made where one is known.

    For the days after a recorder began: what was carried into them has the uid that we made.
    """
    is_made = pl.col("node_uid").str.starts_with(MADE)
    kept = nodes(staged.filter(is_made), staged.filter(~is_made))
    return pl.concat([staged.filter(~is_made), kept])


def namespaces(sampled: pl.DataFrame, recorded: pl.DataFrame) -> pl.DataFrame:
    """The sampled versions of namespaces that the recorder has not that day."""
    same = [*DAY, "namespace_name"]
    return sampled.join(recorded.select(same).unique(), on=same, how="anti")


def coverage(sampled: pl.DataFrame, recorded: pl.DataFrame) -> pl.DataFrame:
    """The stretches of both, each second once: watched wins, and sampled fills what it lacks."""
    both = pl.concat([recorded.with_columns(source=0), sampled.with_columns(source=1)])
    rows = [
        row
        for _, day in both.group_by(DAY, maintain_order=True)
        for row in _tiled(list(day.iter_rows(named=True)))
    ]
    return pl.DataFrame(rows, schema=COVERAGE.schema).sort(*DAY, "begin_at")


def renewed(old: pl.DataFrame, new: pl.DataFrame) -> pl.DataFrame:
    """The new stretches, and the old ones where there is none of them."""
    spans = [(row["begin_at"], row["end_at"]) for row in new.iter_rows(named=True)]
    left = []
    for row in old.iter_rows(named=True):
        rest = [(row["begin_at"], row["end_at"])]
        for begin, end in spans:
            rest = [
                (a, b)
                for since, until in rest
                for a, b in ((since, min(until, begin)), (max(since, end), until))
                if a < b
            ]
        left += [row | {"begin_at": a, "end_at": b} for a, b in rest]
    return pl.concat([pl.DataFrame(left, schema=COVERAGE.schema), new]).sort(*DAY, "begin_at")


def _created() -> pl.Expr:
    return pl.col("created_at").dt.truncate("1s").alias("second")


def _tiled(stretches: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The stretches of one day, cut where one begins or ends; neighbours alike are one."""
    edges = sorted({edge for each in stretches for edge in (each["begin_at"], each["end_at"])})
    held: dict[str, Any] | None = None
    for begin, end in pairwise(edges):
        here = [s for s in stretches if s["begin_at"] <= begin and s["end_at"] >= end]
        if not here:
            continue
        piece = _best(here) | {"begin_at": begin, "end_at": end}
        if held and held["end_at"] == begin and _is_alike(held, piece):
            held["end_at"] = end
            continue
        if held:
            yield held
        held = piece
    if held:
        yield held


def _best(here: Iterable[dict[str, Any]]) -> dict[str, Any]:
    best = min(here, key=lambda each: (RANKS.get(each["coverage_name"], 4), each["source"]))
    known = any(each["is_inventory_known"] for each in here)
    return {name: best[name] for name in COVERAGE.schema} | {"is_inventory_known": known}


def _is_alike(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(one[name] == other[name] for name in one if name not in ("begin_at", "end_at"))
