"""The heat map: one row for a node or a GPU, one column for an hour or a day, its share as colour.

Held by nobody and not measured are no shares, and look like none. What is read is in `use`.
"""

from collections.abc import Mapping
from datetime import datetime

import plotly.graph_objects as go
import polars as pl

from dashboards.style import INK, MUTED, draw
from models.figures import percent, plain

MEASURES = {"active": "active", "effective": "effective", "held": "held"}
MEANINGS = {
    "active": "Active / held, of what was measured.",
    "effective": "SM activity over the held time in which it is known.",
    "held": "Held / available.",
}
RATIOS = {"active": "active_ratio", "effective": "utilisation_ratio", "held": "allocation_ratio"}
COVERAGES = {"active": "measured_ratio", "effective": "sm_known_ratio", "held": "measured_ratio"}
SCALE = ((0.0, "#E8893A"), (0.3, "#F2CB8A"), (0.6, "#A3C4DA"), (1.0, "#23527F"))
FREE, BLIND = "#FFFFFF", "#8A97A6"
MOST_ROWS = 300
CLOSE = 60  # columns from which on they stand without a gap
MOST_HATCHED = 4000  # beyond this many marks they are a colour all the same
ROW = (4, 22)  # pixels of a row, least and most
ORDERS = {"name": "by name", "least": "least first"}


def kinds(rows: pl.DataFrame, measure: str) -> pl.DataFrame:
    """Each cell's share, and why it has none: 'free', 'blind', or nothing of the kind."""
    share = pl.col(RATIOS[measure])
    held = pl.col("held_gpu_seconds").cast(pl.Float64).fill_null(0)
    free = pl.lit(False) if measure == "held" else held == 0
    return rows.with_columns(
        share=pl.when(~free).then(share),
        kind=pl.when(free).then(pl.lit("free"))
        .when(share.is_null()).then(pl.lit("blind")).otherwise(pl.lit("known")),
    )  # fmt: skip


def ordered(rows: pl.DataFrame, order: str) -> list[str]:
    """The names of the rows from the top down, each once."""
    found = rows.group_by("row_name").agg(pl.col("share").mean(), pl.col("place").first())
    if order == "least":
        found = found.sort("share", "place", nulls_last=True)
    else:
        found = found.sort("place")
    return found["row_name"].to_list()


def heat_map(
    rows: pl.DataFrame,
    measure: str,
    order: str,
    zone: str,
    key: str,
    *,
    ground: str = "no record",
    notes: Mapping | None = None,
) -> int:
    """Draw `row_name` x `begin_at`; says how many rows were left out.

    `ground`: what is said where there is no row; `notes`: more for a cell.
    """
    rows = kinds(rows, measure)
    names = ordered(rows, order)
    shown = names[:MOST_ROWS]
    instants = sorted(rows["begin_at"].unique().to_list())
    across = {at: n for n, at in enumerate(instants)}
    down = {name: n for n, name in enumerate(shown)}
    local = pl.Series(instants).dt.convert_time_zone(zone).dt.replace_time_zone(None).to_list()
    is_daily = all(at.hour == 0 for at in local)
    grid, texts = blank(shown, local, is_daily, ground)
    marks: dict[str, list[tuple[int, int]]] = {"free": [], "blind": []}
    for name, at, share, kind, coverage in rows.select(
        "row_name", "begin_at", "share", "kind", COVERAGES[measure]
    ).iter_rows():
        if name not in down:
            continue
        row, column = down[name], across[at]
        grid[row][column] = None if share is None else 100 * share
        said = {"free": "held by nobody", "blind": "not measured"}.get(
            kind, f"{percent(share)} {MEASURES[measure]}"
        )
        if kind == "known" and measure != "held":
            said += f", known of {percent(coverage)} of the held"
        more = (notes or {}).get((name, at), "")
        texts[row][column] = texts[row][column].removesuffix(ground) + said + more
        if kind != "known":
            marks[kind].append((row, column))
    height = min(max(900 / max(len(shown), 1), ROW[0]), ROW[1])
    figure, gap = go.Figure(), 1 if len(local) <= CLOSE else 0
    layer(figure, marks["free"], (len(shown), len(local)), FREE, gap)
    layer(figure, marks["blind"], (len(shown), len(local)), BLIND, gap)
    figure.add_heatmap(
        z=grid,
        x=list(range(len(local))),
        y=list(range(len(shown))),
        text=texts,
        hovertemplate="%{text}<extra></extra>",
        colorscale=SCALE,
        zmin=0,
        zmax=100,
        xgap=gap,
        ygap=1,
        hoverongaps=True,
        colorbar={
            "title": {"text": f"% {MEASURES[measure]}", "side": "right"},
            "thickness": 12,
            "len": min(260, height * len(shown)),
            "lenmode": "pixels",
            "y": 1,
            "yanchor": "top",
            "outlinewidth": 0,
            "tickvals": [0, 25, 50, 75, 100] if height * len(shown) > 120 else [0, 100],
        },
    )
    hatch(figure, marks["blind"])
    axes(figure, shown, local, is_daily, height)
    draw(figure, key, round(height * len(shown)) + 70, f"Heat map of {measure}, rows by time")
    return len(names) - len(shown)


