"""What every collector is given and hands back: settings, versions of objects, batches of rows.

What a kind of source looks like belongs to its own module.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from collectors.surveys import Memory
from models.config import Config, Labels
from models.gpus import canonical
from models.rules import WorkloadClass


class Batch(NamedTuple):
    """Rows of one raw table, conforming to its contract."""

    table: str
    frame: pl.DataFrame


class Unusable(Exception):
    """A row, line or object that cannot be used: the reason's word, and what was seen."""

    def __init__(self, reason: str, example: str = ""):
        super().__init__(f"{reason}: {example}")
        self.reason, self.example = reason, example


class Unreadable(Exception):
    """A fault of a whole file: nothing of the source can be used. The text says how to mend it."""


Note = Callable[[str, str], None]
"""Takes (reason, example) of what was left aside although the row itself is good."""


def silent(reason: str, example: str) -> None:
    """A note that no one reads."""


@dataclass(frozen=True)
class Settings:
    """What parsing needs of the configuration."""

    cluster: str
    zone: str = "UTC"
    accelerators: dict[str, str] = field(default_factory=dict)
    """Further extended resources that are GPUs -> canonical model."""
    units_per_gpu: dict[str, int] = field(default_factory=dict)
    """Extended resource -> how many units of it are one GPU."""
    user_keys: tuple[str, ...] = ()
    account_keys: tuple[str, ...] = ()
    submitted_keys: tuple[str, ...] = ()
    capacity_type_keys: tuple[str, ...] = tuple(Labels().capacity_type)
    workload_classes: tuple[WorkloadClass, ...] = ()
    label_keys: tuple[str, ...] = ()
    """Keys of labels that rules and prices name, for sources that spell them otherwise."""
    observed_at: datetime | None = None
    """When lists were read; None: the newest time found in them."""
    mapping: Path | None = None
    """For tables: the file that says what the columns mean."""
    metrics_folders: frozenset[Path] = frozenset()
    """Folders whose metrics another source of the cluster reads."""
    now: datetime | None = None
    """Until when a server is read; None: until the present."""
    recent_days: int = 3
    """How far back a server is asked that keeps more than anyone wants at first."""
    spools: Mapping[Path, Memory] = field(default_factory=dict)
    """Spools of which the lake has some segments already."""


def settings(config: Config, cluster: str, sources: Iterable[Any] = ()) -> Settings:
    """The settings for one cluster of a configuration, and for sources that are read together."""
    return Settings(
        cluster=cluster,
        zone=config.lake.accounting_zone,
        accelerators={a.resource: canonical(a.gpu_model) for a in config.accelerators},
        units_per_gpu={a.resource: a.units_per_gpu for a in config.accelerators},
        user_keys=tuple(config.annotations.user),
        account_keys=tuple(config.annotations.account),
        submitted_keys=tuple(config.annotations.submitted_at),
        capacity_type_keys=tuple(config.labels.capacity_type),
        workload_classes=tuple(config.workload_classes),
        metrics_folders=frozenset(s.path for s in sources if s.kind == "prometheus" and s.path),
        recent_days=config.policies.provisional_days,
        label_keys=tuple(_label_keys(config)),
    )


def _label_keys(config: Config) -> Iterator[str]:
    for rule in config.team_rules:
        yield from (*(rule.pod_label or {}), *(rule.namespace_label or {}))
    for price in config.prices:
        yield from price.node_label or {}


class Version(NamedTuple):
    """An object as it was observed at an instant (microseconds since 1970)."""

    sequence: int
    observed: int
    day: date
    change: str
    ref: str
    object: dict[str, Any]
    above: tuple[tuple[str, str, str | None], ...] = ()
    """Owners above the controlling one (kind, name, uid), where the source tells them beside it."""

    def columns(self, settings: Settings) -> dict[str, Any]:
        """The columns that every table of versions begins with."""
        return {
            "cluster_name": settings.cluster,
            "day_on": self.day,
            "sequence_number": self.sequence,
            "observed_at": self.observed,
            "change_name": self.change,
            "source_ref": self.ref,
            "version_name": self._version(),
        }

    def _version(self) -> str | None:
        meta = self.object.get("metadata")
        told = meta.get("resourceVersion") if isinstance(meta, dict) else None
        return str(told) if told else None
