"""Kube-state-metrics read as a run reads it, for tests: from text, hour by hour, to all tables.

Nothing is published: the rows go through the queries in memory. What must hold is for the tests.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any

import duckdb
import polars as pl

import sql
from collectors.kube_state import Counts, Known, KubeState
from collectors.kube_state_metrics import METRICS as KUBE_STATE
from collectors.prometheus import Fetched
from collectors.prometheus_answers import Samples, series_frame
from collectors.prometheus_recorded import Recorded
from collectors.prometheus_segments import HOUR, Segment, State, Stretch
from collectors.prometheus_selectors import Group
from collectors.source import Batch, Settings
from models.book import frames
from models.catalog import CATALOG
from models.config import Config
from models.raw import TABLES
from models.table import INSTANT
from models.window import Window
from pipelines.graph import order
from pipelines.laws import LAWS


def fetched(source: Recorded, begin: int, end: int, is_whole: bool) -> Iterator[Fetched]:
    """All metrics of the family over (begin, end], each by itself or all in one question."""
    groups = [Group.of(metric, *matchers) for metric, matchers in KUBE_STATE.items()]
    if is_whole:
        groups = [Group.named(list(KUBE_STATE))]
    return source.collect(Segment(group, begin, end) for group in groups)


def hours(begin: int, end: int) -> Iterator[tuple[int, int]]:
    """The stretch cut at full hours; milliseconds."""
    while begin < end:
        yield begin, min(end, begin - begin % HOUR + HOUR)
        begin = begin - begin % HOUR + HOUR


def collected(
    source: Recorded, settings: Settings, window: Window, is_whole: bool = True
) -> list[Batch]:
    """The raw rows of a window, in hours."""
    reader = KubeState(settings, "prometheus", window)
    begin, end = (int(moment.timestamp() * 1000) for moment in (window.begin, window.end))
    found: list[Batch] = []
    for hour in hours(begin, end):
        found += reader.read(*hour, fetched(source, *hour, is_whole))
    return [*found, *reader.rest()]


def tables(batches: Iterable[Batch]) -> dict[str, pl.DataFrame]:
    """The rows of each raw table; empty where none were made."""
    rows: dict[str, list[pl.DataFrame]] = defaultdict(list)
    for batch in batches:
        rows[batch.table].append(batch.frame)
    return {
        t.name: pl.concat([t.conform(pl.DataFrame(schema=t.schema)), *rows[t.name]]) for t in TABLES
    }


def computed(config: Config, rows: dict[str, pl.DataFrame]) -> duckdb.DuckDBPyConnection:
    """All tables of one cluster, in memory."""
    con = duckdb.connect()
    con.execute("set TimeZone = 'UTC'")
    con.execute("create schema raw; create schema core; create schema mart")
    for name, frame in {**rows, **frames(config)}.items():
        con.execute(CATALOG[name].ddl(strict=False))
        con.register("given", frame)
        con.execute(f"insert into {name} by name from given")
        con.unregister("given")
    for name in order():
        [statement] = duckdb.extract_statements(sql.QUERIES[name])
        told = {"zone": "UTC"} if "zone" in statement.named_parameters else None
        con.execute(f"create table {name} as {sql.QUERIES[name]}", told)
    return con


def broken(con: duckdb.DuckDBPyConnection) -> list[str]:
    """The laws that do not hold, and the contracts of raw tables that rows break."""
    checks: dict[str, str] = {law.name: law.breaches for law in LAWS}
    for table in TABLES:
        checks |= {f"{table.name}.{name}": query for name, query in table.checks().items()}
    found = []
    for name, query in checks.items():
        [statement] = duckdb.extract_statements(query)
        told = {"zone": "UTC"} if "zone" in statement.named_parameters else None
        [(breaches,)] = con.execute(query, told).fetchall()
        found += [name] if breaches else []
    return found


DAY = date(2026, 3, 2)
MIDNIGHT = int(datetime(2026, 3, 2, tzinfo=UTC).timestamp())
STEP = 60
GONE = 10**9
"""Until the record's end."""
OLD = MIDNIGHT - 90_000
"""When what has always been there was made."""


