"""The truth of money: which price is in force on a node, and what each row of an hour costs.

Integers throughout: micro-GPU-seconds and micro-units of the currency.
"""

from collections import defaultdict
from collections.abc import Iterable
from datetime import date, datetime, time
from decimal import ROUND_HALF_UP, Decimal
from itertools import pairwise
from zoneinfo import ZoneInfo

from simulator.nodes import Node
from simulator.settings import Config
from simulator.truth_ledger import Key, Row

MICRO = Decimal("0.000001")
Price = tuple[int, int, int | None]  # from, to, micro-units per GPU-hour
Cost = tuple[object, ...]
COST_COLUMNS = (
    "node_uid",
    "hour",
    "price",
    "holder",
    "workload",
    "state",
    "cause",
    "pod_uid",
    "cost_micro",
)


def instant(told: object, zone: ZoneInfo) -> int:
    """A date, an instant or their text, in seconds."""
    if isinstance(told, str):
        told = datetime.fromisoformat(told)
    if isinstance(told, datetime):
        return int((told if told.tzinfo else told.replace(tzinfo=zone)).timestamp())
    assert isinstance(told, date)
    return int(datetime.combine(told, time(), zone).timestamp())


def per_hour(row: Config) -> int:
    """The price of a row, in micro-units per GPU-hour; of owned hardware it is derived."""
    if "per_gpu_hour" in row:
        return int(Decimal(str(row["per_gpu_hour"])) / MICRO)
    own = {name: Decimal(str(value)) for name, value in row["owned"].items()}
    hourly = (own["capex"] - own["residual"]) / (own["years"] * 8760)
    hourly += own["draw_watts"] / 1000 * own["pue"] * own["tariff_per_kwh"]
    hourly += own["opex_per_month"] * 12 / 8760
    return int((hourly / own["gpus"]).quantize(MICRO, ROUND_HALF_UP) / MICRO)


def rank(row: Config, node: Node, cluster: str, capacity_type: str) -> int:
    """How closely a price row fits a node; 0 where it does not."""
    if row.get("cluster", cluster) != cluster:
        return 0
    if row.get("capacity_type", capacity_type) != capacity_type:
        return 0
    if row.get("gpu_model", "*") not in ("*", node.model.name):
        return 0
    if "node" in row:
        return 5 if row["node"] == node.name else 0
    if "node_label" in row:
        fits = all(node.labels.get(k) == v for k, v in row["node_label"].items())
        return 4 if fits else 0
    if "cluster" in row or "capacity_type" in row:
        return 3
    return 1 if row.get("gpu_model", "*") == "*" else 2


def prices(node: Node, cluster: str, told: Config, window: tuple[int, int]) -> list[Price]:
    """The price of a GPU-hour on a node, from when to when."""
    zone = ZoneInfo(told.get("lake", {}).get("accounting_zone", "UTC"))
    keys = told.get("labels", {}).get("capacity_type", [])
    kind = next((node.labels[key] for key in keys if key in node.labels), "unknown")
    rows = []
    for row in told.get("prices", []):
        if fit := rank(row, node, cluster, kind):
            rows.append((instant(row["valid_from"], zone), fit, per_hour(row)))
    cuts = sorted({window[0], window[1]} | {t for t, _, _ in rows if window[0] < t < window[1]})
    found: list[Price] = []
    in_force: tuple[int, int, int] | None = None
    for begin, end in pairwise(cuts):
        valid = [(fit, since, price) for since, fit, price in rows if since <= begin]
        chosen = max(valid, default=None)
        if found and chosen == in_force:  # another row became valid, not the one in force
            found[-1] = (found[-1][0], end, found[-1][2])
        else:
            found.append((begin, end, chosen[2] if chosen else None))
        in_force = chosen
    return found


def costs(node_uid: str, rows: Iterable[Row], book: list[Price]) -> list[Cost]:
    """What each row costs in each hour and at each price, with what rounding leaves over."""
    sums: dict[tuple[int, int, int | None], dict[Key, int]] = defaultdict(lambda: defaultdict(int))
    for begin, end, key, micro in rows:
        for since, until, price in book:
            now, last = max(begin, since), min(end, until)
            while now < last:
                hour = now // 3600 * 3600
                stop = min(last, hour + 3600)
                sums[hour, since, price][key] += (stop - now) * micro
                now = stop
    found: list[Cost] = []
    for (hour, _, price), parts in sorted(sums.items(), key=lambda item: item[0][:2]):
        if price is None:
            merged = {_shown(key): "" for key in parts}
            found += [(node_uid, hour, "", *shown, "") for shown in sorted(merged)]
            continue
        text = f"{Decimal(price) * MICRO:f}"
        booked: dict[tuple[str, ...], int] = defaultdict(int)
        for key, amount in parts.items():
            booked[_shown(key)] += amount * price // 3_600_000_000
        total = (sum(parts.values()) * price * 2 + 3_600_000_000) // 7_200_000_000
        found += [(node_uid, hour, text, *shown, cost) for shown, cost in sorted(booked.items())]
        if rest := total - sum(booked.values()):
            rounding = ("__rounding__", "", "rounding", "none", "")
            found.append((node_uid, hour, text, *rounding, rest))
    return found


def _shown(key: Key) -> tuple[str, ...]:
    hold, holder, workload, state, cause = key
    return holder, workload, state, cause, hold.split("/")[0]
