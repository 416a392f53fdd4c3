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

from collectors.columns import PLACE, model, moment, number, scanned, told, used, word, written
from collectors.coverage import Days, instant, micros_of, tiles
from collectors.pods_of_table import POD_TABLE, nodes_of, versions_of
from collectors.quantities import FIRST_INSTANT
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
BYTES_A_PART = 2**29
AGAIN = "_duplicated_"
"""What Polars puts behind a column's name where a header has it again."""
BAD = "bad"
STEPS = ("created", "bound", "started", "ended")
THEIRS = {**{f"{step}_at": step for step in STEPS}, "class": "workload_class"}
"""Our name of a field -> the mapping's, where they differ."""
FIRST = instant(FIRST_INSTANT)
LEAST_MILLI_GPU = 10
"""No way of sharing a GPU gives less than a hundredth of it."""
MOST_MILLI_GPU = 10**9
"""A million GPUs: more than any node or pod has."""


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
    most_milli_gpu: int | None = None
    """More than this no placed pod holds: the largest node, or all where no pod names its own."""

    def take_nodes(self, milli_gpus: pl.Series) -> None:
        """Nodes of the table, as they are read, before the pods."""
        before = self.most_milli_gpu or 0
        if self.mapping.pods.columns.node is not None:
            self.most_milli_gpu = max(before, int(str(milli_gpus.max() or 0)))
        else:
            self.most_milli_gpu = before + int(milli_gpus.sum())


def collect(path: Path, settings: Settings, window: Window | None = None) -> Iterator[Batch]:
    """The raw rows of the window's days, in bounded memory; of all days where it is None."""
    trace = _opened(path, settings, window)
    if trace.mapping.nodes:
        yield from _nodes(trace, trace.mapping.nodes)
    yield from _pods(trace)
    parts = [(micros_of(trace.begin), micros_of(trace.end), "table")]
    is_placed = trace.mapping.pods.columns.node is not None
    place = f"{trace.where.name}: window"
    nodes_from = None if trace.most_milli_gpu is None else parts[0][0]  # any was read
    yield from tiles(parts, window, settings, place, is_placed, nodes_from)
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
        raise _unreadable(trace.folder / file, error) from error
    names = [name for name in schema.names() if name != PLACE]
    wanted = used(values)
    faults = []
    for field_name, columns in wanted.items():
        for column in columns:
            if column not in names:
                close = difflib.get_close_matches(column, names, n=1, cutoff=0.0)
                hint = f"; the nearest one is {close[0]}" if close else ""
                faults.append(f"{key}.columns.{field_name}: {file} has no column {column}{hint}")
            elif f"{column}{AGAIN}0" in names:
                faults.append(f"{key}.columns.{field_name}: {file} has two columns {column}")
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
        raise _unreadable(trace.folder / file, error) from error


def _unreadable(path: Path, error: Exception) -> Unreadable:
    mend = "write it as UTF-8, with one header and as many cells in each line as that has"
    if path.suffix == ".parquet":
        mend = "it is no Parquet file, or was cut off: copy it again"
    return Unreadable(f"{path}: {str(error).splitlines()[0]}: {mend}")


def _repeated(trace: Trace, file: Path, frame: pl.LazyFrame, key: Value) -> pl.Series:
    """Hashes of the ids that may be there more than once.

    All ids of a long table are too many to keep at once: it is read again for each part of them.
    """
    hashed = frame.select(word(key).hash().alias("id"))
    parts = (trace.folder / file).stat().st_size // BYTES_A_PART + 1
    found = [pl.Series("id", [], pl.UInt64())]
    for part in range(parts):
        of_part = hashed.filter(pl.col("id") % parts == part)
        hashes = [batch["id"] for batch in _read(trace, file, of_part)]
        in_order = pl.concat([found[0], *hashes]).sort()
        found.append(in_order.filter(in_order == in_order.shift()).unique())
    return pl.concat(found)


