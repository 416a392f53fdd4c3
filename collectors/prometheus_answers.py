"""What a Prometheus answers to a query, as frames: labels of series, samples, and what was odd.

How an answer is got belongs to `prometheus_http`, which stretch it must fill to
`prometheus_segments`. Samples go from text to Arrow without a Python object for each; text that
is not laid out as Prometheus writes it takes the slower way, to the same frames.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate, chain
from typing import Any, NamedTuple

import orjson
import polars as pl
import pyarrow as pa
import pyarrow.csv as arrow_csv
from pyarrow.compute import list_parent_indices  # type: ignore[attr-defined]

from models.table import INSTANT

_OPENS, _CLOSES = b'"values":[[', b"]]"
# Hour by hour the series of a metric mostly are the same: then their labels are read once.
KNOWN, KNOWN_BYTES = 64, 1 << 19
# `1,"2"],[3,"4"` becomes two lines that both begin with a comma, in one pass over the text.
_LINES = bytes.maketrans(b"]", b"\n")
_READ = arrow_csv.ReadOptions(
    column_names=["", "at", "value"], use_threads=False, block_size=1 << 20
)
_PARSE = arrow_csv.ParseOptions(quote_char=False, ignore_empty_lines=False)
_CONVERT = arrow_csv.ConvertOptions(
    column_types={"at": pa.float64(), "value": pa.float64()},
    include_columns=["at", "value"],
    null_values=["NaN"],
)


class Broken(Exception):
    """The text is no whole answer: cut short, or no JSON of this API."""


class Samples(NamedTuple):
    """Samples of some series; the numbers of series hold within this pair only."""

    series: pl.DataFrame
    """series_number, and a struct of labels, which are null where a series has none such."""
    samples: pl.DataFrame
    """series_number, at, value; the value is null where NaN was stored."""


@dataclass
class Answer:
    """One answer, understood."""

    data: Samples
    read_count: int
    """Samples in it, those included that were left out afterwards."""
    warnings: list[str] = field(default_factory=list)
    """Each is a reason to hold the answer for incomplete."""
    notices: dict[str, int] = field(default_factory=dict)
    """What was left out or is odd, and how often."""


class _Head(NamedTuple):
    """All of an answer but its samples."""

    warnings: list[str]
    notices: dict[str, int]
    numbers: list[int]
    """The number of each entry's series."""
    series: pl.DataFrame
    entries: list[dict[str, Any]]


def understood(text: bytes, begin: int, end: int) -> Answer:
    """The samples of an answer in (begin, end], in milliseconds since 1970, each once."""
    try:
        head, counts, at, value = _quickly(text) or _slowly(text)
    except orjson.JSONDecodeError:
        raise Broken("it is cut short or no JSON") from None
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise Broken(f"is not shaped as an answer: {type(error).__name__}") from None
    if at.null_count() or len(at) != sum(counts):
        raise Broken("it holds a time that is no number")
    frame = pl.DataFrame(
        {
            "series_number": _spread(head.numbers, counts),
            "at": (at * 1000).round().cast(pl.Int64),
            "value": value,
        }
    )
    notices = dict(head.notices)
    samples = once(within(frame, (begin, end)), notices)
    if nulls := samples["value"].null_count():
        _count(notices, "not_a_number", nulls)
    return Answer(Samples(head.series, timed(samples)), frame.height, head.warnings, notices)


def faults_of(envelope: Any) -> list[str]:
    """What makes an answer incomplete although it came: warnings, infos, a partial result."""
    if not isinstance(envelope, dict) or envelope.get("status") != "success":
        raise Broken("it does not say that it succeeded")
    said = [str(text) for key in ("warnings", "infos") for text in envelope.get(key) or ()]
    return [*said, *(["isPartial"] if envelope.get("isPartial") else ())]


_Read = tuple[_Head, list[int], pl.Series, pl.Series]


def _quickly(text: bytes) -> _Read | None:
    """The samples straight from the text; None where it is laid out in any other way.

    The mark that opens samples holds a bare quote and a colon, which no string in JSON can. The
    one that closes them may stand in a label, too; what is cut there is neither JSON nor numbers.
    """
    first, *parts = text.split(_OPENS)
    values, rest = [], [first]
    for part in parts:
        value, _, after = part.rpartition(_CLOSES)
        values.append(value)
        rest.append(after)
    frame = b'"values":[]'.join(rest)
    try:
        head = (_known_head if len(frame) < KNOWN_BYTES else _head)(frame)
        if len(values) != len(head.entries) or any(entry["values"] for entry in head.entries):
            return None
        return head, [value.count(b"]") + 1 for value in values], *_from_text(values)
    except (orjson.JSONDecodeError, pa.ArrowInvalid):
        return None


