"""The series of kube-state-metrics as facts of objects, and the stretches in which each was told.

A stretch is a run of scrapes in which one series had one value. What the facts make of a pod or a
node belongs to `kube_state_objects`, which stretch was told by whom to `kube_state`.
"""

from collections.abc import Iterator
from typing import NamedTuple

import polars as pl

from collectors.prometheus_answers import Samples
from collectors.quantities import FIRST_INSTANT, LAST_INSTANT, MOST

MISSED = 1.5
"""A series that comes this many intervals after its last sample was not there at a scrape."""
DEFAULT_INTERVAL = 60_000_000
TELLERS = ("job", "instance", "prometheus", "prometheus_replica", "replica", "shard_ordinal")
"""Labels of the target that told a series: two replicas differ in one of them."""
MOST_ROWS = 500_000
NEVER = -62_135_596_800
"""Go's zero time in seconds: none."""


class Fact(NamedTuple):
    """What one metric says of which kind of object."""

    kind: str
    labels: tuple[str, ...] = ()
    """At most three labels that tell its rows apart; `label_` or `annotation_`: all such."""
    value: str = "flag"
    """flag: 0 or 1; instant: seconds since 1970; amount: 0 or more."""
    is_passing: bool = False
    """Whether an object may be without: then it says something that it is not told."""


def _pod(*labels: str, value: str = "flag") -> Fact:
    return Fact("Pod", labels, value)


def _passing(*labels: str, value: str = "flag") -> Fact:
    return Fact("Pod", labels, value, True)


_START, _INIT = "kube_pod_container", "kube_pod_init_container"
FACTS: dict[str, Fact] = {
    "kube_node_info": Fact("Node", ("provider_id", "system_uuid")),
    "kube_node_created": Fact("Node", (), "instant"),
    "kube_node_labels": Fact("Node", ("label_",)),
    "kube_node_annotations": Fact("Node", ("annotation_",)),
    "kube_node_spec_unschedulable": Fact("Node"),
    "kube_node_status_condition": Fact("Node", ("condition", "status")),
    "kube_node_status_capacity": Fact("Node", ("resource",), "amount"),
    "kube_node_status_allocatable": Fact("Node", ("resource",), "amount"),
    "kube_namespace_labels": Fact("Namespace", ("label_",)),
    "kube_replicaset_owner": Fact("ReplicaSet", ("owner_kind", "owner_name")),
    "kube_job_owner": Fact("Job", ("owner_kind", "owner_name")),
    "kube_pod_info": _pod("node"),
    "kube_pod_created": _pod("namespace", "pod", value="instant"),
    "kube_pod_owner": _pod("owner_kind", "owner_name", "owner_is_controller"),
    "kube_pod_labels": _pod("label_"),
    "kube_pod_annotations": _pod("annotation_"),
    "kube_pod_deletion_timestamp": _passing(value="instant"),
    "kube_pod_completion_time": _passing(value="instant"),
    "kube_pod_status_phase": _pod("phase"),
    "kube_pod_status_reason": _passing("reason"),
    "kube_pod_status_scheduled": _pod("condition"),
    "kube_pod_status_scheduled_time": _passing(value="instant"),
    "kube_pod_status_initialized_time": _passing(value="instant"),
    "kube_pod_status_ready": _pod("condition"),
    "kube_pod_status_ready_time": _passing(value="instant"),
    "kube_pod_status_disruption_reason": _passing("reason"),
    f"{_START}_resource_requests": _pod("container", "resource", "node", value="amount"),
    f"{_START}_resource_limits": _pod("container", "resource", "node", value="amount"),
    f"{_START}_state_started": _passing("container", value="instant"),
    f"{_START}_status_running": _passing("container"),
    f"{_START}_status_restarts_total": _passing("container", value="amount"),
    f"{_START}_status_waiting_reason": _passing("container", "reason"),
    f"{_START}_status_terminated_reason": _passing("container", "reason"),
    f"{_START}_status_last_terminated_reason": _passing("container", "reason"),
    f"{_START}_status_last_terminated_exitcode": _passing("container", value="amount"),
    f"{_START}_status_last_terminated_timestamp": _passing("container", value="instant"),
    f"{_INIT}_info": _pod("container", "restart_policy"),
    f"{_INIT}_resource_requests": _pod("container", "resource", "node", value="amount"),
    f"{_INIT}_resource_limits": _pod("container", "resource", "node", value="amount"),
    f"{_INIT}_status_running": _passing("container"),
    f"{_INIT}_status_waiting_reason": _passing("container", "reason"),
    f"{_INIT}_status_terminated_reason": _passing("container", "reason"),
}
KEYS = {
    "Pod": ("uid",),
    "Node": ("node",),
    "Namespace": ("namespace",),
    "ReplicaSet": ("namespace", "replicaset"),
    "Job": ("namespace", "job_name"),
}
"""Kind -> the labels that name one object; a pod goes by its uid, for names are used again."""
NO_KEY = {"Pod": "no_uid"}
IDENTITY = {
    "kind": pl.Enum(list(KEYS)),
    "key": pl.String(),
    "metric": pl.Enum(list(FACTS)),
    **dict.fromkeys(("a", "b", "c"), pl.String()),
    "teller": pl.Categorical(),
}
RUNS = {
    **IDENTITY,
    "value": pl.Float64(),
    "first": pl.Int64(),
    "last": pl.Int64(),
    "count": pl.Int64(),
}
"""The columns of stretches; instants in microseconds since 1970."""


