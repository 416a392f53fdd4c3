"""The recorded rows of a fleet as a source of the pipeline: everything behind a collector is real.

What the rows say belongs in `rows`; how long they take in `measure`.
"""

from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path
from typing import NamedTuple

import polars as pl

from benchmarks import samples
from benchmarks.rows import file_of
from collectors.source import Batch, Settings
from collectors.sources import ALL, Collector
from models import raw
from models.window import Window

BATCH_ROWS = 50_000


class Rows(NamedTuple):
    """The folder of a fleet's raw rows, as the configuration would name it."""

    path: Path
    first_days: int | None = None
    """Only so many days of it, from the first one on."""
    is_sampled: bool = True
    """Whether the GPUs' samples are read, too."""
    kind: str = "benchmark"


def _days(source: Rows) -> list[date]:
    files = (source.path / raw.COVERAGE.name).glob("*.parquet")
    return sorted(date.fromisoformat(path.stem) for path in files)[: source.first_days]


def _span(source: Rows, settings: Settings) -> tuple[datetime, datetime] | None:
    days = _days(source)
    frames = [pl.read_parquet(file_of(source.path, raw.COVERAGE.name, d)) for d in days]
    told = pl.concat(frames)
    return told["begin_at"].min(), told["end_at"].max()  # type: ignore[return-value]


def _collect(source: Rows, settings: Settings, window: Window | None) -> Iterator[Batch]:
    for day in _days(source):
        if window is not None and not window.begin_on <= day < window.end_on:
            continue
        for table in raw.TABLES:
            path = file_of(source.path, table.name, day)
            if table.is_daily and path.exists():
                for frame in pl.read_parquet(path).iter_slices(BATCH_ROWS):
                    yield Batch(table.name, frame)
            for frame in samples.batches(source.path, table.name, day) if source.is_sampled else ():
                yield Batch(table.name, frame)


ALL["benchmark"] = Collector(_collect, _span)
