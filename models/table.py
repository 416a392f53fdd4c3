"""What a table contract is, and all that derives from one: DDL, schema, checks, labels.

The contracts themselves live in `raw`, `core`, `mart` and `meta`; nothing here opens a database.
"""

from dataclasses import dataclass, field
from enum import Enum

import polars as pl

from models.units import unit_of

INSTANT = pl.Datetime("us", "UTC")
IN_LISTS = {"VARCHAR": pl.String(), "BIGINT": pl.Int64(), "BOOLEAN": pl.Boolean()}
"""What a list's structs may hold."""


def _list_of(**fields: str) -> tuple[str, pl.DataType]:
    """A list of structs with these fields."""
    told = ", ".join(f"{name} {kind}" for name, kind in fields.items())
    inner = pl.Struct({name: IN_LISTS[kind] for name, kind in fields.items()})
    return f"STRUCT({told})[]", pl.List(inner)


class Kind(Enum):
    """The type of a column: how DuckDB and Polars spell it."""

    TEXT = ("VARCHAR", pl.String())
    COUNT = ("BIGINT", pl.Int64())
    FLAG = ("BOOLEAN", pl.Boolean())
    INSTANT = ("TIMESTAMP WITH TIME ZONE", INSTANT)
    DAY = ("DATE", pl.Date())
    DECIMAL = ("DECIMAL(18,6)", pl.Decimal(18, 6))
    RATIO = ("DOUBLE", pl.Float64())
    OWNERS = (
        "STRUCT(kind_name VARCHAR, object_name VARCHAR, object_uid VARCHAR)[]",
        pl.List(
            pl.Struct(
                {"kind_name": pl.String(), "object_name": pl.String(), "object_uid": pl.String()}
            )
        ),
    )
    REQUESTS = (
        "STRUCT(resource_name VARCHAR, request_count BIGINT)[]",
        pl.List(pl.Struct({"resource_name": pl.String(), "request_count": pl.Int64()})),
    )
    DEVICES = (
        "STRUCT(device_uuid VARCHAR, memory_mib BIGINT, core_count BIGINT)[]",
        pl.List(
            pl.Struct(
                {"device_uuid": pl.String(), "memory_mib": pl.Int64(), "core_count": pl.Int64()}
            )
        ),
    )
    RESOURCES = (
        "STRUCT(resource_name VARCHAR, capacity_count BIGINT, allocatable_count BIGINT, "
        "share_micro_gpu BIGINT)[]",
        pl.List(
            pl.Struct(
                {
                    "resource_name": pl.String(),
                    "capacity_count": pl.Int64(),
                    "allocatable_count": pl.Int64(),
                    "share_micro_gpu": pl.Int64(),
                }
            )
        ),
    )
    CONTAINER_RUNS = (
        "STRUCT(container_name VARCHAR, role_name VARCHAR, started_at TIMESTAMP WITH TIME ZONE, "
        "ended_at TIMESTAMP WITH TIME ZONE, exit_code_number BIGINT, reason_name VARCHAR, "
        "restart_count BIGINT)[]",
        pl.List(
            pl.Struct(
                {
                    "container_name": pl.String(),
                    "role_name": pl.String(),
                    "started_at": pl.Datetime("us", "UTC"),
                    "ended_at": pl.Datetime("us", "UTC"),
                    "exit_code_number": pl.Int64(),
                    "reason_name": pl.String(),
                    "restart_count": pl.Int64(),
                }
            )
        ),
    )
    REASONS = (
        "STRUCT(section_name VARCHAR, reason_name VARCHAR, reason_text VARCHAR, "
        "node_count BIGINT, total_node_count BIGINT, resource_name VARCHAR, "
        "missing_count BIGINT, taint_text VARCHAR, pod_set_name VARCHAR, flavor_name VARCHAR, "
        "is_cut BOOLEAN)[]",
        pl.List(
            pl.Struct(
                {
                    "section_name": pl.String(),
                    "reason_name": pl.String(),
                    "reason_text": pl.String(),
                    "node_count": pl.Int64(),
                    "total_node_count": pl.Int64(),
                    "resource_name": pl.String(),
                    "missing_count": pl.Int64(),
                    "taint_text": pl.String(),
                    "pod_set_name": pl.String(),
                    "flavor_name": pl.String(),
                    "is_cut": pl.Boolean(),
                }
            )
        ),
    )

    CLAIMS = _list_of(claim_name="VARCHAR", resource_name="VARCHAR")
    DEVICE_REQUESTS = _list_of(
        request_name="VARCHAR",
        class_name="VARCHAR",
        is_gpu="BOOLEAN",
        device_count="BIGINT",
        share_micro_gpu="BIGINT",
    )
    DEVICE_RESULTS = _list_of(
        request_name="VARCHAR",
        driver_name="VARCHAR",
        pool_name="VARCHAR",
        device_name="VARCHAR",
        is_admin="BOOLEAN",
        is_gpu="BOOLEAN",
        share_id="VARCHAR",
        consumed_mib="BIGINT",
    )
    SLICE_DEVICES = _list_of(
        device_name="VARCHAR",
        is_gpu="BOOLEAN",
        type_name="VARCHAR",
        gpu_uuid="VARCHAR",
        device_uuid="VARCHAR",
        gpu_model_name="VARCHAR",
        profile_name="VARCHAR",
        memory_mib="BIGINT",
        share_micro_gpu="BIGINT",
        node_name="VARCHAR",
        is_tainted="BOOLEAN",
    )
    COUNTERS = _list_of(
        device_name="VARCHAR", set_name="VARCHAR", counter_name="VARCHAR", counter_amount="BIGINT"
    )

    @property
    def sql(self) -> str:
        """The type's name in DuckDB."""
        return self.value[0]

    @property
    def polars(self) -> pl.DataType:
        """The type in Polars."""
        return self.value[1]


