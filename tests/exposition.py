"""A few lines of metrics as text, as if they had been fetched; what they mean is for the tests."""

from typing import Any

import polars as pl

from collectors.prometheus import Fetched
from collectors.prometheus_answers import Samples, series_frame, timed
from collectors.prometheus_segments import HOUR, Segment, State, Stretch
from collectors.prometheus_selectors import Group
from collectors.prometheus_text import chunks
from collectors.source import Settings
from collectors.tallies import Parsed
from models import raw
from models.table import INSTANT

BEGIN = 1_767_225_600_000
"""2026-01-01T00:00:00Z in milliseconds."""
SETTINGS = Settings("c")
TABLES = {table.name: table for table in raw.TABLES}


def fetched(text: str, begin: int = BEGIN, end: int = BEGIN + HOUR) -> Fetched:
    """The samples of a text; one without a time was taken a second after the begin."""
    labels: list[dict[str, str]] = []

    def number(one: dict[str, str]) -> int:
        if one not in labels:
            labels.append(one)
        return labels.index(one)

    def note(reason: str, example: str) -> None:
        raise AssertionError(f"{reason}: {example}")

    lines = [line.strip() + "\n" for line in text.splitlines() if line.strip()]
    frames = list(chunks([*lines, "# EOF\n"], number, begin + 1000, note))
    return of(labels, pl.concat(frames), begin, end) if frames else of([], None, begin, end)


def of(labels: list[dict[str, str]], samples: pl.DataFrame | None, begin: int, end: int) -> Fetched:
    """Samples (series_number, at, value) of series as a fetched stretch."""
    segment = Segment(Group.of("m"), begin, end)
    found = Fetched(segment, [Stretch(*segment, State.COMPLETE)])
    if samples is not None:
        found.data.append(Samples(series_frame(labels), timed(samples.fill_nan(None))))
        found.read_count = samples.height
    return found


def rows(parsed: Parsed, table: str) -> list[dict[str, Any]]:
    """The rows of one table, in their order; each batch keeps its contract."""
    found: list[dict[str, Any]] = []
    for batch in parsed.batches:
        assert batch.frame.schema == TABLES[batch.table].schema
        if batch.table == table:
            found += batch.frame.iter_rows(named=True)
    return found


def table(parsed: Parsed, name: str) -> pl.DataFrame:
    """The rows of one table as a frame."""
    frames = [batch.frame for batch in parsed.batches if batch.table == name]
    return pl.concat([TABLES[name].conform(pl.DataFrame(schema=TABLES[name].schema)), *frames])


def refused(parsed: Parsed) -> dict[tuple[str, str], int]:
    """(metric, reason) -> how many, of what raw.rejections says."""
    return {
        (row["source_ref"].split("[")[0], row["reason_name"]): row["rejected_count"]
        for row in rows(parsed, "raw.rejections")
    }


def at(milliseconds: int) -> Any:
    """An instant after the begin, as rows have it."""
    return pl.Series([(BEGIN + milliseconds) * 1000]).cast(INSTANT)[0]
