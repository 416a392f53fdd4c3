"""The figures of a report: sums of the marts over a week, beside those of the week before.

Ratios are sums over sums, each with its coverage; what nothing measures or prices is said in
words, never as 0. Its tables are in `report_tables`, what it rests on in `report_basis`.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from lake.home import Home
from lake.read import Door
from models.figures import (
    NO_PRICE,
    NONE,
    NOT_MEASURED,
    Number,
    change,
    hours,
    money,
    percent,
    ratio,
)
from pipelines.report import SAYING, Figure, Period, Report, clean
from pipelines.report_basis import Basis
from pipelines.report_queries import CLUSTERS, SPENT, USE
from pipelines.report_tables import tables, unmeasured

Row = dict[str, Any]


def collect(home: Home, basis: Basis, name: str, team: str | None = None) -> Report:
    """The report at the basis's snapshot: of one team, through a door for that team alone."""
    period = basis.period
    with Door(home, basis.snapshot.number, None if team is None else [team]) as door:
        now, before = sums(door, period), sums(door, period.before)
        both = {"begin_on": period.before.begin_on, "end_on": period.end_on}
        found = {row[0] for row in door.query(CLUSTERS, both).fetchall()}
        # A team without any rows may owe that to a cluster that is not known: show all of them.
        clusters = None if team is None or not found else found
        told = Told(basis, now, before, basis.incomparable(clusters))
        is_used = bool(now["gpu_seconds"])
        shown = tables(door, period, basis.currency, team, told.is_measured) if is_used else ()
    return Report(
        name=name,
        team=team,
        period=period,
        snapshot=basis.snapshot.number,
        published_at=basis.snapshot.committed_at,
        known_until=basis.known_until(clusters),
        warnings=basis.warnings(clusters, whole=team is None),
        lead=lead(now, team),
        incomparable=told.incomparable,
        figures=told.figures(team) if is_used or before["gpu_seconds"] else (),
        tables=shown,
        notes=notes(team),
    )


def sums(door: Door, period: Period) -> Row:
    """All sums of a period; None where there is no row to sum."""
    days = {"begin_on": period.begin_on, "end_on": period.end_on}
    found: Row = {}
    for query in (SPENT, USE):
        found |= door.query(query, days).pl().row(0, named=True)
    return found


def lead(now: Row, team: str | None) -> str:
    """What there is to say where there are no figures, or no measurements."""
    if not now["gpu_seconds"]:
        of = "The platform has" if team is None else f"{clean(team)} held"
        return f"{of} no GPUs in this week, as far as it is known."
    if now["held_gpu_seconds"] is None:
        return "What the GPUs did is not in this snapshot: it is older than their measuring."
    return ""


def notes(team: str | None) -> tuple[str, ...]:
    """How the figures are to be read."""
    own = (
        "Allocation ratio: held / (installed - unavailable - unrecorded)."
        if team is None
        else "Held: GPU-time in the team's hands, used or not. The allocation ratio is one of the "
        "fleet, not of a team: what a team holds is allocated."
    )
    return (
        SAYING,
        own,
        "Utilisation ratio: active time weighted by SM activity / held time with an SM reading. "
        "Active ratio: time measured active / held time that was measured.",
        "A difference is not given where one of the weeks is not complete or not wholly priced.",
    )


def priced(row: Row, name: str) -> float | None:
    """The share of a sum's time that has a price."""
    time, unpriced = row[f"{name}_gpu_seconds"], row[f"{name}_unpriced_gpu_seconds"]
    return ratio(time - unpriced, time) if time is not None else None


def cost(row: Row, name: str, currency: str) -> str:
    """A sum of money beside what of it has a price; no sum where nothing has one."""
    return written(row[f"{name}_cost"], priced(row, name), currency)


def written(value: Number | None, share: float | None, currency: str) -> str:
    """Money, and the share of its time that has a price where that is not all."""
    text = money(value, currency, share)
    return f"{text} ({percent(share)} of it priced)" if share and share < 1 else text


