"""What a report rests on: the snapshot, how far each cluster is known, and what is stale in it.

All of it is read at the snapshot, also which runs had failed by then: a report that is printed
again years later says the same. The figures themselves are in `report_figures`.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lake.errors import LakeError
from lake.home import Home
from lake.read import Door, Published
from models.figures import duration, instant, percent, ratio
from pipelines.report import Period, clean

LAKE = "select accounting_zone_name, currency_name from meta.lake"
COVERAGE = """
select
    cluster_name,
    max(known_until_at) filter (where day_on < $end_on) as known_until_at,
    sum(known_seconds) filter (where day_on >= $begin_on and day_on < $end_on) as known_seconds,
    sum(known_seconds) filter (where day_on >= $before_on and day_on < $begin_on)
        as before_seconds,
    sum(installed_gpu_seconds) filter (where day_on >= $begin_on and day_on < $end_on)
        as installed_gpu_seconds,
    sum(unrecorded_gpu_seconds) filter (where day_on >= $begin_on and day_on < $end_on)
        as unrecorded_gpu_seconds
from mart.fleet_coverage
group by cluster_name
-- A cluster that ended long ago is left out; one that is still asked for its days is not.
having
    min(day_on) < $end_on
    and (
        max(day_on) >= $before_on
        or cluster_name in (
            select cluster_name from meta.runs where end_on + interval 1 day >= ended_at::date
        )
    )
order by cluster_name
"""
STALE = """
select cluster_name, stale_since_at, error_text
from meta.runs where not is_published order by cluster_name
"""
WHOLE = 0.995
"""Of a week known so far it is compared with another: what is missing is said all the same."""
ENOUGH = 0.95
"""Below this share of what is recorded a report warns."""


@dataclass(frozen=True)
class Basis:
    """A snapshot, the clusters in it that know of the period or of the one before, and its runs."""

    home: Home
    snapshot: Published
    period: Period
    currency: str
    clusters: tuple[dict[str, Any], ...]
    stale: tuple[tuple[str, datetime, str | None], ...]

    @property
    def is_published(self) -> bool:
        """Whether anything of the period is."""
        return any(cluster["known_seconds"] for cluster in self.clusters)

    @property
    def recorded(self) -> float | None:
        """The share of the installed time of which it is known who held it."""
        installed = sum(c["installed_gpu_seconds"] or 0 for c in self.clusters)
        unrecorded = sum(c["unrecorded_gpu_seconds"] or 0 for c in self.clusters)
        return ratio(installed - unrecorded, installed)

    def incomparable(self, clusters: Collection[str] | None = None) -> str:
        """Why period and period before do not compare; '' where they do."""
        found = self._of(clusters)
        if any((c["known_seconds"] or 0) < WHOLE * self.period.seconds for c in found):
            return "Not compared with the week before: this week is not complete."
        if not any(c["before_seconds"] for c in found):
            return "Not compared with the week before: nothing of it is known."
        if any((c["before_seconds"] or 0) < WHOLE * self.period.before.seconds for c in found):
            return "Not compared with the week before: that one is not complete."
        return ""

    def known_until(self, clusters: Collection[str] | None = None) -> str:
        """How far the clusters are known: the earliest of them."""
        found = [c["known_until_at"] for c in self._of(clusters) if c["known_until_at"]]
        return instant(min(found), self.period.zone) if found else "not known"

    def warnings(self, clusters: Collection[str] | None = None, *, whole: bool) -> tuple[str, ...]:
        """What a reader must know before the figures; `whole` is for those who may see all."""
        said = []
        for cluster in self._of(clusters):
            name, known = clean(cluster["cluster_name"]), cluster["known_seconds"] or 0
            until = cluster["known_until_at"]
            if known < self.period.seconds:
                of = duration(self.period.seconds - known)
                end = f" It is known until {instant(until, self.period.zone)}." if until else ""
                said.append(f"Cluster {name}: {of} of the week are not in the figures.{end}")
        shown = {cluster["cluster_name"] for cluster in self._of(clusters)}
        for name, since, error in self.stale:
            if name in shown or clusters is None:
                why = f" Reason: {clean(error, 200)}" if whole and error else ""
                said.append(
                    f"Cluster {clean(name)} is stale: its runs since "
                    f"{instant(since, self.period.zone)} were not published; the figures are "
                    f"those of its last good run.{why}"
                )
        if whole and self.recorded is not None and self.recorded < ENOUGH:
            said.append(
                f"Only {percent(self.recorded)} of the installed GPU-time has a record of who "
                "held it."
            )
        return tuple(said)

    def _of(self, clusters: Collection[str] | None) -> list[dict[str, Any]]:
        return [c for c in self.clusters if clusters is None or c["cluster_name"] in clusters]


def basis(home: Home, period: Period, snapshot: int | None = None) -> Basis:
    """What is published of the period; LakeError where there is no lake or no such snapshot."""
    with Door(home, snapshot) as door:
        zone, currency = door.query(LAKE).fetchall()[0]
        if zone != period.zone:
            raise LakeError(f"the lake's days are those of {zone}, not of {period.zone}")
        days = {
            "begin_on": period.begin_on,
            "end_on": period.end_on,
            "before_on": period.before.begin_on,
        }
        clusters = door.query(COVERAGE, days).pl().rows(named=True)
        stale = door.query(STALE).fetchall()
        return Basis(home, door.snapshot, period, currency, tuple(clusters), tuple(stale))
