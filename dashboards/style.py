"""How pages look: one colour for each state, one template for charts, columns from contracts.

How a figure is written as text belongs in `models.figures`; what is read belongs in `data`.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import plotly.graph_objects as go
import plotly.io as pio
import polars as pl
import streamlit as st

from models.table import Column, Kind
from models.units import unit_of

INK = "#1F2933"
MUTED = "#616E7C"
LINE = "#E4E7EB"
STATE_COLOURS = {
    "active": "#2F7D57",
    "loading": "#8CC3A5",
    "starting": "#F2B84B",
    "gang_wait": "#E8893A",
    "stalled": "#B5342D",
    "idle": "#DD6A5B",
    "terminating": "#96655A",
    "unobserved": "#8A97A6",
    "unallocated": "#A9C7EA",
    "unavailable": "#4A5563",
    "unrecorded": "#D3D8DE",
    "rounding": "#E4E7EB",
}
HATCHES = {"unobserved": "/", "unrecorded": "x", "no event tells": "/"}
"""What says that we do not know is hatched, so that no colour-blind reader mistakes it."""
STEP_COLOURS = {
    "installed": "#52606D",
    "available": "#4F7CAC",
    "allocated": "#3D6A99",
    "started": "#2B5784",
    "unobserved": "#8A97A6",
    "active": "#2F7D57",
    "effective": "#24694A",
    "kept": "#19553B",
}
SERIES = ("#3D6A99", "#2F7D57", "#E8893A", "#7A5C99", "#C9A227", "#4FA3A5", "#B5342D", "#8D6E63")
OTHERS = "#B8C2CC"
OUTCOME_COLOURS = {"served": "#3D6A99", "left": "#B5342D", "waiting": "#F2B84B"}
CHART = {"displayModeBar": False, "responsive": True}

pio.templates["gpuledger"] = go.layout.Template(
    layout={
        "font": {"family": "Source Sans, sans-serif", "size": 13, "color": INK},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "colorway": SERIES,
        "margin": {"l": 8, "r": 8, "t": 8, "b": 8},
        "xaxis": {"showgrid": False, "linecolor": LINE, "tickcolor": LINE, "automargin": True},
        "yaxis": {"gridcolor": LINE, "zeroline": False, "automargin": True},
        "legend": {
            "orientation": "h",
            "y": 1.02,
            "yanchor": "bottom",
            "x": 0,
            "title": {"text": ""},
            "traceorder": "normal",
        },
        "hoverlabel": {"bgcolor": "white", "font": {"color": INK}},
        "bargap": 0.2,
    }
)

# The table's own download writes cells as they are; ours makes them safe for spreadsheets.
SHEET = """<style>
button[aria-label="Download as CSV"] { display: none !important; }
[data-testid="stMainBlockContainer"] { padding-top: 4.2rem; max-width: 1240px; }
[data-testid="stMetricValue"] { font-size: 1.7rem; }
[data-testid="stMainBlockContainer"] h1 { font-size: 2rem; padding: 0.6rem 0 0.8rem; }
[data-testid="stMainBlockContainer"] h3 { font-size: 1.3rem; }
[data-testid="stPopoverBody"] { min-width: min(860px, 92vw); }
.st-key-stale { background: #FFF8E6; border-color: #F2B84B; }
</style>"""


def draw(figure: go.Figure, key: str, height: int, alt: str) -> None:
    """Show a chart in the house's look, without plotly's tool bar."""
    figure.update_layout(template="gpuledger", height=height)
    st.plotly_chart(figure, theme=None, config=CHART, key=key, alt=alt)


ENDINGS: dict[str, str | None] = {
    "_gpu_seconds": "GPU-h",
    "_cost": None,  # the lake's currency
    **dict.fromkeys(("_name", "_at", "_on", "_text", "_class", "_count", "_ratio", "_seconds"), ""),
}
"""Endings of names -> the unit that a table's head says; '' where its cells say it."""


def label(column: Column, currency: str) -> str:
    """What a table's head calls a column: its words, then its unit."""
    for ending, unit in ENDINGS.items():
        if f"_{column.name}".endswith(ending):
            words = f"_{column.name}".removesuffix(ending).strip("_").replace("_", " ")
            said = currency if unit is None else unit
            return ", ".join(part for part in (words, said) if part)
    return column.name.replace("_", " ")


def columns(
    specs: Iterable[Column],
    currency: str,
    labels: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Streamlit's column settings out of contracts: labels, units, formats, the doc as a tip."""
    return {
        spec.name: setting(spec, (labels or {}).get(spec.name) or label(spec, currency))
        for spec in specs
    }


def setting(spec: Column, head: str) -> Any:
    """The setting of one column, by what its kind and its unit are."""
    if spec.name.endswith("_url"):
        return st.column_config.LinkColumn(head, help=spec.doc, display_text="open", width="small")
    if spec.kind is Kind.INSTANT:
        return st.column_config.DatetimeColumn(head, help=spec.doc, format="YYYY-MM-DD HH:mm")
    if spec.kind is Kind.DAY:
        return st.column_config.DateColumn(head, help=spec.doc, format="YYYY-MM-DD")
    if spec.name.endswith("gpu_seconds"):
        return st.column_config.NumberColumn(head, help=spec.doc, format="%,.1f")
    if spec.name.endswith("_seconds"):  # as a clock: it sorts by length, which words do not
        return st.column_config.NumberColumn(head, help=spec.doc, format="compact")
    if spec.name.endswith("_share"):
        return st.column_config.NumberColumn(head, help=spec.doc, format="localized")
    if spec.name.endswith("_ratio"):
        return st.column_config.NumberColumn(head, help=spec.doc, format="%.1f %%")
    unit = unit_of(spec.name)
    if unit is not None and spec.kind is not Kind.TEXT:
        return st.column_config.NumberColumn(head, help=spec.doc, format=unit.number_format)
    return st.column_config.TextColumn(head, help=spec.doc)


def displayed(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame as a table shows it: GPU-hours, lengths of time, per cent, plain numbers."""
    changed = []
    for name, kind in frame.schema.items():
        if name.endswith("gpu_seconds"):
            changed.append(pl.col(name).cast(pl.Float64) / 3600)
        elif name.endswith("_seconds"):
            changed.append(pl.duration(seconds=pl.col(name).cast(pl.Float64).round()).alias(name))
        elif name.endswith("_ratio"):
            changed.append(pl.col(name) * 100)
        elif isinstance(kind, pl.Decimal):
            changed.append(pl.col(name).cast(pl.Float64))
    return frame.with_columns(changed)
