"""Events as rows, and the folding of their repeats, which a component writes into one event.

What a text of a scheduler means is in `scheduling_words`; reading files belongs to `recording`.
"""

import re
from collections import OrderedDict
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple

from collectors.batches import MOST_ROWS, Rows
from collectors.coverage import micros_of
from collectors.quantities import Unusable, count, micros, needed, part, seconds, text
from collectors.scheduling_words import reasons
from collectors.source import Batch, Note, Settings, Version
from models.raw_events import TEXT_LENGTH
from models.window import midnight

Row = dict[str, Any]
DAY = 86_400_000_000
CONTAINER = re.compile(r"spec\.(?:initContainers|containers|ephemeralContainers)\{(.+)\}")

LAST = ("series", "lastTimestamp", "eventTime", "firstTimestamp", "creationTimestamp")
FIRST = ("firstTimestamp", "eventTime", "creationTimestamp")
"""Whom to trust with the last time and with the first, in this order."""

WAITING = frozenset(("FailedScheduling", "Unschedulable", "PodGroupPending", "NotTriggerScaleUp"))
QUEUEING = frozenset(
    (
        *("Pending", "Inadmissible", "Waiting", "NoMatchingFlavor", "WaitingForQuota"),
        *("ExceedsMaxQuota", "TopologyPlacementFailed", "WaitingForPreemptedWorkloads"),
        *("Misconfigured", "PendingEvaluation", "WaitingForPodsReady", "SecondPassFailed"),
    )
)
"""Reasons of events that tell why something waits; the second ones only of Kueue's Workloads."""

IMAGE = re.compile(r'(?:image|Image) "([^"]*)"')
TOOK = re.compile(r'" in ([^\s()]+?)(?: \((\S+) including waiting\))?(?:\. |\.?$)')
SIZE = re.compile(r"Image size: ([0-9]{1,18}) bytes")
PULL_REASONS = frozenset(("Pulling", "Pulled", "Failed", "BackOff", "ErrImageNeverPull"))


class Pull(NamedTuple):
    """What an event about an image tells."""

    image_name: str | None = None
    pull_seconds: Decimal | None = None
    waited_seconds: Decimal | None = None
    image_bytes: int | None = None
    is_cached: bool | None = None


@lru_cache(maxsize=4096)
def pull_of(reason: str, message: str) -> Pull:
    """What the kubelet says of an image, in the wordings of all its versions."""
    image = IMAGE.search(message) if reason in PULL_REASONS else None
    if image is None:
        return Pull()
    if reason != "Pulled":
        return Pull(image[1])
    took, size = TOOK.search(message), SIZE.search(message)
    return Pull(
        image[1],
        seconds(took[1]) if took else None,
        seconds(took[2]) if took and took[2] else None,
        int(size[1]) if size else None,
        "already present" in message,
    )


def event_row(version: Version, settings: Settings, note: Note) -> Row:
    """A version of an event as a row of raw.event_versions, in either of its two APIs' shapes."""
    item = version.object
    meta = part(item.get("metadata"))
    about = part(item.get("involvedObject")) or part(item.get("regarding"))
    related, series = part(item.get("related")), part(item.get("series"))
    source = part(item.get("source")) or part(item.get("deprecatedSource"))
    reason = text(item.get("reason")) or ""
    message = text(item.get("message")) or text(item.get("note")) or ""
    times = {
        "series": series.get("lastObservedTime"),
        "lastTimestamp": item.get("lastTimestamp") or item.get("deprecatedLastTimestamp"),
        "firstTimestamp": item.get("firstTimestamp") or item.get("deprecatedFirstTimestamp"),
        "eventTime": item.get("eventTime"),
        "creationTimestamp": meta.get("creationTimestamp"),
    }
    first = _trusted(times, FIRST, version.observed, note)
    last = _trusted(times, LAST, version.observed, note)
    counts = (series.get("count"), item.get("count"), item.get("deprecatedCount"))
    place = CONTAINER.fullmatch(text(about.get("fieldPath")) or "")
    kind = needed(about.get("kind"), "no_name")
    is_waiting = reason in WAITING or (kind == "Workload" and reason in QUEUEING)
    return {
        **version.columns(settings),
        "event_uid": needed(meta.get("uid"), "no_uid"),
        "object_kind_name": kind,
        "object_namespace_name": text(about.get("namespace")),
        "object_name": needed(about.get("name"), "no_name"),
        "object_uid": text(about.get("uid")),
        "container_name": place[1] if place else None,
        "related_kind_name": text(related.get("kind")),
        "related_uid": text(related.get("uid")),
        "reason_name": reason,
        "type_name": text(item.get("type")) or "",
        "action_name": text(item.get("action")),
        "component_name": text(source.get("component"))
        or text(item.get("reportingComponent"))
        or text(item.get("reportingController")),
        "host_name": text(source.get("host")) or text(item.get("reportingInstance")),
        "message_text": message[:TEXT_LENGTH],
        "is_cut": len(message) > TEXT_LENGTH,
        "first_at": min(first, last),
        "last_at": max(first, last),
        "total_count": max(1, *(count(each) for each in counts)),
        **pull_of(reason, message)._asdict(),
        "scheduling_reasons": waiting_for(message, note) if is_waiting and message else None,
    }


