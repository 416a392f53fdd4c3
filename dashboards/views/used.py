"""Allocated or used? What was held of what there was, and whether it worked: two ratios, apart.

From the fleet to teams, workloads and nodes; the maps are drawn by `used_map`.
"""

import polars as pl
import streamlit as st

from dashboards.charts import ratio_lines
from dashboards.data import Reading
from dashboards.filters import choice
from dashboards.headlines import headline
from dashboards.links import chosen_workload, link, links, workload_bar
from dashboards.tables import show
from dashboards.trust import caution
from dashboards.use import (
    ACTIVE,
    ALLOCATION,
    MEASURED,
    PARTS,
    PRICED,
    SM_KNOWN,
    UTILISATION,
    WORKLOADS,
    Use,
    over,
    total,
    with_ratios,
)
from dashboards.views.used_map import maps, with_row_names
from models.figures import NOT_MEASURED, hours, money, percent, ratio
from models.mart_gpus import USE_HOURS, USE_WORKLOADS
from models.states import RESERVED, UNATTRIBUTED
from models.table import Column, Kind
from models.words import NAMES

UNITS = {"hours": "GPU-hours", "money": "money"}
BY = {
    "team_name": "team",
    "workload_name": "workload",
    "gpu_model_name": "GPU model",
    "node_name": "node",
    "cluster_name": "cluster",
}
LABELS = {
    "allocation_ratio": "allocation",
    "utilisation_ratio": "utilisation",
    "sm_known_ratio": "SM known",
    "active_ratio": "active",
    "measured_ratio": "measured",
    "priced_ratio": "priced",
    "gpu_model_name": "GPU model",
    "workload_kind_name": "kind",
    "held_gpu_seconds": "held, GPU-h",
    "idle_gpu_seconds": "idle, GPU-h",
    "stalled_gpu_seconds": "stalled, GPU-h",
    "fleet_ratio": "of the fleet",
    **dict.fromkeys(("team_url", "workload_url", "node_url"), "more"),
}
FLEET_SHARE = Column("fleet_ratio", Kind.RATIO, "Held, of all that was available to anybody.")
BLUE, GREEN, TEAL = "#3D6A99", "#2F7D57", "#4FA3A5"


def sums_of(series: pl.DataFrame, unit: str) -> dict:
    """The sums of the period and their ratios."""
    return with_ratios(total(series), unit).row(0, named=True)


def value(sums: dict, name: str, unit: str, reading: Reading) -> str:
    """A quantity in the chosen unit."""
    spent = sums[f"{name}_gpu_seconds"]
    if unit == "hours":
        return hours(spent)
    cost = sums[f"{name}_cost"]
    return money(cost or 0, reading.currency, 0 if cost is None and spent else None)


def told(share: float | None) -> str:
    """A share, or that nothing measures it."""
    return NOT_MEASURED if share is None else percent(share)


def headlines(reading: Reading, now: dict, before: dict, unit: str, *, is_fleet: bool) -> None:
    """Allocated, used, active, and what of it did nothing; each with its coverage."""
    first, second, third, fourth = st.columns(4)
    held = value(now, "held", unit, reading)
    with first:
        share = now["allocation_ratio"]
        name = "Allocation ratio" if is_fleet else "Held of the fleet"
        headline(
            reading, name, percent(share), share, before.get("allocation_ratio"),
            good="up" if is_fleet else "neither", is_share=True,
            note=f"{held} held · "
            + (
                f"{percent(priced(now))} of the time priced"
                if unit == "money"
                else f"{percent(recorded(now))} of installed recorded"
            ),
            doc=f"{ALLOCATION.doc} Available is what is installed, less what is unavailable and "
            "what nobody recorded.",
        )  # fmt: skip
    with second:
        share = now["utilisation_ratio"]
        headline(
            reading, "Utilisation ratio", told(share), share, before.get("utilisation_ratio"),
            good="up", is_share=True,
            note=f"SM activity known of {percent(now['sm_known_ratio'])} of held",
            doc=UTILISATION.doc,
        )  # fmt: skip
    with third:
        share = now["active_ratio"]
        headline(
            reading, "Active ratio", told(share), share, before.get("active_ratio"),
            good="up", is_share=True,
            note=f"{percent(now['measured_ratio'])} of held was measured",
            doc=f"{ACTIVE.doc} A GPU counts as active however few of its SMs work.",
        )  # fmt: skip
    with fourth:
        column = "cost" if unit == "money" else "gpu_seconds"
        wasted = [now[f"{n}_{column}"] for n in ("idle", "stalled")]
        earlier = [before.get(f"{n}_{column}") for n in ("idle", "stalled")]
        spent = sum(v or 0 for v in wasted)
        is_blind = now["active_ratio"] is None
        shown = hours(spent) if unit == "hours" else money(spent, reading.currency)
        if unit == "money" and wasted == [None, None]:
            shown = money(None, reading.currency, 0)
        headline(
            reading, "Idle and stalled", NOT_MEASURED if is_blind else shown,
            None if is_blind else spent,
            None if None in earlier else sum(v or 0 for v in earlier), good="down",
            note="" if is_blind else f"{value(now, 'stalled', unit, reading)} of it stalled",
            doc="Held and measured doing nothing, or kernels without work. In money: price x time, "
            "not money that would be saved.",
        )  # fmt: skip


