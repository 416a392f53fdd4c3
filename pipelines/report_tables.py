"""The tables of a report: episodes, over-sized requests, findings, and who held what.

The figures above them are in `report_figures`. Each table is cut to the rows that cost most; how
many more there are is said under it.
"""

from dataclasses import replace
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from lake.read import Door
from models.figures import NO_PRICE, NOT_MEASURED, duration, hours, money, percent, ratio
from models.states import RESERVED, UNATTRIBUTED
from models.words import NAMES, word
from pipelines.report import Cell, Period, Table, clean
from pipelines.report_queries import EPISODES, FINDINGS, OVER_SIZED, TEAMS, WORKLOADS

MOST_ROWS = 10
BLIND = "Not measured: nothing says what these GPUs did."
FINDING_WORDS = {
    "used_without_hold": "used, although nobody held it",
    "label_disagrees": "the exporter and Kubernetes name different pods",
    "nvlink_silent": "several GPUs, but NVLink stays silent",
    "more_gpus_than_installed": "more GPUs measured than installed",
}
Row = dict[str, Any]


def tables(
    door: Door, period: Period, currency: str, team: str | None, is_measured: bool
) -> tuple[Table, ...]:
    """The tables of a report, all from one door."""
    days = {"begin_on": period.begin_on, "end_on": period.end_on}

    def rows(query: str, **more: Any) -> list[Row]:
        return door.query(query, days | more).pl().rows(named=True)

    apart = [name for name in RESERVED if name != UNATTRIBUTED]
    users = rows(TEAMS, apart=apart) if team is None else rows(WORKLOADS)
    found = [
        episodes_table("idle", rows(EPISODES, kind="idle"), period, currency, team),
        episodes_table("stalled", rows(EPISODES, kind="stalled"), period, currency, team),
        over_sized_table(rows(OVER_SIZED), currency, team),
        users_table(users, currency, team),
    ]
    if not is_measured:
        found = [replace(table, empty=BLIND) if table.empty else table for table in found]
    if others := rows(FINDINGS):
        found.append(findings_table(others, currency))
    return tuple(found)


def cost_of(row: Row, name: str, currency: str) -> str:
    """Money, what of its time has no price, or that nothing of it has one."""
    time, unpriced = row["gpu_seconds"], row["unpriced_gpu_seconds"]
    if time and row[name] is None:
        return NO_PRICE
    share = ratio(time - unpriced, time)
    text = money(row[name] or 0, currency, share)
    return f"{text} ({percent(share)} priced)" if share and share < 1 else text


def told(rows: list[Row], name: str, currency: str, what: str) -> str:
    """How many there are, what they come to, and how many of them are shown."""
    if not rows:
        return ""
    costs = [row[name] for row in rows if row[name] is not None]
    total = {
        "gpu_seconds": sum(row["gpu_seconds"] for row in rows),
        "unpriced_gpu_seconds": sum(row["unpriced_gpu_seconds"] for row in rows),
        "sum_cost": sum(costs, Decimal(0)) if costs else None,
    }
    text = f"{len(rows)} {what}, {hours(total['gpu_seconds'])}"
    text += f", {cost_of(total, 'sum_cost', currency)}"
    left = len(rows) - MOST_ROWS
    return f"{text} in all; the {left} that cost least are not listed." if left > 0 else f"{text}."


def whose(row: Row, team: str | None) -> str:
    """Beside a workload: its kind and namespace, who submitted it, and where not told, its team."""
    kind, namespace = clean(row.get("workload_kind_name")), clean(row.get("namespace_name"))
    users = clean(row.get("user_names_text"))
    parts = (
        f"{kind} in {namespace}" if kind and namespace else kind or namespace,
        f"team {NAMES.get(row['team_name'], clean(row['team_name']))}" if team is None else "",
        f"by {users}" if users else "",
    )
    return ", ".join(filter(None, parts))


def unmeasured(row: Row) -> None:
    """Take away the sums that are 0 only because nothing measures them."""
    names = []
    measured = sum(row[f"{name}_gpu_seconds"] or 0 for name in ("active", "idle", "stalled"))
    if row["unobserved_gpu_seconds"] and not measured:
        names = ["active", "idle", "stalled", "effective"]
    elif row["active_gpu_seconds"] and not row["effective_gpu_seconds"]:
        names = ["effective"]  # active by GPU_UTIL alone: how much of a GPU worked is not told
    for name in names:
        row[f"{name}_gpu_seconds"] = None
        if f"{name}_cost" in row:
            row[f"{name}_cost"] = None


