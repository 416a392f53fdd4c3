"""When the pipeline runs: every hour for today, every night for what may still change.

What a run does belongs in `assets`.
"""

from collections.abc import Iterable, Iterator
from datetime import date, datetime, timedelta

import dagster as dg

from lake.run import dirty_days
from models.window import day_of
from pipelines.assets import Ledger, clusters, zone

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
            "dagster/asset_partition_range_start": f"{cluster}|{first}",
            "dagster/asset_partition_range_end": f"{cluster}|{last}",
        },
    )


@dg.schedule(
    job=everything,
    cron_schedule="5 * * * *",
    execution_timezone=zone(),
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


@dg.schedule(
    job=everything,
    cron_schedule="35 2 * * *",
    execution_timezone=zone(),
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
