"""Which mails were sent: to whom, of which period, naming which snapshot; each at most once.

It lies beside the lake, in a file of its own: noting a mail must neither wait for a run nor be
undone by one. What a mail holds belongs to `pipelines`.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import date, datetime

from lake.home import Home

TABLE = """
create table if not exists mails (
    report_name text not null,
    begin_on text not null,
    end_on text not null,
    team_name text not null,
    recipient_text text not null,
    snapshot_number integer not null,
    message_id text not null,
    noted_at text not null,
    is_sent integer not null,
    primary key (report_name, begin_on, end_on, team_name, recipient_text)
)
"""
TIMEOUT_SECONDS = 60
PLATFORM = ""


@dataclass(frozen=True)
class Mail:
    """What one mail is of; `team` is empty for the platform's."""

    report: str
    begin_on: date
    end_on: date
    team: str
    snapshot: int
    message_id: str


@dataclass(frozen=True)
class Noted:
    """That a mail went to somebody before: surely, or perhaps (its process ended meanwhile)."""

    at: datetime
    is_sent: bool


def claim(
    home: Home, mail: Mail, recipients: Iterable[str], now: datetime, *, again: bool = False
) -> dict[str, Noted]:
    """Note that the mail is about to be sent; whom it was sent to before, who must not get it.

    Noted before the sending, so that a process that is killed in between does not send it twice.
    `again` forgets what was sent before.
    """
    found = {}
    with _opened(home) as con:
        for recipient in recipients:
            key = _key(mail, recipient)
            if again:
                con.execute(f"delete from mails where {KEYED}", key)
            row = con.execute(f"select noted_at, is_sent from mails where {KEYED}", key).fetchone()
            if row is not None:
                found[recipient] = Noted(datetime.fromisoformat(row[0]), bool(row[1]))
                continue
            con.execute(
                "insert into mails values (?, ?, ?, ?, ?, ?, ?, ?, 0)",
                (*key, mail.snapshot, mail.message_id, now.isoformat()),
            )
    return found


def sent(home: Home, mail: Mail, recipients: Iterable[str]) -> None:
    """Note that the server took the mail for these."""
    with _opened(home) as con:
        for recipient in recipients:
            con.execute(f"update mails set is_sent = 1 where {KEYED}", _key(mail, recipient))


def unsent(home: Home, mail: Mail, recipients: Iterable[str]) -> None:
    """Note that the server surely did not take it for these: it may be tried again."""
    with _opened(home) as con:
        for recipient in recipients:
            con.execute(f"delete from mails where {KEYED}", _key(mail, recipient))


def named_snapshots(home: Home) -> frozenset[int]:
    """The snapshots that a mail names: they are kept, so that it can be printed again."""
    if not home.mails.exists():
        return frozenset()
    with _opened(home) as con:
        rows = con.execute("select distinct snapshot_number from mails").fetchall()
    return frozenset(number for (number,) in rows)


KEYED = "report_name = ? and begin_on = ? and end_on = ? and team_name = ? and recipient_text = ?"


def _key(mail: Mail, recipient: str) -> tuple[str, ...]:
    begin, end = mail.begin_on.isoformat(), mail.end_on.isoformat()
    return mail.report, begin, end, mail.team, recipient.lower()


@contextmanager
def _opened(home: Home) -> Iterator[sqlite3.Connection]:
    """The file, in one transaction that nobody else writes in."""
    home.mails.parent.mkdir(parents=True, exist_ok=True)
    con = sqlite3.connect(home.mails, timeout=TIMEOUT_SECONDS, isolation_level=None)
    with closing(con):
        con.execute("begin immediate")
        try:
            con.execute(TABLE)
            yield con
            con.execute("commit")
        except BaseException:
            con.execute("rollback")
            raise
