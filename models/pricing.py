"""The price book as it is written: rows, what each covers, and the price of owned hardware.

Which row applies to a node at an instant belongs to `sql/core/price_spells.sql`.
"""

from collections.abc import Sequence
from datetime import date, datetime
from decimal import ROUND_HALF_UP, Context, Decimal, localcontext
from typing import Literal, NamedTuple

from pydantic import Field, model_validator

from models.gpus import canonical
from models.parts import Amount, Currency, Moment, Part, instant

ABSURD = 10**15
"""A price in millionths from which on it is a slip of the pen."""
HOURS_PER_YEAR = Decimal(8760)
ALLOWED = (
    "allowed: node (with cluster or without); node_label (likewise); gpu_model alone, "
    'with cluster, with capacity_type or with both; gpu_model "*" alone'
)


class Owned(Part):
    """Owned hardware: what it cost and costs, from which the price of a GPU-hour follows."""

    capex: Amount
    residual: Amount = Decimal(0)
    years: Amount = Field(gt=0)
    gpus: int = Field(gt=0)
    draw_watts: Amount = Decimal(0)
    pue: Amount = Field(default=Decimal(1), ge=1)
    tariff_per_kwh: Amount = Decimal(0)
    opex_per_month: Amount = Decimal(0)

    @model_validator(mode="after")
    def _worth(self) -> "Owned":
        if self.residual > self.capex:
            raise ValueError("residual is more than capex")
        return self

    def per_gpu_hour(self) -> Decimal:
        """The price, unrounded."""
        with localcontext(Context(prec=50)):
            hourly = (
                (self.capex - self.residual) / (self.years * HOURS_PER_YEAR)
                + self.opex_per_month * 12 / HOURS_PER_YEAR
                + self.draw_watts / 1000 * self.pue * self.tariff_per_kwh
            )
            return hourly / self.gpus

    def derivation(self) -> str:
        """The price's formula with its figures."""
        return (
            f"(({self.capex:f} - {self.residual:f}) / ({self.years:f} years x 8760 h)"
            f" + {self.opex_per_month:f} a month x 12 / 8760 h"
            f" + {self.draw_watts:f} W / 1000 x PUE {self.pue:f} x {self.tariff_per_kwh:f} per kWh)"
            f" / {self.gpus} GPUs"
        )


class Rate(Part):
    """What one unit of another currency is worth in the accounting currency, from then on."""

    valid_from: Moment
    currency: Currency
    rate: Amount = Field(gt=0)


class Price(Part):
    """A row of the price book."""

    valid_from: Moment
    cluster: str | None = None
    node: str | None = None
    node_label: dict[str, str] | None = Field(default=None, min_length=1, max_length=1)
    gpu_model: str | None = None
    capacity_type: Literal["on-demand", "reserved", "spot", "owned"] | None = None
    per_gpu_hour: Amount | None = None
    owned: Owned | None = None
    currency: Currency | None = None
    """Of its amounts; none: the accounting currency."""

    @model_validator(mode="after")
    def _sound(self) -> "Price":
        if (self.per_gpu_hour is None) == (self.owned is None):
            raise ValueError("needs per_gpu_hour or owned, one of the two")
        machine, model = self.node or self.node_label, self.gpu_model
        if (
            (machine and (model or self.capacity_type))
            or (self.node and self.node_label)
            or not (machine or model)
            or (model == "*" and (self.cluster or self.capacity_type))
        ):
            raise ValueError(f"what it covers is not clear; {ALLOWED}")
        if micro(self.exact()) >= ABSURD:
            raise ValueError("the price is absurd")
        return self

    @property
    def rank(self) -> int:
        """Its precedence: 5 node, 4 label, 3 cluster and model and type, 2 model, 1 all."""
        if self.node:
            return 5
        if self.node_label:
            return 4
        if self.gpu_model == "*":
            return 1
        return 3 if self.cluster and self.capacity_type else 2

    @property
    def model(self) -> str | None:
        """Its canonical model; None for any."""
        return None if self.gpu_model in (None, "*") else canonical(self.gpu_model)

    def exact(self) -> Decimal:
        """The price, unrounded."""
        if self.owned:
            return self.owned.per_gpu_hour()
        return self.per_gpu_hour or Decimal(0)

    def covers(self) -> str:
        """What it covers, as readable text without commas."""
        label = next(iter((self.node_label or {}).items()), None)
        parts = (
            f"node={self.node}" if self.node else None,
            f"label={label[0]}={label[1]}" if label else None,
            f"cluster={self.cluster}" if self.cluster else None,
            self.model,
            self.capacity_type,
        )
        return plain("/".join(part for part in parts if part) or "*")

    def id(self, zone: str) -> str:
        """Its key: what it covers and since when."""
        return f"{self.covers()}@{stamp(self.valid_from, zone)}"


