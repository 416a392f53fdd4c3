"""The charts that more than one page draws: the waterfall, days by series, bars by size.

Colours and the template are in `style`; names from clusters pass through `figures.plain`.
"""

from collections.abc import Callable, Mapping

import plotly.graph_objects as go
import polars as pl

from dashboards.data import Reading
from dashboards.style import (
    HATCHES,
    INK,
    LINE,
    MUTED,
    OTHERS,
    SERIES,
    STATE_COLOURS,
    STEP_COLOURS,
    draw,
)
from models.figures import amount, hours, money, percent, plain, ratio
from models.words import word

LOST = {
    "available": "unavailable or unrecorded",
    "allocated": "unallocated",
    "started": "starting, gang wait, loading, terminating",
    "active": "stalled or idle",
    "effective": "active without effect",
    "kept": "reworked",
}
"""Step -> what was lost between the step before it and this one."""


WIDTH, LETTER = 1000, 6.3  # pixels of a chart and of a letter: what is written must fit beside


def waterfall(rows: pl.DataFrame, unit: str, currency: str) -> None:
    """Steps from the top down, each with what was lost on the way to it."""
    column = "step_cost" if unit == "money" else "gpu_seconds"
    scale = 1 if unit == "money" else 3600
    values: dict[str, float | None] = {
        name: None if value is None else float(value)
        for name, value in rows.select("step_name", column).iter_rows()
    }
    measured = set(rows.filter(pl.col("gpu_seconds").is_not_null())["step_name"])
    whole = next(iter(values.values()), None)
    partly = set(rows.filter("is_partly_measured")["step_name"])
    heads, figure = [], go.Figure()
    room = whole or 1.0
    previous, unobserved = 0.0, values.get("unobserved") or 0.0
    for step, value in values.items():
        priced = 0 if value is None and step in measured else None
        text = money(value, currency, priced) if unit == "money" else hours(value)
        share = "" if value is None else f" · {percent(ratio(value, whole))}"
        note = " in part" if step in partly and value is not None and step != "active" else ""
        heads.append(f"<b>{step.capitalize()}</b><br>{text}{share}{note}")
        begin = (values.get("active") or 0.0) if step == "unobserved" else 0.0
        if value is None:
            figure.add_bar(y=[heads[-1]], x=[0], orientation="h", hoverinfo="skip")
        else:
            figure.add_bar(
                y=[heads[-1]],
                x=[value / scale],
                base=[begin / scale],
                orientation="h",
                marker={
                    "color": STEP_COLOURS[step],
                    "pattern": hatch(step),
                },
                hovertemplate=f"{step}: {text}{share}<extra></extra>",
            )
        if step == "unobserved":
            continue
        kept = value if value is None or step != "active" else value + unobserved
        if kept is not None and step in LOST and previous - kept > 0:
            lost = previous - kept
            shown = money(lost, currency) if unit == "money" else hours(lost)
            figure.add_bar(
                y=[heads[-1]],
                x=[lost / scale],
                base=[kept / scale],
                orientation="h",
                marker={"color": "#E6EAEF", "line": {"color": "#CBD2D9", "width": 1}},
                hovertemplate=f"{LOST[step]}: {shown}<extra></extra>",
            )
            text = f"−{shown}  {LOST[step]}"
            room = max(room, WIDTH * previous / (WIDTH - LETTER * (len(text) + 2)))
            figure.add_annotation(
                y=heads[-1],
                x=previous / scale,
                text=text,
                showarrow=False,
                xanchor="left",
                xshift=6,
                font={"color": MUTED, "size": 12},
            )
        if value is not None:
            previous = value
    figure.update_yaxes(autorange="reversed", categoryorder="array", categoryarray=heads)
    figure.update_yaxes(tickfont={"size": 12, "color": INK}, showgrid=False)
    figure.update_xaxes(title=currency if unit == "money" else "GPU-hours", gridcolor=LINE)
    figure.update_xaxes(showgrid=True, tickformat="~s", range=[0, room / scale])
    figure.update_layout(barmode="overlay", showlegend=False, bargap=0.28, margin={"t": 4})
    draw(figure, "waterfall", 470, "Waterfall from installed to kept GPU-time")


def hatch(name: str) -> dict:
    """The pattern of a bar: what is not known is hatched."""
    return {
        "shape": HATCHES.get(name, ""),
        "fillmode": "overlay",
        "fgcolor": "white",
        "fgopacity": 0.75,
        "size": 6,
        "solidity": 0.25,
    }


