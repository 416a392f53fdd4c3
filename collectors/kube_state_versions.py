"""The versions of the objects that kube-state-metrics told of: what changed, when, what is gone.

Which stretches there are belongs to `kube_state_facts`, when scrapes were to `kube_state_scrapes`.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from typing import Any, NamedTuple

import polars as pl

from collectors import kube_state_objects as objects
from collectors.batches import TABLES
from collectors.coverage import Days
from collectors.kube_state_facts import FACTS
from collectors.kube_state_names import Names
from collectors.kube_state_objects import Told
from collectors.kube_state_scrapes import FOREVER, Scrapes
from collectors.kubernetes import PARSERS
from collectors.source import Note, Settings, Unusable, Version

KINDS = ("Node", "Namespace", "Pod")
COLUMNS = {kind: tuple(c.name for c in TABLES[PARSERS[kind][0]].columns) for kind in KINDS}
MEMORIES = tuple(c.name for c in TABLES["raw.pod_versions"].columns if "emory of" in c.doc)
UNTOLD = {"day_on", "sequence_number", "observed_at", "change_name", "source_ref", *MEMORIES}
"""Columns in which two versions may differ although nothing else is told."""
NAMED = {
    "Pod": ("uid", "pod_uid"),
    "Node": ("node", "node_name"),
    "Namespace": ("namespace", "namespace_name"),
}
"""Kind -> the label and the column by which an object goes."""
MANY = 10
"""So few may vanish at once without a doubt."""
Key = tuple[str, str]
"""Kind, and what an object of it goes by."""
Row = dict[str, Any]
Placed = tuple[int, Key, Row]
"""When a version was observed, whose it is, and its row, which has no place in its day yet."""


class Run(NamedTuple):
    """A stretch of one fact of one object."""

    metric: str
    told: Told
    teller: str
    first: int
    last: int
    until: int
    """Until when it speaks: the teller's next scrape."""


