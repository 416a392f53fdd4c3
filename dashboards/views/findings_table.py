"""The table of findings that the pages of all and of one workload share."""

import polars as pl

from dashboards.data import Reading
from dashboards.links import links
from dashboards.tables import show
from models.mart_findings import WORKLOAD_FINDINGS
from models.table import Column, Kind
from models.words import word

LINK = Column("workload_url", Kind.TEXT, "What happened to it.")
TIMES = ("gpu_seconds", "finding_cost", "beside_gpu_seconds")
LABELS = {
    "finding_name": "what",
    "workload_name": "of",
    "team_name": "team",
    "since_at": "since",
    "end_at": "until",
    "is_open": "still so",
    "member_count": "pods",
    "evidence_text": "evidence",
    "finding_count": "found",
    "open_count": "still so",
    "gpu_seconds": "held up, GPU-h",
    "beside_gpu_seconds": "beside the ledger, GPU-h",
    "gpu_share": "GPUs",
    "pod_name": "pod",
    "node_name": "node",
    "namespace_name": "namespace",
    "member_state_name": "does",
    "state_since_at": "since",
    "workload_url": "what happened",
}


def labels(reading: Reading) -> dict[str, str]:
    """Headings of columns, with the currency."""
    cost = f"cost, {reading.currency}"
    return {**LABELS, "finding_cost": cost, "member_cost": cost}


def findings(reading: Reading, rows: pl.DataFrame, *, of_one: bool = False) -> None:
    """A table of findings with their evidence; of many workloads, with the way to each."""
    if rows.is_empty():
        return
    names = ("finding_name", "workload_name", "team_name", "since_at", "end_at", "is_open")
    specs = [WORKLOAD_FINDINGS.column(n) for n in (*names, "member_count", *TIMES)]
    if not rows["beside_gpu_seconds"].sum():
        specs.pop()
    specs.append(WORKLOAD_FINDINGS.column("evidence_text"))
    if of_one:
        specs = [spec for spec in specs if spec.name not in ("workload_name", "team_name")]
    else:
        specs.append(LINK)
        if len(reading.clusters) > 1:
            specs.insert(2, WORKLOAD_FINDINGS.column("cluster_name"))
    rows = rows.with_columns(links("workload", "workload", rows["workload_key_uid"]))
    show(
        rows,
        specs,
        name=reading.file("findings"),
        key="findings",
        title="What went wrong?" if of_one else "Which findings?",
        caption="Those that held up most first, at most 200. One second of a pod may be in "
        "findings of different kinds: they do not add up.",
        currency=reading.currency,
        labels=labels(reading),
        shown=rows.with_columns(
            pl.col("finding_name").map_elements(word, return_dtype=pl.String),
            pl.when("is_open").then(pl.lit("yes")).otherwise(pl.lit("no")).alias("is_open"),
        ),
    )
