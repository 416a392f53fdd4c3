"""A real SMTP server on loopback, with TLS and a login, that may refuse, delay or break off.

What is sent to it belongs to the tests.
"""

import shutil
import socket
import ssl
import subprocess
from collections.abc import Callable
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword

USER, PASSWORD = "gpuledger", "correct horse 'battery'"
GONE, LATER, BROKEN = "gone@example.com", "later@example.com", "broken@example.com"


def certificate(folder: Path, require: Callable[[str, str | None, str], str]) -> ssl.SSLContext:
    """A server's context with a certificate for localhost, whose authority is in ca.pem."""
    tool = require("openssl", shutil.which("openssl"), "install Debian's package openssl")

    def run(*words: str) -> None:
        subprocess.run([tool, *words], cwd=folder, check=True, capture_output=True)

    new = ("req", "-newkey", "rsa:2048", "-nodes")
    run(*new, "-x509", "-days", "2", "-subj", "/CN=ours", "-keyout", "ca.key", "-out", "ca.pem")
    run(*new, "-subj", "/CN=localhost", "-keyout", "server.key", "-out", "server.csr")
    (folder / "names").write_text("subjectAltName=DNS:localhost\n")
    sign = ("x509", "-req", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2")
    run(*sign, "-extfile", "names", "-in", "server.csr", "-out", "server.pem")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "server.pem", folder / "server.key")
    return context


class Box:
    """What the server took, and how it answers."""

    def __init__(self) -> None:
        self.taken: list[tuple[list[str], bytes]] = []
        self.asked: list[str] = []
        self.put_off = 1
        """How often LATER is told to come back."""

    async def handle_RCPT(
        self, server: Any, session: Any, envelope: Any, address: str, options: list[str]
    ) -> str:
        self.asked.append(address)
        if address == GONE:
            return "550 no such mailbox"
        if address == LATER and self.put_off > 0:
            self.put_off -= 1
            return "451 greylisted, come back"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        self.taken.append((envelope.rcpt_tos, envelope.content))
        if BROKEN in envelope.rcpt_tos:
            server.transport.abort()
        return "250 OK"

    @property
    def mails(self) -> list[EmailMessage]:
        return [message_from_bytes(raw, policy=policy.default) for _, raw in self.taken]  # type: ignore[misc]

    @property
    def receivers(self) -> list[list[str]]:
        return [receivers for receivers, _ in self.taken]


def login(server: Any, session: Any, envelope: Any, mechanism: str, given: Any) -> AuthResult:
    is_right = isinstance(given, LoginPassword) and (given.login, given.password) == (
        USER.encode(),
        PASSWORD.encode(),
    )
    # As careless as a server can be: it repeats what it was given.
    answer = None if is_right else f"535 not with {getattr(given, 'password', b'').decode()}"
    return AuthResult(success=is_right, handled=False, message=answer)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def controller(box: Box, context: ssl.SSLContext | None, security: str = "starttls") -> Controller:
    """A server that is not started yet; with TLS nobody gets in without a login."""
    told: dict[str, Any] = {}
    if security == "starttls":
        told = {"tls_context": context, "require_starttls": True}
    elif security == "tls":
        told = {"ssl_context": context, "auth_require_tls": False}
    if security != "none":
        told |= {"authenticator": login, "auth_required": True}
    return Controller(box, hostname="127.0.0.1", port=free_port(), **told)
