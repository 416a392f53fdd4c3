"""Where did the GPU-hours and the money go? The whole fleet, nothing counted twice.

What single teams held is drawn by `where_teams`, for installed time that nobody holds is no team's.
"""

import polars as pl
import streamlit as st

from dashboards.charts import days_chart, waterfall
from dashboards.data import Reading
from dashboards.filters import choice
from dashboards.headlines import Good, headline
from dashboards.tables import priced_only, show
from dashboards.trust import caution
from dashboards.views.where_teams import held_by
from models.figures import hours, money, percent, ratio
from models.mart import FLEET_STATES
from models.states import HELD_STATES, WASTE_STATES
from models.table import Column, Kind
from models.words import STATES, WASTE

SUMS = """
select
    state_name,
    sum(gpu_seconds) as gpu_seconds,
    sum(unpriced_gpu_seconds) as unpriced_gpu_seconds,
    sum(state_cost) as state_cost
from mart.fleet_states
where
    day_on >= $begin_on
    and day_on < $end_on
    and list_contains($clusters::varchar[], cluster_name)
group by state_name
"""
STEPS = """
select
    step_number,
    step_name,
    sum(gpu_seconds) as gpu_seconds,
    sum(step_cost) as step_cost,
    count(gpu_seconds) < count(*) as is_partly_measured
from mart.fleet_waterfall
where
    day_on >= $begin_on
    and day_on < $end_on
    and list_contains($clusters::varchar[], cluster_name)
group by step_number, step_name
order by step_number
"""
DAYS = """
select
    day_on,
    state_name,
    sum(gpu_seconds) as gpu_seconds,
    sum(state_cost) as state_cost
from mart.fleet_states
where
    day_on >= $begin_on
    and day_on < $end_on
    and list_contains($clusters::varchar[], cluster_name)
group by day_on, state_name
order by day_on, state_name
"""
CAUSES = """
select
    state_name,
    cause_name,
    sum(gpu_seconds) as gpu_seconds,
    (sum(gpu_seconds) / nullif(sum(sum(gpu_seconds)) over (), 0))::double as installed_ratio,
    sum(state_cost) as state_cost,
    sum(unpriced_gpu_seconds) as unpriced_gpu_seconds
from mart.fleet_states
where
    day_on >= $begin_on
    and day_on < $end_on
    and list_contains($clusters::varchar[], cluster_name)
group by state_name, cause_name
order by sum(gpu_seconds) desc, sum(state_cost) desc
"""
MODELS = """
select
    gpu_model_name,
    sum(gpu_seconds) as gpu_seconds,
    (
        sum(gpu_seconds) filter (where list_contains($held, state_name))
        / nullif(sum(gpu_seconds) filter (
            where state_name not in ('unavailable', 'unrecorded')
        ), 0)
    )::double as allocation_ratio,
    coalesce(sum(gpu_seconds) filter (where state_name = 'unallocated'), 0)
        as unallocated_gpu_seconds,
    coalesce(sum(gpu_seconds) filter (where list_contains($waste, state_name)), 0)
        as waste_gpu_seconds,
    coalesce(sum(gpu_seconds) filter (where state_name = 'unobserved'), 0)
        as unobserved_gpu_seconds,
    sum(state_cost) as state_cost,
    (1 - sum(unpriced_gpu_seconds) / nullif(sum(gpu_seconds), 0))::double as priced_ratio
from mart.fleet_states
where
    day_on >= $begin_on
    and day_on < $end_on
    and list_contains($clusters::varchar[], cluster_name)
group by gpu_model_name
order by sum(gpu_seconds) desc
"""
UNITS = {"hours": "GPU-hours", "money": "money"}
ALLOCATION = Column(
    "allocation_ratio", Kind.RATIO, "Held / (installed - unavailable - unrecorded)."
)
PRICED = Column("priced_ratio", Kind.RATIO, "Share of the GPU-time that has a price.")
MEANING = Column("meaning_text", Kind.TEXT, "What the state means.")
CAUSE_COLUMNS = (
    FLEET_STATES.column("state_name"),
    FLEET_STATES.column("cause_name"),
    FLEET_STATES.column("gpu_seconds"),
    Column("installed_ratio", Kind.RATIO, "Of all GPU-time that is installed."),
    FLEET_STATES.column("state_cost"),
    PRICED,
    MEANING,
)
MODEL_COLUMNS = (
    FLEET_STATES.column("gpu_model_name"),
    FLEET_STATES.column("gpu_seconds"),
    ALLOCATION,
    Column("unallocated_gpu_seconds", Kind.DECIMAL, "Schedulable, held by nobody."),
    Column("waste_gpu_seconds", Kind.DECIMAL, f"Held and wasted: {WASTE}."),
    Column("unobserved_gpu_seconds", Kind.DECIMAL, "Held, nothing measures it."),
    FLEET_STATES.column("state_cost"),
    PRICED,
)


class Sums:
    """GPU-seconds and cost of groups of states in one period."""

    def __init__(self, rows: pl.DataFrame):
        self.rows = rows

    def of(self, *states: str, column: str = "gpu_seconds") -> float:
        """The sum over some states; over all of them where none is named."""
        rows = self.rows.filter(pl.col("state_name").is_in(states)) if states else self.rows
        return float(rows[column].sum() or 0)

    def allocation_ratio(self) -> float | None:
        """Held / (installed - unavailable - unrecorded)."""
        usable = self.of() - self.of("unavailable", "unrecorded")
        return ratio(self.of(*HELD_STATES), usable)


