"""The part of `idle` that is not about now: episodes that are over, and findings.

It is no page of its own; what its tables and those of `idle` have in common stands here.
"""

import polars as pl
import streamlit as st

from dashboards.data import Reading
from dashboards.idling import COLUMNS, FINDINGS, GPUS, PRICED, by_pod
from dashboards.tables import show
from models.mart_gpus import EPISODES, GPU_FINDINGS
from models.table import Column, Kind
from models.words import FINDINGS as FOUND

LABELS = {
    "gpus_text": "GPUs",
    "shown_name": "state",
    "since_at": "since",
    "until_at": "until",
    "episode_seconds": "for",
    "likely_cause_name": "likely cause",
    "evidence_text": "why we think so",
    "utilisation_ratio": "GPU_UTIL",
    "sm_ratio": "SM, most",
    "memory_used_mib": "memory, MiB",
    "power_watts": "power, W",
    "rest_watts": "at rest, W",
    "last_active_at": "last active",
    "contacts_text": "contact",
    "user_name": "submitted by",
    "gpu_uuids_text": "UUIDs",
    "gpu_uuid": "UUID",
    "gpu_model_name": "GPU model",
    "workload_url": "link",
    "priced_ratio": "priced",
    "finding_name": "finding",
    "gpu_seconds": "GPU-h",
    "instance_number": "instance",
}
CLOCK = "Lengths are hours:minutes:seconds."


def columns(reading: Reading, rows: pl.DataFrame) -> list[Column]:
    """The columns of pods: without what is the same in every row."""
    found = list(COLUMNS)
    if len(reading.clusters) > 1:
        found.insert(-3, EPISODES.column("cluster_name"))
    if rows["unpriced_gpu_seconds"].sum():
        found.insert(8, PRICED)
    return found


def labels(reading: Reading) -> dict[str, str]:
    """What the tables' heads say."""
    currency = reading.currency
    return {
        **LABELS,
        "per_day_cost": f"a day, {currency}",
        "episode_cost": f"so far, {currency}",
        "finding_cost": f"cost, {currency}",
    }


def worded(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with causes in plain letters."""
    return rows.with_columns(pl.col("likely_cause_name").str.replace_all("_", " "))


def ended(reading: Reading, rows: pl.DataFrame) -> None:
    """Those of the period that are over."""
    if rows.is_empty():
        st.subheader("Which were idle before?")
        st.markdown("None of the period that is over, with these filters.")
        return
    pods = by_pod(rows).sort("episode_cost", "gpu_seconds", descending=True, nulls_last=True)
    specs = [c for c in columns(reading, pods) if c.name != "per_day_cost"]
    specs.insert(specs.index(EPISODES.column("since_at")) + 1, EPISODES.column("until_at"))
    show(
        pods.head(500),
        specs,
        name=reading.file("idle-before"),
        key="idle-before",
        title="Which were idle before?",
        caption=f"Over by now; {reading.period}, the dearest first, at most 500 pods. {CLOCK}",
        currency=reading.currency,
        labels=labels(reading),
        shown=worded(pods.head(500)),
    )


def findings(reading: Reading) -> None:
    """What does not fit together."""
    rows = reading.rows(FINDINGS)
    if rows.is_empty():
        st.subheader("What else does not fit?")
        st.markdown("Nothing was found in this period.")
        return
    meaning = Column("meaning_text", Kind.TEXT, "What the finding means.")
    of = pl.col("of_gpu_count").cast(pl.String)
    gpus = pl.col("gpu_count").cast(pl.String) + pl.when(of.is_null()).then(
        pl.lit("")
    ).otherwise(pl.lit(" of ") + of)  # fmt: skip
    rows = rows.with_columns(
        meaning_text=pl.col("finding_name").replace_strict(FOUND, default=""), gpus_text=gpus
    )
    names = ("workload_name", "team_name", "gpus_text", "gpu_seconds", "finding_cost",
             "evidence_text", "begin_at", "end_at", "pod_name", "node_name",
             "gpu_uuids_text")  # fmt: skip
    given = {c.name: c for c in GPU_FINDINGS.columns} | {"gpus_text": GPUS}
    show(
        rows,
        [meaning, *(given[name] for name in names)],
        name=reading.file("findings"),
        key="findings",
        title="What else does not fit?",
        caption=f"Held against measured, {reading.period}; one row a day, the dearest first.",
        currency=reading.currency,
        labels={**labels(reading), "meaning_text": "finding", "begin_at": "from", "end_at": "to"},
        shown=rows.with_columns(pl.col("team_name").replace("__unallocated__", "nobody")),
    )
