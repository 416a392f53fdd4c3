"""Handing a mail to a mail server: who got it, who was refused, and what may be tried again.

What a mail holds belongs to `report_mail`, which mails there are to `report_deliver`. A password
is read when it is needed; no message here repeats it, nor what a server answers to it.
"""

import smtplib
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import parseaddr
from enum import Enum
from typing import NamedTuple

from models.mail import MailServer
from models.secret import SecretError
from pipelines.report import clean

TRIES = 3
FIRST_PAUSE_SECONDS = 5.0
MOST_OF_AN_ANSWER = 200


class MailError(Exception):
    """The configuration of the mail server is wrong; the text says what to mend."""


class ServerAway(Exception):
    """No conversation with the mail server came about, at any try; the text says why."""


class Fate(Enum):
    """What became of a mail for one recipient."""

    SENT = "sent"
    REFUSED = "refused"
    """By the server, for good."""
    UNREACHABLE = "not sent"
    """The server was not there, or asked to come again later, every time."""
    UNCERTAIN = "perhaps sent"
    """The connection broke once the mail was on its way, before the server said it took it."""


class Outcome(NamedTuple):
    """A recipient's fate, and the server's words or the error."""

    fate: Fate
    why: str = ""


class _Later(Exception):
    """What went wrong may go right the next time; nothing was handed over."""


def send(
    server: MailServer,
    message: EmailMessage,
    recipients: Sequence[str],
    pause: Callable[[float], None] = time.sleep,
) -> dict[str, Outcome]:
    """Hand the mail over for each recipient; tried again where it is sure not to be sent yet.

    MailError where the configuration has to be mended first, ServerAway where nobody answers.
    """
    found: dict[str, Outcome] = {}
    has_spoken = False
    for tried in range(TRIES):
        left = [r for r in recipients if r not in found or found[r].fate is Fate.UNREACHABLE]
        if not left:
            break
        if tried:
            pause(FIRST_PAUSE_SECONDS * 2 ** (tried - 1))
        try:
            with _connected(server) as smtp:
                has_spoken = True
                found |= _handed_over(smtp, server, message, left)
        except _Later as error:
            found |= {recipient: Outcome(Fate.UNREACHABLE, str(error)) for recipient in left}
            if not has_spoken and tried == TRIES - 1:
                raise ServerAway(str(error)) from None
    return found


@contextmanager
def _connected(server: MailServer) -> Iterator[smtplib.SMTP]:
    """A connection, encrypted and logged in as the configuration says."""
    host, port = server.at
    smtp = None
    try:
        if server.security == "tls":
            trusted = _trusted(server)
            smtp = smtplib.SMTP_SSL(host, port, timeout=server.timeout_seconds, context=trusted)
        else:
            smtp = smtplib.SMTP(host, port, timeout=server.timeout_seconds)
        if server.security == "starttls":
            _encrypt(smtp, server)
        _log_in(smtp, server)
    except ssl.SSLCertVerificationError as error:
        _close(smtp)
        raise MailError(
            f"mail server {host}:{port}: its certificate is not trusted: {error.verify_message}: "
            "correct mail.host, or name the certificates to trust in mail.authority"
        ) from None
    except ssl.SSLError as error:
        _close(smtp)
        raise MailError(
            f"mail server {host}:{port}: no TLS there ({error.reason or 'broken off'}): "
            "correct mail.port or mail.security"
        ) from None
    except (OSError, smtplib.SMTPException) as error:
        _close(smtp)
        raise _Later(f"mail server {host}:{port}: {_worded(error)}") from None
    except BaseException:
        _close(smtp)
        raise
    try:
        yield smtp
    finally:
        with suppress(OSError, smtplib.SMTPException):
            smtp.quit()
        _close(smtp)


def _close(smtp: smtplib.SMTP | None) -> None:
    if smtp is not None:
        smtp.close()


