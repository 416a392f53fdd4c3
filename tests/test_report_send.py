"""Mails handed to a real SMTP server: encrypted, logged in, refused, put off, and once each.

What they say is tested in test_report_figures.py and test_report_mail.py.
"""

import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from lake.home import Home
from lake.maintain import maintain
from lake.sent import named_snapshots
from pipelines import report_send
from pipelines.cli import app
from tests.mail_server import (
    BROKEN,
    GONE,
    LATER,
    PASSWORD,
    USER,
    Box,
    certificate,
    controller,
    free_port,
)
from tests.report_data import DAYS, WEEK, known, publish, use, usual

TO = ("--to", str(WEEK.last_on))
CONFIG = """
lake: {{accounting_zone: Europe/Berlin, currency: EUR}}
teams:
  - {{name: vision, contacts: ["lead@example.com", "#vision on chat"]}}
  - {{name: robotics}}
  - {{name: archive, contacts: [archive@example.com]}}
mail:
  {mail}
  sender: "GPU ledger <ledger@example.com>"
reports:
  - {{name: teams, kind: team}}
  - {{name: platform, kind: platform, recipients: [{recipients}]}}
"""

# The server does not see that a connection which is TLS from the start needs no STARTTLS.
pytestmark = pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("tls")


@pytest.fixture(scope="module")
def context(folder, require):
    return certificate(folder, require)


@pytest.fixture(scope="module")
def lake(tmp_path_factory) -> Home:
    home = Home(tmp_path_factory.mktemp("home"))
    publish(home, usual())
    return home


@pytest.fixture
def home(lake) -> Iterator[Home]:
    """The lake, to which no mail has been noted."""
    lake.mails.unlink(missing_ok=True)
    yield lake


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    monkeypatch.setattr(report_send, "FIRST_PAUSE_SECONDS", 0.0)


@pytest.fixture(params=["starttls", "tls"])
def secure(request) -> str:
    return request.param


@pytest.fixture
def box() -> Box:
    return Box()


class Post:
    """A server, the configuration that goes through it, and the command."""

    def __init__(self, tmp_path: Path, folder: Path, home: Home):
        self.path, self.folder, self.home = tmp_path / "gpuledger.yaml", folder, home
        self.password = PASSWORD

    def configured(self, port: int, security: str, *recipients: str, more: str = "") -> None:
        mail = f"{{host: localhost, port: {port}, security: {security}, timeout_seconds: 5{more}}}"
        mail = "\n  ".join(part.strip() for part in mail.strip("{}").split(","))
        if security != "none":
            mail += f"\n  authority: {self.folder / 'ca.pem'}\n  user: {USER}"
            mail += "\n  password: {env: MAIL_PASSWORD}"
        self.path.write_text(CONFIG.format(mail=mail, recipients=", ".join(recipients)))

    def call(self, *words: str) -> Result:
        environment = {"GPULEDGER_HOME": str(self.home.path), "MAIL_PASSWORD": self.password}
        given = ["report", *words, "--config", str(self.path)]
        return CliRunner().invoke(app, given, env=environment)


@pytest.fixture
def post(tmp_path, folder, home) -> Post:
    return Post(tmp_path, folder, home)


@pytest.fixture
def started(context, box):
    """Starts a server of some security; its port."""
    running = []

    def start(security: str) -> int:
        server = controller(box, context, security)
        server.start()
        running.append(server)
        return server.port

    yield start
    for server in running:
        server.stop()


def test_a_report_arrives_encrypted_and_logged_in(post, started, box, secure):
    post.configured(started(secure), secure, "boss@example.com")
    answer = post.call("platform", *TO)
    assert answer.exit_code == 0, answer.output
    [mail] = box.mails
    assert mail["To"] == "boss@example.com"
    assert mail["From"] == "GPU ledger <ledger@example.com>"
    assert "2026-11-23 to 2026-11-29" in mail["Subject"]
    assert "EUR 2,240" in mail.get_body(("plain",)).get_content()
    assert "EUR 2,240" in mail.get_body(("html",)).get_content()


def test_each_team_s_contacts_get_their_own_and_the_others_are_named(post, started, box):
    post.configured(started("none"), "none", "boss@example.com")
    answer = post.call("teams", *TO)
    assert answer.exit_code == 0, answer.output
    assert box.receivers == [["lead@example.com"]]
    assert "robotics" not in box.taken[0][1].decode()
    assert "robotics: nobody to write to" in answer.output
    assert "archive: held no GPUs" in answer.output
    assert "#vision on chat is no mail address" in answer.output


def test_a_mail_is_sent_once_unless_it_is_asked_for_again(post, started, box):
    post.configured(started("none"), "none", "boss@example.com")
    assert post.call("platform", *TO).exit_code == 0
    second = post.call("platform", *TO)
    assert (second.exit_code, len(box.taken)) == (0, 1)
    assert "had it already" in second.output
    assert post.call("platform", *TO, "--again").exit_code == 0
    assert len(box.taken) == 2
    assert box.mails[0]["Message-ID"] != box.mails[1]["Message-ID"]


def test_a_new_recipient_gets_it_alone(post, started, box):
    port = started("none")
    post.configured(port, "none", "boss@example.com")
    assert post.call("platform", *TO).exit_code == 0
    post.configured(port, "none", "boss@example.com", "new@example.com")
    assert post.call("platform", *TO).exit_code == 0
    assert box.receivers == [["boss@example.com"], ["new@example.com"]]


