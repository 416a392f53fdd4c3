"""One run of one cluster, whole: collect, compute, check the laws, publish or leave as it was.

Plain functions, without Dagster: the command line and the assets call the same steps.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import uuid4

from collectors.source import Unreadable
from lake.connect import literal
from lake.create import create
from lake.home import Home
from lake.read import Door, published
from lake.run import Run, sweep
from models.config import Config
from models.window import Window
from pipelines.collect import counts, sources_of, stage_raw, window_of
from pipelines.compute import compute_table
from pipelines.graph import order
from pipelines.laws import broken

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
) -> Outcome:
    """Run one cluster's window, or all that its sources know; never raises for data or sources.

    LakeError where the lake itself cannot be used.
    """
    report = progress or (lambda step, done, total: None)
    create(home, config.lake.accounting_zone, config.lake.currency)
    sweep(home)
    outcome = Outcome(cluster, window)
    given = sources_of(config, cluster) if sources is None else sources
    reachable = []
    for source in given:
        if source.path.exists():
            reachable.append(source)
        else:
            outcome.unreachable.append(f"{source.path} is missing: mend the source's path")
    if given and not reachable:
        return outcome
    total = len(order()) + 3
    report("reading sources", 0, total)
    try:
        outcome.window = _widened(home, config, cluster, window, reachable)
    except Unreadable as error:
        outcome.error = str(error)
    if outcome.error or outcome.window is None:
        outcome.error = outcome.error or f"{cluster}: the sources know no pods or nodes"
        return outcome
    run = Run(home, run_id or uuid4().hex[:12], outcome.window)
    try:
        _staged(run, config, reachable, outcome, report, total)
        if outcome.exit_code == 1:
            run.fail("; ".join([*outcome.broken, *filter(None, [outcome.error])]))
        else:
            report("publishing", total - 1, total)
            outcome.snapshot = run.publish()
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
) -> None:
    report("collecting", 0, total)
    try:
        stage_raw(run, config, sources)
    except Unreadable as error:
        outcome.error = str(error)
        return
    outcome.row_count, outcome.rejected_count = judged(run)
    limit = config.imports.max_rejected_ratio
    total_rows = outcome.row_count + outcome.rejected_count
    if outcome.rejected_count > limit * total_rows:
        outcome.error = (
            f"{outcome.rejected_count:,} of {total_rows:,} rows were refused, more than "
            f"import.max_rejected_ratio {limit}: see raw.rejections' reasons: {reasons(run)}"
        )
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


def judged(run: Run) -> tuple[int, int]:
    """Rows staged from sources, and rows refused; notices lose no row."""
    with run.connect() as con:
        [(rows,)] = con.execute(
            "select (select count(*) from raw.pod_versions) "
            "+ (select count(*) from raw.node_versions)"
        ).fetchall()
        [(refused,)] = con.execute(
            "select coalesce(sum(rejected_count), 0)::bigint from raw.rejections where is_row_lost"
        ).fetchall()
    return rows, refused


def reasons(run: Run) -> str:
    """The reasons of refusal, with counts, examples and how to mend them."""
    with run.connect() as con:
        rows = con.execute(
            "select reason_name, sum(rejected_count)::bigint, any_value(source_ref), "
            "any_value(example_text), any_value(mend_text) from raw.rejections "
            "where is_row_lost group by all order by 2 desc limit 5"
        ).fetchall()
    return "; ".join(
        f"{n:,} x {why} at {where} ({what}): {mend}" for why, n, where, what, mend in rows
    )


def _widened(
    home: Home, config: Config, cluster: str, window: Window | None, sources: Sequence[Any]
) -> Window | None:
    """The window to run: a record that began earlier is read from where the lake's rows end."""
    if not sources:
        return window
    known = window_of(config, cluster, sources)
    if known is None or window is None:
        return known
    if window.begin_on <= known.begin_on or _has_day(home, cluster, window):
        return window
    return Window(cluster, known.begin_on, window.end_on, window.zone)


def _has_day(home: Home, cluster: str, window: Window) -> bool:
    if published(home) is None:
        return False
    day_before = window.begin_on - timedelta(days=1)
    with Door(home) as door:
        return bool(
            door.query(
                f"select 1 from core.windows where cluster_name = {literal(cluster)} "
                f"and day_on = date '{day_before}' limit 1"
            ).fetchall()
        )
