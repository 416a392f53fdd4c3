"""Meta tables: what the lake knows of itself; its data belong in the other layers."""

from models.table import CLUSTER, Column, Kind, Table

LAKE = Table(
    name="meta.lake",
    doc="One row: what was fixed when the lake was made.",
    grain=("schema_number",),
    is_daily=False,
    columns=(
        Column("schema_number", Kind.COUNT, "Version of the tables.", minimum=1),
        Column("accounting_zone_name", Kind.TEXT, "IANA zone of its days."),
        Column("currency_name", Kind.TEXT, "Currency of its *_cost columns."),
        Column("created_at", Kind.INSTANT, "When it was made."),
    ),
)

SEGMENTS = Table(
    name="meta.segments",
    doc="Sealed spool segments that have been ingested, each once.",
    grain=("cluster_name", "spool_name", "segment_name"),
    is_daily=False,
    columns=(
        CLUSTER,
        Column("spool_name", Kind.TEXT, "The spool's own name, given when it was made."),
        Column("segment_name", Kind.TEXT, "The segment's file."),
        Column("line_count", Kind.COUNT, "Good lines in it, of whatever kind.", minimum=0),
        Column("first_observed_at", Kind.INSTANT, "Its earliest line.", nullable=True),
        Column("last_observed_at", Kind.INSTANT, "Its latest line.", nullable=True),
        Column("surveys_json", Kind.TEXT, "Of each kind: since when, until when, its lists."),
        Column("ingested_at", Kind.INSTANT, "When."),
    ),
)

CLOSED_PERIODS = Table(
    name="meta.closed_periods",
    doc="Closed windows: they refuse to be replaced.",
    grain=("cluster_name", "begin_on"),
    is_daily=False,
    columns=(
        CLUSTER,
        Column("begin_on", Kind.DAY, "First day."),
        Column("end_on", Kind.DAY, "Day after the last."),
        Column("snapshot_number", Kind.COUNT, "Snapshot that it was closed at.", minimum=0),
        Column("closed_at", Kind.INSTANT, "When."),
    ),
)

DIRTY_DAYS = Table(
    name="meta.dirty_days",
    doc="Days whose raw rows changed after they were last computed.",
    grain=("cluster_name", "day_on"),
    is_daily=False,
    columns=(
        CLUSTER,
        Column("day_on", Kind.DAY, "The day."),
        Column("marked_at", Kind.INSTANT, "Since when."),
        Column("reason_text", Kind.TEXT, "What changed."),
    ),
)

RUNS = Table(
    name="meta.runs",
    doc="How each cluster's last run ended: a broken law leaves the cluster stale.",
    grain=("cluster_name",),
    is_daily=False,
    columns=(
        CLUSTER,
        Column("run_id", Kind.TEXT, "The run."),
        Column("begin_on", Kind.DAY, "First day of its window."),
        Column("end_on", Kind.DAY, "Day after the last."),
        Column("ended_at", Kind.INSTANT, "When it ended."),
        Column("is_published", Kind.FLAG, "Whether it was published."),
        Column("error_text", Kind.TEXT, "Why not: law or source.", nullable=True),
        Column(
            "stale_since_at", Kind.INSTANT, "First failure since it last published.", nullable=True
        ),
    ),
)

TABLES = (LAKE, SEGMENTS, CLOSED_PERIODS, DIRTY_DAYS, RUNS)
