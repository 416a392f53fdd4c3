"""How a Prometheus is looked at: its samples around the newest, their labels, times and clocks.

What is concluded from them belongs to `doctor_dcgm` and `doctor_metrics`.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

import polars as pl

from collectors.families import CADVISOR, DCGM, KUBE_STATE
from collectors.prometheus import Fetched, Prometheus
from collectors.prometheus_recorded import Recorded
from collectors.prometheus_segments import HOUR, Segment, State
from collectors.prometheus_selectors import Group
from collectors.source import Settings
from models.config import Config
from pipelines.findings import Finding

MINUTE, DAY = 60_000, 24 * HOUR
LOOK = 15 * MINUTE
SLOW_SECONDS = 60
"""Twice the 30 s in which DCGM's exporter collects: a longer pause leaves readings unseen."""
LATE, AHEAD = 5 * MINUTE, MINUTE // 2
INTERVALS = {
    DCGM: "serviceMonitor.interval of chart dcgm-exporter (dcgmExporter.serviceMonitor.interval "
    "of the GPU operator) to 30s, and --collect-interval of the exporter to 30000",
    KUBE_STATE: "prometheus.monitor.interval of chart kube-state-metrics to 30s",
    CADVISOR: "kubelet.serviceMonitor.cAdvisorInterval of kube-prometheus-stack to 30s",
}


WORDS = {DCGM: "DCGM", KUBE_STATE: "kube-state-metrics", CADVISOR: "cAdvisor"}
"""Family -> how people call it."""


@dataclass
class View:
    """A source as it is looked at: who answers, and what time it has."""

    client: Prometheus | Recorded
    settings: Settings
    config: Config
    cluster: str
    now: int
    has_recorder: bool
    warnings: list[str] = field(default_factory=list)

    def read(self, group: Group, begin: int, end: int) -> Fetched:
        """The samples of (begin, end]; what is odd about the answer is kept."""
        [fetched] = self.client.collect([Segment(group, begin, end)])
        for stretch in fetched.stretches:
            if stretch.state is not State.COMPLETE and stretch.reason != "not_recorded":
                self.warnings.append(stretch.reason)
        return fetched

    def lately(self, group: Group) -> tuple[Fetched, int]:
        """The samples around the newest ones, and the end of the time they were looked for in."""
        end = self.now + HOUR  # a clock that is ahead writes into the future
        found = self.read(group, self.now - LOOK, end)
        if found.read_count or isinstance(self.client, Recorded):
            return found, end
        span = f"[{self.settings.recent_days}d:5m]"
        query = f"max(max_over_time(timestamp({group}){span}))"
        told = self.client.discovery.instant(query, self.now).result
        if not told:
            return found, end
        newest = round(float(told[0]["value"][1]) * 1000)
        return self.read(group, newest - LOOK, newest), newest


@dataclass
class Times:
    """When a family is sampled: by job, the seconds between samples, and the newest of them."""

    jobs: dict[str, float | None]
    newest: dict[str, int]
    """Target -> milliseconds."""

    @property
    def last(self) -> int:
        """The newest of all."""
        return max(self.newest.values())


def labels(fetched: Fetched, *keys: str) -> pl.DataFrame:
    """The series of an answer with some of their labels, empty where there is none."""
    kinds = {"piece": pl.UInt32(), "series_number": pl.UInt32()}
    frames = [pl.DataFrame(schema={**kinds, **dict.fromkeys(keys, pl.String())})]
    for piece, data in enumerate(fetched.data):
        names = {f.name for f in data.series.schema["labels"].fields}  # type: ignore[attr-defined]
        told = [
            (pl.col("labels").struct.field(n) if n in names else pl.lit(None, pl.String()))
            .fill_null("")
            .alias(n)
            for n in keys
        ]
        number = pl.lit(piece, pl.UInt32()).alias("piece")
        frames.append(data.series.select(number, "series_number", *told))
    return pl.concat(frames)


def flat(fetched: Fetched, *keys: str) -> pl.DataFrame:
    """Each sample with some labels of its series; `at` in milliseconds."""
    frames = [pl.DataFrame(schema={"piece": pl.UInt32(), "series_number": pl.UInt32(),
                                   "at": pl.Int64(), "value": pl.Float64()})]  # fmt: skip
    for piece, data in enumerate(fetched.data):
        at = pl.col("at").cast(pl.Int64()) // 1000
        number = pl.lit(piece, pl.UInt32()).alias("piece")
        frames.append(data.samples.select(number, "series_number", at, "value"))
    return pl.concat(frames).join(labels(fetched, *keys), on=["piece", "series_number"])


def times_of(fetched: Fetched, target: str = "instance") -> Times:
    """How often samples come, and the newest of each target."""
    found = flat(fetched, "job", target)
    steps = (
        found.sort("piece", "series_number", "at")
        .with_columns(pl.col("at").diff().over("piece", "series_number").alias("step"))
        .group_by("job")
        .agg((pl.col("step").median() / 1000).alias("seconds"))
        .sort("job")
    )
    newest = found.group_by(target).agg(pl.col("at").max()).sort(target)
    return Times(dict(steps.iter_rows()), dict(newest.iter_rows()))


def often(view: View, family: str, times: Times, end: int) -> Iterator[Finding]:
    """Whether samples come often enough, and whether they are of this time."""
    server = isinstance(view.client, Prometheus)
    for job, seconds in times.jobs.items():
        name = f"{view.cluster}: {WORDS[family]}, job {job or 'not told'}"
        if seconds is None:
            seconds = float("inf") if server and end > view.now else 0.0
        if seconds > SLOW_SECONDS:
            told = (
                f"each {seconds:,.0f} s" if seconds * 1000 < LOOK else "less than twice in 15 min"
            )
            yield Finding(
                f"{name}: scrape interval: sampled {told}, more than {SLOW_SECONDS} s, twice what "
                "an exporter collects in: shorter work and shorter holds are not seen",
                f"set {INTERVALS[family]}",
            )
    if not server:
        return
    name = f"{view.cluster}: {WORDS[family]}"
    late = {t: view.now - at for t, at in times.newest.items() if view.now - at > LATE}
    if late:
        yield Finding(
            f"{name}: the newest sample of {some(late)} is {max(late.values()) // MINUTE:,} min "
            "old: it is down or gone, or its clock is behind",
            "see that it is up among the targets of Prometheus, and that NTP keeps its time",
        )
    ahead = {t: at - view.now for t, at in times.newest.items() if at - view.now > AHEAD}
    if ahead:
        yield Finding(
            f"{name}: clock skew: samples of {some(ahead)} are up to "
            f"{max(ahead.values()) // 1000:,} s ahead of the server's clock",
            "let these machines keep time by NTP, or drop the times that they tell: "
            "honorTimestamps: false in the ServiceMonitor",
        )


def some(names: Collection[str], most: int = 3) -> str:
    """The first of some names, and how many more there are."""
    told = sorted(names)
    rest = f" and {len(told) - most:,} more" if len(told) > most else ""
    return ", ".join(told[:most]) + rest
