"""Pods, nodes and namespaces as kube-state-metrics showed them, scrape by scrape, as raw rows.

An object gets a version when what is told of it changes, and DELETED at the first scrape that no
longer has it; across a gap of scrapes it held throughout, or until it was last seen. What a series
says belongs to `kube_state_facts`, an object's row to `kube_state_objects`; where a recorder ran,
its rows win: see `recorded_first`.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, NamedTuple

import polars as pl

from collectors import kube_state_objects as objects
from collectors.batches import TABLES, Rows
from collectors.coverage import (
    ROOM,
    Days,
    Gap,
    micros_of,
    place_in_day,
    tiles,
)
from collectors.kube_state_facts import MISSED, RUNS, Facts
from collectors.kube_state_names import Names
from collectors.kube_state_objects import Told
from collectors.kubernetes import PARSERS
from collectors.late import Late
from collectors.prometheus import Fetched
from collectors.prometheus_segments import State
from collectors.rejections import Rejections
from collectors.source import Batch, Settings, Unusable, Version
from models.window import Window

REACH = 2.2
"""So many intervals after a scrape the next is late: what lies between is a gap of the record."""
FOREVER = 1 << 62
QUARTER = ROOM // 4
"""Our rows have the second and the fourth quarter of an instant's places; recorders the rest."""
PACE = 6_900
"""Places for news heard in one second: an hour of them fills a quarter."""
KINDS = ("Node", "Namespace", "Pod")
MEMORIES = tuple(c.name for c in TABLES["raw.pod_versions"].columns if "Memory of" in c.doc)
UNTOLD = {"day_on", "sequence_number", "observed_at", "change_name", "source_ref", *MEMORIES}
"""Columns in which two versions may differ although nothing else is told."""
Key = tuple[str, str]
"""Kind, and what an object of it goes by."""
Row = dict[str, Any]


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


class Run(NamedTuple):
    """A stretch of one fact of one object."""

    metric: str
    told: Told
    teller: str
    first: int
    last: int
    until: int
    """Until when it speaks: the teller's next scrape."""


