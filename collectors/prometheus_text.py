"""Metrics as text, OpenMetrics or the older form: series and samples, a chunk at a time.

Which files are read, and what becomes of the chunks, belongs to `prometheus_recorded`.
"""

import re
from collections.abc import Callable, Iterable, Iterator

import polars as pl

CHUNK = 200_000
MILLISECONDS_FROM = 1e11
"""A time as large is in milliseconds, as the older form has it; OpenMetrics writes seconds."""
NAME = "__name__"
_LABEL = re.compile(r'\s*(?:([^\s"=,{}]+)|"((?:[^"\\]|\\.)*)")\s*(?:=\s*"((?:[^"\\]|\\.)*)")?\s*,?')
# With an exemplar after the sample, only the grammar tells which brace closes the labels.
_WHOLE = re.compile(r'([^\s{]*\{(?:[^"}]|"(?:[^"\\]|\\.)*")*)\}\s*(.*?)\s+# \{.*')
_ESCAPE = re.compile(r"\\(.)")
_RAW = {"series_number": pl.UInt32(), "at": pl.Int64(), "value": pl.Float64()}

Number = Callable[[dict[str, str]], int]
"""The number of a series by its labels."""
Note = Callable[[str, str], None]


def chunks(
    lines: Iterable[str], number: Number, observed: int | None, note: Note
) -> Iterator[pl.DataFrame]:
    """Samples as series_number, at in milliseconds, and value; what cannot be used is noted."""
    heads: dict[str, int] = {}
    numbers: list[int] = []
    times: list[int] = []
    values: list[float] = []
    is_open, is_ended = False, False
    for line in lines:
        if line.startswith("#") or not line.strip():
            is_ended = line.startswith("# EOF")
            continue
        try:
            head, value, at = _split(line)
            if at is None and observed is None:
                note("no_time", line.strip())
                continue
            series = heads.get(head)
            if series is None:
                series = heads[head] = number(labels_of(head))
            figure = float(value)
            if at is None:
                moment = observed or 0
            else:
                told = float(at)
                is_seconds = abs(told) < MILLISECONDS_FROM
                is_open = is_open or is_seconds
                moment = round(told * 1000) if is_seconds else round(told)
        except (ValueError, OverflowError):
            note("bad_line", line.strip())
            continue
        numbers.append(series)
        times.append(moment)
        values.append(figure)
        if len(numbers) == CHUNK:
            yield _frame(numbers, times, values)
            numbers, times, values = [], [], []
    if numbers:
        yield _frame(numbers, times, values)
    if is_open and not is_ended:
        note("cut_short", "it has no # EOF")


def _frame(numbers: list[int], times: list[int], values: list[float]) -> pl.DataFrame:
    frame = pl.DataFrame([numbers, times, values], schema=_RAW, orient="col")
    return frame.with_columns(pl.col("value").fill_nan(None))


def _split(line: str) -> tuple[str, str, str | None]:
    """Name and labels as they are written, the value, and the time if there is one."""
    if "# {" in line and (found := _WHOLE.match(line)):
        head, tail = found.groups()
    elif "{" in line:
        head, closed, tail = line.rpartition("}")
        if not closed:
            raise ValueError("the labels do not end")
    else:
        head, _, tail = line.partition(" # ")[0].strip().partition(" ")
    value, *rest = tail.split()
    if len(rest) > 1:
        raise ValueError("there is something after the time")
    return head, value, rest[0] if rest else None


def labels_of(head: str) -> dict[str, str]:
    """The labels that `name{a="b"` writes, the name among them."""
    name, _, inside = head.partition("{")
    found = {NAME: name.strip()} if name.strip() else {}
    place = 0
    while place < len(inside):
        part = _LABEL.match(inside, place)
        if not part or part.end() == place:
            raise ValueError("these are no labels")
        plain, quoted, value = part.groups()
        key = plain if plain is not None else _plain(quoted)
        if value is None and plain is None:
            found[NAME] = key
        elif value is None:
            raise ValueError("a label has no value")
        elif value:  # an empty one is as none
            found[key] = _plain(value)
        place = part.end()
    if NAME not in found:
        raise ValueError("there is no name")
    return found


def _plain(text: str) -> str:
    return _ESCAPE.sub(lambda m: "\n" if m[1] == "n" else m[1], text) if "\\" in text else text
