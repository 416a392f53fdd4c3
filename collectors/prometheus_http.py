"""One question to a Prometheus and its answer's text, or a fault by kind: who we are, patience.

Which questions there are belongs to `prometheus`, what an answer means to `prometheus_answers`.
No text that leaves this module holds a secret.
"""

import base64
import random
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import urlsplit

import orjson
import requests
import urllib3
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase

from collectors.faults import Fault, retry_after
from collectors.prometheus_answers import Broken
from models.prometheus import PrometheusSource
from models.secret import Secret, SecretError

MOST_BYTES = 32 << 20
"""A longer answer is left off and asked for in parts: what keeps memory flat."""
CONNECT_SECONDS = 10.0
MOST_PAUSE_SECONDS = 60.0
TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})
TOO_MUCH = frozenset({413, 422})
_NO_ONE = ("Connection refused", "NameResolution", "Network is unreachable", "No route to host")
Sleep = Callable[[float], None]
T = TypeVar("T")


class TooMuch(Fault):
    """The question is too large; smaller ones may be answered."""


class Transient(Fault):
    """The same question may be answered later."""


@dataclass(frozen=True)
class Patience:
    """How often a question is asked, and how long we pause before it is asked again.

    As it stands about a minute in all: time enough for a server to start again.
    """

    attempts: int = 8
    first_seconds: float = 0.5
    sleep: Sleep = time.sleep

    def pause(self, attempt: int, asked: float | None) -> None:
        """Waits before the next attempt: as long as the server asked, else ever longer."""
        seconds = self.first_seconds * 2**attempt * random.uniform(0.75, 1.25)
        self.sleep(min(max(seconds, asked or 0.0), MOST_PAUSE_SECONDS))


class _Auth(AuthBase):
    """Signs a request; given always, for requests else takes what a .netrc says."""

    def __init__(self, source: PrometheusSource):
        self.source = source
        self.seen: set[str] = set()
        """Each secret sent so far, in the forms in which it was."""

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        auth, headers = self.source.auth, request.headers
        if auth.bearer:
            headers["Authorization"] = f"Bearer {self._read(auth.bearer)}"
        if auth.basic:
            password = auth.basic.password.read()
            pair = base64.b64encode(f"{auth.basic.user}:{password}".encode()).decode()
            self.seen |= {password, pair}
            headers["Authorization"] = f"Basic {pair}"
        for name, secret in self.source.secret_headers.items():
            headers[name] = self._read(secret)
        return request

    def _read(self, secret: Secret) -> str:
        text = secret.read()
        if not text.isascii():
            raise SecretError("a secret for a header holds signs that no header can hold")
        self.seen.add(text)
        return text


