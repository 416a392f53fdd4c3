"""What went wrong? Findings of workloads: what held GPUs up, whose, since when, at what cost."""

import polars as pl
import streamlit as st

from dashboards.data import Reading
from dashboards.filters import choice
from dashboards.headlines import card
from dashboards.tables import show
from dashboards.views.findings_table import TIMES, findings, labels
from dashboards.wrong import FINDINGS, KINDS, MEMBERS
from models.core_findings import FINDINGS as MEANINGS
from models.figures import hours, instant, money, plain, ratio
from models.mart_findings import FINDING_MEMBERS, WORKLOAD_FINDINGS
from models.table import Column, Kind
from models.words import NAMES, word

ALL = "all"
COUNTS = (
    Column("finding_count", Kind.COUNT, "How many of the period."),
    Column("open_count", Kind.COUNT, "How many are still so, as of the snapshot."),
)
GPUS = Column("gpu_share", Kind.RATIO, "GPUs that the pod asks for, parts of one too.")


def kinds(reading: Reading, rows: pl.DataFrame) -> None:
    """What kinds were found, and what each means."""
    specs = [WORKLOAD_FINDINGS.column("finding_name"), *COUNTS]
    specs += [WORKLOAD_FINDINGS.column(name) for name in TIMES]
    if not rows["beside_gpu_seconds"].sum():
        specs.pop()
    show(
        rows,
        specs,
        name=reading.file("finding-kinds"),
        key="finding-kinds",
        title="What kinds of faults?",
        caption="Kinds overlap, so they do not add up: a deadlock is a partial gang too.",
        currency=reading.currency,
        labels=labels(reading),
        shown=rows.with_columns(pl.col("finding_name").map_elements(word, return_dtype=pl.String)),
    )
    with st.expander("What do these words mean?"):
        for name in rows["finding_name"]:
            st.markdown(f"**{word(name)}** — {MEANINGS[name]}.")


def cards(reading: Reading, rows: pl.DataFrame) -> None:
    """How many, and the kind that held up most."""
    first = rows.row(0, named=True)
    spent, priced = first["gpu_seconds"], None
    if spent:
        priced = ratio(spent - (first["unpriced_gpu_seconds"] or 0), spent)
    one, two, three = st.columns(3)
    with one:
        card("Findings", f"{rows['finding_count'].sum():,}", note=f"of {rows.height} kinds")
    with two:
        card("Still so", f"{rows['open_count'].sum():,}", note="as of this snapshot")
    with three:
        cost = money(first["finding_cost"] if spent else 0, reading.currency, priced)
        card(f"Most by {word(first['finding_name'])}", hours(spent), note=cost)


def members(reading: Reading, rows: pl.DataFrame) -> None:
    """The pods of a finding that the reader picks."""
    st.subheader("Which pods are in it?")
    names = [
        " · ".join(
            (
                word(row["finding_name"]),
                plain(row["workload_name"], 40),
                instant(row["since_at"], reading.zone),
                plain(NAMES.get(row["team_name"]) or row["team_name"], 24),
            )
        )
        for row in rows.iter_rows(named=True)
    ]
    picked = st.selectbox(
        "Finding", range(len(names)), format_func=names.__getitem__, label_visibility="collapsed"
    )
    row = rows.row(picked or 0, named=True)
    st.text(row["evidence_text"])
    found = reading.rows(
        MEMBERS,
        cluster=row["cluster_name"],
        finding=row["finding_name"],
        subject=row["subject_text"],
        team=row["team_name"],
        since=row["since_at"],
    )
    if found.is_empty():
        st.markdown("No pod is left in it: that is what it is about.")
        return
    specs = [FINDING_MEMBERS.column(n) for n in ("pod_name", "namespace_name", "node_name")]
    specs += [GPUS, FINDING_MEMBERS.column("member_state_name")]
    specs += [FINDING_MEMBERS.column(n) for n in ("state_since_at", "gpu_seconds", "member_cost")]
    if found["beside_gpu_seconds"].sum():
        specs.append(FINDING_MEMBERS.column("beside_gpu_seconds"))
    show(
        found,
        specs,
        name=reading.file("finding-members"),
        key="finding-members",
        caption="What each does as the finding ends, and what it held meanwhile.",
        currency=reading.currency,
        labels=labels(reading),
        shown=found.with_columns(pl.col("member_state_name").str.replace_all("_", " ")),
    )


def page() -> None:
    """Draw the page."""
    reading: Reading = st.session_state["reading"]
    st.title("What went wrong?")
    told = reading.rows(KINDS, workload="")
    if told.is_empty():
        st.markdown("Nothing was found in this period.")
        return
    cards(reading, told)
    kinds(reading, told)
    options = {ALL: "all kinds", **{name: word(name) for name in told["finding_name"]}}
    kind = choice("Kind", options, "finding", ALL)
    rows = reading.rows(FINDINGS, workload="", finding="" if kind == ALL else kind)
    findings(reading, rows)
    members(reading, rows)


page()
