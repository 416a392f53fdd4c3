"""When the pipeline runs: every hour for today, every night for what may still change.

A cluster with a server of metrics is refreshed every five minutes in between.

What a run does belongs in `assets`.
"""

from collections.abc import Iterable, Iterator
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import dagster as dg

from lake.run import dirty_days
from models.config import Cluster
from models.window import day_of
from pipelines.assets import PARTITION, RANGE_BEGIN, RANGE_END, ZONE, Ledger, clusters

HOURLY_MINUTE, NIGHTLY_HOUR, NIGHTLY_MINUTE = 5, 2, 35
GOING = (
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
)
STUCK = timedelta(hours=2)
"""A run that began longer ago may have died with its machine: it holds up no other."""

everything = dg.define_asset_job(
    "everything",
    selection=dg.AssetSelection.all(),
    description="Every table of one cluster's window, checked and published.",
)


def stretches(found: Iterable[date]) -> Iterator[tuple[date, date]]:
    """The days as stretches without gaps: first and last day of each."""
    first = last = None
    for day in sorted(set(found)):
        if first is None or last is None:
            first = last = day
        elif day == last + timedelta(days=1):
            last = day
        else:
            yield first, last
            first = last = day
    if first is not None and last is not None:
        yield first, last


def request(cluster: str, first: date, last: date, now: datetime) -> dg.RunRequest:
    """One run of a stretch of days."""
    return dg.RunRequest(
        run_key=f"{cluster} {first} {last} {now.isoformat()}",
        tags={
            RANGE_BEGIN: f"{cluster}|{first}",
            RANGE_END: f"{cluster}|{last}",
        },
    )


@dg.schedule(
    job=everything,
    cron_schedule=f"{HOURLY_MINUTE} * * * *",
    execution_timezone=ZONE,
    default_status=dg.DefaultScheduleStatus.RUNNING,
)
def hourly(context: dg.ScheduleEvaluationContext, ledger: Ledger) -> list[dg.RunRequest]:
    """Today, for each cluster of the configuration."""
    now = context.scheduled_execution_time
    _, config = ledger.opened()
    today = day_of(now, config.lake.accounting_zone)
    names = [cluster.name for cluster in config.clusters]
    context.instance.add_dynamic_partitions(str(clusters.name), names)
    return [request(name, today, today, now) for name in names]


def is_served(cluster: Cluster) -> bool:
    """Whether a server tells of it, which may be asked at any time."""
    return any(source.kind == "prometheus" and source.url for source in cluster.sources)


def going(instance: dg.DagsterInstance, now: datetime) -> set[str]:
    """The clusters of which a run has not ended."""
    runs = instance.get_runs(dg.RunsFilter(statuses=list(GOING), created_after=now - STUCK))
    keys = (run.tags.get(RANGE_BEGIN) or run.tags.get(PARTITION, "") for run in runs)
    return {key.rpartition("|")[0] for key in keys}


@dg.schedule(
    job=everything,
    cron_schedule=",".join(str(n) for n in range(0, 60, 5) if n != HOURLY_MINUTE) + " * * * *",
    execution_timezone=ZONE,
    default_status=dg.DefaultScheduleStatus.RUNNING,
)
def frequently(context: dg.ScheduleEvaluationContext, ledger: Ledger) -> list[dg.RunRequest]:
    """Today, for each cluster that has a server of metrics and no run that goes on."""
    now = context.scheduled_execution_time
    _, config = ledger.opened()
    at = now.astimezone(ZoneInfo(ZONE))
    if (at.hour, at.minute) == (NIGHTLY_HOUR, NIGHTLY_MINUTE):
        return []  # `nightly` takes today with it
    today = day_of(now, config.lake.accounting_zone)
    busy = going(context.instance, now)
    names = [each.name for each in config.clusters if is_served(each) and each.name not in busy]
    context.instance.add_dynamic_partitions(str(clusters.name), names)
    return [request(name, today, today, now) for name in names]


@dg.schedule(
    job=everything,
    cron_schedule=f"{NIGHTLY_MINUTE} {NIGHTLY_HOUR} * * *",
    execution_timezone=ZONE,
    default_status=dg.DefaultScheduleStatus.RUNNING,
)
def nightly(context: dg.ScheduleEvaluationContext, ledger: Ledger) -> list[dg.RunRequest]:
    """The days that are still provisional, and those whose raw rows have changed since."""
    now = context.scheduled_execution_time
    home, config = ledger.opened()
    today = day_of(now, config.lake.accounting_zone)
    wanted: dict[str, set[date]] = {
        cluster.name: {
            today - timedelta(days=n) for n in range(config.policies.provisional_days + 1)
        }
        for cluster in config.clusters
    }
    if home.catalog.exists():
        for cluster, day, *_ in dirty_days(home).iter_rows():
            wanted.setdefault(cluster, set()).add(day)
    context.instance.add_dynamic_partitions(str(clusters.name), list(wanted))
    return [
        request(name, first, last, now)
        for name, found in wanted.items()
        for first, last in stretches(found)
    ]
