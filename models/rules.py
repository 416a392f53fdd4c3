"""Teams, the rules that say which team a pod belongs to, and those for its class of work.

They are matched in `sql/core/pods.sql` and `collectors/attribution.py`; here is what they say.
"""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Literal, NamedTuple

from pydantic import Field, field_validator, model_validator

from models.config_errors import nearest
from models.parts import Moment, Part, instant

FIELDS = ("pod_label", "owner_name", "namespace_label", "namespace", "queue", "account", "user")
WILDCARDS = frozenset("*?[")


class Team(Part):
    """A team: who pays."""

    name: str = Field(min_length=1)
    parent: str | None = None
    cost_centre: str | None = None
    contacts: tuple[str, ...] = ()

    @field_validator("name")
    @classmethod
    def _free(cls, name: str) -> str:
        if name.startswith("__"):
            raise ValueError("names in double underscores are reserved holders")
        return name


class Condition(NamedTuple):
    """One thing that a rule looks at, and the glob that it must match."""

    field: str
    key: str | None
    pattern: str


class TeamRule(Part):
    """Which pods are a team's; all conditions must match."""

    team: str = Field(min_length=1)
    pod_label: dict[str, str] | None = None
    owner_name: str | None = None
    namespace_label: dict[str, str] | None = None
    namespace: str | None = None
    queue: str | None = None
    account: str | None = None
    user: str | None = None
    valid_from: Moment | None = None
    valid_to: Moment | None = None

    @model_validator(mode="after")
    def _sound(self) -> "TeamRule":
        if not self.conditions():
            raise ValueError(f"needs a condition: {', '.join(FIELDS)}")
        keys = [c.key for c in self.conditions() if c.key is not None]
        if any('"' in key or "\\" in key for key in keys):
            raise ValueError("a label's key holds no quotes or backslashes")
        globs = sum(is_glob(c.pattern) for c in self.conditions())
        if "{value}" in self.team and globs > 1:
            raise ValueError("{value} is not clear: more than one condition has a wildcard")
        if self.team.startswith("__"):
            raise ValueError("team: names in double underscores are reserved holders")
        return self

    def conditions(self) -> list[Condition]:
        """Its conditions; the one that `{value}` stands for comes first."""
        found = []
        for name in FIELDS:
            told = getattr(self, name)
            if isinstance(told, dict):
                found += [Condition(name, key, pattern) for key, pattern in told.items()]
            elif told is not None:
                found.append(Condition(name, None, told))
        return sorted(found, key=lambda c: not is_glob(c.pattern))


class WorkloadClass(Part):
    """Overrides the class of what it matches; all conditions must match (globs)."""

    class_name: Literal["training", "inference", "interactive", "batch", "system", "unknown"] = (
        Field(alias="class")
    )
    namespace: str | None = None
    kind: str | None = None
    name: str | None = None
    pod_label: dict[str, str] | None = None

    @model_validator(mode="after")
    def _sound(self) -> "WorkloadClass":
        if not (self.namespace or self.kind or self.name or self.pod_label):
            raise ValueError("needs a condition: namespace, kind, name, pod_label")
        return self

    def matches(self, namespace: str, kind: str, name: str, labels: dict[str, str]) -> bool:
        """Whether a pod of that workload is meant."""
        return (
            fnmatchcase(namespace, self.namespace or "*")
            and fnmatchcase(kind, self.kind or "*")
            and fnmatchcase(name, self.name or "*")
            and all(
                key in labels and fnmatchcase(labels[key], pattern)
                for key, pattern in (self.pod_label or {}).items()
            )
        )


def is_glob(pattern: str) -> bool:
    """Whether a pattern matches more than itself."""
    return bool(WILDCARDS & set(pattern))


def _implies(later: Condition, earlier: Condition) -> bool:
    """Whether whatever matches the later condition matches the earlier one."""
    if (later.field, later.key) != (earlier.field, earlier.key):
        return False
    if earlier.pattern in (later.pattern, "*"):
        return True
    return not is_glob(later.pattern) and fnmatchcase(later.pattern, earlier.pattern)


def rule_faults(rules: Sequence[TeamRule], teams: set[str], zone: str) -> list[str]:
    """Rules that name no team, whose dates are no range, or that an earlier rule hides."""
    faults = []
    for place, rule in enumerate(rules):
        if teams and "{value}" not in rule.team and rule.team not in teams:
            faults.append(
                f"team_rules[{place}].team: {rule.team} is no team{nearest(rule.team, teams)}"
            )
        begin, end = rule.valid_from, rule.valid_to
        if begin is not None and end is not None and instant(end, zone) <= instant(begin, zone):
            faults.append(f"team_rules[{place}].valid_to: is not after valid_from")
        for before, earlier in enumerate(rules[:place]):
            if earlier.valid_from is None and earlier.valid_to is None and _hides(earlier, rule):
                faults.append(
                    f"team_rules[{place}]: rule {place + 1} can never match, because rule "
                    f"{before + 1} (team_rules[{before}]) matches all that it does"
                )
                break
    return faults


def _hides(earlier: TeamRule, later: TeamRule) -> bool:
    mine = later.conditions()
    return all(any(_implies(m, theirs) for m in mine) for theirs in earlier.conditions())


def team_faults(teams: Sequence[Team]) -> list[str]:
    """Teams given twice, parents that are no team, and teams that are their own ancestor."""
    faults = []
    parents = {team.name: team.parent for team in teams}
    for place, team in enumerate(teams):
        if any(other.name == team.name for other in teams[:place]):
            faults.append(f"teams[{place}]: {team.name} is there already")
        if team.parent is not None and team.parent not in parents:
            hint = nearest(team.parent, parents)
            faults.append(f"teams[{place}].parent: {team.parent} is no team{hint}")
        trail, above = [team.name], team.parent
        while above is not None and above in parents and above not in trail:
            trail.append(above)
            above = parents[above]
        if above is not None and above == team.name:
            faults.append(f"teams[{place}].parent: a circle: {' > '.join([*trail, above])}")
    return faults
