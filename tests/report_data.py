"""A lake made by hand for the tests of reports: two teams and free GPUs, over two weeks.

Each row is a few figures; what it adds up to can be told by hand.
"""

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import polars as pl

from lake.create import create
from lake.home import Home
from lake.run import Run
from models.catalog import CATALOG
from models.states import UNALLOCATED
from models.table import Kind, Table
from models.window import Window, midnight
from pipelines.report import Period

ZONE = "Europe/Berlin"
WEEK = Period(date(2026, 11, 23), date(2026, 11, 30), ZONE)
DAYS = [WEEK.before.begin_on + timedelta(days=n) for n in range(14)]
HOSTILE_TEAM = 'evil\r\nBcc: all@example.com <b>"x"'
HOSTILE_JOB = "<script>alert(1)</script>‮\n! Cluster alpha"
HOUR = 3600
FILLERS: dict[Kind, Any] = {
    Kind.TEXT: "-",
    Kind.COUNT: 1,
    Kind.FLAG: False,
    Kind.DECIMAL: Decimal(0),
    Kind.RATIO: 0.0,
}
"""What a row has where a test does not care."""
Frames = dict[str, list[dict[str, Any]]]


def row(name: str, day: date, cluster: str = "alpha", **told: Any) -> dict[str, Any]:
    """A row of a table: what is told, else null where that may be, else a filler."""
    found: dict[str, Any] = {}
    for column in CATALOG[name].columns:
        filler = None if column.nullable else FILLERS.get(column.kind)
        if column.choices and filler is not None:
            filler = column.choices[0]
        found[column.name] = told.pop(column.name, filler)
    assert not told, told
    found |= {"cluster_name": cluster, "day_on": day}
    if "hour_at" in found:
        found["hour_at"] = midnight(day, ZONE)
    return found


def spans(hours_by_name: dict[str, float], price: float | None) -> dict[str, Any]:
    """GPU-hours of each kind of use as columns, and their cost where there is a price."""
    told: dict[str, Any] = {}
    for name, hours in hours_by_name.items():
        told[f"{name}_gpu_seconds"] = Decimal(str(hours * HOUR))
        if name in ("installed", "held", "active", "idle", "stalled", "effective"):
            told[f"{name}_cost"] = None if hours and price is None else money(hours * (price or 0))
    for name in ("installed", "held", "active", "idle", "stalled", "effective"):
        told.setdefault(f"{name}_cost", Decimal(0))
    return told


def money(amount: float) -> Decimal:
    return Decimal(str(round(amount, 6)))


def use(
    day: date, team: str, price: float | None = 2.0, cluster: str = "alpha", **hours: float
) -> Frames:
    """A day of a holder in the marts that tell of its use: hours of each kind."""
    installed = hours.get("installed", hours.get("held", 0))
    told = {"installed": installed, "available": installed, **hours}
    unpriced = Decimal(0) if price else Decimal(str(installed * HOUR))
    shares = spans(told, price)
    spent = {
        "team_name": team,
        "gpu_seconds": Decimal(str(installed * HOUR)),
        "unpriced_gpu_seconds": unpriced,
        "team_cost": money(installed * price) if price else None,
    }
    found = {
        "mart.team_days": [row("mart.team_days", day, cluster, **spent)],
        "mart.use_hours": [
            row("mart.use_hours", day, cluster, team_name=team, unpriced_gpu_seconds=unpriced,
                **shares)
        ],
    }  # fmt: skip
    states = {name: hours.get(name, 0) for name in ("active", "idle", "stalled", "unobserved")}
    rest = "unallocated" if team == UNALLOCATED else "loading"
    states[rest] = installed - sum(states.values())
    found["mart.fleet_states"] = [
        row("mart.fleet_states", day, cluster, gpu_model_name=team, state_name=state,
            gpu_seconds=Decimal(str(span * HOUR)), unpriced_gpu_seconds=Decimal(0),
            state_cost=money(span * price) if price else None)
        for state, span in states.items()
    ]  # fmt: skip
    if team != UNALLOCATED:
        kept = {c.name for c in CATALOG["mart.use_workloads"].columns}
        found["mart.use_workloads"] = [
            row("mart.use_workloads", day, cluster, team_name=team, workload_key_uid=f"{team}/1",
                workload_name=f"job of {team}", namespace_name=team, workload_kind_name="Job",
                unpriced_gpu_seconds=unpriced,
                **{k: v for k, v in shares.items() if k in kept})
        ]  # fmt: skip
    return found


