"""The configuration: the one YAML file, checked, every unknown key refused with the nearest one.

The rows of the price book and the rules live in `pricing` and `rules`, how a fault is worded in
`config_errors`, what becomes of it as tables in `book`. No secrets: a key that needs one will hold
a reference to it.
"""

import os
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo, available_timezones

import yaml
from pydantic import Field, ValidationError, field_validator

from models.activity import ActivityRule
from models.config_errors import ConfigError, described, nearest
from models.kubernetes import KubernetesSource
from models.mail import MailServer, ReportPlan, report_faults
from models.parts import Beside, Currency, Moment, Part, instant
from models.pricing import Price, Rate, currency_faults, price_conflicts
from models.prometheus import PrometheusSource
from models.rules import Team, TeamRule, WorkloadClass, rule_faults, team_faults

VARIABLE, FILE = "GPULEDGER_CONFIG", "gpuledger.yaml"
NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"


class Lake(Part):
    """What is fixed when the lake is made."""

    accounting_zone: str = "UTC"
    currency: Currency = "USD"

    @field_validator("accounting_zone")
    @classmethod
    def _known_zone(cls, zone: str) -> str:
        known = available_timezones()
        if zone not in known:
            raise ValueError(f"is no IANA time zone{nearest(zone, known)}")
        return zone


class TableSource(Part):
    """A trace as tables, and the file that says what its columns mean."""

    kind: Literal["table"]
    path: Beside
    mapping: Beside


Source = Annotated[KubernetesSource | TableSource | PrometheusSource, Field(discriminator="kind")]


class Cluster(Part):
    """A cluster and where it is read from."""

    name: str = Field(pattern=NAME)
    sources: tuple[Source, ...] = ()

    @field_validator("sources")
    @classmethod
    def _one_prometheus(cls, sources: tuple[Source, ...]) -> tuple[Source, ...]:
        if sum(source.kind == "prometheus" for source in sources) > 1:
            raise ValueError(
                "more than one prometheus: give the one that has all (a Thanos, a federation)"
            )
        return sources


class FleetRow(Part):
    """GPUs that are owned or paid for; rows of one model that hold at a time add up."""

    cluster: str
    gpu_model: str = Field(min_length=1)
    count: int = Field(ge=0)
    begins: Moment = Field(alias="from")
    ends: Moment | None = Field(default=None, alias="to")


class Annotations(Part):
    """Keys of annotations or labels that a platform writes, in order of preference."""

    user: tuple[str, ...] = ()
    account: tuple[str, ...] = ()
    submitted_at: tuple[str, ...] = ()


class Labels(Part):
    """Keys of node labels, in order of preference."""

    capacity_type: tuple[str, ...] = (
        "karpenter.sh/capacity-type",
        "eks.amazonaws.com/capacityType",
        "cloud.google.com/gke-provisioning",
    )


class Accelerator(Part):
    """An extended resource, or a driver of dynamic allocation, that is GPUs, or equal parts."""

    resource: str = Field(pattern=r"^[^/\s]+[/.][^/\s]+$")
    gpu_model: str = Field(min_length=1)
    units_per_gpu: int = Field(default=1, ge=1, le=10_000)


class Policies(Part):
    """Settings of the accounting."""

    provisional_days: int = Field(default=3, ge=0)
    loading_max_seconds: int = Field(default=1800, ge=0)
    stale_reservation_seconds: int = Field(default=600, ge=0)
    gang_partial_seconds: int = Field(default=120, ge=0)
    gang_deadlock_seconds: int = Field(default=120, ge=0)
    gang_livelock_count: int = Field(default=3, ge=1)
    member_lost_seconds: int = Field(default=120, ge=0)
    rendezvous_wait_seconds: int = Field(default=300, ge=0)
    slow_image_pull_seconds: int = Field(default=300, ge=0)
    crash_loop_seconds: int = Field(default=300, ge=0)
    stuck_terminating_seconds: int = Field(default=600, ge=0)
    gone_node_seconds: int = Field(default=30, ge=0)
    raw_retention_days: int = Field(default=90, ge=1)


class Import(Part):
    """How strict an import is."""

    max_rejected_ratio: float = Field(default=0.01, ge=0, le=1)


