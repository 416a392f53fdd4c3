"""What the columns of a tabular trace mean: names, units, times, and how team or queue follow.

How such a table is read belongs to `collectors/table.py`.
"""

from datetime import date, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from models.config import read_yaml
from models.config_errors import ConfigError, described
from models.parts import Moment, Part

TIME_MICROS = {
    "ns": 0.001,
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
}
"""Unit of a time -> microseconds."""
AMOUNTS = {
    "gpu": 1000,
    "milli_gpu": 1,
    "core": 1000,
    "milli": 1,
    "mib": 1,
    "gib": 1024,
    "kib": 1 / 1024,
    "bytes": 1 / 1024**2,
    "mb": 1e6 / 1024**2,
    "gb": 1e9 / 1024**2,
}
"""Unit of an amount -> what we keep: thousandths of a GPU or core, or MiB."""


class Value(Part):
    """Where a field comes from: a column, a constant, or a text with `{column}` in it."""

    column: str | None = None
    constant: str | int | None = None
    template: str | None = None
    unit: str | None = None
    values: dict[str, str] = Field(default_factory=dict)
    """What to put for a value of the column; others stay as they are, or become `default`."""
    default: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _short(cls, given: Any) -> Any:
        return {"column": given} if isinstance(given, str) else given

    @model_validator(mode="after")
    def _sound(self) -> "Value":
        if [self.column, self.constant, self.template].count(None) != 2:
            raise ValueError("needs one of column, constant, template")
        return self

    @field_validator("unit")
    @classmethod
    def _known(cls, unit: str | None) -> str | None:
        known = [*TIME_MICROS, *AMOUNTS]
        if unit is not None and unit not in known:
            raise ValueError(f"is no unit; known: {', '.join(known)}")
        return unit


class Times(Part):
    """How the tables write time: numbers since an epoch, or clock times of a zone."""

    unit: Literal["ns", "us", "ms", "s", "min", "h"] = "s"
    epoch: Moment | None = None
    zone: str | None = None
    format: str | None = None

    @model_validator(mode="after")
    def _sound(self) -> "Times":
        if (self.epoch is None) == (self.zone is None):
            raise ValueError("needs epoch (for numbers) or zone (for clock times), one of the two")
        return self


class Known(Part):
    """The known window of the trace, written as its times are."""

    begins: int | float | str | datetime | date = Field(alias="from")
    ends: int | float | str | datetime | date = Field(alias="to")


class NodeColumns(Part):
    """The fields of a node."""

    id: Value
    name: Value | None = None
    gpu_count: Value
    gpu_model: Value | None = None
    capacity_type: Value | None = None
    cpu: Value | None = None
    memory: Value | None = None


class PodColumns(Part):
    """The fields of a pod, task or job."""

    id: Value
    name: Value | None = None
    namespace: Value = Value(constant="default")
    created: Value
    bound: Value | None = None
    started: Value | None = None
    ended: Value | None = None
    node: Value | None = None
    phase: Value | None = None
    gpu_count: Value
    gpu_milli: Value | None = None
    """Of each GPU, in thousandths; without it whole ones."""
    cpu: Value | None = None
    asked_model: Value | None = None
    team: Value | None = None
    queue: Value | None = None
    user: Value | None = None
    account: Value | None = None
    workload_kind: Value = Value(constant="Pod")
    workload_name: Value | None = None
    workload_class: Value | None = None
    labels: dict[str, Value] = Field(default_factory=dict)


class NodeTable(Part):
    """The table of nodes."""

    file: Path
    columns: NodeColumns


class PodTable(Part):
    """The table of pods."""

    file: Path
    columns: PodColumns


TIME_FIELDS = frozenset(("created", "bound", "started", "ended"))


class Mapping(Part):
    """The whole mapping file."""

    time: Times
    window: Known
    nulls: tuple[str, ...] = ("", "nan", "NaN", "null", "NULL", "None", "N/A")
    separator: str = Field(default=",", min_length=1, max_length=1)
    nodes: NodeTable | None = None
    pods: PodTable

    def faults(self) -> list[str]:
        """Units that do not fit their field."""
        found = []
        for key, table in (("nodes", self.nodes), ("pods", self.pods)):
            for name, value in table.columns if table else ():
                units = TIME_MICROS if name in TIME_FIELDS else AMOUNTS
                if isinstance(value, Value) and value.unit is not None and value.unit not in units:
                    fitting = ", ".join(units)
                    found.append(
                        f"{key}.columns.{name}.unit: {value.unit} does not fit; fitting: {fitting}"
                    )
        return found


def load(path: Path) -> Mapping:
    """The mapping in a file; ConfigError names the file, the key and what is wrong."""
    content = read_yaml(path)
    if not isinstance(content, dict):
        raise ConfigError(path, ["must be a mapping of keys"])
    try:
        mapping = Mapping.model_validate(content)
    except ValidationError as error:
        raise ConfigError(path, described(error, Mapping)) from None
    if faults := mapping.faults():
        raise ConfigError(path, faults)
    return mapping
