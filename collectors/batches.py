"""Rows on their way to a table: dicts first, then a frame that keeps the contract.

What a row says belongs to the parsers; where it was refused to `rejections`.
"""

from collections.abc import Iterator
from itertools import chain
from typing import Any

import polars as pl
import pyarrow as pa

from collectors.source import Batch
from models import raw
from models.table import INSTANT, Column, Kind, Table

MOST_ROWS = 20_000
TABLES = {table.name: table for table in raw.TABLES}
FIELDS = {
    kind: [(field.name, field.dtype) for field in kind.polars.inner.fields]  # type: ignore[attr]
    for kind in Kind
    if isinstance(kind.polars, pl.List)
}
ARROW = {
    pl.String(): pa.large_string(),
    pl.Int64(): pa.int64(),
    pl.Boolean(): pa.bool_(),
    INSTANT: pa.timestamp("us", "UTC"),
}


def _structs(column: Column, values: list[Any]) -> pl.Series:
    """A column of lists of structs from tuples of tuples, without a dict for each."""
    offsets: list[int | None] = []
    end = 0
    for value in values:
        offsets.append(None if value is None else end)
        end += len(value or ())
    offsets.append(end)
    flat = list(zip(*chain.from_iterable(value or () for value in values), strict=True))
    fields = FIELDS[column.kind]
    flat = flat or [()] * len(fields)
    arrays = [pa.array(each, ARROW[dtype]) for each, (_, dtype) in zip(flat, fields, strict=True)]
    structs = pa.StructArray.from_arrays(arrays, names=[name for name, _ in fields])
    lists = pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), structs)
    return pl.Series(column.name, pl.from_arrow(lists), dtype=column.kind.polars)


def _series(column: Column, values: list[Any]) -> pl.Series:
    if column.kind in FIELDS:
        return _structs(column, values)
    if column.kind is Kind.INSTANT:
        micros = pl.Series(column.name, values, dtype=pl.Int64())
        return micros.cast(column.kind.polars)
    return pl.Series(column.name, values, dtype=column.kind.polars)


def key_of(table: str) -> str:
    """The column that tells objects of a table of versions apart: their uid, else their name."""
    stem = table.removeprefix("raw.").removesuffix("_versions")
    return {"namespace": "namespace_name", "owner": "object_uid"}.get(stem, f"{stem}_uid")


def rows_of(frame: pl.DataFrame, table: str) -> Iterator[dict[str, Any]]:
    """A table's rows as a parser gives them: instants in microseconds, structs as tuples."""
    columns = TABLES[table].columns
    instants = [c.name for c in columns if c.kind is Kind.INSTANT]
    lists = [c.name for c in columns if c.kind in FIELDS]
    for row in frame.with_columns(pl.col(instants).to_physical()).iter_rows(named=True):
        for name in lists:
            if row[name] is not None:
                row[name] = tuple(tuple(each.values()) for each in row[name])
        yield row


class Rows:
    """Rows of one table, handed on in batches; instants are microseconds since 1970."""

    def __init__(self, table: str, most: int = MOST_ROWS):
        self.table: Table = TABLES[table]
        self.most = most
        self.rows: list[dict[str, Any]] = []
        self.add = self.rows.append
        """Takes one row; a column that it does not name is null."""

    def full(self) -> Iterator[Batch]:
        """The batch, once it is large enough."""
        if len(self.rows) >= self.most:
            yield from self.rest()

    def rest(self) -> Iterator[Batch]:
        """The batch, however small; none where there are no rows."""
        if self.rows:
            columns = self.table.columns
            frame = pl.DataFrame(
                [_series(c, [row.get(c.name) for row in self.rows]) for c in columns]
            )
            self.rows.clear()
            yield Batch(self.table.name, self.table.conform(frame))
