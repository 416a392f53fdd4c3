"""Where does starting go? GPU-time and money that is held before it works, by cause and by whose.

Which second has which cause belongs to sql/; what is read, to `starting`.
"""

import plotly.graph_objects as go
import polars as pl
import streamlit as st

from dashboards.charts import days_chart, hatch
from dashboards.data import Reading
from dashboards.filters import choice
from dashboards.headlines import headline
from dashboards.links import links
from dashboards.starting import (
    BY,
    COLOURS,
    LABELS,
    MEANINGS,
    SUBJECT_COLUMNS,
    SUBJECTS,
    UNITS,
    Startup,
    totals,
)
from dashboards.style import LINE, draw
from dashboards.tables import show
from models.figures import amount, duration, hours, money, percent, plain, ratio
from models.mart_workloads import IMAGE_PULLS, POD_STARTS, START_WAITS, STARTUPS
from models.table import Column, Kind
from models.words import NAMES

BARS = 12
HEADS = {
    "image_name": "image",
    "node_name": "node",
    "gpu_model_name": "GPU model",
    "team_name": "team",
    "gpu_seconds": "before work, GPU-h",
    "pod_count": "pods",
    "started_count": "started",
    "p50_start_seconds": "half within",
    "p90_start_seconds": "9 in 10 within",
    "workload_name": "workload",
    "pod_name": "pod",
    "gpu_share": "GPUs",
    "pull_seconds": "transfer",
    "queue_seconds": "queue",
    "total_seconds": "both",
    "image_mib": "image, MiB",
    "failed_count": "failed tries",
    "begun_at": "begun",
    "bound_at": "bound",
    "start_seconds": "for",
    "cause_name": "why",
    "workload_url": "more",
    "team_url": "more",
}
CLOCK = "Lengths are hours:minutes:seconds."
GPUS = Column("gpu_share", Kind.RATIO, "GPUs that the pod asks for, parts of one too.")
MIB = Column("image_mib", Kind.COUNT, "Size of the image.", nullable=True)
LINK = Column("workload_url", Kind.TEXT, "What happened to the workload.")
TEAM_LINK = Column("team_url", Kind.TEXT, "This page for it alone.")


def cost(sums: dict, reading: Reading) -> str:
    """What something cost; nothing costs nothing, and the unpriced nobody knows what."""
    spent, priced = sums["gpu_seconds"], sums["startup_cost"]
    return money(priced or 0, reading.currency, 0 if priced is None and spent else None)


def headlines(startup: Startup, days: pl.DataFrame, unit: str) -> None:
    """How much, what share of the held, and how long half and the slowest tenth take."""
    reading = startup.reading
    now, old = totals(days), totals(startup.days(before=True))
    held, held_old = startup.held(), startup.held(before=True)
    spent = now["gpu_seconds"] or 0
    priced = ratio(spent - (now["unpriced_gpu_seconds"] or 0), spent)
    places = st.columns(4)
    with places[0]:
        is_money = unit == "money"
        column = "startup_cost" if is_money else "gpu_seconds"
        figures = (hours(spent), cost(now, reading))
        headline(
            reading,
            "Held before work",
            figures[is_money],
            now[column],
            old[column],
            good="down",
            note=f"{figures[not is_money]} · {percent(priced)} priced",
            doc="GPU-time held in the states starting, gang wait and loading, restarts and lost "
            "members of a gang among them.",
        )
    with places[1]:
        share = ratio(spent, held["held_gpu_seconds"])
        headline(
            reading,
            "Share of held",
            percent(share),
            share,
            ratio(old["gpu_seconds"], held_old["held_gpu_seconds"]),
            good="down",
            is_share=True,
            note=f"of {hours(held['held_gpu_seconds'])} held",
            doc="Of all GPU-time that teams held, how much was held before it worked.",
        )
    waits, waits_old = startup.starts(), startup.starts(before=True)
    row = {} if waits.is_empty() else waits.row(0, named=True)
    earlier = {} if waits_old.is_empty() else waits_old.row(0, named=True)
    missing = "not known" if row.get("unknown_count") else "none started"
    with places[2]:
        headline(
            reading,
            "Half start within",
            duration(row.get("p50_start_seconds"), missing),
            row.get("p50_start_seconds"),
            earlier.get("p50_start_seconds"),
            good="down",
            note=f"{row.get('started_count', 0):,} of {row.get('pod_count', 0):,} pods started",
            doc="Median, per pod, from its bind to a node until all its GPU containers first ran; "
            "of the pods bound in the period that have started.",
        )
    with places[3]:
        headline(
            reading,
            "Slowest tenth takes over",
            duration(row.get("p90_start_seconds"), missing),
            row.get("p90_start_seconds"),
            earlier.get("p90_start_seconds"),
            good="down",
            note=f"{row.get('starting_count', 0):,} still start, "
            f"{row.get('left_count', 0):,} left before",
            doc="90th percentile of the same. Who has not started, or was gone before, is not "
            "among them.",
        )
    if row.get("disordered_count"):
        st.caption(
            f"Of {row['disordered_count']:,} pods clocks disagree: they ran before they were "
            "bound. How long they took to start is not counted."
        )


