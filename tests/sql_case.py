"""Raw rows told in a few words, run through all queries in memory: for tests of single rules.

One cluster, one day, instants as seconds of it. What must hold of every fleet is tested elsewhere.
"""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import duckdb

import sql
from models import activity, raw, xids
from models.book import frame, mig_profiles
from models.catalog import CATALOG
from models.raw_metrics import GPU_SAMPLES, GPU_SERIES
from models.table import Kind
from pipelines.graph import needed_for, tables_read

Row = dict[str, Any]
"""Columns or readings, and what they hold."""

DAY = date(2026, 3, 2)
MIDNIGHT = datetime(2026, 3, 2, tzinfo=UTC)
HOUR = 3600
GPU = "nvidia.com/gpu"
FILLED = {
    Kind.TEXT: "x",
    Kind.COUNT: 0,
    Kind.FLAG: False,
    Kind.RATIO: 1.0,
    **{kind: [] for kind in Kind if kind.sql.endswith("[]")},
}


def at(second: float) -> datetime:
    """The instant, so many seconds after the day's midnight."""
    return MIDNIGHT + timedelta(seconds=second)


def both(some: Row, more: Row) -> Row:
    """Readings, some of them others."""
    return some | more


def whole(table: Any, **told: Any) -> dict[str, Any]:
    """A row of the table: what is told (`_at` in seconds), else null, empty or a filler."""
    row = {"cluster_name": "c", "day_on": DAY, "observed_at": MIDNIGHT, "created_at": MIDNIGHT}
    for name, value in told.items():
        is_second = name.endswith("_at") and isinstance(value, int | float)
        row[name] = at(value) if is_second else value
    return {
        column.name: row.get(column.name, None if column.nullable else FILLED.get(column.kind))
        for column in table.columns
    }


