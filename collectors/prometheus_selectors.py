"""Which series are meant: matchers, written as PromQL or applied to labels that we hold.

Which stretch of time of them is asked for belongs to `prometheus_segments`.
"""

import json
import re
from collections.abc import Mapping
from typing import NamedTuple

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def quoted(text: str) -> str:
    """A string of PromQL: Go reads JSON's escapes, but pairs of surrogates it does not."""
    return json.dumps(text, ensure_ascii=False)


class Matcher(NamedTuple):
    """A condition on one label; a series without the label has it empty."""

    label: str
    sign: str
    """One of `=`, `!=`, `=~`, `!~`; the last two match the whole value."""
    value: str

    def __str__(self) -> str:
        label = self.label if _PLAIN.fullmatch(self.label) else quoted(self.label)
        return f"{label}{self.sign}{quoted(self.value)}"

    def accepts(self, labels: Mapping[str, str]) -> bool:
        """Whether a series with these labels meets it."""
        value = labels.get(self.label, "")
        if self.sign.endswith("~"):
            is_met = re.fullmatch(self.value, value, re.DOTALL) is not None
        else:
            is_met = value == self.value
        return is_met != self.sign.startswith("!")


class Group(NamedTuple):
    """Series that are asked for together."""

    matchers: tuple[Matcher, ...]

    @classmethod
    def of(cls, metric: str, *matchers: Matcher) -> "Group":
        """The series of one metric."""
        return cls((Matcher("__name__", "=", metric), *matchers))

    @classmethod
    def named(cls, metrics: list[str]) -> "Group":
        """The series of several metrics."""
        return cls((any_of("__name__", metrics),))

    def __str__(self) -> str:
        return "{" + ",".join(map(str, self.matchers)) + "}"

    def and_(self, matcher: Matcher) -> "Group":
        """Those of them that meet one more condition."""
        return Group((*self.matchers, matcher))

    def accepts(self, labels: Mapping[str, str]) -> bool:
        """Whether a series with these labels belongs to it."""
        return all(matcher.accepts(labels) for matcher in self.matchers)

    def halves(self, label: str, values: list[str]) -> tuple["Group", "Group"]:
        """Two groups that share no series and have all: the second takes what has no such label."""
        first = any_of(label, sorted(values)[: (len(values) + 1) // 2])
        return self.and_(first), self.and_(first._replace(sign="!~"))


def any_of(label: str, values: list[str]) -> Matcher:
    """The label has one of these values."""
    return Matcher(label, "=~", "|".join(map(re.escape, values)))
