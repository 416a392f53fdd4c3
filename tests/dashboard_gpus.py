"""What the GPUs of the made-up fleet did: rows of the marts of GPUs, most of them told one by one.

Of alpha, h100-08 tells no SM activity and a100-04 fell silent five hours before the end; beta is
unpriced, and its l40s-01 has no exporter. Ledger and waits are in dashboard_data.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal

import duckdb
import polars as pl

from tests.dashboard_health import fill_others, put

HOSTILE = "<img src=x onerror=alert(1)> [free](http://evil.example) $x$"
NAMES = (
    "mart.use_hours",
    "mart.use_workloads",
    "mart.device_hours",
    "mart.gpu_episodes",
    "mart.gpu_findings",
    "mart.gpu_events",
    "mart.gpu_health",
    "mart.gpu_faults",
    "mart.metric_sight",
    "mart.metric_reads",
    "mart.refusals",
)
NO_SM, SILENT, BLIND = "h100-08", "a100-04", "l40s-01"
SILENT_HOURS = 5


@dataclass(frozen=True)
class Told:
    """An episode on some GPUs of one pod, in hours before the end of what is known."""

    kind: str
    team: str
    workload: str
    pod: str
    node: str
    gpus: tuple[int, ...]
    of: int
    since: float
    cause: str
    evidence: str
    until: float = 0
    certain: bool = True
    read: tuple[float | None, ...] = (0.0, 0.0, 71_200.0, 118.0, 115.0)
    """Utilisation, SM activity, memory in MiB, power, rest power."""
    cluster: str = "alpha"
    contact: str | None = "oncall@example.com"

    @property
    def key(self) -> str:
        """The workload's."""
        return f"{self.cluster}/{self.team}/{self.workload}"


ALL = tuple(range(8))
PEERS = "CPU 0.2 of 32 cores, network 0.1 MB/s, 7 of 8 members gone"
TOLD = (
    Told("idle", "language-models", "llm-70b", "llm-70b-worker-0", "h100-02", ALL, 8, 30.5,
         "waiting_for_peers", PEERS),
    Told("idle", "vision", "notebook-ana", "notebook-ana-0", "h100-03", (0,), 1, 52,
         "interactive", "workload class interactive, CPU 0.01 cores",
         read=(0.0, 0.0, 482.0, 71.0, 115.0), contact=None),
    Told("idle", "vision", "sweep-17", "sweep-17-0", "h100-01", (0, 1, 2), 8, 26, "never_worked",
         "no activity since its containers run", read=(0.0, 0.004, 520.0, 70.0, 115.0)),
    Told("idle", "search-ranking", "rank-serving", "rank-serving-7c9f-abcde", "a100-01", (0,), 2, 6,
         "no_requests", "network 2 kB/s received", read=(0.0, 0.0, 38_000.0, 62.0, 61.0)),
    Told("idle", "search-ranking", "rank-serving", "rank-serving-7c9f-fghij", "a100-01", (2,), 2, 5,
         "no_requests", "network 2 kB/s received", read=(0.0, 0.0, 38_000.0, 62.0, 61.0)),
    Told("idle", '=HYPERLINK("http://evil.example","pay")', HOSTILE, "-2+3", "h100-04", (5,), 1, 2,
         "work_ended", f"{HOSTILE} exited 0", contact="=cmd|' /C calc'!A0"),
    Told("idle", "robotics", "grasp-3", "grasp-3-0", "h100-06", (7,), 1, 40 / 60, "unknown",
         "nothing tells"),
    Told("idle", "recommendations", "embed-9", "embed-9-0", "l40s-02", (0, 1), 2, 12,
         "waiting_for_input", "file reads 180 MB/s, CPU at its limit", cluster="beta",
         read=(0.0, 0.0, 12_000.0, 40.0, 38.0)),
    Told("stalled", "speech", "asr-large", "asr-large-0", "h100-05", (0, 1, 2, 3), 4, 3,
         "waiting_for_peers", "one kernel at 15 % of the SMs, tensor 0 %, DRAM 1 %",
         read=(1.0, 0.15, 64_000.0, 129.0, 115.0)),
    Told("stalled", "robotics", "policy-8", "policy-8-0", NO_SM, (0, 1), 2, 1.5, "unknown",
         "GPU_UTIL 100 % at rest power; no PROF metrics", certain=False,
         read=(1.0, None, 30_000.0, 121.0, 115.0)),
    Told("idle", "vision", "sweep-16", "sweep-16-0", "h100-01", ALL, 8, 120, "work_ended",
         "its main process sleeps", until=110.5),
    Told("idle", "speech", "asr-small", "asr-small-0", "a100-02", (1, 2), 2, 75,
         "waiting_for_input", "file reads 200 MB/s", until=71),
    # It was idle when its day ended, and at work from then on.
    Told("idle", "speech", "asr-tiny", "asr-tiny-0", "a100-03", (0,), 1, 20, "waiting_for_input",
         "file reads 200 MB/s", until=14),
)  # fmt: skip
"""Ten that are open at the end, of which one is under an hour old and two are stalled."""

