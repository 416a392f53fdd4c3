"""What a Prometheus adds to a run's raw rows: what is new is read, what the lake has is kept.

How it is asked belongs to `collectors.metrics`, what samples mean to the parser of each family.
A run first gets the lake's rows of its days; a stretch that is read replaces what was there of it.
"""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta

import polars as pl

from collectors import cadvisor, dcgm, recorded_first
from collectors.coverage import as_instants
from collectors.families import CADVISOR, DCGM, KUBE_STATE
from collectors.kube_state import Known, KubeState
from collectors.metrics import Reading, milliseconds, place_of
from collectors.prometheus import Fetched
from collectors.source import Batch, Settings
from collectors.tallies import Counts
from lake.connect import literal
from lake.run import Run
from models import raw
from models.catalog import CATALOG
from models.prometheus import PrometheusSource
from models.raw_metrics import METRIC_COVERAGE
from models.table import Table

OBJECTS = (raw.POD_VERSIONS, raw.NODE_VERSIONS, raw.NAMESPACE_VERSIONS)
FIRST = {
    raw.POD_VERSIONS.name: recorded_first.pods,
    raw.NODE_VERSIONS.name: recorded_first.nodes,
    raw.NAMESPACE_VERSIONS.name: recorded_first.namespaces,
}
TIMES = {
    DCGM: (("raw.gpu_samples", "sampled_at"), ("raw.gpu_series", "end_at")),
    CADVISOR: (("raw.pod_samples", "sampled_at"),),
}
"""Family -> the tables that only it fills, and the column that says which stretch a row is of."""
METRICS_OF = {DCGM: "(?i)dcgm", CADVISOR: "^(container_|cadvisor)"}
QUESTION = r"\[\d+ms\] @ [\d.]+$"
FAULTS = (
    r"(^|; )(unreachable|forbidden|certificate|secret|redirected|stalled|connection_broken"
    r"|broken_answer|http_\d+|discovery failed)"
)
"""How a reason begins that says that the server did not answer, or not us."""
HOUR = 3_600_000
Tell = Callable[[str], None]


