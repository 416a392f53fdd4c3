"""Raw rows of a window: from its sources, or from the lake where those are gone.

How a source is read belongs in `collectors`; what is concluded from the rows in `compute`.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from collectors import recorded_first
from collectors.source import Settings, Unreadable
from collectors.source import settings as settings_of
from collectors.sources import ALL
from lake.connect import literal
from lake.home import Home
from lake.read import Door, published
from lake.run import Run
from models import raw
from models.book import frames
from models.catalog import CATALOG
from models.config import Config
from models.window import Window
from pipelines import spools
from pipelines.carry import carry
from pipelines.metrics import Metrics, Tell

NEEDED = "give Pods and Nodes, as `kubectl get -A -o json` prints them or as watch streams"


class Refused(Exception):
    """So many rows of the sources were refused that their figures would mislead."""


class Gathered(NamedTuple):
    """Rows staged of pods and nodes, and rows that the sources lost on the way."""

    row_count: int
    rejected_count: int
    unreachable: tuple[str, ...] = ()
    """Sources that were there when the run began and could not be read."""


DAILY = tuple(table for table in raw.TABLES if table.is_daily)


def sources_of(config: Config, cluster: str) -> Sequence[Any]:
    """The sources that the configuration names for a cluster; none for an imported one."""
    return next((c.sources for c in config.clusters if c.name == cluster), ())


def window_of(
    home: Home,
    config: Config,
    cluster: str,
    sources: Sequence[Any],
    now: datetime | None = None,
) -> Window | None:
    """The days that the sources know anything of by `now`; None where they know nothing."""
    settings = replace(settings_of(config, cluster), now=now)
    return _known(spools.remembered(home, settings, sources), sources)


def _known(settings: Settings, sources: Sequence[Any]) -> Window | None:
    recorders = [source for source in sources if not _is_metrics(source)]
    spans = [ALL[source.kind].span(source, settings) for source in recorders or sources]
    known = [span for span in spans if span is not None]
    if not known:
        return None
    span = (min(begin for begin, _ in known), max(end for _, end in known))
    return Window.around(settings.cluster, span, settings.zone)


def _is_metrics(source: Any) -> bool:
    """Whether it tells of what happened in the days that others know, or that are asked for."""
    return source.kind == "prometheus"


def reachable(sources: Sequence[Any]) -> tuple[list[Any], list[str]]:
    """The sources that are there, and what is wrong with the others; a server is asked later."""
    there = [source for source in sources if source.path is None or source.path.exists()]
    missing = [source.path for source in sources if source not in there]
    return there, [
        f"{path} is missing: mend the source's path, or start `gpuledger watch` if it is a spool"
        for path in missing
    ]


def widened(
    home: Home,
    config: Config,
    cluster: str,
    window: Window | None,
    sources: Sequence[Any],
    now: datetime | None = None,
) -> Window:
    """The window to run; Unreadable where the sources know nothing of the cluster.

    A day is folded from the day before: where the lake lacks that, a record that began earlier
    is read from its begin on. A server's scrapes tell all that there is, each anew.
    """
    settings = replace(settings_of(config, cluster), now=now)
    settings = spools.remembered(home, settings, sources, window)
    known = _known(settings, sources) if sources else window
    if known is None:
        raise Unreadable(f"{cluster}: the sources know no pods or nodes: {NEEDED}")
    first_on = spools.first_day(settings, known.zone)
    if window is None:
        begin_on = known.begin_on if first_on is None else max(first_on, known.begin_on)
        return Window(cluster, begin_on, known.end_on, known.zone)
    if first_on is not None and first_on < window.begin_on < known.end_on:
        return Window(cluster, max(first_on, known.begin_on), window.end_on, window.zone)
    begins = known.begin_on < window.begin_on < known.end_on
    if not begins or all(map(_is_metrics, sources)) or _has_day_before(home, window):
        return window
    return Window(cluster, known.begin_on, window.end_on, window.zone)


def _has_day_before(home: Home, window: Window) -> bool:
    if published(home) is None:
        return False
    day_before = window.begin_on - timedelta(days=1)
    with Door(home) as door:
        return bool(
            door.query(
                f"select 1 from core.windows where cluster_name = {literal(window.cluster)} "
                f"and day_on = date '{day_before}' limit 1"
            ).fetchall()
        )


def gather(
    run: Run,
    config: Config,
    sources: Sequence[Any],
    now: datetime | None = None,
    *,
    at_once: bool = False,
    tell: Tell | None = None,
) -> Gathered:
    """Stage all raw tables of the run's window; without sources, the lake's own rows again.

    A server is read until `now`: by default, the present. What it failed to give before is asked
    for again when its time has come, or `at_once`; `tell` hears how far the reading is.

    Unreadable or FileNotFoundError where a source cannot be read at all; Refused where more of
    its rows are lost than `import.max_rejected_ratio` allows.
    """
    unreachable = _stage(run, config, sources, now, at_once, tell)
    found = _judged(run, unreachable)
    limit = config.imports.max_rejected_ratio
    total = found.row_count + found.rejected_count
    if found.rejected_count > limit * total:
        raise Refused(
            f"{found.rejected_count:,} of {total:,} rows were refused, more than "
            f"import.max_rejected_ratio {limit}: see raw.rejections' reasons: {_reasons(run)}"
        )
    return found


def _stage(
    run: Run,
    config: Config,
    sources: Sequence[Any],
    now: datetime | None,
    at_once: bool,
    tell: Tell | None,
) -> list[str]:
    for name, frame in frames(config).items():
        run.begin(CATALOG[name])
        run.append(CATALOG[name], frame)
    if not sources:
        run.load(*DAILY)
        return []
    day_before = run.window.begin_on - timedelta(days=1)
    for table in DAILY:
        run.begin(table)
    loaded = run.load(*DAILY, begin_on=day_before, end_on=run.window.begin_on)
    settings = settings_of(config, run.window.cluster, sources)
    settings = spools.remembered(run.home, settings, sources, run.window)
    spools.load(run, settings)
    for source in sources:
        for batch in ALL[source.kind].collect(source, settings, run.window):
            run.append(CATALOG[batch.table], batch.frame)
    spools.book(run, settings)
    unreachable = [
        text
        for source in sources
        if _is_metrics(source)
        for text in Metrics(run, source, settings, now, at_once=at_once, tell=tell).gather()
    ]
    carry(run, day_before if loaded else run.window.begin_on)
    if any(_is_metrics(source) for source in sources):
        _name_nodes(run)
    for table in DAILY:
        run.trim(table)
    return unreachable


def _name_nodes(run: Run) -> None:
    """A node that a recorder names is not carried under the uid that we made for it before."""
    run.trim(raw.NODE_VERSIONS)
    with run.connect() as con:
        staged = raw.NODE_VERSIONS.conform(con.sql("from raw.node_versions").pl())
    run.replace(raw.NODE_VERSIONS, recorded_first.carried_nodes(staged))


def _judged(run: Run, unreachable: Sequence[str]) -> Gathered:
    with run.connect() as con:
        [(rows, lost)] = con.execute(
            "select (select count(*) from raw.pod_versions) "
            "+ (select count(*) from raw.node_versions), "
            "(select coalesce(sum(rejected_count), 0)::bigint from raw.rejections "
            "where is_row_lost)"
        ).fetchall()
    return Gathered(rows, lost, tuple(unreachable))


def _reasons(run: Run) -> str:
    with run.connect() as con:
        rows = con.execute(
            "select reason_name, sum(rejected_count)::bigint, any_value(source_ref), "
            "any_value(example_text), any_value(mend_text) from raw.rejections "
            "where is_row_lost group by all order by 2 desc limit 5"
        ).fetchall()
    return "; ".join(
        f"{n:,} x {why} at {where} ({what}): {mend}" for why, n, where, what, mend in rows
    )


def counts(run: Run) -> dict[str, int]:
    """Rows of each staged table."""
    found: dict[str, int] = {}
    with run.connect() as con:
        for name in run.staged():
            [(count,)] = con.execute(f"select count(*) from {name}").fetchall()
            found[name] = count
    return found