def test_one_who_is_refused_is_named_and_the_others_get_it(post, started, box):
    post.configured(started("none"), "none", GONE, "boss@example.com")
    answer = post.call("platform", *TO)
    assert answer.exit_code == 1
    assert f"{GONE}: refused (550 no such mailbox)" in answer.output
    assert box.receivers == [["boss@example.com"]]
    assert post.call("platform", *TO).exit_code == 1
    assert len(box.taken) == 1, "who has it does not get it again"


def test_one_who_is_put_off_gets_it_at_the_next_try(post, started, box):
    post.configured(started("none"), "none", LATER, "boss@example.com")
    answer = post.call("platform", *TO)
    assert answer.exit_code == 0, answer.output
    assert box.receivers == [["boss@example.com"], [LATER]]


def test_one_who_is_put_off_every_time_is_not_noted_as_sent(post, started, box):
    box.put_off = report_send.TRIES
    post.configured(started("none"), "none", LATER)
    answer = post.call("platform", *TO)
    assert (answer.exit_code, box.taken) == (3, [])
    assert "451 greylisted" in answer.output
    assert post.call("platform", *TO).exit_code == 0
    assert box.receivers == [[LATER]]


def test_a_break_after_the_mail_was_handed_over_is_not_tried_again(post, started, box):
    post.configured(started("none"), "none", BROKEN)
    answer = post.call("platform", *TO)
    assert (answer.exit_code, len(box.taken)) == (1, 1)
    assert f"{BROKEN}: perhaps sent" in answer.output
    second = post.call("platform", *TO)
    assert (second.exit_code, len(box.taken)) == (1, 1)
    assert "--again" in second.output
    post.call("platform", *TO, "--again")
    assert len(box.taken) == 2


@pytest.mark.parametrize("password", ["hunter2", "hunt\u00f6ng", ""])
def test_a_wrong_password_is_a_fault_of_the_configuration_and_not_told(
    post, started, box, secure, password
):
    post.configured(started(secure), secure, "boss@example.com")
    post.password = password
    answer = post.call("platform", *TO)
    assert (answer.exit_code, box.taken) == (2, [])
    assert "mail" in answer.output
    assert not password or password not in answer.output
    post.password = PASSWORD
    assert post.call("platform", *TO).exit_code == 0, "what was not sent can be sent"


def test_a_server_that_is_not_there_is_unreachable(post):
    post.configured(free_port(), "none", "boss@example.com")
    answer = post.call("platform", *TO)
    assert answer.exit_code == 3
    assert "Connection refused" in answer.output


def test_a_certificate_that_nobody_vouches_for_is_refused(post, started, box, secure):
    post.configured(started(secure), secure, "boss@example.com")
    told = post.path.read_text().splitlines(keepends=True)
    post.path.write_text("".join(line for line in told if "authority" not in line))
    answer = post.call("platform", *TO)
    assert (answer.exit_code, box.taken) == (2, [])
    assert "mail.authority" in answer.output


def test_a_server_without_starttls_gets_no_password(post, started, box):
    post.configured(started("none"), "starttls", "boss@example.com")
    answer = post.call("platform", *TO)
    assert (answer.exit_code, box.taken) == (2, [])
    assert "STARTTLS" in answer.output


def test_an_address_told_gets_the_report_in_place_of_the_configured(post, started, box):
    post.configured(started("none"), "none", "boss@example.com")
    answer = post.call("teams", *TO, "--team", "robotics", "--recipient", "me@example.com")
    assert answer.exit_code == 0, answer.output
    assert box.receivers == [["me@example.com"]]


def test_a_week_of_which_nothing_is_published_is_not_sent(post, started, box):
    post.configured(started("none"), "none", "boss@example.com")
    answer = post.call("platform", "--to", "2026-12-20")
    assert (answer.exit_code, box.taken) == (1, [])
    assert "gpuledger run --from 2026-12-14" in answer.output


def test_the_snapshot_that_a_mail_names_outlives_maintenance(tmp_path, folder, started, box):
    home = Home(tmp_path / "home")
    first = publish(home, [*(known(day) for day in DAYS), use(DAYS[-1], "vision", held=1)])
    post = Post(tmp_path, folder, home)
    post.configured(started("none"), "none", "boss@example.com")
    assert post.call("platform", *TO).exit_code == 0
    second, third = (publish(home, [known(day) for day in DAYS]) for _ in range(2))
    assert named_snapshots(home) == {first}
    with sqlite3.connect(home.catalog) as con:  # as if all of it had been a week ago
        con.execute("update ducklake_snapshot set snapshot_time = '2020-01-01 00:00:00+00'")
    con.close()
    maintain(home)
    words = ("platform", *TO, "--dry-run", "--snapshot")
    assert post.call(*words, str(first)).exit_code == 0
    assert post.call(*words, str(third)).exit_code == 0
    assert post.call(*words, str(second)).exit_code == 2


def test_the_date_of_a_mail_is_when_it_was_sent(post, started, box):
    post.configured(started("none"), "none", "boss@example.com")
    before = datetime.now(UTC).replace(microsecond=0)
    assert post.call("platform", *TO).exit_code == 0
    [mail] = box.mails
    assert before <= mail["Date"].datetime <= datetime.now(UTC)
