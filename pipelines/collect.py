"""Raw rows of a window: from its sources, or from the lake where those are gone.

How a source is read belongs in `collectors`; what is concluded from the rows in `compute`.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from collectors.source import settings as settings_of
from collectors.sources import ALL
from lake.run import Run
from models import raw
from models.book import frames
from models.catalog import CATALOG
from models.config import Config
from models.window import Window
from pipelines.carry import carry

DAILY = tuple(table for table in raw.TABLES if table.is_daily)


def sources_of(config: Config, cluster: str) -> Sequence[Any]:
    """The sources that the configuration names for a cluster; none for an imported one."""
    return next((c.sources for c in config.clusters if c.name == cluster), ())


def window_of(config: Config, cluster: str, sources: Sequence[Any]) -> Window | None:
    """The days that the sources know anything of; None where they know nothing."""
    settings = settings_of(config, cluster)
    spans = [ALL[source.kind].span(source, settings) for source in sources]
    known = [span for span in spans if span is not None]
    if not known:
        return None
    span = (min(begin for begin, _ in known), max(end for _, end in known))
    return Window.around(cluster, span, config.lake.accounting_zone)


def stage_raw(run: Run, config: Config, sources: Sequence[Any]) -> dict[str, int]:
    """Stage all raw tables of the run's window; table -> rows.

    Unreadable or FileNotFoundError where a source cannot be read at all. Without sources the
    lake's own raw rows are taken again.
    """
    for name, frame in frames(config).items():
        run.begin(CATALOG[name])
        run.append(CATALOG[name], frame)
    if not sources:
        return {table.name: run.load(table) for table in DAILY}
    day_before = run.window.begin_on - timedelta(days=1)
    for table in DAILY:
        run.begin(table)
    loaded = sum(run.load(table, day_before, run.window.begin_on) for table in DAILY)
    settings = settings_of(config, run.window.cluster)
    for source in sources:
        for batch in ALL[source.kind].collect(source, settings, run.window):
            run.append(CATALOG[batch.table], batch.frame)
    carry(run, day_before if loaded else run.window.begin_on)
    for table in DAILY:
        run.trim(table)
    return counts(run)


def counts(run: Run) -> dict[str, int]:
    """Rows of each staged table."""
    found: dict[str, int] = {}
    with run.connect() as con:
        for name in run.staged():
            [(count,)] = con.execute(f"select count(*) from {name}").fetchall()
            found[name] = count
    return found