def episodes_table(
    kind: str, rows: list[Row], period: Period, currency: str, team: str | None
) -> Table:
    """Where GPUs were idle or stalled for long: a row is a workload and a spell of it."""
    shown = [
        (
            Cell(clean(row["workload_name"]), whose(row, team)),
            _of_pods(row),
            _since(row, period),
            _cause(row, kind),
            Cell(cost_of(row, "episode_cost", currency), hours(row["gpu_seconds"])),
        )
        for row in rows[:MOST_ROWS]
    ]
    note = told(rows, "episode_cost", currency, f"{kind} spells" if len(rows) > 1 else "spell")
    return Table(
        title=f"{kind.capitalize()} GPUs",
        heads=("Workload", "GPUs", "Since", "Likely cause", "Cost"),
        rows=tuple(shown),
        note=f"{note} Shorter spells are in the figure above, not here." if note else "",
        empty=f"No GPU that is measured was {kind} for as long as an episode.",
    )


def _since(row: Row, period: Period) -> Cell:
    """Since when and how long; a spell that may have begun before the week says so."""
    since = f"{row['since_at'].astimezone(ZoneInfo(period.zone)):%a %d %b, %H:%M}"
    length = duration((row["until_at"] - row["since_at"]).total_seconds())
    return Cell(
        since + (" or before" if row["since_at"] <= period.begin else ""),
        f"for {length}" + (", not over" if row["is_open"] else ""),
    )


def _cause(row: Row, kind: str) -> Cell:
    """The likely cause that most of its time has, and how sure it is."""
    small = []
    if row["cause_count"] > 1:
        small.append("among others")
    if kind == "stalled" and not row["is_certain"]:
        small.append("suspected")
    return Cell(word(row["likely_cause_name"]), ", ".join(small))


def _of_pods(row: Row) -> Cell:
    """K of n GPUs, and in how many pods they are."""
    return Cell(
        f"{row['gpu_count']} of {row['of_gpu_count'] or '?'}",
        f"in {row['pod_count']} pods" if row["pod_count"] > 1 else "",
    )


def over_sized_table(rows: list[Row], currency: str, team: str | None) -> Table:
    """Pods that never used some of the GPUs that they asked for."""
    shown = [
        (
            Cell(clean(row["workload_name"]), whose(row, team)),
            _of_pods(row),
            Cell(f"{row['day_count']} of 7"),
            Cell(cost_of(row, "finding_cost", currency), hours(row["gpu_seconds"])),
        )
        for row in rows[:MOST_ROWS]
    ]
    what = "workloads" if len(rows) > 1 else "workload"
    note = told(rows, "finding_cost", currency, what)
    return Table(
        title="Over-sized requests",
        heads=("Workload", "Never used", "On days", "Cost"),
        rows=tuple(shown),
        note=f"{note} The same time may be in the idle GPUs above: do not add the two."
        if note
        else "",
        empty="No pod that is measured left a GPU of its own unused.",
    )


def users_table(rows: list[Row], currency: str, team: str | None) -> Table:
    """Who held what, and how much of it worked: teams, or the workloads of one."""
    head, shown = "Team" if team is None else "Workload", []
    for row in rows[:MOST_ROWS]:
        unmeasured(row)
        idle, stalled = row["idle_gpu_seconds"], row["stalled_gpu_seconds"]
        who = (
            Cell(NAMES.get(row["team_name"], clean(row["team_name"])))
            if team is None
            else Cell(clean(row["workload_name"]), whose(row, team))
        )
        shown.append(
            (
                who,
                Cell(hours(row["gpu_seconds"])),
                _utilisation(row),
                Cell(hours(None if idle is None else idle + stalled)),
                Cell(cost_of(row, "use_cost", currency)),
            )
        )
    what = head.lower() if len(rows) == 1 else f"{head.lower()}s"
    return Table(
        title=f"By {head.lower()}",
        heads=(head, "Held", "Utilisation", "Idle or stalled", "Cost"),
        rows=tuple(shown),
        note=told(rows, "use_cost", currency, what),
        empty=f"No {head.lower()} held a GPU.",
    )


def _utilisation(row: Row) -> Cell:
    """The ratio and its coverage."""
    share = ratio(row["effective_gpu_seconds"], row["sm_observed_gpu_seconds"])
    if share is None:
        return Cell(NOT_MEASURED)
    coverage = ratio(row["sm_observed_gpu_seconds"], row["held_gpu_seconds"])
    return Cell(percent(share), f"of {percent(coverage)} measured")


def findings_table(rows: list[Row], currency: str) -> Table:
    """What does not fit together between what was held and what was measured."""
    shown = tuple(
        (
            Cell(FINDING_WORDS.get(row["finding_name"], word(row["finding_name"]))),
            Cell(f"{row['finding_count']:,}"),
            Cell(hours(row["gpu_seconds"])),
            Cell(cost_of(row, "finding_cost", currency)),
        )
        for row in rows
    )
    return Table("What does not fit together", ("Finding", "Times", "Time", "Cost"), shown)