def recorded(sums: dict) -> float | None:
    """The share of the installed time of which it is known who held it."""
    installed = sums["installed_gpu_seconds"]
    return ratio((installed or 0) - (sums["unrecorded_gpu_seconds"] or 0), installed)


def priced(sums: dict) -> float | None:
    """The share of the time shown that has a price."""
    own = sums["own_gpu_seconds"]
    return ratio((own or 0) - (sums["unpriced_gpu_seconds"] or 0), own)


def lines(reading: Reading, series: pl.DataFrame, unit: str, *, is_fleet: bool) -> None:
    """Both ratios over time, side by side, each before its coverage."""
    rows = with_ratios(series, unit).with_columns(
        recorded_ratio=1 - over(pl.col("unrecorded_gpu_seconds"), pl.col("installed_gpu_seconds"))
    )
    left, right = st.columns(2)
    with left:
        st.markdown("**How much was held?**" if is_fleet else "**How much of the fleet was held?**")
        name = "held, of available" if is_fleet else "held by them, of available"
        ratio_lines(
            rows, {"allocation_ratio": (name, BLUE)}, ("recorded_ratio", "recorded"),
            reading, "allocation", "Allocation ratio over time",
        )  # fmt: skip
    with right:
        st.markdown("**How much of the held was used?**")
        ratio_lines(
            rows,
            {"active_ratio": ("active", TEAL), "utilisation_ratio": ("utilisation", GREEN)},
            ("sm_known_ratio", "SM activity known"), reading, "utilisation",
            "Utilisation ratio and active ratio over time",
        )  # fmt: skip
    st.caption("Where a line has a gap nothing was measured; that is not zero.")


def parts(reading: Reading, use: Use, unit: str, sums: dict) -> None:
    """The same by team, workload, GPU model, node or cluster."""
    st.subheader("Whose, and on which GPUs?")
    by = choice("By", BY, "by", "workload_name" if reading.teams else "team_name")
    linked = {"team_name": "team", "workload_name": "workload", "node_name": "node"}.get(by)
    share = FLEET_SHARE if by in ("team_name", "workload_name") or reading.teams else ALLOCATION
    if by == "workload_name":
        rows, first = use.rows(WORKLOADS), USE_WORKLOADS.column(by)
        rows = rows.with_columns(links("used", "workload", rows["workload_key_uid"]))
    else:
        rows, first = use.rows(PARTS, by=by), USE_HOURS.column(by)
        rows = rows.drop("cluster_name" if by == "cluster_name" else []).rename(
            {"subject_name": by}
        )
        if by == "team_name":
            rows = rows.filter(pl.col(by).is_in(RESERVED).not_() | (pl.col(by) == UNATTRIBUTED))
            rows = rows.with_columns(links("used", "team", rows[by]))
        if by == "node_name":
            rows = with_row_names(rows, reading)
            rows = rows.with_columns(links("used", "node", rows["row_name"]))
    whole = "held_gpu_seconds" if by == "workload_name" else "installed_gpu_seconds"
    ending = "cost" if unit == "money" else "gpu_seconds"
    available = pl.lit(sums[f"available_{ending}"], pl.Float64)
    rows = with_ratios(rows, unit).with_columns(
        fleet_ratio=over(pl.col(f"held_{ending}"), available),
        priced_ratio=1 - over(pl.col("unpriced_gpu_seconds"), pl.col(whole)),
    )
    # Where nothing that ran was measured, nothing is known to have been idle.
    is_unknown = pl.col("active_ratio").is_null() & (pl.col("held_gpu_seconds") > 0)
    rows = rows.with_columns(
        pl.when(~is_unknown).then(pl.col(name)).alias(name)
        for name in ("idle_gpu_seconds", "stalled_gpu_seconds", "idle_cost", "stalled_cost")
    )
    rows = rows.sort(f"held_{ending}", descending=True, nulls_last=True, maintain_order=True)
    specs = [first, *extra(reading, by), *quantities(unit, share)]
    if linked:
        specs.append(Column(f"{linked}_url", Kind.TEXT, "This page for it alone."))
    show(
        rows,
        specs,
        name=reading.file(f"use-by-{BY[by].replace(' ', '-')}"),
        key="use",
        caption=f"By the {'cost' if unit == 'money' else 'time'} held. Ratios are sums over sums"
        + (", in money over what has a price" if unit == "money" else "")
        + "; where nothing was measured there is none."
        + (" At most 500." if by == "workload_name" else ""),
        currency=reading.currency,
        labels={**LABELS, **{f"{n}_cost": f"{n}, {reading.currency}" for n in SPENT}},
    )


