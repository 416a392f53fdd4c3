"""One run of the pipeline, measured from inside a process of its own: seconds a step, peak memory.

What is run belongs in `__main__`; how figures are printed too.
"""

import resource
import sys
import time
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from benchmarks.rows import CLUSTER, config
from benchmarks.source import Rows
from lake.home import Home
from models.config import Config
from models.window import Window
from pipelines.process import process


@dataclass
class Measured:
    """What a run took."""

    seconds: float = 0.0
    peak_bytes: int = 0
    steps: dict[str, float] = field(default_factory=dict)
    """Seconds of each step, in order."""
    counts: dict[str, int] = field(default_factory=dict)
    """Rows of each table."""

    @property
    def rows(self) -> int:
        """Rows of all tables."""
        return sum(self.counts.values())


def peak_bytes() -> int:
    """The most memory that this process ever had."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def run(home: Path, rows: Path, days: tuple[date, date] | None = None) -> Measured:
    """Collect, compute, check and publish the days, or all there are; RuntimeError if refused."""
    measured = Measured()
    begun = last = time.monotonic()
    name = ""

    def report(step: str, done: int, total: int) -> None:
        nonlocal last, name
        now = time.monotonic()
        if name:
            measured.steps[name] = measured.steps.get(name, 0) + now - last
        last, name = now, step

    window = Window(CLUSTER, *days) if days else None
    told = Config.model_validate(config())
    outcome = process(Home(home), told, CLUSTER, window, sources=[Rows(rows)], progress=report)
    if outcome.exit_code:
        raise RuntimeError("; ".join([*outcome.broken, outcome.error or "", *outcome.unreachable]))
    measured.seconds = time.monotonic() - begun
    measured.peak_bytes = peak_bytes()
    measured.counts = outcome.counts
    return measured
