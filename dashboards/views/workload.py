"""What happened to this workload? Pods by phase, GPUs by state, waits, steps and events."""

import polars as pl
import streamlit as st

from dashboards.data import Reading
from dashboards.gantt import MOST_LANES, Bar, gantt
from dashboards.headlines import card
from dashboards.links import chosen_workload, links
from dashboards.lives import (
    ACTIVITY,
    ATTEMPTS,
    EVENTS,
    HEAD,
    LARGEST,
    MONEY,
    PHASES,
    PODS,
    REASONS,
    STEPS,
)
from dashboards.style import STATE_COLOURS
from dashboards.tables import show
from dashboards.views.findings_table import findings
from dashboards.views.states_chart import states_chart
from dashboards.wrong import FINDINGS
from models.core_events import EVENTS as EVENTS_TABLE
from models.core_events import SCHEDULING_REASONS
from models.core_timelines import STAGES, TIMELINES
from models.figures import hours, instant, money, percent, plain, ratio
from models.mart import WORKLOAD_DAYS
from models.states import WASTE_STATES
from models.table import Column, Kind
from models.words import NAMES, word

WAITING = "waiting for a node"
RUNNING = "running"
"""What a pod does as far as no reading of a GPU decides it: that is drawn below."""
COLOURS = {
    WAITING: "#A9C7EA",
    "starting": STATE_COLOURS["starting"],
    "gang wait": STATE_COLOURS["gang_wait"],
    "loading": STATE_COLOURS["loading"],
    RUNNING: "#5B8DB8",
    "terminating": STATE_COLOURS["terminating"],
}
LINK = Column("workload_url", Kind.TEXT, "What happened to it.")
ATTEMPT_SPECS = (
    Column("queued_at", Kind.INSTANT, "When it entered the queue."),
    Column("outcome_name", Kind.TEXT, "What became of it."),
    Column("gpu_shape_name", Kind.TEXT, "Model x GPUs per pod x pods."),
    Column("pod_count", Kind.COUNT, "Pods of it."),
    Column("dependency_seconds", Kind.COUNT, "Kept out of the queue."),
    Column("quota_seconds", Kind.COUNT, "Waited for quota."),
    Column("check_seconds", Kind.COUNT, "Waited for admission checks."),
    Column("placement_seconds", Kind.COUNT, "Waited for nodes."),
    Column("start_seconds", Kind.COUNT, "From nodes to running containers."),
    Column("started_at", Kind.INSTANT, "When it ran."),
    Column("ended_at", Kind.INSTANT, "When it ended."),
)
STEP_NAMES = (
    "stage_at",
    "pod_name",
    "stage_name",
    "container_name",
    "detail_text",
    "source_name",
)
STEP_SPECS = tuple(
    Column("pod_name", Kind.TEXT, "The pod.") if name == "pod_name" else TIMELINES.column(name)
    for name in STEP_NAMES
)
EVENT_SPECS = tuple(
    EVENTS_TABLE.column(name)
    for name in (
        *("last_at", "object_kind_name", "object_name", "reason_name", "event_count"),
        *("latest_text", "first_at", "component_name"),
    )
)
REASON_SPECS = tuple(
    SCHEDULING_REASONS.column(name)
    for name in (
        *("last_at", "object_kind_name", "object_name", "reason_name", "resource_name"),
        *("node_count", "total_node_count", "told_count", "latest_text"),
    )
)
LABELS = {
    "stage_at": "at",
    "stage_name": "step",
    "container_name": "container",
    "detail_text": "detail",
    "source_name": "told by",
    "last_at": "last",
    "first_at": "first",
    "object_kind_name": "kind",
    "object_name": "object",
    "reason_name": "reason",
    "event_count": "times",
    "told_count": "times",
    "latest_text": "in its words",
    "component_name": "told by",
    "resource_name": "resource",
    "node_count": "nodes",
    "total_node_count": "of",
    "queued_at": "queued",
    "outcome_name": "outcome",
    "gpu_shape_name": "GPU shape",
    "pod_count": "pods",
    "dependency_seconds": "held back",
    "quota_seconds": "quota",
    "check_seconds": "checks",
    "placement_seconds": "placement",
    "start_seconds": "start",
    "started_at": "started",
    "ended_at": "ended",
    "workload_url": "what happened",
}


