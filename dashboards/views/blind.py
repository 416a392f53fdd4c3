"""What are we blind to? Which quantity, on which nodes, since when, why, and what it costs us.

What was held while nothing measured it; what of Prometheus could not be read; what was refused.
"""

import polars as pl
import streamlit as st

from dashboards.data import Reading
from dashboards.headlines import card
from dashboards.sight import (
    BLIND_COLUMNS,
    FAMILIES,
    METRICS,
    NAMES,
    NODE_COLUMNS,
    NODES,
    READ_COLUMNS,
    READS,
    REFUSED,
    REFUSED_COLUMNS,
    SIGHT,
    TOLD_OF_EXPECTED,
    as_one,
    said_once,
)
from dashboards.tables import show
from dashboards.use import over
from dashboards.views.blind_map import sight_map
from models.figures import NONE, hours, percent, ratio
from models.mart_gpus import USE_HOURS
from models.table import Column

ENOUGH = 0.98
"""Told less than this, a quantity is a blind spot; a sample late or lost is none."""
LABELS = {
    "quantity_text": "not told",
    "nodes_text": "nodes",
    "since_text": "since",
    "reason_text": "why",
    "evidence_text": "so we do not know",
    "names_text": "which nodes",
    "told_ratio": "told",
    "gpu_model_name": "GPU model",
    "held_gpu_seconds": "held, GPU-h",
    "unobserved_gpu_seconds": "not measured, GPU-h",
    "observed_ratio": "measured",
    "sm_known_ratio": "SM known",
    "family_name": "metrics",
    "read_name": "read",
    "begin_at": "from",
    "end_at": "to",
    "stretch_seconds": "for",
    "try_count": "tries",
    "source_ref": "where",
    "reason_name": "reason",
    "kind_text": "row",
    "rejected_count": "how many",
    "first_on": "first",
    "last_on": "last",
    "mend_text": "how to mend it",
    "example_text": "example",
}


def blind_spots(reading: Reading, sight: pl.DataFrame) -> pl.DataFrame:
    """One row for each quantity that is not told on some nodes, the same reason and begin."""
    rows = sight.with_columns(told_ratio=TOLD_OF_EXPECTED)
    short = rows.filter((pl.col("told_ratio") < ENOUGH) | pl.col("is_blind_now"))
    short = said_once(short, ENOUGH)
    counts = sight.group_by("cluster_name").agg(all_count=pl.col("node_uid").n_unique())
    # A day of which it told a part has no reason of its own.
    fell = pl.when("is_blind_now").then(pl.lit("it fell silent")).otherwise(pl.lit("gaps"))
    groups = short.with_columns(
        since_text=since(reading), reason_text=pl.coalesce("reason_text", fell)
    ).group_by(
        "cluster_name", "metric_name", "since_text", "reason_text", maintain_order=True
    ).agg(
        node_count=pl.len(),
        names_text=pl.col("node_name").str.join(" "),
        expected_gpu_seconds=pl.col("expected_gpu_seconds").sum(),
        told_gpu_seconds=pl.col("told_gpu_seconds").sum(),
    )  # fmt: skip
    order = {name: place for place, name in enumerate(METRICS)}
    return groups.join(counts, on="cluster_name").with_columns(
        quantity_text=pl.col("metric_name").replace(NAMES),
        evidence_text=pl.col("metric_name").replace_strict(
            {n: cost for n, (_, cost) in METRICS.items()}, default="What rests on it."
        ),
        nodes_text=pl.format("{} of {}", "node_count", "all_count"),
        told_ratio=TOLD_OF_EXPECTED,
    ).sort(
        pl.col("metric_name").replace_strict(order, default=len(order)), "cluster_name",
        "told_ratio", "names_text",
    )  # fmt: skip


def since(reading: Reading) -> pl.Expr:
    """Since when it is not told, in words: never in the period, since an instant, or at times."""
    last = pl.col("last_told_at").dt.convert_time_zone(reading.zone)
    return (
        pl.when(last.is_null())
        .then(pl.lit(f"before {reading.period.begin_on}"))
        .when("is_blind_now")
        .then(last.dt.strftime("%Y-%m-%d %H:%M"))
        .otherwise(pl.lit("at times"))
    )


def cards(
    sight: pl.DataFrame, nodes: pl.DataFrame, read: pl.DataFrame, refused: pl.DataFrame
) -> None:
    """Held time measured, SM known, nodes that tell nothing now, readings refused."""
    held, unobserved, known = (
        float(nodes[f"{n}_gpu_seconds"].sum() or 0) for n in ("held", "unobserved", "sm_observed")
    )
    exporters = sight.filter(metric_name="any")
    silent = exporters.filter("is_blind_now").height
    refusals, readings = (int(read[f"{n}_count"].sum() or 0) for n in ("rejected", "reading"))
    lost = int(refused.filter("is_row_lost")["rejected_count"].sum() or 0)
    first, second, third, fourth = st.columns(4)
    with first:
        card(
            "Held time measured",
            percent(ratio(held - unobserved, held)),
            note=f"{hours(unobserved)} were not"
            if held
            else "not computed for this period"
            if nodes.is_empty()
            else "nothing was held",
            doc="The rest is unobserved: neither work nor waste is known of it.",
        )
    with second:
        card(
            "SM activity known",
            percent(ratio(known, held)),
            note="of the held time",
            doc="Without it there is no utilisation ratio.",
        )
    with third:
        card(
            "Nodes that tell nothing now",
            f"{silent:,}" if exporters.height else NONE,
            note=f"of {exporters.height:,} with GPUs",
            doc="No sample in the last 15 minutes of what is known.",
        )
    with fourth:
        card(
            "Readings refused",
            f"{refusals:,}" if read.height else NONE,
            note=f"{percent(ratio(refusals, refusals + readings))} of the samples"
            + (f" · {lost:,} rows lost" if lost else ""),
            doc="Sentinels, impossible values and the like: counted, and never taken for zero.",
        )


