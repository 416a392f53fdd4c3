"""The facts of a fleet as raw rows: what a recorder would have seen, version by version.

A file of Parquet per table and day, in the contracts' columns; reading them back belongs in
`source`, which fleet there is in `fleet`.
"""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks import samples
from benchmarks.fleet import AGE, DAY, TEAMS, Fleet, Size, build
from models import raw
from models.table import INSTANT, Table

CLUSTER = "bench"
FIRST_DAY = date(2026, 3, 2)
EPOCH = datetime(2026, 3, 2, tzinfo=UTC)
FIRST_SEQUENCE = 1_000_000
"""What is observed comes after what the day before hands on."""

NAMESPACES = 3
"""Of each team."""

PRICES = {"h100-80gb": "2.95", "a100-80gb": "1.89", "l40s": "0.87"}


def config() -> dict[str, Any]:
    """The configuration of the fleet: a price for each model, teams by label or namespace."""
    named = [{"team": t, "namespace_label": {"team": t}, "namespace": f"{t}-*"} for t in TEAMS]
    return {
        "clusters": [{"name": CLUSTER}],
        "teams": [{"name": team} for team in TEAMS],
        "team_rules": [
            {"team": "platform", "namespace": "kube-system"},
            {"team": "platform", "owner_name": "backfill-*"},
            {"team": "{value}", "pod_label": {"example.com/team": "*"}},
            *named,
        ],
        "prices": [
            {"valid_from": "2026-01-01", "gpu_model": model, "per_gpu_hour": price}
            for model, price in PRICES.items()
        ],
    }


def write(size: Size, folder: Path) -> int:
    """Write the raw rows of each day; their number."""
    fleet, count = build(size), 0
    for table, frame in (
        (raw.POD_VERSIONS, _pods(fleet)),
        (raw.NODE_VERSIONS, _nodes(fleet)),
        (raw.POD_GROUP_VERSIONS, _groups(fleet)),
        (raw.NAMESPACE_VERSIONS, _namespaces()),
    ):
        count += _written(table, _seen(frame, size), folder)
    if size.is_sampled:
        count += samples.write(fleet, folder, CLUSTER, EPOCH)
    return count + _written(raw.COVERAGE, _coverage(size), folder)


def file_of(folder: Path, table: str, day: date) -> Path:
    """Where the rows of a table's day are."""
    return folder / table / f"{day}.parquet"


def _written(table: Table, frame: pl.DataFrame, folder: Path) -> int:
    (folder / table.name).mkdir(parents=True, exist_ok=True)
    for (day,), rows in frame.partition_by("day_on", as_dict=True).items():
        table.conform(_whole(table, rows)).write_parquet(file_of(folder, table.name, day))
    return frame.height


