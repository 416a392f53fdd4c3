"""A made-up fleet for the tests of the pages: ledger rows that keep the laws, marts by our own SQL.

Two clusters: alpha is priced and measured, beta is neither. Names in it are as hostile as any
that a cluster may hold. What the pipeline itself computes is tested elsewhere.
"""

import atexit
import math
import random
import shutil
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import duckdb
import polars as pl

from lake.create import create
from lake.home import Home
from lake.run import Run
from models.catalog import CATALOG
from models.states import UNALLOCATED, UNATTRIBUTED, UNAVAILABLE, UNKNOWN
from models.table import Table
from models.window import Window
from sql import QUERIES
from tests import dashboard_findings, dashboard_gpus, dashboard_starts

LAST = date(2026, 11, 29)
KNOWN_UNTIL = datetime(2026, 11, 29, 14, tzinfo=UTC)
FLEET = {
    ("alpha", "h100"): (64, 3_900_000),
    ("alpha", "a100"): (32, 2_100_000),
    ("beta", "l40s"): (16, None),
}
"""(cluster, model) -> GPUs installed, price of a GPU-hour in millionths."""
HOSTILE_TEAM = '=HYPERLINK("http://evil.example","pay")'
HOSTILE_JOB = "<img src=x onerror=alert(1)> [free](http://evil.example) $x$"
TEAMS = {
    "language-models": ("science", 30),
    "vision": ("science", 18),
    "search-ranking": ("product", 14),
    "speech": ("science", 9),
    "recommendations": ("product", 7),
    "robotics": ("science", 5),
    UNATTRIBUTED: (None, 3),
    HOSTILE_TEAM: (None, 1),
}
HELD = {
    "active": [("none", 62)],
    "idle": [("memory_held", 9), ("empty", 4)],
    "unobserved": [("no_series", 7)],
    "loading": [("none", 4)],
    "gang_wait": [("member_unplaced", 4), ("member_lost", 1)],
    "starting": [("image_pull", 3), ("init", 1), ("crash_loop", 1)],
    "stalled": [("none", 2)],
    "terminating": [("none", 1)],
}
FREE = [
    (UNALLOCATED, "unallocated", "no_demand", 12),
    (UNALLOCATED, "unallocated", "fragmented", 5),
    (UNALLOCATED, "unallocated", "quota", 3),
    (UNALLOCATED, "unallocated", "undetermined", 2),
    (UNALLOCATED, "unallocated", "partition_remainder", 1),
    (UNAVAILABLE, "unavailable", "cordoned", 2),
    (UNAVAILABLE, "unavailable", "node_not_ready", 1),
    (UNKNOWN, "unrecorded", "recorder_gap", 0.4),
]
MARTS = ("mart.fleet_states", "mart.fleet_waterfall", "mart.fleet_coverage", "mart.team_days",
         "mart.workload_days", "mart.attempt_waits", *dashboard_starts.NAMES,
         *dashboard_gpus.NAMES, *dashboard_findings.NAMES)  # fmt: skip
GPU_DAYS = 21  # so long ago the exporters came
BROKEN = "time_is_conserved: 3 hours differ <b>on node</b> gpu-7"
Part = tuple[str, str | None, str, str, float]


def parts_of(cluster: str, day: date, dice: random.Random) -> Iterator[Part]:
    """Holder, workload, state, cause and weight of all that a cluster's GPUs do on one day."""
    load = (0.75 if day.weekday() > 4 else 1.0) * (0.9 + 0.2 * math.sin(day.toordinal() / 17))
    for team, (_, size) in TEAMS.items():
        for slot in range(3):
            workload = f"{cluster}/{team}/{(day.toordinal() + 3 * slot) // 7}-{slot}"
            for state, causes in HELD.items():
                for cause, weight in causes:
                    known = cluster == "alpha" or state not in ("active", "idle", "stalled")
                    labels = (state, cause) if known else ("unobserved", "no_series")
                    share = size * weight * load * dice.uniform(0.6, 1.4) / 3
                    yield team, workload, labels[0], labels[1], share
    for holder, state, cause, weight in FREE:
        yield holder, None, state, cause, weight * 87 * dice.uniform(0.5, 1.5) / max(load, 0.5)


def ledger(days: int, dice: random.Random) -> pl.DataFrame:
    """One ledger row for each node, day, workload, state and cause."""
    rows = []
    for (cluster, model), (count, price) in FLEET.items():
        for back in range(days):
            day = LAST - timedelta(days=back)
            until = min(datetime.combine(day + timedelta(days=1), time(), UTC), KNOWN_UNTIL)
            begin = datetime.combine(day, time(), UTC)
            installed = count * int((until - begin).total_seconds())
            merged: dict[tuple, float] = {}
            for *key, weight in parts_of(cluster, day, dice):
                merged[tuple(key)] = merged.get(tuple(key), 0) + weight
            weights, left = sum(merged.values()), installed
            for (team, workload, state, cause), weight in merged.items():
                seconds = int(installed * weight / weights)
                left -= seconds
                rows.append((cluster, model, day, begin, team, workload, state, cause, seconds))
            rows.append((cluster, model, day, begin, UNALLOCATED, None, "unallocated",
                         "turnover", left))  # fmt: skip
            if price:
                rows.append((cluster, model, day, begin, "__rounding__", None, "rounding",
                             "none", 0))  # fmt: skip
    table = CATALOG["core.ledger"]
    return pl.DataFrame(
        [ledger_row(*row) for row in rows], schema=table.schema, orient="row", strict=False
    )


