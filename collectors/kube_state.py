"""Pods, nodes and namespaces as kube-state-metrics showed them, scrape by scrape, as raw rows.

An object gets a version when what is told of it changes, and DELETED at the first scrape that no
longer has it; across a gap of scrapes it held throughout, or until it was last seen. How changes
are found belongs to `kube_state_versions`; where a recorder ran, see `recorded_first`.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NamedTuple, cast

import polars as pl

from collectors.batches import Rows
from collectors.coverage import ROOM, Days, Gap, micros_of, place_in_day, tiles
from collectors.kube_state_facts import MISSED, RUNS, Facts, copies
from collectors.kube_state_scrapes import Scrapes
from collectors.kube_state_versions import KINDS, Placed, Row, Versions
from collectors.kubernetes import PARSERS
from collectors.late import Late
from collectors.prometheus import Fetched
from collectors.prometheus_segments import Span, State, without
from collectors.rejections import Rejections
from collectors.source import Batch, Settings
from models.window import Window

QUARTER = ROOM // 4
"""Our rows have the second and the fourth quarter of an instant's places; recorders the rest."""
PACE = 6_900
"""Places for news heard in one second: an hour of them fills a quarter."""


class Counts(NamedTuple):
    """What became of the samples of a stretch; the last four add up to the first."""

    kept: int = 0
    readings: int = 0
    copies: int = 0
    rejected: int = 0
    unused: int = 0


class Known(NamedTuple):
    """What was known before: the newest row of each object, and when the last scrape was."""

    pods: pl.DataFrame | None = None
    nodes: pl.DataFrame | None = None
    namespaces: pl.DataFrame | None = None
    scraped_at: int | None = None
    """Microseconds since 1970; None: never."""
    gaps: tuple[Span, ...] = ()
    """Between scrapes, in microseconds; the first is that before the first scrape of all."""


class KubeState:
    """Reads stretch after stretch, in order of time; remembers what is alive."""

    def __init__(self, settings: Settings, place: str, window: Window, known: Known | None = None):
        """Rows are given for the window; what is read after it gives news of it."""
        known = known or Known()
        self.settings, self.place, self.window = settings, place, window
        self.begin, self.end = micros_of(window.begin), micros_of(window.end)
        self.facts = Facts()
        gaps = [Gap(*span, "", 0, 0) for span in known.gaps]
        self.scrapes = Scrapes(self.facts, known.scraped_at, gaps)
        self.versions = Versions(settings, place, self.scrapes, self.begin)
        self.rejections, self.days = Rejections(settings), Days(settings.zone)
        self.late = Late("Pod", self.scrapes.gaps, settings.zone, self.begin, self.end)
        self.copies = 0
        self.counts = Counts()
        """Of the stretch that was read last."""
        for kind, frame in zip(KINDS, (known.nodes, known.namespaces, known.pods), strict=True):
            for row in _rows_of(frame):
                self.versions.know(kind, row)
                if kind == "Pod":
                    for _ in self.late.rows(row, row["observed_at"]):
                        pass  # its day knows it

    def read(self, begin: int, end: int, parts: Iterable[Fetched]) -> Iterator[Batch]:
        """The rows of (begin, end], in milliseconds, of all metrics; one part is in memory at once.

        Time that is not complete gives none: what is lacking there would seem to have ended.
        """
        runs, whole, outside = self._runs(begin, end, parts)
        lost = without((begin, end), [*whole, *outside])
        inside = 0
        for since, until, is_whole in sorted(
            [*((*span, True) for span in whole), *((*span, False) for span in lost)]
        ):
            if not is_whole:
                self.scrapes.lost(since * 1000, until * 1000)
                continue
            self.scrapes.take(since * 1000, until * 1000)
            mine = runs if (since, until) == (begin, end) else self.scrapes.clipped(runs)
            inside += int(mine["count"].sum())
            if self.scrapes.times:
                yield from self._placed(*self.versions.of(mine, self._note))
        self._count(int(runs["count"].sum()) - inside)

    def _runs(
        self, begin: int, end: int, parts: Iterable[Fetched]
    ) -> tuple[pl.DataFrame, list[Span], list[Span]]:
        """The stretches of all parts, the time that is complete in all, and what none tells of."""
        self.facts.reset()
        self.copies = 0
        frames, whole = [pl.DataFrame(schema=RUNS)], [(begin, end)]
        outside: list[Span] | None = None
        for fetched in parts:
            unknown = [(s.begin, s.end) for s in fetched.stretches if s.reason == "not_recorded"]
            outside = unknown if outside is None else _in_both(outside, unknown)
            if unknown != [(begin, end)]:  # else the folder has no such metric
                read = [(s.begin, s.end) for s in fetched.stretches if s.state is State.COMPLETE]
                whole = _in_both(whole, read)
            found = [self.facts.runs(samples) for samples in fetched.data]
            frames.append(_joined(found, int(MISSED * self.facts.interval())))
            self.copies += copies(frames[-1], self.facts.interval())
        outside = outside or []
        inside = [left for span in whole for left in without(span, outside)]
        return pl.concat(frames), inside, outside

    def rest(self) -> Iterator[Batch]:
        """What was covered, and what was refused."""
        parts, nodes_from = self.scrapes.covered(self.begin, self.end), self.versions.nodes_from
        yield from tiles(parts, self.window, self.settings, self.place, nodes_from=nodes_from)
        yield from self.rejections.batches()

    def _note(self, reason: str, example: str) -> None:
        at = self.scrapes.times[0]
        if self.begin <= at < self.end:
            self.rejections.add(self.days.of(at), self.place, reason, example)

    def _count(self, left_out: int) -> None:
        facts = self.facts
        rejected = sum(refusal.times for refusal in facts.refusals)
        unused = facts.unused + left_out
        again = min(self.copies, facts.kept - rejected - unused)
        readings = facts.kept - again - rejected - unused
        self.counts = Counts(facts.kept, readings, again, rejected, unused)
        for reason, example, _, first, run_count in facts.refusals:
            if self.begin <= first < self.end:
                self.rejections.add(self.days.of(first), self.place, reason, example, run_count)

    def _placed(self, found: list[Placed], gone: list[Placed]) -> Iterator[Batch]:
        """The rows with their places in their days, those of the window; and news of its days."""
        tables = {kind: Rows(PARSERS[kind][0]) for kind in KINDS}
        news: dict[int, int] = {}
        for first, rows in ((QUARTER, found), (3 * QUARTER, gone)):
            for observed, mine in groupby(rows, lambda each: each[0]):
                for number, (_, (kind, _), row) in enumerate(mine, first):
                    self.days.of(observed)
                    row["sequence_number"] = place_in_day(observed, self.days.begin, number)
                    if self.begin <= observed < self.end:
                        tables[kind].add(row)
                    if kind == "Pod":
                        for heard in self.late.rows(row, observed):
                            self._hear(heard, observed, news)
                            tables[kind].add(heard)
                    yield from tables[kind].full()
        for kind in KINDS:
            yield from tables[kind].rest()

    def _hear(self, heard: Row, observed: int, news: dict[int, int]) -> None:
        """Gives news a place of its own at the end of its day."""
        over: int = heard["observed_at"]
        second = (observed - over) // 1_000_000 % 3600
        place = news[second] = news.get(second, second * PACE) + 1
        self.days.of(over - 1)
        heard["sequence_number"] = place_in_day(over, self.days.begin, QUARTER + place % QUARTER)


