"""The filters of every page (cluster, period, team), kept in the URL so that a link shows the same.

What is read for them belongs in `data`. The period is counted back from the last published day of
the chosen clusters, not from today: a recorded cluster ends where its record ends.
"""

from collections.abc import Mapping
from datetime import date, timedelta
from typing import TypeVar

import polars as pl
import streamlit as st

from dashboards.data import Period, Reading, Snapshot, answer
from models.states import ROUNDING, UNALLOCATED, UNAVAILABLE, UNKNOWN

PERIODS = {7: "7 days", 30: "30 days", 90: "90 days", None: "dates"}
USUAL, FIRST = 30, 7
"""What is shown where nothing is chosen, and what it is in a lake's first month."""
Value = TypeVar("Value")
BIND = "query-params"

CLUSTERS = """
select
    cluster_name,
    min(day_on) as first_on,
    max(day_on) as last_on
from mart.fleet_coverage
group by cluster_name
order by cluster_name
"""
TEAMS = """
select distinct team_name
from mart.team_days
where list_contains($clusters::varchar[], cluster_name) and not list_contains($apart, team_name)
order by team_name
"""
LAKE = "select accounting_zone_name, currency_name from meta.lake"


def choice(
    name: str, options: Mapping[Value, str], key: str, default: Value, *, quiet: bool = False
) -> Value:
    """One of some options, kept in the URL by its label; `quiet` leaves the name out."""
    values = {label: value for value, label in options.items()}
    label = st.segmented_control(
        name,
        list(values),
        default=options[default],
        key=key,
        bind=BIND,
        required=True,
        label_visibility="collapsed" if quiet else "visible",
    )
    return default if label is None else values[label]


def chosen(snapshot: Snapshot) -> Reading | None:
    """Draw the filters, and say what to read; None where no cluster is published at all."""
    known = answer(snapshot, CLUSTERS, {})
    if known.is_empty():
        return None
    zone, currency = answer(snapshot, LAKE, {}).row(0)
    [(whole,)] = known.select(
        (pl.col("last_on").max() - pl.col("first_on").min()).dt.total_days()
    ).rows()
    usual = USUAL if whole + 1 >= USUAL else FIRST
    with st.container(horizontal=True, vertical_alignment="bottom", key="filters"):
        days = choice("Period", PERIODS, "period", usual)
        dates_place = st.empty()
        clusters = tuple(
            st.multiselect(
                "Cluster",
                known["cluster_name"].to_list(),
                placeholder="All clusters",
                key="cluster",
                bind=BIND,
                width=200,
            )
        )
        wanted = clusters or tuple(known["cluster_name"])
        apart = (UNALLOCATED, UNAVAILABLE, UNKNOWN, ROUNDING)
        names = answer(snapshot, TEAMS, {"clusters": wanted, "apart": apart})
        teams = st.multiselect(
            "Team",
            names["team_name"].to_list(),
            placeholder="All teams",
            key="team",
            bind=BIND,
            width=280,
        )
    spans = known.filter(pl.col("cluster_name").is_in(wanted))
    first_on, last_on = spans["first_on"].min(), spans["last_on"].max()
    assert isinstance(first_on, date) and isinstance(last_on, date)
    with dates_place:
        period = period_of(days, first_on, last_on)
    return Reading(
        snapshot,
        currency,
        zone,
        period,
        wanted,
        tuple(teams),
        latest_first(spans, first_on),
        last_on,
    )


def latest_first(spans: pl.DataFrame, first_on: date) -> date:
    """The day from which on all chosen clusters are published: only then periods compare."""
    found = spans["first_on"].max()
    return found if isinstance(found, date) else first_on


def period_of(days: int | None, first_on: date, last_on: date) -> Period:
    """The days that a preset names, or those that the reader picks."""
    if days is not None:
        return Period(last_on - timedelta(days=days - 1), last_on + timedelta(days=1))
    begin = max(first_on, last_on - timedelta(days=29))
    picked = st.date_input(
        "From – to",
        value=(begin, last_on),
        format="YYYY-MM-DD",
        key="dates",
        bind=BIND,
        width=230,
    )
    span = picked if isinstance(picked, tuple) else (picked,)
    if not span:  # cleared
        span = (begin, last_on)
    return Period(span[0], span[-1] + timedelta(days=1))
