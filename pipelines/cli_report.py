"""The `report` command: prints a report, or sends it.

What it holds and how it is sent belongs to the modules `report_*`; nothing here knows Dagster.
"""

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from pipelines.cli_common import DONE, UNREACHABLE, answering, config_of, home_of, note, plain, stop

if TYPE_CHECKING:
    from pipelines.report import Report


def report(
    told: Path | None,
    name: str,
    last_on: date | None,
    team: str | None,
    snapshot: int | None,
    recipients: Sequence[str],
    dry_run: bool,
    html: Path | None,
    again: bool,
) -> None:
    """Print or send the report of that name; the exit code says what became of it."""
    from models.mail import is_address
    from models.window import day_of
    from pipelines.report import Period
    from pipelines.report_deliver import Asked, ReportError, deliver, plan_of, reports
    from pipelines.report_send import MailError, ServerAway

    if strange := [r for r in recipients if not is_address(r)]:
        stop(f"--recipient {strange[0]}: is no mail address")
    if html is not None and not dry_run:
        stop("--html goes with --dry-run")
    code = DONE
    with answering():
        config, path = config_of(told)
        zone = config.lake.accounting_zone
        period = (
            Period.until(last_on, zone)
            if last_on
            else Period.full_week(day_of(datetime.now(UTC), zone), zone)
        )
        asked = Asked(period, snapshot, team, tuple(recipients), again)
        try:
            plan = plan_of(config, name)
            if dry_run:
                found = reports(config, home_of(told), plan, asked, note)
                show([one for one, _ in found], html)
            else:
                code = deliver(config, home_of(told), plan, asked, _say)
        except ReportError as error:
            stop(str(error), error.code)
        except MailError as error:
            stop(f"{path}: {error}")
        except ServerAway as error:
            stop(str(error), UNREACHABLE)
    raise typer.Exit(code)


def _say(line: str) -> None:
    typer.echo(plain(line))


def show(reports: "Sequence[Report]", html: Path | None) -> None:
    """Print each report's text; with a file, write its HTML, for several each beside it."""
    from pipelines.report_html import html as written
    from pipelines.report_text import text

    for number, one in enumerate(reports):
        typer.echo("\n".join(map(plain, text(one).split("\n"))), nl=False)
        if number < len(reports) - 1:
            typer.echo("\n")
        if html is not None:
            path = (
                html if len(reports) == 1 else html.with_stem(f"{html.stem}-{_slug(one, number)}")
            )
            path.write_text(written(one), encoding="utf-8")
            note(f"wrote {path}")


def _slug(report: "Report", number: int) -> str:
    """A team's name as a part of a file's; the number keeps two alike apart."""
    return f"{number + 1}-{re.sub(r'[^A-Za-z0-9]+', '-', report.team or 'platform').strip('-')}"
