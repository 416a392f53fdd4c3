"""Idle and stalled GPUs: what is read of them, one row for each pod, and the message to its owner.

When a GPU is idle, since when and what that costs is said in sql/view/episodes.sql.
"""

from datetime import datetime, timedelta

import polars as pl

from dashboards.conditions import HERE, TEAMS
from dashboards.data import Reading
from models.activity import DEFAULTS
from models.figures import NO_PRICE, duration, instant, money, percent
from models.mart_gpus import EPISODES
from models.table import Column, Kind
from models.words import LIKELY_CAUSES, NAMES, word

BACK = timedelta(days=30)
"""An episode that is open is followed back so far: longer ones say 'or longer'."""

MOST_PODS = 20  # that a message tells one by one
NARROWED = """
    clusters := $clusters::varchar[],
    teams := case when len($teams::varchar[]) > 0 then $teams::varchar[] end
"""
OPEN = f"""
with
latest as (
    select
        cluster_name,
        max(known_until_at) as known_until_at
    from mart.fleet_coverage
    where list_contains($clusters::varchar[], cluster_name)
    group by cluster_name
)

select e.*
from episodes($since_on, $until_on, {NARROWED}) as e
inner join latest as l on e.cluster_name = l.cluster_name
where
    e.is_open
    and e.until_at >= l.known_until_at
    and list_contains($clusters::varchar[], e.cluster_name)
    and (len($teams::varchar[]) = 0 or list_contains($teams::varchar[], e.team_name))
"""
ENDED = f"""
with
latest as (
    select
        cluster_name,
        max(known_until_at) as known_until_at
    from mart.fleet_coverage
    where list_contains($clusters::varchar[], cluster_name)
    group by cluster_name
)

select e.*
from episodes($begin_on, $end_on, {NARROWED}) as e
inner join latest as l on e.cluster_name = l.cluster_name
where
    not (e.is_open and e.until_at >= l.known_until_at)
    and list_contains($clusters::varchar[], e.cluster_name)
    and (len($teams::varchar[]) = 0 or list_contains($teams::varchar[], e.team_name))
"""
KNOWN = """
select
    cluster_name,
    max(known_until_at) as known_until_at
from mart.fleet_coverage
where list_contains($clusters::varchar[], cluster_name)
group by cluster_name
order by known_until_at
"""
HELD_NOW = """
with
latest as (
    select
        cluster_name,
        max(hour_at) as hour_at
    from mart.use_hours
    where list_contains($clusters::varchar[], cluster_name) and day_on >= $since_on
    group by cluster_name
)

select
    sum(u.held_gpu_seconds)::double as held_gpu_seconds,
    sum(u.unobserved_gpu_seconds)::double as unobserved_gpu_seconds,
    sum(u.active_gpu_seconds + u.idle_gpu_seconds + u.stalled_gpu_seconds)::double
        as running_gpu_seconds
from mart.use_hours as u
inner join latest as l on u.cluster_name = l.cluster_name and u.hour_at = l.hour_at
where
    u.day_on >= $since_on
    and (len($teams::varchar[]) = 0 or list_contains($teams::varchar[], u.team_name))
"""
NOTICE = """
select notice_seconds
from raw.activity_rules
where gpu_model_name = '*' and workload_class = '*'
"""
FINDINGS = f"""
select *
from mart.gpu_findings
where {HERE} and {TEAMS}
order by finding_cost desc nulls last, gpu_seconds desc, subject_text
limit 500
"""

GPUS = Column("gpus_text", Kind.TEXT, "GPUs of the pod in this state, of those that it holds.")
UUIDS = Column("gpu_uuids_text", Kind.TEXT, "The GPUs.")
SHOWN_STATE = Column(
    "shown_name",
    Kind.TEXT,
    "Idle; stalled; or suspected of it, where the PROF metrics are missing.",
)
PRICED = Column("priced_ratio", Kind.RATIO, "GPU-time of the row that has a price.")
POD = ("cluster_name", "episode_name", "pod_uid", "workload_key_uid", "team_name")


