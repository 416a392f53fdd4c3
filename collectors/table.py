"""A trace as tables of pods and nodes (CSV or Parquet), read as its mapping says, as raw rows.

A pod's row becomes what a watch would have seen: made, bound, started, ended, each at its instant.
What the fields mean is in `models.mapping`; which expressions they become in `columns`.
"""

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import polars as pl

from collectors.columns import PLACE, model, moment, number, scanned, told, used, word
from collectors.coverage import Days, micros_of, tiles
from collectors.pods_of_table import POD_TABLE, nodes_of, versions_of
from collectors.rejections import Rejections
from collectors.source import Batch, Settings, Unreadable
from models import mapping as mappings
from models import raw
from models.config_errors import ConfigError
from models.mapping import Mapping, Value
from models.states import CLASSES
from models.window import Window
from models.workloads import CLASS_OF_KIND, SERVICES

ROWS_READ = 50_000
MOST_ROWS = 20_000


@dataclass
class Trace:
    """A folder of tables and what its mapping says."""

    folder: Path
    mapping: Mapping
    where: Path
    begin: datetime
    end: datetime
    settings: Settings
    window: Window | None
    rejections: Rejections


def collect(path: Path, settings: Settings, window: Window | None = None) -> Iterator[Batch]:
    """The raw rows of the window's days, in bounded memory; of all days where it is None."""
    trace = _opened(path, settings, window)
    if trace.mapping.nodes:
        yield from _nodes(trace, trace.mapping.nodes)
    yield from _pods(trace)
    parts = [(micros_of(trace.begin), micros_of(trace.end), "table")]
    is_placed = trace.mapping.pods.columns.node is not None
    place = f"{trace.where.name}: window"
    yield from tiles(parts, window, settings, place, is_placed)
    yield from trace.rejections.batches()


def span(path: Path, settings: Settings) -> tuple[datetime, datetime] | None:
    """The known window, as the mapping states it."""
    trace = _opened(path, settings, None)
    return trace.begin, trace.end


def _opened(path: Path, settings: Settings, window: Window | None) -> Trace:
    if settings.mapping is None:
        raise Unreadable(f"{path}: a table needs a mapping, the file that says what columns mean")
    mapping = mappings.load(settings.mapping)
    begin = told(mapping.window.begins, mapping.time, settings.mapping)
    end = told(mapping.window.ends, mapping.time, settings.mapping)
    if begin >= end:
        raise ConfigError(settings.mapping, ["window: `to` is not after `from`"])
    folder = path if path.is_dir() else path.parent
    rejections = Rejections(settings)
    return Trace(folder, mapping, settings.mapping, begin, end, settings, window, rejections)


def _values(columns: mappings.PodColumns | mappings.NodeColumns) -> dict[str, Value]:
    found = {}
    for name, value in columns:
        if isinstance(value, Value):
            found[name] = value
        elif isinstance(value, dict):
            found |= {f"{name}.{key}": each for key, each in value.items()}
    return found


def _table(trace: Trace, key: str, file: Path, values: dict[str, Value]) -> pl.LazyFrame:
    """The table, its mapped columns only; a missing one is an error, an unused one a notice."""
    frame = scanned(trace.folder / file, trace.mapping)
    try:
        schema = frame.collect_schema()
    except pl.exceptions.PolarsError as error:
        raise Unreadable(f"{trace.folder / file}: {str(error).splitlines()[0]}") from error
    names = [name for name in schema.names() if name != PLACE]
    wanted = used(values)
    faults = []
    for field_name, columns in wanted.items():
        for column in columns:
            if column not in names:
                close = difflib.get_close_matches(column, names, n=1, cutoff=0.0)
                hint = f"; the nearest one is {close[0]}" if close else ""
                faults.append(f"{key}.columns.{field_name}: {file} has no column {column}{hint}")
    if faults:
        raise ConfigError(trace.where, faults)
    mapped = {column for columns in wanted.values() for column in columns}
    if unused := [name for name in names if name not in mapped]:
        _reject(trace, trace.begin, file.name, "unknown_column", ", ".join(unused), len(unused))
    return frame.select(PLACE, *(name for name in names if name in mapped))


