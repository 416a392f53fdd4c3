"""The kinds of source, by the word that the configuration uses: how each is read.

A new collector adds its word here and its kind in `models.config`.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

from collectors import recording, table
from collectors.source import Batch, Settings
from models.config import KubernetesSource, TableSource
from models.parts import instant
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


ALL: dict[str, Collector] = {
    "kubernetes": Collector(_collect_kubernetes, _span_kubernetes),
    "table": Collector(_collect_table, _span_table),
}
"""Kind of source -> how it is read."""
