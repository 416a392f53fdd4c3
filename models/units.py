"""The units that a column's name may end in, each with how it is labelled and shown.

A new unit is one line here. What a column is for does not belong here (see the contracts).
"""

from typing import NamedTuple


class Unit(NamedTuple):
    """How a quantity with this suffix is labelled and shown."""

    label: str
    number_format: str


UNITS: dict[str, Unit] = {
    "_gpu_seconds": Unit("GPU-seconds", "%,.6f"),
    "_micro_gpu": Unit("micro-GPU", "%,d"),
    "_seconds": Unit("seconds", "%,d"),
    "_micro_cost_per_gpu_hour": Unit("micro-currency per GPU-hour", "%,d"),
    "_cost": Unit("currency", "%,.2f"),
    "_ratio": Unit("share", "percent"),
    "_count": Unit("count", "%,d"),
    "_mib": Unit("MiB", "%,d"),
    "_bytes_per_second": Unit("bytes per second", "%,.0f"),
    "_bytes": Unit("bytes", "%,d"),
    "_joules": Unit("J", "%,.0f"),
    "_mhz": Unit("MHz", "%,d"),
    "_celsius": Unit("deg C", "%,d"),
    "_watts": Unit("W", "%,.0f"),
    "_number": Unit("number", "%d"),
}


def unit_of(name: str) -> Unit | None:
    """The unit that a column's name ends in, longest suffix first; None where it has none."""
    for suffix in sorted(UNITS, key=len, reverse=True):
        if name.endswith(suffix):
            return UNITS[suffix]
    return None