class _Firsts:
    """Tells the first row of each id or name; only those that may repeat are remembered."""

    def __init__(self, trace: Trace, file: Path, frame: pl.LazyFrame, field: str, value: Value):
        self.field, self.reason = field, {"id": "duplicate_uid", "name": "duplicate_name"}[field]
        self.repeated = _repeated(trace, file, frame, value)
        self.seen: set[str] = set()

    def marked(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The frame, repetitions refused."""
        is_again = self._repetitions(frame)
        return frame.with_columns(
            pl.when(pl.col("reason").is_not_null())
            .then("reason")
            .when(is_again)
            .then(pl.lit(self.reason))
            .alias("reason")
        )

    def _repetitions(self, frame: pl.DataFrame) -> pl.Series:
        maybe = frame[self.field].hash().is_in(self.repeated.implode())
        if not maybe.any():
            return maybe
        found = []
        for is_maybe, key in zip(maybe, frame[self.field], strict=True):
            found.append(is_maybe and key in self.seen)
            if is_maybe:
                self.seen.add(key)
        return pl.Series(found, dtype=pl.Boolean())


def _sorted_out(trace: Trace, file: Path, frame: pl.DataFrame, *firsts: _Firsts) -> pl.DataFrame:
    """The rows that can be used; the others are counted by their reason."""
    for first in firsts:
        frame = first.marked(frame)
    refused = frame.filter(pl.col("reason").is_not_null())
    if refused.height:
        at = pl.lit(trace.begin) if "created_at" not in frame.columns else pl.col("created_at")
        inside = at.is_between(trace.begin, trace.end, closed="left")
        refused = refused.with_columns(pl.when(inside).then(at).otherwise(trace.begin).alias("at"))
        field = pl.when(pl.col("reason") == "bad_column_value").then(BAD)
        for at, reason, line, key, bad in refused.select(
            "at", "reason", PLACE, "id", field
        ).iter_rows():
            what = f"{file.name}:{line} {key}" + (f": {bad}" if bad else "")
            _reject(trace, at, file.name, reason, what)
    return frame.filter(pl.col("reason").is_null())


def _first_reason(reasons: list[tuple[str, pl.Expr]]) -> pl.Expr:
    found = pl.lit(None, pl.String())
    for reason, is_so in reversed(reasons):
        found = pl.when(is_so.fill_null(False)).then(pl.lit(reason)).otherwise(found)
    return found.alias("reason")


def _nodes(trace: Trace, table: mappings.NodeTable) -> Iterator[Batch]:
    columns = table.columns
    values = _values(columns)
    frame = _table(trace, "nodes", table.file, values)
    fields = {
        "id": word(columns.id),
        "name": word(columns.name or columns.id),
        "gpu_count": number(columns.gpu_count, "gpu"),
        "model": model(columns.gpu_model),
        "product": word(columns.gpu_model),
        "capacity_type": word(columns.capacity_type),
        "cpu": number(columns.cpu, "core"),
        "memory": number(columns.memory, "mib"),
    }
    checked = {name: values.get(name) for name in ("gpu_count", "cpu", "memory")}
    reason = _first_reason(
        [
            ("no_uid", pl.col("id").is_null()),
            ("bad_column_value", pl.col(BAD).is_not_null()),
            ("bad_column_value", pl.col("milli_gpu").is_null()),
            ("bad_column_value", pl.col("milli_gpu") % 1000 != 0),
            ("negative_quantity", pl.min_horizontal("milli_gpu", "cpu", "memory") < 0),
            ("absurd_quantity", pl.col("milli_gpu") > MOST_MILLI_GPU),
        ]
    )
    firsts = [_Firsts(trace, table.file, frame, "id", columns.id)]
    if columns.name is not None and trace.mapping.pods.columns.node is not None:
        firsts.append(_Firsts(trace, table.file, frame, "name", columns.name))
    for batch in _read(trace, table.file, frame):
        made = _made(batch, fields, checked)
        made = made.with_columns(
            pl.col("gpu_count").alias("milli_gpu"), pl.col("cpu", "memory").fill_null(0)
        ).with_columns(reason)
        good = _sorted_out(trace, table.file, made, *firsts)
        trace.take_nodes(good["milli_gpu"])
        if trace.window is None or trace.window.contains(trace.begin):
            rows = nodes_of(good, trace.settings, table.file.name, trace.begin)
            yield from _sliced(raw.NODE_VERSIONS.name, raw.NODE_VERSIONS.conform(rows))


def _made(
    batch: pl.DataFrame, fields: dict[str, pl.Expr], checked: dict[str, Value | None]
) -> pl.DataFrame:
    """The fields of the rows, and in `BAD` the first one that is written but was not understood."""
    given = {name: value for name, value in checked.items() if value is not None}
    has = {f"{name}?": written(value) for name, value in given.items()}
    made = batch.select(PLACE, **fields, **has)
    bad = [
        pl.when(pl.col(f"{name}?") & pl.col(name).is_null()).then(pl.lit(THEIRS.get(name, name)))
        for name in given
    ]
    return made.with_columns(pl.coalesce(pl.lit(None, pl.String()), *bad).alias(BAD))


def _pods(trace: Trace) -> Iterator[Batch]:
    table, times = trace.mapping.pods, trace.mapping.time
    columns = table.columns
    values = _values(columns)
    frame = _table(trace, "pods", table.file, values)
    schema = frame.collect_schema()

    def instant_of(value: Value | None) -> pl.Expr:
        return moment(value, times, schema.get(value.column) if value and value.column else None)

    kind = word(columns.workload_kind).fill_null("Pod")
    usual = kind.replace_strict(CLASS_OF_KIND, default="unknown", return_dtype=pl.String())
    classes = word(columns.workload_class)
    fields = {
        "id": word(columns.id),
        "name": word(columns.name or columns.id),
        "namespace": word(columns.namespace).fill_null("default"),
        **{f"{step}_at": instant_of(values.get(step)) for step in STEPS},
        "node": word(columns.node),
        "phase": word(columns.phase),
        "gpu_count": number(columns.gpu_count, "gpu"),
        "gpu_milli": number(columns.gpu_milli, "milli_gpu"),
        "cpu": number(columns.cpu, "core"),
        "asked_model": model(columns.asked_model),
        "team": word(columns.team),
        "queue": word(columns.queue),
        "user": word(columns.user),
        "account": word(columns.account),
        "kind": kind,
        "workload": word(columns.workload_name),
        "class": pl.when(classes.is_in(CLASSES)).then(classes),
        "usual_class": usual,
        "is_service": kind.is_in(list(SERVICES)),
        "labels": _labels(columns.labels),
    }
    checks = (*(f"{step}_at" for step in STEPS), "gpu_count", "gpu_milli", "cpu", "class")
    checked = {name: values.get(THEIRS.get(name, name)) for name in checks}
    each = pl.lit(1000) if columns.gpu_milli is None else pl.col("gpu_milli")
    milli, most = pl.col("milli_gpu"), trace.most_milli_gpu or MOST_MILLI_GPU
    reason = _first_reason(
        [
            ("no_uid", pl.col("id").is_null()),
            ("bad_column_value", pl.col(BAD).is_not_null()),
            ("no_creation", pl.col("created_at").is_null()),
            ("bad_column_value", pl.col("milli_gpu").is_null()),
            ("negative_quantity", pl.min_horizontal("gpu_count", "gpu_milli", "cpu") < 0),
            ("absurd_quantity", each > 1000),
            ("absurd_quantity", pl.col("bound_at").is_not_null() & (milli > most)),
            ("absurd_quantity", milli > MOST_MILLI_GPU),
            ("absurd_quantity", (milli > 0) & (milli < LEAST_MILLI_GPU)),
            ("absurd_instant", pl.col("created_at") < FIRST),
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
    firsts = _Firsts(trace, table.file, frame, "id", columns.id)
    for batch in _read(trace, table.file, frame):
        made = _made(batch, fields, checked).with_columns(
            (pl.col("gpu_count") * each // 1000).alias("milli_gpu"),
            pl.col("cpu").fill_null(0),
            pl.coalesce("class", "usual_class").alias("class"),
        )
        good = _sorted_out(trace, table.file, made.with_columns(reason), firsts)
        has = (columns.started is not None, trace.begin, trace.end)
        rows = versions_of(_alive(trace, good), trace.settings, table.file.name, *has)
        if trace.window:
            inside = pl.col("day_on").is_between(trace.window.begin_on, trace.window.end_on, "left")
            rows = rows.filter(inside)
        yield from _sliced(POD_TABLE.name, POD_TABLE.conform(rows))


def _alive(trace: Trace, pods: pl.DataFrame) -> pl.DataFrame:
    """The pods that the window can show anything of; which rows exactly is told by their day."""
    if trace.window is None:
        return pods
    is_over = pl.col("ended_at").fill_null(trace.end) < trace.window.begin
    return pods.filter((pl.col("created_at") < trace.window.end) & ~is_over)


def _labels(labels: dict[str, Value]) -> pl.Expr:
    if not labels:
        return pl.lit("{}")
    words = [word(value).alias(key) for key, value in labels.items()]
    return pl.struct(words).struct.json_encode()


def _sliced(table: str, rows: pl.DataFrame) -> Iterator[Batch]:
    for part in rows.iter_slices(MOST_ROWS):
        if part.height:
            yield Batch(table, part)
