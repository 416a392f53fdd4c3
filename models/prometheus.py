"""A Prometheus as a source: where it answers, how it is asked, and where its secrets are kept.

What is asked belongs to `collectors`. No secret stands in the configuration, and no fault of this
part repeats what was written where a secret might stand by mistake.
"""

import re
from typing import Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from models.parts import Beside, Moment, Part
from models.secret import Secret

_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
OWN_HEADERS = {"authorization": "auth", "x-scope-orgid": "tenant"}


class Basic(Part):
    """A name and a password."""

    user: str = Field(min_length=1)
    password: Secret


class Tls(Part):
    """Whose certificates are trusted, and the one that we show."""

    authority: Beside | None = None
    certificate: Beside | None = None
    key: Beside | None = None

    @model_validator(mode="after")
    def _pair(self) -> Self:
        if (self.certificate is None) != (self.key is None):
            raise ValueError("certificate and key are needed together")
        return self


class Auth(Part):
    """How we say who we are."""

    bearer: Secret | None = None
    basic: Basic | None = None
    tls: Tls = Tls()

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.bearer and self.basic:
            raise ValueError("bearer and basic exclude each other")
        return self


class PrometheusSource(Part):
    """A Prometheus, or another that speaks its API; or a folder of its recorded answers."""

    kind: Literal["prometheus"]
    url: str | None = None
    """With the path before /api/v1, if there is one."""
    path: Beside | None = None
    observed_at: Moment | None = None
    """When recorded metrics that carry no time were read."""
    auth: Auth = Auth()
    tenant: str | None = Field(default=None, min_length=1)
    headers: dict[str, str] = Field(default={})
    secret_headers: dict[str, Secret] = Field(default={})
    concurrency: int = Field(default=2, ge=1, le=16)
    timeout_seconds: int = Field(default=120, ge=1, le=3600)
    """Of one query, from the first byte sent to the last one read."""

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if (self.url is None) == (self.path is None):
            raise ValueError("needs url or path, one of the two")
        if self.url is not None and (fault := _url_fault(self.url)):
            raise ValueError(f"url {fault}")
        for name in (*self.headers, *self.secret_headers):
            if not _HEADER.fullmatch(name):
                raise ValueError("headers: one has a name that no header can have")
            if place := OWN_HEADERS.get(name.lower()):
                raise ValueError(f"headers: {name} is set by {place}")
        for name, value in [*self.headers.items(), ("tenant", self.tenant or "")]:
            if not (value.isprintable() and value.isascii()):
                raise ValueError(f"headers: {name} holds signs that no header can hold")
        return self


def _url_fault(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return "is none"
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return "must begin with http:// or https:// and name a host"
    if parts.username is not None or parts.password is not None:
        return "holds a name or a password: they belong to auth.basic"
    if parts.query or parts.fragment:
        return "ends in a query or a fragment: what a query needs belongs to headers or tenant"
    return None
