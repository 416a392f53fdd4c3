"""The whole graph, in one screen; what its parts do belongs in the other modules."""

import dagster as dg

from pipelines.assets import ASSETS, ledger
from pipelines.checks import CHECKS
from pipelines.schedule import everything, frequently, hourly, nightly
from pipelines.schedule_reports import report_schedules

defs = dg.Definitions(
    assets=ASSETS,
    asset_checks=CHECKS,
    jobs=[everything],
    schedules=[frequently, hourly, nightly, *report_schedules()],
    resources={"ledger": ledger()},
    executor=dg.in_process_executor,
)
