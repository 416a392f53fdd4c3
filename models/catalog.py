"""All table contracts by name; the contracts themselves live in raw, core_*, mart and meta."""

from models import (
    core_admissions,
    core_claims,
    core_events,
    core_findings,
    core_gpus,
    core_objects,
    core_owners,
    core_strangers,
    core_time,
    core_timelines,
    core_uses,
    mart,
    mart_findings,
    mart_gpus,
    mart_sight,
    mart_workloads,
    meta,
    raw,
)
from models.table import Table

CATALOG: dict[str, Table] = {
    table.name: table
    for layer in (
        *(
            raw,
            core_owners,
            core_admissions,
            core_objects,
            core_claims,
            core_time,
            core_gpus,
            core_strangers,
            core_events,
            core_timelines,
            core_uses,
            core_findings,
            mart,
            mart_gpus,
            mart_findings,
            mart_sight,
            mart_workloads,
        ),
        meta,
    )
    for table in layer.TABLES
}
"""Every stored table: `layer.name` -> contract."""

VIEWS: dict[str, Table] = {
    view.name: view for view in (mart.QUEUE_WAITS, mart_gpus.EPISODES, mart_workloads.START_WAITS)
}
"""What is computed at read time: name of the query in sql/view -> contract."""
