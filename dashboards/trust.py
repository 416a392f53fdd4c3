"""What each page says of itself: snapshot, how far it knows, coverage, and stale clusters.

The figures of a page belong in its view.
"""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import polars as pl
import streamlit as st

from dashboards.data import Reading, stale
from dashboards.tables import show
from models.figures import Number, instant, percent, ratio
from models.mart import FLEET_COVERAGE
from models.table import Column, Kind

ENOUGH = 0.95
"""Below this share of what is recorded, observed or priced, a page says so in colour."""
OLD = timedelta(hours=26)
"""A live cluster is computed at least nightly; two hours more are no alarm."""

COVERAGE = """
select
    cluster_name,
    max(known_until_at) as known_until_at,
    sum(known_seconds)::bigint as known_seconds,
    sum(watched_seconds)::bigint as watched_seconds,
    sum(installed_gpu_seconds) as installed_gpu_seconds,
    sum(held_gpu_seconds) as held_gpu_seconds,
    sum(observed_gpu_seconds) as observed_gpu_seconds,
    sum(unrecorded_gpu_seconds) as unrecorded_gpu_seconds,
    sum(unpriced_gpu_seconds) as unpriced_gpu_seconds,
    sum(unbooked_gpu_seconds) as unbooked_gpu_seconds,
    sum(rejected_count)::bigint as rejected_count,
    bool_and(is_inventory_known) as is_inventory_known,
    count(*) as day_count
from mart.fleet_coverage
where
    day_on >= $begin_on
    and day_on < $end_on
    and list_contains($clusters::varchar[], cluster_name)
group by cluster_name
order by cluster_name
"""
LATEST = """
select
    cluster_name,
    max(known_until_at) as known_until_at
from mart.fleet_coverage
where list_contains($clusters::varchar[], cluster_name)
group by cluster_name
"""
# A run that asked for days up to its own shows a live cluster; a recorded one ended long before.
LIVE = "select cluster_name from meta.runs where end_on + interval 1 day >= ended_at::date"

RECORDED = Column(
    "recorded_ratio", Kind.RATIO, "Installed GPU-time of which it is known who held it."
)
OBSERVED = Column("observed_ratio", Kind.RATIO, "Held GPU-time that was measured.")
PRICED = Column("priced_ratio", Kind.RATIO, "Installed GPU-time that has a price.")
SHOWN = (
    *(FLEET_COVERAGE.column(n) for n in ("cluster_name", "known_until_at")),
    RECORDED,
    OBSERVED,
    PRICED,
    *(
        FLEET_COVERAGE.column(name)
        for name in (
            "installed_gpu_seconds",
            "unbooked_gpu_seconds",
            "rejected_count",
            "is_inventory_known",
        )
    ),
)


def strip(reading: Reading, now: datetime | None = None) -> bool:
    """Draw the line of trust beneath the filters; False where the period has no data."""
    coverage = reading.rows(COVERAGE)
    if coverage.is_empty():
        badges(reading, None, is_old=False)
        warn_of_stale(reading)
        return False
    live = set(reading.rows(LIVE)["cluster_name"])
    moment = now or datetime.now(UTC)
    latest = reading.rows(LATEST)
    is_old = any(cluster in live and moment - until > OLD for cluster, until in latest.iter_rows())
    badges(reading, coverage, is_old=is_old)
    warn_of_stale(reading)
    return True


def caution(observed: Number, held: Number) -> None:
    """Say that waste is understated where little of the held time was measured."""
    share = ratio(observed, held)
    if share is not None and share < ENOUGH:
        st.caption(
            f":orange[Only {percent(share)} of the held time was measured:] idle and stalled time "
            "is not known of the rest, so the waste shown is a lower bound."
        )


def total(frame: pl.DataFrame, name: str) -> Decimal:
    """A column's sum."""
    return Decimal(frame[name].sum() or 0)


def badges(reading: Reading, coverage: pl.DataFrame | None, *, is_old: bool) -> None:
    """Snapshot, known until, and the three shares; the clusters one by one behind a click."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="trust"):
        st.badge(
            f"Snapshot {reading.snapshot.number}",
            color="gray",
            help="Every figure here comes from this published state of the ledger; it can be "
            "read again later and stays the same. Published "
            + instant(reading.snapshot.committed_at, reading.zone),
        )
        days = reading.period.days
        known_days = 0 if coverage is None else max(coverage["day_count"].to_list())
        missing = f" · {known_days} of {days} days published" if known_days < days else ""
        st.badge(
            f"{reading.period}{missing}",
            color="orange" if missing else "gray",
            help="First and last day of the period, both included.",
        )
        if coverage is None:
            return
        known = coverage["known_until_at"].max()
        assert isinstance(known, datetime)
        st.badge(
            f"As of {instant(known, reading.zone)}",
            color="orange" if is_old else "gray",
            help="What came later is not in these figures."
            + (" A cluster that is collected live has sent nothing for over a day." * is_old),
        )
        installed, held = (total(coverage, f"{n}_gpu_seconds") for n in ("installed", "held"))
        shares = (
            (
                "Recorded",
                ratio(installed - total(coverage, "unrecorded_gpu_seconds"), installed),
                RECORDED,
            ),
            ("Observed", ratio(total(coverage, "observed_gpu_seconds"), held), OBSERVED),
            (
                "Priced",
                ratio(installed - total(coverage, "unpriced_gpu_seconds"), installed),
                PRICED,
            ),
        )
        for name, share, column in shares:
            color = "gray" if share is None or share >= ENOUGH else "orange"
            st.badge(f"{name} {percent(share)}", color=color, help=column.doc)
        with st.popover("By cluster", type="tertiary", width="content"):
            table(reading, coverage)


def table(reading: Reading, coverage: pl.DataFrame) -> None:
    """The coverage of each cluster in the period."""
    installed = pl.col("installed_gpu_seconds").cast(pl.Float64)
    whole = pl.when(installed > 0).then(installed)
    held = pl.when(pl.col("held_gpu_seconds") > 0).then(pl.col("held_gpu_seconds").cast(pl.Float64))
    shares = coverage.with_columns(
        recorded_ratio=1 - pl.col("unrecorded_gpu_seconds").cast(pl.Float64) / whole,
        observed_ratio=pl.col("observed_gpu_seconds").cast(pl.Float64) / held,
        priced_ratio=1 - pl.col("unpriced_gpu_seconds").cast(pl.Float64) / whole,
    )
    show(shares, SHOWN, name=reading.file("coverage"), key="coverage")


def warn_of_stale(reading: Reading) -> None:
    """Say which clusters show their last good figures only, since when and why."""
    rows = stale(reading.snapshot).filter(pl.col("cluster_name").is_in(reading.clusters))
    if rows.is_empty():
        return
    with st.container(border=True, gap="xsmall", key="stale"):
        st.markdown(
            ":orange[:material/warning: **Stale**] — the last run of "
            f"{'this cluster' if rows.height == 1 else 'these clusters'} was not published, so the "
            "last good figures are shown."
        )
        for cluster, since, why in rows.select(
            "cluster_name", "stale_since_at", "error_text"
        ).iter_rows():
            at = "unknown" if since is None else instant(since, reading.zone)
            st.text(f"{cluster}, since {at}: {why or 'no reason recorded'}")  # plain, not markdown