def _whole(table: Table, frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with the contract's columns; those that it does not have are null or empty."""
    empty = pl.Series([[]])
    columns = []
    for column in table.columns:
        if column.name in frame.columns:
            found = pl.col(column.name)
        elif column.nullable:
            found = pl.lit(None)
        else:
            found = pl.lit(empty.cast(column.kind.polars)).first()
        columns.append(found.cast(column.kind.polars).alias(column.name))
    return frame.select(columns)


def _seen(frame: pl.DataFrame, size: Size) -> pl.DataFrame:
    """What was observed in the record, in order; what was there at its begin is a list."""
    end = EPOCH + timedelta(days=size.days)
    inside = frame.filter(pl.col("observed_at") >= EPOCH, pl.col("observed_at") < end)
    before = (
        frame.filter(pl.col("observed_at") < EPOCH)
        .sort("observed_at")
        .unique("object_key", keep="last", maintain_order=True)
        .filter(pl.col("change_name") != "DELETED")
        .with_columns(observed_at=pl.lit(EPOCH, INSTANT), change_name=pl.lit("LISTED"))
    )
    number = pl.int_range(pl.len(), dtype=pl.Int64)
    return (
        pl.concat([before, inside])
        .drop("object_key")
        .sort("observed_at", maintain_order=True)
        .with_columns(cluster_name=pl.lit(CLUSTER), day_on=pl.col("observed_at").dt.date())
        .with_columns(sequence_number=FIRST_SEQUENCE + number.over("day_on"))
        .with_columns(source_ref=pl.format("bench.jsonl:{}", "sequence_number"))
    )


def _at(seconds: str | pl.Expr) -> pl.Expr:
    """Seconds since the first midnight as an instant."""
    given = pl.col(seconds) if isinstance(seconds, str) else seconds
    micros = int(EPOCH.timestamp()) * 1_000_000
    return (given.cast(pl.Int64) * 1_000_000 + micros).cast(INSTANT)


def _versions(
    facts: pl.DataFrame, key: str, steps: list[tuple[str, str, dict[str, pl.Expr]]]
) -> pl.DataFrame:
    """A row for each step (column of its second, change, what it says) that an object took."""
    delay = pl.col("delay") if "delay" in facts.columns else pl.lit(300_000)
    frames = [
        facts.filter(pl.col(at).is_not_null()).with_columns(
            observed_at=_at(at) + pl.duration(microseconds=delay),
            change_name=pl.lit(change),
            object_key=pl.col(key),
            **told,
        )
        for at, change, told in steps
    ]
    return pl.concat(frames, how="diagonal")


def _requests() -> pl.Expr:
    asks = pl.struct(resource_name="resource", request_count=pl.col("asked").cast(pl.Int64))
    none = pl.lit(pl.Series([[]], dtype=raw.POD_VERSIONS.column("requests").kind.polars)).first()
    return pl.when(pl.col("asked") > 0).then(pl.concat_list(asks)).otherwise(none)


def _pods(fleet: Fleet) -> pl.DataFrame:
    is_single = pl.col("gang_size").is_null()  # a gang's pods are in its PodGroup's namespace
    place = pl.when(is_single).then(pl.col("number").fill_null(0) % NAMESPACES).otherwise(0)
    of_team = pl.format("{}-{}", "team", place)
    is_system = pl.col("kind") == "system"
    is_service = pl.col("workload_kind").is_in(["Deployment", "DaemonSet"])
    facts = pl.DataFrame(fleet.pods, infer_schema_length=None).select(
        "made", "bound", "started", "restarted", "again", "ended", "asked_to_go", "removed",
        "delay", "uid",
        pod_uid="uid",
        pod_name=pl.format("{}-{}", "workload", pl.col("uid").str.head(8)),
        namespace_name=pl.when(is_system).then(pl.lit("kube-system")).otherwise(of_team),
        created_at=_at("made"),
        node=pl.format("node-{}", pl.col("number").cast(pl.String).str.zfill(5)),
        end_phase=pl.when("is_failed").then(pl.lit("Failed")).otherwise(pl.lit("Succeeded")),
        phase_name=pl.lit("Pending"),
        is_start_known=pl.lit(True),
        restart_count=pl.lit(0, pl.Int64),
        requests=_requests(),
        cpu_milli_count=pl.lit(8000),
        labels_json=pl.concat_str(
            pl.lit('{"example.com/team": "'), "team", pl.lit('", "app": "'), "workload",
            pl.lit('", "app.kubernetes.io/part-of": "platform", "pod-template-hash": "5d4f8c7b9"}'),
        ),
        workload_kind_name="workload_kind",
        workload_name="workload",
        workload_key_uid="workload",
        workload_class="workload_class",
        is_service=is_service,
        owners=pl.concat_list(
            pl.struct(kind_name="workload_kind", object_name="workload", object_uid="workload")
        ),
        gang_name=pl.when(pl.col("gang_size").is_not_null()).then("workload"),
        queue_name=pl.concat_str("team", pl.lit("-queue")),
        user_name=pl.concat_str(pl.lit("user-"), pl.col("uid").str.slice(6, 2)),
    )  # fmt: skip
    bound = {"node_name": pl.col("node"), "bound_at": _at("bound")}
    runs = {**bound, "running_since_at": _at("started"), "phase_name": pl.lit("Running")}
    runs["ready_since_at"] = _at(pl.when("is_service").then(pl.col("started") + 1))
    stopped = {
        **bound, "phase_name": pl.lit("Running"), "stopped_at": _at("restarted"),
        "waiting_cause_name": pl.lit("restart"), "exit_code_number": pl.lit(1, pl.Int64),
    }  # fmt: skip
    later = pl.coalesce("again", "started")
    last = {
        **runs, "running_since_at": _at(later), "stopped_at": _at("restarted"),
        "restart_count": pl.col("again").is_not_null().cast(pl.Int64),
    }  # fmt: skip
    ended = {
        **last, "phase_name": pl.col("end_phase"), "finished_at": _at("ended"),
        "stopped_at": _at("ended"),
    }  # fmt: skip
    asked = {**last, "deletion_asked_at": _at("asked_to_go")}
    waited = {"deletion_asked_at": _at("asked_to_go")}
    held, waiting = facts.filter(pl.col("bound").is_not_null()), pl.col("bound").is_null()
    done = held.filter(pl.col("ended").is_not_null())
    killed = held.filter(pl.col("ended").is_null())
    parts = [
        _versions(facts, "uid", [("made", "ADDED", {})]),
        _versions(
            held,
            "uid",
            [
                ("bound", "MODIFIED", {**bound, "waiting_cause_name": pl.lit("container_start")}),
                ("started", "MODIFIED", runs),
                ("restarted", "MODIFIED", stopped),
                ("again", "MODIFIED", last),
            ],
        ),
        _versions(done, "uid", [("ended", "MODIFIED", ended), ("removed", "DELETED", ended)]),
        _versions(
            killed, "uid", [("asked_to_go", "MODIFIED", asked), ("removed", "DELETED", asked)]
        ),
        _versions(facts.filter(waiting), "uid", [("removed", "DELETED", waited)]),
    ]
    return pl.concat(parts, how="diagonal")


def _nodes(fleet: Fleet) -> pl.DataFrame:
    """A version of each node at every heartbeat and at every change."""
    size = fleet.size
    sound = {"is_ready": True, "is_cordoned": False, "lost_count": 0}
    nodes = pl.DataFrame(
        [
            {
                "number": node["number"], "node_name": node["node"], "object_key": node["node"],
                "gpu_model_name": node["kind"].model, "resource_name": node["kind"].resource,
                "units": node["kind"].units, "share_micro_gpu": node["kind"].share_micro_gpu,
            }
            for node in fleet.nodes
        ]
    )  # fmt: skip
    beats = pl.DataFrame({"beat": range(-1, size.seconds // (size.heartbeat_minutes * 60))})
    at = pl.col("beat") * size.heartbeat_minutes * 60 + pl.col("number") * 7 % 300
    first = nodes.select("number", at=pl.lit(-DAY), **{k: pl.lit(v) for k, v in sound.items()})
    changes = pl.DataFrame(fleet.node_changes, schema=first.schema)
    told = pl.concat(
        [
            first,
            changes,
            nodes.select("number").join(beats, how="cross").select("number", at=at),
        ],
        how="diagonal_relaxed",
    )
    kept = [pl.col(name).forward_fill().over("number") for name in sound]
    lost = pl.col("units") // 8 * pl.col("lost_count")
    unit = pl.struct(
        "resource_name",
        capacity_count="units",
        allocatable_count=pl.col("units") - lost,
        share_micro_gpu="share_micro_gpu",
    )
    return (
        told.sort("number", "at")
        .with_columns(kept)
        .join(nodes, on="number", maintain_order="left")
        .select(
            "node_name", "gpu_model_name", "object_key", "is_ready", "is_cordoned",
            observed_at=_at("at") + pl.duration(microseconds=400_000),
            change_name=pl.lit("MODIFIED"),
            node_uid="node_name",
            created_at=_at(pl.lit(-AGE)),
            gpu_count=pl.lit(8),
            allocatable_micro_gpu=(8 - pl.col("lost_count")) * 1_000_000,
            largest_gpu_count=pl.lit(8),
            count_source_name=pl.lit("nvidia.com/gpu.count"),
            is_ever_ready=pl.lit(True),
            capacity_type_name=pl.lit("reserved"),
            share_scale_ratio=pl.lit(1.0),
            resources=pl.concat_list(unit),
            cpu_milli_count=pl.lit(192_000),
            memory_mib=pl.lit(2_000_000),
            labels_json=pl.concat_str(
                pl.lit('{"nvidia.com/gpu.count": "8", "nvidia.com/gpu.product": "'),
                "gpu_model_name", pl.lit('", "topology.kubernetes.io/zone": "a"}'),
            ),
        )
    )  # fmt: skip


def _groups(fleet: Fleet) -> pl.DataFrame:
    facts = pl.DataFrame(
        [{**group, "kind": group["kind"].workload_kind} for group in fleet.groups]
    ).select(
        "queued", "admitted", "placed", "ended",
        pod_group_uid="group",
        namespace_name=pl.concat_str("team", pl.lit("-0")),
        pod_group_name="group",
        created_at=_at("queued"),
        workload_kind_name="kind",
        workload_name="group",
        workload_key_uid="group",
        workload_class=pl.lit("training"),
        min_member_count="min_member_count",
        queue_name=pl.concat_str("team", pl.lit("-queue")),
        labels_json=pl.lit("{}"),
    )  # fmt: skip
    steps = [
        (at, change, {"phase_name": pl.lit(phase)})
        for at, change, phase in (
            ("queued", "ADDED", "Pending"),
            ("admitted", "MODIFIED", "Inqueue"),
            ("placed", "MODIFIED", "Running"),
            ("ended", "DELETED", "Completed"),
        )
    ]
    return _versions(facts, "pod_group_uid", steps)


def _namespaces() -> pl.DataFrame:
    named = [(f"{team}-{n}", team) for team in TEAMS for n in range(NAMESPACES)]
    return pl.DataFrame(
        [("kube-system", "platform"), *named], schema=["namespace_name", "team"], orient="row"
    ).select(
        "namespace_name",
        object_key="namespace_name",
        observed_at=_at(pl.lit(-DAY)),
        change_name=pl.lit("ADDED"),
        labels_json=pl.concat_str(pl.lit('{"team": "'), "team", pl.lit('"}')),
    )


def _coverage(size: Size) -> pl.DataFrame:
    days = pl.DataFrame({"day": range(size.days)})
    return days.select(
        cluster_name=pl.lit(CLUSTER),
        day_on=_at(pl.col("day") * DAY).dt.date(),
        begin_at=_at(pl.col("day") * DAY),
        end_at=_at((pl.col("day") + 1) * DAY),
        coverage_name=pl.lit("watched"),
        source_ref=pl.lit("bench.jsonl"),
        is_placed=pl.lit(True),
        is_inventory_known=pl.lit(True),
    )