class Figure(NamedTuple):
    """A price in the accounting currency, and from when on it is that."""

    applies_from: datetime
    exact: Decimal
    rate: Rate | None


def figures(price: Price, rates: Sequence[Rate], currency: str, zone: str) -> list[Figure]:
    """The price at each rate in force since its begin; none before the first rate."""
    begin = instant(price.valid_from, zone)
    if price.currency in (None, currency):
        return [Figure(begin, price.exact(), None)]
    found = []
    for rate in sorted(rates, key=lambda r: instant(r.valid_from, zone)):
        if rate.currency != price.currency:
            continue
        applies = max(begin, instant(rate.valid_from, zone))
        if found and found[-1].applies_from == applies:
            found.pop()  # an older rate, over by then
        found.append(Figure(applies, price.exact() * rate.rate, rate))
    return found


def micro(amount: Decimal) -> int:
    """An amount in millionths, rounded half up."""
    with localcontext(Context(prec=60)):
        return int((amount * 1_000_000).to_integral_value(ROUND_HALF_UP))


def stamp(moment: date | datetime, zone: str) -> str:
    """An instant as text, to the second, or finer where it is."""
    return instant(moment, zone).isoformat().replace("+00:00", "Z")


def plain(text: str) -> str:
    """The text fit for a CSV cell: one line, no comma or quote, no formula."""
    kept = "".join(c if c.isprintable() and c not in ",;\"'`|" else "_" for c in text)
    return f"_{kept}" if kept[:1] in ("=", "+", "-", "@") else kept


def currency_faults(
    prices: Sequence[Price], rates: Sequence[Rate], currency: str, zone: str
) -> list[str]:
    """Prices that cannot be converted at their begin, and rates of which neither can win."""
    faults, firsts = [], {}
    for place, rate in enumerate(rates):
        key = (rate.currency, instant(rate.valid_from, zone))
        if rate.currency == currency:
            faults.append(f"rates[{place}].currency: {currency} is the accounting currency")
        if firsts.setdefault(key, place) != place:
            faults.append(f"rates[{place}]: begins with rates[{firsts[key]}]: {rate.currency}")
    for place, price in enumerate(prices):
        if price.currency in (None, currency):
            continue
        found = figures(price, rates, currency, zone)
        if not found or found[0].applies_from > instant(price.valid_from, zone):
            faults.append(
                f"prices[{place}].currency: {price.currency} has no rate valid by "
                f"{stamp(price.valid_from, zone)}: add one under rates"
            )
        elif any(micro(figure.exact) >= ABSURD for figure in found):
            faults.append(f"prices[{place}]: the price is absurd at its rate")
    return faults


def price_conflicts(prices: Sequence[Price], zone: str) -> list[str]:
    """Rows that cover the same from the same instant on, of which neither can win."""
    firsts: dict[str, int] = {}
    return [
        f"prices[{place}]: covers the same from the same instant on as prices[{firsts[key]}]: {key}"
        for place, price in enumerate(prices)
        if firsts.setdefault(key := price.id(zone), place) != place
    ]