def blank(
    names: list[str], at: list[datetime], is_daily: bool, ground: str
) -> tuple[list[list], list[list]]:
    """A grid without shares, and what is said where there is no row."""
    grid: list[list] = [[None] * len(at) for _ in names]
    return grid, [
        [f"<b>{plain(name)}</b><br>{moment(instant, is_daily)}<br>{ground}" for instant in at]
        for name in names
    ]


def moment(at: datetime, is_daily: bool) -> str:
    """When a cell is."""
    return f"{at:%a %Y-%m-%d}" if is_daily else f"{at:%a %Y-%m-%d %H:%M}"


def layer(
    figure: go.Figure, cells: list[tuple[int, int]], size: tuple[int, int], colour: str, gap: int
) -> None:
    """Cells of one colour, beneath the shares."""
    if not cells:
        return
    grid: list[list] = [[None] * size[1] for _ in range(size[0])]
    for row, column in cells:
        grid[row][column] = 1
    figure.add_heatmap(
        z=grid, x=list(range(size[1])), y=list(range(size[0])), showscale=False, xgap=gap, ygap=1,
        colorscale=((0, colour), (1, colour)), hoverinfo="skip",
    )  # fmt: skip


def hatch(figure: go.Figure, cells: list[tuple[int, int]]) -> None:
    """A stroke on each cell that was not measured, for those who see no colours."""
    if cells and len(cells) <= MOST_HATCHED:
        figure.add_scatter(
            x=[column for _, column in cells],
            y=[row for row, _ in cells],
            mode="markers",
            marker={"symbol": "line-ne-open", "size": 6, "color": "white", "line": {"width": 1}},
            hoverinfo="skip",
            showlegend=False,
        )


def axes(
    figure: go.Figure, names: list[str], at: list[datetime], is_daily: bool, height: float
) -> None:
    """As many labels as there is room for; days, not hours, where there are many."""
    step = max(1, -(-13 // round(height)) if height >= 1 else 13)
    rows = range(0, len(names), step)
    figure.update_yaxes(
        tickvals=list(rows), ticktext=[plain(names[n], 28) for n in rows], showgrid=False,
        range=[len(names) - 0.5, -0.5], tickfont={"size": 11, "color": INK}, ticks="",
    )  # fmt: skip
    days = [n for n, instant in enumerate(at) if is_daily or instant.hour == 0]
    if not is_daily and len(at) <= 50:
        days = [n for n, instant in enumerate(at) if instant.hour % 3 == 0]
    days = days[:: max(1, -(-len(days) // 16))]
    form = "%-d %b" if is_daily or len(at) > 50 else "%H:%M<br>%-d %b"
    figure.update_xaxes(
        tickvals=days, ticktext=[f"{at[n]:{form}}" for n in days], side="top", showgrid=False,
        zeroline=False,
        range=[-0.5, len(at) - 0.5], tickfont={"size": 11, "color": MUTED}, ticks="",
    )  # fmt: skip
    figure.update_layout(plot_bgcolor="#F4F6F8", margin={"t": 34}, hovermode="closest")


KEY = "Orange: hardly; blue: fully. Grey, hatched: held, **not measured**. White: held by nobody."
KEY_OF_PART = (
    "Orange: hardly; blue: fully. Grey, hatched: **not measured**. Pale: not held by them."
)