SPENT = ("held", "idle", "stalled")


def extra(reading: Reading, by: str) -> list[Column]:
    """What tells rows of one name apart."""
    found = []
    if by == "workload_name":
        found = [USE_WORKLOADS.column(n) for n in ("workload_kind_name", "namespace_name")]
        if len(reading.teams) != 1:
            found.append(USE_WORKLOADS.column("team_name"))
    if by in ("workload_name", "node_name") and len(reading.clusters) > 1:
        found.append(USE_HOURS.column("cluster_name"))
    return found


def quantities(unit: str, share: Column) -> list[Column]:
    """What was held, its ratios, and what of it did nothing."""
    ending = "_cost" if unit == "money" else "_gpu_seconds"
    held, idle, stalled = (USE_HOURS.column(f"{n}{ending}") for n in SPENT)
    found = [held, share, UTILISATION, SM_KNOWN, ACTIVE, MEASURED, idle, stalled]
    return [*found, PRICED] if unit == "money" else found


def title_of(series: pl.DataFrame) -> str:
    """What a workload is called and whose it is; plain text, for it holds names."""
    row = series.filter(pl.col("workload_name").is_not_null()).row(-1, named=True)
    kind, name = row["workload_kind_name"], row["workload_name"]
    team = NAMES.get(row["team_name"], row["team_name"])
    return f"{kind} {name} · namespace {row['namespace_name']} · team {team}"


def page() -> None:
    """Draw the page."""
    reading: Reading = st.session_state["reading"]
    st.title("Allocated or used?")
    unit = choice("Shown in", UNITS, "unit", "hours", quiet=True)
    workload = chosen_workload()
    use = Use(reading, workload)
    series = use.series()
    is_held = not series.is_empty() and series["held_gpu_seconds"].count() > 0
    if workload:
        other = ("When it was idle", link("idle", ("workload", workload)))
        workload_bar(
            title_of(series) if is_held else "That workload held nothing in this period.", other
        )
        if not is_held:
            return
    if series.is_empty():
        st.markdown(
            "What was held of which GPUs has not been computed for this period: "
            "run `gpuledger run` for its days."
        )
        return
    if not is_held:
        st.markdown("The chosen teams held nothing in this period.")
        return
    now = sums_of(series, unit)
    earlier = use.series(before=True)
    before = {} if earlier.is_empty() else sums_of(earlier, unit)
    is_fleet = not (reading.teams or workload)
    headlines(reading, now, before, unit, is_fleet=is_fleet)
    held, unobserved = now["held_gpu_seconds"], now["unobserved_gpu_seconds"]
    caution((held or 0) - (unobserved or 0), held or 0)
    lines(reading, series, unit, is_fleet=is_fleet)
    if not workload:
        parts(reading, use, unit, now)
    maps(use, None if workload is None else series)


page()