class Case:
    """A cluster of one day, known for `seconds`."""

    def __init__(self, seconds: int = HOUR):
        self.rows: dict[str, list[dict[str, Any]]] = {table.name: [] for table in raw.TABLES}
        self._answering: duckdb.DuckDBPyConnection | None = None
        self._there: set[str] = set()
        self.cover(0, seconds)
        self.add(raw.POLICIES, policy_name="loading_max_seconds", value_number=1800)
        self.rows["raw.activity_rules"] = activity.rows(())
        self.rows["raw.xids"] = list(xids.rows())
        self.rows["raw.mig_profiles"] = list(mig_profiles())

    def cover(self, begin: float, end: float, how: str = "watched", **told: Any) -> None:
        """A stretch of the known window, and how it was observed."""
        told = {"begin_at": begin, "end_at": end, "coverage_name": how, "is_placed": True, **told}
        self.add(raw.COVERAGE, **told)

    def add(self, table: Any, **told: Any) -> None:
        """One raw row."""
        self._answering = None
        rows = self.rows[table.name]
        rows.append(whole(table, **{"sequence_number": len(rows), **told}))

    def node(self, name: str, gpus: int = 1, seen: float = 0, **told: Any) -> None:
        """A version of a node, Ready with all its GPUs unless told otherwise."""
        unit = {"resource_name": GPU, "capacity_count": gpus, "allocatable_count": gpus}
        self.add(raw.NODE_VERSIONS, **{
            "observed_at": seen, "change_name": "MODIFIED", "node_uid": name, "node_name": name,
            "gpu_model_name": "t4", "gpu_count": gpus, "largest_gpu_count": gpus,
            "allocatable_micro_gpu": gpus * 1_000_000, "is_ready": True, "is_ever_ready": True,
            "labels_json": "{}", "resources": [{**unit, "share_micro_gpu": 1_000_000}], **told,
        })  # fmt: skip

    def pod(self, name: str, node: str | None = None, seen: float = 0, **told: Any) -> None:
        """A version of a pod that asks for one GPU; bound and run when seen unless told."""
        since = seen if node else None
        self.add(raw.POD_VERSIONS, **{
            "observed_at": seen, "change_name": "MODIFIED", "pod_uid": name, "pod_name": name,
            "node_name": node, "bound_at": since, "running_since_at": since,
            "phase_name": "Running" if node else "Pending", "is_start_known": True,
            "requests": [{"resource_name": GPU, "request_count": 1}], "labels_json": "{}",
            "workload_class": "training", "workload_key_uid": name, "workload_name": name, **told,
        })  # fmt: skip

    def add_models(self) -> None:
        """What the catalogue knows of the T4."""
        self.add(raw.GPU_MODELS, gpu_model_name="t4", memory_mib=15360, limit_watts=70,
                 bare_watts=10, context_watts=27)  # fmt: skip

    def read(
        self, gpu: str, begin: int, end: int, pod: str = "", node: str = "n", **told: Any
    ) -> None:
        """A GPU's samples, one each half minute in (begin, end]; their labels name the pod.

        Without readings it is at work; `instance`, `profile`, `model`, `step` and `driver` may be
        told, too.
        """
        step, instance = told.pop("step", 30), told.pop("instance", -1)
        driver, profile = told.pop("driver", "580"), told.pop("profile", None)
        model = told.pop("model", "t4")
        readings = told or {"sm_ratio": 0.8, "utilisation_ratio": 0.9, "memory_used_mib": 9e3}
        place = {"node_name": node, "gpu_uuid": gpu, "instance_number": instance}
        times = range(begin + step, end + 1, step)
        for time in times:
            self.add(GPU_SAMPLES, **place, sampled_at=time, **readings)
        self.add(
            GPU_SERIES, **place, exporter_name="e", driver_version_text=driver,
            pod_namespace_name="x" if pod else "", pod_name=pod, pod_uid="", container_name="",
            begin_at=times[0], end_at=times[-1], sample_count=len(times), gpu_model_name=model,
            gpu_product_name=model.upper(), mig_profile_name=profile,
            metrics_text=",".join(readings),
        )  # fmt: skip

    def price(self, micro: int, since: float = -HOUR) -> None:
        """A price of every GPU-hour, in millionths."""
        self.add(
            raw.PRICES, price_id=f"*@{since}", rank_number=1,
            valid_from_at=since, applies_from_at=since, price_micro_cost_per_gpu_hour=micro,
        )  # fmt: skip

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        """The answer of a query; what it needs is computed once, until a row is added."""
        if self._answering is None:
            self._answering, self._there = self._told(), set()
        for name in needed_for(tables_read(query) & frozenset(sql.QUERIES)):
            if name not in self._there:
                self._there.add(name)
                self._compute(self._answering, name)
        return self._answering.execute(query).fetchall()

    def plan(self, name: str) -> str:
        """How DuckDB would compute a table."""
        self.ask(f"select 1 from {name}")
        assert self._answering
        [(_, plan)] = self._answering.execute(f"explain {sql.QUERIES[name]}").fetchall()
        return plan

    def _told(self) -> duckdb.DuckDBPyConnection:
        con = duckdb.connect()
        con.execute("set TimeZone = 'UTC'")
        con.execute("create schema raw; create schema core; create schema mart")
        for name, rows in self.rows.items():
            con.execute(CATALOG[name].ddl(strict=False))
            if rows:
                con.register("given", frame(CATALOG[name], rows))
                con.execute(f"insert into {name} by name from given")
                con.unregister("given")
        return con

    @staticmethod
    def _compute(con: duckdb.DuckDBPyConnection, name: str) -> None:
        [statement] = duckdb.extract_statements(sql.QUERIES[name])
        told = {"zone": "UTC"} if "zone" in statement.named_parameters else None
        text = f"create table {name} as {sql.QUERIES[name]}"
        con.execute(text, told) if told else con.execute(text)

    def doings(self, gpu: str) -> list[tuple[str, str, int, int]]:
        """What a GPU did, and causes, each from which second to which; hours are not told apart."""
        zero = int(MIDNIGHT.timestamp())
        rows = self.ask(
            f"select activity_name, cause_name, epoch(begin_at)::bigint - {zero}, "
            f"epoch(end_at)::bigint - {zero} from core.gpu_states "
            f"where gpu_uuid = '{gpu}' order by begin_at"
        )
        found: list[tuple[str, str, int, int]] = []
        for name, cause, begin, end in rows:
            if found and found[-1][:2] == (name, cause):
                begin = found.pop()[2]
            found.append((name, cause, begin, end))
        return found

    def states(self, pod: str) -> list[tuple[str, str, int, int]]:
        """The states of a pod's hold and their causes, each from which second to which."""
        zero = int(MIDNIGHT.timestamp())
        return self.ask(
            f"select state_name, cause_name, epoch(begin_at)::bigint - {zero}, "
            f"epoch(end_at)::bigint - {zero} from core.hold_states "
            f"where split_part(hold_id, '/', 1) = '{pod}' order by part_number, begin_at, end_at"
        )

    def booked(self) -> dict[str, float]:
        """Pod -> GPU-seconds booked of its holds."""
        rows = self.ask(
            "select split_part(hold_id, '/', 1), sum(share_micro_gpu * "
            "date_diff('second', begin_at, end_at)) / 1e6 from core.bookings group by 1"
        )
        return {pod: time for pod, time in rows}

    def ledger(self) -> dict[tuple[str, str, str], tuple[float, float | None]]:
        """(holder, state, cause) -> GPU-seconds and cost, None where a part has no price."""
        rows = self.ask(
            "select team_name, state_name, cause_name, sum(gpu_seconds)::double, "
            "case when count(*) = count(ledger_cost) then sum(ledger_cost)::double end "
            "from core.ledger group by all"
        )
        return {(team, state, cause): (time, cost) for team, state, cause, time, cost in rows}