class KubeState:
    """Reads stretch after stretch, in order of time; remembers what is alive."""

    def __init__(self, settings: Settings, place: str, window: Window, known: Known | None = None):
        """Rows are given for the window; what is read after it gives news of it."""
        self.settings, self.place = settings, place
        self.window = window
        self.begin, self.end = micros_of(window.begin), micros_of(window.end)
        self.names, self.facts = Names(settings), Facts()
        self.rejections, self.days = Rejections(settings), Days(settings.zone)
        self.counts = Counts()
        self.gaps: list[Gap] = []
        self.late = Late("Pod", self.gaps, settings.zone, self.begin, self.end)
        self.alive: dict[Key, Row] = {}
        """The newest row of each object that is there."""
        self.sights: dict[Key, tuple[int, frozenset[str]]] = {}
        """When each was last seen, and who told it."""
        self.listed: dict[Key, int] = {}
        """After which gap each was last told."""
        self.uids: dict[tuple[str, int | None], str] = {}
        self.above: dict[tuple[str, str], objects.Owner] = {}
        self.begun: dict[str, int] = {}
        """Teller -> its first scrape; the one that came first is believed first."""
        self.ended: dict[str, int] = {}
        self.exposed: set[tuple[str, str]] = set()
        """Tellers and the metrics that they have."""
        self.prints = pl.DataFrame(schema=_PRINTS)
        self.scraped = self.scraped_before = known.scraped_at if known else None
        self.parts: list[tuple[int, int, str]] = []
        self.nodes_from: int | None = None
        self._know(known or Known())

    def _know(self, known: Known) -> None:
        for kind, frame in zip(KINDS, (known.nodes, known.namespaces, known.pods), strict=True):
            for row in _rows_of(frame):
                key = (kind, _name_of(kind, row))
                if kind == "Node":
                    self.uids[row["node_name"], row["created_at"]] = row["node_uid"]
                if row["change_name"] == "DELETED":
                    continue
                self.alive[key] = row
                self.listed[key] = 0
                if kind == "Pod":
                    for _ in self.late.rows(row, row["observed_at"]):
                        pass  # its day knows it

    def read(
        self, begin: int, end: int, parts: Iterable[Fetched], is_complete: bool | None = None
    ) -> Iterator[Batch]:
        """The rows of (begin, end], in milliseconds, of all metrics; one part is in memory at once.

        A stretch that is not complete gives none: what it lacks would seem to have ended.
        """
        self.facts.reset()
        frames, is_whole = [pl.DataFrame(schema=RUNS)], True
        for fetched in parts:
            strange = all(s.reason == "not_recorded" for s in fetched.stretches)
            is_whole &= fetched.state is State.COMPLETE or strange
            found = [self.facts.runs(samples) for samples in fetched.data]
            frames.append(_joined(found, int(MISSED * self.facts.interval())))
        runs = pl.concat(frames)
        if not (is_whole if is_complete is None else is_complete):
            kept = self.facts.kept
            self.counts = Counts(kept, 0, 0, 0, kept)
            self.parts.append((begin * 1000, end * 1000, "recorder_gap"))
            return
        self._count()
        scrapes = {teller: sorted(times) for teller, times in self.facts.scrapes.items() if times}
        times = sorted({at for found in scrapes.values() for at in found})
        self._cover(begin * 1000, end * 1000, times)
        if times:
            yield from self._versions(runs, scrapes, times)

    def rest(self) -> Iterator[Batch]:
        """What was covered, and what was refused."""
        parts = [
            (max(begin, self.begin), min(end, self.end), name) for begin, end, name in self.parts
        ]
        yield from tiles(
            _merged(part for part in parts if part[0] < part[1]),
            self.window,
            self.settings,
            self.place,
            nodes_from=self.nodes_from,
        )
        yield from self.rejections.batches()

    def _count(self) -> None:
        facts = self.facts
        rejected = sum(refusal.count for refusal in facts.refusals)
        readings = facts.kept - facts.copies - rejected - facts.unused
        self.counts = Counts(facts.kept, readings, facts.copies, rejected, facts.unused)
        for refusal in facts.refusals:
            if self.begin <= refusal.first < self.end:
                day = self.days.of(refusal.first)
                self.rejections.add(day, self.place, refusal.reason, refusal.example, refusal.count)

    def _cover(self, begin: int, end: int, times: list[int]) -> None:
        """How the stretch was seen, and the gaps in which no one was scraped."""
        reach = int(REACH * self.facts.interval())
        now = begin
        for at in times:
            before = self.scraped
            if before is None:
                self._gap(at, at)
                now = at
            elif at - before > reach:
                cut = min(max(before, begin), at)
                self.parts += [(now, cut, "sampled"), (max(now, cut), at, "recorder_gap")]
                self._gap(before, at)
                now = at
            self.scraped = at
        if self.scraped is not None and end - self.scraped > reach:
            cut = min(max(self.scraped, now), end)
            self.parts += [(now, cut, "sampled"), (cut, end, "recorder_gap")]
        elif self.scraped is not None:
            self.parts.append((now, end, "sampled"))

    def _gap(self, begin: int, end: int) -> None:
        self.gaps.append(Gap(begin, end, self.place, 0, 0))

    def _versions(
        self, runs: pl.DataFrame, scrapes: dict[str, list[int]], times: list[int]
    ) -> Iterator[Batch]:
        reach = int(REACH * self.facts.interval())
        everything = bool(self.gaps) and self.gaps[-1].end >= times[0]
        for teller, own in scrapes.items():
            self.begun.setdefault(teller, own[0])
            everything |= own[0] - times[0] > reach or times[-1] - own[-1] > reach
        self.exposed = set(runs.select("teller", "metric").unique().iter_rows())
        runs = runs.join(self._edges(scrapes, times[-1] - reach), on=["teller", "last"], how="left")
        self._climb(runs)
        runs = runs.filter(pl.col("kind").is_in(KINDS))
        chosen = runs if everything else self._changed(runs, scrapes)
        found = sorted(self._told(chosen, times), key=lambda each: (each[0], each[1]))
        self._see(runs)
        gone = sorted(self._vanished(scrapes), key=lambda each: (each[0], each[1]))
        self.ended = {teller: own[-1] for teller, own in scrapes.items()}
        yield from self._placed(found, gone)

    def _edges(self, scrapes: dict[str, list[int]], alive_from: int) -> pl.DataFrame:
        """Until when what a teller said at each of its scrapes holds: to its next."""
        rows = []
        for teller, own in scrapes.items():
            patience = int(MISSED * self.facts.interval(teller))
            for at, after in zip(own, [*own[1:], FOREVER], strict=True):
                if after == FOREVER and at < alive_from:
                    after = at + patience
                until = after if after == FOREVER else min(after, at + patience)
                rows.append((teller, at, until))
        return pl.DataFrame(rows, schema=["teller", "last", "until"], orient="row")

    def _climb(self, runs: pl.DataFrame) -> None:
        """What stands above ReplicaSets and Jobs."""
        hops = runs.filter(pl.col("kind").is_in(["ReplicaSet", "Job"]) & (pl.col("value") == 1))
        for kind, key, a, b in (
            hops.select("kind", "key", "a", "b").unique().sort(by=pl.all()).iter_rows()
        ):
            if found := objects.hop(kind, [Told(a, b, None, 1)]):
                self.above[kind, key] = found

    def _changed(self, runs: pl.DataFrame, scrapes: dict[str, list[int]]) -> pl.DataFrame:
        """The stretches of the objects that changed in or since the stretch before."""
        ends = pl.DataFrame(
            [(teller, own[0], own[-1]) for teller, own in scrapes.items()],
            schema=["teller", "scraped_first", "scraped_last"],
            orient="row",
        )
        print_ = pl.struct("metric", "a", "b", "c", "value", "teller").hash()
        marked = runs.join(ends, on="teller", how="left").select(
            "kind",
            "key",
            print_.alias("print"),
            (pl.col("first") == pl.col("scraped_first")).alias("is_first"),
            (pl.col("last") == pl.col("scraped_last")).alias("is_last"),
        )
        now = marked.group_by("kind", "key").agg(
            (pl.col("is_first") & pl.col("is_last")).all().alias("is_steady"),
            pl.col("print").filter("is_first").sum().alias("print"),
        )
        steady = now.filter("is_steady").join(self.prints, on=["kind", "key", "print"], how="semi")
        return runs.join(steady, on=["kind", "key"], how="anti")

    def _see(self, runs: pl.DataFrame) -> None:
        """Remembers when each object was last seen, by whom, and what was told last."""
        last = runs.group_by("kind", "key").agg(
            pl.col("last").max(), pl.col("teller").unique().sort()
        )
        groups: dict[tuple[str, ...], frozenset[str]] = {}
        for kind, key, at, tellers in last.iter_rows():
            who = groups.setdefault(tuple(tellers), frozenset(tellers))
            self.sights[kind, key] = (at, who)
        print_ = pl.struct("metric", "a", "b", "c", "value", "teller").hash()
        self.prints = (
            runs.filter(pl.col("until") == FOREVER)
            .select("kind", "key", print_.alias("print"))
            .group_by("kind", "key")
            .agg(pl.col("print").sum())
        )

    def _told(self, runs: pl.DataFrame, times: list[int]) -> Iterator[tuple[int, Key, Row]]:
        """Each version of the objects that is not as the one before."""
        columns = ("kind", "key", "metric", "a", "b", "c", "value", "teller", "first", "last")
        ordered = runs.sort("kind", "key", "first", "metric", "a", "b", "c", "teller")
        rows = ordered.select(*columns, "until").iter_rows()
        for key, mine in groupby(rows, lambda row: (row[0], row[1])):
            own = [Run(r[2], Told(*r[3:7]), *r[7:]) for r in mine]
            yield from self._of_one(key, own, times)

    def _of_one(
        self, key: Key, runs: list[Run], times: list[int]
    ) -> Iterator[tuple[int, Key, Row]]:
        points = {run.first for run in runs} | {run.until for run in runs}
        for point in sorted(points - {FOREVER}):
            facts = self._facts([run for run in runs if run.first <= point < run.until])
            if not facts:
                continue
            observed = times[bisect_right(times, point) - 1]
            before = self.alive.get(key)
            number = bisect_right(self.gaps, observed, key=lambda gap: gap.end)
            is_after_gap = number > self.listed.get(key, 0)
            row = self._row(key, facts, observed, before)
            if row is None:
                continue
            is_listing = is_after_gap and (
                before is not None
                or observed - self.gaps[number - 1].end < REACH * self.facts.interval()
            )
            self.listed[key] = number
            if before is not None and not is_after_gap and _same(before, row):
                continue
            if before is not None and key[0] == "Node" and before["node_uid"] != row["node_uid"]:
                over = max((run.last for run in runs if run.until <= point), default=None)
                yield self._replaced(key, before, over, observed, times)
                before = None
            row["change_name"] = "LISTED" if is_listing else "MODIFIED" if before else "ADDED"
            self.alive[key] = row
            yield observed, key, row

    def _replaced(
        self, key: Key, before: Row, over: int | None, observed: int, times: list[int]
    ) -> tuple[int, Key, Row]:
        """A node whose name another took: gone at the first scrape after it was last seen."""
        seen = over if over is not None else self.sights.get(key, (before["observed_at"],))[0]
        at = min(times[min(bisect_right(times, seen), len(times) - 1)], observed)
        is_late = at - seen > REACH * self.facts.interval()
        return self._gone(key, before, max(seen, self.begin) if is_late else at)

    def _gone(self, key: Key, row: Row, observed: int) -> tuple[int, Key, Row]:
        gone = row | dict.fromkeys(MEMORIES if key[0] == "Pod" else ())
        gone |= {
            "observed_at": observed,
            "day_on": self.days.of(observed),
            "change_name": "DELETED",
            "source_ref": f"{self._ref(key, observed)} lacks it, last seen {row['source_ref']}",
        }
        return observed, key, gone

    def _facts(self, runs: list[Run]) -> objects.Facts:
        """What is told at an instant: of each metric by the first teller that has it at all."""
        tellers = sorted({run.teller for run in runs}, key=lambda name: (self.begun[name], name))
        facts: objects.Facts = {}
        for run in runs:
            if len(tellers) > 1:
                first = next(name for name in tellers if (name, run.metric) in self.exposed)
                if run.teller != first:
                    continue
            facts.setdefault(run.metric, []).append(run.told)
        return facts

    def _row(self, key: Key, facts: objects.Facts, observed: int, before: Row | None) -> Row | None:
        kind, name = key
        day = self.days.of(observed)

        def note(reason: str, example: str) -> None:
            if self.begin <= observed < self.end:
                self.rejections.add(day, self.place, reason, example)

        above: tuple[objects.Owner, ...] = ()
        try:
            match kind:
                case "Pod":
                    item, above = objects.pod(name, facts, self.names, observed, self.above)
                case "Node":
                    item = objects.node(name, facts, self.names, self.uids, note)
                    self.nodes_from = min(self.nodes_from or observed, observed)
                case _:
                    item = objects.namespace(name, facts, self.names)
            version = Version(0, observed, day, "MODIFIED", self._ref(key, observed), item, above)
            row = PARSERS[kind][1](version, self.settings, note)
        except Unusable as error:
            note(error.reason, f"{kind} {name}: {error.example}")
            return None
        if kind == "Pod":
            row = objects.mended(row, facts, before)
        return row

    def _ref(self, key: Key, observed: int) -> str:
        kind, name = key
        label = {"Pod": "uid", "Node": "node", "Namespace": "namespace"}[kind]
        query = f'{{__name__=~"kube_{kind.lower()}_.+",{label}="{name}"}}'
        return f"{self.place}: {query} @ {observed / 1e6:.3f}"

    def _vanished(self, scrapes: dict[str, list[int]]) -> Iterator[tuple[int, Key, Row]]:
        """What a scrape should have had and had not: gone then, or when last seen before a gap."""
        reach = int(REACH * self.facts.interval())
        for key, row in list(self.alive.items()):
            seen, who = self.sights.get(key, (None, frozenset[str]()))
            if seen is None:  # known from before: there at the last scrape of all
                seen = max(self.scraped_before or 0, row["observed_at"])
            after = [
                own[place]
                for teller, own in scrapes.items()
                if not who or teller in who or self.begun[teller] > seen
                if (place := bisect_right(own, seen)) < len(own)
            ]
            if not after:
                continue
            at = min(after)
            gap = next((g for g in self.gaps if seen <= g.begin < g.end <= at), None)
            observed = max(seen, self.begin) if gap or at - seen > reach else at
            del self.alive[key]
            self.sights.pop(key, None)
            self.listed.pop(key, None)
            yield self._gone(key, row, observed)

    def _placed(
        self, found: list[tuple[int, Key, Row]], gone: list[tuple[int, Key, Row]]
    ) -> Iterator[Batch]:
        """The rows with their places in their days, those of the window; and news of its days."""
        tables = {kind: Rows(PARSERS[kind][0]) for kind in KINDS}
        news: dict[int, int] = {}
        for first, rows in ((QUARTER, found), (3 * QUARTER, gone)):
            for observed, mine in groupby(rows, lambda each: each[0]):
                for number, (_, (kind, _), row) in enumerate(mine, first):
                    self.days.of(observed)
                    row["sequence_number"] = place_in_day(observed, self.days.begin, number)
                    if self.begin <= observed < self.end:
                        tables[kind].add(dict(row))
                    if kind == "Pod":
                        for heard in self.late.rows(row, observed):
                            self._hear(heard, observed, news)
                            tables[kind].add(heard)
                    yield from tables[kind].full()
        for kind in KINDS:
            yield from tables[kind].rest()

    def _hear(self, heard: Row, observed: int, news: dict[int, int]) -> None:
        """Gives news a place of its own at the end of its day."""
        over = heard["observed_at"]
        second = (observed - over) // 1_000_000 % 3600
        place = news[second] = news.get(second, second * PACE) + 1
        days = Days(self.settings.zone)
        days.of(over - 1)
        heard["sequence_number"] = place_in_day(over, days.begin, QUARTER + place % QUARTER)


