"""Which GPUs are idle now? Idle and stalled GPUs of holds, whose they are, why, and what they cost.

Now is the end of what is known, whatever the period; those of the period that ended stand below.
"""

from datetime import UTC, datetime, timedelta

import polars as pl
import streamlit as st

from dashboards.data import Reading
from dashboards.filters import BIND, choice
from dashboards.headlines import card
from dashboards.idling import (
    BACK,
    ENDED,
    HELD_NOW,
    KNOWN,
    SHOWN_STATE,
    by_pod,
    message,
    notice_seconds,
    open_now,
    with_state,
)
from dashboards.links import chosen_workload, link, links, workload_bar
from dashboards.tables import show
from dashboards.views.idle_more import CLOCK, columns, ended, findings, labels, worded
from models.figures import NOT_MEASURED, amount, duration, hours, instant, money, percent, ratio
from models.mart_gpus import EPISODES
from models.table import Column, Kind
from models.words import LIKELY_CAUSES, NAMES, word

FRESH = timedelta(minutes=15)
KINDS = {"all": "idle and stalled", "idle": "idle", "stalled": "stalled"}
LEASTS = (1800, 3600, 4 * 3600, 12 * 3600, 24 * 3600, 7 * 24 * 3600)
LINK = Column("workload_url", Kind.TEXT, "This page for that workload alone; to send it on.")


def age(reading: Reading, now: datetime) -> None:
    """Say of when the figures are, in amber where that is too long ago to act on."""
    known = reading.rows(KNOWN)
    oldest = known["known_until_at"].min()
    if not isinstance(oldest, datetime):
        return
    ago = now - oldest
    behind = "" if known.height == 1 else ", the cluster furthest behind"
    st.badge(
        f"As of {instant(oldest, reading.zone)} · {duration(ago.total_seconds())} ago",
        icon=":material/schedule:",
        color="orange" if ago > FRESH else "gray",
        help=f"The end of what is known{behind}. What changed since is not seen here"
        + ("; it is more than 15 minutes old." if ago > FRESH else "."),
    )


def narrowed(rows: pl.DataFrame, kind: str, causes: list[str], least: int) -> pl.DataFrame:
    """The episodes that the page's own filters leave."""
    if kind != "all":
        rows = rows.filter(episode_name=kind)
    if causes:
        rows = rows.filter(pl.col("likely_cause_name").is_in(causes))
    return rows.filter(pl.col("episode_seconds") >= least)


def filters(reading: Reading) -> tuple[str, list[str], int]:
    """Which state, which causes, and from which length on."""
    notice = notice_seconds(reading)
    leasts = {seconds: duration(seconds) for seconds in sorted({*LEASTS, notice})}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        kind = choice("State", KINDS, "state", "all")
        least = choice("For at least", leasts, "least", notice)
        words = {word(cause): cause for cause in LIKELY_CAUSES}
        causes = st.multiselect(
            "Likely cause", list(words), placeholder="All causes", key="cause", bind=BIND, width=280
        )
    return kind, [words[cause] for cause in causes], least


def cards(reading: Reading, rows: pl.DataFrame, pods: pl.DataFrame, found: int) -> bool:
    """How many, and what they have cost and cost a day; False where nothing can tell.

    `found`: how many there are, whatever the page's own filters.
    """
    day = reading.last_on
    held = reading.rows(HELD_NOW, since_on=day - timedelta(days=1)).row(0, named=True)
    blind = ratio(held["unobserved_gpu_seconds"], held["held_gpu_seconds"])
    is_unseen = not held["running_gpu_seconds"] and blind != 0
    is_known = found > 0 or held["held_gpu_seconds"] == 0 or not is_unseen
    note = "nothing is held" if blind is None else f"{percent(blind)} of held not measured"
    idle, stalled = (rows.filter(episode_name=name) for name in ("idle", "stalled"))
    sure = stalled.filter("is_certain").height
    seconds = float(rows["gpu_seconds"].sum() or 0)
    unpriced = float(rows["unpriced_gpu_seconds"].sum() or 0)
    priced = ratio(seconds - unpriced, seconds)
    first, second, third, fourth = st.columns(4)
    with first:
        pod_count = pods.filter(episode_name="idle").height
        card(
            "Idle GPUs", f"{idle.height:,}" if is_known else NOT_MEASURED,
            note=f"in {pod_count:,} {'pod' if pod_count == 1 else 'pods'} · {note}" * is_known,
            doc="GPUs, or GPU instances, that are held and measured doing nothing. In the last "
            f"hour {hours(held['held_gpu_seconds'])} were held; what nothing measures may hide "
            "more.",
        )  # fmt: skip
    with second:
        card(
            "Stalled GPUs", f"{stalled.height:,}" if is_known else NOT_MEASURED,
            note=f"{sure:,} by their metrics, {stalled.height - sure:,} suspected" * is_known,
            doc="Kernels are reported, but no work is done. Suspected: the exporter has no PROF "
            "metrics, so only utilisation and power speak for it.",
        )  # fmt: skip
    known = 0 if seconds and rows["episode_cost"].count() == 0 else None
    a_day, so_far = (
        money(rows[name].sum() if is_known else None, reading.currency, known)
        for name in ("per_day_cost", "episode_cost")
    )
    with third:
        card(
            "Cost a day", a_day,
            note="" if priced is None else f"{percent(priced)} priced",
            doc="What a day of all of them costs at the price in force.",
        )  # fmt: skip
    with fourth:
        card(
            "Cost so far", so_far,
            note=f"{amount(seconds / 3600)} GPU-h, at most {BACK.days} days back" * is_known,
            doc="Since each began.",
        )  # fmt: skip
    st.caption("The cost of idle time is price x time, not money saved.")
    return is_known


