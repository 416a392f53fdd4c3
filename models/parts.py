"""What all parts of a configuration have in common: strictness, moments, amounts, paths.

The parts themselves live in `config`, `pricing`, `rules`, `mapping` and `prometheus`.
"""

from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationInfo

from models.config_errors import CURRENCIES, nearest
from models.window import midnight


class Part(BaseModel):
    """A part of the configuration: unknown keys are refused, nothing changes once read."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, populate_by_name=True, arbitrary_types_allowed=True
    )


def _moment(value: Any) -> date | datetime:
    if isinstance(value, str):
        try:
            value = date.fromisoformat(value) if len(value) == 10 else datetime.fromisoformat(value)
        except ValueError:
            raise ValueError("is neither a date nor an instant such as 2026-01-31T08:00Z") from None
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError("an instant needs its offset: end it in Z or +02:00")
        return value.astimezone(UTC)
    if isinstance(value, date):
        return value
    raise ValueError("is neither a date nor an instant such as 2026-01-31T08:00Z")


Moment = Annotated[Any, BeforeValidator(_moment)]
"""A date (its 00:00 in the accounting zone) or an instant with its offset."""


def instant(moment: date | datetime, zone: str) -> datetime:
    """A moment as an instant in UTC."""
    return moment if isinstance(moment, datetime) else midnight(moment, zone)


def _amount(value: Any) -> Decimal:
    if isinstance(value, float):
        raise ValueError(f'is a binary fraction: write it in quotes, "{value}"')
    if isinstance(value, bool) or not isinstance(value, int | str | Decimal):
        raise ValueError("is no number")
    try:
        amount = Decimal(value)
    except InvalidOperation:
        raise ValueError(f"{value!r} is no number") from None
    if not amount.is_finite() or amount < 0 or amount >= Decimal(10) ** 12:
        raise ValueError("must be a number from 0 to below 10^12")
    return amount


Amount = Annotated[Decimal, BeforeValidator(_amount)]
"""A decimal number of 0 or more, written as text or whole, never as a binary fraction."""


def _currency(code: str) -> str:
    if code not in CURRENCIES:
        raise ValueError(f"is no ISO 4217 code{nearest(code, CURRENCIES)}")
    return code


Currency = Annotated[str, AfterValidator(_currency)]
"""A currency in use, by its ISO 4217 code."""


def _beside(path: Path, info: ValidationInfo) -> Path:
    folder = (info.context or {}).get("folder")
    return folder / path.expanduser() if folder else path.expanduser()


Beside = Annotated[Path, AfterValidator(_beside)]
"""A path; a relative one counts from the folder of the configuration."""
