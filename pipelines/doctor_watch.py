"""What `doctor` says of a recorder: whether it runs, and what it cannot record.

It reads the status that the recorder itself writes beside its segments.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from collectors.spool_files import STATUS
from pipelines.cli_common import REFUSED
from pipelines.findings import Finding

SILENT_SECONDS = 60
"""A status is written each ten seconds; what is older is of a recorder that hangs or was killed."""
WAYS = {
    "refused": "grant its account get, list and watch on it: deploy/kubernetes/access.yaml",
    "failing": "mend what it says; nothing of it is recorded meanwhile",
    "full": "make room on the spool's disk; the recorder goes on by itself",
}
"""What a kind's recording may suffer from, and how to mend it."""


def recorder(cluster: str, folder: Path, now: datetime | None = None) -> Iterator[Finding]:
    """Whether a recorder writes the spool, since when not, and what it says of each kind."""
    name, start = f"{cluster}: recorder of {folder}", "start `gpuledger watch`"
    try:
        status = json.loads((folder / STATUS).read_bytes())
        written = datetime.fromisoformat(status["written_at"])
        is_running, faults, kinds = status["is_running"], status["faults"], status["kinds"]
    except FileNotFoundError:
        yield Finding(f"{name} has not run yet", start, REFUSED)
        return
    except (OSError, ValueError, KeyError, TypeError) as error:
        yield Finding(f"{name}: its {STATUS} cannot be read: {error}", start, REFUSED)
        return
    silent = (now or datetime.now(UTC)) - written
    if not is_running or silent.total_seconds() > SILENT_SECONDS:
        said = f"{name} does not run since {written:%Y-%m-%d %H:%M:%S} UTC"
        yield Finding(f"{said}: what happens now is lost", start, REFUSED)
    for what, text in sorted(faults.items()):
        yield Finding(f"{name}: {what}: {text}", "see the recorder's own log", REFUSED)
    yield from _kinds(name, kinds)


def _kinds(name: str, kinds: dict[str, dict[str, Any]]) -> Iterator[Finding]:
    good = [kind for kind, state in kinds.items() if state["state_name"] not in WAYS]
    if good:
        lines = sum(kinds[kind]["line_count"] for kind in good)
        yield Finding(f"{name}: {len(good)} kinds are recorded, {lines:,} lines since it began")
    for kind, state in sorted(kinds.items()):
        if mend := WAYS.get(state["state_name"]):
            yield Finding(
                f"{name}: {kind} is {state['state_name']} since {state['since_at']}: "
                f"{state['said']}",
                mend,
                REFUSED if state["state_name"] != "refused" else 0,
            )