def ledger_row(cluster, model, day, hour, team, workload, state, cause, seconds) -> dict:
    """One row; the rounding that a day's rows leave over is one fixed micro-unit here."""
    price = FLEET[cluster, model][1]
    cost = None if price is None else Decimal(seconds * price // 3600) / 1_000_000
    if state == "rounding":
        cost = Decimal("0.000001")
    return {
        "cluster_name": cluster, "day_on": day, "node_uid": f"{cluster}-{model}",
        "gpu_model_name": model, "hour_at": hour,
        "hold_id": None if workload is None else f"{workload}/{state}/{cause}",
        "workload_key_uid": workload, "team_name": team, "state_name": state,
        "cause_name": cause, "price_id": None if price is None else model,
        "gpu_seconds": Decimal(seconds), "ledger_cost": cost,
    }  # fmt: skip


def workloads(rows: pl.DataFrame) -> pl.DataFrame:
    """What each workload of the ledger is called."""
    found = rows.filter(pl.col("workload_key_uid").is_not_null()).select(
        "cluster_name", "day_on", "workload_key_uid", "team_name"
    ).unique(maintain_order=True)  # fmt: skip
    hostile = pl.col("team_name") == HOSTILE_TEAM
    name = pl.col("workload_key_uid").str.extract(r"([^/]+)$")
    slot = name.str.ends_with("2")
    return found.with_columns(
        workload_kind_name=pl.when(slot).then(pl.lit("Deployment")).otherwise(pl.lit("PyTorchJob")),
        namespace_name=pl.when(hostile).then(pl.lit("-2+3")).otherwise("team_name"),
        workload_name=pl.when(hostile).then(pl.lit(HOSTILE_JOB)).otherwise("train-" + name),
        workload_class=pl.when(slot).then(pl.lit("inference")).otherwise(pl.lit("training")),
        is_service=slot,
        queue_name=pl.lit("main"),
        user_name=pl.lit("someone"),
        gang_size_count=pl.lit(None, pl.Int64),
        gang_source_name=pl.lit(None, pl.String),
        first_created_at=pl.lit(KNOWN_UNTIL).cast(pl.Datetime("us", "UTC")),
    ).select(CATALOG["core.workloads"].schema.names())


def attempt_waits(days: int, dice: random.Random, per_day: int = 24) -> pl.DataFrame:
    """Attempts of all fates, each with one row a day until its wait ended or we looked last."""
    rows = []
    begin = datetime.combine(LAST - timedelta(days=days - 1), time(), UTC)
    for number in range(days * per_day):
        queued = begin + timedelta(seconds=dice.randrange(days * 86_400))
        if queued >= KNOWN_UNTIL:
            continue
        is_service, is_gpu = dice.random() < 0.2, dice.random() < 0.85
        pods = dice.choice([1, 1, 1, 2, 4, 8])
        wait = int(dice.lognormvariate(5 if is_service else 7.2, 1.6) * (0.5 + pods / 4))
        leaves = not is_service and dice.random() < 0.08
        decided = queued + timedelta(seconds=wait)
        team = dice.choices(list(TEAMS), [size for _, size in TEAMS.values()])[0]
        day = queued.date()
        while True:
            until = min(datetime.combine(day + timedelta(days=1), time(), UTC), KNOWN_UNTIL)
            known = decided < until
            placed = decided if known and not leaves else None
            ended = decided if known and leaves else None
            waited = int((min(decided, until) - queued).total_seconds())
            started = placed + timedelta(seconds=90) if placed else None
            asked = pods * 8_000_000 if is_gpu else 0
            rows.append({
                "cluster_name": "beta" if number % 6 == 0 else "alpha", "day_on": day,
                "attempt_id": f"attempt-{number}", "workload_key_uid": f"workload-{number}",
                "workload_name": HOSTILE_JOB if number % 50 == 0 else f"job-{number}",
                "team_name": team, "queue_name": dice.choice(["main", "main", "spot"]),
                "gpu_shape_name": f"h100 x 8 x {pods}" if is_gpu else "cpu",
                "is_service": is_service, "is_gpu": is_gpu, "queued_at": queued,
                "queued_on": queued.date(), "placed_at": placed, "ended_at": ended,
                "started_at": started if started and started < until else None,
                "known_until_at": until,
                "outcome_name": "served" if placed else "left" if ended else "waiting",
                "queue_wait_seconds": waited, "start_wait_seconds": 90 if started else None,
                "quota_wait_seconds": 0, "is_start_known": True, "asked_micro_gpu": asked,
                "waited_gpu_seconds": Decimal(asked * waited) / 1_000_000,
            })  # fmt: skip
            if known or until == KNOWN_UNTIL:
                break
            day += timedelta(days=1)
    return pl.DataFrame(rows, schema=CATALOG["mart.attempt_waits"].schema)


def windows(days: int) -> pl.DataFrame:
    """Each cluster's known window of each day."""
    rows = []
    for cluster in ("alpha", "beta"):
        for back in range(days):
            day = LAST - timedelta(days=back)
            begin = datetime.combine(day, time(), UTC)
            end = min(begin + timedelta(days=1), KNOWN_UNTIL)
            known = int((end - begin).total_seconds())
            rows.append((cluster, day, begin, end, True, True, known, known))
    names = ("cluster_name", "day_on", "begin_at", "end_at", "is_placed", "is_inventory_known",
             "watched_seconds", "known_seconds")  # fmt: skip
    frame = pl.DataFrame(rows, schema=names, orient="row")
    return frame.select(
        pl.col(name).cast(kind) for name, kind in CATALOG["core.windows"].schema.items()
    )


def tables(days: int = 120, *, is_measured: bool = True) -> dict[str, pl.DataFrame]:
    """Every table that a page reads, by name, in the contract's columns."""
    dice = random.Random(7)
    con = duckdb.connect()
    con.execute("set TimeZone = 'UTC'")
    for layer in ("raw", "core", "mart", "meta"):
        con.execute(f"create schema {layer}")
    for table in CATALOG.values():
        con.execute(table.ddl(strict=False))
    rows = ledger(days, dice)
    fill(con, CATALOG["core.ledger"], rows)
    fill(con, CATALOG["core.workloads"], workloads(rows))
    fill(con, CATALOG["core.windows"], windows(days))
    fill(con, CATALOG["mart.attempt_waits"], attempt_waits(days, dice))
    con.executemany(
        "insert into raw.teams values ($1, $2, null, null)",
        [(team, parent) for team, (parent, _) in TEAMS.items() if parent],
    )
    con.execute(
        "insert into core.gpu_hours by name select cluster_name, day_on, hour_at, gpu_model_name, "
        "team_name, 'training' as workload_class, state_name, cause_name, "
        "sum(gpu_seconds) as gpu_seconds, "
        "coalesce(sum(gpu_seconds) filter (where price_id is null), 0) as unpriced_gpu_seconds, "
        "sum(ledger_cost) as hour_cost from core.ledger group by all"
    )
    for name in ("fleet_states", "fleet_waterfall", "fleet_coverage", "team_days", "workload_days"):
        con.execute(f"insert into mart.{name} by name {QUERIES[f'mart.{name}']}")
    dashboard_starts.fill_marts(con, days, KNOWN_UNTIL, HOSTILE_JOB)
    dashboard_findings.fill_marts(con, KNOWN_UNTIL, HOSTILE_JOB, "vision")
    if is_measured:
        dashboard_gpus.fill_marts(con, min(days, GPU_DAYS), KNOWN_UNTIL, FLEET)
    found = {name: CATALOG[name].conform(con.sql(f"from {name}").pl()) for name in MARTS}
    first = pl.lit(LAST - timedelta(days=days - 1))
    return {name: frame.filter(pl.col("day_on") >= first) for name, frame in found.items()}


def publish(home: Home, days: int = 120, *, is_measured: bool = True) -> None:
    """A lake with both clusters published, of which beta's next run then broke a law."""
    create(home, "UTC", "USD")
    frames = tables(days, is_measured=is_measured)
    first, end = LAST - timedelta(days=days - 1), LAST + timedelta(days=1)
    for cluster in ("alpha", "beta"):
        run = Run(home, f"{cluster}-1", Window(cluster, first, end, "UTC"))
        for name, frame in frames.items():
            run.begin(CATALOG[name])
            run.append(CATALOG[name], frame.filter(pl.col("cluster_name") == cluster))
        run.publish()
        run.discard()
    failed = Run(home, "beta-2", Window("beta", LAST, end, "UTC"))
    failed.fail(BROKEN)
    failed.discard()


@cache
def published_home() -> Path:
    """The folder of such a lake, one for all tests of a session."""
    folder = Path(mkdtemp(prefix="gpuledger-pages-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    publish(Home(folder), 70)
    return folder


def fill(con: duckdb.DuckDBPyConnection, table: Table, frame: pl.DataFrame) -> None:
    """Insert a frame that is in the contract's types."""
    con.register("given", table.conform(frame))
    con.execute(f"insert into {table.name} by name from given")
    con.unregister("given")