class Config(Part):
    """The whole file."""

    lake: Lake = Lake()
    clusters: tuple[Cluster, ...] = ()
    teams: tuple[Team, ...] = ()
    team_rules: tuple[TeamRule, ...] = ()
    prices: tuple[Price, ...] = ()
    rates: tuple[Rate, ...] = ()
    fleet: tuple[FleetRow, ...] = ()
    annotations: Annotations = Annotations()
    labels: Labels = Labels()
    workload_classes: tuple[WorkloadClass, ...] = ()
    activity_rules: tuple[ActivityRule, ...] = ()
    accelerators: tuple[Accelerator, ...] = ()
    policies: Policies = Policies()
    imports: Import = Field(default=Import(), alias="import")
    mail: MailServer | None = None
    reports: tuple[ReportPlan, ...] = ()

    def instant(self, moment: date | datetime) -> datetime:
        """A moment of the file as an instant in UTC."""
        return instant(moment, self.lake.accounting_zone)

    def cluster(self, name: str) -> Cluster:
        """The cluster of that name; KeyError where there is none."""
        for cluster in self.clusters:
            if cluster.name == name:
                return cluster
        raise KeyError(name)

    def faults(self) -> list[str]:
        """What is wrong between the parts, each part for itself being sound."""
        zone = ZoneInfo(self.lake.accounting_zone).key
        return [
            *_twice("clusters", [c.name for c in self.clusters]),
            *_twice("accelerators", [a.resource for a in self.accelerators]),
            *_twice("activity_rules", [" and ".join(rule.scope()) for rule in self.activity_rules]),
            *team_faults(self.teams),
            *rule_faults(self.team_rules, {team.name for team in self.teams}, zone),
            *price_conflicts(self.prices, zone),
            *currency_faults(self.prices, self.rates, self.lake.currency, zone),
            *self._stray_clusters(),
            *self._fleet_faults(),
            *report_faults(self.reports, self.mail, [team.name for team in self.teams]),
        ]

    def _stray_clusters(self) -> list[str]:
        known = [cluster.name for cluster in self.clusters]
        return [
            f"{key}[{place}].cluster: {row.cluster} is no cluster{nearest(row.cluster, known)}"
            for key, rows in (("prices", self.prices), ("fleet", self.fleet))
            for place, row in enumerate(rows)
            if known and row.cluster is not None and row.cluster not in known
        ]

    def _fleet_faults(self) -> list[str]:
        for place, row in enumerate(self.fleet):
            if row.ends is not None and self.instant(row.ends) <= self.instant(row.begins):
                return [f"fleet[{place}].to: is not after from"]
        keys = [f"{r.cluster} {r.gpu_model.lower()} from {r.begins}" for r in self.fleet]
        return _twice("fleet", keys)


def _twice(key: str, names: list[str]) -> list[str]:
    firsts = {}
    return [
        f"{key}[{place}]: {name} is there already, as {key}[{firsts[name]}]"
        for place, name in enumerate(names)
        if firsts.setdefault(name, place) != place
    ]


BOOLEAN, TEXT = "tag:yaml.org,2002:bool", "tag:yaml.org,2002:str"


class _Loader(yaml.SafeLoader):
    """YAML in which a key is what is written (`on` too), and one given twice is a fault."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"the key {key.value} is given twice", problem_mark=key.start_mark
                )
            seen.add(key.value)
            if key.tag == BOOLEAN:
                key.tag = TEXT
        return super().construct_mapping(node, deep)


def read_yaml(path: Path) -> Any:
    """What a YAML file holds; a ConfigError that names the file where it cannot be read."""
    try:
        return yaml.load(path.read_text(encoding="utf-8"), _Loader)
    except OSError as error:
        raise ConfigError(path, [f"cannot be read: {error.strerror}"]) from None
    except UnicodeDecodeError:
        raise ConfigError(path, ["is not UTF-8 text"]) from None
    except yaml.YAMLError as error:
        raise ConfigError(path, ["is not valid YAML: " + " ".join(str(error).split())]) from None


def load(path: Path) -> Config:
    """The configuration in a file; ConfigError names the file, the key and what is wrong."""
    path = path.absolute()
    content = read_yaml(path)
    if not isinstance(content, dict | None):
        raise ConfigError(path, ["must be a mapping of keys, as `gpuledger init` writes it"])
    try:
        config = Config.model_validate(content or {}, context={"folder": path.parent})
    except ValidationError as error:
        raise ConfigError(path, described(error, Config)) from None
    if faults := config.faults():
        raise ConfigError(path, faults)
    return config


def search(start: Path, told: Path | None = None) -> Path:
    """The file to use: the one told, else GPULEDGER_CONFIG, else gpuledger.yaml here or above."""
    if named := told or os.environ.get(VARIABLE):
        return Path(named).expanduser().absolute()
    for folder in (start.absolute(), *start.absolute().parents):
        if (folder / FILE).is_file():
            return folder / FILE
    raise ConfigError(start / FILE, [f"is not there, nor above: give --config or set {VARIABLE}"])