def coverage(startup: Startup, days: pl.DataFrame, pods: int, told: int) -> None:
    """Say of how much no cause is known, and why."""
    before = startup.held()["before_gpu_seconds"]
    share = ratio(days["gpu_seconds"].sum(), before)
    if share is not None and share < 0.999:
        period = startup.reading.period
        st.caption(
            f":orange[Of {percent(1 - share)} of this time the causes have not been computed:] "
            f"run `gpuledger run --from {period.begin_on} --to {period.last_on}`."
        )
    blind = days.filter(part_name="undetermined")["gpu_seconds"].sum()
    if not blind:
        return
    if told == 0:
        st.markdown(
            f"**No event about images or volumes was recorded of these pods**, so nothing tells "
            f"what {hours(blind)} of starting waited for. `gpuledger watch` records what kubelets "
            "tell."
        )
        return
    st.caption(
        f"*No event tells*: {hours(blind)}. Events about images or volumes were recorded of "
        f"{percent(ratio(told, pods))} of the pods; some are lost, and some waits have none."
    )


def parts_by_day(reading: Reading, days: pl.DataFrame, unit: str) -> None:
    """Stacked bars of the causes."""
    st.subheader("What does it wait for?")
    rows = days.with_columns(pl.col("part_name").replace(LABELS))
    days_chart(
        rows,
        "startup_cost" if unit == "money" else "gpu_seconds",
        list(COLOURS),
        reading.currency,
        by="part_name",
        colour=lambda name, _: COLOURS[name],
        key="startup-days",
    )
    st.caption(
        "Whether what is no service still loads is known only where its GPUs are measured: days "
        "without readings show less of it."
    )
    with st.expander("What do these words mean?"):
        for name, text in MEANINGS.items():
            st.markdown(f"**{name}** — {text}.")


def tail(name: str, most: int = 46) -> str:
    """A name for the axis: of an image the end tells more than its registry."""
    name = NAMES.get(name, name)
    return plain(name if len(name) <= most else f"…{name[1 - most :]}", most)


def bars(rows: pl.DataFrame, specs: list[Column], by: str, unit: str, currency: str) -> None:
    """The largest as stacked bars of their causes."""
    rows = rows.head(BARS)
    is_money = unit == "money"
    scale, of = (1, currency) if is_money else (3600, "GPU-h")
    heads = [tail(name) for name in rows[SUBJECTS[by]]]
    figure = go.Figure()
    for spec in specs:
        label = LABELS[part(spec.name)]
        values = [float(v or 0) / scale for v in rows[spec.name]]
        if sum(values) < 0.005:
            continue
        figure.add_bar(
            y=list(range(len(heads))),
            x=values,
            orientation="h",
            name=label,
            marker={"color": COLOURS[label], "pattern": hatch(label)},
            customdata=[[amount(v), head] for v, head in zip(values, heads, strict=True)],
            hovertemplate=f"%{{customdata[1]}}<br>{label}: %{{customdata[0]}} {of}<extra></extra>",
        )
    figure.update_layout(barmode="stack", bargap=0.3)
    figure.update_yaxes(
        autorange="reversed", tickvals=list(range(len(heads))), ticktext=heads, showgrid=False
    )
    title = currency if is_money else "GPU-hours"
    figure.update_xaxes(title=title, tickformat="~s", showgrid=True, gridcolor=LINE)
    draw(figure, "startup-bars", 120 + 28 * len(heads), "Causes by subject, the largest first")


def by_subject(startup: Startup, unit: str) -> None:
    """Whose it is: by image, node, GPU model or team."""
    reading = startup.reading
    st.subheader("Where does it come from?")
    by = choice("By", BY, "by", "image")
    rows, specs = startup.subjects(by, unit)
    if by == "image" and set(rows["image_name"]) == {"__unknown__"}:
        st.markdown("No source told the images of these pods.")
    else:
        bars(rows, specs, by, unit, reading.currency)
    shown = [SUBJECT_COLUMNS[by]]
    if by == "node" and len(reading.clusters) > 1:
        shown.append(STARTUPS.column("cluster_name"))
    shown += [
        START_WAITS.column(name)
        for name in ("started_count", "p50_start_seconds", "p90_start_seconds")
    ]
    shown += [STARTUPS.column("gpu_seconds"), STARTUPS.column("startup_cost"), *specs]
    if by == "team":
        rows = rows.with_columns(links("startup", "team", rows["team_name"]))
        shown.append(TEAM_LINK)
    ending = reading.currency if unit == "money" else "GPU-h"
    rows = rows.head(500).drop("subject_uid" if by == "node" else ["subject_uid", "cluster_name"])
    show(
        rows,
        shown,
        name=reading.file(f"startup-by-{by}"),
        key="startup-by",
        caption=f"The causes in {ending}; at most 500, of which the {BARS} largest are drawn. "
        f"{CLOCK}",
        currency=reading.currency,
        labels={
            **HEADS,
            "startup_cost": f"before work, {reading.currency}",
            **{spec.name: LABELS[part(spec.name)] for spec in specs},
        },
        shown=in_words(rows),
    )


