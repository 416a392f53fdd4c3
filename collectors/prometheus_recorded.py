"""A folder of recorded answers of a Prometheus, or of metrics as text, read as the server would be.

`*.json` holds one answer of /api/v1/query or query_range, `*.jsonl` one a line; `*.om`, `*.prom`,
`*.txt` and `*.metrics` hold text; each may end in `.gz`. All is sorted into hours on disk once, so
that a segment is read without the rest. What lies outside the recording is missing, not empty.
Objects of Kubernetes that lie beside are noted and not read.
"""

import gzip
import tempfile
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from collectors.folders import ANSWERS, TEXT, is_metrics, is_objects, suffix
from collectors.prometheus import Fetched
from collectors.prometheus_answers import (
    Broken,
    Samples,
    once,
    series_frame,
    timed,
    understood,
    within,
)
from collectors.prometheus_discovery import Told
from collectors.prometheus_segments import HOUR, Segment, State, Stretch
from collectors.prometheus_selectors import Group
from collectors.prometheus_text import NAME, chunks
from models.parts import instant

EVER = (-(1 << 60), 1 << 60)
_UNRECORDED = "not_recorded"


class Recorded:
    """Answers from a folder; `collect` as a server's client has it."""

    def __init__(self, path: Path, observed_at: Any = None, zone: str = "UTC"):
        if not path.is_dir():
            raise FileNotFoundError(f"{path} is no folder of recorded answers")
        self.path = path
        moment = instant(observed_at, zone) if observed_at is not None else None
        self._observed = _milliseconds(moment) if moment else None
        self.read_count = 0
        self.notices: dict[str, int] = {}
        """What was left aside while the folder was read, by reason."""
        self.examples: dict[str, str] = {}
        self.warnings: list[str] = []
        """Each makes all that is read here partial: what a file did not say may lie anywhere."""
        self.first: int | None = None
        self.last: int | None = None
        self._labels: list[dict[str, str]] = []
        self._numbers: dict[tuple[tuple[str, str], ...], int] = {}
        self._hours: dict[int, list[Path]] = {}
        self._folder = tempfile.TemporaryDirectory(prefix="gpuledger-")
        self._members: dict[Group, pl.DataFrame] = {}
        self._held: tuple[int, pl.DataFrame] | None = None
        for file in sorted(file for file in path.rglob("*") if file.is_file()):
            self._read(file)

    def close(self) -> None:
        """Removes what it wrote."""
        self._folder.cleanup()

    def __enter__(self) -> "Recorded":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def metrics(self, begin: int, end: int) -> Told:
        """The metrics that were recorded, at any time."""
        del begin, end  # of a series its labels are known at once, its samples by the hour only
        return Told(sorted({labels[NAME] for labels in self._labels if NAME in labels}))

    def collect(self, segments: Iterable[Segment]) -> Iterator[Fetched]:
        """The segments in their order; an hour is in memory at a time."""
        for segment in segments:
            members = self._of_group(segment.group)
            fetched = Fetched(segment, list(self._stretches(segment, members.is_empty())))
            frame = pl.concat(
                [self._hour(h) for h in range(segment.begin // HOUR, -(-segment.end // HOUR))]
            )
            mine = within(frame, segment[1:])
            mine = mine.join(members, on="series_number", maintain_order="left")
            fetched.read_count = mine.height
            mine = once(mine, fetched.notices)
            if nulls := mine["value"].null_count():
                fetched.notices["not_a_number"] = nulls
            if mine.height:
                fetched.data.append(self._told(mine))
            self.read_count += fetched.read_count
            yield fetched

    def _stretches(self, segment: Segment, is_stranger: bool) -> Iterator[Stretch]:
        """The segment in the recording, and what lies before and after it."""
        group, begin, end = segment
        if is_stranger or self.first is None or self.last is None:
            yield Stretch(*segment, State.MISSING, _UNRECORDED)
            return
        known = min(max(self.first - 1, begin), end), max(min(self.last, end), begin)
        if begin < known[0]:
            yield Stretch(group, begin, known[0], State.MISSING, _UNRECORDED)
        if known[0] < known[1]:
            state = State.PARTIAL if self.warnings else State.COMPLETE
            yield Stretch(group, *known, state, "; ".join(self.warnings)[:300])
        if max(known) < end:
            yield Stretch(group, max(known), end, State.MISSING, _UNRECORDED)

    def _told(self, mine: pl.DataFrame) -> Samples:
        """Samples as an answer has them: with the series that have some, numbered from 0."""
        numbers = mine.select(pl.col("series_number").unique().sort())
        labels = [self._labels[number] for number in numbers["series_number"]]
        renamed = mine.join(
            numbers.with_row_index("local"), on="series_number", maintain_order="left"
        )
        renamed = renamed.select(pl.col("local").alias("series_number"), "at", "value")
        return Samples(series_frame(labels), timed(renamed))

    def _of_group(self, group: Group) -> pl.DataFrame:
        """The numbers of a group's series."""
        if group not in self._members:
            found = [n for n, labels in enumerate(self._labels) if group.accepts(labels)]
            self._members[group] = pl.DataFrame(
                {"series_number": found}, {"series_number": pl.UInt32()}
            )
        return self._members[group]

    def _hour(self, hour: int) -> pl.DataFrame:
        if self._held is None or self._held[0] != hour:
            files = self._hours.get(hour, [])
            kinds = {"series_number": pl.UInt32(), "at": pl.Int64(), "value": pl.Float64()}
            frames = [pl.read_ipc(file) for file in files]
            self._held = (hour, pl.concat([pl.DataFrame(schema=kinds), *frames]))
        return self._held[1]

    def _number(self, labels: dict[str, str]) -> int:
        key = tuple(sorted(labels.items()))
        if key not in self._numbers:
            self._numbers[key] = len(self._labels)
            self._labels.append(labels)
        return self._numbers[key]

    def _note(self, reason: str, example: str) -> None:
        self.notices[reason] = self.notices.get(reason, 0) + 1
        self.examples.setdefault(reason, example[:200])

    def _read(self, file: Path) -> None:
        name = file.relative_to(self.path).as_posix()
        kind = suffix(file)
        is_ours = kind in ANSWERS or (kind in TEXT and (kind != ".txt" or is_metrics(file)))
        if not is_ours or is_objects(file):
            self._note("other_file", name)
            return
        is_text = kind in TEXT
        try:
            with gzip.open(file, "rb") if file.suffix == ".gz" else file.open("rb") as content:
                if is_text:
                    self._read_text(content, name)
                else:
                    whole = content.readlines() if kind == ".jsonl" else [content.read()]
                    for text in whole:
                        self._read_answer(text, name)
        except (OSError, EOFError) as error:
            self._incomplete(name, f"cannot be read to its end: {type(error).__name__}")

    def _incomplete(self, name: str, why: str) -> None:
        self._note("file_broken", f"{name}: {why}")
        self.warnings.append(f"{name}: {why}")

    def _read_text(self, content: Iterable[bytes], name: str) -> None:
        lost: list[str] = []

        def note(reason: str, example: str) -> None:
            self._note(reason, f"{name}: {example}")
            lost.append(reason)

        lines = (line.decode("utf-8", "replace") for line in content)
        for frame in chunks(lines, self._number, self._observed, note):
            self._keep(frame)
        for reason in dict.fromkeys(lost):
            self.warnings.append(f"{name}: {reason} {lost.count(reason)} times")

    def _read_answer(self, text: bytes, name: str) -> None:
        try:
            answer = understood(text, *EVER)
        except Broken as error:
            if _is_other(text):
                self._note("other_answer", name)
            else:
                self._incomplete(name, str(error))
            return
        self.warnings += [f"{name}: {warning}" for warning in answer.warnings]
        for reason, times in answer.notices.items():
            if reason != "not_a_number":  # told by the segment in which it lies
                self.notices[reason] = self.notices.get(reason, 0) + times
        labels = [
            {key: value for key, value in row.items() if value is not None}
            for row in answer.data.series["labels"]
        ]
        numbers = pl.Series([self._number(one) for one in labels], dtype=pl.UInt32())
        if answer.data.samples.height:
            samples = answer.data.samples
            self._keep(
                samples.select(
                    numbers.gather(samples["series_number"]).alias("series_number"),
                    pl.col("at").cast(pl.Int64()) // 1000,
                    "value",
                )
            )

    def _keep(self, frame: pl.DataFrame) -> None:
        """Sorts a chunk into its hours; a sample on the full hour belongs to the one that ends."""
        first, last = frame["at"].min(), frame["at"].max()
        assert isinstance(first, int) and isinstance(last, int)
        self.first = first if self.first is None else min(self.first, first)
        self.last = last if self.last is None else max(self.last, last)
        hours = frame.with_columns(((pl.col("at") - 1) // HOUR).alias("hour"))
        for (hour,), part in hours.partition_by("hour", as_dict=True, include_key=False).items():
            files = self._hours.setdefault(int(hour), [])
            files.append(Path(self._folder.name) / f"{hour}-{len(files)}.arrow")
            part.write_ipc(files[-1])


def _milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def _is_other(text: bytes) -> bool:
    """Whether it is a sound answer to another question, such as a list of names."""
    try:
        told = orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    if not isinstance(told, dict) or told.get("status") != "success":
        return False
    data = told.get("data")
    return not (isinstance(data, dict) and data.get("resultType") in ("matrix", "vector"))
