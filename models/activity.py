"""When a GPU counts as active, idle or stalled: the rules, each default with its reason.

They hold per GPU model and workload class; a rule that names neither is everyone's. Which samples
they are put to, and how stretches are made, belongs to `sql/core/gpu_states.sql`.
"""

from typing import Any, Literal

from pydantic import Field

from models.gpus import canonical
from models.parts import Part
from models.table import Column, Kind, Table

ACTIVITIES = ("active", "idle", "stalled", "broken", "unobserved")
ANY = "*"

REASONS: dict[str, str] = {
    "idle_least_seconds": "A checkpoint or an evaluation's set-up is shorter than 5 minutes.",
    "idle_most_sm_ratio": "Housekeeping kernels and rounding stay under 1 % of the SMs.",
    "idle_most_utilisation_ratio": "GPU_UTIL counts any kernel at all, so only 0 is quiet.",
    "stalled_least_seconds": "A collective waits for a slow peer for minutes, not for 10.",
    "stalled_least_utilisation_ratio": "A spinning kernel is always there: 95 % leaves room for "
    "the sampling.",
    "stalled_most_tensor_ratio": "No matrix is multiplied; 2 % is the noise of multiplexing.",
    "stalled_most_dram_ratio": "No data is moved; a flag that is polled is under 2 %.",
    "stalled_most_power_ratio": "Of the way from rest with a context to the limit: spinning costs "
    "a few per cent, work from a tenth on.",
    "episode_least_seconds": "Half an hour is longer than any pause that a run plans.",
    "episode_most_active_ratio": "A heartbeat of seconds does not make an idle GPU a used one.",
    "input_least_throttled_ratio": "Throttled in a quarter of its periods a program is short of "
    "CPU.",
    "input_least_bytes_per_second": "50 MB/s are read by who feeds a GPU, not by housekeeping.",
    "notice_seconds": "An hour: nobody is told of what ends by itself.",
}
"""Why each default is what it is."""


class ActivityRule(Part):
    """Thresholds for a GPU model, a workload class, both or all; what is left out is everyone's."""

    gpu_model: str | None = None
    workload_class: (
        Literal["training", "inference", "interactive", "batch", "system", "unknown"] | None
    ) = None
    idle_least_seconds: int | None = Field(default=None, ge=0)
    idle_most_sm_ratio: float | None = Field(default=None, ge=0, le=1)
    idle_most_utilisation_ratio: float | None = Field(default=None, ge=0, le=1)
    stalled_least_seconds: int | None = Field(default=None, ge=0)
    stalled_least_utilisation_ratio: float | None = Field(default=None, ge=0, le=1)
    stalled_most_tensor_ratio: float | None = Field(default=None, ge=0, le=1)
    stalled_most_dram_ratio: float | None = Field(default=None, ge=0, le=1)
    stalled_most_power_ratio: float | None = Field(default=None, ge=0, le=1)
    episode_least_seconds: int | None = Field(default=None, ge=0)
    episode_most_active_ratio: float | None = Field(default=None, ge=0, le=1)
    input_least_throttled_ratio: float | None = Field(default=None, ge=0, le=1)
    input_least_bytes_per_second: float | None = Field(default=None, ge=0)
    notice_seconds: int | None = Field(default=None, ge=0)

    def scope(self) -> tuple[str, str]:
        """The model and the class that it is for, each or any."""
        return canonical(self.gpu_model) if self.gpu_model else ANY, self.workload_class or ANY


DEFAULTS: dict[str, int | float] = {
    "idle_least_seconds": 300,
    "idle_most_sm_ratio": 0.01,
    "idle_most_utilisation_ratio": 0.0,
    "stalled_least_seconds": 600,
    "stalled_least_utilisation_ratio": 0.95,
    "stalled_most_tensor_ratio": 0.02,
    "stalled_most_dram_ratio": 0.02,
    "stalled_most_power_ratio": 0.1,
    "episode_least_seconds": 1800,
    "episode_most_active_ratio": 0.01,
    "input_least_throttled_ratio": 0.25,
    "input_least_bytes_per_second": 50e6,
    "notice_seconds": 3600,
}


def _column(name: str) -> Column:
    kind = Kind.COUNT if name.endswith("_seconds") else Kind.RATIO
    return Column(name, kind, REASONS[name], minimum=0)


ACTIVITY_RULES = Table(
    name="raw.activity_rules",
    doc="The thresholds of idle and stalled; the row that fits best counts: model and class, "
    "model, class, all.",
    grain=("gpu_model_name", "workload_class"),
    is_daily=False,
    columns=(
        Column("gpu_model_name", Kind.TEXT, "Canonical GPU model, or * for all."),
        Column("workload_class", Kind.TEXT, "Class of work, or * for all."),
        *map(_column, DEFAULTS),
    ),
)


def rows(rules: tuple[ActivityRule, ...]) -> list[dict[str, Any]]:
    """The rules as rows of raw.activity_rules, each whole: what it leaves out comes from above."""
    told = {rule.scope(): rule for rule in rules}
    found = []
    for model, work in sorted({(ANY, ANY), *told}):
        row: dict[str, Any] = {"gpu_model_name": model, "workload_class": work}
        above = [told.get(key) for key in ((ANY, ANY), (ANY, work), (model, ANY), (model, work))]
        for name, default in DEFAULTS.items():
            given = [getattr(rule, name) for rule in above if rule]
            row[name] = next((v for v in reversed(given) if v is not None), default)
        found.append(row)
    return found
