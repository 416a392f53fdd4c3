"""The families of metrics that are read of a Prometheus: what is asked for, and with which limits.

Which of them a source has is discovered by `metrics`; what they mean belongs to each parser.
"""

from collections.abc import Collection
from typing import NamedTuple

from collectors import cadvisor, dcgm_names, kube_state_metrics
from collectors.prometheus_selectors import Group, Matcher, any_of

DCGM, KUBE_STATE, CADVISOR = "dcgm", "kube_state", "cadvisor"


class Part(NamedTuple):
    """Metrics that are asked for together, of all their series or of some."""

    metrics: tuple[str, ...]
    matchers: tuple[Matcher, ...] = ()


def _by_matchers(metrics: dict[str, tuple[Matcher, ...]]) -> tuple[Part, ...]:
    """Those with the same conditions are asked for together."""
    found: dict[tuple[Matcher, ...], list[str]] = {}
    for metric, matchers in metrics.items():
        found.setdefault(matchers, []).append(metric)
    return tuple(Part(tuple(names), matchers) for matchers, names in found.items())


FAMILIES: dict[str, tuple[Part, ...]] = {
    DCGM: (Part(dcgm_names.METRICS),),
    KUBE_STATE: _by_matchers(kube_state_metrics.METRICS),
    CADVISOR: (
        Part(
            tuple(cadvisor.OF_CONTAINERS),
            (Matcher("container", "!=", ""), Matcher("container", "!=", cadvisor.PAUSE)),
        ),
        Part(tuple(cadvisor.OF_INTERFACES), (Matcher("interface", "!=", ""),)),
    ),
}
"""Name of a family -> what is asked for."""


def asked(family: str, found: Collection[str]) -> tuple[str, ...]:
    """The metrics of a family that a source has, in the family's order."""
    names = set(found)
    return tuple(name for part in FAMILIES[family] for name in part.metrics if name in names)


def groups(family: str, found: Collection[str]) -> list[Group]:
    """The questions that bring them."""
    names = set(found)
    return [
        Group((any_of("__name__", [m for m in part.metrics if m in names]), *part.matchers))
        for part in FAMILIES[family]
        if names.intersection(part.metrics)
    ]
