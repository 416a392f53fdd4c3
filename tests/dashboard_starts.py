"""What the made-up fleet of the pages holds before it works: by image, pod by pod, and its pulls.

Its sums are those of the fleet's ledger; of beta's pods no event was recorded.
"""

import random
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal

import duckdb
import polars as pl

from models.catalog import CATALOG

NAMES = ("mart.startups", "mart.pod_starts", "mart.image_pulls")
HOSTILE_IMAGE = '=cmd|"/c calc" <img src=x onerror=alert(1)> [free](http://evil.example)'
IMAGES = ("registry.example/llm/train:7", "registry.example/vision/train:3", HOSTILE_IMAGE)
PLACES = (("alpha", "h100"), ("alpha", "a100"), ("beta", "l40s"))
PER_DAY = 30

STARTUPS = """
insert into mart.startups by name
select
    cluster_name,
    day_on,
    team_name,
    'training' as workload_class,
    node_uid,
    node_uid as node_name,
    gpu_model_name,
    $images[(hash(workload_key_uid) % 3 + 1)::integer] as image_name,
    state_name,
    case
        when cluster_name = 'beta' and state_name = 'starting' then 'undetermined'
        else cause_name
    end as cause_name,
    count(distinct hold_id) as pod_count,
    sum(gpu_seconds) as gpu_seconds,
    coalesce(sum(gpu_seconds) filter (where price_id is null), 0) as unpriced_gpu_seconds,
    sum(ledger_cost) as startup_cost
from core.ledger
where hold_id is not null and state_name in ('starting', 'gang_wait', 'loading')
group by all
"""


def fill_marts(con: duckdb.DuckDBPyConnection, days: int, until: datetime, hostile: str) -> None:
    """Fill them for the days up to `until`; `hostile` is the name of a pod and its workload."""
    dice = random.Random(11)
    con.execute(STARTUPS, {"images": list(IMAGES)})
    starts, pulls = [], []
    for back in range(days):
        day = until.date() - timedelta(days=back)
        for number in range(PER_DAY):
            start, pull = pod(day, number, until, hostile, dice)
            starts.append(start)
            pulls += [pull] if pull else []
    for name, rows in (("mart.pod_starts", starts), ("mart.image_pulls", pulls)):
        con.register("given", pl.DataFrame(rows, schema=CATALOG[name].schema))
        con.execute(f"insert into {name} by name from given")
        con.unregister("given")


def pod(day, number, until, hostile, dice) -> tuple[dict, dict | None]:
    """A pod of a day that has started, or is the day's one that has not, and its pull."""
    cluster, model = PLACES[number % 3]
    begin = datetime.combine(day, time(), UTC)
    known = min(begin + timedelta(days=1), until)
    bound = begin + timedelta(minutes=25 * number)
    seconds = int(dice.lognormvariate(3.5, 1.2))
    outcome = "started"
    if number == 4:
        outcome = "starting" if day == until.date() else "left"
        seconds = int((known - bound).total_seconds()) if outcome == "starting" else 700
    elif number == 7:
        outcome, seconds = "disordered", None
    spent = 8 * (seconds or 0)
    name = hostile if number == 10 else f"pod-{number}"
    same = {
        "cluster_name": cluster, "day_on": day, "pod_uid": f"{day}/{number}", "pod_name": name,
        "namespace_name": "-2+3", "team_name": ("vision", "speech", "robotics")[number % 3],
        "workload_key_uid": f"{cluster}/vision/{number}", "workload_name": name,
        "node_name": f"{cluster}-{model}", "image_name": IMAGES[number // 3 % 3],
        "asked_micro_gpu": 8_000_000,
    }  # fmt: skip
    is_alpha = cluster == "alpha"
    start = same | {
        "workload_class": "training", "node_uid": f"{cluster}-{model}", "gpu_model_name": model,
        "bound_at": bound, "bound_on": day, "known_until_at": known, "outcome_name": outcome,
        "started_at": bound + timedelta(seconds=seconds or 0) if outcome == "started" else None,
        "start_seconds": seconds, "is_told": is_alpha,
        "cause_name": "image_pull" if is_alpha else "undetermined",
        "gpu_seconds": Decimal(spent), "unpriced_gpu_seconds": Decimal(0 if is_alpha else spent),
        "start_cost": Decimal(spent) / 1000 if is_alpha or not spent else None,
    }  # fmt: skip
    if not is_alpha or outcome != "started" or seconds is None:
        return start, None
    queue = Decimal(seconds // 4) if number % 2 else None
    pull = same | {
        "container_name": "main", "pull_number": 1, "begun_at": bound,
        "pulled_at": bound + timedelta(seconds=seconds), "pull_seconds": seconds - (queue or 0),
        "queue_seconds": queue, "total_seconds": Decimal(seconds), "failed_count": 0,
        "image_bytes": 9_000_000_000 if number % 4 else None,
    }  # fmt: skip
    return start, pull