class Versions:
    """Remembers what is alive, and tells what changed."""

    def __init__(self, settings: Settings, place: str, scrapes: Scrapes, begin: int):
        """What was seen last before `begin`, in microseconds, is gone from then on."""
        self.settings, self.place, self.scrapes, self.begin = settings, place, scrapes, begin
        self.names, self.days = Names(settings), Days(settings.zone)
        self.known_until = scrapes.last
        self.alive: dict[Key, tuple[Any, ...]] = {}
        """The newest row of each object that is there, in the order of its table's columns."""
        self.sights: dict[Key, int] = {}
        """When each was last seen."""
        self.listed: dict[Key, int] = {}
        """After which gap each was last told."""
        self.uids: dict[tuple[str, int | None], str] = {}
        self.above: dict[tuple[str, str], objects.Owner] = {}
        self.exposed: set[tuple[str, str]] = set()
        """Tellers and the metrics that they have."""
        self.prints = pl.DataFrame(schema={"kind": pl.String, "key": pl.String, "print": pl.UInt64})
        self.nodes_from: int | None = None

    def know(self, kind: str, row: Row) -> None:
        """A row from before: the newest of its object."""
        key = (kind, row[NAMED[kind][1]])
        if kind == "Node":
            self.uids[row["node_name"], row["created_at"]] = row["node_uid"]
        if row["change_name"] != "DELETED":
            self._keep(key, row)
            self.listed[key] = self._gaps_before(row["observed_at"])
        owners = row.get("owners") or ()
        if len(owners) > 1 and owners[1][2] is None:  # what labels say has an uid
            above, (kind, name, _) = owners[1], owners[0]
            self.above[kind, f"{row['namespace_name']}/{name}"] = above

    def of(self, runs: pl.DataFrame, note: Note) -> tuple[list[Placed], list[Placed]]:
        """What changed in a stretch, and what was no longer there, each in order of time."""
        self.exposed = {
            (str(teller), str(metric))
            for teller, metric in runs.select("teller", "metric").unique().iter_rows()
        }
        self._climb(runs)
        runs = runs.join(self.scrapes.edges(), on=["teller", "last"], how="left")
        runs = runs.filter(pl.col("kind").cast(pl.String()).is_in(KINDS))
        chosen = runs if self.scrapes.is_changed() else self._changed(runs)
        found = sorted(self._told(chosen, note), key=lambda each: each[:2])
        gone = [each for each in found if each[2]["change_name"] == "DELETED"]
        found = [each for each in found if each[2]["change_name"] != "DELETED"]
        self._see(runs)
        return found, sorted([*gone, *self._vanished()], key=lambda each: each[:2])

    def _climb(self, runs: pl.DataFrame) -> None:
        """What stands above ReplicaSets and Jobs."""
        is_hop = ~pl.col("kind").cast(pl.String()).is_in(KINDS) & (pl.col("value") == 1)
        hops = runs.filter(is_hop).select("kind", "key", "a", "b").unique().sort(pl.all())
        for kind, key, a, b in hops.iter_rows():
            if found := objects.hop(kind, [Told(a, b, None, 1)]):
                self.above[kind, key] = found

    def _changed(self, runs: pl.DataFrame) -> pl.DataFrame:
        """The stretches of the objects that changed in or since the stretch before."""
        marked = runs.join(self.scrapes.ends(), on="teller", how="left").select(
            pl.col("kind").cast(pl.String()),
            "key",
            _print(),
            (pl.col("first") == pl.col("at_first")).alias("is_first"),
            (pl.col("last") == pl.col("at_last")).alias("is_last"),
        )
        now = marked.group_by("kind", "key").agg(
            (pl.col("is_first") & pl.col("is_last")).all().alias("is_steady"),
            pl.col("print").filter("is_first").sum(),
        )
        steady = now.filter("is_steady").join(self.prints, on=["kind", "key", "print"], how="semi")
        return runs.join(
            steady.with_columns(pl.col("kind").cast(runs.schema["kind"])),
            on=["kind", "key"],
            how="anti",
        )

    def _see(self, runs: pl.DataFrame) -> None:
        """Remembers when each object was last seen, and what was told last."""
        last = runs.group_by("kind", "key").agg(pl.col("last").max())
        self.sights.update(((kind, key), at) for kind, key, at in last.iter_rows())
        self.prints = (
            runs.filter(pl.col("until") == FOREVER)
            .select(pl.col("kind").cast(pl.String()), "key", _print())
            .group_by("kind", "key")
            .agg(pl.col("print").sum())
        )

    def _told(self, runs: pl.DataFrame, note: Note) -> Iterator[Placed]:
        """Each version of the objects that is not as the one before."""
        columns = ("kind", "key", "metric", "a", "b", "c", "value", "teller", "first", "last")
        ordered = runs.sort("kind", "key", "first", "metric", "a", "b", "c", "teller")
        rows = ordered.select(*columns, "until").iter_rows()
        for key, mine in groupby(rows, lambda row: (row[0], row[1])):
            own = [Run(r[2], Told(*r[3:7]), *r[7:]) for r in mine]
            yield from self._of_one(key, own, note)

    def _of_one(self, key: Key, runs: list[Run], note: Note) -> Iterator[Placed]:
        times, gaps = self.scrapes.times, self.scrapes.gaps
        points = {run.first for run in runs} | {run.until for run in runs}
        for point in sorted(points - {FOREVER}):
            before = self._newest(key)
            there = [run for run in runs if run.first <= point < run.until]
            soon = self._soon(runs, there, point) if before else []
            told_by = self._believed(key, before, there, soon)
            if told_by is None:
                continue
            facts = self._facts([*there, *soon], told_by)
            observed = times[bisect_right(times, point) - 1]
            row = self._row(key, facts, observed, before, note, told_by)
            if row is None:
                continue
            number = self._gaps_before(observed)
            is_after_gap = number > self.listed.get(key, 0)
            self.listed[key] = number
            if before and not is_after_gap and _same(before, row):
                continue
            if before and key[0] == "Node" and before["node_uid"] != row["node_uid"]:
                last = max((run.last for run in runs if run.until <= point), default=None)
                yield self._replaced(key, before, last, observed)
                before = None
            is_near = is_after_gap and observed - gaps[number - 1].end < self.scrapes.reach
            is_listing = is_after_gap and (before is not None or is_near)
            row["change_name"] = "LISTED" if is_listing else "MODIFIED" if before else "ADDED"
            self._keep(key, row)
            yield observed, key, row

    def _gaps_before(self, at: int) -> int:
        """How many gaps had ended by then."""
        return bisect_right(self.scrapes.gaps, at, key=lambda gap: gap.end)

    def _keep(self, key: Key, row: Row) -> None:
        self.alive[key] = tuple(row.get(name) for name in COLUMNS[key[0]])

    def _newest(self, key: Key) -> Row | None:
        row = self.alive.get(key)
        return None if row is None else dict(zip(COLUMNS[key[0]], row, strict=True))

    def _soon(self, runs: list[Run], there: list[Run], point: int) -> list[Run]:
        """What tellers say that go on from before the stretch and were not scraped in it yet."""
        here = {run.teller for run in there}
        return [
            run
            for run in runs
            if point < run.first
            and run.teller not in here
            and self.scrapes.goes_on(run.teller, run.first)
        ]

    def _believed(
        self, key: Key, before: Row | None, there: list[Run], soon: list[Run]
    ) -> str | None:
        """Who told the version before, if it still speaks; else who tells most of the object.

        None where nobody speaks, or the scrape of who told the one before is still to come.
        """
        last = _teller_of(key, before) if before else None
        if last is not None:
            if any(run.teller == last for run in there):
                return last
            if any(run.teller == last for run in soon) or self.scrapes.awaits(last):
                return None
        numbers = Counter(run.teller for run in there)
        return min(numbers, key=lambda teller: (-numbers[teller], teller), default=None)

    def _facts(self, runs: list[Run], told_by: str) -> objects.Facts:
        """What is told at an instant: by who is believed; what that one never tells, by another.

        But only who is believed says what passes: another may have seen it a little sooner.
        """
        tellers = sorted({run.teller for run in runs}, key=lambda name: (name != told_by, name))
        facts: objects.Facts = {}
        for run in runs:
            if len(tellers) > 1:
                is_passing = FACTS[run.metric].is_passing
                first = next(n for n in tellers if is_passing or (n, run.metric) in self.exposed)
                if run.teller != first:
                    continue
            facts.setdefault(run.metric, []).append(run.told)
        return facts

    def _row(
        self,
        key: Key,
        facts: objects.Facts,
        observed: int,
        before: Row | None,
        note: Note,
        told_by: str,
    ) -> Row | None:
        kind, name = key
        above: tuple[objects.Owner, ...] = ()
        self.days.of(observed)
        try:
            match kind:
                case "Pod":
                    item, above = objects.pod(name, facts, self.names, observed, self.above)
                case "Node":
                    item = objects.node(name, facts, self.names, self.uids, note)
                    self.nodes_from = min(self.nodes_from or observed, observed)
                case _:
                    item = objects.namespace(name, facts, self.names)
            ref, day = self._ref(key, observed, told_by), self.days.of(observed)
            version = Version(0, observed, day, "MODIFIED", ref, item, above)
            row = PARSERS[kind][1](version, self.settings, note)
        except Unusable as error:
            note(error.reason, f"{kind} {name}: {error.example}")
            return None
        if kind == "Node":  # metrics spell resources otherwise: none is known to be absent
            row["resource_names_text"] = None
        return objects.mended(row, facts, before) if kind == "Pod" else row

    def _ref(self, key: Key, observed: int, told_by: str = "") -> str:
        return f"{self.place}: {_selector(key)}{told_by}}} @ {observed / 1e6:.3f}"

    def _replaced(self, key: Key, before: Row, last: int | None, observed: int) -> Placed:
        """A node whose name another took: gone at the first scrape after it was last seen."""
        times = self.scrapes.times
        seen = last or self.sights.get(key) or before["observed_at"]
        at = min(times[min(bisect_right(times, seen), len(times) - 1)], observed)
        return self._gone(key, before, seen, at)

    def _gone(self, key: Key, row: Row, seen: int, at: int) -> Placed:
        """Gone at a scrape, or since it was last seen where a gap lies between."""
        in_gap = any(seen <= gap.begin < gap.end <= at for gap in self.scrapes.gaps)
        observed = max(seen, self.begin) if in_gap or at - seen > self.scrapes.reach else at
        gone = row | dict.fromkeys(MEMORIES if key[0] == "Pod" else ())
        gone |= {
            "observed_at": observed,
            "day_on": self.days.of(observed),
            "change_name": "DELETED",
            "source_ref": f"{self._ref(key, observed)} lacks it",
        }
        return observed, key, gone

    def _vanished(self) -> Iterator[Placed]:
        """What a scrape should have had and had not."""
        lacked = {key: each for key in self.alive if (each := self._lacked(key))}
        last = self.scrapes.times[-1]
        at_last = sum(at == last for _, at in lacked.values())
        # A target that has just begun has not listed all yet: the next stretch will tell.
        is_doubtful = at_last > MANY and 2 * at_last > len(self.alive)
        for key, (seen, at) in lacked.items():
            row = self._newest(key)
            if row is None or (is_doubtful and at == last):
                continue
            del self.alive[key]
            self.sights.pop(key, None)
            self.listed.pop(key, None)
            yield self._gone(key, row, seen, at)

    def _lacked(self, key: Key) -> tuple[int, int] | None:
        """When an object was last seen, and the first scrape since that should have had it."""
        row = self._newest(key) or {}
        seen = self.sights.get(key)
        if seen is None:  # known from before: there at the last scrape of all
            seen = max(self.known_until or 0, row["observed_at"])
        told_by = _teller_of(key, row)
        if (at := self.scrapes.after(told_by, seen)) is None:
            if self.scrapes.is_there(told_by) or self.scrapes.awaits(told_by):
                return None  # its own scrape is to come
            others = (self.scrapes.after(teller, seen) for teller in self.scrapes.of)
            at = min((each for each in others if each is not None), default=None)
        return None if at is None else (seen, at)


def _selector(key: Key) -> str:
    """The series of an object, before the labels of who tells them."""
    kind, name = key
    return f'{{__name__=~"kube_{kind.lower()}_.+",{NAMED[kind][0]}="{name}"'


def _teller_of(key: Key, row: Row) -> str:
    """Who told a version; where that is not said, a name that nobody has."""
    told = row["source_ref"].partition(_selector(key))[2]
    return told.rpartition("} @ ")[0]


def _print() -> pl.Expr:
    """What is told in a row, as a number."""
    return pl.struct("metric", "a", "b", "c", "value", "teller").hash().alias("print")


def _same(before: Row, row: Row) -> bool:
    return all(before.get(name) == value for name, value in row.items() if name not in UNTOLD)
