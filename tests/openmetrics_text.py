"""OpenMetrics text as series, for tests that look at what a simulated Prometheus would hold.

What must be found in it is for the tests to say.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


@dataclass
class Series:
    """One series and its samples."""

    name: str
    labels: dict[str, str]
    times: list[float]
    values: list[float]


def _key(line: str) -> str:
    return line[: line.rindex("}") + 1]


def read(path: Path, *starts: str) -> Iterator[Series]:
    """The series of a file, or of the metrics whose names start so."""
    with path.open() as file:
        wanted = (x for x in file if x[0] != "#" and (not starts or x.startswith(starts)))
        for key, lines in groupby(wanted, _key):
            name, _, labels = key.partition("{")
            told = [line[len(key) + 1 :].split() for line in lines]
            times = [float(time) for _, time in told]
            yield Series(name, dict(LABEL.findall(labels)), times, [float(v) for v, _ in told])
