"""Who spent what? Teams by cost, what of it was wasted or not measured, and their workloads.

Reserved holders (nobody, not recorded, no team found) stand apart: they are no team's spending.
"""

from urllib.parse import urlencode

import polars as pl
import streamlit as st

from dashboards.charts import OTHER_TEAMS, days_chart, series_colour
from dashboards.data import Reading
from dashboards.headlines import headline, not_measured
from dashboards.links import links
from dashboards.style import SERIES
from dashboards.tables import priced_only, show
from dashboards.trust import caution
from models.figures import hours, money, percent, ratio
from models.mart import TEAM_DAYS, WORKLOAD_DAYS
from models.states import RESERVED
from models.table import Column, Kind
from models.words import HOLDERS, WASTE

TEAMS = """
select
    team_name,
    any_value(parent_team_name) as parent_team_name,
    sum(team_cost) as team_cost,
    sum(gpu_seconds) as gpu_seconds,
    sum(waste_cost) as waste_cost,
    sum(waste_gpu_seconds) as waste_gpu_seconds,
    sum(unobserved_gpu_seconds) as unobserved_gpu_seconds,
    sum(unpriced_gpu_seconds) as unpriced_gpu_seconds,
    (sum(waste_gpu_seconds) / nullif(sum(gpu_seconds), 0))::double as waste_ratio,
    (sum(unobserved_gpu_seconds) / nullif(sum(gpu_seconds), 0))::double as unobserved_ratio,
    (1 - sum(unpriced_gpu_seconds) / nullif(sum(gpu_seconds), 0))::double as priced_ratio
from mart.team_days
where
    day_on >= $begin_on
    and day_on < $end_on
    and list_contains($clusters::varchar[], cluster_name)
group by team_name
order by sum(team_cost) desc, sum(gpu_seconds) desc, team_name
"""
DAYS = """
select
    day_on,
    case when list_contains($largest::varchar[], team_name) then team_name else $others end
        as shown_name,
    sum(team_cost) as team_cost,
    sum(gpu_seconds) as gpu_seconds
from mart.team_days
where
    day_on >= $begin_on
    and day_on < $end_on
    and list_contains($clusters::varchar[], cluster_name)
    and list_contains($wanted::varchar[], team_name)
group by day_on, shown_name
order by day_on, shown_name
"""
WORKLOADS = """
select
    cluster_name,
    team_name,
    namespace_name,
    workload_key_uid,
    arg_max(workload_name, day_on) as workload_name,
    any_value(workload_kind_name) as workload_kind_name,
    any_value(workload_class) as workload_class,
    sum(workload_cost) as workload_cost,
    sum(gpu_seconds) as gpu_seconds,
    sum(waste_cost) as waste_cost,
    (sum(waste_gpu_seconds) / nullif(sum(gpu_seconds), 0))::double as waste_ratio,
    (sum(unobserved_gpu_seconds) / nullif(sum(gpu_seconds), 0))::double as unobserved_ratio,
    (1 - sum(unpriced_gpu_seconds) / nullif(sum(gpu_seconds), 0))::double as priced_ratio
from mart.workload_days
where
    day_on >= $begin_on
    and day_on < $end_on
    and list_contains($clusters::varchar[], cluster_name)
    and list_contains($wanted::varchar[], team_name)
group by cluster_name, team_name, namespace_name, workload_key_uid
order by sum(workload_cost) desc, sum(gpu_seconds) desc, workload_key_uid
limit 500
"""
MOST_WORKLOADS = 500
WORKLOAD_LINK = Column("workload_url", Kind.TEXT, "What happened to it.")
LINK = Column("workloads_url", Kind.TEXT, "This page for that team alone, with its workloads.")
PARTS = (
    Column("waste_ratio", Kind.RATIO, f"Of what was held: {WASTE}."),
    Column("unobserved_ratio", Kind.RATIO, "Of what was held: nothing measures it."),
    Column("priced_ratio", Kind.RATIO, "Of what was held: it has a price, and is in the cost."),
)
TEAM_COLUMNS = (
    *(TEAM_DAYS.column(n) for n in ("team_name", "parent_team_name", "team_cost")),
    Column("cost_ratio", Kind.RATIO, "Of the cost of all teams."),
    *(TEAM_DAYS.column(n) for n in ("gpu_seconds", "waste_cost", "waste_gpu_seconds")),
    *PARTS,
    LINK,
)
RESERVED_COLUMNS = (
    Column("meaning_text", Kind.TEXT, "What the holder stands for."),
    Column("holder_name", Kind.TEXT, "What it is called in the ledger and in CSV files."),
    TEAM_DAYS.column("gpu_seconds"),
    TEAM_DAYS.column("team_cost"),
    PARTS[2],
)
WORKLOAD_COLUMNS = (
    *(
        WORKLOAD_DAYS.column(n)
        for n in (
            "cluster_name",
            "team_name",
            "namespace_name",
            "workload_name",
            "workload_kind_name",
            "workload_cost",
            "gpu_seconds",
            "waste_cost",
        )
    ),
    *PARTS,
    WORKLOAD_LINK,
)
SHARES = {
    "cost_ratio": "of cost",
    "waste_ratio": "wasted",
    "unobserved_ratio": "not measured",
    "priced_ratio": "priced",
    "parent_team_name": "parent",
    "gpu_seconds": "GPU-h",
    "workloads_url": "workloads",
}


