"""Workloads that exist to be measured: each pathology of a GPU happens at least once.

What each of them does is in `casting`; what other workloads do is cast there by chance.
"""

from collections.abc import Callable
from dataclasses import dataclass

from simulator.controllers import BatchJob, GangJob, Platform
from simulator.nodes import GPU
from simulator.pods import Plan
from simulator.recipes import Recipe

HOUR = 3600.0
SINGLE = (
    # when, as a part of the recorded time; name; the part it plays; GPUs; hours
    (0.10, "forgotten", "never_worked", 1, 2.4),
    (0.13, "ticking", "heartbeat", 1, 6.5),
    (0.17, "slow-reader", "waiting_for_input", 1, 2.6),
    (0.22, "finished", "work_ended", 1, 2.6),
    (0.27, "pcie-only", "nvlink_silent", 2, 1.6),
    (0.33, "lab-alone", "interactive", 1, 7.5),
    (0.43, "half-used", "over_sized", 4, 2.0),
    (0.52, "segfaulted", "broken", 1, 2.5),
    (0.57, "throttled", "waiting_for_input", 1, 2.6),
    (0.66, "spinning", "stall_spin", 2, 1.7),
    (0.71, "hanging", "stall_collective", 2, 1.6),
)


@dataclass(eq=False)
class Players:
    """The measured workloads of one cluster."""

    platform: Platform

    def plan(self, when: Callable[[float], int]) -> None:
        """Ask the clock for all of them."""
        clock = self.platform.world.clock
        clock.at(when(0.05), self._gang, "peers", "waiting_for_peers", 2, 2.8)
        for part, name, played, units, hours in SINGLE:
            clock.at(when(part), self._single, name, played, units, hours)

    def _recipe(self, name: str, played: str, units: int, hours: float) -> Recipe:
        return Recipe(
            name,
            "notebooks-lab" if played == "interactive" else "vision",
            "owned",
            GPU,
            units,
            Plan(run=hours * HOUR, part=played),
            priority=900,
            cpu=8 if name == "throttled" else 0,
        )

    def _gang(self, name: str, played: str, members: int, hours: float) -> None:
        recipe = self._recipe(name, played, 1, hours)
        GangJob(self.platform, recipe, members, "loose", hours * HOUR).start()

    def _single(self, name: str, played: str, units: int, hours: float) -> None:
        BatchJob(self.platform, self._recipe(name, played, units, hours)).start()