class Told:
    """What targets of kube-state-metrics told, in seconds of a day; scraped each minute."""

    def __init__(self, end: int = 3600, offset: int = 30):
        self.end = end
        self.scrapes = [(s, "a") for s in range(offset, end, STEP)]
        self.series: dict[str, dict[tuple[tuple[str, str], ...], dict[int, float]]] = {}

    def away(self, begin: int, end: int) -> None:
        """No target is scraped from one second to another."""
        self.scrapes = [(s, t) for s, t in self.scrapes if not begin <= s < end]

    def replica(self, name: str, offset: int, begin: int = 0, end: int = GONE) -> None:
        """One more target, which tells the same."""
        times = range(begin + offset, min(end, self.end), STEP)
        self.scrapes = sorted([*self.scrapes, *((s, name) for s in times)])

    def tell(
        self,
        metric: str,
        value: float,
        begin: Any = 0,
        end: Any = GONE,
        by: str = "",
        **labels: str,
    ) -> None:
        """One series from one second to another; an empty label is none."""
        mine = self.series.setdefault(metric, {})
        for second, teller in self.scrapes:
            if begin <= second < end and by in ("", teller):
                told = labels | {"__name__": metric, "instance": teller, "job": "ksm"}
                key = tuple(sorted((k, v) for k, v in told.items() if v))
                mine.setdefault(key, {})[second] = value

    def parts(self, begin: int, end: int) -> Iterator[Fetched]:
        """What a server would answer of (begin, end], in seconds of the day."""
        for metric, series in self.series.items():
            group = Group.of(metric, *KUBE_STATE.get(metric, ()))
            segment = Segment(group, (MIDNIGHT + begin) * 1000, (MIDNIGHT + end) * 1000)
            kept = {k: v for k, v in series.items() if group.accepts(dict(k))}
            rows = [
                (number, (MIDNIGHT + second) * 1_000_000, value)
                for number, samples in enumerate(kept.values())
                for second, value in samples.items()
                if begin < second <= end
            ]
            schema = {"series_number": pl.UInt32(), "at": INSTANT, "value": pl.Float64()}
            frame = pl.DataFrame(rows, schema=schema, orient="row")
            data = [Samples(series_frame([dict(key) for key in kept]), frame)] if rows else []
            yield Fetched(segment, [Stretch(*segment, State.COMPLETE)], data)

    def read(
        self,
        *cuts: int,
        begin: int = 0,
        settings: Settings | None = None,
        known: Known | None = None,
        days: int = 1,
    ) -> "Read":
        """The rows of the day, read in stretches that end at the cuts and at the end."""
        window = Window("c", DAY, DAY + timedelta(days=days), "UTC")
        reader = KubeState(settings or Settings("c"), "prometheus", window, known)
        found: list[Batch] = []
        counts = []
        for first, last in pairwise((begin, *cuts, self.end)):
            stretch = (MIDNIGHT + first) * 1000, (MIDNIGHT + last) * 1000
            found += reader.read(*stretch, self.parts(first, last))
            counts.append(reader.counts)
        return Read(tables([*found, *reader.rest()]), counts, reader)


class Read:
    """What was made of it; instants as seconds of the day."""

    def __init__(self, rows: dict[str, pl.DataFrame], counts: list[Counts], reader: KubeState):
        self.tables, self.counts, self.reader = rows, counts, reader

    def rows(self, table: str, *names: str) -> list[Any]:
        """Some columns of each row, in order."""
        frame = self.tables[f"raw.{table}"]
        if "sequence_number" in frame.columns:
            frame = frame.sort("sequence_number")
        instants = [name for name in names if name.endswith("_at")]
        seconds = ((pl.col(name).dt.epoch("ms") / 1000 - MIDNIGHT) for name in instants)
        found = frame.with_columns(seconds).select(names).rows()
        return [row[0] if len(names) == 1 else row for row in found]

    def pods(self, *names: str) -> list[Any]:
        """Some columns of each version of a pod."""
        return self.rows("pod_versions", *names)

    def nodes(self, *names: str) -> list[Any]:
        """Some columns of each version of a node."""
        return self.rows("node_versions", *names)


