"""The made-up fleet's faults, findings and blind spots: rows of marts, told one by one.

What its GPUs did is in dashboard_gpus.
"""

from datetime import UTC, datetime, time, timedelta
from decimal import Decimal

import duckdb
import polars as pl

from models.catalog import CATALOG

FAMILIES = ("dcgm", "kube_state", "cadvisor")
PROF = ("sm_ratio", "tensor_ratio", "dram_ratio", "gr_engine_ratio")
METRICS = (
    *("any", "utilisation_ratio", *PROF, "memory_used_mib", "power_watts", "temperature_celsius"),
    *("xid_number", "throttle_number", "nvlink_bytes_per_second"),
    "pcie_received_bytes_per_second",
)
XIDS = (
    ("h100-07", 3, 2.5, 79, "fatal", "GPU has fallen off the bus", "vision", "sweep-17"),
    ("h100-07", 3, 2.4, 45, "cleanup", "Preemptive cleanup, due to previous errors", None, None),
    ("h100-02", 1, 50, 31, "application", "GPU memory page fault", "language-models", "llm-70b"),
    ("h100-02", 1, 49.9, 43, "application", "GPU stopped processing", "language-models", "llm-70b"),
    ("a100-03", 6, 70, 63, "degraded", "ECC page retirement or row remapping recorded", None, None),
    ("a100-03", 6, 20, 64, "degraded", "ECC page retirement or row remapper failure", None, None),
    ("h100-01", 0, 30, 45, "cleanup", "Preemptive cleanup, due to previous errors", None, None),
    ("h100-01", 1, 30, 45, "cleanup", "Preemptive cleanup, due to previous errors", None, None),
)
"""Node, GPU, hours before the end, XID, kind, meaning, and who held it."""


def day_of(at: datetime) -> dict:
    """The columns of a row's day."""
    return {"cluster_name": "alpha", "day_on": at.date()}


