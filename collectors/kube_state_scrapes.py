"""When kube-state-metrics was scraped, by which target, and what was covered by it.

What the targets tell, and which is believed, belongs to `kube_state_versions`.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import polars as pl

from collectors.coverage import Gap
from collectors.kube_state_facts import IDENTITY, MISSED, Facts

REACH = 2.2
"""So many intervals after a scrape the next one is late: what lies between is a gap."""
FOREVER = 1 << 62
Part = tuple[int, int, str]
"""Begin and end, in microseconds since 1970, and how it was covered."""


@dataclass
class Scrapes:
    """The scrapes of one stretch, and what is remembered of those before."""

    facts: Facts
    last: int | None = None
    """The last scrape of all so far."""
    gaps: list[Gap] = field(default_factory=list)
    """The first of them lies before the first scrape, where none was known."""
    before: int | None = None
    """The last scrape of all before the stretch."""
    of: dict[str, list[int]] = field(default_factory=dict)
    """Teller -> its scrapes in the stretch."""
    times: list[int] = field(default_factory=list)
    """All scrapes in the stretch."""
    parts: list[Part] = field(default_factory=list)

    @property
    def reach(self) -> int:
        """How far apart two scrapes may be that follow one another."""
        return int(REACH * self.facts.interval())

    def lost(self, begin: int, end: int) -> None:
        """A stretch that was not read; before the first scrape of all nothing is known anyway."""
        if self.last is not None:
            self.parts.append((begin, end, "recorder_gap"))

    def take(self, begin: int, end: int) -> None:
        """The scrapes of a stretch that was read whole."""
        inside = {
            teller: sorted(at for at in times if begin < at <= end)
            for teller, times in self.facts.scrapes.items()
        }
        self.of = {teller: times for teller, times in inside.items() if times}
        self.times = sorted({at for own in self.of.values() for at in own})
        self.before, now = self.last, begin
        for at in self.times:
            if self.last is None:
                self._gap(at, at)
                now = at
            elif at - self.last > self.reach:
                cut = min(max(self.last, now), at)
                self.parts += [(now, cut, "sampled"), (cut, at, "recorder_gap")]
                self._gap(self.last, at)
                now = at
            self.last = at
        if self.last is not None:
            cut = end if end - self.last <= self.reach else min(max(self.last, now), end)
            self.parts += [(now, cut, "sampled"), (cut, end, "recorder_gap")]

    def _gap(self, begin: int, end: int) -> None:
        self.gaps.append(Gap(begin, end, "", 0, 0))

    def goes_on(self, teller: str, first: int) -> bool:
        """Whether this is its first scrape in the stretch, and follows what was before it."""
        own = self.of.get(teller)
        is_first = own is not None and own[0] == first
        return is_first and self.before is not None and first - self.before <= self.reach

    def awaits(self, teller: str) -> bool:
        """Whether the stretch is so short that a target may just not have had its turn in it."""
        is_short = self.before is not None and self.times[-1] - self.before <= self.reach
        return is_short and teller not in self.of

    def after(self, teller: str, at: int) -> int | None:
        """The first scrape of a target after an instant."""
        own = self.of.get(teller, [])
        place = bisect_right(own, at)
        return own[place] if place < len(own) else None

    def is_there(self, teller: str) -> bool:
        """Whether it is still scraped at the end of the stretch."""
        own = self.of.get(teller)
        return own is not None and own[-1] >= self.times[-1] - self.reach

    def is_changed(self) -> bool:
        """Whether there was a gap in the stretch or before it, or a teller began or ended."""
        first, last = self.times[0], self.times[-1]
        return bool(self.gaps and self.gaps[-1].end >= first) or any(
            own[0] - first > self.reach or last - own[-1] > self.reach for own in self.of.values()
        )

    def edges(self) -> pl.DataFrame:
        """Until when what a teller said at each of its scrapes holds: to its next."""
        rows = []
        for teller, own in self.of.items():
            patience = int(MISSED * self.facts.interval(teller))
            rows += [(teller, at, min(after, at + patience)) for at, after in pairwise(own)]
            until = FOREVER if self.is_there(teller) else own[-1] + patience
            rows.append((teller, own[-1], until))
        schema = {"teller": IDENTITY["teller"], "last": pl.Int64(), "until": pl.Int64()}
        return pl.DataFrame(rows, schema=schema, orient="row")

    def ends(self) -> pl.DataFrame:
        """The first and the last scrape of each teller."""
        rows = [(teller, own[0], own[-1]) for teller, own in self.of.items()]
        schema = {"teller": IDENTITY["teller"], "at_first": pl.Int64(), "at_last": pl.Int64()}
        return pl.DataFrame(rows, schema=schema, orient="row")

    def clipped(self, runs: pl.DataFrame) -> pl.DataFrame:
        """The stretches as far as they lie in this stretch of time."""
        found = [runs.clear()]
        for teller, own in self.of.items():
            times = pl.Series(own)
            mine = runs.filter(pl.col("teller").cast(pl.String()) == teller)
            first, last = mine["first"], mine["last"]
            counts = times.search_sorted(last, "right").cast(pl.Int64()) - times.search_sorted(
                first, "left"
            ).cast(pl.Int64())
            found.append(
                mine.with_columns(
                    first.clip(own[0]), last.clip(upper_bound=own[-1]), counts.alias("count")
                ).filter(pl.col("count") > 0)
            )
        return pl.concat(found)

    def covered(self, begin: int, end: int) -> Iterator[Part]:
        """How the window was covered; neighbours that were alike are one."""
        clipped = ((max(a, begin), min(b, end), name) for a, b, name in self.parts)
        yield from merged(part for part in clipped if part[0] < part[1])


def merged(parts: Iterable[Part]) -> Iterator[Part]:
    """Neighbours that were covered alike as one."""
    held: Part | None = None
    for part in parts:
        if held and held[1] == part[0] and held[2] == part[2]:
            held = (held[0], part[1], part[2])
            continue
        if held:
            yield held
        held = part
    if held:
        yield held
