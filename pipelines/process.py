"""One run of one cluster, whole: collect, compute, check the laws, publish or leave as it was.

Plain functions, without Dagster: the command line and the assets call the same steps.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import uuid4

from collectors.source import Unreadable
from lake.create import create
from lake.home import Home
from lake.run import Run
from models.config import Config
from models.window import Window
from pipelines.carry import publish
from pipelines.collect import Refused, counts, gather, reachable, sources_of, widened
from pipelines.compute import compute_table
from pipelines.graph import order
from pipelines.laws import broken
from pipelines.notes import notes
from pipelines.spools import is_lost, tell_recorders

Progress = Callable[[str, int, int], None]


@dataclass
class Outcome:
    """What a run came to."""

    cluster: str
    window: Window | None = None
    snapshot: int | None = None
    broken: list[str] = field(default_factory=list)
    unreachable: list[str] = field(default_factory=list)
    rejected_count: int = 0
    row_count: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    gpu_seconds: dict[str, Decimal] = field(default_factory=dict)
    error: str | None = None
    notes: list[str] = field(default_factory=list)
    """What was published, but is not to be overlooked."""

    @property
    def exit_code(self) -> int:
        """0 done, 1 a law broken or data refused, 3 a source unreachable."""
        if self.broken or self.error:
            return 1
        return 3 if self.unreachable else 0


def process(
    home: Home,
    config: Config,
    cluster: str,
    window: Window | None = None,
    *,
    run_id: str | None = None,
    sources: Sequence[Any] | None = None,
    progress: Progress | None = None,
    now: datetime | None = None,
    at_once: bool = False,
) -> Outcome:
    """Run one cluster's window, or all that its sources know; never raises for data or sources.

    A server is read until `now`: by default, the present. `at_once` asks it again for what it
    failed to give, however short ago that was.
    LakeError where the lake itself cannot be used.
    """
    report = progress or (lambda step, done, total: None)
    create(home, config.lake.accounting_zone, config.lake.currency)
    outcome = Outcome(cluster, window)
    given = sources_of(config, cluster) if sources is None else sources
    there, outcome.unreachable = reachable(given)
    if (given and not there) or is_lost(home, cluster, given, there):
        return outcome
    total = len(order()) + 3
    report("reading sources", 0, total)
    try:
        outcome.window = widened(home, config, cluster, window, there, now)
    except (Unreadable, OSError) as error:
        outcome.error = told(error)
        return outcome
    run = Run(home, run_id or uuid4().hex[:12], outcome.window)
    try:
        _staged(run, config, there, outcome, report, total, now, at_once)
        if outcome.unreachable and not outcome.counts:
            return outcome  # nothing to publish: the lake's rows stay
        if outcome.exit_code == 1:
            run.fail("; ".join([*outcome.broken, *filter(None, [outcome.error])]))
        else:
            report("publishing", total - 1, total)
            outcome.snapshot = publish(run)
            outcome.notes += tell_recorders(run)
        report("done", total, total)
    finally:
        run.discard()
    return outcome


def _staged(
    run: Run,
    config: Config,
    sources: Sequence[Any],
    outcome: Outcome,
    report: Progress,
    total: int,
    now: datetime | None,
    at_once: bool,
) -> None:
    report("collecting", 0, total)

    def tell(text: str) -> None:
        report(f"collecting: {text}", 0, total)

    try:
        gathered = gather(run, config, sources, now, at_once=at_once, tell=tell)
    except (Unreadable, Refused, OSError) as error:
        outcome.error = told(error)
        return
    outcome.row_count, outcome.rejected_count, unreachable = gathered
    outcome.unreachable += unreachable
    if outcome.unreachable and not outcome.row_count:
        return
    for number, name in enumerate(order()):
        report(name, number + 1, total)
        compute_table(run, name)
    report("checking the laws", total - 2, total)
    outcome.broken = broken(run)
    outcome.counts = counts(run)
    with run.connect() as con:
        rows = con.execute(
            "select state_name, sum(gpu_seconds) from mart.fleet_states group by all"
        ).fetchall()
    outcome.gpu_seconds = dict(rows)
    outcome.notes = notes(run, is_priced=bool(config.prices))


def told(error: Exception) -> str:
    """Why a source cannot be read."""
    if isinstance(error, OSError):
        return f"{error.filename or error} cannot be read: {error.strerror}: let this user read it"
    return str(error)
