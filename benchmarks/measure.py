"""A run of the pipeline, and what it is held against, each in a process of its own.

What is measured when, and how it is printed, belongs in `__main__`.
"""

import os
import resource
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from datetime import date, timedelta
from multiprocessing import get_context
from pathlib import Path
from typing import ParamSpec, TypeVar

import duckdb

from benchmarks.rows import CLUSTER, FIRST_DAY, config
from benchmarks.source import Rows
from lake.home import Home
from models.catalog import CATALOG
from models.config import Config
from models.window import Window
from pipelines.process import process

Given = ParamSpec("Given")
Result = TypeVar("Result")

SECOND_DAY = FIRST_DAY + timedelta(days=1)


@dataclass
class Measured:
    """What a run took."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_bytes: int = 0
    steps: dict[str, float] = field(default_factory=dict)
    """Seconds of each step, in order."""
    cpu_steps: dict[str, float] = field(default_factory=dict)
    """Of them, seconds of CPU on all cores: what a busy machine does not lengthen as much."""
    counts: dict[str, int] = field(default_factory=dict)
    """Rows of each table."""

    @property
    def rows(self) -> int:
        """Rows of all tables."""
        return sum(self.counts.values())


class Clock:
    """Tells what each step took, one after another."""

    def __init__(self, measured: Measured):
        self.measured = measured
        self.last = time.monotonic(), time.process_time()

    def done(self, step: str) -> None:
        """The step ends now; one without a name is not counted."""
        now = time.monotonic(), time.process_time()
        if step:
            for found, here, before in zip(
                (self.measured.steps, self.measured.cpu_steps), now, self.last, strict=True
            ):
                found[step] = found.get(step, 0) + here - before
        self.last = now


def apart(work: Callable[Given, Result], *args: Given.args, **kwargs: Given.kwargs) -> Result:
    """Do it in a fresh process, so that its memory is its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=_on_two_cores) as pool:
        return pool.submit(work, *args, **kwargs).result()


def run(home: Path, source: Rows, day: date | None = None) -> Measured:
    """Collect, compute, check and publish a day, or all there are; RuntimeError if refused."""
    measured = Measured()
    begun, name = time.monotonic(), ""
    clock = Clock(measured)

    def report(step: str, done: int, total: int) -> None:
        nonlocal name
        clock.done(name)
        name = step

    window = Window(CLUSTER, day, day + timedelta(days=1)) if day else None
    told = Config.model_validate(config())
    outcome = process(Home(home), told, CLUSTER, window, sources=[source], progress=report)
    if outcome.exit_code:
        raise RuntimeError("; ".join([*outcome.broken, outcome.error or "", *outcome.unreachable]))
    measured.counts = outcome.counts
    return finished(measured, begun)


def finished(measured: Measured, begun: float) -> Measured:
    """With what this process took since then."""
    measured.seconds = time.monotonic() - begun
    measured.cpu_seconds = time.process_time()
    measured.peak_bytes = _peak_bytes()
    return measured


def copied(home: Path, folder: Path) -> float:
    """Seconds that DuckDB takes to read the lake's rows and write them again, as plain Parquet.

    Only of a lake that was written once: its files are read as they lie.
    """
    con = duckdb.connect(config={"preserve_insertion_order": "false"})
    con.execute("set enable_progress_bar = false")
    begun = time.monotonic()
    for name in CATALOG:
        stored = Home(home).data.joinpath(*name.split("."))
        if any(stored.rglob("*.parquet")):
            con.execute(
                f"copy (from read_parquet('{stored}/**/*.parquet', hive_partitioning = false)) "
                f"to '{folder}/{name}.parquet'"
            )
    return time.monotonic() - begun


def swept(home: Path) -> float:
    """Seconds that DuckDB takes to read the lake's samples and put each device's in order, once."""
    con = duckdb.connect(config={"preserve_insertion_order": "false"})
    con.execute("set enable_progress_bar = false")
    begun = time.monotonic()
    con.execute(
        "select max(seconds), max(watts) from (select power_watts - lag(power_watts) over d as "
        "watts, epoch(sampled_at) - epoch(lag(sampled_at) over d) as seconds "
        f"from read_parquet('{Home(home).data}/raw/gpu_samples/**/*.parquet') "
        "window d as (partition by gpu_uuid, instance_number order by sampled_at)) as t"
    ).fetchall()
    return time.monotonic() - begun


def _on_two_cores() -> None:
    """What the figures promise is promised for 2 cores and 4 GB, DuckDB's buffers among them."""
    os.environ.setdefault("GPULEDGER_MEMORY", "2500MB")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])


def _peak_bytes() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
