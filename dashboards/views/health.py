"""GPU health: broken GPUs and since when, XIDs without the noise, throttling, heat, memory rows.

Where XIDs are not told a GPU's health is unknown, never good.
"""

from datetime import timedelta

import plotly.graph_objects as go
import polars as pl
import streamlit as st

from dashboards.data import Reading
from dashboards.faults import (
    BROKEN,
    BROKEN_COLUMNS,
    EVENT_COLUMNS,
    EVENTS,
    GPU_COLUMNS,
    GPUS,
    SLOWED,
)
from dashboards.filters import BIND, choice
from dashboards.headlines import card
from dashboards.style import draw
from dashboards.tables import show
from models.figures import NOT_MEASURED, hours, percent, ratio
from models.mart_gpus import GPU_HEALTH
from models.table import Column

KINDS = {
    "fatal": ("fatal", "#B5342D"),
    "degraded": ("degraded", "#E8893A"),
    "application": ("application", "#3D6A99"),
    "driver": ("driver", "#7A5C99"),
    "unknown": ("not listed", "#8A97A6"),
    "cleanup": ("clean-up", "#D3D8DE"),
}
SHOWN = {"notable": "those to look at", "unknown": "health unknown", "all": "all GPUs"}
LABELS = {
    "health_name": "health",
    "state_name": "state",
    "begin_at": "since",
    "end_at": "until",
    "broken_gpu_seconds": "broken, GPU-h",
    "xid_number": "XID",
    "basis_name": "told by",
    "kind_name": "kind",
    "meaning_text": "meaning",
    "seen_at": "first seen",
    "gpu_uuid": "UUID",
    "gpu_model_name": "GPU model",
    "is_first_sample": "older",
    "fatal_count": "fatal XIDs",
    "other_count": "other XIDs",
    "noise_count": "clean-up",
    "thermal_gpu_seconds": "heat, GPU-h",
    "hardware_slowed_gpu_seconds": "hardware, GPU-h",
    "power_capped_gpu_seconds": "power limit, GPU-h",
    "slowed_told_ratio": "told",
    "most_celsius": "hottest, °C",
    "uncorrectable_remapped_row_count": "rows, uncorr.",
    "correctable_remapped_row_count": "rows, corr.",
    "is_row_remap_failed": "remap failed",
}
BASES = {"xid": "a fatal XID", "off_the_bus": "it fell off the bus"}


def judged(gpus: pl.DataFrame, broken: pl.DataFrame) -> pl.DataFrame:
    """Each GPU's health in one word; what is not told is unknown."""
    still = broken.filter(~pl.col("is_ended"))["gpu_uuid"].to_list()
    odd = (
        pl.col("is_row_remap_failed").fill_null(value=False)
        | (pl.col("fatal_count").fill_null(0) > 0)
        | (pl.col("broken_gpu_seconds") > 0)
        | (pl.col("hardware_slowed_gpu_seconds").fill_null(0) > 0)
        | (pl.col("uncorrectable_remapped_row_count").fill_null(0) > 0)
    )
    return gpus.with_columns(
        health_name=pl.when(pl.col("gpu_uuid").is_in(still)).then(pl.lit("broken"))
        .when(odd).then(pl.lit("look at it"))
        .when(~pl.col("is_told_last")).then(pl.lit("unknown"))
        .otherwise(pl.lit("no fault told")),
    )  # fmt: skip


def cards(gpus: pl.DataFrame, broken: pl.DataFrame, events: pl.DataFrame) -> None:
    """Broken now, time lost, XIDs without the noise, and of how many nothing is known."""
    still = broken.filter(~pl.col("is_ended"))
    noise = events.filter(kind_name="cleanup").height
    untold = gpus.filter(~pl.col("is_told_last")).height
    first, second, third, fourth = st.columns(4)
    with first:
        card(
            "Broken now",
            f"{still['gpu_uuid'].n_unique():,}",
            note=f"of {gpus.height:,} GPUs measured in the period",
            doc="A fatal XID was told, or it fell off the bus, and it has not been mended.",
        )
    with second:
        card(
            "Broken in the period",
            hours(broken["broken_gpu_seconds"].sum()),
            note=f"{broken.height:,} {'fault' if broken.height == 1 else 'faults'}",
            doc="GPU-time in which a GPU was of no use to anyone.",
        )
    with third:
        card(
            "XIDs seen",
            f"{events.height - noise:,}" if untold < gpus.height else NOT_MEASURED,
            note=f"{noise:,} clean-up ones not counted",
            doc="A lower bound: the exporter keeps the last XID only, so a repeat is not seen. "
            "Clean-up XIDs follow a killed process or another error.",
        )
    with fourth:
        card(
            "Health unknown",
            percent(ratio(untold, gpus.height)),
            note=f"{untold:,} of {gpus.height:,} GPUs tell no XIDs",
            doc="Their exporter does not tell XIDs. GPUs without any exporter are not among "
            "them: see 'What are we blind to?'.",
        )


def faults(reading: Reading, broken: pl.DataFrame) -> None:
    """The broken GPUs, those that still are first."""
    if broken.is_empty():
        st.subheader("Which are broken, since when?")
        st.markdown("None was seen to be, of those whose health is told.")
        return
    words = pl.when("is_ended").then(pl.lit("mended")).otherwise(pl.lit("broken"))
    broken = broken.with_columns(state_name=words)
    show(
        broken,
        with_cluster(reading, BROKEN_COLUMNS),
        name=reading.file("broken-gpus"),
        key="broken",
        title="Which are broken, since when?",
        caption="Those that still are first; 'until' is then the end of what is known.",
        labels=LABELS,
        shown=broken.with_columns(pl.col("basis_name").replace(BASES)),
    )


