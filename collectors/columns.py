"""A mapping's fields as Polars expressions: text to instants, amounts and words.

Each gives null where the table has none, and tells apart what could not be read. Which rows follow
belongs to `table`.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import polars as pl

from collectors.source import Unreadable
from models.config_errors import ConfigError
from models.gpus import canonical
from models.mapping import AMOUNTS, TIME_MICROS, Mapping, Times, Value
from models.parts import instant
from models.table import INSTANT

PLACE = "line"
"""The column that numbers a table's rows as a reader counts them."""
Bad = Callable[[pl.Expr], None]
"""Takes an expression that is true where a value could not be read."""
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


def number(value: Value | None, default_unit: str, bad: Bad) -> pl.Expr:
    """A field in our unit (thousandths, MiB), rounded; what is no number goes to `bad`."""
    if value is None:
        return pl.lit(None, pl.Int64())
    text = word(value)
    factor = AMOUNTS[value.unit or default_unit]
    amount = text.cast(pl.Float64(), strict=False)
    is_number = amount.is_not_null() & amount.is_finite() & (amount.abs() < 1e12)
    bad(text.is_not_null() & ~is_number.fill_null(False))
    return pl.when(is_number).then(amount * factor).round().cast(pl.Int64())


def moment(
    value: Value | None, times: Times, dtype: Any, bad: Callable[[pl.Expr], None]
) -> pl.Expr:
    """A field as instants; what is no time goes to `bad`."""
    if value is None:
        return pl.lit(None, INSTANT)
    if isinstance(dtype, pl.Datetime):
        raw = pl.col(value.column or "").cast(pl.Datetime("us", dtype.time_zone))
        return _zoned(raw, times, dtype.time_zone)
    text = word(value)
    if times.epoch is None:
        found = _clock(text, times)
    else:
        found = _from_number(text, value.unit or times.unit, instant(times.epoch, "UTC"))
    bad(text.is_not_null() & found.is_null())
    return found


def _from_number(text: pl.Expr, unit: str, since: datetime) -> pl.Expr:
    factor = TIME_MICROS[unit]
    epoch = int(since.timestamp()) * 1_000_000
    exact = text.cast(pl.Int64(), strict=False)
    rounded = text.cast(pl.Float64(), strict=False)
    if factor >= 1:
        limit = 2**61 // int(factor)
        micros = pl.when(exact.abs() < limit).then(exact * int(factor))
    else:
        micros = exact // 1000
    close = pl.when(rounded.is_finite() & (rounded.abs() * factor < 2**61)).then(
        (rounded * factor).round().cast(pl.Int64(), strict=False)
    )
    total = pl.coalesce(micros, close) + epoch
    # From 1970 to 2200: what lies outside is no time of a trace.
    return pl.when(total.is_between(0, 7_258_118_400_000_000)).then(total).cast(INSTANT)


def _clock(text: pl.Expr, times: Times) -> pl.Expr:
    if times.format and "%z" in times.format:
        read = text.str.to_datetime(times.format, time_unit="us", strict=False)
        return read.dt.convert_time_zone("UTC")
    naive = text.str.replace(r"Z$", "").str.to_datetime(
        times.format, time_unit="us", strict=False, ambiguous="null"
    )
    return _zoned(naive, times, None)


def _zoned(naive: pl.Expr, times: Times, zone: str | None) -> pl.Expr:
    if zone is None:
        naive = naive.dt.replace_time_zone(
            times.zone or "UTC", ambiguous="earliest", non_existent="null"
        )
    return naive.dt.convert_time_zone("UTC")


def told(text: str | float, times: Times, where: Any) -> datetime:
    """One time of the mapping itself, written as the table writes its own."""
    faults: list[pl.Expr] = []
    field = moment(Value(constant=str(text)), times, pl.String(), faults.append)
    found = pl.select(field).item()
    if found is None:
        raise ConfigError(where, [f"window: {text!r} is no time as `time` says"])
    return found
