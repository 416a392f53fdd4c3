"""Bars over time on lanes: the pods of a workload by phase, the GPUs of a node by holder.

What is read belongs to `lives`; names from clusters pass through `figures.plain`.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo

import plotly.graph_objects as go

from dashboards.charts import hatch
from dashboards.style import draw
from models.figures import duration, instant

MOST_LANES = 60
MINUTE = 60


class Bar(NamedTuple):
    """A stretch of time on a lane."""

    lane: str
    series: str
    begin_at: datetime
    end_at: datetime
    text: str
    """What it says when pointed at: one of our words, or a name that is plain already."""


def gantt(
    bars: Sequence[Bar],
    lanes: Sequence[str],
    colours: Mapping[str, str],
    zone: str,
    key: str,
    alt: str,
    hatched: Mapping[str, str] | None = None,
) -> None:
    """The bars of each series in its colour, lanes from the top down, times in the lake's zone."""
    figure, place = go.Figure(), ZoneInfo(zone)
    for series, colour in colours.items():
        mine = [bar for bar in bars if bar.series == series]
        if not mine:
            continue
        begins = [bar.begin_at.astimezone(place).replace(tzinfo=None) for bar in mine]
        figure.add_bar(
            y=[bar.lane for bar in mine],
            base=begins,
            x=[1000 * (bar.end_at - bar.begin_at).total_seconds() for bar in mine],
            orientation="h",
            name=series,
            marker={"color": colour, "pattern": hatch((hatched or {}).get(series, series))},
            customdata=[told(bar, zone) for bar in mine],
            hovertemplate="%{customdata}<extra></extra>",
        )
    figure.update_layout(barmode="overlay", bargap=0.25, legend_traceorder="normal")
    figure.update_xaxes(type="date")
    figure.update_yaxes(
        autorange="reversed", categoryorder="array", categoryarray=list(lanes), showgrid=False,
        tickfont={"size": 11},
    )  # fmt: skip
    draw(figure, key, 90 + 22 * max(len(lanes), 3), alt)


def told(bar: Bar, zone: str) -> str:
    """What a bar says: whose it is, how long, from when to when."""
    length = duration((bar.end_at - bar.begin_at).total_seconds())
    span = f"{instant(bar.begin_at, zone)} to {instant(bar.end_at, zone)}"
    return f"{bar.lane}: {bar.text}<br>{length}, {span}"


def lanes_of(spans: Sequence[tuple[datetime, datetime]]) -> list[int]:
    """For each span, in the order of their begins, the first lane that is free then."""
    free: list[datetime] = []
    found = []
    for begin, end in spans:
        lane = next((n for n, until in enumerate(free) if until <= begin), len(free))
        if lane == len(free):
            free.append(end)
        else:
            free[lane] = end
        found.append(lane)
    return found