GROUPS: dict[str, tuple[int, tuple[str, ...], Good, str]] = {
    "Installed": (0, (), "neither", "All GPUs that are there, used or not."),
    "Unallocated": (2, ("unallocated",), "down", "Schedulable GPUs that nobody held."),
    "Unavailable": (3, ("unavailable",), "down", "Installed GPUs that could not be used."),
    "Waste": (
        5,
        WASTE_STATES,
        "down",
        f"Held, but doing nothing useful: {WASTE}. The cost of idle time is price x time, "
        "not money that would be saved.",
    ),
    "Unobserved": (
        6,
        ("unobserved",),
        "down",
        "Held GPUs that nothing measured: neither work nor waste is known of them.",
    ),
    "Unrecorded": (
        7,
        ("unrecorded",),
        "down",
        "Installed GPUs of which no source says who held them.",
    ),
}
"""Headline -> its place, the states it sums (none: all), which way is good, what it means."""


def headlines(reading: Reading, unit: str) -> None:
    """The figures that the page leads with, each in the chosen unit and beside it the other."""
    now, before = Sums(reading.rows(SUMS)), Sums(reading.rows(SUMS, before=True))
    column = "state_cost" if unit == "money" else "gpu_seconds"
    places = [place for _ in range(2) for place in st.columns(4)]
    with places[1]:
        share, earlier = now.allocation_ratio(), before.allocation_ratio()
        headline(
            reading,
            "Allocation ratio",
            percent(share),
            share,
            earlier,
            good="up",
            is_share=True,
            note=f"{hours(now.of(*HELD_STATES))} held",
            doc=f"{ALLOCATION.doc} Time that nobody recorded and GPUs that cannot be used are "
            "left out of it.",
        )
    with places[4]:
        worked, earlier = active(reading, unit), active(reading, unit, before=True)
        headline(
            reading,
            "Active",
            money(worked, reading.currency) if unit == "money" else hours(worked),
            worked,
            earlier,
            good="up",
            note="measured doing work",
            doc="What nothing measured is in Unobserved, not here.",
        )
    for name, (place, states, good, doc) in GROUPS.items():
        spent = now.of(*states)
        priced = ratio(spent - now.of(*states, column="unpriced_gpu_seconds"), spent)
        in_hours = hours(spent)
        in_money = money(now.of(*states, column="state_cost"), reading.currency, priced)
        with places[place]:
            headline(
                reading,
                name,
                in_money if unit == "money" else in_hours,
                now.of(*states, column=column),
                before.of(*states, column=column),
                good=good,
                note=f"{in_hours if unit == 'money' else in_money} · {percent(priced)} priced",
                doc=doc,
            )
    held = now.of(*HELD_STATES)
    caution(held - now.of("unobserved"), held)


def active(reading: Reading, unit: str, *, before: bool = False) -> float | None:
    """The active step of the waterfall; None where nothing measures it."""
    rows = reading.rows(STEPS, before=before).filter(pl.col("step_name") == "active")
    found = rows["step_cost" if unit == "money" else "gpu_seconds"].to_list()
    return float(found[0]) if found and found[0] is not None else None


def fleet(reading: Reading, unit: str) -> None:
    """The page of the whole fleet."""
    column = "state_cost" if unit == "money" else "gpu_seconds"
    headlines(reading, unit)
    st.subheader("What became of what is installed?")
    st.caption(
        "Each step is part of the one above it; the pale end is what was lost on the way. "
        "Unobserved time stands by itself: it is neither work nor waste."
    )
    waterfall(reading.rows(STEPS), unit, reading.currency)
    st.subheader("How did it go day by day?")
    st.caption("All installed GPU-time of each day, by state; hatched is what is not known.")
    days_chart(reading.rows(DAYS), column, list(STATES), reading.currency)
    causes = reading.rows(CAUSES).with_columns(
        priced_ratio=priced(), meaning_text=pl.col("state_name").replace_strict(STATES, default="")
    )
    causes = priced_only(causes)
    shown = causes.with_columns(
        pl.col("state_name", "cause_name").str.replace_all("_", " ").str.replace("^none$", "–")
    )
    show(
        causes,
        CAUSE_COLUMNS,
        name=reading.file("states"),
        key="states",
        title="In which states, and why?",
        currency=reading.currency,
        shown=shown,
        labels={
            "installed_ratio": "of installed",
            "priced_ratio": "priced",
            "meaning_text": "meaning",
            "state_cost": f"cost, {reading.currency}",
        },
    )
    models = priced_only(reading.rows(MODELS, held=HELD_STATES, waste=WASTE_STATES))
    show(
        models,
        MODEL_COLUMNS,
        name=reading.file("models"),
        key="models",
        title="On which GPUs?",
        currency=reading.currency,
        labels={
            "gpu_model_name": "GPU model",
            "gpu_seconds": "installed, GPU-h",
            "allocation_ratio": "allocation ratio",
            "priced_ratio": "priced",
            "state_cost": f"cost, {reading.currency}",
        },
    )


def priced() -> pl.Expr:
    """The share of a row's GPU-time that has a price; none where there is no GPU-time."""
    seconds = pl.col("gpu_seconds").cast(pl.Float64)
    unpriced = pl.col("unpriced_gpu_seconds").cast(pl.Float64)
    return pl.when(seconds > 0).then(1 - unpriced / seconds)


def page() -> None:
    """Draw the page."""
    reading: Reading = st.session_state["reading"]
    st.title("Where did the GPU-hours and the money go?")
    unit = choice("Shown in", UNITS, "unit", "hours", quiet=True)
    if reading.teams:
        held_by(reading, unit)
    else:
        fleet(reading, unit)


page()