def notice_seconds(reading: Reading) -> int:
    """From which length on an owner is told, as the rules for all say."""
    found = reading.rows(NOTICE)["notice_seconds"].to_list()
    return int(found[0] if found else DEFAULTS["notice_seconds"])


def open_now(reading: Reading) -> pl.DataFrame:
    """The GPUs that are idle or stalled as of what is known, whatever the period."""
    day = reading.last_on
    return reading.rows(OPEN, since_on=day - BACK, until_on=day + timedelta(days=1))


def _sum(name: str) -> pl.Expr:
    """The sum; null where nothing is known of any of it."""
    return pl.when(pl.col(name).count() > 0).then(pl.col(name).sum()).alias(name)


def with_state(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with the state as it is shown: a suspicion is said to be one."""
    is_suspected = (pl.col("episode_name") == "stalled") & ~pl.col("is_certain")
    shown = pl.when(is_suspected).then(pl.lit("suspected")).otherwise("episode_name")
    return rows.with_columns(shown_name=shown)


def by_pod(rows: pl.DataFrame) -> pl.DataFrame:
    """One row for each pod and state, the dearest a day first."""
    part = pl.struct("hold_id", "part_number")
    uuid = pl.when(pl.col("instance_number") >= 0).then(
        pl.format("{}/{}", "gpu_uuid", "instance_number")
    ).otherwise("gpu_uuid")  # fmt: skip
    kept = ("contacts_text", "user_name", "workload_kind_name", "namespace_name", "workload_name",
            "pod_name", "node_name", "gpu_model_name")  # fmt: skip
    pods = rows.sort("since_at", "hold_id", "part_number").group_by(POD, maintain_order=True).agg(
        *(pl.col(name).last() for name in kept),
        pl.col("since_at").min(),
        pl.col("until_at").max(),
        pl.col("episode_seconds").max(),
        part.n_unique().alias("gpu_count"),
        pl.col("pod_gpu_count").max(),
        uuid.unique(maintain_order=True).str.join(" ").alias("gpu_uuids_text"),
        pl.col("utilisation_ratio", "power_watts", "rest_watts").mean(),
        pl.col("sm_ratio", "memory_used_mib", "last_active_at").max(),
        pl.col("is_certain").all(),
        pl.col("likely_cause_name").mode(maintain_order=True).first(),
        pl.col("evidence_text").last(),
        pl.col("gpu_seconds", "unpriced_gpu_seconds").sum(),
        _sum("episode_cost"),
        _sum("per_day_cost"),
    )  # fmt: skip
    seconds = pl.col("gpu_seconds").cast(pl.Float64)
    return (
        with_state(pods)
        .with_columns(
            gpus_text=pl.format("{} of {}", "gpu_count", "pod_gpu_count"),
            priced_ratio=1 - pl.col("unpriced_gpu_seconds").cast(pl.Float64) / seconds,
        )
        .sort(
            "per_day_cost",
            "gpu_seconds",
            "pod_uid",
            descending=[True, True, False],
            nulls_last=True,
        )
    )


COLUMNS: tuple[Column, ...] = (
    EPISODES.column("workload_name"),
    EPISODES.column("team_name"),
    GPUS,
    SHOWN_STATE,
    EPISODES.column("since_at"),
    EPISODES.column("episode_seconds"),
    Column("per_day_cost", Kind.DECIMAL, "Cost of a day of it, at its mean price."),
    EPISODES.column("episode_cost"),
    EPISODES.column("likely_cause_name"),
    EPISODES.column("evidence_text"),
    EPISODES.column("utilisation_ratio"),
    EPISODES.column("sm_ratio"),
    EPISODES.column("memory_used_mib"),
    EPISODES.column("power_watts"),
    EPISODES.column("rest_watts"),
    EPISODES.column("last_active_at"),
    EPISODES.column("contacts_text"),
    EPISODES.column("user_name"),
    EPISODES.column("pod_name"),
    EPISODES.column("namespace_name"),
    EPISODES.column("node_name"),
    EPISODES.column("gpu_model_name"),
    UUIDS,
)


def message(reading: Reading, pods: pl.DataFrame, address: str) -> str:
    """What to write to the owner of one workload; plain text, on one line each."""
    first = pods.row(0, named=True)
    count, since = pods["gpu_count"].sum(), pods["since_at"].min()
    assert isinstance(since, datetime)
    team = NAMES.get(first["team_name"], first["team_name"])
    kinds = " and ".join(sorted(set(pods["episode_name"])))
    gpus = "1 GPU" if count == 1 else f"{count} GPUs"
    until = pods["until_at"].max()
    assert isinstance(until, datetime)
    lines = [
        f"To: {first['contacts_text'] or '(no contact known)'}",
        f"Subject: {gpus} of {first['workload_name']} {kinds} since {instant(since, reading.zone)}",
        "",
        f"{first['workload_kind_name']} {first['workload_name']} of team {team} (namespace "
        f"{first['namespace_name']}, cluster {first['cluster_name']}) holds GPUs that do no work:",
        "",
    ]
    for pod in pods.head(MOST_PODS).iter_rows(named=True):
        lines += pod_lines(reading, pod)
    if pods.height > MOST_PODS:
        lines.append(f"- and {pods.height - MOST_PODS} more pods")
    lines += [
        "",
        costs(reading, pods),
        "",
        "If it is no longer needed, please stop it. If it is, please tell us what it waits for.",
        "",
        f"As of {instant(until, reading.zone)}, gpuledger snapshot {reading.snapshot.number}.",
    ]
    if address:
        lines.append(address)
    return "\n".join(" ".join(line.splitlines()) for line in lines)


def pod_lines(reading: Reading, pod: dict) -> list[str]:
    """One pod: how many of its GPUs, since when, on which evidence, and why."""
    known = [
        f"SM activity at most {percent(pod['sm_ratio'])}" * (pod["sm_ratio"] is not None),
        f"GPU_UTIL {percent(pod['utilisation_ratio'])}" * (pod["utilisation_ratio"] is not None),
        f"{pod['memory_used_mib'] or 0:,.0f} MiB of memory held"
        * (pod["memory_used_mib"] is not None),
        watts(pod["power_watts"], pod["rest_watts"]),
        "never seen active that day"
        if pod["last_active_at"] is None
        else f"last active {instant(pod['last_active_at'], reading.zone)}",
    ]
    cause, state = pod["likely_cause_name"], pod["shown_name"]
    state = "suspected to be stalled" if state == "suspected" else state
    return [
        f"- {pod['pod_name']} on {pod['node_name']}: {pod['gpus_text']} GPUs {state} "
        f"since {instant(pod['since_at'], reading.zone)} ({duration(pod['episode_seconds'])})",
        f"  measured: {', '.join(filter(None, known))}",
        f"  likely cause: {word(cause)}, {LIKELY_CAUSES.get(cause, '')} ({pod['evidence_text']})",
        f"  GPUs: {pod['gpu_uuids_text']}",
    ]


def watts(power: float | None, rest: float | None) -> str:
    """Power against rest power."""
    if power is None:
        return ""
    return f"power {power:,.0f} W" + ("" if rest is None else f" (at rest {rest:,.0f} W)")


def costs(reading: Reading, pods: pl.DataFrame) -> str:
    """What it has cost and what it costs a day."""
    if pods["episode_cost"].count() == 0:
        return f"Cost: {NO_PRICE}."
    so_far = money(pods["episode_cost"].sum(), reading.currency)
    a_day = money(pods["per_day_cost"].sum(), reading.currency)
    partly = "" if pods["unpriced_gpu_seconds"].sum() == 0 else ", of what has a price"
    return f"Cost so far {so_far}, {a_day} a day{partly} (price x time)."