def pod(told: Told, uid: str = "p", begin: int = 0, end: int = GONE, **more: Any) -> dict[str, Any]:
    """A pod that asks for a GPU and runs on n from the begin on, unless told otherwise."""
    labels = {"namespace": "ml", "pod": uid, "uid": uid} | more.pop("labels", {})
    phase, node = more.pop("phase", "Running"), more.pop("node", "n")
    created, asked = more.pop("created", OLD), more.pop("gpus", 1)
    resource = more.pop("resource", "nvidia_com_gpu")
    assert not more
    told.tell("kube_pod_created", created, begin, end, **labels)
    told.tell("kube_pod_info", 1, begin, end, node=node, **labels)
    if phase:
        told.tell("kube_pod_status_phase", 1, begin, end, phase=phase, **labels)
    if asked:
        ask = labels | {"container": "main", "resource": resource, "node": node}
        told.tell("kube_pod_container_resource_requests", asked, begin, end, **ask)
    return labels


def node(told: Told, name: str = "n", begin: Any = 0, end: Any = GONE, **more: Any) -> None:
    """A node of two GPUs that is Ready."""
    created, amount = more.pop("created", OLD), more.pop("gpus", 2)
    told.tell("kube_node_created", created, begin, end, node=name)
    told.tell("kube_node_info", 1, begin, end, node=name, provider_id=f"id-{name}")
    told.tell("kube_node_labels", 1, begin, end, node=name, **more)
    ready = {"condition": "Ready", "status": "true"}
    told.tell("kube_node_status_condition", 1, begin, end, node=name, **ready)
    for kind in ("capacity", "allocatable"):
        ask = {"node": name, "resource": "nvidia_com_gpu", "unit": "integer"}
        told.tell(f"kube_node_status_{kind}", amount, begin, end, **ask)


def lives(told: Told) -> None:
    """Some nodes and pods that come, change and go."""
    node(told)
    node(told, "m", end=2000)
    told.tell("kube_namespace_labels", 1, 0, 1900, namespace="ml", label_team="a")
    told.tell("kube_namespace_labels", 1, 1900, namespace="ml", label_team="b")
    pod(told, "always")
    pod(told, "early", end=1100)
    pod(told, "late", 2500, created=MIDNIGHT + 2490)
    pod(told, "short", 1500, 1600)
    labels = pod(told, "busy", end=1780)
    told.tell("kube_pod_status_scheduled_time", MIDNIGHT + 100, 130, **labels)
    told.tell("kube_pod_deletion_timestamp", MIDNIGHT + 9000, 1650, **labels)
    pod(told, "busy", 1780, phase="Failed")
    for labels, begun in ((pod(told, "run"), OLD), (pod(told, "new", 1200), MIDNIGHT + 1190)):
        main = labels | {"container": "main"}
        since = 0 if begun == OLD else 1200
        told.tell("kube_pod_container_status_running", 1, since, **main)
        told.tell("kube_pod_container_state_started", begun, since, **main)


KEYS = {"pod": "pod_uid", "node": "node_uid", "namespace": "namespace_name"}
"""What has versions -> the column that tells one from another."""


def known(*reads: Read, scraped: float | None = None) -> Known:
    """What runs have read, one after the other, as the next one knows it.

    With `scraped`, as if all that had been told then, on the day before.
    """
    if not reads:
        return Known()
    pods, nodes, spaces = (
        pl.concat([read.tables[f"raw.{name}_versions"] for read in reads])
        .sort("day_on", "sequence_number")
        .unique(key, keep="last", maintain_order=True)
        for name, key in KEYS.items()
    )
    scrapes = reads[-1].reader.scrapes
    if scraped is None:
        gaps = tuple((gap.begin, gap.end) for gap in scrapes.gaps)
        return Known(pods, nodes, spaces, scrapes.last, gaps)
    at = int((MIDNIGHT + scraped) * 1_000_000)
    before = pl.from_epoch(pl.lit(at), "us").dt.replace_time_zone("UTC").alias("observed_at")
    pods, nodes, spaces = (frame.with_columns(before) for frame in (pods, nodes, spaces))
    return Known(pods, nodes, spaces, at)
