"""Events told in a few words, for tests of single rules."""

from typing import Any

from collectors.kube_events import pull_of
from collectors.scheduling_words import reasons
from models.raw_events import EVENT_VERSIONS
from tests.sql_case import MIDNIGHT, Case

GPU = "nvidia.com/gpu"
UIDS = ("69bb733e-bf63-4a68-bc90-3aa4b703e645", "f4546fd0-51ac-4f36-bce3-e9fa0a1e4d05")


def listed(text: str) -> list[dict[str, Any]]:
    """A text's reasons as they stand in a row."""
    return [reason._asdict() for reason in reasons(text)]


def tell(case: Case, message: str, first: Any = 0, last: Any = None, **told: Any):
    """An event of pod p, once, unless told otherwise."""
    last = first if last is None else last
    reason = told.get("reason_name", "FailedScheduling")
    is_waiting = told.pop("is_waiting", reason == "FailedScheduling")
    case.add(EVENT_VERSIONS, **{
        "event_uid": f"e-{len(case.rows[EVENT_VERSIONS.name])}", "observed_at": last,
        "object_kind_name": "Pod", "object_namespace_name": "ml", "object_name": "p",
        "object_uid": "p", "reason_name": reason, "type_name": "Warning",
        "component_name": "c", "message_text": message, "first_at": first, "last_at": last,
        "total_count": 1, "before_count": 0,
        "scheduling_reasons": listed(message) if is_waiting else None,
        **pull_of(reason, message)._asdict(), **told,
    })  # fmt: skip


def second(instant: Any) -> float | None:
    """An instant as seconds of the day."""
    return None if instant is None else (instant - MIDNIGHT).total_seconds()
