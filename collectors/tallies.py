"""What became of the samples of a stretch: each kept sample is counted once, here or there.

What a reading is belongs to the parser of each family; how counts are kept to `metrics`.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import polars as pl

from collectors.prometheus import Fetched
from collectors.rejections import Rejections
from collectors.source import Batch
from models.window import day_of

MICROSECOND = pl.duration(microseconds=1)


@dataclass(frozen=True)
class Counts:
    """Kept samples by what became of them."""

    reading: int = 0
    """A part of a row."""
    copy: int = 0
    """Told once more what a reading says."""
    rejected: int = 0
    """Are no reading."""
    unused: int = 0
    """No column holds them."""

    @property
    def kept(self) -> int:
        """All of them."""
        return self.reading + self.copy + self.rejected + self.unused

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            self.reading + other.reading,
            self.copy + other.copy,
            self.rejected + other.rejected,
            self.unused + other.unused,
        )


@dataclass
class Parsed:
    """The rows of a stretch, and what became of its samples."""

    batches: list[Batch]
    counts: Counts


def query(fetched: Fetched, selector: str) -> str:
    """The question that reads series of a stretch again, in PromQL."""
    _, begin, end = fetched.segment
    return f"{selector}[{end - begin}ms] @ {end / 1000:.3f}"


def kept(fetched: Fetched) -> int:
    """Samples that are there, each (series, time) once."""
    return sum(data.samples.height for data in fetched.data)


def day_on(at: pl.Expr, zone: str) -> pl.Expr:
    """The day of a sample: one stored at midnight belongs to the day that ends."""
    return (at - MICROSECOND).dt.convert_time_zone(zone).dt.date()


def day_before(milliseconds: int, zone: str) -> date:
    """The same for one instant."""
    return day_of(instant(milliseconds) - timedelta(microseconds=1), zone)


def instant(milliseconds: int) -> datetime:
    """Milliseconds since 1970 as an instant."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)


def note(fetched: Fetched, family: str, rejections: Rejections) -> None:
    """What the client left out or found odd; what is no number is refused sample by sample."""
    day = day_before(fetched.segment.end, rejections.settings.zone)
    for reason, times in fetched.notices.items():
        if reason != "not_a_number":
            place = query(fetched, family)
            rejections.add(day, place, reason, f"{times} samples of {family}", times)
