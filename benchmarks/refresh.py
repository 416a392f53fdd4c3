"""From sample to page: a run of the schedule reads a day's open hour, until a page can show it.

What a server's answers cost is measured in `prometheus`; here the hour's rows come from files, as
its parser makes them, and all that follows is the pipeline's: what the lake has of the day is
loaded, the hour replaced, all tables computed, the laws checked, the day published and read.
"""

import time
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import polars as pl

from benchmarks.measure import Clock, Measured, finished
from benchmarks.rows import CLUSTER, FIRST_DAY, config
from benchmarks.samples import files_of
from benchmarks.source import Rows
from lake.connect import literal
from lake.home import Home
from lake.read import Door
from lake.run import Run
from models.catalog import CATALOG
from models.config import Config
from models.raw_metrics import TABLES
from models.window import Window
from pipelines.carry import publish
from pipelines.collect import counts, gather
from pipelines.compute import compute_table
from pipelines.graph import order
from pipelines.laws import broken

TIMES = {"raw.gpu_samples": "sampled_at", "raw.gpu_series": "end_at"}
FIGURES = """
    select sum(held_gpu_seconds), sum(active_gpu_seconds), sum(idle_cost) from mart.use_hours
"""


def refreshed(home: Path, rows: Path) -> Measured:
    """The first day's last hour again, in a lake that has the day; RuntimeError if refused."""
    measured, begun = Measured(), time.monotonic()
    done = Clock(measured).done
    window = Window(CLUSTER, FIRST_DAY, FIRST_DAY + timedelta(days=1))
    run = Run(Home(home), uuid4().hex[:12], window)
    try:
        gather(run, Config.model_validate(config()), [Rows(rows, is_sampled=False)])
        done("reading what is recorded")
        run.load(*TABLES)
        done("loading the day")
        for table, column in TIMES.items():
            _replaced(run, table, column, rows)
        done("the open hour")
        for name in order():
            compute_table(run, name)
        done("core and mart")
        if wrong := broken(run):
            raise RuntimeError("; ".join(wrong))
        done("checking the laws")
        measured.counts = counts(run)
        publish(run)
        done("publishing")
        with Door(Home(home)) as door:
            door.query(FIGURES).fetchall()
        done("first figures")
    finally:
        run.discard()
    return finished(measured, begun)


def _replaced(run: Run, table: str, column: str, rows: Path) -> None:
    frames = [pl.read_parquet(path) for path in files_of(rows, table, FIRST_DAY)]
    frame = pl.concat(frames)
    newest = frame[column].max()
    assert newest is not None
    hour = frame.filter(pl.col(column).dt.truncate("1h") == pl.lit(newest).dt.truncate("1h"))
    with run.connect() as con:
        since = hour[column].min()
        con.execute(f"delete from {table} where {column} >= {literal(since)}")  # type: ignore[arg-type]
    run.append(CATALOG[table], hour)
