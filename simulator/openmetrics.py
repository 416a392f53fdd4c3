"""Samples as OpenMetrics text, which `promtool tsdb create-blocks-from openmetrics` loads.

What is sampled belongs to the modules that call this; the text is sorted by metric, then by series,
then by time, as the format demands, and the samples of each metric are counted.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path

Series = tuple[str, list[str], list[str]]
"""Labels without braces, values ('' where there is no sample) and the ends of the lines."""
Write = Callable[[], Iterable[Series]]
_LABEL = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*")')
_ANSWER = '{{"status":"success","data":{{"resultType":"matrix","result":[{}]}}}}\n'
"""Text and JSON escape alike what they put between quotes."""


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
                for labels, samples in self._samples(name):
                    start = f"{name}{{{labels}}} "
                    file.write("".join([start + v + t for v, t in samples]))
            file.write("# EOF\n")

    def save_answers(self, path: Path) -> None:
        """Write what a Prometheus that has it answers of each metric: an answer a line."""
        with path.open("w") as file:
            for name in sorted(self.families):
                series = []
                for labels, samples in self._samples(name):
                    metric = _LABEL.sub(r'"\1":\2', f'__name__="{name}",{labels}')
                    values = ",".join([f'[{t[1:-1]},"{v}"]' for v, t in samples])
                    series.append(f'{{"metric":{{{metric}}},"values":[{values}]}}')
                file.write(_ANSWER.format(",".join(series)))

    def _samples(self, name: str) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        """The series of a metric with their samples, and the samples counted.

        A series that comes in pieces, because its labels came back, is told as one. Labels come
        back when a GPU is free again, and when a name is used again.
        """
        found: dict[str, list[tuple[str, str]]] = {}
        for labels, values, stamps in chain.from_iterable(w() for w in self.families[name]):
            told = [(v, t) for v, t in zip(values, stamps, strict=True) if v]
            if told:
                found.setdefault(labels, []).extend(told)
        for labels, samples in found.items():
            self.counts[name] = self.counts.get(name, 0) + len(samples)
            yield labels, samples


def _kind(name: str) -> str:
    return "counter" if name.endswith("_total") else "unknown"