def _trusted(server: MailServer) -> ssl.SSLContext:
    """The machine's own certificates, and those of mail.authority."""
    context = ssl.create_default_context()
    if server.authority is not None:
        try:
            context.load_verify_locations(server.authority)
        except (OSError, ssl.SSLError) as error:
            why = getattr(error, "strerror", None) or "no certificates in it"
            raise MailError(f"mail.authority: {server.authority}: {why}") from None
    return context


def _encrypt(smtp: smtplib.SMTP, server: MailServer) -> None:
    try:
        smtp.starttls(context=_trusted(server))
    except smtplib.SMTPNotSupportedError:
        raise MailError(
            f"mail server {server.host} does not offer STARTTLS: correct mail.port or mail.security"
        ) from None


def _log_in(smtp: smtplib.SMTP, server: MailServer) -> None:
    """Log in where a user is told; the server's answer to a password is not repeated."""
    if server.user is None or server.password is None:
        return
    try:
        password = server.password.read()
    except SecretError as error:
        raise MailError(f"mail.password: {error}") from None
    if not password.isascii():  # smtplib's own error would hold it
        raise MailError("mail.password: it holds signs that no login can hold")
    try:
        smtp.login(server.user, password)
    except smtplib.SMTPAuthenticationError as error:
        if 400 <= error.smtp_code < 500:
            raise _Later(
                f"mail server {server.host}: no login for now ({error.smtp_code})"
            ) from None
        raise MailError(
            f"mail server {server.host} refuses the login ({error.smtp_code}): "
            "correct mail.user and mail.password"
        ) from None
    except smtplib.SMTPServerDisconnected:
        raise
    except smtplib.SMTPException:
        raise MailError(
            f"mail server {server.host} offers no login that we know: take mail.user away, or "
            "correct mail.port"
        ) from None


def _handed_over(
    smtp: smtplib.SMTP, server: MailServer, message: EmailMessage, recipients: Sequence[str]
) -> dict[str, Outcome]:
    """One conversation. Whatever breaks it before the mail itself is sent, may be tried again."""
    found: dict[str, Outcome] = {}
    try:
        smtp.ehlo_or_helo_if_needed()
        code, answer = smtp.mail(parseaddr(server.sender)[1])
        if code != 250:
            return dict.fromkeys(recipients, _refusal(code, answer))
        for recipient in recipients:
            code, answer = smtp.rcpt(recipient)
            found[recipient] = Outcome(Fate.SENT) if code in (250, 251) else _refusal(code, answer)
    except (OSError, smtplib.SMTPException) as error:
        raise _Later(f"mail server {server.host}: {_worded(error)}") from None
    taken = [recipient for recipient in recipients if found[recipient].fate is Fate.SENT]
    if taken:
        found |= dict.fromkeys(taken, _data(smtp, message))
    return found


def _data(smtp: smtplib.SMTP, message: EmailMessage) -> Outcome:
    """Send the mail itself; once it is on its way, a break leaves it open whether it arrived."""
    try:
        code, answer = smtp.data(message.as_bytes(policy=SMTP))
    except smtplib.SMTPDataError as error:  # the server would not even hear it
        code, answer = error.smtp_code, error.smtp_error
    except (OSError, smtplib.SMTPException) as error:
        return Outcome(Fate.UNCERTAIN, _worded(error))
    return Outcome(Fate.SENT) if code == 250 else _refusal(code, answer)


def _refusal(code: int, answer: bytes | str) -> Outcome:
    text = answer.decode("utf-8", "replace") if isinstance(answer, bytes) else answer
    fate = Fate.UNREACHABLE if 400 <= code < 500 else Fate.REFUSED
    return Outcome(fate, f"{code} {clean(' '.join(text.split()), MOST_OF_AN_ANSWER)}")


def _worded(error: Exception) -> str:
    """An error of the network or of the conversation, in a line."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, smtplib.SMTPResponseException):
        return _refusal(error.smtp_code, error.smtp_error).why
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return clean(str(error), MOST_OF_AN_ANSWER) or type(error).__name__
