"""A measured fleet in real servers of Prometheus, what a run makes of it, and the truth beside it.

What must be found in the tables is for the tests to say.
"""

import shutil
from datetime import date, datetime, timedelta
from pathlib import Path

import duckdb
import polars as pl
import polars.selectors as cs
import yaml

import simulator
from lake.home import Home
from lake.read import Door
from models.catalog import CATALOG
from models.config import Config, load
from models.window import Window
from pipelines.process import Outcome, process
from simulator.fleet import BEGIN
from tests.measured import CLUSTERS
from tests.prometheus_server import Server

DAY_ON: date = BEGIN.date()
END = BEGIN + timedelta(days=1)
NOW = END + timedelta(minutes=5)
"""When the day is read: what Prometheus has of it is all there."""
TABLES = tuple(name for name, table in CATALOG.items() if table.is_daily and table.layer != "meta")
NUMBERS = (
    *("gi_id", "begin", "end", "since", "at", "code", "sharers"),
    *("is_told", "is_scored", "is_cause_scored", "is_open"),
)
"""Columns of the truth that are numbers."""
ALONE, BESIDE = "alone", "beside"
"""From Prometheus alone, or beside what a recorder wrote."""


class Fleet:
    """One seed's clusters, each in a Prometheus of its own."""

    def __init__(self, folder: Path, binaries: tuple[str, str], seed: int, *clusters: str):
        self.folder = folder
        self.path = simulator.build(folder, seed=seed, size="measured", days=1, metrics=True)
        self.servers: dict[str, Server] = {}
        for cluster in clusters or CLUSTERS:
            server = self.servers[cluster] = Server(binaries, folder / f"server-{cluster}")
            # Else promtool reads the whole file once for every two hours of it.
            text = folder / "prometheus" / f"{cluster}.om"
            server.load_file(text, "--max-block-duration=54h")
            server.start()
        shutil.rmtree(folder / "prometheus")  # it is large

    def config(self, cluster: str, how: str, url: str | None = None) -> Config:
        """The fleet's configuration, with this cluster's Prometheus at its address or another."""
        told = yaml.safe_load(self.path.read_text())
        [mine] = [each for each in told["clusters"] if each["name"] == cluster]
        server = {"kind": "prometheus", "url": url or self.servers[cluster].url}
        mine["sources"] = [server] if how == ALONE else [*mine["sources"], server]
        path = self.folder / f"{cluster}-{how}.yaml"
        path.write_text(yaml.safe_dump(told))
        return load(path)

    def truth(self, cluster: str, how: str = BESIDE) -> Path:
        """The folder of what is true, or of what is true for who has metrics alone."""
        folder = self.folder / "truth" / cluster
        return folder / "prometheus" if how == ALONE else folder

    def close(self) -> None:
        """Ends its servers and removes what it wrote."""
        for server in self.servers.values():
            server.kill()
        shutil.rmtree(self.folder)


def run(home: Home, config: Config, cluster: str, now: datetime = NOW) -> Outcome:
    """A run of the simulated day of one cluster."""
    window = Window(cluster, DAY_ON, DAY_ON + timedelta(days=1), config.lake.accounting_zone)
    return process(home, config, cluster, window, now=now)


def content(home: Home) -> dict[str, pl.DataFrame]:
    """All rows of all daily tables in order, as far as it does not matter when they were read.

    Labels are told question by question and what is refused names its question: their sums count.
    A sum of fractions in another order differs in the last digits.
    """
    with Door(home) as door:
        return {
            name: door.query(LASTING.get(name, f"select * from {name} order by all"))
            .pl()
            .with_columns(cs.float().round_sig_figs(9))
            for name in TABLES
        }


LASTING = {
    "raw.metric_coverage": "select * exclude (read_at, read_sample_count) "
    "from raw.metric_coverage order by all",
    "raw.gpu_series": "select * exclude "
    "(begin_at, end_at, sample_count, metrics_text, source_ref), "
    "date_trunc('hour', end_at - interval 1 microsecond) as hour_at, min(begin_at) as begin_at, "
    "max(end_at) as end_at, sum(sample_count) as sample_count "
    "from raw.gpu_series group by all order by all",
    "raw.rejections": "select cluster_name, day_on, reason_name, is_row_lost, "
    "regexp_replace(source_ref, '\\[.*', '') as place, sum(rejected_count) as rejected_count "
    "from raw.rejections group by all order by all",
    "mart.refusals": "select cluster_name, day_on, reason_name, is_row_lost, rejected_count, "
    "mend_text from mart.refusals order by all",
}


def differing(one: dict[str, pl.DataFrame], other: dict[str, pl.DataFrame]) -> list[str]:
    """The tables whose rows are not the same, as multisets, and the first that differ."""
    return [
        f"{name}: {_odd(one[name], other[name])} became {_odd(other[name], one[name])}"
        for name in TABLES
        if not one[name].equals(other[name])
    ]


def _odd(mine: pl.DataFrame, others: pl.DataFrame) -> list[dict]:
    odd = mine.join(others, on=mine.columns, how="anti", nulls_equal=True).head(2)
    return [{k: v for k, v in row.items() if v is not None} for row in odd.to_dicts()]


def beside(home: Home, truth: Path) -> duckdb.DuckDBPyConnection:
    """A database with the lake's tables, and the truth's as `truth.gpu_states` and so on."""
    con = duckdb.connect()
    con.execute("set TimeZone = 'UTC'")
    for schema in ("raw", "core", "mart", "truth"):
        con.execute(f"create schema {schema}")
    with Door(home) as door:
        for name in TABLES:
            con.register("rows", door.query(f"select * from {name}").pl())
            con.execute(f"create table {name} as from rows")
            con.unregister("rows")
    folders = [truth.parent, truth] if truth.name == "prometheus" else [truth]
    for path in (path for folder in folders for path in sorted(folder.glob("*.csv"))):
        frame = pl.read_csv(path, infer_schema=False)
        numbers = [name for name in frame.columns if name in NUMBERS]
        con.register("rows", frame.with_columns(pl.col(numbers).cast(pl.Float64)))
        con.execute(f"create or replace table truth.{path.stem} as from rows")
        con.unregister("rows")
    return con
