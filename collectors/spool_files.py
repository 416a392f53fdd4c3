"""The files of a spool: how they are named, and what recorder and runs tell each other by them.

What is in a segment, and when it is sealed, belongs to `spool`.
"""

import os
import re
from pathlib import Path
from typing import Any

import orjson

SEALED, STATE = ".jsonl.gz", "state.json"
STATUS = "status.json"
"""How recording goes, for whoever looks."""
INGESTED = "ingested.json"
"""Written by a run: the last segment that its lake has. Only then segments are removed."""
_SEGMENT = re.compile(r"(\d{12})-[0-9TZ]{16}")


class SpoolError(Exception):
    """The spool cannot be used; the text says how to mend it."""


def write_whole(path: Path, told: dict[str, Any]) -> None:
    """A file of JSON in place of what was there, whole or not at all."""
    aside = path.with_name(f"{path.name}.new")
    with aside.open("wb") as file:
        file.write(orjson.dumps(told, option=orjson.OPT_INDENT_2))
        file.flush()
        os.fsync(file.fileno())
    aside.replace(path)
    sync_folder(path.parent)


def number_of(name: str) -> int:
    """The number of a segment by its name; SpoolError where it is none."""
    found = _SEGMENT.match(name)
    if not found:
        raise SpoolError(f"{name} is no segment: move it out of the spool")
    return int(found[1])


def spool_name(folder: Path) -> str | None:
    """The name of the spool in a folder; None where no recorder writes there."""
    try:
        told = orjson.loads((folder / STATE).read_bytes())
        return str(told["spool"])
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError):
        return None


def tell_ingested(folder: Path, segment: str) -> None:
    """Let the recorder know up to which segment a lake has its spool; OSError as open does."""
    number = max(number_of(segment), ingested_number(folder))
    write_whole(folder / INGESTED, {"segment": number})


def ingested_number(folder: Path) -> int:
    """The number of the last segment that a lake has; 0 where none told so."""
    try:
        return int(orjson.loads((folder / INGESTED).read_bytes())["segment"])
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        return 0


def sync_folder(folder: Path) -> None:
    """A new name is safe only once its folder is on the disk."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
