"""When reports go out: a job and a schedule for each report of the configuration.

What a report holds and how it is sent belongs to the modules `report_*`.
"""

from datetime import date, timedelta

import dagster as dg

from models.config import Config
from models.config_errors import ConfigError
from models.mail import ReportPlan
from models.window import day_of
from pipelines.assets import Ledger
from pipelines.cli_common import config_of
from pipelines.report import Period
from pipelines.report_deliver import DONE, UNREACHABLE, Asked, ReportError, deliver, plan_of
from pipelines.report_send import MailError, ServerAway

RETRIES, RETRY_SECONDS = 3, 600
"""A server that is away comes back within the half hour, or somebody must look after it."""


class Week(dg.Config):
    """Which seven days a report is of: the last of them."""

    last_on: str


def week(plan: ReportPlan, last_on: date) -> dg.RunConfig:
    """The settings of a run for the seven days that end with one."""
    return dg.RunConfig(ops={plan.identifier: Week(last_on=last_on.isoformat())})


def job_of(plan: ReportPlan) -> dg.JobDefinition:
    """The job that sends one report."""

    @dg.op(name=plan.identifier, description=f"Sends the report {plan.name} by mail.")
    def send(context: dg.OpExecutionContext, config: Week, ledger: Ledger) -> None:
        home, settings = ledger.opened()
        period = Period.until(date.fromisoformat(config.last_on), settings.lake.accounting_zone)
        try:
            found = plan_of(settings, plan.name)
            code = deliver(settings, home, found, Asked(period), context.log.info)
        except (ReportError, MailError) as error:
            raise dg.Failure(str(error), allow_retries=False) from None
        except ServerAway as error:
            context.log.warning(str(error))
            code = UNREACHABLE
        if code == UNREACHABLE:
            raise dg.RetryRequested(max_retries=RETRIES, seconds_to_wait=RETRY_SECONDS)
        if code != DONE:
            raise dg.Failure("not everybody got it: see the log", allow_retries=False)

    @dg.job(name=f"{plan.identifier}_job", executor_def=dg.in_process_executor)
    def sending() -> None:
        send()

    return sending


def schedule_of(plan: ReportPlan, zone: str) -> dg.ScheduleDefinition:
    """The schedule of a report, in the accounting zone; late or not, it is of the week before."""

    @dg.schedule(
        name=plan.identifier,
        job=job_of(plan),
        cron_schedule=plan.cron,
        execution_timezone=zone,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description=f"The report {plan.name}.",
    )
    def sending(context: dg.ScheduleEvaluationContext) -> dg.RunRequest:
        today = day_of(context.scheduled_execution_time, zone)
        last_on = Period.full_week(today, zone).end_on - timedelta(days=1)
        return dg.RunRequest(
            run_key=f"{plan.name} {last_on}", run_config=week(plan, last_on).to_config_dict()
        )

    return sending


def report_schedules() -> list[dg.ScheduleDefinition]:
    """One for each report of the configuration in force; none where there is none."""
    try:
        config: Config = config_of(None)[0]
    except ConfigError:
        return []
    return [schedule_of(plan, config.lake.accounting_zone) for plan in config.reports]
