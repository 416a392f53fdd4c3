"""What allocated against used is counted in, and the core table that counts it.

The marts that sum it by node, team and workload are in mart_gpus.
"""

from models.core_columns import HOLDER, MODEL, NODE
from models.table import CLUSTER, DAY, Column, Kind, Table


def seconds(name: str, doc: str) -> Column:
    """A sum of GPU-time."""
    return Column(f"{name}_gpu_seconds", Kind.DECIMAL, doc, minimum=0)


def money(name: str, doc: str) -> Column:
    """A sum of money."""
    doc = f"{doc} Null where it has time and none of it a price."
    return Column(f"{name}_cost", Kind.DECIMAL, doc, nullable=True, minimum=0)


USE = (
    seconds("installed", "All of it, whoever held it."),
    seconds("available", "Installed - unavailable - unrecorded."),
    seconds("held", "From starting to terminating."),
    seconds("active", "Measured doing work."),
    seconds("idle", "Held, measured doing nothing."),
    seconds("stalled", "Held, kernels reported but no work."),
    seconds("waiting", "Held: starting, gang_wait, loading or terminating."),
    seconds("unobserved", "Held, not measured."),
    seconds("sm_observed", "Held, with an SM reading."),
    seconds("effective", "Active time weighted by SM activity."),
    seconds("unpriced", "Of the installed, without a price."),
    money("installed", "Cost of the installed."),
    money("available", "Cost of the available."),
    money("held", "Cost of the held."),
    money("active", "Cost of the active."),
    money("idle", "Cost of the idle."),
    money("stalled", "Cost of the stalled."),
    money("unobserved", "Cost of the unobserved."),
    money("sm_observed", "Cost of the sm_observed."),
    money("effective", "Cost of the effective."),
)
"""allocation_ratio = held / available; utilisation_ratio = effective / sm_observed, its coverage
sm_observed / held; active_ratio = active / (held - unobserved). Always sums over sums,
in hours and likewise in money."""

USES = Table(
    name="core.uses",
    doc="The ledger as allocated against used, with its overlays: by hour, node and hold.",
    grain=("cluster_name", "day_on", "hour_at", "node_uid", "hold_id", "team_name"),
    columns=(
        CLUSTER,
        DAY,
        Column("hour_at", Kind.INSTANT, "Begin of the hour."),
        NODE,
        MODEL,
        Column("hold_id", Kind.TEXT, "The hold; null for reserved holders.", nullable=True),
        Column("workload_key_uid", Kind.TEXT, "Its workload.", nullable=True),
        HOLDER,
        *USE,
    ),
)
"""Costs are null where nothing of it has a price, and where there is no time of it."""

TABLES = (USES,)