class Told:
    """The sums of two weeks, told as figures."""

    def __init__(self, basis: Basis, now: Row, before: Row, incomparable: str):
        self.basis, self.currency, self.incomparable = basis, basis.currency, incomparable
        self.now, self.before = self._completed(now), self._completed(before)

    @staticmethod
    def _completed(row: Row) -> Row:
        """Where nothing was held at all, the sums of nothing are 0; else they are not known."""
        if row["gpu_seconds"]:
            row = dict(row)
        else:
            row = {name: Decimal(0) if value is None else value for name, value in row.items()}
        unmeasured(row)
        row["spent_gpu_seconds"] = row["gpu_seconds"]
        row["spent_unpriced_gpu_seconds"] = row["unpriced_gpu_seconds"]
        for part in ("gpu_seconds", "unpriced_gpu_seconds"):
            idle, stalled = row[f"idle_{part}"], row[f"stalled_{part}"]
            row[f"lost_{part}"] = None if idle is None else idle + stalled
        known = [c for c in (row["idle_cost"], row["stalled_cost"]) if c is not None]
        row["lost_cost"] = sum(known) if known else None
        return row

    @property
    def is_measured(self) -> bool:
        """Whether anything says what the GPUs did in this week."""
        return self.now["idle_gpu_seconds"] is not None

    def figures(self, team: str | None) -> tuple[Figure, ...]:
        """The figures of the platform, or of a team."""
        return self.of_platform() if team is None else self.of_team()

    def of_team(self) -> tuple[Figure, ...]:
        """The figures of one team."""
        return (
            self._time("Held", "spent", "", is_headline=True),
            self._cost("Cost", "spent", is_headline=True),
            self._utilisation(),
            self._active(),
            *self._lost(),
            *self._unknown("held"),
        )

    def of_platform(self) -> tuple[Figure, ...]:
        """The figures of the whole fleet."""
        recorded = self.basis.recorded
        note = f"of what was available; {percent(recorded)} of the installed time is recorded"
        return (
            self._time("Installed", "spent", ""),
            self._cost("Cost", "spent", is_headline=True),
            self._time("Allocated", "held", self._note("held")),
            self._share("Allocation ratio", "held", "available", note, is_headline=True),
            self._utilisation(),
            self._active(),
            *self._lost(),
            *self._unknown("installed"),
        )

    def _utilisation(self) -> Figure:
        coverage = ratio(self.now["sm_observed_gpu_seconds"], self.now["held_gpu_seconds"])
        return self._share(
            "Utilisation ratio",
            "effective",
            "sm_observed",
            f"over the {percent(coverage)} of the held time that has an SM reading"
            if coverage
            else "no SM reading",
            is_headline=True,
        )

    def _active(self) -> Figure:
        for row in (self.now, self.before):
            held, unobserved = row["held_gpu_seconds"], row["unobserved_gpu_seconds"]
            row["observed_gpu_seconds"] = None if held is None else held - unobserved
        coverage = ratio(self.now["observed_gpu_seconds"], self.now["held_gpu_seconds"])
        note = f"over the {percent(coverage)} of the held time that was measured"
        return self._share("Active ratio", "active", "observed", note if coverage else "")

    def _lost(self) -> tuple[Figure, ...]:
        """Idle and stalled, together in money, apart in time."""
        return (
            self._cost("Idle and stalled", "lost", is_headline=True, with_time=True),
            self._time("Idle", "idle", self._note("idle")),
            self._time("Stalled", "stalled", self._note("stalled")),
        )

    def _unknown(self, of: str) -> tuple[Figure, ...]:
        """What is not observed and not priced, so that nobody takes it for nothing."""
        unobserved = ratio(self.now["unobserved_gpu_seconds"], self.now["held_gpu_seconds"])
        unpriced = ratio(self.now["unpriced_gpu_seconds"], self.now["gpu_seconds"])
        held = "" if unobserved is None else f"{percent(unobserved)} of the held time"
        return (
            self._time("Not measured", "unobserved", held),
            self._time(
                "Without a price",
                "unpriced",
                "" if unpriced is None else f"{percent(unpriced)} of the {of} time",
            ),
        )

    def _note(self, name: str) -> str:
        time = self.now[f"{name}_gpu_seconds"]
        return "" if not time else cost(self.now, name, self.currency)

    def _time(self, name: str, column: str, note: str, *, is_headline: bool = False) -> Figure:
        now, before = (row[f"{column}_gpu_seconds"] for row in (self.now, self.before))
        shown = self._beside(now, before, hours)
        return Figure(name, hours(now), note, *shown, is_headline=is_headline)

    def _cost(
        self, name: str, column: str, *, is_headline: bool = False, with_time: bool = False
    ) -> Figure:
        now, before = (row[f"{column}_cost"] for row in (self.now, self.before))
        shares = [priced(row, column) for row in (self.now, self.before)]
        texts = [
            NO_PRICE
            if row[f"{column}_gpu_seconds"] and value is None
            else money(value, self.currency, share)
            for row, value, share in zip(
                (self.now, self.before), (now, before), shares, strict=True
            )
        ]
        is_whole = all(share in (None, 1) for share in shares)
        shown = self._beside(now, before, lambda cost: money(cost, self.currency), texts[1])
        if not is_whole and not self.incomparable:
            shown = (texts[1], "not wholly priced")
        time = self.now[f"{column}_gpu_seconds"]
        said = [hours(time)] if with_time and time is not None else []
        if time:
            said.append(f"{percent(shares[0])} of the time has a price")
        return Figure(name, texts[0], ", ".join(said), *shown, is_headline=is_headline)

    def _share(
        self, name: str, part: str, whole: str, note: str, *, is_headline: bool = False
    ) -> Figure:
        now, before = (
            ratio(row[f"{part}_gpu_seconds"], row[f"{whole}_gpu_seconds"])
            for row in (self.now, self.before)
        )
        texts = [
            _share_text(share, row["held_gpu_seconds"])
            for share, row in ((now, self.now), (before, self.before))
        ]
        moved = change(now, before, is_share=True)
        shown = (texts[1], "no change" if moved == 0 else _signed(moved))
        if self.incomparable:
            shown = ("", "")
        if texts[0] == NOT_MEASURED and name != "Utilisation ratio":
            note = ""
        return Figure(name, texts[0], note, *shown, is_headline=is_headline)

    def _beside(
        self,
        now: Number | None,
        before: Number | None,
        text: Callable[[Number | None], str],
        shown_before: str | None = None,
    ) -> tuple[str, str]:
        """The figure of the week before, and how it moved since."""
        if self.incomparable:
            return "", ""
        shown = text(before) if shown_before is None else shown_before
        if now is None or before is None:
            return shown, ""
        difference = Decimal(now) - Decimal(before)
        if not difference:
            return shown, "no change"
        sign = "+" if difference > 0 else "−"
        share = change(now, before)
        moved = f"{sign}{text(abs(difference))}"
        return shown, f"{moved} ({_signed(share)})" if isinstance(share, str) else moved


def _signed(moved: str | int | None) -> str:
    """A change with the sign of a loss that other figures of ours have."""
    return str(moved or "").replace("-", "−")


def _share_text(share: float | None, held: Number | None) -> str:
    """A share; what was held and not measured has one that nobody knows."""
    if share is None:
        return NOT_MEASURED if held is None or held else NONE
    return percent(share)