def findings(until: datetime, uuid) -> list[dict]:
    """One of each sort."""
    begin = datetime.combine(until.date(), time(), UTC)
    told = (
        ("over_sized", "pod-wide", "vision", "sweep-17", "sweep-17-0", "h100-01", (3, 4, 5), 8,
         "3 of 8 GPUs showed no activity in 14 h"),
        ("nvlink_silent", "pod-link", "speech", "asr-large", "asr-large-0", "h100-05",
         (0, 1, 2, 3), 4, "NVLink 0 MB/s, PCIe 9.1 GB/s"),
        ("used_without_hold", "gpu-x", "__unallocated__", None, None, "a100-02", (7,), None,
         "SM 62 % for 3.0 h, no pod holds it"),
        ("label_disagrees", "gpu-y", "language-models", "llm-70b", "llm-70b-worker-0", "h100-02",
         (2,), 8, "exporter says default/debug, Kubernetes says language-models/llm-70b-worker-0"),
    )  # fmt: skip
    rows = []
    for name, subject, team, workload, pod, node, gpus, of, evidence in told:
        seconds = len(gpus) * int((until - begin).total_seconds())
        price = 2_100_000 if node.startswith("a100") else 3_900_000
        rows.append({
            **day_of(begin), "finding_name": name, "subject_text": subject, "begin_at": begin,
            "end_at": until, "team_name": team, "workload_name": workload, "pod_name": pod,
            "node_uid": f"alpha/{node}", "node_name": node,
            "gpu_uuids_text": " ".join(uuid("alpha", node, gpu) for gpu in gpus),
            "gpu_count": len(gpus), "of_gpu_count": of, "gpu_seconds": Decimal(seconds),
            "unpriced_gpu_seconds": Decimal(0),
            "finding_cost": Decimal(seconds * price // 3600) / 1_000_000,
            "evidence_text": evidence,
        })  # fmt: skip
    return rows


def events(until: datetime, uuid) -> list[dict]:
    """The XIDs that were told."""
    rows = []
    for node, gpu, back, xid, kind, meaning, team, workload in XIDS:
        seen = until - timedelta(hours=back)
        rows.append({
            **day_of(seen), "node_uid": f"alpha/{node}", "node_name": node,
            "gpu_uuid": uuid("alpha", node, gpu), "gpu_model_name": node.split("-")[0],
            "seen_at": seen, "xid_number": xid, "kind_name": kind, "meaning_text": meaning,
            "is_first_sample": xid == 63, "team_name": team, "workload_name": workload,
            "pod_name": workload and f"{workload}-0",
        })  # fmt: skip
    return rows


HEALTH = """
insert into mart.gpu_health by name
with
days as (select distinct day_on from hours),
told as (
    select
        cluster_name,
        day_on,
        gpu_uuid,
        count(*) filter (where kind_name = 'fatal') as fatal_count,
        count(*) filter (where kind_name = 'cleanup') as noise_count,
        count(*) filter (where kind_name not in ('fatal', 'cleanup')) as other_count
    from mart.gpu_events
    group by all
)
select
    d.cluster_name, y.day_on, d.node_uid, d.node_name, d.gpu_uuid, d.gpu_model_name,
    d.cluster_name = 'alpha' as is_xid_told,
    case when is_xid_told then coalesce(t.fatal_count, 0) end as fatal_count,
    case when is_xid_told then coalesce(t.noise_count, 0) end as noise_count,
    case when is_xid_told then coalesce(t.other_count, 0) end as other_count,
    coalesce(f.faulty_seconds, 0) as faulty_seconds,
    case when is_xid_told then hash(d.gpu_uuid, y.day_on) % 900 end as power_capped_seconds,
    case when is_xid_told then case when d.node_name = 'h100-06' then 5400 + 60 * d.gpu_number
        else 0 end end as thermal_seconds,
    case when is_xid_told then case when d.node_name = 'a100-01' and d.gpu_number = 4 then 300
        else 0 end end as hardware_slowed_seconds,
    case when is_xid_told then 86400 else 0 end as told_seconds,
    case when d.node_name = 'h100-06' then 84 else 52 + hash(d.gpu_uuid) % 20 end as most_celsius,
    case when d.node_name = 'a100-03' and d.gpu_number = 6 then 2 when is_xid_told then 0 end
        as uncorrectable_remapped_row_count,
    case when is_xid_told then hash(d.gpu_uuid) % 40 // 39 end as correctable_remapped_row_count,
    case when is_xid_told then d.node_name = 'a100-03' and d.gpu_number = 6 end
        as is_row_remap_failed
from devices as d
cross join days as y
left join (
    select cluster_name, day_on, gpu_uuid, sum(date_diff('second', begin_at, end_at))::bigint
        as faulty_seconds
    from mart.gpu_faults group by all
) as f on d.cluster_name = f.cluster_name and y.day_on = f.day_on and d.gpu_uuid = f.gpu_uuid
left join told as t
    on d.cluster_name = t.cluster_name and y.day_on = t.day_on and d.gpu_uuid = t.gpu_uuid
where d.node_name <> $blind
"""
SIGHT = """
insert into mart.metric_sight by name
with
days as (select day_on, sum(known_seconds)::bigint as known_seconds, min(hour_at) as begin_at
    from hours group by day_on),
nodes as (select cluster_name, node_uid, node_name, any_value(gpu_model_name) as gpu_model_name
    from devices group by all)
select
    n.*, y.day_on, m.metric_name, 8 * y.known_seconds as expected_seconds,
    case
        when n.node_name = $blind then 'no exporter on the node'
        when n.node_name = $no_sm and list_contains($prof, m.metric_name)
            then 'the exporter has no profiling metrics'
        when n.cluster_name = 'beta' and m.metric_name = 'xid_number' then 'not exported'
    end as reason_text,
    case
        when n.node_name = $silent and y.day_on = $last
            then expected_seconds - 8 * 3600 * $silent_hours
        when reason_text is null then expected_seconds
        else 0
    end::bigint as told_seconds,
    case when told_seconds > 0 then y.begin_at end as first_told_at,
    case when told_seconds > 0 then y.begin_at + to_seconds(told_seconds // 8) end as last_told_at,
    case when n.node_name = 'h100-05' and m.metric_name = 'power_watts' then 12 else 0 end
        as rejected_count
from nodes as n
cross join days as y
cross join (select unnest($metrics) as metric_name) as m
"""


FAULTS = (("h100-07", 3, 2.5, 79, "xid", False), ("a100-02", 5, 90, None, "off_the_bus", True))
"""Node, GPU, hours before the end, XID, what says so, and whether it was mended 40 hours later."""


def faults(until: datetime, uuid) -> list[dict]:
    """The GPUs that were broken, cut by days."""
    rows = []
    for node, gpu, back, xid, basis, is_ended in FAULTS:
        begin = until - timedelta(hours=back)
        end = begin + timedelta(hours=40) if is_ended else until
        while begin < end:
            stop = min(datetime.combine(begin.date() + timedelta(days=1), time(), UTC), end)
            rows.append({
                **day_of(begin), "node_uid": f"alpha/{node}", "node_name": node,
                "gpu_uuid": uuid("alpha", node, gpu), "gpu_model_name": node.split("-")[0],
                "begin_at": begin, "end_at": stop, "is_ended": is_ended and stop == end,
                "xid_number": xid, "basis_name": basis,
            })  # fmt: skip
            begin = stop
    return rows


def reads(until: datetime, days: int) -> list[dict]:
    """A day's stretches: one missing, one partial, the last hour open."""
    rows = []
    for back in range(days):
        day = datetime.combine(until.date() - timedelta(days=back), time(), UTC)
        for family in FAMILIES:
            end = min(day + timedelta(days=1), until)
            cuts = [(day, end, "complete", None)]
            if back == 2 and family == "dcgm":
                gap, over = day + timedelta(hours=3), day + timedelta(hours=4, minutes=30)
                cuts = [(day, gap, "complete", None), (gap, over, "missing", "503 for 2 h 10 min"),
                        (over, end, "complete", None)]  # fmt: skip
            if back == 1 and family == "cadvisor":
                noon, why = day + timedelta(hours=12), "a warning: 1 of 2 stores did not answer"
                cuts = [(day, noon, "partial", why), (noon, end, "partial", why)]
            rows += [
                {"cluster_name": "alpha", "day_on": day.date(), "source_ref": "http://prometheus",
                 "family_name": family, "begin_at": begin, "end_at": over, "read_name": how,
                 "reason_text": why, "try_count": 3 if why else 0,
                 "stretch_seconds": int((over - begin).total_seconds()), "reading_count": 100_000,
                 "rejected_count": 5132 * (back == 0 and family == "dcgm")}
                for begin, over, how, why in cuts
            ]  # fmt: skip
    return rows


def refusals(until: datetime) -> list[dict]:
    """Why readings were refused, and a notice."""
    told = (
        ("sentinel", False, 5120, "DCGM_FI_DEV_GPU_TEMP 2147483647", "DCGM's blank: none needed."),
        ("out_of_range", False, 12, "DCGM_FI_DEV_POWER_USAGE 91234.5", "Check the exporter."),
        ("malformed", True, 3, '{"kind": 7}', "Record it again."),
    )
    return [
        {**day_of(until), "reason_name": reason, "is_row_lost": lost, "rejected_count": count,
         "place_count": 2, "source_ref": "http://prometheus", "example_text": example,
         "mend_text": mend}
        for reason, lost, count, example, mend in told
    ]  # fmt: skip


def fill_others(con: duckdb.DuckDBPyConnection, until: datetime, days: int, told: dict) -> None:
    """Fill the marts of health, findings and sight; needs the tables `devices` and `hours`."""
    rows = {
        "mart.gpu_findings": findings(until, told["uuid"]),
        "mart.gpu_events": events(until, told["uuid"]),
        "mart.gpu_faults": faults(until, told["uuid"]),
        "mart.metric_reads": reads(until, days),
        "mart.refusals": refusals(until),
    }
    for name, found in rows.items():
        put(con, name, found)
    nodes = {key: told[key] for key in ("blind", "no_sm", "silent", "silent_hours")}
    con.execute(HEALTH, {"blind": nodes["blind"]})
    con.execute(SIGHT, {"prof": PROF, "metrics": METRICS, "last": until.date(), **nodes})


def put(con: duckdb.DuckDBPyConnection, name: str, rows: list[dict]) -> None:
    """Insert rows; what is not told is null."""
    con.register("given", pl.DataFrame(rows, schema=CATALOG[name].schema, strict=False))
    con.execute(f"insert into {name} by name from given")
    con.unregister("given")
