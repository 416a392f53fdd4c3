"""Which GPUs are idle now? Idle and stalled GPUs of holds, whose they are, why, and what they cost.

Now is the end of what is known, whatever the period; those of the period that ended stand below.
"""

from datetime import UTC, datetime, timedelta

import polars as pl
import streamlit as st

from dashboards.data import Reading
from dashboards.figures import amount, duration, hours, instant, money, percent, ratio
from dashboards.filters import BIND, choice
from dashboards.headlines import card
from dashboards.idling import (
    BACK,
    COLUMNS,
    ENDED,
    FINDINGS,
    HELD_NOW,
    KNOWN,
    PRICED,
    SHOWN_STATE,
    by_pod,
    message,
    notice_seconds,
    open_now,
    with_state,
)
from dashboards.links import chosen_workload, link, links, workload_bar
from dashboards.tables import show
from dashboards.words import FINDINGS as FOUND
from dashboards.words import LIKELY_CAUSES, NAMES, word
from models.mart_gpus import EPISODES, GPU_FINDINGS
from models.table import Column, Kind

FRESH = timedelta(minutes=15)
KINDS = {"all": "idle and stalled", "idle": "idle", "stalled": "stalled"}
LEASTS = (1800, 3600, 4 * 3600, 12 * 3600, 24 * 3600, 7 * 24 * 3600)
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
LINK = Column("workload_url", Kind.TEXT, "This page for that workload alone; to send it on.")
CLOCK = "Lengths are hours:minutes:seconds."


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


def cards(reading: Reading, rows: pl.DataFrame, pods: pl.DataFrame) -> None:
    """How many, of how many held; what they have cost and cost a day."""
    day = reading.last_on
    held = reading.rows(HELD_NOW, since_on=day - timedelta(days=1)).row(0, named=True)
    blind = ratio(held["unobserved_gpu_seconds"], held["held_gpu_seconds"])
    note = "not known how many are held" if blind is None else f"{percent(blind)} of held not measured"
    idle, stalled = (rows.filter(episode_name=name) for name in ("idle", "stalled"))
    sure = stalled.filter("is_certain").height
    seconds = float(rows["gpu_seconds"].sum() or 0)
    unpriced = float(rows["unpriced_gpu_seconds"].sum() or 0)
    priced = ratio(seconds - unpriced, seconds)
    first, second, third, fourth = st.columns(4)
    with first:
        pod_count = pods.filter(episode_name="idle").height
        card(
            "Idle GPUs", f"{idle.height:,}",
            note=f"in {pod_count:,} {'pod' if pod_count == 1 else 'pods'} · {note}",
            doc="GPUs, or GPU instances, that are held and measured doing nothing. In the last "
            f"hour {hours(held['held_gpu_seconds'])} were held; what nothing measures may hide "
            "more.",
        )  # fmt: skip
    with second:
        card(
            "Stalled GPUs", f"{stalled.height:,}",
            note=f"{sure:,} by their metrics, {stalled.height - sure:,} suspected",
            doc="Kernels are reported, but no work is done. Suspected: the exporter has no PROF "
            "metrics, so only utilisation and power speak for it.",
        )  # fmt: skip
    known = 0 if seconds and rows["episode_cost"].count() == 0 else None
    with third:
        card(
            "Cost a day", money(rows["per_day_cost"].sum(), reading.currency, known),
            note="" if priced is None else f"{percent(priced)} priced",
            doc="What a day of all of them costs at the price in force.",
        )  # fmt: skip
    with fourth:
        card(
            "Cost so far", money(rows["episode_cost"].sum(), reading.currency, known),
            note=f"{amount(seconds / 3600)} GPU-h, at most {BACK.days} days back",
            doc="Since each began.",
        )  # fmt: skip
    st.caption("The cost of idle time is price x time, not money saved.")


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
    key = next(iter(named))
    if len(named) > 1:
        key = st.selectbox(
            "Workload", list(named), format_func=lambda k: named[k], key="letter", width=420
        )
    base = (st.context.url or "").split("?")[0]
    address = f"{base.rsplit('/', 1)[0]}/{link('idle', ('workload', key))}" if base else ""
    text = message(reading, pods.filter(workload_key_uid=key), address)
    st.code(text, language=None, wrap_lines=True)


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
    given = {c.name: c for c in GPU_FINDINGS.columns} | {"gpus_text": COLUMNS[2]}
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
        name = both["workload_name"][0] if both.height else None
        workload_bar(
            f"Only the workload {name}" if name else "That workload has none in this period.",
            ("What it held and used", link("used", ("workload", workload))),
        )
    rows = narrowed(found, kind, causes, least)
    pods = by_pod(rows)
    cards(reading, rows, pods)
    if pods.is_empty():
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
