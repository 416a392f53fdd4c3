"""How much of what is measured is stored: of which clusters, since when, how often, which fields.

A size of fleet that is not named here has all of it. What is measured is in `metrics`.
"""

from dataclasses import dataclass

from simulator.clock import DAY, SECOND
from simulator.world import World


@dataclass(frozen=True)
class Scope:
    """What a Prometheus has of the clusters; as it stands, all."""

    clusters: int | None = None
    """The first so many of them; the others are not measured."""
    last: int | None = None
    """Seconds up to the end of the record; a younger Prometheus has no more."""
    step: int = 30
    """Seconds between two scrapes of DCGM, which itself collects every 30."""
    fields: tuple[str, ...] | None = None
    """Of DCGM, by their names in `dcgm`."""
    is_source: bool = False
    """The fleet's configuration reads it: answers of a Prometheus, without kube-state-metrics, for
    there is a recorder. Else it is text that a Prometheus loads."""

    def since(self, world: World) -> int:
        """The second from which on there is something."""
        begin, end = world.begin // SECOND, world.end // SECOND
        return begin if self.last is None else max(begin, end - self.last)


WHOLE = Scope()
FIELDS = (
    *("util", "used", "power", "xid", "gr", "sm", "tensor", "dram"),
    *("rx", "tx", "nvlink", "temp", "throttle", "remapped"),
)
SCOPES = {"demo": Scope(1, DAY // SECOND // 2, 60, FIELDS, is_source=True)}
"""Of a size of fleet. A demo must be there in half a minute."""