MADE_UP = """
create temp table devices as
select
    f.cluster_name,
    f.gpu_model_name,
    f.micro_price,
    n.node_number,
    g.gpu_number,
    f.gpu_model_name || '-' || lpad(n.node_number::varchar, f.digits::integer, '0') as node_name,
    f.cluster_name || '/' || node_name as node_uid,
    'GPU-' || md5(node_uid || '/' || g.gpu_number) as gpu_uuid
from fleet as f
cross join lateral (select unnest(range(1, f.node_count + 1)) as node_number) as n
cross join (select unnest(range(8)) as gpu_number) as g;

create temp table made as
with
slots as (
    select
        d.*,
        h.hour_at,
        h.day_on,
        h.known_seconds,
        hash(d.node_uid, d.gpu_number // 4, date_diff('hour', timestamptz '2026-01-01', h.hour_at)
            // (30 + hash(d.node_uid) % 60)) as block,
        hash(d.gpu_uuid, h.hour_at) as dice
    from devices as d
    cross join hours as h
),

holders as (
    select
        s.*,
        t.team_name is not null as is_told,
        case
            when t.team_name is not null then t.team_name
            when block % 100 < 12 then '__unallocated__'
            when block % 100 < 14 then '__unavailable__'
            when block % 200 = 199 then '__unknown__'
            else teams[(1 + block % len(teams))::bigint]
        end as team_name,
        t.workload_key_uid as told_key,
        coalesce(
            t.workload_name,
            case when block % 100 >= 14 and block % 200 <> 199 then 'train-' || block % 9973 end
        ) as workload_name,
        t.episode_name
    from slots as s
    left join told as t
        on
            s.node_name = t.node_name
            and s.gpu_number = t.gpu_number
            and s.hour_at < t.end_at
            and s.hour_at + interval 1 hour > t.begin_at
),

states as (
    select
        *,
        starts_with(team_name, '__') as is_free,
        case
            when is_free then 0
            when node_name = blind then known_seconds
            when node_name = silent and hour_at >= silent_at then known_seconds
            when dice % 211 = 0 then known_seconds
            else 0
        end as unobserved_seconds,
        case
            when is_free or unobserved_seconds > 0 then 0
            when episode_name = 'idle' then known_seconds
            when is_told then 0
            when block % 13 = 3 and hour(hour_at) not between 7 and 19 then known_seconds
            else (known_seconds * (dice % 17) / 100)::bigint
        end as idle_seconds,
        case when episode_name = 'stalled' and unobserved_seconds = 0 then known_seconds else 0 end
            as stalled_seconds,
        case when is_free then 0 else known_seconds end as held_seconds,
        held_seconds - unobserved_seconds - idle_seconds - stalled_seconds as active_seconds,
        case
            when node_name in (blind, no_sm) then null
            when node_name = silent and hour_at >= silent_at then null
            when episode_name = 'stalled' then 0.15
            else active_seconds / 3600 * (35 + block % 45) / 100
        end as sm_ratio,
        case when team_name = '__unavailable__' then known_seconds else 0 end as faulty_seconds
    from holders
    cross join (select $blind as blind, $silent as silent, $no_sm as no_sm, $silent_at as silent_at)
)

select
    *,
    case when not is_free then coalesce(told_key, cluster_name || '/' || team_name || '/'
        || workload_name) end as workload_key_uid
from states;
"""
SUMS = """
    sum(held_seconds) as held_gpu_seconds,
    sum(active_seconds) as active_gpu_seconds,
    sum(idle_seconds) as idle_gpu_seconds,
    sum(stalled_seconds) as stalled_gpu_seconds,
    0 as waiting_gpu_seconds,
    sum(unobserved_seconds) as unobserved_gpu_seconds,
    sum(held_seconds) filter (where sm_ratio is not null and unobserved_seconds = 0) as sm_observed,
    sum(known_seconds * sm_ratio) filter (where unobserved_seconds = 0) as effective,
    round(coalesce(sm_observed, 0), 6) as sm_observed_gpu_seconds,
    round(coalesce(effective, 0), 6) as effective_gpu_seconds,
    any_value(micro_price) / 3.6e9 as price
"""
MONEY = ("held", "active", "idle", "stalled", "unobserved", "sm_observed", "effective")
DEVICES = """
select
    cluster_name, day_on, hour_at, node_uid, node_name, gpu_uuid, -1 as instance_number, gpu_number,
    gpu_model_name, case when not is_free then team_name end as team_name, workload_name,
    known_seconds, held_seconds, active_seconds, idle_seconds, stalled_seconds,
    case when node_name = $blind then 0 else unobserved_seconds end as unobserved_seconds,
    faulty_seconds, case when unobserved_seconds = 0 then sm_ratio end as sm_ratio,
    case when unobserved_seconds = 0 then 110 + 500 * coalesce(sm_ratio, 0) end as power_watts
from made
where node_name <> $blind and day_on > $last - 8
"""


