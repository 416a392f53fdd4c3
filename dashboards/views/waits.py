"""How long do jobs wait? Three ways of counting, with those that were never served among them.

The percentiles are those of sql/view/queue_waits.sql; what a wait is belongs to sql/.
"""

import plotly.graph_objects as go
import polars as pl
import streamlit as st

from dashboards.data import Reading
from dashboards.filters import choice
from dashboards.headlines import headline
from dashboards.links import links
from dashboards.style import LINE, MUTED, OUTCOME_COLOURS, draw
from dashboards.tables import show
from dashboards.waiting import BINS, CURVE, LONGEST, Slice
from models.figures import duration, hours, percent, ratio
from models.mart import ATTEMPT_WAITS, QUEUE_WAITS
from models.table import Column, Kind

METHODS = {
    "submission_to_start": "Submission to start",
    "served": "Served only",
    "kaplan_meier": "As if nobody had left",
}
MEANINGS = {
    "submission_to_start": "Per workload: from its submission to its first start. What a person "
    "waits; services have none.",
    "served": "Per attempt: from queued to placed, over those that were placed. It looks better "
    "the more jobs give up.",
    "kaplan_meier": "Per attempt, Kaplan–Meier: those that left or still wait count for as long "
    "as they waited, as if nobody had left.",
}
KINDS = {"jobs": "GPU jobs", "services": "service replicas", "all": "all jobs, also without GPUs"}
BY = {"queue_name": "queue", "team_name": "team", "gpu_shape_name": "GPU shape"}
MEASURED = ("served", "kaplan_meier")
QUANTILES = ("p50", "p75", "p90", "p95", "p99")
OUTCOMES = {"served": "served", "left": "left unserved", "waiting": "still waiting"}
COUNTS = ("attempt_count", "served_count", "left_count", "still_waiting_count")
TABLE = (
    *(QUEUE_WAITS.column(n) for n in COUNTS),
    *(QUEUE_WAITS.column(f"{q}_wait_seconds") for q in QUANTILES),
    QUEUE_WAITS.column("waited_gpu_seconds"),
)
LABELS = {
    "attempt_count": "queued",
    "served_count": "served",
    "left_count": "left",
    "still_waiting_count": "still waiting",
    "waited_gpu_seconds": "waited, GPU-h",
    "method_name": "counted",
    "gpu_shape_name": "GPU shape",
    "mean_wait_seconds": "mean",
    "max_wait_seconds": "longest",
    "queue_wait_seconds": "waited",
    "asked_micro_gpu": "GPUs",
    "workload_name": "job",
    "queued_at": "waiting since",
    "workload_url": "what happened",
    **{f"{q}_wait_seconds": q for q in QUANTILES},
}
LINK = Column("workload_url", Kind.TEXT, "What happened to it so far.")
CLOCK = "Waits are hours:minutes:seconds."
TICKS = (1, 10, 60, 600, 3600, 6 * 3600, 86_400, 7 * 86_400, 30 * 86_400)


def missing(row: dict, name: str) -> str:
    """Why there is no figure: too few for it, none at all, or the percentile is not reached."""
    is_censored = row.get("method_name") == "kaplan_meier"
    count = row.get("attempt_count" if is_censored else "served_count", 0)
    if name.startswith("p99") and count < 100:
        return "under 100"
    if name.startswith("mean") and is_censored:
        return "–"
    return "not reached" if is_censored and count else "none served"