class Metrics:
    """The reading of one source in one run; the recorder's rows are staged already."""

    def __init__(
        self,
        run: Run,
        source: PrometheusSource,
        settings: Settings,
        now: datetime | None = None,
        *,
        at_once: bool = False,
        tell: Tell | None = None,
    ):
        self.at_once, self.tell = at_once, tell or (lambda text: None)
        self.run, self.source, self.settings = run, source, settings
        self.now = now or datetime.now(UTC)
        self.place = place_of(source)
        self.recorded = {table.name: self._staged(table) for table in (*OBJECTS, raw.COVERAGE)}
        self.sampled: list[pl.DataFrame] = []
        self.pods: set[tuple[str, str]] = set()
        self.is_anew = False
        """The lake has nothing of the window from this source, so nothing is replaced."""

    def gather(self) -> list[str]:
        """Stage all of it; what could not be reached."""
        self._restore()
        reading = Reading(
            self.source,
            self.settings,
            self.run.window,
            self._staged(METRIC_COVERAGE),
            self.now,
            at_once=self.at_once,
        )
        planned = sum(segment.end - segment.begin for segment in reading.segments)
        done = 0
        kube: KubeState | None = None
        until = 0
        for family, fetched in reading.fetched():
            begin, end = fetched.segment.begin, fetched.segment.end
            done += end - begin
            self.tell(f"{self.place}: {done // HOUR:,} of {-(-planned // HOUR):,} hours of metrics")
            counts = Counts()
            if family == DCGM:
                parsed = dcgm.parse(fetched, self.settings)
                self._replace(family, fetched, parsed.batches)
                counts = parsed.counts
            elif family == CADVISOR:
                mine = cadvisor.parse(fetched, self.settings, self.pods)
                self._replace(family, fetched, mine.batches)
                counts = mine.counts
            elif family == KUBE_STATE:
                if kube is None or until != begin:
                    self._end(kube)
                    kube = KubeState(self.settings, self.place, self.run.window, self._known(begin))
                self._forget_objects(begin, end)
                self._append(kube.read(begin, end, [fetched]))
                told, until = kube.counts, end
                counts = Counts(told.readings, told.copies, told.rejected, told.unused)
            reading.counted(fetched, counts)
        self._end(kube)
        self._cover()
        self._sum_rejections()
        rows = reading.coverage()
        self.run.replace(METRIC_COVERAGE, rows)
        return self._missed(rows)

    def _staged(self, table: Table) -> pl.DataFrame:
        with self.run.connect() as con:
            return table.conform(con.sql(f"from {table.name}").pl())

    def _restore(self) -> None:
        """The lake's rows of the window that came from this source, beside what is staged."""
        own = tuple(CATALOG[name] for pairs in TIMES.values() for name, _ in pairs)
        self.is_anew = not self.run.load(METRIC_COVERAGE, *own)
        kept = {table: self._ours(table) for table in (*OBJECTS, raw.REJECTIONS)}
        self.sampled = [self._loaded(raw.COVERAGE).filter(self._is_ours())]
        for table, frame in kept.items():
            self.run.append(table, frame)
        self.pods = self._labelled()

    def _loaded(self, table: Table) -> pl.DataFrame:
        """The lake's rows of the window; what is staged of it stays as it was."""
        staged = self._inside(self._staged(table))
        self.run.load(table)
        found = self._inside(self._staged(table))
        self.run.replace(table, staged)
        return found

    def _inside(self, frame: pl.DataFrame) -> pl.DataFrame:
        window = self.run.window
        return frame.filter(
            (pl.col("day_on") >= window.begin_on) & (pl.col("day_on") < window.end_on)
        )

    def _ours(self, table: Table) -> pl.DataFrame:
        ours = self._loaded(table).filter(self._is_ours())
        if "change_name" in ours.columns:
            ours = ours.filter(pl.col("change_name") != "CARRIED")
        if first := FIRST.get(table.name):
            ours = first(ours, self._of_window(table.name))
        return ours

    def _of_window(self, name: str) -> pl.DataFrame:
        return self._inside(self.recorded[name])

    def _is_ours(self) -> pl.Expr:
        """Rows name the source first; what was refused may name its question alone."""
        ref = pl.col("source_ref")
        return ref.str.starts_with(self.place) | ref.str.contains(QUESTION)

    def _labelled(self) -> set[tuple[str, str]]:
        query = """
            select distinct pod_namespace_name, pod_name from raw.gpu_series where pod_name <> ''
            union
            select distinct namespace_name, pod_name from raw.pod_versions
            where len(requests) > 0 or len(devices) > 0
        """
        with self.run.connect() as con:
            return set(con.execute(query).fetchall())

    def _append(self, batches: Iterable[Batch]) -> None:
        for batch in batches:
            frame = batch.frame
            if batch.table == raw.COVERAGE.name:
                self.sampled.append(frame)
                continue
            if first := FIRST.get(batch.table):
                frame = first(frame, self._of_window(batch.table))
            self._meet(batch.table, frame)
            self.run.append(CATALOG[batch.table], frame)

    def _meet(self, table: str, frame: pl.DataFrame) -> None:
        """Remember which pods have GPUs: of them cAdvisor's counters are kept."""
        if table == "raw.gpu_series":
            found = frame.filter(pl.col("pod_name") != "").select("pod_namespace_name", "pod_name")
            self.pods.update(found.unique().iter_rows())
        if table == raw.POD_VERSIONS.name:
            asking = frame.filter(pl.col("requests").list.len() > 0)
            self.pods.update(asking.select("namespace_name", "pod_name").unique().iter_rows())

    def _replace(self, family: str, fetched: Fetched, batches: Iterable[Batch]) -> None:
        if self.is_anew:
            self._append(batches)
            return
        begin, end = _span(fetched)
        for table, column in TIMES[family]:
            self._delete(table, f"{column} > {literal(begin)} and {column} <= {literal(end)}")
        # What was refused of the stretch names the question, which ends when it does.
        ends = f"] @ {end.timestamp():.3f}"
        names = METRICS_OF[family]
        self._delete(
            "raw.rejections",
            f"ends_with(source_ref, {literal(ends)}) "
            f"and regexp_matches(source_ref, {literal(names)})",
        )
        self._append(batches)

    def _forget_objects(self, begin: int, end: int) -> None:
        if self.is_anew:
            return
        since, until = _instants(begin, end)
        where = (
            f"starts_with(source_ref, {literal(self.place)}) and change_name <> 'HEARD' "
            f"and observed_at > {literal(since)} and observed_at <= {literal(until)}"
        )
        for table in OBJECTS:
            self._delete(table.name, where)

    def _delete(self, table: str, where: str) -> None:
        with self.run.connect() as con:
            con.execute(f"delete from {table} where {where}")

    def _known(self, begin: int) -> Known:
        """The newest of our rows of each object before a stretch, and the last scrape."""
        since, _ = _instants(begin, begin)
        frames = []
        for table, key in zip(OBJECTS, ("pod_uid", "node_uid", "namespace_name"), strict=True):
            query = (
                f"select * from {table.name} where starts_with(source_ref, {literal(self.place)}) "
                f"and observed_at <= {literal(since)} and change_name <> 'HEARD' "
                f"qualify row_number() over (partition by {key} "
                "order by day_on desc, sequence_number desc) = 1"
            )
            with self.run.connect() as con:
                frame = table.conform(con.sql(query).pl())
            frames.append(frame.filter(pl.col("change_name") != "DELETED"))
        pods, nodes, namespaces = frames
        return Known(pods, nodes, namespaces, *self._scraped(since))

    def _scraped(self, since: datetime) -> tuple[int | None, tuple[tuple[int, int], ...]]:
        """The last scrape before a stretch, and the gaps before that; in microseconds."""
        known = self._sampled().filter(pl.col("begin_at") < since).sort("begin_at")
        spans = [
            (name, *(milliseconds(min(at, since)) * 1000 for at in span))
            for name, *span in known.select("coverage_name", "begin_at", "end_at").iter_rows()
        ]
        last = max((end for name, _, end in spans if name == "sampled"), default=None)
        gaps = [(begin, end) for name, begin, end in spans if name != "sampled"]
        first = [(begin, begin) for name, begin, _ in spans[:1] if name == "sampled"]
        return last, (*first, *gaps)

    def _end(self, kube: KubeState | None) -> None:
        if kube is not None:
            self._append(kube.rest())

    def _cover(self) -> None:
        """Who-held-what: the recorder's stretches, and ours where it has none."""
        recorded = self._of_window(raw.COVERAGE.name)
        self.run.replace(raw.COVERAGE, recorded_first.coverage(self._sampled(), recorded))

    def _sampled(self) -> pl.DataFrame:
        """Our stretches as far as they are known by now."""
        restored, *read = self.sampled
        return recorded_first.renewed(restored, pl.concat([restored.clear(), *read]))

    def _sum_rejections(self) -> None:
        """What was refused at one place in several runs is one row."""
        keys = list(raw.REJECTIONS.grain)
        rest = [c.name for c in raw.REJECTIONS.columns if c.name not in (*keys, "rejected_count")]
        staged = self._inside(self._staged(raw.REJECTIONS)).group_by(keys, maintain_order=True)
        frame = staged.agg(pl.col("rejected_count").sum(), pl.col(rest).first())
        self.run.replace(raw.REJECTIONS, frame)

    def _missed(self, rows: pl.DataFrame) -> list[str]:
        """The source, where what was tried now found no one there."""
        lost = rows.filter(
            pl.col("read_name").is_in(["missing", "partial"])
            & (pl.col("read_at") >= self.now - timedelta(seconds=1))
            & pl.col("reason_text").str.contains(FAULTS).fill_null(False)
        )
        if lost.is_empty():
            return []
        reason = lost["reason_text"][0]
        return [f"{self.place}: {reason}: `gpuledger doctor` says what to change, then run again"]


def _span(fetched: Fetched) -> tuple[datetime, datetime]:
    return _instants(fetched.segment.begin, fetched.segment.end)


def _instants(begin: int, end: int) -> tuple[datetime, datetime]:
    return as_instants((begin * 1000, end * 1000))
