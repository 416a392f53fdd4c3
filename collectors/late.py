"""What is heard of a day shortly after it: an end at 23:59:59 is told when it is tomorrow.

The day gets a HEARD row with the news. It stands at the day's very end, so that what goes by the
time of observation is untouched; which lines are read belongs to `recording`.
"""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

from collectors.coverage import ROOM, Days, Gap, micros_of
from models.window import midnight

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
        self.told: dict[str, tuple[int, ...]] = {}
        self.until = self._until(end) if self.columns is not None else 0
        """What is observed later is of no interest."""

    def rows(self, row: dict[str, Any], observed: int) -> Iterator[dict[str, Any]]:
        """The HEARD rows that a version gives to days before its own."""
        if self.columns is None:
            return
        uid, created = row[self.key], row["created_at"]
        instants = (created, *(row[c] for c in self.columns if row[c] is not None))
        told = self.told.get(uid, ())
        if row["change_name"] == "DELETED":
            self.told.pop(uid, None)
        else:
            self.told[uid] = instants
        today = self.days.of(observed)
        begin = self.days.begin
        news = [i for i in instants if self.begin <= i < min(begin, self.end) and i not in told]
        earlier = Days(self.zone)
        for day in sorted({earlier.of(instant) for instant in news} - {today}):
            earlier.of(micros_of(midnight(day, self.zone)))
            over = micros_of(midnight(day + timedelta(days=1), self.zone))
            if created < over and observed < self._until(over):
                known = {c: row[c] for c in self.columns if row[c] is not None and row[c] < over}
                # What counts from its observation on was not observed that day.
                unseen = {"phase_name": None} if self.columns == () else {}
                if self.columns and "bound_at" not in known:
                    unseen = {"node_name": None}
                yield (
                    row
                    | dict.fromkeys(self.columns)
                    | known
                    | unseen
                    | {
                        "day_on": day,
                        "sequence_number": (over - earlier.begin + 1) * ROOM
                        + row["sequence_number"] % ROOM,
                        "observed_at": over,
                        "change_name": "HEARD",
                    }
                )

    def _until(self, over: int) -> int:
        """Until when news of a day that ended at `over` is taken up."""
        until = over + LATE_SECONDS * 1_000_000
        for gap in self.gaps:
            if gap.begin < until and gap.end > over:
                until = gap.end + LATE_SECONDS * 1_000_000
        return until