_PRINTS = {"kind": pl.String(), "key": pl.String(), "print": pl.UInt64()}


def _same(before: Row, row: Row) -> bool:
    return all(before.get(name) == value for name, value in row.items() if name not in UNTOLD)


def _joined(found: list[pl.DataFrame], limit: int) -> pl.DataFrame:
    """Stretches that were read in parts, whole again."""
    if len(found) < 2:
        return found[0] if found else pl.DataFrame(schema=RUNS)
    names = ["kind", "key", "metric", "a", "b", "c", "teller", "value"]
    runs = pl.concat(found).sort(*names, "first")
    change = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift(1)) for name in names)
    apart = (pl.col("first") - pl.col("last").shift(1) > limit).fill_null(True)
    return (
        runs.with_columns((change | apart).cum_sum().alias("run"))
        .group_by("run", maintain_order=True)
        .agg(
            pl.col(names).first(),
            pl.col("first").min(),
            pl.col("last").max(),
            pl.col("count").sum(),
        )
        .select(*RUNS)
    )


def _merged(parts: Iterable[tuple[int, int, str]]) -> Iterator[tuple[int, int, str]]:
    """Neighbours that were seen alike as one."""
    held: tuple[int, int, str] | None = None
    for part in parts:
        if held and held[1] == part[0] and held[2] == part[2]:
            held = (held[0], part[1], part[2])
            continue
        if held:
            yield held
        held = part
    if held:
        yield held


def _name_of(kind: str, row: Row) -> str:
    return row[{"Pod": "pod_uid", "Node": "node_name", "Namespace": "namespace_name"}[kind]]


def _rows_of(frame: pl.DataFrame | None) -> Iterator[Row]:
    """Rows as parsers make them: instants in microseconds, lists as tuples."""
    if frame is None:
        return
    instants = [name for name, kind in frame.schema.items() if isinstance(kind, pl.Datetime)]
    lists = [name for name, kind in frame.schema.items() if isinstance(kind, pl.List)]
    for row in frame.with_columns(pl.col(instants).cast(pl.Int64())).iter_rows(named=True):
        yield row | {name: tuple(tuple(each.values()) for each in row[name]) for name in lists}