def _costs(*names: str) -> str:
    return ", ".join(f"round({n}_gpu_seconds * price, 6) as {n}_cost" for n in names)


def fill_marts(con: duckdb.DuckDBPyConnection, days: int, until: datetime, fleet: dict) -> None:
    """Fill the marts of GPUs for the last days before `until`."""
    last = until.date()
    spec = [(c, m, n // 8, 3 if n >= 800 else 2, p) for (c, m), (n, p) in fleet.items()]
    names = ("cluster_name", "gpu_model_name", "node_count", "digits", "micro_price")
    con.register("fleet", pl.DataFrame(spec, schema=names, orient="row"))
    begin = datetime.combine(last - timedelta(days=days - 1), time(), UTC)
    count = int((until - begin).total_seconds() // 3600)
    starts = [begin + timedelta(hours=n) for n in range(count)]
    con.register("hours", pl.DataFrame({
        "hour_at": starts, "day_on": [h.date() for h in starts], "known_seconds": 3600,
    }))  # fmt: skip
    con.register("told", told(until))
    teams = sorted({t.team for t in TOLD})
    con.execute("set variable teams = $1", [teams])
    script = MADE_UP.replace("teams[", "getvariable('teams')[").replace(
        "len(teams)", "len(getvariable('teams'))"
    )
    first, second, _ = script.split(";")
    con.execute(first)
    con.execute(second, {
        "blind": BLIND, "silent": SILENT, "no_sm": NO_SM,
        "silent_at": until - timedelta(hours=SILENT_HOURS),
    })  # fmt: skip
    place = "cluster_name, day_on, gpu_model_name, team_name"
    summed = f"""with summed as (
        select {place}, hour_at, node_uid, node_name, {SUMS},
            sum(known_seconds) as installed_gpu_seconds,
            coalesce(sum(known_seconds) filter (
                where team_name not in ('__unavailable__', '__unknown__')), 0)
                as available_gpu_seconds,
            case when price is null then installed_gpu_seconds else 0 end as unpriced_gpu_seconds
        from made group by {place}, hour_at, node_uid, node_name)
        select * exclude (sm_observed, effective, price),
            {_costs("installed", "available", *MONEY)} from summed"""
    con.execute(f"insert into mart.use_hours by name {summed}")
    named = f"{place}, workload_key_uid"
    workloads = f"""with summed as (
        select {named}, any_value(workload_name) as workload_name, {SUMS},
            case when price is null then held_gpu_seconds else 0 end as unpriced_gpu_seconds
        from made where not is_free group by {named})
        select * exclude (sm_observed, effective, price), {_costs(*MONEY)},
            'PyTorchJob' as workload_kind_name, team_name as namespace_name,
            'training' as workload_class from summed"""
    con.execute(f"insert into mart.use_workloads by name {workloads}")
    con.execute(f"insert into mart.device_hours by name {DEVICES}", {"blind": BLIND, "last": last})
    prices = {m: p for (_, m), (_, p) in fleet.items()}
    rows = [piece for t in TOLD for piece in pieces(t, prices, until)]
    put(con, "mart.gpu_episodes", [row for row in rows if row["begin_at"] >= begin])
    lists = {"blind": BLIND, "no_sm": NO_SM, "silent": SILENT, "silent_hours": SILENT_HOURS}
    fill_others(con, until, days, {"uuid": uuid, **lists})


def uuid(cluster: str, node: str, gpu: int) -> str:
    """The UUID that a GPU of the made-up fleet has."""
    [(found,)] = duckdb.sql(f"select 'GPU-' || md5('{cluster}/{node}/{gpu}')").fetchall()
    return found


def told(until: datetime) -> pl.DataFrame:
    """The GPUs and hours of the episodes that are told."""
    rows = [
        (t.node, gpu, until - timedelta(hours=t.since), until - timedelta(hours=t.until),
         t.team, t.key, t.workload, t.kind)
        for t in TOLD for gpu in t.gpus
    ]  # fmt: skip
    names = ("node_name", "gpu_number", "begin_at", "end_at", "team_name", "workload_key_uid",
             "workload_name", "episode_name")  # fmt: skip
    return pl.DataFrame(rows, schema=names, orient="row")


def pieces(t: Told, prices: dict, until: datetime) -> list[dict]:
    """An episode's rows: one for each GPU and day."""
    since, end = until - timedelta(hours=t.since), until - timedelta(hours=t.until)
    rows, begin, model = [], since, t.node.split("-")[0]
    while begin < end:
        midnight = datetime.combine(begin.date() + timedelta(days=1), time(), UTC)
        stop = min(midnight, end)
        seconds, price = int((stop - begin).total_seconds()), prices.get(model)
        for part, gpu in enumerate(t.gpus, 1):
            utilisation, sm, memory, power, rest = t.read
            rows.append({
                "cluster_name": t.cluster, "day_on": begin.date(), "episode_name": t.kind,
                "hold_id": f"{t.pod}/nvidia.com/gpu", "part_number": part, "begin_at": begin,
                "end_at": stop, "active_before_seconds": 0 if begin != since else None,
                "active_after_seconds": 0 if stop == midnight else None, "most_active_ratio": 0.01,
                "is_open": stop == midnight or t.until == 0, "team_name": t.team,
                "contacts_text": t.contact, "user_name": "someone", "workload_key_uid": t.key,
                "workload_kind_name": "PyTorchJob", "namespace_name": t.team,
                "workload_name": t.workload, "workload_class": "training", "pod_uid": t.pod,
                "pod_name": t.pod, "pod_gpu_count": t.of, "node_uid": f"{t.cluster}/{t.node}",
                "node_name": t.node, "gpu_uuid": uuid(t.cluster, t.node, gpu),
                "instance_number": -1, "gpu_model_name": model, "idle_seconds": seconds,
                "active_seconds": 0, "unobserved_seconds": 0,
                "last_active_at": since if t.cause != "never_worked" and begin == since else None,
                "is_certain": t.certain, "utilisation_ratio": utilisation, "sm_ratio": sm,
                "memory_used_mib": memory, "power_watts": power, "rest_watts": rest,
                "likely_cause_name": t.cause, "evidence_text": t.evidence,
                "gpu_seconds": Decimal(seconds), "least_seconds": 1800,
                "unpriced_gpu_seconds": Decimal(0 if price else seconds),
                "episode_cost": Decimal(seconds * price // 3600) / 1_000_000 if price else None,
            })  # fmt: skip
        begin = stop
    return rows
