"""What tests read of a measured fleet: its OpenMetrics text as series, its truth as rows.

What must be found in them is for the tests to say.
"""

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

CLUSTERS = ("alpha", "beta")
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


def rows(fleet: Path, table: str, *clusters: str) -> list[dict[str, str]]:
    """A table of the truth, of all clusters or of some."""
    found = []
    for cluster in clusters or CLUSTERS:
        with (fleet / "truth" / cluster / f"{table}.csv").open() as file:
            found += [{"cluster": cluster, **row} for row in csv.DictReader(file)]
    return found


def some(told: list[Series], name: str, **labels: str) -> list[Series]:
    """The series of a metric in which these labels read so."""
    return [s for s in told if s.name == name and labels.items() <= s.labels.items()]
