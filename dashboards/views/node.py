"""What happened on this node? Who held its GPUs, their states, faults, and its events."""

import polars as pl
import streamlit as st

from dashboards.data import Reading
from dashboards.gantt import MOST_LANES, Bar, gantt, lanes_of
from dashboards.headlines import card
from dashboards.links import NODE, chosen_node, links
from dashboards.lives import ACTIVITY
from dashboards.node_lives import (
    FAULTS,
    HOLDERS,
    NODE_EVENTS,
    NODE_STATES,
    NODES,
    UNUSABLE,
)
from dashboards.node_lives import NODE as NODE_HEAD
from dashboards.style import OTHERS, SERIES, STATE_COLOURS
from dashboards.tables import show
from dashboards.views.states_chart import states_chart
from models.core_events import EVENTS
from models.core_gpus import GPU_FAULTS
from models.core_objects import NODES as NODES_TABLE
from models.figures import hours, instant, percent, plain, ratio
from models.states import HELD_STATES
from models.table import Column, Kind
from models.words import HOLDERS as HOLDER_WORDS
from models.words import NAMES, word

UNUSABLE_SERIES, REST = "not usable", "all other workloads"
LINK = Column("node_uid_url", Kind.TEXT, "What happened on it.")
WORKLOAD_LINK = Column("workload_url", Kind.TEXT, "What happened to it.")
LABELS = {
    "node_uid_url": "what happened",
    "workload_url": "what happened",
    "node_name": "node",
    "gpu_model_name": "GPU model",
    "installed_count": "GPUs",
    "first_on": "from",
    "last_on": "to",
    "team_name": "holder",
    "state_name": "state",
    "cause_name": "cause",
    "gpu_uuid": "GPU",
    "xid_number": "XID",
    "basis_name": "told by",
    "begin_at": "since",
    "end_at": "until",
    "reason_name": "reason",
    "event_count": "times",
    "latest_text": "in its words",
    "component_name": "told by",
    "first_at": "first",
    "last_at": "last",
    "workload_name": "workload",
    "pod_name": "pod",
}


def choose(reading: Reading) -> None:
    """No node is named: all of them, each with its link."""
    st.markdown("Choose one below, or look for it by name, or by a GPU's UUID, under **Find**.")
    rows = reading.rows(NODES)
    if rows.is_empty():
        st.markdown("No node with GPUs is known in this period.")
        return
    specs = [NODES_TABLE.column(n) for n in ("node_name", "cluster_name", "gpu_model_name")]
    specs.append(NODES_TABLE.column("installed_count"))
    specs += [Column(n, Kind.DAY, "Day of the period.") for n in ("first_on", "last_on")]
    show(
        rows.with_columns(links("node", NODE, rows["node_uid"])),
        [*specs, LINK],
        name=reading.file("nodes"),
        key="nodes",
        title="Nodes with GPUs",
        labels=LABELS,
    )


def cards(reading: Reading, head: dict, rows: pl.DataFrame) -> None:
    """How many GPUs, and what became of their time."""
    whole = float(rows["gpu_seconds"].sum() or 0)

    def share(states: tuple[str, ...]) -> tuple[str, str]:
        seconds = float(rows.filter(pl.col("state_name").is_in(states))["gpu_seconds"].sum() or 0)
        return percent(ratio(seconds, whole)), f"{hours(seconds)} of {hours(whole)}"

    first, second, third, fourth = st.columns(4)
    with first:
        card("GPUs", f"{head['installed_count']:,}", note=plain(head["gpu_model_name"]))
    for place, name, states in (
        (second, "Held", tuple(HELD_STATES)),
        (third, "Held by nobody", ("unallocated",)),
        (fourth, "Not usable", ("unavailable",)),
    ):
        with place:
            figure, note = share(states)
            card(name, figure, note=note)
    created = head["created_at"]
    since = f" · joined {instant(created, reading.zone)}" if created else ""
    st.text(f"{head['node_name']} in {head['cluster_name']}{since} · uid {head['node_uid']}")


def holders(reading: Reading, node: str) -> None:
    """Who held its GPUs when: a lane for each GPU where that is known, else as few as they need."""
    st.subheader("Who held its GPUs, and when?")
    rows = reading.rows(HOLDERS, node=node)
    unusable = reading.rows(UNUSABLE, node=node)
    if rows.is_empty() and unusable.is_empty():
        st.markdown("Nobody held any in this period.")
        return
    bars, lanes, is_assumed = _bars(rows)
    for row in unusable.iter_rows(named=True):
        count = row["unschedulable_micro_gpu"] / 1e6
        text = f"{count:g} GPUs {word(row['cause_name'] or 'none')}"
        bars.append(Bar("node", UNUSABLE_SERIES, row["begin_at"], row["end_at"], text))
    if unusable.height:
        lanes = ["node", *lanes]
    names = [name for name in dict.fromkeys(bar.series for bar in bars) if name != UNUSABLE_SERIES]
    colours = {name: SERIES[n % len(SERIES)] for n, name in enumerate(names)}
    colours |= {REST: OTHERS} if REST in names else {}
    colours[UNUSABLE_SERIES] = STATE_COLOURS["unavailable"]
    if is_assumed:
        st.caption(
            "Which of its GPUs a hold lies on is not told for all of them: those stand on lanes "
            "of their own, as few as they need; each lane is one hold, whatever its GPUs."
        )
    gantt(bars, lanes[:MOST_LANES], colours, reading.zone, "holders", "Holders of GPUs over time")
    show(
        rows.with_columns(links("workload", "workload", rows["workload_key_uid"])),
        (
            Column("begin_at", Kind.INSTANT, "Since when, in the period."),
            Column("end_at", Kind.INSTANT, "Until when."),
            Column("workload_name", Kind.TEXT, "Its workload."),
            Column("pod_name", Kind.TEXT, "The pod."),
            Column("team_name", Kind.TEXT, "Who pays."),
            Column("gpu_uuid", Kind.TEXT, "The GPU, where known."),
            WORKLOAD_LINK,
        ),
        name=reading.file("holders"),
        key="holders-table",
        caption="Each hold, on each of its GPUs where they are known.",
        labels={**LABELS, "team_name": "team"},
    )