def choose(reading: Reading) -> None:
    """No workload is named: the largest of the period, each with its link."""
    st.markdown("Choose one below, or look for it by name under **Find**.")
    rows = reading.rows(LARGEST)
    if rows.is_empty():
        st.markdown("No workload held GPUs in this period.")
        return
    names = ("workload_kind_name", "namespace_name", "workload_name", "team_name")
    specs = [WORKLOAD_DAYS.column(name) for name in names]
    specs += [WORKLOAD_DAYS.column(n) for n in ("gpu_seconds", "waste_gpu_seconds")]
    specs += [WORKLOAD_DAYS.column("workload_cost"), LINK]
    show(
        rows.with_columns(links("workload", "workload", rows["workload_key_uid"])),
        specs,
        name=reading.file("workloads"),
        key="largest",
        title="The largest of the period",
        caption="By GPU-time held; the 100 largest.",
        currency=reading.currency,
        labels={**LABELS, "workload_kind_name": "kind", "namespace_name": "namespace"},
    )


def cards(reading: Reading, head: dict, rows: pl.DataFrame, pods: pl.DataFrame) -> None:
    """Whose it is, what it held, what was wasted, what it cost."""
    held = float(rows["gpu_seconds"].sum() or 0)
    unpriced = float(rows["unpriced_gpu_seconds"].sum() or 0)
    wasted = float(rows.filter(pl.col("state_name").is_in(WASTE_STATES))["gpu_seconds"].sum() or 0)
    unseen = float(rows.filter(state_name="unobserved")["gpu_seconds"].sum() or 0)
    costs = rows["state_cost"].drop_nulls()
    cost = float(costs.sum()) if costs.len() else None
    first, second, third, fourth = st.columns(4)
    with first:
        bound = pods.filter(pl.col("bound_at").is_not_null()).height
        card("Pods", f"{pods.height:,}", note=f"{bound:,} of them got a node")
    with second:
        note = f"{percent(ratio(unseen, held))} of it not measured" if held else "held no GPU"
        card("GPU-hours held", hours(held), note=note)
    with third:
        card(
            "Wasted of it",
            percent(ratio(wasted, held)),
            note="starting, gang wait, idle, stalled, terminating",
        )
    with fourth:
        priced = ratio(held - unpriced, held)
        note = "nothing held" if priced is None else f"{percent(priced)} of it has a price"
        card("Cost", money(cost if held else 0, reading.currency, priced), note=note)
    queue = f"queue {head['queue_name']}" if head["queue_name"] else "no queue"
    team = NAMES.get(head["team_name"]) or f"team {head['team_name']}"
    told = [
        f"{head['workload_kind_name']} {head['namespace_name']}/{head['workload_name']}",
        team,
        queue,
        *([f"submitted by {head['user_name']}"] if head["user_name"] else []),
        f"first known {instant(head['first_created_at'], reading.zone)}",
    ]
    if (head["gang_size_count"] or 0) > 1:
        told.append(f"a gang of {head['gang_size_count']} ({head['gang_source_name']})")
    st.text(" · ".join(told))


def bars(phases: pl.DataFrame, names: dict[str, str]) -> list[Bar]:
    """The phases of pods as bars; a state that a GPU decides is running."""
    found = []
    for row in phases.iter_rows(named=True):
        if row["pod_uid"] not in names:
            continue
        state = {"waiting": WAITING, "unobserved": RUNNING}.get(
            row["state_name"], word(row["state_name"])
        )
        state = state if state in COLOURS else RUNNING
        cause = "" if row["cause_name"] in ("none", "no_series") else f", {word(row['cause_name'])}"
        text = f"{state}{cause}"
        found.append(Bar(names[row["pod_uid"]], state, row["begin_at"], row["end_at"], text))
    return found


def lifelines(reading: Reading, pods: pl.DataFrame, workload: str) -> None:
    """The Gantt chart of the pods, and below it what their GPUs did."""
    st.subheader("What did its pods do, and when?")
    shown = pods.tail(MOST_LANES)
    if pods.height > shown.height:
        st.caption(f":orange[The last {MOST_LANES} of {pods.height:,} pods by creation are drawn.]")
    names: dict[str, str] = {}
    for uid, name in shown.select("pod_uid", "pod_name").iter_rows():
        short = plain(name, 36)
        names[uid] = short if short not in names.values() else f"{short} · {uid[:8]}"
    phases = reading.rows(PHASES, workload=workload)
    gantt(
        bars(phases, names),
        list(names.values()),
        COLOURS,
        reading.zone,
        "lifelines",
        "Pods of the workload by phase over time",
    )
    activity = reading.rows(ACTIVITY, workload=workload, node="")
    if activity.is_empty():
        st.caption("It held no GPU in this period.")
        return
    st.markdown("**What did its GPUs do?**")
    states_chart(activity, reading.zone, "activity")


