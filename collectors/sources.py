"""The kinds of source, by the word that the configuration uses: how each is read.

A new collector adds its word here and its kind in `models.config`.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from collectors import recording, table
from collectors.coverage import as_instants
from collectors.prometheus_recorded import Recorded
from collectors.source import Batch, Settings
from models.config import TableSource
from models.kubernetes import KubernetesSource
from models.parts import instant
from models.prometheus import PrometheusSource
from models.window import Window


class Collector(NamedTuple):
    """How one kind of source is read."""

    collect: Callable[[Any, Settings, Window | None], Iterator[Batch]]
    """The raw rows of a window's days; of all days where the window is None."""
    span: Callable[[Any, Settings], tuple[datetime, datetime] | None]
    """The known window of the source; None where it says nothing of pods or nodes."""


def _for_lists(source: KubernetesSource, settings: Settings) -> Settings:
    if source.observed_at is None:
        return settings
    return replace(settings, observed_at=instant(source.observed_at, settings.zone))


def _collect_kubernetes(
    source: KubernetesSource, settings: Settings, window: Window | None = None
) -> Iterator[Batch]:
    return recording.collect(source.path, _for_lists(source, settings), window)


def _span_kubernetes(
    source: KubernetesSource, settings: Settings
) -> tuple[datetime, datetime] | None:
    return recording.span(source.path, _for_lists(source, settings))


def _collect_table(
    source: TableSource, settings: Settings, window: Window | None = None
) -> Iterator[Batch]:
    return table.collect(source.path, replace(settings, mapping=source.mapping), window)


def _span_table(source: TableSource, settings: Settings) -> tuple[datetime, datetime] | None:
    return table.span(source.path, replace(settings, mapping=source.mapping))


def _collect_prometheus(
    source: PrometheusSource, settings: Settings, window: Window | None = None
) -> Iterator[Batch]:
    """Nothing by itself: what is read depends on what the lake has, see `metrics`."""
    del source, settings, window
    yield from ()


def _span_prometheus(
    source: PrometheusSource, settings: Settings
) -> tuple[datetime, datetime] | None:
    """Of a folder what it holds; a server is asked for the last days, or for those told."""
    now = settings.now or datetime.now(UTC)
    if source.path is None:
        return now - timedelta(days=settings.recent_days), now
    with Recorded(source.path, source.observed_at, settings.zone) as recorded:
        if recorded.first is None or recorded.last is None:
            return None
        return as_instants((recorded.first * 1000 - 1, recorded.last * 1000))


ALL: dict[str, Collector] = {
    "kubernetes": Collector(_collect_kubernetes, _span_kubernetes),
    "table": Collector(_collect_table, _span_table),
    "prometheus": Collector(_collect_prometheus, _span_prometheus),
}
"""Kind of source -> how it is read."""