def headlines(reading: Reading, now: dict[str, dict], before: dict[str, dict], first: str) -> None:
    """Median and 90th percentile, who was not served, and the GPU-hours waited for."""
    lead, old = now[first], before.get(first, {})
    bounded, bounded_old = now["kaplan_meier"], before.get("kaplan_meier", {})
    places = st.columns(4)
    counted = METHODS[first].lower()
    with places[0]:
        p50 = lead["p50_wait_seconds"]
        headline(
            reading,
            "Half wait at most",
            duration(p50, missing(lead, "p50")),
            p50,
            old.get("p50_wait_seconds"),
            good="down",
            note=counted,
            doc=f"Median. {MEANINGS[first]}",
        )
    with places[1]:
        p90 = bounded["p90_wait_seconds"]
        headline(
            reading,
            "One in ten waits longer than",
            duration(p90),
            p90,
            bounded_old.get("p90_wait_seconds"),
            good="down",
            note="as if nobody had left",
            doc=f"90th percentile. {MEANINGS['kaplan_meier']}",
        )
    with places[2]:
        queued = bounded["attempt_count"]
        unserved = bounded["left_count"] + bounded["still_waiting_count"]
        earlier = bounded_old.get("left_count", 0) + bounded_old.get("still_waiting_count", 0)
        share = ratio(unserved, queued)
        headline(
            reading,
            "Not served",
            percent(share),
            share,
            ratio(earlier, bounded_old.get("attempt_count")),
            good="down",
            is_share=True,
            note=f"{bounded['left_count']:,} left, {bounded['still_waiting_count']:,} still "
            f"waiting of {queued:,}",
            doc="Attempts that left the queue, or still wait, without having been placed.",
        )
    with places[3]:
        waited = bounded["waited_gpu_seconds"]
        headline(
            reading,
            "GPU-hours waited for",
            hours(waited),
            waited,
            bounded_old.get("waited_gpu_seconds"),
            good="down",
            note=f"{queued:,} attempts queued in the period",
            doc="GPUs asked for x time in the queue.",
        )


def methods(reading: Reading, rows: pl.DataFrame) -> None:
    """The three ways side by side."""
    order = pl.col("method_name").replace_strict({m: n for n, m in enumerate(METHODS)})
    rows = rows.sort(order)
    shown = rows.with_columns(pl.col("method_name").replace(METHODS))
    show(
        rows,
        (QUEUE_WAITS.column("method_name"), *TABLE[:-1], QUEUE_WAITS.column("max_wait_seconds")),
        name=reading.file("waits"),
        key="methods",
        title="How long, counted three ways?",
        caption=f"Attempts queued {reading.period}, as far as this snapshot knows. {CLOCK}",
        labels=LABELS,
        shown=shown,
    )
    with st.expander("What is the difference?"):
        for name, text in MEANINGS.items():
            st.markdown(f"**{METHODS[name]}** — {text}")
        st.markdown(
            "Where a percentile is missing, none was served, so many left or still wait that the "
            "share was never served, or fewer than 100 are too few for a 99th percentile."
        )


def histogram(rows: pl.DataFrame) -> None:
    """How many waited how long, those that were not served as series of their own."""
    figure = go.Figure()
    for outcome, name in OUTCOMES.items():
        part = rows.filter(pl.col("outcome_name") == outcome)
        if part["attempt_count"].sum():
            figure.add_bar(
                x=part["bin_name"].to_list(),
                y=part["attempt_count"].to_list(),
                name=name,
                marker={"color": OUTCOME_COLOURS[outcome]},
                hovertemplate="%{x}: %{y:,} " + name + "<extra></extra>",
            )
    figure.update_layout(barmode="stack", bargap=0.08)
    figure.update_yaxes(title="attempts")
    names = rows["bin_name"].unique(maintain_order=True).to_list()
    figure.update_xaxes(
        categoryorder="array",
        categoryarray=names,
        tickvals=names,
        tickangle=0,
        ticktext=[name.replace(" ", "<br>", 1) for name in names],
    )
    draw(figure, "histogram", 330, "Attempts by length of wait and outcome")


def curve(rows: pl.DataFrame) -> None:
    """The share placed by each time, as if nobody had left; who was not served is marked on it."""
    figure = go.Figure()
    at = [max(seconds, 1) for seconds in rows["queue_wait_seconds"]]
    share = [100 * (1 - value) for value in rows["survival_ratio"]]
    figure.add_scatter(
        x=at,
        y=share,
        mode="lines",
        name="placed, as if nobody had left",
        line={"shape": "hv", "color": OUTCOME_COLOURS["served"], "width": 2},
        customdata=[duration(s) for s in rows["queue_wait_seconds"]],
        hovertemplate="%{y:.1f} % placed within %{customdata}<extra></extra>",
    )
    for outcome, column in (("left", "left_count"), ("waiting", "still_waiting_count")):
        marked = [
            (x, y, d)
            for x, y, count, d in zip(
                at, share, rows[column], rows["queue_wait_seconds"], strict=True
            )
            if count
        ]
        if marked:
            figure.add_scatter(
                x=[m[0] for m in marked],
                y=[m[1] for m in marked],
                mode="markers",
                name=OUTCOMES[outcome],
                marker={
                    "symbol": "line-ns-open",
                    "size": 9,
                    "color": OUTCOME_COLOURS[outcome],
                    "line": {"width": 2},
                },
                customdata=[duration(m[2]) for m in marked],
                hovertemplate=f"{OUTCOMES[outcome]} after %{{customdata}}<extra></extra>",
            )
    figure.update_xaxes(type="log", tickvals=TICKS, ticktext=[duration(t) for t in TICKS])
    figure.update_yaxes(title="% placed", range=[-3, 103], ticksuffix=" %")
    figure.add_hline(y=50, line={"color": LINE, "dash": "dot"})
    figure.update_layout(legend_font_color=MUTED)
    draw(figure, "curve", 330, "Share placed by time in the queue")


