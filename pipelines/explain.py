"""The `explain` command: from a figure down to the rows of the sources it was read from.

A figure of time or money is a sum of ledger rows; which ones, its table's grain and its column's
name say. How rows are written belongs in `cli_read`; nothing here may reach Dagster.
"""

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from models.catalog import CATALOG
from models.states import HELD_STATES, STATES, WASTE_STATES
from models.table import Column, Table
from pipelines.cli_common import REFUSED, answering, home_of, plain, stop
from pipelines.cli_read import named, text, write_table

if TYPE_CHECKING:
    from lake.read import Door

SHOWN = 10
HELD_ROWS = ("mart.workload_days",)
"""Tables that sum only what workloads held."""
LEDGER = """(
    select l.*, coalesce(h.workload_class, '__none__') as workload_class
    from core.ledger as l
    left join core.holds as h
        on l.cluster_name = h.cluster_name and l.day_on = h.day_on and l.hold_id = h.hold_id
)"""
STEPS: dict[str, tuple[str, ...]] = {
    "installed": tuple(STATES),
    "available": tuple(s for s in STATES if s not in ("unrecorded", "unavailable", "rounding")),
    "allocated": HELD_STATES,
    "started": ("active", "stalled", "idle", "unobserved"),
    "unobserved": ("unobserved",),
    "active": ("active",),
}
"""The states that a step of the waterfall sums."""


class Part(NamedTuple):
    """What of the ledger a column sums."""

    value: str
    condition: str


def part_of(table: Table, column: Column) -> Part | None:
    """What of the ledger the column sums; None where it is no sum of the ledger."""
    name = column.name
    if name == "unbooked_gpu_seconds" or table.name.split(".")[1] not in (
        *("ledger", "gpu_hours", "fleet_states", "fleet_waterfall", "fleet_coverage"),
        *("team_days", "workload_days"),
    ):
        return None
    if name.endswith("_cost"):
        value, head = "ledger_cost", name.removesuffix("_cost")
    elif name.endswith("gpu_seconds"):
        value, head = "gpu_seconds", name.removesuffix("gpu_seconds").rstrip("_")
    else:
        return None
    conditions = {
        "held": HELD_STATES,
        "observed": tuple(state for state in HELD_STATES if state != "unobserved"),
        "waste": WASTE_STATES,
        **{state: (state,) for state in STATES},
    }
    wanted = [f"state_name in ({_listed(conditions[head])})"] if head in conditions else []
    if head == "unpriced":
        wanted.append("price_id is null")
    if table.name in HELD_ROWS:
        wanted.append("hold_id is not null")
    return Part(value, " and ".join(wanted) or "true")


def explain(
    config: Path | None, name: str, column: str, keys: list[str], snapshot: int | None
) -> None:
    """Print the figure, what it is the sum of, and where the largest of it was read."""
    with answering():
        table = CATALOG.get(name)
        if table is None or table.layer not in ("core", "mart"):
            stop(f"{name} is no table of core or mart: such as mart.team_days")
        try:
            asked = table.column(column)
            given = dict(_key(table, key) for key in keys)
        except KeyError as error:
            known = ", ".join(c.name for c in table.columns)
            stop(f"{error.args[0]}; it has {known}")
        from lake.read import Door

        with Door(home_of(config), snapshot) as door:
            is_sound = _explained(door, table, asked, given)
    if not is_sound:
        raise typer.Exit(REFUSED)


def _key(table: Table, told: str) -> tuple[str, str]:
    name, sign, value = told.partition("=")
    if not sign:
        stop(f"{told!r}: say key=value, such as team_name=research")
    return table.column(name).name, value