def now_table(reading: Reading, pods: pl.DataFrame) -> None:
    """The pods, the dearest first."""
    pods = pods.with_columns(links("idle", "workload", pods["workload_key_uid"]))
    specs = columns(reading, pods)
    specs.insert(3, LINK)
    show(
        pods,
        specs,
        name=reading.file("idle-now"),
        key="idle-now",
        title="Whose are they?",
        caption=f"One row for each pod, the dearest a day first. {CLOCK}{older(reading, pods)}",
        currency=reading.currency,
        labels=labels(reading),
        shown=worded(pods),
    )


def older(reading: Reading, pods: pl.DataFrame) -> str:
    """What is said where an episode was not followed back to its begin."""
    first = pods["since_at"].min()
    assert isinstance(first, datetime)
    is_cut = first.date() <= reading.last_on - BACK
    return f" Those since {first:%Y-%m-%d} may have begun earlier." if is_cut else ""


def one_by_one(reading: Reading, rows: pl.DataFrame) -> None:
    """The GPUs of one workload."""
    names = ("pod_name", "node_name", "gpu_uuid", "since_at", "episode_seconds",
             "utilisation_ratio", "sm_ratio", "memory_used_mib", "power_watts", "rest_watts",
             "last_active_at", "per_day_cost", "episode_cost")  # fmt: skip
    specs = [EPISODES.column(name) for name in names]
    specs.insert(3, SHOWN_STATE)
    if rows["instance_number"].max() != -1:
        specs.insert(3, EPISODES.column("instance_number"))
    show(
        with_state(rows).sort("pod_name", "hold_id", "part_number"),
        specs,
        name=reading.file("idle-gpus"),
        key="idle-gpus",
        title="Which of its GPUs?",
        caption=f"One by one, with what was measured of each. {CLOCK}",
        currency=reading.currency,
        labels=labels(reading),
    )


def letter(reading: Reading, pods: pl.DataFrame) -> None:
    """A message to the owner of one workload, to be copied."""
    st.subheader("What to tell the owner?")
    named = {
        key: f"{name} · {NAMES.get(team, team)}"
        for key, name, team in pods.select("workload_key_uid", "workload_name", "team_name").rows()
    }
    key = str(next(iter(named)))
    if len(named) > 1:
        picked = st.selectbox(
            "Workload", list(named), format_func=lambda k: named[k], key="letter", width=420
        )
        key = picked or key
    base = (st.context.url or "").split("?")[0]
    address = f"{base.rsplit('/', 1)[0]}/{link('idle', ('workload', key))}" if base else ""
    text = message(reading, pods.filter(workload_key_uid=key), address)
    st.code(text, language=None, wrap_lines=True)


def page() -> None:
    """Draw the page."""
    reading: Reading = st.session_state["reading"]
    st.title("Which GPUs are idle now?")
    age(reading, datetime.now(UTC))
    workload = chosen_workload()
    kind, causes, least = filters(reading)
    found = open_now(reading)
    past = reading.rows(ENDED)
    if workload:
        found, past = (rows.filter(workload_key_uid=workload) for rows in (found, past))
        both = pl.concat([found, past])
        name = next(iter(both["workload_name"]), None)
        workload_bar(
            f"Only the workload {name}" if name else "That workload has none in this period.",
            ("What it held and used", link("used", ("workload", workload))),
        )
    rows = narrowed(found, kind, causes, least)
    pods = by_pod(rows)
    is_known = cards(reading, rows, pods, found.height)
    if not is_known:
        st.markdown(
            "**Whether a GPU is idle is not known**: nothing measured the held GPUs in the last "
            "hour. *What are we blind to?* says what is missing."
        )
        if past.is_empty():
            return
    elif pods.is_empty():
        shorter = found.height
        st.markdown(
            "No GPU is idle or stalled with these filters, as of the time above."
            + (f" {shorter:,} are with other ones." if shorter else "")
        )
    else:
        now_table(reading, pods)
        if workload:
            one_by_one(reading, rows)
        letter(reading, pods)
    ended(reading, narrowed(past, kind, causes, least))
    if not workload:
        findings(reading)


page()
