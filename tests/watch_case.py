"""What tests of the recorder share: reading its spool and its state.

The cluster is in `control_plane`, what stands before it in `api_between`.
"""

import gzip
import json
from datetime import datetime
from pathlib import Path

from collectors.recorder import Recorder
from tests.prometheus_server import until


def state(recorder: Recorder, name: str) -> str:
    """How a kind's recording goes."""
    return next(
        (w.watch.state.state_name for k, w in [*recorder.kinds.items()] if k.name == name), ""
    )


def lines(folder: Path) -> list[dict]:
    """All lines of the sealed segments."""
    return [
        json.loads(raw)
        for path in sorted(folder.glob("*.jsonl.gz"))
        for raw in gzip.decompress(path.read_bytes()).splitlines()
    ]


def ended(recorder: Recorder) -> list[dict]:
    """Ends a recorder, and what it has written."""
    recorder.stop.set()
    until(lambda: not recorder.spool.is_open)
    return lines(recorder.folder)


def of_kind(found: list[dict], kind: str) -> list[dict]:
    """The lines of a kind."""
    return [each for each in found if each["object"]["kind"] == kind]


def version(line: dict) -> int:
    """A line's resourceVersion."""
    return int(line["object"]["metadata"]["resourceVersion"])


def seconds(text: str) -> float:
    """An instant in seconds since 1970."""
    return datetime.fromisoformat(text).timestamp()


def has(recorder: Recorder, text: str) -> bool:
    """Whether a text is in what is not sealed yet."""
    recorder.spool.sync()
    return any(text in path.read_text() for path in recorder.folder.glob("*.open"))