def breakdown(reading: Reading, wanted: Slice) -> None:
    """The waits by queue, team or GPU shape, counted in one of the three ways."""
    st.subheader("Who waits longest?")
    with st.container(horizontal=True):
        by = choice("By", BY, "by", "queue_name")
        if wanted.kind == "services":  # nobody submits a replica
            methods = {name: label for name, label in METHODS.items() if name in MEASURED}
            method = choice("Counted", methods, "counted_services", "served")
        else:
            method = choice("Counted", METHODS, "counted", "submission_to_start")
    rows = wanted.waits(by.removesuffix("_name").removeprefix("gpu_")).filter(
        pl.col("method_name") == method
    )
    rows = rows.sort("waited_gpu_seconds", descending=True)
    show(
        rows,
        (QUEUE_WAITS.column(by), *TABLE),
        name=reading.file(f"waits-by-{by}"),
        key="by-wait",
        caption=f"{MEANINGS[method]} Ordered by the GPU-hours waited for. {CLOCK}",
        labels={**LABELS, by: BY[by]},
    )


def waiting_now(reading: Reading, wanted: Slice) -> None:
    """Who is in the queue as of the snapshot, the longest first."""
    rows = wanted.rows(LONGEST)
    if rows.is_empty():
        st.subheader("Who is waiting now?")
        st.markdown("Nobody, as of this snapshot.")
        return
    specs = [
        ATTEMPT_WAITS.column(n)
        for n in (
            "workload_name",
            "team_name",
            "queue_name",
            "gpu_shape_name",
            "queued_at",
            "queue_wait_seconds",
            "waited_gpu_seconds",
        )
    ]
    if len(reading.clusters) > 1:
        specs.insert(0, ATTEMPT_WAITS.column("cluster_name"))
    specs.append(LINK)
    rows = rows.with_columns(links("workload", "workload", rows["workload_key_uid"]))
    specs.insert(-4, Column("gpu_share", Kind.RATIO, "GPUs asked for, parts of one too."))
    show(
        rows,
        specs,
        name=reading.file("waiting-now"),
        key="waiting",
        title="Who is waiting now?",
        caption=f"As of the snapshot, whenever they were queued; the 100 longest. {CLOCK}",
        labels={**LABELS, "gpu_share": "GPUs"},
    )


def page() -> None:
    """Draw the page."""
    reading: Reading = st.session_state["reading"]
    st.title("How long do jobs wait?")
    kind = choice("Of", KINDS, "kind", "jobs", quiet=True)
    wanted = Slice(reading, kind)
    rows = wanted.waits("all")
    if rows.is_empty():
        st.markdown("Nothing of this kind was queued in the period.")
        waiting_now(reading, wanted)
        return
    now = {row["method_name"]: row for row in rows.iter_rows(named=True)}
    old = {r["method_name"]: r for r in wanted.waits("all", before=True).iter_rows(named=True)}
    first = "submission_to_start" if "submission_to_start" in now else "served"
    headlines(reading, now, old, first)
    methods(reading, rows)
    left, right = st.columns(2)
    with left:
        st.markdown("**How many waited how long?**")
        histogram(wanted.rows(BINS))
    with right:
        st.markdown("**By when is a job placed?**")
        curve(wanted.rows(CURVE))
    breakdown(reading, wanted)
    waiting_now(reading, wanted)


page()
