"""GPUs by state over time: the chart that the pages of a workload and of a node share."""

import plotly.graph_objects as go
import polars as pl

from dashboards.style import STATE_COLOURS, draw
from models.words import word


def states_chart(rows: pl.DataFrame, zone: str, key: str) -> None:
    """GPUs by state over time, as areas."""
    figure = go.Figure()
    wide = rows.pivot("state_name", index="begin_at", values="gpu_share").sort("begin_at")
    at = wide["begin_at"].dt.convert_time_zone(zone).dt.replace_time_zone(None).to_list()
    for state, colour in STATE_COLOURS.items():
        if state not in wide.columns:
            continue
        figure.add_scatter(
            x=at,
            y=wide[state].fill_null(0).to_list(),
            name=word(state),
            mode="lines",
            stackgroup="states",
            line={"width": 0, "shape": "hv", "color": colour},
            fillcolor=colour,
            hovertemplate=f"{word(state)}: %{{y:.1f}} GPUs<extra></extra>",
        )
    figure.update_yaxes(title="GPUs", rangemode="tozero")
    figure.update_layout(hovermode="x unified")
    draw(figure, key, 260, "GPUs by state over time")
