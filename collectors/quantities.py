"""Kubernetes' spellings of quantities and instants; what cannot be read is Unusable, never 0.

What a quantity is for belongs to the parsers.
"""

import re
from datetime import UTC, datetime, timedelta
from decimal import ROUND_CEILING, Decimal, InvalidOperation
from functools import lru_cache
from typing import Any

from collectors.source import Unusable

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
FACTORS = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("0.001"),
    "": Decimal(1),
    **{unit: Decimal(1000) ** power for power, unit in enumerate("kMGTPE", 1)},
    **{f"{unit}i": Decimal(1024) ** power for power, unit in enumerate("KMGTPE", 1)},
}
QUANTITY = re.compile(
    r"([+-]?[0-9.]+(?:[eE][+-]?[0-9]{1,3})?)(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?"
)
DURATION = re.compile("([0-9]{1,12}(?:[.][0-9]{1,12})?)(h|ms|m|s|us|\u00b5s|\u03bcs|ns)")
SECONDS = {
    "h": Decimal(3600),
    "m": Decimal(60),
    "s": Decimal(1),
    "ms": Decimal("0.001"),
    **dict.fromkeys(("us", "\u00b5s", "\u03bcs"), Decimal("0.000001")),
    "ns": Decimal("0.000000001"),
}
MOST_SECONDS = 10**9
MOST = 2**53
MIB = 2**20
FIRST_INSTANT = 946_684_800_000_000  # 2000: no cluster is older
LAST_INSTANT = 4_102_444_800_000_000  # 2100


@lru_cache(maxsize=8192)
def _quantity(text: str) -> Decimal:
    match = QUANTITY.fullmatch(text)
    try:
        if match is None:
            raise InvalidOperation
        amount = Decimal(match[1]) * FACTORS[match[2] or ""]
    except InvalidOperation:
        raise Unusable("bad_quantity", text) from None
    if amount < 0:
        raise Unusable("negative_quantity", text)
    return amount


@lru_cache(maxsize=8192)
def _scaled(text: str, factor: int) -> int:
    found = int((_quantity(text) * factor).to_integral_value(ROUND_CEILING))
    if found > MOST:
        raise Unusable("absurd_quantity", text)
    return found


def whole(value: Any) -> int:
    """A quantity as a whole number, rounded up."""
    return _scaled(_text_of(value), 1)


def milli(value: Any) -> int:
    """A quantity in thousandths, rounded up."""
    return _scaled(_text_of(value), 1000)


def mib(value: Any) -> int:
    """A quantity of bytes in MiB, rounded up."""
    return -(-whole(value) // MIB)


def _text_of(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise Unusable("bad_quantity", repr(value)[:80])


@lru_cache(maxsize=65536)
def _micros(text: str) -> int | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise Unusable("bad_instant", text[:80]) from None
    if moment.tzinfo is None:
        raise Unusable("instant_without_zone", text)
    if moment.year <= 1:
        return None  # Go's zero time
    found = (moment - EPOCH) // MICROSECOND
    if not FIRST_INSTANT <= found < LAST_INSTANT:
        raise Unusable("absurd_instant", text)
    return found


def micros(value: Any) -> int | None:
    """An RFC 3339 instant in microseconds since 1970; None for none."""
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise Unusable("bad_instant", repr(value)[:80])
    return _micros(value)


@lru_cache(maxsize=8192)
def seconds(text: str) -> Decimal | None:
    """A duration as Go writes it (`1m57.875s`, `850ms`), to the microsecond; None where it is none.

    Exactly what was written: no binary fraction comes between.
    """
    found, end = Decimal(0), 0
    for match in DURATION.finditer(text):
        if match.start() != end:
            return None
        found += Decimal(match[1]) * SECONDS[match[2]]
        end = match.end()
    if not end or end != len(text):
        return None
    return found.quantize(Decimal("0.000001")) if found < MOST_SECONDS else None


def runtime_micros(value: Any) -> int | None:
    """Likewise of a container's runtime, whose word for never is the beginning of Unix time."""
    return None if value == "1970-01-01T00:00:00Z" else micros(value)


def text(value: Any) -> str | None:
    """A text; None for none or an empty one."""
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise Unusable("malformed", repr(value)[:80])
    return value


def needed(value: Any, reason: str) -> str:
    """A text that must be there."""
    found = text(value)
    if found is None:
        raise Unusable(reason)
    return found


def count(value: Any) -> int:
    """A whole number of 0 or more; 0 for none, as Kubernetes leaves zeros out."""
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int):
        raise Unusable("malformed", repr(value)[:80])
    if not 0 <= value <= MOST:
        raise Unusable("negative_quantity" if value < 0 else "absurd_quantity", str(value))
    return value


def part(value: Any) -> dict[str, Any]:
    """A part of an object; empty for none."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Unusable("malformed", repr(value)[:80])
    return value


def parts(value: Any) -> list[dict[str, Any]]:
    """A list of parts of an object; empty for none."""
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise Unusable("malformed", repr(value)[:80])
    return value


def words(value: Any) -> dict[str, str]:
    """Labels or annotations."""
    found = part(value)
    for word in found.values():
        if not isinstance(word, str):
            raise Unusable("malformed", repr(word)[:80])
    return found
