"""A report as a mail: nobody adds a header or a tag to it, and it is the same bytes each time.

Whether its figures are right is tested in test_report_figures.py.
"""

import re
from datetime import UTC, datetime, timedelta
from email import message_from_bytes, policy
from email.message import EmailMessage
from html.parser import HTMLParser

import pytest

from lake.home import Home
from pipelines.report import SAYING, Report, clean
from pipelines.report_basis import basis
from pipelines.report_figures import collect
from pipelines.report_html import html
from pipelines.report_mail import mail
from pipelines.report_text import text
from tests.report_data import (
    DAYS,
    HOSTILE_JOB,
    HOSTILE_TEAM,
    WEEK,
    episode,
    finding,
    known,
    publish,
    use,
)

NOW = datetime(2026, 11, 30, 6, tzinfo=UTC)
SENDER = "Ledger für GPUs <ledger@example.com>"
TO = ("lead@example.com", "boss@example.com")


class Seen(HTMLParser):
    """What a reader's program makes of the HTML."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.words: list[str] = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Home:
    home = Home(tmp_path_factory.mktemp("home"))
    begin = WEEK.begin + timedelta(days=1)
    frames = [
        *(known(day) for day in DAYS),
        *(use(day, HOSTILE_TEAM, held=24, idle=24) for day in DAYS),
        episode(begin, begin + timedelta(hours=9), HOSTILE_TEAM, HOSTILE_JOB),
        finding(DAYS[-1], "over_sized", HOSTILE_TEAM, 3, workload_name=HOSTILE_JOB),
    ]
    publish(home, frames)
    return home


@pytest.fixture(scope="module", params=[None, HOSTILE_TEAM], ids=["platform", "team"])
def report(request, home) -> Report:
    return collect(home, basis(home, WEEK), "weekly", request.param)


def received(report: Report, now: datetime = NOW) -> EmailMessage:
    raw = mail(report, SENDER, TO, now).as_bytes()
    return message_from_bytes(raw, policy=policy.default)  # type: ignore[return-value]


def test_a_mail_says_who_to_whom_when_and_that_no_person_wrote_it(report):
    found = received(report)
    assert found["From"] == SENDER
    assert found["To"] == ", ".join(TO)
    assert found["Date"].datetime == NOW
    assert re.fullmatch(r"<[^@\s]+@example\.com>", found["Message-ID"])
    assert found["Auto-Submitted"] == "auto-generated"
    assert f"(snapshot {report.snapshot})" in found["Subject"]


def test_a_name_adds_no_header_and_no_line(report):
    found = received(report)
    assert found["Bcc"] is None
    assert [len(found.get_all(name, ())) for name in ("To", "Subject")] == [1, 1]
    assert not found.defects
    plain = next(found.iter_parts()).get_content()
    assert not re.search(r"^\s*Bcc:", plain, re.MULTILINE)
    assert not re.search(r"^! Cluster", plain, re.MULTILINE), "no name passes for a warning"


def test_both_parts_are_the_report_and_the_text_comes_first(report):
    found = received(report)
    assert found.get_content_type() == "multipart/alternative"
    plain, rich = found.iter_parts()
    assert plain.get_content().replace("\r\n", "\n") == text(report)
    assert rich.get_content().replace("\r\n", "\n") == html(report)


def test_every_byte_is_one_that_an_old_server_takes(report):
    raw = mail(report, SENDER, TO, NOW).as_bytes()
    assert raw.isascii()
    assert max(map(len, raw.split(b"\r\n"))) <= 998
    assert b"\n" not in raw.replace(b"\r\n", b"")


def test_the_same_report_gives_the_same_bytes_but_for_date_and_message_id(report):
    def kept(now: datetime) -> list[bytes]:
        lines = mail(report, SENDER, TO, now).as_bytes().split(b"\r\n")
        return [line for line in lines if not line.startswith((b"Date:", b"Message-ID:"))]

    assert kept(NOW) == kept(NOW + timedelta(days=400))


def test_a_name_is_text_in_the_html_and_nothing_else(report):
    found = Seen(html(report))
    assert "script" not in found.tags and "b" not in found.tags
    assert any("<script>alert(1)</script>" in word for word in found.words)


def test_the_html_fetches_nothing_and_leads_nowhere(report):
    found = Seen(html(report))
    assert not found.tags & {"a", "base", "form", "iframe", "img", "link", "script", "style"}
    assert not {name for name, _ in found.attributes} & {"background", "href", "src", "srcset"}
    assert "url(" not in html(report) and "@import" not in html(report)


def test_text_and_html_hold_the_same_words(report):
    heard = " ".join(" ".join(Seen(html(report)).words).split())
    for figure in report.figures:
        for part in (figure.name, figure.shown, figure.note, figure.before):
            assert part in heard and part in " ".join(text(report).split())
    for table in report.tables:
        for cell in (cell for line in table.rows for cell in line):
            for part in filter(None, (cell.main, cell.small)):
                said = " ".join(part.split())
                assert said in heard and said in " ".join(text(report).split())
    for said in (*report.notes, *report.warnings):
        assert said in heard and said in " ".join(text(report).split())


def test_a_mail_names_its_snapshot_and_says_what_idle_money_is_not(report):
    for part in (text(report), html(report)):
        assert f"Snapshot {report.snapshot}, known until 2026-11-30 00:00 Europe/Berlin" in part
        assert SAYING in part


def test_a_name_is_cut_short_and_shows_all_its_letters():
    assert clean("a" * 99) == "a" * 59 + "…"
    assert clean("safe‮gpj.exe\u200b") == "safe�gpj.exe�"
    assert clean(None) == ""
