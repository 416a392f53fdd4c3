"""What the chosen teams held, and what became of it: the part of `where` for single teams.

It is no page of its own. Time that nobody holds belongs to no team and is on the fleet's page.
"""

import polars as pl
import streamlit as st

from dashboards.charts import days_chart, waterfall
from dashboards.data import Reading
from dashboards.headlines import headline, not_measured
from dashboards.trust import caution
from models.figures import hours, money, percent, ratio
from models.words import WASTE

SUMS = """
select
    sum(gpu_seconds) as gpu_seconds,
    sum(gpu_seconds - starting_gpu_seconds - gang_wait_gpu_seconds - loading_gpu_seconds
        - terminating_gpu_seconds) as started_gpu_seconds,
    sum(unobserved_gpu_seconds) as unobserved_gpu_seconds,
    sum(waste_gpu_seconds) as waste_gpu_seconds,
    sum(gpu_seconds - loading_gpu_seconds - unobserved_gpu_seconds - waste_gpu_seconds)
        as active_gpu_seconds,
    sum(unpriced_gpu_seconds) as unpriced_gpu_seconds,
    sum(team_cost) as team_cost,
    sum(waste_cost) as waste_cost,
    sum(unobserved_cost) as unobserved_cost
from mart.team_days
where
    day_on >= $begin_on
    and day_on < $end_on
    and list_contains($clusters::varchar[], cluster_name)
    and list_contains($teams::varchar[], team_name)
"""
DAYS = """
unpivot (
    select
        day_on,
        sum(waste_gpu_seconds) as waste,
        sum(unobserved_gpu_seconds) as unobserved,
        sum(loading_gpu_seconds) as loading,
        sum(gpu_seconds - loading_gpu_seconds - unobserved_gpu_seconds - waste_gpu_seconds)
            as active
    from mart.team_days
    where
        day_on >= $begin_on
        and day_on < $end_on
        and list_contains($clusters::varchar[], cluster_name)
        and list_contains($teams::varchar[], team_name)
    group by day_on
)
on waste, unobserved, loading, active
into name state_name value gpu_seconds
"""
COSTS = """
unpivot (
    select
        day_on,
        sum(waste_cost) as waste,
        sum(unobserved_cost) as unobserved,
        sum(team_cost - coalesce(unobserved_cost, 0) - coalesce(waste_cost, 0)) as active
    from mart.team_days
    where
        day_on >= $begin_on
        and day_on < $end_on
        and list_contains($clusters::varchar[], cluster_name)
        and list_contains($teams::varchar[], team_name)
    group by day_on
)
on waste, unobserved, active
into name state_name value state_cost
"""
COLOURS = {"active": "#2F7D57", "loading": "#8CC3A5", "unobserved": "#8A97A6", "waste": "#DD6A5B"}


def held_by(reading: Reading, unit: str) -> None:
    """Draw what the chosen teams held."""
    st.info(
        "These are the figures of the chosen teams. Installed, unallocated and unavailable time "
        "belongs to no team: clear the team filter to see the fleet.",
        icon=":material/filter_alt:",
    )
    now, before = reading.rows(SUMS).row(0, named=True), reading.rows(SUMS, before=True)
    if now["gpu_seconds"] is None:
        st.markdown("The chosen teams held nothing in this period.")
        return
    earlier = before.row(0, named=True)
    priced = ratio(now["gpu_seconds"] - now["unpriced_gpu_seconds"], now["gpu_seconds"])
    held, cost = now["gpu_seconds"], now["team_cost"]
    note = f"{percent(priced)} priced"
    first, second, third, fourth = st.columns(4)
    with first:
        headline(
            reading,
            "Held",
            hours(held),
            held,
            earlier["gpu_seconds"],
            doc="GPU-time that the teams held, used or not.",
        )
    with second:
        headline(
            reading,
            "Cost",
            money(cost, reading.currency, priced),
            cost,
            earlier["team_cost"],
            note=note,
            doc="Price x time held.",
        )
    with third:
        headline(
            reading,
            "Waste",
            hours(now["waste_gpu_seconds"]),
            now["waste_gpu_seconds"],
            earlier["waste_gpu_seconds"],
            good="down",
            note=money(
                now["waste_cost"], reading.currency, 0 if now["waste_cost"] is None else priced
            ),
            doc=f"{WASTE}.",
        )
    with fourth:
        earlier_share = (earlier["unobserved_gpu_seconds"], earlier["gpu_seconds"])
        not_measured(reading, now["unobserved_gpu_seconds"], held, earlier_share)
    caution(held - now["unobserved_gpu_seconds"], held)
    st.subheader("What became of what they held?")
    if unit == "money":
        st.caption("In GPU-hours: of a single team, the money of each step is not known.")
    waterfall(steps(now), "hours", reading.currency)
    st.subheader("How did it go day by day?")
    is_money = unit == "money"
    days_chart(
        reading.rows(COSTS if is_money else DAYS),
        "state_cost" if is_money else "gpu_seconds",
        list(COLOURS),
        reading.currency,
        colour=lambda name, _: COLOURS[name],
    )
    if is_money:
        st.caption("In money, loading is counted with the active time.")


def steps(sums: dict) -> pl.DataFrame:
    """The steps of the waterfall that a team has; what nothing measures is null."""
    is_measured = sums["unobserved_gpu_seconds"] < sums["started_gpu_seconds"]
    values = {
        "allocated": sums["gpu_seconds"],
        "started": sums["started_gpu_seconds"],
        "unobserved": sums["unobserved_gpu_seconds"],
        "active": sums["active_gpu_seconds"] if is_measured else None,
        "effective": None,
        "kept": None,
    }
    return pl.DataFrame(
        {"step_name": values.keys(), "gpu_seconds": values.values()}, strict=False
    ).with_columns(is_partly_measured=pl.lit(False))