@dataclass(frozen=True)
class Column:
    """One column: its name carries its unit, its sentence says what it is."""

    name: str
    kind: Kind
    doc: str
    nullable: bool = False
    minimum: int | float | None = None
    maximum: int | float | None = None
    choices: tuple[str, ...] | None = None

    @property
    def label(self) -> str:
        """What a page calls the column."""
        words = self.name.removesuffix("_name").removesuffix("_at").removesuffix("_on")
        unit = unit_of(self.name)
        return words.replace("_", " ") if unit is None else words.replace("_gpu_seconds", " GPU-h")


@dataclass(frozen=True)
class Table:
    """One table: declared once, here its grain, its columns and who may see which rows of it."""

    name: str
    doc: str
    grain: tuple[str, ...]
    columns: tuple[Column, ...]
    scope: str | None = None
    """For marts: the team column a viewer is limited by; 'platform' for rows only operators see."""
    is_daily: bool = True
    """Partitioned by (cluster_name, day_on) and replaced window by window; else replaced whole."""
    ranges: tuple[tuple[str, str], ...] = field(default=())
    """Pairs of columns of which the first may not be greater than the second."""

    def __hash__(self) -> int:
        return hash(self.name)

    def column(self, name: str) -> Column:
        """The column of that name; KeyError where there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(f"{self.name} has no column {name}")

    @property
    def schema(self) -> pl.Schema:
        """The Polars schema."""
        return pl.Schema({c.name: c.kind.polars for c in self.columns})

    @property
    def layer(self) -> str:
        """raw, core, mart or meta."""
        return self.name.split(".")[0]

    def ddl(self, prefix: str = "", *, strict: bool = True) -> str:
        """CREATE TABLE; `strict` adds NOT NULL (the lake's own tables take it, views do not)."""
        lines = [
            f"    {c.name} {c.kind.sql}{' not null' if strict and not c.nullable else ''}"
            for c in self.columns
        ]
        body = ",\n".join(lines)
        return f"create table if not exists {prefix}{self.name} (\n{body}\n)"

    def conform(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The frame in the contract's order and types; raises on a missing or extra column."""
        return frame.match_to_schema(self.schema)

    def checks(self) -> dict[str, str]:
        """The rules that every row keeps: name of the rule -> SELECT that counts its breaches.

        Each bound is a query of its own: DuckDB answers it from what it knows of each block.
        """
        found = {"grain_is_unique": self._doubles()}
        for c in self.columns:
            wrong = []
            if not c.nullable:
                wrong.append(f"{c.name} is null")
            if c.minimum is not None:
                wrong.append(f"{c.name} < {c.minimum}")
            if c.maximum is not None:
                wrong.append(f"{c.name} > {c.maximum}")
            if c.choices is not None:
                listed = ", ".join(f"'{choice}'" for choice in c.choices)
                wrong.append(f"{c.name} not in ({listed})")
            if wrong:
                found[f"{c.name}_in_bounds"] = (
                    f"select count(*) from {self.name} where {' or '.join(wrong)}"
                )
        for low, high in self.ranges:
            found[f"{low}_before_{high}"] = f"select count(*) from {self.name} where {low} > {high}"
        return found

    def _doubles(self) -> str:
        """Counts the keys that are there more than once.

        Same keys have the same hash, and few others do: those that stand alone are put aside by
        a number, and only the rest, if any, is compared word by word.
        """
        keys = ", ".join(self.grain)
        return (
            f"with alike as (select hash({keys}) as number from {self.name} "
            f"group by number having count(*) > 1) select count(*) from (select 1 from {self.name} "
            f"where hash({keys}) in (from alike) group by {keys} having count(*) > 1)"
        )


CLUSTER = Column("cluster_name", Kind.TEXT, "The cluster.")
DAY = Column("day_on", Kind.DAY, "The day, in the lake's accounting zone.")