def spots(reading: Reading, sight: pl.DataFrame) -> None:
    """The blind spots in words, and as a map."""
    if sight.is_empty():
        st.subheader("What is not told?")
        st.markdown(
            "**Everything**: no metric of any GPU was read for this period, so all held time is "
            "unobserved. Add a `prometheus` source; `gpuledger doctor` says what is missing."
        )
        return
    rows = blind_spots(reading, sight)
    if rows.is_empty():
        st.subheader("What is not told?")
        st.markdown("Nothing: every quantity was told on every node with GPUs.")
        return
    show(
        rows,
        with_cluster(reading, BLIND_COLUMNS),
        name=reading.file("blind-spots"),
        key="blind",
        title="What is not told?",
        caption="The gravest first. At times: not always, but told at the end of what is known.",
        labels=LABELS,
    )
    sight_map(reading, sight, ENOUGH)


def with_cluster(reading: Reading, columns: tuple[Column, ...]) -> list[Column]:
    """The columns, with the cluster where there are several."""
    first = [USE_HOURS.column("cluster_name")] if len(reading.clusters) > 1 else []
    return [*first, *columns]


def unobserved(reading: Reading, nodes: pl.DataFrame) -> None:
    """By node, what was held while nothing measured it."""
    if nodes.is_empty():
        return
    held = pl.col("held_gpu_seconds")
    rows = nodes.with_columns(
        observed_ratio=1 - over(pl.col("unobserved_gpu_seconds"), held),
        sm_known_ratio=over(pl.col("sm_observed_gpu_seconds"), held),
    )
    rows = rows.filter((pl.col("observed_ratio") < ENOUGH) | (pl.col("sm_known_ratio") < ENOUGH))
    if rows.is_empty():
        st.subheader("Where was held time not measured?")
        st.markdown(f"Nowhere: on every node at least {percent(ENOUGH)} of it was.")
        return
    show(
        rows.head(500),
        with_cluster(reading, NODE_COLUMNS),
        name=reading.file("unobserved-nodes"),
        key="unobserved",
        title="Where was held time not measured?",
        caption=f"Nodes where under {percent(ENOUGH)} of the held time was measured, or its SM "
        "activity known.",
        labels=LABELS,
    )


def reads(reading: Reading, rows: pl.DataFrame) -> None:
    """What of the metrics could not be read."""
    st.subheader("What could not be read?")
    if rows.is_empty():
        st.markdown("No Prometheus was read for this period.")
        return
    is_read = pl.col("read_name").is_in(["complete", "open"])
    shares = rows.group_by("family_name").agg(
        whole=pl.col("stretch_seconds").sum(),
        read=pl.col("stretch_seconds").filter(is_read).sum(),
    ).sort("family_name")  # fmt: skip
    said = [
        f"{FAMILIES[family]} {percent(ratio(read, whole))}"
        for family, whole, read in shares.iter_rows()
    ]
    st.markdown(f"Read completely: {' · '.join(said)}.")
    # The edges of a recording are no loss.
    lost = pl.col("read_name").is_in(["partial", "missing"]) & (pl.col("stretch_seconds") >= 60)
    short = as_one(rows).filter(lost)
    if short.is_empty():
        return
    show(
        short.head(500),
        with_cluster(reading, READ_COLUMNS),
        name=reading.file("unread"),
        key="reads",
        caption="A minute and more. It is asked for again, at last once a day. Lengths are "
        "hours:minutes:seconds.",
        labels=LABELS,
        shown=short.head(500).with_columns(pl.col("family_name").replace(FAMILIES)),
    )


def refusals(reading: Reading, rows: pl.DataFrame) -> None:
    """What was refused, why, and how to mend it."""
    if rows.is_empty():
        st.subheader("What was refused?")
        st.markdown("Nothing.")
        return
    lost = pl.when("is_row_lost").then(pl.lit("lost")).otherwise(pl.lit("stands"))
    rows = rows.with_columns(kind_text=lost)
    show(
        rows,
        with_cluster(reading, REFUSED_COLUMNS),
        name=reading.file("refused"),
        key="refused",
        title="What was refused?",
        caption="From all sources. What is refused is counted, and never taken for zero.",
        labels=LABELS,
        shown=rows.with_columns(pl.col("reason_name").str.replace_all("_", " ")),
    )


def page() -> None:
    """Draw the page."""
    reading: Reading = st.session_state["reading"]
    st.title("What are we blind to?")
    if reading.teams:
        st.info("Nodes belong to no team: the whole fleet is shown.", icon=":material/filter_alt:")
    sight, nodes, refused = reading.rows(SIGHT), reading.rows(NODES), reading.rows(REFUSED)
    read = reading.rows(READS)
    cards(sight, nodes, read, refused)
    spots(reading, sight)
    unobserved(reading, nodes)
    reads(reading, read)
    refusals(reading, refused)


page()