def _explained(door: "Door", table: Table, column: Column, given: dict[str, str]) -> bool:
    where = _where(table, given)
    count = door.query(f"select count(*) from {table.name} where {where}").fetchall()[0][0]
    if not count:
        stop(f"no row of {table.name} has {where}", REFUSED)
    typer.echo(plain(f"{table.name}.{column.name}: {column.doc}"))
    asked = ", ".join(f"{key}={value}" for key, value in given.items())
    typer.echo(plain(f"rows {count:,} of {asked}; {named(door)}"))
    part = part_of(table, column)
    if table.name == "mart.fleet_waterfall":
        part = part and _of_step(door, where, part)
    if part is None:
        return _rows_only(door, table, column, where)
    total = door.query(f"select sum({column.name}) from {table.name} where {where}").fetchall()
    figure = total[0][0]
    if figure is None:
        typer.echo("figure null, which is not 0: it has no price, or nothing measures it\n")
    else:
        typer.echo(f"figure {text(figure)}{_in_hours(column, figure)}\n")
    grain = [k for k in table.grain if k in ("workload_class", *_ledger_columns())]
    matches = " and ".join(f"l.{key} is not distinct from k.{key}" for key in grain)
    ledger = (
        f"select l.* from {LEDGER} as l where {part.condition} and exists (select 1 from "
        f"{table.name} as k where {matches} and {_where(table, given, 'k.')})"
    )
    return _contributions(door, ledger, part.value, figure)


def _of_step(door: "Door", where: str, part: Part) -> Part | None:
    steps = door.query(f"select distinct step_name from mart.fleet_waterfall where {where}")
    names = [name for (name,) in steps.fetchall()]
    if len(names) != 1:
        stop("mart.fleet_waterfall: name one step, such as step_name=installed")
    states = STEPS.get(names[0])
    if states is None:
        return None
    return Part(part.value, f"{part.condition} and state_name in ({_listed(states)})")


def _contributions(door: "Door", ledger: str, value: str, figure: Decimal | None) -> bool:
    """The largest ledger rows by holder and hold, and whether all of them are the figure."""
    [(rows, total)] = door.query(
        f"with l as ({ledger}) select count(*), coalesce(sum({value}), 0) from l"
    ).fetchall()
    top = door.query(
        f"with l as ({ledger}) select coalesce(hold_id, '(no hold)') as hold_id, team_name, "
        "state_name, cause_name, price_id, count(*) as ledger_rows, sum(gpu_seconds) as "
        "gpu_seconds, sum(ledger_cost) as ledger_cost from l group by all "
        f"order by sum({value}) desc nulls last, hold_id, state_name, cause_name, price_id "
        f"limit {SHOWN}"
    )
    found = top.fetchall()
    shown = sum(
        (row[6 if value == "gpu_seconds" else 7] or Decimal(0) for row in found), Decimal(0)
    )
    write_table(top.columns, found, f"the largest of {rows:,} rows of core.ledger")
    if figure is None:
        typer.echo("no part of it is known, so there is no sum")
    else:
        typer.echo(f"shown {text(shown)}, others {text(total - shown)}, sum {text(total)}")
    over = (figure or Decimal(0)) - total
    is_sound = over == 0
    word = "equals the figure" if is_sound else f"DIFFERS from the figure by {text(over)}"
    typer.echo(f"the sum of the ledger {word}\n")
    biggest = door.query(
        f"with l as ({ledger}), days as (select cluster_name, hold_id, day_on, "
        f"arg_max(price_id, {value}) as price_id, sum({value}) as day_value, "
        f"sum(sum({value})) over (partition by cluster_name, hold_id) as hold_value "
        "from l where hold_id is not null group by cluster_name, hold_id, day_on) "
        "select cluster_name, day_on, hold_id, price_id from days "
        "order by hold_value desc nulls last, hold_id, day_value desc nulls last limit 1"
    ).fetchall()
    for cluster, day, hold, price in biggest:
        _hold(door, cluster, text(day), hold)
        _price(door, price)
    if not biggest:
        _price_of_ledger(door, ledger)
        typer.echo("no hold is in it: its ledger rows follow from the nodes (raw.node_versions)")
    return is_sound


def _hold(door: "Door", cluster: str, day: str, hold: str) -> None:
    where = f"cluster_name = {_quoted(cluster)} and day_on = date {_quoted(day)}"
    typer.echo(plain(f"the largest: hold {hold} in {cluster} on {day}"))
    answer = door.query(f"select * from core.holds where {where} and hold_id = {_quoted(hold)}")
    for row in answer.fetchall():
        fields = dict(zip(answer.columns, row, strict=True))
        for name, value in fields.items():
            typer.echo(plain(f"  {name:<22} {text(value)}"))
        _versions(door, where, fields["pod_uid"], day)
        if fields["claim_uid"]:
            _claim_versions(door, where, fields["claim_uid"])


