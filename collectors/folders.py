"""Which files of a folder are metrics and which are Kubernetes objects, by name and first bytes.

One folder may hold both; each reader leaves the other's files alone and notes what is neither's.
How they are read belongs to `recording` and `prometheus_recorded`.
"""

import gzip
import re
import zlib
from pathlib import Path

TEXT = {".om", ".prom", ".txt", ".metrics"}
ANSWERS = {".json", ".jsonl"}
_LOOK = 4096
_ANSWER = re.compile(
    rb'\s*\{\s*("status"\s*:\s*"(success|error)"|"(data|isPartial|warnings|infos)"\s*:)'
)
_OBJECT = re.compile(
    rb'\s*\{\s*("(apiVersion|kind|items|metadata|observed_at|object)"\s*:'
    rb'|"type"\s*:\s*"(GAP|LISTED|ADDED|MODIFIED|DELETED|BOOKMARK|ERROR)")'
)
_SAMPLE = re.compile(rb"# (TYPE|HELP|EOF)|[A-Za-z_:][\w:]*(\{.*\})?\s+[-+.\dNI]", re.MULTILINE)


def suffix(file: Path) -> str:
    """How a name ends, packed or not."""
    return file.with_suffix("").suffix if file.suffix == ".gz" else file.suffix


def is_metrics(file: Path) -> bool:
    """Whether it holds metrics as text, or answers of a Prometheus."""
    kind = suffix(file)
    if kind == ".txt":  # a name that anything may have
        return _SAMPLE.match(_begin(file).lstrip()) is not None
    return kind in TEXT or (kind in ANSWERS and _ANSWER.match(_begin(file)) is not None)


def is_objects(file: Path) -> bool:
    """Whether it holds objects of Kubernetes, listed or watched."""
    return suffix(file) in ANSWERS and _OBJECT.match(_begin(file)) is not None


def kinds(path: Path) -> list[str]:
    """The kinds of source that a folder is: a Kubernetes recording where it is nothing we know."""
    files = [file for file in sorted(path.rglob("*")) if file.is_file()]
    has_metrics = any(map(is_metrics, files))
    is_recording = any(map(is_objects, files)) or not has_metrics
    return ["kubernetes"] * is_recording + ["prometheus"] * has_metrics


def _begin(file: Path) -> bytes:
    """The first bytes of what it holds; none where it cannot be read, which its reader will say."""
    try:
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as content:
            return content.read(_LOOK)
    except (OSError, EOFError, zlib.error):
        return b""