def waiting_for(message: str, note: Note) -> tuple[tuple[Any, ...], ...]:
    """A scheduler's text as reasons; what is not known in it is counted, and kept as it is."""
    found = reasons(message)
    for reason in found:
        if reason.reason_name == "other":
            note("unknown_scheduling_text", reason.reason_text)
    return found


def _trusted(times: dict[str, Any], order: tuple[str, ...], observed: int, note: Note) -> int:
    """The first time of an order that is one; a clock that is a day ahead is not believed."""
    for name in order:
        try:
            found = micros(times[name])
        except Unusable as error:
            note("bad_event_time", f"{name} {error.example}")
            continue
        if found is not None and found <= observed + DAY:
            return found
        if found is not None:
            note("bad_event_time", f"{name} {times[name]}")
    raise Unusable("no_creation", "an event without any time")


MOST_OPEN = 20_000
"""So many events are held until their next version; the one unchanged for longest goes first."""


class EventRows(Rows):
    """Rows of raw.event_versions: versions of one event with the same text become one row.

    Kueue and Volcano write thousands of them for one wait. What memory lets go early makes a
    second row of the same event; `sql` takes the difference of their counts.
    """

    def __init__(self, zone: str, most: int = MOST_ROWS, most_open: int = MOST_OPEN):
        super().__init__("raw.event_versions", most)
        self.zone, self.most_open = zone, most_open
        self.open: OrderedDict[str, Row] = OrderedDict()
        self.day: date | None = None
        self.midnight = 0
        self.add = self._fold

    def full(self) -> Iterator[Batch]:
        """The batch, once it is large enough; what is still open waits."""
        if len(self.rows) >= self.most:
            yield from super().rest()

    def rest(self) -> Iterator[Batch]:
        """The batch, with all that is open."""
        self._close()
        yield from super().rest()

    def _fold(self, row: Row) -> None:
        if row["change_name"] == "DELETED":
            return  # it has expired
        if row["day_on"] != self.day:
            self._close()
            self.day = row["day_on"]
            self.midnight = micros_of(midnight(row["day_on"], self.zone))
        before = self.open.get(row["event_uid"])
        if before is None:
            self._open(row, self._of_earlier_days(row))
        elif row["last_at"] < before["last_at"] and row["total_count"] <= before["total_count"]:
            return  # an older version, told again
        else:
            self._follow(before, row)

    def _follow(self, before: Row, row: Row) -> None:
        is_same = row["message_text"] == before["message_text"]
        is_news = not is_same or row["last_at"] > before["last_at"]
        # Some components never count: each news is one more all the same.
        row["total_count"] = max(row["total_count"], before["total_count"] + is_news)
        if is_same:
            first = min(row["first_at"], before["first_at"])
            kept = {name: before[name] for name in ("change_name", "before_count")}
            row["last_at"] = max(row["last_at"], before["last_at"])
            self.open[row["event_uid"]] = row | kept | {"first_at": first}
            self.open.move_to_end(row["event_uid"])
        else:
            self.rows.append(self.open.pop(row["event_uid"]))
            row["first_at"] = row["last_at"]
            self._open(row, before["total_count"])

    def _open(self, row: Row, before: int) -> None:
        row["before_count"] = before
        self.open[row["event_uid"]] = row
        if len(self.open) > self.most_open:
            self.rows.append(self.open.popitem(last=False)[1])

    def _of_earlier_days(self, row: Row) -> int:
        """How often an event had happened before the day, as far as its first version tells."""
        if row["first_at"] >= self.midnight:
            return 0
        is_old = row["change_name"] == "LISTED" and row["last_at"] < self.midnight
        return row["total_count"] - (0 if is_old else 1)

    def _close(self) -> None:
        self.rows += self.open.values()
        self.open.clear()