def _versions(door: "Door", where: str, pod: str, day: str) -> None:
    """The raw rows of a pod on a day: where each was read, and when."""
    answer = door.query(
        "select sequence_number, change_name, phase_name, node_name, observed_at, source_ref from "
        f"raw.pod_versions where {where} and pod_uid = {_quoted(pod)} order by 1 limit 50"
    )
    rows = answer.fetchall()
    if rows:
        write_table(answer.columns, rows, f"what the source said of pod {plain(pod)}")
    else:
        typer.echo(f"  the raw rows of {day} have expired (policies.raw_retention_days)")


def _claim_versions(door: "Door", where: str, claim: str) -> None:
    """The raw rows of the claim by which it is held."""
    answer = door.query(
        "select sequence_number, change_name, len(devices) as device_count, "
        "len(reserved_for) as reserved_count, observed_at, source_ref from "
        f"raw.claim_versions where {where} and claim_uid = {_quoted(claim)} order by 1 limit 50"
    )
    if rows := answer.fetchall():
        write_table(answer.columns, rows, f"what the source said of claim {plain(claim)}")


def _price(door: "Door", price: str | None) -> None:
    if price is None:
        typer.echo("price: none in force, so its time is counted as unpriced")
        return
    answer = door.query(f"select * from raw.prices where price_id = {_quoted(price)}")
    rows = answer.fetchall()
    typer.echo(plain(f"price {price}" if rows else f"price {price}: no longer in the price book"))
    for row in rows:
        for name, value in zip(answer.columns, row, strict=True):
            if value is not None:
                typer.echo(plain(f"  {name:<30} {text(value)}"))


def _price_of_ledger(door: "Door", ledger: str) -> None:
    rows = door.query(
        f"with l as ({ledger}) select price_id from l group by 1 order by sum(gpu_seconds) desc "
        "limit 1"
    ).fetchall()
    for (price,) in rows:
        _price(door, price)


def _rows_only(door: "Door", table: Table, column: Column, where: str) -> bool:
    """For what is no sum of the ledger: the rows themselves, and the pods they speak of."""
    answer = door.query(f"select * from {table.name} where {where} order by all limit {SHOWN}")
    rows = answer.fetchall()
    typer.echo(f"{column.name} is no sum of the ledger; the rows themselves:\n")
    for row in rows:
        for name, value in zip(answer.columns, row, strict=True):
            typer.echo(plain(f"  {name:<24} {text(value)}"))
        typer.echo("")
    fields = dict(zip(answer.columns, rows[0], strict=True))
    for key in ("pod_uid", "attempt_id", "hold_id"):
        if fields.get(key):
            _pods(door, key, fields)
            break
    return True


def _pods(door: "Door", key: str, fields: dict[str, Any]) -> None:
    day = text(fields["day_on"])
    where = f"cluster_name = {_quoted(fields['cluster_name'])} and day_on = date {_quoted(day)}"
    source = "core.holds" if key == "hold_id" else "core.pods"
    pods = door.query(
        f"select distinct pod_uid from {source} where {where} and {key} = {_quoted(fields[key])} "
        "order by 1 limit 3"
    )
    for (pod,) in pods.fetchall():
        _versions(door, where, pod, day)


def _where(table: Table, given: dict[str, str], prefix: str = "") -> str:
    return (
        " and ".join(
            f"{prefix}{name} = {_quoted(value)}::{table.column(name).kind.sql}"
            for name, value in given.items()
        )
        or "true"
    )


def _ledger_columns() -> tuple[str, ...]:
    return tuple(column.name for column in CATALOG["core.ledger"].columns)


def _in_hours(column: Column, figure: Decimal) -> str:
    return f" ({figure / 3600:,.2f} GPU-hours)" if column.name.endswith("gpu_seconds") else ""


def _quoted(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _listed(values: tuple[str, ...]) -> str:
    return ", ".join(_quoted(value) for value in values)