def _in_both(one: list[Span], other: list[Span]) -> list[Span]:
    """The time that lies in spans of both; neighbours are one."""
    common = [(max(a, c), min(b, d)) for a, b in one for c, d in other]
    found: list[Span] = []
    for begin, end in sorted(span for span in common if span[0] < span[1]):
        if found and found[-1][1] == begin:
            found[-1] = (found[-1][0], end)
        else:
            found.append((begin, end))
    return found


def _joined(found: list[pl.DataFrame], limit: int) -> pl.DataFrame:
    """Stretches that were read in parts, whole again."""
    if len(found) < 2:
        return found[0] if found else pl.DataFrame(schema=RUNS)
    names = ["kind", "key", "metric", "a", "b", "c", "teller", "value"]
    runs = pl.concat(found).sort(*names, "first")
    change = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift(1)) for name in names)
    apart = (pl.col("first") - pl.col("last").shift(1) > limit).fill_null(True)
    joined = runs.with_columns((change | apart).cum_sum().alias("run")).group_by(
        "run", maintain_order=True
    )
    return joined.agg(
        pl.col(names).first(),
        pl.col("first").min(),
        pl.col("last").max(),
        pl.col("count").sum(),
    ).select(*RUNS)


def _rows_of(frame: pl.DataFrame | None) -> Iterator[Row]:
    """Rows as parsers make them: instants in microseconds, lists as tuples."""
    if frame is None:
        return
    lists = [name for name, kind in frame.schema.items() if isinstance(kind, pl.List)]
    kinds = pl.Schema({name: _in_micros(kind) for name, kind in frame.schema.items()})
    for row in frame.cast(kinds).iter_rows(named=True):
        told = [name for name in lists if row[name] is not None]
        yield row | {name: tuple(tuple(each.values()) for each in row[name]) for name in told}


def _in_micros(kind: pl.DataType) -> pl.DataType:
    """The type of a column whose instants, also those in its lists, are numbers."""
    match kind:
        case pl.Datetime():
            return pl.Int64()
        case pl.List():
            return pl.List(_in_micros(cast(pl.DataType, kind.inner)))
        case pl.Struct():
            return pl.Struct(
                {each.name: _in_micros(cast(pl.DataType, each.dtype)) for each in kind.fields}
            )
    return kind
