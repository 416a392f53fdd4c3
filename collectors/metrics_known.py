"""What is known of the stretches of each family, and the samples counted in them.

It is read from raw.metric_coverage and written there again; what is due belongs to
`prometheus_segments`, what is read to `metrics`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import polars as pl

from collectors.batches import Rows
from collectors.prometheus import Fetched
from collectors.prometheus_segments import (
    Segment,
    Span,
    State,
    Stretch,
    learned,
    tiled,
)
from collectors.prometheus_selectors import Group, Matcher
from collectors.source import Settings
from collectors.tallies import Counts, day_before, kept
from models.raw_metrics import METRIC_COVERAGE

FEWER = "fewer samples than before: what was there is kept"


@dataclass(frozen=True)
class Item:
    """What was counted in a stretch that was handed on as one."""

    begin: int
    end: int
    read: int
    kept: int
    counts: Counts | None
    """None until it is told."""
    metrics: frozenset[str] = field(default_factory=frozenset)


class Known:
    """The stretches and their counts; a stretch that is read again replaces both."""

    def __init__(
        self,
        rows: pl.DataFrame,
        families: tuple[str, ...],
        place: str,
        settings: Settings,
        now: int,
    ):
        self.place, self.settings, self.now = place, settings, now
        self.marks = {mark(family): family for family in families}
        self.stretches: list[Stretch] = []
        self.items: dict[Group, list[Item]] = {group: [] for group in self.marks}
        mine = rows.filter(
            (pl.col("cluster_name") == settings.cluster)
            & (pl.col("source_ref") == place)
            & pl.col("family_name").is_in(families)
        )
        for row in mine.sort("begin_at").iter_rows(named=True):
            self._recall(row)

    def cut(self, segment: Segment) -> Iterator[Span]:
        """The segment at the ends of what was read in part, so that each is read again alone."""
        cuts = {t for i in self._inside(segment) if i.kept for t in (i.begin, i.end)}
        edges = [segment.begin, *sorted(t for t in cuts if segment.begin < t < segment.end)]
        yield from zip(edges, [*edges[1:], segment.end], strict=True)

    def learn(self, whole: Fetched) -> bool:
        """Takes what was read; False where less came than was there before, which then stays.

        A server forgets, and may be away: neither undoes what it said.
        """
        before = sum(item.kept for item in self._inside(whole.segment))
        read: list[Stretch] = whole.stretches
        is_better = kept(whole) >= before
        if not is_better:
            reasons = dict.fromkeys([FEWER, *(s.reason for s in read if s.reason)])
            read = [Stretch(*whole.segment, State.PARTIAL, "; ".join(reasons)[:300])]
        self.stretches = learned(self.stretches, read, self.now)
        if is_better:
            group, begin, end = whole.segment
            self.items[group] = [
                item for item in self.items[group] if item.end <= begin or end <= item.begin
            ]
        return is_better

    def hand(self, part: Fetched, metrics: Iterable[str]) -> None:
        """A stretch is handed on: what becomes of its samples is not known yet."""
        number = kept(part)
        item = Item(
            part.segment.begin,
            part.segment.end,
            part.read_count,
            number,
            None if number else Counts(),
            frozenset(metrics),
        )
        self.items[part.segment.group].append(item)

    def count(self, segment: Segment, counts: Counts) -> None:
        """Takes what became of them."""
        items = self.items[segment.group]
        for place, item in enumerate(items):
            if (item.begin, item.end) == segment[1:]:
                items[place] = replace(item, counts=counts)
                return
        raise KeyError(f"{segment} was not handed on")

    def rows(self, days: Iterable[Span]) -> pl.DataFrame:
        """All that is known of days as rows of raw.metric_coverage, up to now."""
        rows = Rows(METRIC_COVERAGE.name, 1 << 30)
        for begin, end in days:
            for stretch in tiled(self.marks, begin, min(end, self.now), self.stretches, self.now):
                rows.add(self._row(stretch))
        batches = list(rows.rest())
        return batches[0].frame if batches else pl.DataFrame(schema=METRIC_COVERAGE.schema)

    def _inside(self, segment: Segment) -> list[Item]:
        group, begin, end = segment
        return [item for item in self.items[group] if item.begin < end and begin < item.end]

    def _recall(self, row: dict) -> None:
        """A row of the table; what had never been read is not known."""
        if row["read_at"] is None:
            return
        begin, end, read_at = (
            round(row[name].timestamp() * 1000) for name in ("begin_at", "end_at", "read_at")
        )
        group = mark(row["family_name"])
        state, reason = State(row["read_name"]), row["reason_text"] or ""
        self.stretches.append(Stretch(group, begin, end, state, reason, row["try_count"], read_at))
        counts = Counts(
            *(row[f"{name}_count"] for name in ("reading", "copy", "rejected", "unused"))
        )
        metrics = frozenset(filter(None, (row["metrics_text"] or "").split(",")))
        numbers = (row["read_sample_count"], row["kept_sample_count"])
        self.items[group].append(Item(begin, end, *numbers, counts, metrics))

    def _row(self, stretch: Stretch) -> dict:
        items = [
            item
            for item in self.items[stretch.group]
            if stretch.begin <= item.begin and item.end <= stretch.end
        ]
        counts = Counts()
        for item in items:
            if item.counts is None:
                raise RuntimeError(f"{stretch}: what became of its samples was not told")
            counts += item.counts
        metrics = sorted({name for item in items for name in item.metrics})
        return {
            "cluster_name": self.settings.cluster,
            "day_on": day_before(stretch.end, self.settings.zone),
            "source_ref": self.place,
            "family_name": self.marks[stretch.group],
            "begin_at": stretch.begin * 1000,
            "end_at": stretch.end * 1000,
            "read_name": str(stretch.state),
            "reason_text": stretch.reason or None,
            "try_count": stretch.tries,
            "read_at": stretch.read_at * 1000 if stretch.read_at else None,
            "read_sample_count": sum(item.read for item in items),
            "kept_sample_count": sum(item.kept for item in items),
            "reading_count": counts.reading,
            "copy_count": counts.copy,
            "rejected_count": counts.rejected,
            "unused_count": counts.unused,
            "metrics_text": ",".join(metrics) or None,
        }


def mark(family: str) -> Group:
    """What stands for a whole family where stretches are planned."""
    return Group((Matcher("family", "=", family),))