def part(column: str) -> str:
    """The part that a column is of."""
    return column.removesuffix("_gpu_seconds").removesuffix("_cost")


def in_words(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with words for an image that is not known."""
    if "image_name" not in rows.columns:
        return rows
    return rows.with_columns(pl.col("image_name").replace(NAMES))


def pulls(startup: Startup, told: int) -> None:
    """The longest pulls."""
    reading, rows = startup.reading, startup.pulls()
    if rows.is_empty():
        st.subheader("Which pulls were slow?")
        why = " Kubelets tell them by events, of which none was recorded." if told == 0 else ""
        st.markdown(f"No pull of an image is recorded in this period.{why}")
        return
    specs = [
        IMAGE_PULLS.column(name)
        for name in ("image_name", "node_name", "pull_seconds", "queue_seconds", "total_seconds",
                     "begun_at", "pod_name", "team_name")
    ]  # fmt: skip
    specs[5:5] = [MIB]
    specs.append(GPUS)
    if rows["failed_count"].sum():
        specs.append(IMAGE_PULLS.column("failed_count"))
    if len(reading.clusters) > 1:
        specs.append(IMAGE_PULLS.column("cluster_name"))
    show(
        rows,
        specs,
        name=reading.file("slow-pulls"),
        key="slow-pulls",
        title="Which pulls were slow?",
        caption="The 100 longest of pods that hold GPUs, from asked for to there. A queue that is "
        f"not told may be within the transfer: old kubelets tell one time. {CLOCK}",
        labels=HEADS,
    )


def still(startup: Startup) -> None:
    """The pods that have not started as of the snapshot."""
    reading, rows = startup.reading, startup.still()
    if rows.is_empty():
        st.subheader("Which pods still start?")
        st.markdown("None, as of this snapshot.")
        return
    rows = rows.with_columns(links("workload", "workload", rows["workload_key_uid"]))
    specs = [
        POD_STARTS.column(name)
        for name in ("pod_name", "workload_name", "team_name", "node_name", "gpu_model_name",
                     "image_name", "bound_at", "start_seconds", "cause_name", "gpu_seconds",
                     "start_cost")
    ]  # fmt: skip
    specs[9:9] = [GPUS]
    specs.append(LINK)
    if len(reading.clusters) > 1:
        specs.insert(-1, POD_STARTS.column("cluster_name"))
    show(
        rows,
        specs,
        name=reading.file("still-starting"),
        key="still-starting",
        title="Which pods still start?",
        caption="Bound to a node and never run, as of the snapshot; the 100 longest. GPU-hours and "
        f"cost are those held so far, at most 30 days back. {CLOCK}",
        currency=reading.currency,
        labels={
            **HEADS,
            "gpu_seconds": "so far, GPU-h",
            "start_cost": f"so far, {reading.currency}",
        },
        shown=in_words(rows).with_columns(pl.col("cause_name").replace(LABELS)),
    )


def page() -> None:
    """Draw the page."""
    reading: Reading = st.session_state["reading"]
    st.title("Where does starting go?")
    unit = choice("Shown in", UNITS, "unit", "hours", quiet=True)
    startup = Startup(reading)
    days = startup.days()
    if days.is_empty():
        if startup.held()["before_gpu_seconds"]:
            period = reading.period
            st.markdown(
                "Where starting goes has not been computed for this period: run "
                f"`gpuledger run --from {period.begin_on} --to {period.last_on}`."
            )
        else:
            st.markdown("Nothing was held before it worked in this period.")
        still(startup)
        return
    pods, told = startup.told()
    headlines(startup, days, unit)
    coverage(startup, days, pods, told)
    if unit == "money" and not days["startup_cost"].count():
        st.caption("Nothing of it has a price: the causes are shown in GPU-hours.")
        unit = "hours"
    parts_by_day(reading, days, unit)
    by_subject(startup, unit)
    pulls(startup, told)
    still(startup)


page()
