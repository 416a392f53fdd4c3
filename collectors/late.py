"""What is heard of a day shortly after it: an end at 23:59:59 is told when it is tomorrow.

The day gets a HEARD row with the news. It stands at the day's very end, so that what goes by the
time of observation is untouched; which lines are read belongs to `recording`.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from typing import Any

from collectors.containers import TERMINAL
from collectors.coverage import ROOM, Days, Gap, place_in_day

LATE_SECONDS = 3600
"""So long after a day, or after the gap that it ended in, news of it is still taken up."""

INSTANTS = {
    "Pod": (
        "bound_at",
        "running_since_at",
        "stopped_at",
        "ready_since_at",
        "deletion_asked_at",
        "finished_at",
        "disrupted_at",
    ),
    "PodGroup": (),
}
"""Kind -> the columns, beside created_at, in which a version tells when something happened."""


class Late:
    """The news of one kind; rows come in the order observed."""

    def __init__(self, kind: str, gaps: Sequence[Gap], zone: str, begin: int, end: int):
        """Days between `begin` and `end`, in microseconds since 1970, get news."""
        self.columns, self.gaps, self.zone = INSTANTS.get(kind), gaps, zone
        self.begin, self.end = begin, end
        self.days = Days(zone)
        self.key = "pod_uid" if kind == "Pod" else "pod_group_uid"
        self.told: dict[str, set[int]] = {}
        """Of each object, the instants that their own days know."""
        self.until = self.until_of(end) if self.columns is not None else 0
        """What is observed later is of no interest."""

    def remember(self, rows: Iterable[dict[str, Any]]) -> None:
        """The newest rows of the objects, as an earlier reading left them."""
        if self.columns is None:
            return
        for row in rows:
            instants = {row["created_at"], *(row[c] for c in self.columns if row[c] is not None)}
            self.told.setdefault(row[self.key], set()).update(instants)

    def rows(self, row: dict[str, Any], observed: int) -> Iterator[dict[str, Any]]:
        """The HEARD rows that a version gives to days before its own."""
        if self.columns is None:
            return
        instants = {row["created_at"], *(row[c] for c in self.columns if row[c] is not None)}
        told = self.told.setdefault(row[self.key], set())
        self.days.of(observed)
        today = self.days.begin
        news = {i for i in instants - told if self.begin <= i < min(today, self.end)}
        told |= {i for i in instants if i >= today}
        earlier = Days(self.zone)
        for instant in sorted(news):
            day = earlier.of(instant)
            if instant in told or row["created_at"] >= earlier.end:
                continue
            if observed < self.until_of(earlier.end):
                told |= {i for i in news if earlier.begin <= i < earlier.end}
                yield self._heard(row, day, earlier)
        if row["change_name"] == "DELETED":
            del self.told[row[self.key]]

    def _heard(self, row: dict[str, Any], day: date, earlier: Days) -> dict[str, Any]:
        """The row as that day hears it: without what came after it or counts from observation."""
        columns, over = self.columns or (), earlier.end
        known = {c: row[c] for c in columns if row[c] is not None and row[c] < over}
        if not columns:
            known["phase_name"] = None
        elif "bound_at" not in known:
            known["node_name"] = None
        if row.get("disrupted_at") is not None and "disrupted_at" not in known:
            known["disruption_name"] = None
        if columns and "finished_at" not in known and row["phase_name"] in TERMINAL:
            known["phase_name"] = "Running"
        return (
            row
            | dict.fromkeys(columns)
            | known
            | {
                "day_on": day,
                "sequence_number": place_in_day(over, earlier.begin, row["sequence_number"] % ROOM),
                "observed_at": over,
                "change_name": "HEARD",
            }
        )

    def until_of(self, over: int) -> int:
        """Until when news of a day that ended at `over` is taken up."""
        until = over + LATE_SECONDS * 1_000_000
        for gap in self.gaps:
            if gap.begin < until and gap.end > over:
                until = gap.end + LATE_SECONDS * 1_000_000
        return until
