"""Which mails a report comes to, to whom each goes, and that it goes there once.

The command and the schedule call the same `deliver`. How a mail is handed over belongs to
`report_send`, what it holds to `report_figures`.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from lake import sent
from lake.home import Home
from lake.read import Door
from models.config import Config
from models.config_errors import nearest
from models.mail import ReportPlan, is_address
from models.states import RESERVED
from pipelines.report import Period, Report, clean
from pipelines.report_basis import Basis, basis
from pipelines.report_figures import collect
from pipelines.report_mail import mail
from pipelines.report_send import Fate, MailError, Outcome, ServerAway, send

DONE, REFUSED, USAGE, UNREACHABLE = 0, 1, 2, 3
TEAMS = """
select distinct team_name from mart.team_days
where day_on >= $begin_on and day_on < $end_on and gpu_seconds > 0
"""
Say = Callable[[str], None]


@dataclass(frozen=True)
class Asked:
    """What is asked of a report beside its name."""

    period: Period
    snapshot: int | None = None
    team: str | None = None
    """Of its teams only this one."""
    recipients: tuple[str, ...] = ()
    """In place of those of the configuration."""
    again: bool = False
    """Also to those who got it."""


class Planned(NamedTuple):
    """A report to be made, and who gets it."""

    team: str | None
    recipients: tuple[str, ...]


class ReportError(Exception):
    """The report cannot be made; the text says why, `code` is the exit code."""

    def __init__(self, message: str, code: int):
        super().__init__(message)
        self.code = code


def plan_of(config: Config, name: str) -> ReportPlan:
    """The report of that name; ReportError with the nearest where there is none."""
    for plan in config.reports:
        if plan.name == name:
            return plan
    known = [plan.name for plan in config.reports]
    if not known:
        raise ReportError("no report is configured: add reports: and mail:", USAGE)
    raise ReportError(f"{name} is no report of the configuration{nearest(name, known)}", USAGE)


def rested(home: Home, asked: Asked) -> Basis:
    """What the report rests on; ReportError where nothing of the period is published."""
    found = basis(home, asked.period, asked.snapshot)
    if not found.is_published:
        raise ReportError(
            f"nothing of {asked.period} is published in snapshot {found.snapshot.number}: "
            f"gpuledger run --from {asked.period.begin_on} --to {asked.period.last_on}",
            REFUSED,
        )
    return found


def planned(
    config: Config, plan: ReportPlan, found: Basis, asked: Asked, say: Say
) -> list[Planned]:
    """Each report that there is to make; teams that get none are named with the reason."""
    if plan.kind == "platform":
        if asked.team is not None:
            raise ReportError(f"{plan.name} is a report of the platform, it has no teams", USAGE)
        return [Planned(None, asked.recipients or plan.recipients)]
    held = _holders(found)
    contacts = {team.name: team.contacts for team in config.teams}
    known = plan.teams or tuple(sorted({*contacts, *held}))
    if asked.team is not None and asked.team not in known:
        raise ReportError(
            f"{clean(asked.team)} is no team of {plan.name}{nearest(asked.team, known)}", USAGE
        )
    reports = []
    for team in known if asked.team is None else (asked.team,):
        told = asked.recipients or plan.recipients
        if not told:
            given = contacts.get(team, ())
            told = tuple(contact for contact in given if is_address(contact))
            for contact in given:
                if contact not in told:
                    say(f"{clean(team)}: its contact {clean(contact)} is no mail address")
        if not plan.teams and asked.team is None and team not in held:
            say(f"{clean(team)}: held no GPUs in this week nor in the one before: no mail")
            continue
        if not told:
            say(
                f"{clean(team)}: nobody to write to: no mail; add contacts to it under teams:, or "
                f"recipients to the report {plan.name}"
            )
        reports.append(Planned(team, told))
    return reports


def _holders(found: Basis) -> set[str]:
    """The teams that held anything in the period or in the one before."""
    days = {"begin_on": found.period.before.begin_on, "end_on": found.period.end_on}
    with Door(found.home, found.snapshot.number) as door:
        names = {row[0] for row in door.query(TEAMS, days).fetchall()}
    return names - set(RESERVED)


def reports(
    config: Config, home: Home, plan: ReportPlan, asked: Asked, say: Say
) -> list[tuple[Report, tuple[str, ...]]]:
    """The reports themselves, and who gets each."""
    found = rested(home, asked)
    _tell_stale(found, say)
    return [
        (collect(home, found, plan.name, team), recipients)
        for team, recipients in planned(config, plan, found, asked, say)
    ]


def _tell_stale(found: Basis, say: Say) -> None:
    """Say what is stale now: the mail itself says only what was so at its snapshot."""
    with Door(found.home, found.snapshot.number) as door:
        for row in door.stale().iter_rows(named=True):
            say(
                f"note: cluster {clean(row['cluster_name'])} is stale since "
                f"{row['stale_since_at']:%Y-%m-%d %H:%M} UTC: see gpuledger status"
            )


def deliver(
    config: Config,
    home: Home,
    plan: ReportPlan,
    asked: Asked,
    say: Say,
    pause: Callable[[float], None] = time.sleep,
) -> int:
    """Send each mail of the report to those who have not got it yet; the exit code.

    ReportError where it cannot be made; MailError where the mail server's settings are wrong, and
    ServerAway where it does not answer: the mails that went before are noted as sent.
    """
    if config.mail is None:
        raise ReportError("mail: is missing: a report needs a server to go through", USAGE)
    codes = {DONE}
    for report, recipients in reports(config, home, plan, asked, say):
        if not recipients:
            continue
        now = datetime.now(UTC)
        message = mail(report, config.mail.sender, recipients, now)
        entry = sent.Mail(
            plan.name,
            report.period.begin_on,
            report.period.end_on,
            report.team or sent.PLATFORM,
            report.snapshot,
            message["Message-ID"],
        )
        before = sent.claim(home, entry, recipients, now, again=asked.again)
        left = [recipient for recipient in recipients if recipient not in before]
        try:
            found = send(config.mail, message, left, pause)
        except (MailError, ServerAway):
            sent.unsent(home, entry, left)
            raise
        _note(home, entry, found)
        codes |= _told(report, before, found, say)
    return min(codes - {DONE}, default=DONE)


def _note(home: Home, entry: sent.Mail, found: dict[str, Outcome]) -> None:
    """Keep what is known of each: what is uncertain stays claimed, and is not sent again."""
    by_fate: dict[Fate, list[str]] = {}
    for recipient, outcome in found.items():
        by_fate.setdefault(outcome.fate, []).append(recipient)
    sent.sent(home, entry, by_fate.get(Fate.SENT, []))
    sent.unsent(home, entry, [*by_fate.get(Fate.REFUSED, []), *by_fate.get(Fate.UNREACHABLE, [])])


CODES = {
    Fate.SENT: DONE,
    Fate.REFUSED: REFUSED,
    Fate.UNREACHABLE: UNREACHABLE,
    Fate.UNCERTAIN: REFUSED,
}


def _told(
    report: Report, before: dict[str, sent.Noted], found: dict[str, Outcome], say: Say
) -> set[int]:
    """Say what became of a mail for each recipient; the exit codes."""
    codes, of = set(), report.subject
    for recipient, noted in before.items():
        if noted.is_sent:
            say(f"{recipient}: had it already, {noted.at:%Y-%m-%d %H:%M} UTC: {of}")
        else:
            codes.add(REFUSED)
            say(
                f"{recipient}: may have it already: what sent it at {noted.at:%Y-%m-%d %H:%M} UTC "
                f"did not end well; --again sends it once more: {of}"
            )
    for recipient, outcome in found.items():
        codes.add(CODES[outcome.fate])
        why = f" ({outcome.why})" if outcome.why else ""
        hint = "; --again sends it once more" if outcome.fate is Fate.UNCERTAIN else ""
        say(f"{recipient}: {outcome.fate.value}{why}{hint}: {of}, snapshot {report.snapshot}")
    return codes