def _bars(rows: pl.DataFrame) -> tuple[list[Bar], list[str], bool]:
    """The holds as bars, their lanes, and whether some GPUs are not known."""
    largest = (
        rows.with_columns(seconds=(pl.col("end_at") - pl.col("begin_at")).dt.total_seconds())
        .group_by("workload_key_uid")
        .agg(pl.col("seconds").sum())
        .sort("seconds", "workload_key_uid", descending=[True, False])["workload_key_uid"]
        .head(len(SERIES))
        .to_list()
    )
    known = rows.filter(pl.col("gpu_uuid") != "")
    unknown = rows.filter(pl.col("gpu_uuid") == "")
    bars = []
    lanes = sorted(known["gpu_uuid"].unique().to_list())
    short = {uuid: plain(uuid, 16) for uuid in lanes}
    for row in known.iter_rows(named=True):
        bars.append(_bar(row, short[row["gpu_uuid"]], largest))
    free = lanes_of(list(unknown.select("begin_at", "end_at").iter_rows()))
    for row, lane in zip(unknown.iter_rows(named=True), free, strict=True):
        bars.append(_bar(row, f"hold {lane + 1}", largest))
    names = [*short.values(), *(f"hold {n + 1}" for n in range(max(free, default=-1) + 1))]
    return bars, names, unknown.height > 0


def _bar(row: dict, lane: str, largest: list[str]) -> Bar:
    workload = plain(str(row["workload_name"] or row["workload_key_uid"]))
    series = workload if row["workload_key_uid"] in largest else REST
    team = plain(str(NAMES.get(row["team_name"], row["team_name"])))
    text = f"{workload}, pod {plain(row['pod_name'] or '')}, team {team}"
    return Bar(lane, series, row["begin_at"], row["end_at"], text)


def states(reading: Reading, rows: pl.DataFrame, node: str) -> None:
    """What its GPUs did, and what their time went into."""
    activity = reading.rows(ACTIVITY, workload="", node=node)
    if activity.height:
        st.markdown("**What did those do that were held?**")
        states_chart(activity, reading.zone, "activity")
    shown = rows.with_columns(
        pl.col("team_name").replace(HOLDER_WORDS).replace(NAMES),
        pl.col("state_name", "cause_name").map_elements(word, return_dtype=pl.String),
    )
    show(
        rows,
        (
            Column("team_name", Kind.TEXT, "A team, or why nobody."),
            Column("state_name", Kind.TEXT, "State."),
            Column("cause_name", Kind.TEXT, "Cause."),
            Column("gpu_seconds", Kind.DECIMAL, "GPU-time."),
            Column("state_cost", Kind.DECIMAL, "Cost at book price."),
        ),
        name=reading.file("node-states"),
        key="states",
        title="Where did its time go?",
        currency=reading.currency,
        labels={**LABELS, "state_cost": f"cost, {reading.currency}"},
        shown=shown,
    )


def faults(reading: Reading, node: str) -> None:
    """GPUs that were broken."""
    rows = reading.rows(FAULTS, node=node)
    if rows.is_empty():
        st.subheader("Were its GPUs broken?")
        st.markdown("Nothing says so in this period; without DCGM's metrics nothing could.")
        return
    names = ("gpu_uuid", "xid_number", "basis_name", "begin_at", "end_at")
    show(
        rows,
        [GPU_FAULTS.column(name) for name in names],
        name=reading.file("faults"),
        key="faults",
        title="Were its GPUs broken?",
        labels=LABELS,
    )


def events(reading: Reading, name: str) -> None:
    """What components told of the node itself."""
    rows = reading.rows(NODE_EVENTS, name=name)
    if rows.is_empty():
        st.subheader("What was told of it?")
        st.markdown("No events of it were recorded.")
        return
    names = ("last_at", "reason_name", "event_count", "latest_text", "component_name", "first_at")
    show(
        rows,
        [EVENTS.column(name) for name in names],
        name=reading.file("node-events"),
        key="events",
        title="What was told of it?",
        caption="Events, alike ones counted together (at least so often); the latest first.",
        labels=LABELS,
    )


def page() -> None:
    """Draw the page."""
    reading: Reading = st.session_state["reading"]
    st.title("What happened on this node?")
    node = chosen_node()
    if node is None:
        choose(reading)
        return
    head = reading.rows(NODE_HEAD, node=node)
    if head.is_empty():
        st.subheader("It is not known in this period")
        st.markdown("Choose other dates or all clusters above, or look for it under **Find**.")
        return
    one = head.row(0, named=True)
    rows = reading.rows(NODE_STATES, node=node)
    cards(reading, one, rows)
    holders(reading, node)
    states(reading, rows, node)
    faults(reading, node)
    events(reading, one["node_name"])


page()