def only_teams(reading: Reading, rows: pl.DataFrame) -> pl.DataFrame:
    """The rows of teams, of the chosen ones where some are chosen (also the unattributed)."""
    if reading.teams:
        return rows.filter(pl.col("team_name").is_in(reading.teams))
    return rows.filter(~pl.col("team_name").is_in(RESERVED))


def headlines(reading: Reading, now: pl.DataFrame, before: pl.DataFrame) -> None:
    """The figures that the page leads with."""
    sums = {name: float(now[name].sum() or 0) for name in now.columns if name.endswith(SUMMED)}
    old = {name: float(before[name].sum() or 0) for name in sums}
    held = sums["gpu_seconds"]
    priced = ratio(held - sums["unpriced_gpu_seconds"], held)
    is_waste_priced = now.is_empty() or now["waste_cost"].count() > 0
    known = priced if is_waste_priced else 0
    note = f"{percent(priced)} of their time priced"
    places = st.columns(4)
    with places[0]:
        headline(
            reading,
            "Cost of teams",
            money(sums["team_cost"], reading.currency, priced),
            sums["team_cost"],
            old["team_cost"],
            note=note,
            doc="Price x time held, of what has a price.",
        )
    with places[1]:
        headline(
            reading,
            "Held by teams",
            hours(held),
            held,
            old["gpu_seconds"],
            note=f"{now.height} {'team' if now.height == 1 else 'teams'}",
            doc="GPU-time that teams held, used or not.",
        )
    with places[2]:
        wasted = percent(ratio(sums["waste_gpu_seconds"], held))
        headline(
            reading,
            "Waste",
            money(sums["waste_cost"], reading.currency, known),
            sums["waste_cost"],
            old["waste_cost"],
            good="down",
            note=f"{hours(sums['waste_gpu_seconds'])} · {wasted} of held",
            doc=f"Cost of {WASTE}. It is price x time, not money that would be saved.",
        )
    with places[3]:
        earlier = (old["unobserved_gpu_seconds"], old["gpu_seconds"])
        not_measured(reading, sums["unobserved_gpu_seconds"], held, earlier)
    caution(held - sums["unobserved_gpu_seconds"], held)


SUMMED = ("_cost", "gpu_seconds")


