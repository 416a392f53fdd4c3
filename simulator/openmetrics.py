"""Samples as OpenMetrics text, which `promtool tsdb create-blocks-from openmetrics` loads.

What is sampled belongs to the modules that call this; the text is sorted by metric, then by series,
then by time, as the format demands, and the samples of each metric are counted.
"""

from collections.abc import Callable, Iterable
from itertools import chain
from pathlib import Path
from typing import TextIO

Series = tuple[str, list[str], list[str]]
"""Labels without braces, values ('' where there is no sample) and the ends of the lines."""
Write = Callable[[], Iterable[Series]]


def escaped(value: str) -> str:
    """A label's value between its quotes."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def labelled(labels: dict[str, str]) -> str:
    """Labels as they stand between the braces."""
    return ",".join(f'{name}="{escaped(value)}"' for name, value in labels.items())


class Page:
    """The families of one file, written one after the other so that they need little room."""

    def __init__(self) -> None:
        self.families: dict[str, list[Write]] = {}
        self.counts: dict[str, int] = {}

    def add(self, name: str, write: Write) -> None:
        """More series of a metric; `write` is asked for them when their turn comes."""
        self.families.setdefault(name, []).append(write)

    def save(self, path: Path) -> None:
        """Write the file."""
        with path.open("w") as file:
            for name in sorted(self.families):
                file.write(f"# TYPE {name.removesuffix('_total')} {_kind(name)}\n")
                writes = self.families[name]
                self._family(file, name, chain.from_iterable(write() for write in writes))
            file.write("# EOF\n")

    def _family(self, file: TextIO, name: str, series: Iterable[Series]) -> None:
        """A series that comes in pieces, because its labels came back, is written as one.

        Labels come back when a GPU is free again, and when a name is used again.
        """
        found: dict[str, list[str]] = {}
        for labels, values, stamps in series:
            start = f"{name}{{{labels}}} "
            lines = [start + v + t for v, t in zip(values, stamps, strict=True) if v]
            if lines:
                found.setdefault(labels, []).extend(lines)
        for lines in found.values():
            self.counts[name] = self.counts.get(name, 0) + len(lines)
            file.write("".join(lines))


def _kind(name: str) -> str:
    return "counter" if name.endswith("_total") else "unknown"
