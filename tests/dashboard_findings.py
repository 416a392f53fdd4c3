"""What went wrong in the made-up fleet of the pages: a deadlock over midnight, a node that is gone.

Names in it are as hostile as any that a cluster may hold.
"""

from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import duckdb
import polars as pl

from models.catalog import CATALOG

NAMES = ("mart.workload_findings", "mart.finding_members")
HOUR = 3600


def fill_marts(con: duckdb.DuckDBPyConnection, until: datetime, hostile: str, team: str) -> None:
    """Of the last two days; `hostile` is the name of a workload, of a pod and of a node."""
    midnight = datetime.combine(until.date(), time(), UTC)
    deadlock = {"finding_name": "gang_deadlock", "team_name": team, "subject_text": "a",
                "since_at": midnight - timedelta(hours=2), "workload_key_uid": "w-a",
                "namespace_name": "-2+3", "workload_name": hostile, "deadlock_id": "d",
                "missing_count": 1, "is_certain": True}  # fmt: skip
    gone = {"finding_name": "hold_on_gone_node", "team_name": "speech", "subject_text": hostile,
            "since_at": midnight, "is_certain": True}  # fmt: skip
    findings, members = [], []
    for day, begin, hours, is_open in ((1, -2, 2, True), (0, 0, 3, False)):
        rest = {"cluster_name": "alpha", "day_on": until.date() - timedelta(days=day)}
        held = Decimal(16 * hours * HOUR)
        told = {"gpu_seconds": held, "unpriced_gpu_seconds": Decimal(0)}
        findings.append(rest | deadlock | told | {
            "begin_at": midnight + timedelta(hours=begin),
            "end_at": midnight + timedelta(hours=begin + hours), "is_open": is_open,
            "member_count": 2, "finding_cost": held / 1000, "beside_gpu_seconds": Decimal(0),
            "evidence_text": f"2 of 3 members hold 16 GPUs on {hostile}",
        })  # fmt: skip
        key = {name: deadlock[name] for name in ("finding_name", "team_name", "subject_text")}
        for number in range(2):
            members.append(rest | key | {
                "since_at": deadlock["since_at"], "pod_uid": f"p{number}",
                "namespace_name": "-2+3", "pod_name": hostile if number else "pod-0",
                "node_uid": "n", "node_name": hostile, "asked_micro_gpu": 8_000_000,
                "member_state_name": "running", "state_since_at": deadlock["since_at"],
                "gpu_seconds": held / 2, "unpriced_gpu_seconds": Decimal(0),
                "member_cost": held / 2000, "beside_gpu_seconds": Decimal(0),
            })  # fmt: skip
    findings.append({"cluster_name": "alpha", "day_on": until.date()} | gone | {
        "begin_at": midnight, "end_at": midnight + timedelta(hours=1), "is_open": True,
        "member_count": 0, "gpu_seconds": Decimal(0), "unpriced_gpu_seconds": Decimal(0),
        "finding_cost": Decimal(0), "beside_gpu_seconds": Decimal(4 * HOUR),
        "evidence_text": f"1 pod still there on {hostile}",
    })  # fmt: skip
    _insert(con, NAMES[0], findings)
    _insert(con, NAMES[1], members)


def _insert(con: duckdb.DuckDBPyConnection, name: str, rows: list[dict[str, Any]]) -> None:
    con.register("given", pl.DataFrame(rows, schema=CATALOG[name].schema))
    con.execute(f"insert into {name} by name from given")
    con.unregister("given")
