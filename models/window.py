"""A cluster and a span of whole days: what one run reads and replaces.

Which days there are to compute belongs to `pipelines`; what is known of them to `collectors`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo


def midnight(day: date, zone: str) -> datetime:
    """The instant, in UTC, at which a day begins in a zone."""
    return datetime.combine(day, time(), ZoneInfo(zone)).astimezone(UTC)


def day_of(instant: datetime, zone: str) -> date:
    """The day of the zone in which an instant lies."""
    return instant.astimezone(ZoneInfo(zone)).date()


@dataclass(frozen=True)
class Window:
    """The days `[begin_on, end_on)` of a cluster, in the accounting zone."""

    cluster: str
    begin_on: date
    end_on: date
    zone: str = "UTC"

    @property
    def begin(self) -> datetime:
        """Its first instant, in UTC."""
        return midnight(self.begin_on, self.zone)

    @property
    def end(self) -> datetime:
        """The first instant after it, in UTC."""
        return midnight(self.end_on, self.zone)

    def days(self) -> Iterator[date]:
        """Its days, in order."""
        day = self.begin_on
        while day < self.end_on:
            yield day
            day += timedelta(days=1)

    def contains(self, instant: datetime) -> bool:
        """Whether an instant lies in it."""
        return self.begin <= instant < self.end

    @classmethod
    def around(cls, cluster: str, span: tuple[datetime, datetime], zone: str = "UTC") -> "Window":
        """The fewest days that hold a span of time; an empty span has one day."""
        first, last = day_of(span[0], zone), day_of(span[1], zone)
        if midnight(last, zone) < span[1] or first == last:
            last += timedelta(days=1)
        return cls(cluster, first, last, zone)