def _reject(
    trace: Trace, at: datetime, place: str, reason: str, example: str, times: int = 1
) -> None:
    if trace.window is None or trace.window.contains(at):
        day = Days(trace.settings.zone).of(micros_of(at))
        trace.rejections.add(day, place, reason, example, times)


def _read(trace: Trace, file: Path, frame: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    try:
        yield from frame.collect_batches(chunk_size=ROWS_READ, maintain_order=True)
    except pl.exceptions.PolarsError as error:
        raise Unreadable(f"{trace.folder / file}: {str(error).splitlines()[0]}") from error


def _repeated(trace: Trace, file: Path, frame: pl.LazyFrame, key: Value) -> pl.Series:
    """Hashes of the ids that may be there more than once: 8 bytes a row are kept for it."""
    parts = [
        batch["id"] for batch in _read(trace, file, frame.select(word(key).hash().alias("id")))
    ]
    hashes = pl.concat(parts) if parts else pl.Series("id", [], pl.UInt64())
    return hashes.filter(hashes.is_duplicated()).unique()


class _Firsts:
    """Tells the first row of each id; only ids that may repeat are remembered."""

    def __init__(self, repeated: pl.Series):
        self.repeated = repeated
        self.seen: set[str] = set()

    def mark(self, frame: pl.DataFrame) -> pl.Series:
        """Whether each row is a repetition."""
        maybe = frame["id"].hash().is_in(self.repeated.implode())
        if not maybe.any():
            return maybe
        found = []
        for is_maybe, key in zip(maybe, frame["id"], strict=True):
            found.append(is_maybe and key in self.seen)
            if is_maybe:
                self.seen.add(key)
        return pl.Series(found, dtype=pl.Boolean())


def _sorted_out(trace: Trace, file: Path, frame: pl.DataFrame, firsts: _Firsts) -> pl.DataFrame:
    """The rows that can be used; the others are counted by their reason."""
    frame = frame.with_columns(
        pl.when(pl.col("reason").is_not_null())
        .then("reason")
        .when(firsts.mark(frame))
        .then(pl.lit("duplicate_uid"))
        .alias("reason")
    )
    refused = frame.filter(pl.col("reason").is_not_null())
    if refused.height:
        at = pl.lit(trace.begin) if "created_at" not in frame.columns else pl.col("created_at")
        inside = at.is_between(trace.begin, trace.end, closed="left")
        refused = refused.with_columns(pl.when(inside).then(at).otherwise(trace.begin).alias("at"))
        for row in refused.select("at", "reason", PLACE, "id").iter_rows():
            _reject(trace, row[0], file.name, row[1], f"{file.name}:{row[2]} {row[3]}")
    return frame.filter(pl.col("reason").is_null())


def _first_reason(reasons: list[tuple[str, pl.Expr]]) -> pl.Expr:
    found = pl.lit(None, pl.String())
    for reason, is_so in reversed(reasons):
        found = pl.when(is_so.fill_null(False)).then(pl.lit(reason)).otherwise(found)
    return found.alias("reason")


def _nodes(trace: Trace, table: mappings.NodeTable) -> Iterator[Batch]:
    columns, bad = table.columns, []
    frame = _table(trace, "nodes", table.file, _values(columns))
    fields = {
        "id": word(columns.id),
        "name": word(columns.name or columns.id),
        "milli_gpu": number(columns.gpu_count, "gpu", bad.append),
        "model": model(columns.gpu_model),
        "product": word(columns.gpu_model),
        "capacity_type": word(columns.capacity_type),
        "cpu": number(columns.cpu, "core", bad.append).fill_null(0),
        "memory": number(columns.memory, "mib", bad.append).fill_null(0),
    }
    reason = _first_reason(
        [
            ("no_uid", pl.col("id").is_null()),
            ("bad_column_value", pl.col("is_bad")),
            ("bad_column_value", pl.col("milli_gpu").is_null()),
            ("bad_column_value", pl.col("milli_gpu") % 1000 != 0),
            ("negative_quantity", pl.min_horizontal("milli_gpu", "cpu", "memory") < 0),
        ]
    )
    firsts = _Firsts(_repeated(trace, table.file, frame, columns.id))
    for batch in _read(trace, table.file, frame):
        is_bad = pl.any_horizontal(pl.lit(False), *bad).alias("is_bad")
        made = batch.select(PLACE, is_bad, **fields).with_columns(reason)
        good = _sorted_out(trace, table.file, made, firsts)
        if trace.window is None or trace.window.contains(trace.begin):
            rows = nodes_of(good, trace.settings, table.file.name, trace.begin)
            yield from _sliced(raw.NODE_VERSIONS.name, raw.NODE_VERSIONS.conform(rows))


def _pods(trace: Trace) -> Iterator[Batch]:
    table, times = trace.mapping.pods, trace.mapping.time
    columns, bad = table.columns, []
    values = _values(columns)
    frame = _table(trace, "pods", table.file, values)
    schema = frame.collect_schema()

    def instant_of(value: Value | None) -> pl.Expr:
        dtype = schema.get(value.column) if value and value.column else None
        return moment(value, times, dtype, bad.append)

    kind = word(columns.workload_kind).fill_null("Pod")
    usual = kind.replace_strict(CLASS_OF_KIND, default="unknown", return_dtype=pl.String())
    classes = word(columns.workload_class)
    if columns.workload_class:
        bad.append(classes.is_not_null() & ~classes.is_in(CLASSES))
    gpus = number(columns.gpu_count, "gpu", bad.append)
    each = number(columns.gpu_milli, "milli_gpu", bad.append)
    fields = {
        "id": word(columns.id),
        "name": word(columns.name or columns.id),
        "namespace": word(columns.namespace).fill_null("default"),
        "created_at": instant_of(columns.created),
        "bound_at": instant_of(columns.bound),
        "started_at": instant_of(columns.started),
        "ended_at": instant_of(columns.ended),
        "node": word(columns.node),
        "phase": word(columns.phase),
        "milli_gpu": gpus if columns.gpu_milli is None else (gpus * each) // 1000,
        "cpu": number(columns.cpu, "core", bad.append).fill_null(0),
        "asked_model": model(columns.asked_model),
        "team": word(columns.team),
        "queue": word(columns.queue),
        "user": word(columns.user),
        "account": word(columns.account),
        "kind": kind,
        "workload": word(columns.workload_name),
        "class": pl.coalesce(classes, usual),
        "is_service": kind.is_in(list(SERVICES)),
        "labels": _labels(columns.labels),
    }
    reason = _first_reason(
        [
            ("no_uid", pl.col("id").is_null()),
            ("bad_column_value", pl.col("is_bad")),
            ("no_creation", pl.col("created_at").is_null()),
            ("bad_column_value", pl.col("milli_gpu").is_null()),
            ("negative_quantity", pl.min_horizontal("milli_gpu", "cpu") < 0),
            ("placed_before_created", pl.col("bound_at") < pl.col("created_at")),
            ("negative_duration", pl.col("started_at") < pl.col("bound_at")),
            (
                "negative_duration",
                pl.col("ended_at") < pl.max_horizontal("created_at", "bound_at", "started_at"),
            ),
            ("outside_window", pl.col("created_at") >= trace.end),
            ("outside_window", pl.col("ended_at") < trace.begin),
        ]
    )
    firsts = _Firsts(_repeated(trace, table.file, frame, columns.id))
    is_bad = pl.any_horizontal(pl.lit(False), *bad).alias("is_bad")
    for batch in _read(trace, table.file, frame):
        made = batch.select(PLACE, is_bad, **fields).with_columns(reason)
        good = _sorted_out(trace, table.file, made, firsts)
        has = (columns.started is not None, trace.begin, trace.end)
        rows = versions_of(good, trace.settings, table.file.name, *has)
        if trace.window:
            inside = pl.col("day_on").is_between(trace.window.begin_on, trace.window.end_on, "left")
            rows = rows.filter(inside)
        yield from _sliced(POD_TABLE.name, POD_TABLE.conform(rows))


def _labels(labels: dict[str, Value]) -> pl.Expr:
    if not labels:
        return pl.lit("{}")
    words = [word(value).alias(key) for key, value in labels.items()]
    return pl.struct(words).struct.json_encode()


def _sliced(table: str, rows: pl.DataFrame) -> Iterator[Batch]:
    for part in rows.iter_slices(MOST_ROWS):
        if part.height:
            yield Batch(table, part)
