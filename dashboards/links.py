"""Links from a row to a page about it: they keep the filters, so that figures stay comparable.

Which workload a link opens on is told by its key: names come back, keys do not.
"""

from collections.abc import Iterable
from urllib.parse import urlencode

import polars as pl
import streamlit as st

KEPT = ("period", "dates", "cluster", "unit")
WORKLOAD, NODE = "workload", "node_uid"


def link(page: str, *told: tuple[str, str]) -> str:
    """The address of a page with the filters of this one and what is told."""
    names = {name for name, _ in told}
    kept = [(n, v) for n in KEPT if n not in names for v in st.query_params.get_all(n)]
    return f"{page}?{urlencode([*kept, *told])}"


def links(page: str, name: str, values: Iterable[str | None]) -> pl.Series:
    """For each value the address of the page about it; null where there is none."""
    found = [None if value is None else link(page, (name, value)) for value in values]
    return pl.Series(f"{name}_url", found, dtype=pl.String)


def chosen_node() -> str | None:
    """The uid of the node that the address names."""
    return st.query_params.get(NODE) or None


def chosen_workload() -> str | None:
    """The key of the workload that the address names."""
    return st.query_params.get(WORKLOAD) or None


def forget_workload() -> None:
    """Go back to all of them."""
    st.query_params.pop(WORKLOAD, None)


def workload_bar(text: str, other: tuple[str, str]) -> None:
    """Say which workload is shown, and offer the way back and to the other page about it.

    The text may hold names; of the other page its words, which are ours, and its address.
    """
    with st.container(horizontal=True, vertical_alignment="center", border=True, key="one"):
        st.text(text, width="stretch")
        st.link_button(*other, icon=":material/arrow_forward:")
        if workload := chosen_workload():
            told = link("workload", (WORKLOAD, workload))
            st.link_button("What happened to it", told, icon=":material/timeline:")
        st.button("All workloads", on_click=forget_workload, icon=":material/close:")