def days_chart(
    rows: pl.DataFrame,
    column: str,
    names: list[str],
    currency: str,
    *,
    by: str = "state_name",
    colour: Callable[[str, int], str] = lambda name, _: STATE_COLOURS[name],
    key: str = "days",
) -> None:
    """Stacked bars of a quantity a day, in the order of `names`; names without any are left out."""
    is_money = column.endswith("_cost")
    figure = go.Figure()
    for place, name in enumerate(names):
        days = rows.filter(pl.col(by) == name, pl.col(column).is_not_null())
        values = [float(v) / (1 if is_money else 3600) for v in days[column]]
        if sum(values) < 0.01:  # nothing, or only what rounding leaves over
            continue
        unit = currency if is_money else "GPU-h"
        figure.add_bar(
            x=days["day_on"].to_list(),
            y=values,
            name=plain(word(name), 28),
            marker={
                "color": colour(name, place),
                "pattern": hatch(name),
            },
            customdata=[amount(v) for v in values],
            hovertemplate="%{fullData.name}, %{x|%a %Y-%m-%d}: %{customdata} "
            + unit
            + "<extra></extra>",
        )
    figure.update_layout(barmode="stack", legend_traceorder="normal", bargap=0.12)
    figure.update_yaxes(title=currency if is_money else "GPU-hours", tickformat="~s")
    figure.update_xaxes(tickformat="%-d %b")
    draw(figure, key, 360, "Stacked bars by day")


def ratio_lines(
    rows: pl.DataFrame,
    lines: Mapping[str, tuple[str, str]],
    coverage: tuple[str, str],
    reading: Reading,
    key: str,
    alt: str,
) -> None:
    """Shares over time from `begin_at` on, their coverage as a band behind; unknown is a gap.

    `lines` and `coverage` name columns, how they are called and, of lines, their colour.
    """
    figure = go.Figure()
    rows = gapless(rows, reading.zone)
    at = rows["begin_at"].dt.replace_time_zone(None).to_list()
    column, name = coverage
    band = [None if v is None else 100 * v for v in rows[column]]
    figure.add_scatter(
        x=at,
        y=[v or 0 for v in band],
        name=name,
        mode="lines",
        fill="tozeroy",
        fillcolor="rgba(138, 151, 166, 0.16)",
        line={"width": 0, "shape": "hvh"},
        customdata=["not known" if v is None else f"{v:.1f} %" for v in band],
        hovertemplate=f"{name}: %{{customdata}}<extra></extra>",
    )
    for column, (name, colour) in lines.items():
        values = [None if v is None else 100 * v for v in rows[column]]
        figure.add_scatter(
            x=at,
            y=values,
            name=name,
            mode="lines+markers" if len(values) <= MARKED else "lines",
            marker={"size": 5},
            line={"color": colour, "width": 2},
            connectgaps=False,
            hovertemplate=f"{name}: %{{y:.1f}} %<extra></extra>",
        )
    figure.update_yaxes(range=[0, 104], ticksuffix=" %", tick0=0, dtick=25)
    period = reading.period
    figure.update_xaxes(
        tickformat="%-d %b" if period.days > 2 else "%H:%M<br>%-d %b",
        ticks="outside",
        ticklen=8,
        tickcolor="rgba(0,0,0,0)",
        range=[str(period.begin_on), str(period.end_on)],
    )
    figure.update_layout(hovermode="x unified", legend_traceorder="reversed")
    draw(figure, key, 300, alt)


def gapless(rows: pl.DataFrame, zone: str) -> pl.DataFrame:
    """The rows in the zone's time, with an empty one for each hour or day that has none."""
    local = rows.with_columns(pl.col("begin_at").dt.convert_time_zone(zone))
    if local.is_empty():
        return local
    at = local["begin_at"]
    is_daily = (at.dt.hour() == 0).all()
    whole = pl.datetime_range(
        local.select(pl.col("begin_at").min()).item(),
        local.select(pl.col("begin_at").max()).item(),
        "1d" if is_daily else "1h",
        time_zone=zone,
        eager=True,
    )
    return pl.DataFrame({"begin_at": whole.cast(at.dtype)}).join(local, on="begin_at", how="left")


MARKED = 40  # points up to which each is marked, so that one between two gaps is seen


def series_colour(name: str, place: int) -> str:
    """The colour of the n-th series; what is not among the largest is grey."""
    return OTHERS if name == OTHER_TEAMS or place >= len(SERIES) else SERIES[place]


OTHER_TEAMS = "all others"