class Refusal(NamedTuple):
    """Samples that are no fact."""

    reason: str
    example: str
    times: int
    first: int
    """When the first of them was stored."""
    run_count: int
    """How often one began to be told: as often a fact would have changed a row."""


class Facts:
    """Turns samples into stretches, and learns when each teller was scraped."""

    def __init__(self) -> None:
        self.intervals: dict[str, int] = {}
        """Teller -> microseconds between its scrapes."""
        self.scrapes: dict[str, set[int]] = {}
        """Teller -> when it was scraped, of what was read since the last reset."""
        self.refusals: list[Refusal] = []
        self.kept = self.unused = 0

    def reset(self) -> None:
        """Begins to count anew."""
        self.scrapes, self.refusals = {}, []
        self.kept = self.unused = 0

    def interval(self, teller: str | None = None) -> int:
        """The interval of a teller, or the shortest of all."""
        if teller is not None and teller in self.intervals:
            return self.intervals[teller]
        return min(self.intervals.values(), default=DEFAULT_INTERVAL)

    def runs(self, samples: Samples) -> pl.DataFrame:
        """The stretches of some samples; what is no fact is noted."""
        series = pl.concat([pl.DataFrame(schema=_SERIES), *_told(samples.series)])
        # Among so many rows a teller goes by a number.
        tellers = series["teller"].unique(maintain_order=True)
        numbers = series.select(
            "series_number",
            pl.col("teller").replace_strict(
                tellers, pl.int_range(tellers.len(), eager=True), return_dtype=pl.UInt16()
            ),
        )
        parts = [self._part(part, numbers, tellers) for part in _parts(samples.samples)]
        runs = pl.concat([pl.DataFrame(schema=_BARE), *parts])
        found = self._sound(runs.join(series, on="series_number", maintain_order="left"))
        return found.select(*RUNS)

    def _part(
        self, samples: pl.DataFrame, numbers: pl.DataFrame, tellers: pl.Series
    ) -> pl.DataFrame:
        """The stretches of some whole series, which go by their numbers still."""
        self.kept += samples.height
        frame = samples.select(
            "series_number", pl.col("at").cast(pl.Int64()), pl.col("value").fill_nan(None)
        )
        known = frame.join(numbers, on="series_number", how="inner", maintain_order="left")
        self.unused += frame.height - known.height
        for (number,), part in known.select("teller", "at").unique().group_by("teller"):
            self._scraped(tellers[int(str(number))], part["at"].to_list())
        known = known.drop("teller").sort("series_number", "at")
        return _stretches(known, int(MISSED * self.interval()))

    def _scraped(self, teller: str, times: list[int]) -> None:
        self.scrapes.setdefault(teller, set()).update(times)
        if teller not in self.intervals and len(times) > 2:
            gaps = pl.Series(sorted(times)).diff().drop_nulls()
            self.intervals[teller] = int(gaps.sort()[gaps.len() // 2])

    def _sound(self, runs: pl.DataFrame) -> pl.DataFrame:
        """Those that can be true."""
        value, check = pl.col("value"), pl.col("check")
        micros = value * 1_000_000
        is_time = value.is_finite() & micros.is_between(FIRST_INSTANT, LAST_INSTANT, closed="left")
        reason = (
            pl.when(pl.col("key").is_null())
            .then(pl.col("kind").cast(pl.String()).replace_strict(NO_KEY, default="no_name"))
            .when(value.is_null())
            .then(pl.lit("not_a_number"))
            .when((check == "instant") & (value == NEVER))
            .then(pl.lit("none"))
            .when((check == "instant") & ~is_time)
            .then(pl.lit("absurd_instant"))
            .when((check != "instant") & (value < 0))
            .then(pl.lit("negative_quantity"))
            .when((check == "amount") & ~(value <= MOST * 1024))
            .then(pl.lit("absurd_quantity"))
            .when((check == "flag") & ~value.is_in([0.0, 1.0]))
            .then(pl.lit("absurd_quantity"))
        )
        judged = runs.with_columns(reason.alias("reason"))
        wrong = judged.filter(pl.col("reason").is_not_null())
        if wrong.height:
            told = pl.format("{} {} {}", "metric", pl.col("key").fill_null("?"), value.fill_null(0))
            by_day = wrong.group_by(
                "reason", (pl.col("first") // 3_600_000_000).alias("hour"), maintain_order=True
            ).agg(
                told.first().alias("example"),
                pl.col("count").sum(),
                pl.col("first").min(),
                pl.len().alias("run_count"),
            )
            columns = ("reason", "example", "count", "first", "run_count")
            for row in by_day.select(columns).iter_rows():
                if row[0] == "none":
                    self.unused += row[2]
                else:
                    self.refusals.append(Refusal(*row))
        return judged.filter(pl.col("reason").is_null())


_BARE = {"series_number": pl.UInt32(), "value": pl.Float64()} | dict.fromkeys(
    ("first", "count", "last"), pl.Int64()
)
_SERIES = {
    "series_number": pl.UInt32(),
    **IDENTITY,
    "check": pl.String(),
}


def _parts(samples: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """All samples, some whole series at a time: each step of the work copies its rows."""
    if samples.height <= MOST_ROWS:
        yield samples
        return
    last = samples["series_number"].max()
    assert isinstance(last, int)
    step = max(1, (last + 1) * MOST_ROWS // samples.height)
    for first in range(0, last + 1, step):
        yield samples.filter(pl.col("series_number").is_between(first, first + step - 1))


def _told(series: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """The series that are facts: of which object, and what tells them apart."""
    table = series.select("series_number", "labels").unnest("labels")
    if "__name__" not in table.columns:
        return
    for (name,), part in table.group_by("__name__", maintain_order=True):
        fact = FACTS.get(str(name))
        if fact is None:
            continue
        there = [c for c in part.columns if part[c].null_count() < part.height]
        slots = [_slot(label, there) for label in fact.labels]
        slots += [pl.lit(None, pl.String())] * (3 - len(slots))
        yield part.with_columns(_teller(there)).select(
            pl.col("series_number").cast(pl.UInt32()),
            pl.lit(fact.kind, IDENTITY["kind"]).alias("kind"),
            pl.concat_str([_label(label, there) for label in KEYS[fact.kind]], separator="/").alias(
                "key"
            ),
            pl.lit(str(name), IDENTITY["metric"]).alias("metric"),
            *(slot.alias(letter) for slot, letter in zip(slots, "abc", strict=True)),
            "teller",
            pl.lit(fact.value).alias("check"),
        )


def _teller(there: list[str]) -> pl.Expr:
    """The labels of the target as they stand in a selector after others; empty ones are none."""
    told = [pl.lit("")]
    for name in (name for name in TELLERS if name in there):
        value = pl.col(name).str.replace_all(r'(["\\])', r"\${1}")
        told.append(pl.when(pl.col(name) != "").then(pl.format(',{}="{}"', pl.lit(name), value)))
    return pl.concat_str(told, ignore_nulls=True).cast(IDENTITY["teller"]).alias("teller")


def _slot(label: str, there: list[str]) -> pl.Expr:
    if not label.endswith("_"):
        return _label(label, there)
    mine = sorted(name for name in there if name.startswith(label))
    if not mine:
        return pl.lit("{}")
    return pl.struct(pl.col(name).alias(name[len(label) :]) for name in mine).struct.json_encode()


def _label(label: str, there: list[str]) -> pl.Expr:
    """A label of the object: `exported_` where the target has one of that name itself.

    A target's own label also stands where the object's is empty, so one exported label of a
    teller means that all of its plain ones are the target's.
    """
    exported = f"exported_{label}"
    plain = pl.col(label) if label in there else pl.lit(None, pl.String())
    if exported not in there:
        return plain
    is_exported = pl.col(exported).is_not_null().any().over("teller")
    return pl.when(is_exported).then(pl.col(exported)).otherwise(plain)


def _stretches(samples: pl.DataFrame, limit: int) -> pl.DataFrame:
    """Runs of one value, of samples that are sorted."""
    previous = pl.col("series_number", "at", "value").shift(1).name.prefix("before_")
    begins = (
        (pl.col("series_number") != pl.col("before_series_number")).fill_null(True)
        | pl.col("value").ne_missing(pl.col("before_value"))
        | (pl.col("at") - pl.col("before_at") > limit)
    )
    numbered = samples.with_columns(previous).with_row_index("place").filter(begins)
    after = pl.col("place").shift(-1, fill_value=samples.height)
    return numbered.select(
        "series_number",
        "value",
        pl.col("at").alias("first"),
        (after - pl.col("place")).cast(pl.Int64()).alias("count"),
        (after - 1).alias("end"),
    ).select(
        pl.exclude("end"),
        pl.lit(samples["at"]).gather(pl.col("end")).alias("last")
        if samples.height
        else pl.lit(0, pl.Int64()).alias("last"),
    )


def copies(runs: pl.DataFrame, interval: int) -> int:
    """Samples that another teller told as well, at about the same time."""
    if runs["teller"].n_unique() < 2:
        return 0
    names = [name for name in IDENTITY if name != "teller"]
    spans = (
        runs.with_columns(pl.col("teller").cast(pl.String()))
        .group_by(*names, "teller")
        .agg(pl.col("first").min(), pl.col("last").max(), pl.col("count").sum())
    )
    spans = spans.sort("first", "teller")
    both = spans.join(spans, on=names, nulls_equal=True, suffix="_by").filter(
        pl.col("teller") != pl.col("teller_by")
    )
    later = both.filter(
        (pl.col("first") > pl.col("first_by"))
        | ((pl.col("first") == pl.col("first_by")) & (pl.col("teller") > pl.col("teller_by")))
    ).filter(pl.col("first") <= pl.col("last_by") + interval)
    overlap = pl.min_horizontal("last", pl.col("last_by") + interval) - pl.col("first")
    share = overlap / (pl.col("last") - pl.col("first"))
    inside = (pl.col("count") * share.fill_nan(1.0).clip(0, 1)).round().cast(pl.Int64())
    counted = later.with_columns(inside.alias("inside")).group_by(*names, "teller")
    return int(counted.agg(pl.col("inside").max())["inside"].sum())