@dataclass
class Connection:
    """A way to one server, for one thread at a time."""

    source: PrometheusSource
    patience: Patience = field(default_factory=Patience)

    def __post_init__(self) -> None:
        self.url = (self.source.url or "").rstrip("/")
        self.auth = _Auth(self.source)
        self.session = requests.Session()
        self.session.auth = self.auth
        self.session.headers.update(self.source.headers)
        # Packing costs the server more than a near network saves; `headers` may ask for it.
        if "accept-encoding" not in {name.lower() for name in self.source.headers}:
            self.session.headers["Accept-Encoding"] = "identity"
        if self.source.tenant:
            self.session.headers["X-Scope-OrgID"] = self.source.tenant
        tls = self.source.auth.tls
        if tls.authority:
            self.session.verify = str(tls.authority)
        if tls.certificate and tls.key:
            self.session.cert = (str(tls.certificate), str(tls.key))
        self.session.mount("http://", HTTPAdapter(pool_maxsize=1))
        self.session.mount("https://", HTTPAdapter(pool_maxsize=1))

    def close(self) -> None:
        """Ends its connections."""
        self.session.close()

    def scrubbed(self, text: str) -> str:
        """The text, no secret in it, and not all of a long one."""
        for secret in sorted(self.auth.seen, key=len, reverse=True):
            text = text.replace(secret, "***")
        return " ".join(text.split())[:300]

    def ask(self, path: str, form: Mapping[str, str]) -> bytes:
        """The text of an answer, whole or not at all; one attempt."""
        timeout = float(self.source.timeout_seconds)
        limit = time.monotonic() + timeout
        with self.faults():
            response = self.session.post(
                f"{self.url}{path}",
                data=dict(form),
                timeout=(min(CONNECT_SECONDS, timeout), timeout),
                stream=True,
                verify=self.session.verify,  # else a variable of the environment would win
                allow_redirects=False,  # a form would be dropped on the way
            )
            with response:
                text = _body(response.raw, limit)
        if response.status_code != 200:
            raise self.refused(response, text)
        return text

    @contextmanager
    def faults(self) -> Iterator[None]:
        """Whatever goes wrong on the way, as a fault that names its kind and no secret."""
        try:
            yield
        except SecretError as error:
            raise Fault("secret", str(error)) from None
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
            kind, text = _broken(error)
            # A certificate is as wrong a minute later.
            raise (Fault if kind == "certificate" else Transient)(kind, text) from None

    def refused(self, response: requests.Response, text: bytes) -> Fault:
        """An answer that is none, as the fault that it tells."""
        code = response.status_code
        kind, said = _said(text)
        said = self.scrubbed(f"{code} {said or response.reason or ''}")
        if code in TOO_MUCH or (code == 503 and kind == "timeout"):
            return TooMuch("too_much", said)
        if code in TRANSIENT:
            return Transient(f"http_{code}", said, retry_after(response.headers.get("Retry-After")))
        if 300 <= code < 400:
            host = urlsplit(response.headers.get("Location", "")).netloc
            return Fault("redirected", f"to {host or 'another path'}: give that address as url")
        if code in (401, 403):
            return Fault("forbidden", said)
        return Fault(f"http_{code}", said)

    def patiently(self, ask: Callable[[], T], attempts: int | None = None) -> T:
        """What `ask` gives, asked again as long as patience allows; it may raise Broken."""
        most = attempts or self.patience.attempts
        for attempt in range(most):
            try:
                try:
                    return ask()
                except Broken as error:
                    raise Transient("broken_answer", self.scrubbed(str(error))) from None
            except Transient as fault:
                if attempt + 1 == most:
                    raise
                self.patience.pause(attempt, fault.after)
        raise AssertionError("patience allows no attempt")


def _body(raw: urllib3.BaseHTTPResponse, limit: float) -> bytes:
    """All of a body as it comes: a trickle ends at the limit, a flood at MOST_BYTES."""
    parts, size = [], 0
    while part := raw.read1(1 << 18, decode_content=True):
        parts.append(part)
        size += len(part)
        if size > MOST_BYTES:
            raise TooMuch("too_long", f"more than {MOST_BYTES >> 20} MiB")
        if time.monotonic() > limit:
            raise Transient("stalled", f"not done in time, {size} bytes had come")
    return b"".join(parts)


def _said(text: bytes) -> tuple[str, str]:
    """The kind and the words of an error."""
    try:
        told = orjson.loads(text)
        return str(told.get("errorType", "")), str(told.get("error", ""))
    except (orjson.JSONDecodeError, AttributeError):
        return "", text[:300].decode("utf-8", "replace")


def _broken(error: Exception) -> tuple[str, str]:
    """The kind of a broken connection, and of its text what is the same each time."""
    text, name = str(error), type(error).__name__
    told = re.search(r"\[Errno -?\d+\][^'\")]*", text)
    said = told.group() if told else name
    if isinstance(error, requests.exceptions.SSLError):
        return "certificate", said
    # Then no one listens, and all other questions would end alike.
    if isinstance(error, requests.ConnectTimeout) or any(word in text for word in _NO_ONE):
        return "unreachable", said
    if isinstance(error, requests.Timeout) or "timed out" in text:
        return "stalled", "nothing came in time"
    return "connection_broken", said
