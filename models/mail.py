"""The mail server and the reports that go through it: what the configuration may say of them.

What a report holds and how it is sent belongs to `pipelines`; whose contacts there are, to `rules`.
"""

import re
from collections.abc import Sequence
from email.utils import parseaddr
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from models.config_errors import nearest
from models.parts import Beside, Part
from models.secret import Secret

# Of an address only what every server takes; what is quoted or a comment never comes from a person.
_ADDRESS = re.compile(
    r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252}[A-Za-z0-9])?"
)
_AT = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])")
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
PORTS = {"starttls": 587, "tls": 465, "none": 25}


def is_address(text: str) -> bool:
    """Whether a mail can be sent to it; a contact may also be a channel or a name."""
    return _ADDRESS.fullmatch(text) is not None


def _address(text: str) -> str:
    if not is_address(text):
        raise ValueError("is no mail address")
    return text


Address = Annotated[str, AfterValidator(_address)]


def _or_list(word: str) -> BeforeValidator:
    """A list of some, or the word for all of them, which is kept as an empty list."""

    def read(given: object) -> object:
        if given == word:
            return ()
        if not isinstance(given, list | tuple) or not given:
            raise ValueError(f"is neither {word} nor a list of some")
        return given

    return BeforeValidator(read)


class MailServer(Part):
    """The server that takes our mails, and in whose name they are sent."""

    host: str = Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9.:-]*[A-Za-z0-9])?$")
    port: int | None = Field(default=None, ge=1, le=65535)
    """Else the usual one of its security."""
    security: Literal["starttls", "tls", "none"] = "starttls"
    authority: Beside | None = None
    """The certificates to trust, where the machine's own do not hold the server's."""
    user: str | None = Field(default=None, min_length=1)
    password: Secret | None = None
    sender: str
    timeout_seconds: int = Field(default=30, ge=1, le=600)
    """Of each step of the conversation."""

    @field_validator("sender")
    @classmethod
    def _one_sender(cls, text: str) -> str:
        if not text.isprintable() or not is_address(parseaddr(text)[1]):
            raise ValueError("is no mail address, alone or as Name <address>")
        return text

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if (self.user is None) != (self.password is None):
            raise ValueError("user and password are needed together")
        if self.user is not None and self.security == "none":
            raise ValueError("a password needs security: starttls or tls")
        if self.user is not None and not (self.user.isascii() and self.user.isprintable()):
            raise ValueError("user holds signs that no login can hold")
        return self

    @property
    def at(self) -> tuple[str, int]:
        """Where it listens."""
        return self.host, self.port or PORTS[self.security]


class ReportPlan(Part):
    """A report: of what, to whom, and when."""

    name: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]*$")
    kind: Literal["team", "platform"]
    teams: Annotated[tuple[str, ...], _or_list("all")] = ()
    """None named: all of them."""
    recipients: Annotated[tuple[Address, ...], _or_list("contacts")] = ()
    """Addresses that get each mail of this report; none: the contacts of its team."""
    every: Literal["weekly"] = "weekly"
    day: Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"] = (
        Field(default="monday", alias="on")
    )
    at: str = "07:00"

    @field_validator("at", mode="before")
    @classmethod
    def _clock(cls, text: object) -> object:
        if not isinstance(text, str) or not _AT.fullmatch(text):
            raise ValueError('is no time of day: write it in quotes, such as "07:00"')
        return text

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if self.kind == "platform" and not self.recipients:
            raise ValueError("a report of the platform needs recipients: a list of addresses")
        if self.kind == "platform" and self.teams:
            raise ValueError("a report of the platform is not by team: take teams away")
        return self

    @property
    def cron(self) -> str:
        """Its times, as cron tells them."""
        hour, minute = (int(part) for part in self.at.split(":"))
        return f"{minute} {hour} * * {(DAYS.index(self.day) + 1) % 7}"

    @property
    def identifier(self) -> str:
        """Its name where only letters, digits and '_' may stand."""
        return "report_" + self.name.replace("-", "_").lower()


def report_faults(
    reports: Sequence[ReportPlan], server: MailServer | None, teams: Sequence[str]
) -> list[str]:
    """What is wrong between the reports, the mail server and the teams."""
    faults, firsts = [], {}
    if reports and server is None:
        faults.append("mail: is missing: reports need a server to go through")
    for place, plan in enumerate(reports):
        key = f"reports[{place}]"
        first = firsts.setdefault(plan.identifier, place)
        if first != place:
            faults.append(f"{key}.name: {plan.name} is there already, as reports[{first}]")
        faults += [
            f"{key}.teams: {name} is no team{nearest(name, teams)}"
            for name in plan.teams
            if name not in teams
        ]
    return faults
