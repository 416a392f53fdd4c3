"""Find a pod, a workload, a node or a GPU by its name, its uid or a part of its name."""

import polars as pl
import streamlit as st

from dashboards.data import Reading
from dashboards.filters import BIND
from dashboards.links import NODE, link
from dashboards.lives import FOUND
from dashboards.tables import show
from models.table import Column, Kind

SPECS = (
    Column("found_text", Kind.TEXT, "What was found."),
    Column("team_name", Kind.TEXT, "Who pays.", nullable=True),
    Column("cluster_name", Kind.TEXT, "The cluster."),
    Column("first_on", Kind.DAY, "First day of the period on which it is known."),
    Column("last_on", Kind.DAY, "Last day of the period on which it is known."),
    Column("about_url", Kind.TEXT, "What happened to it."),
)
LABELS = {"found_text": "found", "first_on": "from", "last_on": "to", "about_url": "what happened"}
LEAST = 2


def address(row: dict) -> str:
    """The page about what was found."""
    names = {"workload": ("workload", "workload"), "pod": ("workload", "workload")}
    page, name = names.get(row["kind_name"], ("node", NODE))
    told = [(name, row["about_uid"]), ("cluster", row["cluster_name"])]
    if row["kind_name"] == "pod":
        told.append(("pod", row["found_uid"]))
    return link(page, *told)


def page() -> None:
    """Draw the page."""
    reading: Reading = st.session_state["reading"]
    st.title("What happened to …?")
    wanted = st.text_input(
        "Pod, workload, node or GPU",
        placeholder="A name or a part of it, a uid, or a GPU's UUID",
        key="find",
        bind=BIND,
    ).strip()
    if len(wanted) < LEAST:
        st.markdown(
            f"Type at least {LEAST} letters. It looks among all that is known of "
            f"{reading.period}; choose other dates above for what lies before."
        )
        return
    rows = reading.rows(FOUND, wanted=wanted)
    if rows.is_empty():
        st.subheader("Nothing of that name is known in this period")
        st.markdown("Look at the spelling, choose other dates or all clusters above.")
        return
    rows = rows.with_columns(
        about_url=pl.Series([address(row) for row in rows.iter_rows(named=True)], dtype=pl.String)
    )
    show(
        rows,
        SPECS,
        name=reading.file("found"),
        key="found",
        title=f"{rows.height} found" if rows.height < 200 else "The latest 200",
        caption="What is called exactly so comes first, then the latest.",
        labels=LABELS,
    )


page()
