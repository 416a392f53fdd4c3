"""A mapping's fields as Polars expressions: text to instants, amounts and words.

Each gives null where the table has none, and where what it has could not be read: that is told
apart by whether something was `written`. Which rows follow belongs to `table`.
"""

from datetime import date, datetime, time
from typing import Any
from zoneinfo import ZoneInfo

import polars as pl

from collectors.source import Unreadable
from models.config_errors import ConfigError
from models.gpus import canonical
from models.mapping import AMOUNTS, TIME_MICROS, Mapping, Times, Value
from models.parts import instant
from models.table import INSTANT

PLACE = "line"
"""The column that numbers a table's rows as a reader counts them."""
LATEST = 7_258_118_400_000_000
"""What lies before 1970 or after 2200 is no time of a trace."""
WORD = r"\{([^{}]+)\}"


def scanned(path: Any, mapping: Mapping) -> pl.LazyFrame:
    """A table, its rows numbered as lines; CSV all as text, whatever it may be."""
    if not path.is_file():
        raise Unreadable(f"{path}: is not there; the mapping names it")
    if path.suffix == ".parquet":
        return pl.scan_parquet(path, row_index_name=PLACE, row_index_offset=1)
    return pl.scan_csv(
        path,
        separator=mapping.separator,
        infer_schema=False,
        null_values=list(mapping.nulls),
        row_index_name=PLACE,
        row_index_offset=2,
        glob=False,
    )


def used(values: dict[str, Value]) -> dict[str, list[str]]:
    """Field -> the columns that it needs."""
    found = {}
    for field, value in values.items():
        if value.column is not None:
            found[field] = [value.column]
        elif value.template is not None:
            found[field] = pl.Series([value.template]).str.extract_all(WORD)[0].to_list()
            found[field] = [name.strip("{}") for name in found[field]]
    return found


def _plain(value: Value) -> pl.Expr:
    """A field as text."""
    if value.constant is not None:
        return pl.lit(str(value.constant), pl.String())
    if value.template is not None:
        names = used({"": value})[""]
        form = value.template.replace("{{", "{").replace("}}", "}")
        for name in names:
            form = form.replace("{" + name + "}", "{}", 1)
        return pl.format(form, *(pl.col(name).cast(pl.String()) for name in names))
    return pl.col(value.column or "").cast(pl.String()).str.strip_chars()


def word(value: Value | None) -> pl.Expr:
    """A field as text, its values replaced as the mapping says; empty becomes null."""
    if value is None:
        return pl.lit(None, pl.String())
    found = _plain(value)
    if value.values or value.default is not None:
        keys, words = list(value.values), list(value.values.values())
        default = pl.lit(value.default) if value.default is not None else found
        found = found.replace_strict(keys, words, default=default, return_dtype=pl.String())
    return pl.when(found != "").then(found)


def model(value: Value | None) -> pl.Expr:
    """A field as canonical GPU models; several are kept in their order, with `|` between."""

    def named(text: str) -> str:
        return "|".join(canonical(part) for part in text.split("|"))

    return word(value).map_elements(named, return_dtype=pl.String())


def written(value: Value | None) -> pl.Expr:
    """Whether the table says anything at all there."""
    return word(value).is_not_null()


def number(value: Value | None, default_unit: str) -> pl.Expr:
    """A field in our unit (thousandths, MiB), rounded; GPUs that this would make 0 are null."""
    if value is None:
        return pl.lit(None, pl.Int64())
    amount = word(value).cast(pl.Float64(), strict=False) * AMOUNTS[value.unit or default_unit]
    is_number = amount.is_finite() & (amount.abs() < 1e15)
    if default_unit.endswith("gpu"):
        is_number &= (amount == 0) | (amount.abs() >= 0.5)
    return pl.when(is_number).then(amount).round().cast(pl.Int64())


def moment(value: Value | None, times: Times, dtype: Any) -> pl.Expr:
    """A field as instants."""
    if value is None:
        return pl.lit(None, INSTANT)
    if isinstance(dtype, pl.Datetime):
        raw = pl.col(value.column or "").cast(pl.Datetime("us", dtype.time_zone))
        return _zoned(raw, times, dtype.time_zone)
    text = word(value)
    if times.epoch is None:
        return _clock(text, times)
    return _from_number(text, value.unit or times.unit, instant(times.epoch, "UTC"))


def _from_number(text: pl.Expr, unit: str, since: datetime) -> pl.Expr:
    factor = TIME_MICROS[unit]
    epoch = int(since.timestamp()) * 1_000_000

    def is_time(count: pl.Expr) -> pl.Expr:
        return count.is_between(-epoch / factor, (LATEST - epoch) / factor)

    exact = text.cast(pl.Int64(), strict=False)
    whole = exact * int(factor) if factor >= 1 else exact // 1000
    count = pl.when(exact.is_null()).then(text).cast(pl.Float64(), strict=False)
    close = (count * factor).round().cast(pl.Int64(), strict=False)
    micros = pl.coalesce(pl.when(is_time(exact)).then(whole), pl.when(is_time(count)).then(close))
    return (micros + epoch).cast(INSTANT)


def _clock(text: pl.Expr, times: Times) -> pl.Expr:
    if times.format and "%z" in times.format:
        read = text.str.to_datetime(times.format, time_unit="us", strict=False)
        return read.dt.convert_time_zone("UTC")
    naive = text.str.replace(r"Z$", "").str.to_datetime(
        times.format, time_unit="us", strict=False, ambiguous="null"
    )
    is_utc = text.str.ends_with("Z")  # the text knows better than the mapping
    return (
        pl.when(is_utc)
        .then(naive.dt.replace_time_zone("UTC"))
        .otherwise(_zoned(naive, times, None))
    )


def _zoned(naive: pl.Expr, times: Times, zone: str | None) -> pl.Expr:
    """Null for a clock time that was skipped, or came twice, as clocks were changed."""
    if zone is None:
        zoned = times.zone or "UTC"
        naive = naive.dt.replace_time_zone(zoned, ambiguous="null", non_existent="null")
    return naive.dt.convert_time_zone("UTC")


def told(text: str | float | date, times: Times, where: Any) -> datetime:
    """One time of the mapping itself, written as the table writes its own, or as YAML does."""
    if isinstance(text, date):
        clock = text if isinstance(text, datetime) else datetime.combine(text, time())
        return clock if clock.tzinfo else clock.replace(tzinfo=ZoneInfo(times.zone or "UTC"))
    found = pl.select(moment(Value(constant=str(text)), times, pl.String())).item()
    if found is None:
        raise ConfigError(where, [f"window: {text!r} is no time as `time` says"])
    return found