def episode(
    since: datetime, until: datetime, team: str, workload: str, part: int = 1, **told: Any
) -> Frames:
    """One device's episode, cut at the midnights of the accounting zone into its pieces."""
    is_open, price = told.pop("is_open", False), told.pop("price", 2.0)
    pieces = []
    for day in DAYS:
        begin = max(since, midnight(day, ZONE))
        end = min(until, midnight(day + timedelta(days=1), ZONE))
        if begin >= end:
            continue
        hours = (end - begin).total_seconds() / HOUR
        given = {
            "episode_name": "idle",
            "hold_id": f"{workload}/{team}",
            "part_number": part,
            "begin_at": begin,
            "end_at": end,
            "active_before_seconds": 0 if begin > since else None,
            "active_after_seconds": 0 if end < until else None,
            "most_active_ratio": 0.01,
            "is_open": end < until or is_open,
            "team_name": team,
            "user_name": "someone",
            "workload_key_uid": f"{team}/{workload}",
            "workload_kind_name": "PyTorchJob",
            "namespace_name": team,
            "workload_name": workload,
            "pod_uid": f"pod of {workload}",
            "pod_gpu_count": 8,
            "gpu_uuid": f"GPU-{workload}-{part}",
            "is_certain": True,
            "likely_cause_name": "waiting_for_peers",
            "gpu_seconds": Decimal(str(hours * HOUR)),
            "unpriced_gpu_seconds": Decimal(0) if price else Decimal(str(hours * HOUR)),
            "episode_cost": money(hours * price) if price else None,
        }
        pieces.append(row("mart.gpu_episodes", day, **given | told))
    return {"mart.gpu_episodes": pieces}


def finding(day: date, name: str, team: str, hours: float, **told: Any) -> Frames:
    given = {
        "finding_name": name,
        "subject_text": f"pod of {team}",
        "begin_at": midnight(day, ZONE),
        "end_at": midnight(day, ZONE) + timedelta(hours=1),
        "team_name": team,
        "workload_name": f"job of {team}",
        "gpu_count": 4,
        "of_gpu_count": 8,
        "gpu_seconds": Decimal(str(hours * HOUR)),
        "finding_cost": money(hours * 2),
    }
    return {"mart.gpu_findings": [row("mart.gpu_findings", day, **given | told)]}


def known(day: date, hours: float = 24, cluster: str = "alpha") -> Frames:
    """That a cluster is known for so long of a day."""
    begin = midnight(day, ZONE)
    told = {
        "known_until_at": begin + timedelta(hours=hours),
        "known_seconds": int(hours * HOUR),
        "watched_seconds": int(hours * HOUR),
        "installed_gpu_seconds": Decimal(1000 * HOUR),
        "unrecorded_gpu_seconds": Decimal(20 * HOUR),
        "is_inventory_known": True,
    }
    return {"mart.fleet_coverage": [row("mart.fleet_coverage", day, cluster, **told)]}


def usual() -> list[Frames]:
    """Two whole weeks: vision is measured and lets GPUs idle, robotics is not measured at all."""
    found = []
    for day in DAYS:
        held = 100 if day >= WEEK.begin_on else 80
        found += [
            known(day),
            use(day, "vision", held=held, active=60, idle=20, stalled=5, unobserved=10,
                sm_observed=80, effective=30),
            use(day, "robotics", held=10, unobserved=10),
            use(day, UNALLOCATED, installed=50),
        ]  # fmt: skip
    monday = datetime(2026, 11, 23, 22, tzinfo=UTC)
    friday = datetime(2026, 11, 27, 8, tzinfo=UTC)
    found += [
        *(
            episode(monday, monday + timedelta(hours=30), "vision", "train-llm", n)
            for n in (1, 2, 3)
        ),
        episode(friday, WEEK.end, "vision", "notebook", is_open=True, pod_gpu_count=1,
                likely_cause_name="interactive"),
        episode(friday, friday + timedelta(hours=2), "vision", "stuck", episode_name="stalled",
                is_certain=False, likely_cause_name="broken"),
        finding(WEEK.begin_on, "over_sized", "vision", 20),
        finding(WEEK.last_on, "over_sized", "vision", 30),
        finding(WEEK.last_on, "used_without_hold", UNALLOCATED, 3),
    ]  # fmt: skip
    return found


def publish(home: Home, frames: Iterable[Frames], cluster: str = "alpha") -> int:
    """Publish the rows of a cluster over the two weeks; the snapshot's number."""
    if not home.catalog.exists():
        create(home, ZONE, "EUR")
    merged: Frames = {}
    for part in frames:
        for name, rows in part.items():
            merged.setdefault(name, []).extend(rows)
    run = Run(home, f"{cluster}-{len(list(home.path.iterdir()))}",
              Window(cluster, DAYS[0], WEEK.end_on, ZONE))  # fmt: skip
    for name, rows in merged.items():
        table: Table = CATALOG[name]
        run.begin(table)
        run.append(table, pl.DataFrame(rows, schema=table.schema, orient="row"))
    number = run.publish()
    run.discard()
    return number