def with_cluster(reading: Reading, columns: tuple[Column, ...]) -> list[Column]:
    """The columns, with the cluster where there are several."""
    first = [GPU_HEALTH.column("cluster_name")] if len(reading.clusters) > 1 else []
    return [*first, *columns]


def xids(reading: Reading, events: pl.DataFrame) -> None:
    """The XIDs by day and one by one; the noise only when asked for."""
    st.subheader("Which XIDs were told?")
    noise = events.filter(kind_name="cleanup").height
    is_noisy = st.toggle(
        f"Also clean-up XIDs ({noise:,} hidden)", key="noise", bind=BIND, disabled=not noise
    )
    rows = events if is_noisy else events.filter(pl.col("kind_name") != "cleanup")
    if rows.is_empty():
        st.markdown("None in this period, of those that are told.")
        return
    by_day(reading, rows)
    show(
        rows.head(500),
        with_cluster(reading, EVENT_COLUMNS),
        name=reading.file("xids"),
        key="xids",
        caption="The latest first, at most 500. A lower bound: a repeat is not seen. Older: it "
        "stood when we first looked.",
        labels=LABELS,
    )


def by_day(reading: Reading, rows: pl.DataFrame) -> None:
    """How many XIDs of each kind a day."""
    counts = rows.group_by("day_on", "kind_name").len()
    figure = go.Figure()
    for kind, (name, colour) in KINDS.items():
        part = counts.filter(kind_name=kind).sort("day_on")
        if part.height:
            figure.add_bar(
                x=part["day_on"].to_list(),
                y=part["len"].to_list(),
                name=name,
                width=0.8 * 86_400_000,  # a day alone in its period would be a line
                marker={"color": colour},
                hovertemplate="%{x|%a %Y-%m-%d}: %{y} " + name + "<extra></extra>",
            )
    period = reading.period
    figure.update_layout(barmode="stack", showlegend=True)
    most = counts.group_by("day_on").agg(pl.col("len").sum())["len"].to_list()
    figure.update_yaxes(title="XIDs", rangemode="tozero", dtick=-(-max(most) // 5))
    first = period.begin_on - timedelta(days=1)  # half a bar stands before its day
    figure.update_xaxes(tickformat="%-d %b", range=[f"{first} 12:00", f"{period.last_on} 12:00"])
    draw(figure, "xids-by-day", 240, "XIDs a day by kind")


def slowed(reading: Reading, gpus: pl.DataFrame) -> None:
    """By node: for how long its GPUs were slowed, and why."""
    names = [c.name for c in SLOWED[:3]]
    known = gpus.filter(pl.col("told_gpu_seconds") > 0)
    st.subheader("Which nodes are slowed, and why?")
    untold = gpus.height - known.height
    if known.is_empty():
        st.markdown("Not known: no exporter tells the reasons.")
        return
    nodes = known.group_by("cluster_name", "node_name").agg(
        pl.len().alias("gpu_count"),
        *(pl.col(n).sum() for n in names),
        pl.col("told_gpu_seconds").sum(),
        pl.col("most_celsius").max(),
    )
    nodes = nodes.sort(*names, "node_name", descending=[True, True, True, False])
    specs = (
        GPU_HEALTH.column("node_name"),
        *SLOWED[:3],
        GPU_HEALTH.column("most_celsius"),
        Column("told_gpu_seconds", SLOWED[0].kind, "GPU-time in which the reasons were told."),
    )
    show(
        nodes.head(500),
        with_cluster(reading, specs),
        name=reading.file("slowed"),
        key="slowed",
        caption="By the time slowed by heat. Standing at the power limit is usual under load."
        + (f" Of {untold:,} GPUs the reasons are not told." if untold else ""),
        labels={**LABELS, "told_gpu_seconds": "told, GPU-h"},
    )


def one_by_one(reading: Reading, gpus: pl.DataFrame) -> None:
    """Every GPU's counts; those to look at unless others are asked for."""
    st.subheader("GPU by GPU")
    which = choice("Shown", SHOWN, "gpus", "notable", quiet=True)
    rows = gpus
    if which == "notable":
        rows = gpus.filter(pl.col("health_name").is_in(["broken", "look at it"]))
    elif which == "unknown":
        rows = gpus.filter(health_name="unknown")
    if rows.is_empty():
        st.markdown("None.")
        return
    order = {"broken": 0, "look at it": 1, "unknown": 2, "no fault told": 3}
    rows = rows.sort(
        pl.col("health_name").replace_strict(order), "node_name", "gpu_uuid", maintain_order=True
    )
    show(
        rows.head(5000),
        with_cluster(reading, GPU_COLUMNS),
        name=reading.file("gpu-health"),
        key="gpus",
        caption=f"Over {reading.period}. A dash: not told. Rows: memory rows that were remapped; "
        "the highest count.",
        labels=LABELS,
    )


def page() -> None:
    """Draw the page."""
    reading: Reading = st.session_state["reading"]
    st.title("GPU health: what is broken or slowed?")
    gpus = reading.rows(GPUS)
    if gpus.is_empty():
        st.markdown(
            "**Health is unknown**: no GPU was measured in this period. It needs the DCGM exporter "
            "and a Prometheus that keeps what it tells; `gpuledger doctor` says what is missing."
        )
        return
    if reading.teams:
        st.info(
            "A GPU belongs to no team: the whole fleet is shown, and only the XIDs of the chosen "
            "teams.",
            icon=":material/filter_alt:",
        )
    broken, events = reading.rows(BROKEN), reading.rows(EVENTS)
    gpus = judged(gpus, broken)
    cards(gpus, broken, events)
    faults(reading, broken)
    xids(reading, events)
    slowed(reading, gpus)
    one_by_one(reading, gpus)


page()
