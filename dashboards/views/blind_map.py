"""Nodes by quantities: the map of `blind`. It is no page of its own."""

import plotly.graph_objects as go
import polars as pl
import streamlit as st

from dashboards.data import Reading
from dashboards.heat import MOST_ROWS, SCALE
from dashboards.sight import METRICS, NAMES, TOLD_OF_EXPECTED
from dashboards.style import INK, MUTED, draw
from dashboards.views.used_map import with_row_names
from models.figures import percent, plain


def sight_map(reading: Reading, sight: pl.DataFrame, enough: float) -> None:
    """The nodes that tell a part, by quantities: which share was told."""
    rows = with_row_names(sight, reading).with_columns(told_ratio=TOLD_OF_EXPECTED)
    nodes = rows.group_by("row_name").agg(
        pl.col("told_ratio").mean(), least=pl.col("told_ratio").min()
    )
    silent = nodes.filter(pl.col("told_ratio").fill_null(0) == 0).height
    worst = nodes.filter(pl.col("least") < enough, pl.col("told_ratio") > 0).sort(
        "told_ratio", "row_name"
    )
    if worst.is_empty():
        return
    st.markdown("**Which nodes tell a part?**")
    names = worst["row_name"].to_list()[:MOST_ROWS]
    found = set(rows["metric_name"])
    metrics = [m for m in METRICS if m in found] + sorted(found - set(METRICS))
    down, across = ({n: i for i, n in enumerate(x)} for x in (names, metrics))
    grid: list[list[float | None]] = [[None] * len(metrics) for _ in names]
    texts = [["could not be told"] * len(metrics) for _ in names]
    for row, metric, share, why in rows.select(
        "row_name", "metric_name", "told_ratio", "reason_text"
    ).iter_rows():
        if row in down:
            grid[down[row]][across[metric]] = None if share is None else 100 * share
            said = f"{percent(share)} told" + (f"<br>{plain(why, 80)}" if why else "")
            texts[down[row]][across[metric]] = said
    words = [NAMES.get(m, plain(m)).replace(" ", "<br>", 1) for m in metrics]
    height = min(max(900 / len(names), 4), 22)
    step = max(1, -(-13 // round(height)))
    figure = go.Figure(
        go.Heatmap(
            z=grid, x=words, y=list(range(len(names))), text=texts, colorscale=SCALE, zmin=0,
            zmax=100, xgap=2, ygap=1, customdata=[[plain(n)] * len(metrics) for n in names],
            hovertemplate="<b>%{customdata}</b><br>%{x}: %{text}<extra></extra>",
            colorbar={"title": {"text": "% told", "side": "right"}, "thickness": 12,
                      "outlinewidth": 0, "len": min(260, height * len(names)),
                      "lenmode": "pixels", "y": 1, "yanchor": "top"},
        )
    )  # fmt: skip
    figure.update_yaxes(
        tickvals=list(range(0, len(names), step)),
        ticktext=[plain(names[n], 28) for n in range(0, len(names), step)],
        range=[len(names) - 0.5, -0.5], showgrid=False, tickfont={"size": 11, "color": INK},
    )  # fmt: skip
    figure.update_xaxes(
        side="top", tickangle=0, tickfont={"size": 11, "color": MUTED}, showgrid=False
    )
    figure.update_layout(plot_bgcolor="#F4F6F8", margin={"t": 34})
    draw(figure, "sight", round(height * len(names)) + 90, "Share told, nodes by quantities")
    left = nodes.height - worst.height - silent
    cut = f"The {MOST_ROWS} of {worst.height:,} that tell least. " * (worst.height > len(names))
    st.caption(
        f"{cut}{left:,} other nodes tell at least {percent(enough)} of each"
        + (f", {silent:,} tell nothing." if silent else ".")
    )
