"""How a figure is written: hours, money, shares, durations, changes, and names made harmless.

Rounding happens here and nowhere earlier. What a figure means belongs in `words`; charts and
colours belong to the pages.
"""

from datetime import UTC, datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

Number = Decimal | float | int

NOT_MEASURED = "not measured"
NO_PRICE = "no price"
NONE = "–"
SPANS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
MANY = 10_000_000  # from here on a figure is written in millions: nobody reads eight digits


def amount(value: Number) -> str:
    """A quantity with as many digits as a reader can use: `12,345`, `98.7`, `0.42`."""
    size = abs(float(value))
    if size >= MANY:
        return f"{float(value) / 1e6:,.1f} M"
    if size >= 100 or size == 0:
        return f"{float(value):,.0f}"
    return f"{float(value):,.1f}" if size >= 10 else f"{float(value):,.2f}"


def hours(gpu_seconds: Number | None) -> str:
    """GPU-seconds as GPU-hours."""
    return NOT_MEASURED if gpu_seconds is None else f"{amount(float(gpu_seconds) / 3600)} GPU-h"


def money(cost: Number | None, currency: str, priced: float | None = None) -> str:
    """Money with its currency's code; where nothing has a price, there is no sum to write."""
    if priced == 0:
        return NO_PRICE
    if cost is None:
        return NOT_MEASURED
    digits = 2 if 0 < abs(float(cost)) < 1000 else 0
    text = (
        f"{float(cost) / 1e6:,.1f} M" if abs(float(cost)) >= MANY else f"{float(cost):,.{digits}f}"
    )
    return f"{currency} {text}"


def ratio(part: Number | None, whole: Number | None) -> float | None:
    """Part of whole; None where there is no whole, for nothing is not a share of nothing."""
    return None if part is None or not whole else float(part) / float(whole)


def percent(share: float | None) -> str:
    """A share; all and nothing are said only where they are true."""
    if share is None:
        return NONE
    if 0 < share < 0.001:
        return "< 0.1 %"
    if 0.999 < share < 1:
        return "> 99.9 %"
    return f"{share:.1%}".replace(".0%", "%").replace("%", " %")


def duration(seconds: Number | None, missing: str = "not reached") -> str:
    """A length of time in its two largest units: `2 h 14 min`."""
    if seconds is None:
        return missing
    left = round(float(seconds))
    parts = []
    for size, unit in SPANS:
        if left >= size or (unit == "s" and not parts):
            parts.append((left // size, unit))
        elif parts:
            parts.append((0, unit))
        left %= size
    return " ".join(f"{count} {unit}" for count, unit in parts[:2] if count or len(parts) == 1)


def instant(at: datetime, zone: str) -> str:
    """An instant in the lake's zone, which is named."""
    aware = at if at.tzinfo else at.replace(tzinfo=UTC)
    return f"{aware.astimezone(ZoneInfo(zone)):%Y-%m-%d %H:%M} {zone}"


def change(
    now: Number | None, before: Number | None, *, is_share: bool = False
) -> str | int | None:
    """How a figure moved, with a sign; shares in points; 0: not at all; None: cannot be told."""
    if now is None or before is None or (not is_share and not before):
        return None
    moved = float(now) - float(before) if is_share else float(now) / float(before) - 1
    if abs(moved) < 0.0005:
        return 0
    return f"{moved * 100:+,.1f} {'points' if is_share else '%'}"


def plain(name: str, most: int = 40) -> str:
    """A name for a chart: cut short, and with nothing that plotly would take for markup."""
    short = name if len(name) <= most else f"{name[: most - 1]}…"
    return short.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