def linked(reading: Reading, teams: pl.DataFrame) -> pl.DataFrame:
    """The teams with their share of the cost, and a link that keeps the other filters."""
    kept: list[tuple[str, str]] = []
    for name in ("period", "dates", "cluster"):
        kept += [(name, value) for value in st.query_params.get_all(name)]
    urls = [f"who?{urlencode([*kept, ('team', team)])}" for team in teams["team_name"]]
    whole = float(teams["team_cost"].sum() or 0)
    share = pl.col("team_cost").cast(pl.Float64) / whole if whole else pl.lit(None, pl.Float64)
    return teams.with_columns(pl.Series("workloads_url", urls, dtype=pl.String), cost_ratio=share)


def trend(reading: Reading, teams: pl.DataFrame) -> None:
    """Cost a day (GPU-hours where nothing has a price), the largest teams by name."""
    names = teams["team_name"].to_list()
    column = "team_cost" if float(teams["team_cost"].sum() or 0) else "gpu_seconds"
    largest = names if len(names) <= len(SERIES) else names[: len(SERIES) - 1]
    rows = reading.rows(DAYS, largest=tuple(largest), wanted=tuple(names), others=OTHER_TEAMS)
    days_chart(
        rows,
        column,
        [*largest, OTHER_TEAMS],
        reading.currency,
        by="shown_name",
        colour=series_colour,
        key="team-days",
    )


def reserved(reading: Reading, rows: pl.DataFrame) -> None:
    """What no team held."""
    found = priced_only(rows.filter(pl.col("team_name").is_in(RESERVED))).with_columns(
        meaning_text=pl.col("team_name").replace_strict(HOLDERS, default="")
    )
    show(
        found,
        RESERVED_COLUMNS,
        shown=found.with_columns(holder_name="team_name"),
        name=reading.file("no-team"),
        key="reserved",
        title="What did no team hold?",
        caption="Together with the teams above this is all that is installed: every GPU-second "
        "has exactly one holder.",
        currency=reading.currency,
        labels={
            **SHARES,
            "meaning_text": "held by",
            "holder_name": "in the ledger",
            "team_cost": f"cost, {reading.currency}",
        },
    )


def workloads(reading: Reading, teams: pl.DataFrame) -> None:
    """The workloads of the chosen teams; of all teams the largest, where none is chosen."""
    rows = priced_only(reading.rows(WORKLOADS, wanted=tuple(teams["team_name"])))
    rows = rows.with_columns(links("workload", "workload", rows["workload_key_uid"]))
    if not reading.teams:
        rows = rows.head(25)
        caption = "The 25 most expensive. A team's own list opens from its row above."
    else:
        caption = f"By cost; at most {MOST_WORKLOADS}."
    said = {"cluster_name": len(reading.clusters) == 1, "team_name": len(reading.teams) == 1}
    columns = [column for column in WORKLOAD_COLUMNS if not said.get(column.name)]
    show(
        rows,
        columns,
        name=reading.file("workloads"),
        key="workloads",
        title="On which workloads?",
        caption=caption,
        currency=reading.currency,
        labels={
            **SHARES,
            "workload_kind_name": "kind",
            "workload_cost": f"cost, {reading.currency}",
            "waste_cost": f"waste, {reading.currency}",
            "workload_url": "what happened",
        },
    )


def page() -> None:
    """Draw the page."""
    reading: Reading = st.session_state["reading"]
    st.title("Who spent what?")
    rows = reading.rows(TEAMS)
    teams = only_teams(reading, rows)
    headlines(reading, teams, only_teams(reading, reading.rows(TEAMS, before=True)))
    if teams.is_empty():
        st.markdown("No team held a GPU in this period.")
    else:
        show(
            priced_only(linked(reading, teams)),
            TEAM_COLUMNS,
            name=reading.file("teams"),
            key="teams",
            title="Which teams?",
            caption="By cost. Waste is part of it; what is not measured may hide more.",
            currency=reading.currency,
            labels={
                **SHARES,
                "team_cost": f"cost, {reading.currency}",
                "waste_cost": f"waste, {reading.currency}",
            },
        )
        st.subheader("How did it go day by day?")
        trend(reading, teams)
        workloads(reading, teams)
    if not reading.teams:
        reserved(reading, rows)


page()