def _slowly(text: bytes) -> _Read:
    """The same by way of an object for each sample."""
    head = _head(text)
    pairs = [entry["values"] for entry in head.entries]
    flat = list(chain.from_iterable(pairs))
    at = pl.Series([float(at) for at, _ in flat], dtype=pl.Float64)
    value = pl.Series([_float(value) for _, value in flat], dtype=pl.Float64)
    return head, [len(pair) for pair in pairs], at, value.fill_nan(None)


def _head(text: bytes) -> _Head:
    envelope = orjson.loads(text)
    warnings = faults_of(envelope)
    notices: dict[str, int] = {}
    entries = list(_entries(envelope["data"], notices))
    numbers, unique = _numbered([entry["metric"] for entry in entries])
    return _Head(warnings, notices, numbers, series_frame(unique), entries)


_known_head = lru_cache(KNOWN)(_head)


def _entries(data: Any, notices: dict[str, int]) -> Any:
    """The series of a matrix or a vector that have samples which are numbers."""
    if data["resultType"] not in ("matrix", "vector"):
        raise Broken(f"it holds a {data['resultType']}, neither matrix nor vector")
    for entry in data["result"]:
        if "histogram" in entry or "histograms" in entry:
            _count(notices, "native_histogram", len(entry.get("histograms") or [0]))
        if "value" in entry:
            yield {"metric": entry["metric"], "values": [entry["value"]]}
        elif "values" in entry:
            yield entry


def _from_text(values: list[bytes]) -> tuple[pl.Series, pl.Series]:
    if not values:
        return pl.Series(dtype=pl.Float64), pl.Series(dtype=pl.Float64)
    table = arrow_csv.read_csv(
        pa.BufferReader(b"," + b"],".join(values).translate(_LINES, b'"[')),
        read_options=_READ,
        parse_options=_PARSE,
        convert_options=_CONVERT,
    )
    at, value = pl.from_arrow(table).get_columns()  # type: ignore[union-attr]
    return at, value


def _float(text: Any) -> float:
    if not isinstance(text, str) or text != text.strip() or "_" in text:
        raise ValueError("a value is text, and a number as Go writes it")
    return float(text)


def _numbered(labels: list[dict[str, str]]) -> tuple[list[int], list[dict[str, str]]]:
    """A number for each set of labels, the same for the same set, and the sets by number."""
    known: dict[bytes, int] = {}
    keys = [orjson.dumps(one, option=orjson.OPT_SORT_KEYS) for one in labels]
    numbers = [known.setdefault(key, len(known)) for key in keys]
    first = dict(zip(reversed(numbers), reversed(labels), strict=True))
    return numbers, [first[number] for number in range(len(known))]


def _spread(numbers: list[int], counts: list[int]) -> pl.Series:
    """The number of each sample's series."""
    offsets = pa.array(accumulate(counts, initial=0), pa.int64())
    lists = pa.LargeListArray.from_arrays(offsets, pa.nulls(sum(counts)))
    places = pl.Series(pl.from_arrow(list_parent_indices(lists)), dtype=pl.UInt32())
    if numbers == list(range(len(numbers))):
        return places
    return pl.Series(numbers, dtype=pl.UInt32()).gather(places)


def series_frame(labels: list[dict[str, str]]) -> pl.DataFrame:
    """The labels of series by number."""
    names = sorted({name for one in labels for name in one}) or ["__name__"]
    kind = pl.Struct(dict.fromkeys(names, pl.String()))
    return pl.DataFrame(
        {
            "series_number": pl.Series(range(len(labels)), dtype=pl.UInt32),
            "labels": pl.Series(labels, dtype=kind),
        }
    )


def within(frame: pl.DataFrame, window: tuple[int, int]) -> pl.DataFrame:
    """The rows in (begin, end]; older servers answer with the sample at the begin, too."""
    begin, end = window
    return frame.filter((pl.col("at") > begin) & (pl.col("at") <= end))


def once(frame: pl.DataFrame, notices: dict[str, int]) -> pl.DataFrame:
    """Each (series, time) once, the first; that another value was there is a notice."""
    rises = frame.select(
        ((pl.col("series_number").diff().cast(pl.Int64) != 0) | (pl.col("at").diff() > 0)).all(),
        pl.col("series_number").rle_id().max().alias("runs"),
        pl.col("series_number").n_unique().alias("series"),
    )
    is_rising, runs, series = rises.row(0)
    if frame.is_empty() or (is_rising and runs + 1 == series):
        return frame
    kept = frame.unique(["series_number", "at"], keep="first", maintain_order=True)
    if kept.height < frame.height:
        _count(notices, "duplicate_sample", frame.height - kept.height)
        distinct = frame.unique(["series_number", "at", "value"]).height
        if distinct > kept.height:
            _count(notices, "conflicting_sample", distinct - kept.height)
    return kept


def timed(frame: pl.DataFrame) -> pl.DataFrame:
    """Milliseconds as instants."""
    return frame.with_columns((pl.col("at") * 1000).cast(INSTANT))


def _count(notices: dict[str, int], reason: str, times: int) -> None:
    notices[reason] = notices.get(reason, 0) + times
