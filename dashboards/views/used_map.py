"""Nodes by time, and the GPUs of one of them: the maps of `used`. It is no page of its own."""

import re

import polars as pl
import streamlit as st

from dashboards.data import Reading
from dashboards.filters import BIND, choice
from dashboards.heat import KEY, KEY_OF_PART, MEANINGS, MEASURES, MOST_ROWS, ORDERS, heat_map
from dashboards.use import DEVICES, NODES, Use, with_ratios
from models.figures import plain


def with_row_names(rows: pl.DataFrame, reading: Reading) -> pl.DataFrame:
    """The rows with a name for each node that no other has, and its place by that name."""
    name = pl.col("node_name")
    if len(reading.clusters) > 1:
        name = pl.col("cluster_name") + " · " + name
    found = rows.with_columns(row_name=name)
    twice = pl.col("node_uid").n_unique().over("row_name") > 1
    found = found.with_columns(
        row_name=pl.when(twice)
        .then(pl.col("row_name") + " · " + pl.col("node_uid").str.slice(0, 8))
        .otherwise("row_name")
    )
    return found.with_columns(place=places(found["row_name"]))


def places(names: pl.Series) -> pl.Series:
    """Names as people sort them: node-2 before node-10."""
    padded = [re.sub(r"\d+", lambda digits: digits[0].zfill(12), name) for name in names]
    return pl.Series("place", padded, dtype=pl.String)


def maps(use: Use, one: pl.DataFrame | None) -> None:
    """The nodes, and the GPUs of a chosen one; of one workload the GPUs that it had longest."""
    reading = use.reading
    measures = dict(MEASURES)
    if reading.teams or one is not None:
        measures.pop("held")  # what they hold is all that is shown of a node
    st.subheader("Where and when?" if one is None else "On which GPUs, and when?")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        measure = choice("Shown", measures, "measure", "active")
        order = choice("Rows", ORDERS, "rows", "name")
    is_part = bool(reading.teams) or one is not None
    ground = "not held by them" if is_part else "no record"
    st.caption(f"{MEANINGS[measure]} {KEY_OF_PART if is_part else KEY}")
    if one is not None:
        last = one.filter(pl.col("workload_name").is_not_null()).row(-1, named=True)
        rows = use.rows(DEVICES, node="", workload=last["workload_name"], team=last["team_name"])
        devices(reading, rows, measure, order, is_one_node=False)
        st.caption("A GPU is shown in the hours in which the workload had it longest.")
        return
    rows = with_row_names(use.rows(NODES), reading)
    out = heat_map(with_ratios(rows), measure, order, reading.zone, "nodes", ground=ground)
    if out:
        st.caption(
            f":orange[{out:,} more nodes are left out:] the map holds {MOST_ROWS}. Choose a "
            "cluster above, or see all of them in the table by node."
        )
    names = rows.unique("row_name").sort("place")
    picked = st.selectbox(
        "One node's GPUs",
        names["row_name"].to_list(),
        index=None,
        placeholder="Choose a node",
        key="node",
        bind=BIND,
        width=320,
    )
    if picked is not None:
        [uid] = names.filter(pl.col("row_name") == picked)["node_uid"]
        found = use.rows(DEVICES, node=uid, workload="", team="")
        devices(reading, found, measure, order, is_one_node=True)


def devices(
    reading: Reading, rows: pl.DataFrame, measure: str, order: str, *, is_one_node: bool
) -> None:
    """GPUs by time, each cell with who had the GPU longest."""
    if rows.is_empty():
        st.markdown("No GPU of it was measured in this period: there is no exporter to tell.")
        return
    number = pl.col("gpu_number").cast(pl.String).fill_null("?")
    name = pl.format("GPU {} · {}", number, pl.col("gpu_uuid").str.slice(0, 12))
    name = pl.when(pl.col("instance_number") >= 0).then(
        pl.format("{} · instance {}", name, pl.col("instance_number"))
    ).otherwise(name)  # fmt: skip
    if not is_one_node:
        name = pl.format("{} · {}", pl.col("node_name"), name)
    rows = rows.with_columns(row_name=name)
    rows = with_ratios(rows.with_columns(place=places(rows["row_name"])))
    notes = {
        (row, at): f"<br>{plain(team)}" + (f", {plain(workload)}" if workload else "")
        for row, at, team, workload in rows.select(
            "row_name", "begin_at", "team_name", "workload_name"
        ).iter_rows()
        if team
    }
    ground = "no record" if is_one_node else "not held by it longest"
    heat_map(rows, measure, order, reading.zone, "devices", ground=ground, notes=notes)