def waits(reading: Reading, workload: str) -> None:
    """Each attempt with its waits."""
    rows = reading.rows(ATTEMPTS, workload=workload)
    if rows.is_empty():
        return
    shown = rows.with_columns(pl.col("outcome_name").replace({"alive": "goes on"}))
    show(
        rows,
        ATTEMPT_SPECS,
        name=reading.file("attempts"),
        key="attempts",
        title="What did it wait for?",
        caption="Each attempt, from entering the queue; its waits add up to its start. "
        "Waits are hours:minutes:seconds; one that has not ended counts as far as it is known.",
        labels=LABELS,
        shown=shown,
    )


def reasons(reading: Reading, workload: str) -> None:
    """Why it waited, in the words of schedulers and queues."""
    rows = reading.rows(REASONS, workload=workload)
    if rows.is_empty():
        return
    show(
        rows,
        REASON_SPECS,
        name=reading.file("reasons"),
        key="reasons",
        title="Why did it wait?",
        caption="As schedulers and queues told it; of node counts the latest.",
        labels=LABELS,
        shown=rows.with_columns(pl.col("reason_name").str.replace_all("_", " ")),
    )


def steps(reading: Reading, pods: pl.DataFrame, workload: str) -> None:
    """The steps of its pods, or of the chosen one."""
    st.subheader("Step by step")
    names = {
        uid: f"{name} · {uid[:8]}" for uid, name in pods.select("pod_uid", "pod_name").iter_rows()
    }
    labels = {label: uid for uid, label in names.items()}
    asked = st.query_params.get("pod")
    picked = st.selectbox(
        "Pod",
        list(labels),
        index=list(names).index(asked) if asked in names else None,
        placeholder="All pods",
        width=420,
    )
    rows = reading.rows(STEPS, workload=workload, pod=labels.get(picked or "", ""))
    if rows.is_empty():
        st.markdown("No step of it is known in this period.")
        return
    disordered = rows.filter("is_disordered").height
    caption = "The latest first, at most 1,000."
    if disordered:
        caption += f" {disordered} are told for a time before the step before them: clocks differ."
    show(
        rows,
        STEP_SPECS,
        name=reading.file("steps"),
        key="steps",
        caption=caption,
        labels=LABELS,
        shown=rows.with_columns(pl.col("stage_name").str.replace_all("_", " ")),
    )
    with st.expander("What do the steps mean?"):
        for name, text in STAGES.items():
            st.markdown(f"**{word(name)}** — {text}")


def events(reading: Reading, head: dict, workload: str) -> None:
    """What components told of it."""
    rows = reading.rows(
        EVENTS,
        workload=workload,
        kind=head["workload_kind_name"],
        space=head["namespace_name"],
        name=head["workload_name"],
    )
    if rows.is_empty():
        st.subheader("What was told of it?")
        st.markdown("No events of it were recorded.")
        return
    show(
        rows,
        EVENT_SPECS,
        name=reading.file("events"),
        key="events",
        title="What was told of it?",
        caption="Events, alike ones counted together (at least so often); the latest first.",
        labels=LABELS,
    )


def states(reading: Reading, rows: pl.DataFrame) -> None:
    """What its GPU-time went into, and what that cost."""
    specs = (
        Column("state_name", Kind.TEXT, "State."),
        Column("cause_name", Kind.TEXT, "Cause."),
        Column("gpu_seconds", Kind.DECIMAL, "GPU-time."),
        Column("state_cost", Kind.DECIMAL, "Cost at book price."),
    )
    show(
        rows,
        specs,
        name=reading.file("states"),
        key="states",
        title="What did it cost?",
        currency=reading.currency,
        labels={
            "state_name": "state",
            "cause_name": "cause",
            "state_cost": f"cost, {reading.currency}",
        },
        shown=rows.with_columns(
            pl.col("state_name", "cause_name").map_elements(word, return_dtype=pl.String)
        ),
    )


def page() -> None:
    """Draw the page."""
    reading: Reading = st.session_state["reading"]
    st.title("What happened to this workload?")
    workload = chosen_workload()
    if workload is None:
        choose(reading)
        return
    head = reading.rows(HEAD, workload=workload)
    if head.is_empty():
        st.subheader("It is not known in this period")
        st.markdown(
            f"Nothing of it lies in {reading.period} in the chosen clusters: choose other dates "
            "above, or look for it by name under **Find**."
        )
        return
    one = head.row(0, named=True)
    rows, pods = reading.rows(MONEY, workload=workload), reading.rows(PODS, workload=workload)
    cards(reading, one, rows, pods)
    if pods.is_empty():
        st.markdown("It had no pods in this period.")
    else:
        lifelines(reading, pods, workload)
    findings(reading, reading.rows(FINDINGS, workload=workload, finding=""), of_one=True)
    waits(reading, workload)
    reasons(reading, workload)
    if rows.height:
        states(reading, rows)
    if pods.height:
        steps(reading, pods, workload)
    events(reading, one, workload)


page()
