"""What a report is: its period, its figures and tables as they are read, ready for text and HTML.

Which figures there are belongs to `report_figures` and `report_tables`, how they are laid out to
`report_text` and `report_html`. Every text in it may hold names from clusters: they are hostile,
and whoever writes them escapes them.
"""

import re
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from shlex import quote

from models.window import midnight

HIDDEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
"""Signs that would end a line or a header, or make a name look like another."""
MOST_LETTERS = 60
SAYING = "The cost of idle time is price x time, not money saved."


def clean(name: str | None, most: int = MOST_LETTERS) -> str:
    """A name on one line, cut short, with nothing in it that cannot be seen."""
    seen = HIDDEN.sub("�", name or "")
    return seen if len(seen) <= most else f"{seen[: most - 1]}…"


@dataclass(frozen=True)
class Period:
    """The days [begin_on, end_on) of the accounting zone."""

    begin_on: date
    end_on: date
    zone: str

    @property
    def last_on(self) -> date:
        """The last of them."""
        return self.end_on - timedelta(days=1)

    @property
    def before(self) -> "Period":
        """As many days, just before."""
        return Period(self.begin_on - (self.end_on - self.begin_on), self.begin_on, self.zone)

    @property
    def begin(self) -> datetime:
        """Its first instant."""
        return midnight(self.begin_on, self.zone)

    @property
    def end(self) -> datetime:
        """The first instant after it."""
        return midnight(self.end_on, self.zone)

    @property
    def seconds(self) -> int:
        """How long it is: a week with a change of the clocks is an hour off."""
        return int((self.end - self.begin).total_seconds())

    def __str__(self) -> str:
        return f"{self.begin_on} to {self.last_on}"

    @classmethod
    def until(cls, last_on: date, zone: str) -> "Period":
        """The seven days that end with one."""
        end_on = last_on + timedelta(days=1)
        return cls(end_on - timedelta(days=7), end_on, zone)

    @classmethod
    def full_week(cls, today: date, zone: str) -> "Period":
        """The last week, Monday to Sunday, that is over."""
        return cls.until(today - timedelta(days=today.isoweekday()), zone)


@dataclass(frozen=True)
class Figure:
    """One figure of the period beside that of the period before."""

    name: str
    shown: str
    note: str = ""
    """Its coverage, or what else it is not to be read without."""
    before: str = ""
    moved: str = ""
    is_headline: bool = False


@dataclass(frozen=True)
class Cell:
    """What a table says in one place: the main thing, and beside it what is small."""

    main: str
    small: str = ""


@dataclass(frozen=True)
class Table:
    """Rows under a title; the first column says what a row is of."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    empty: str = ""
    """What to say where there are no rows."""


@dataclass(frozen=True)
class Report:
    """A report of one team, or of the platform (team None), at one published snapshot."""

    name: str
    team: str | None
    period: Period
    snapshot: int
    published_at: datetime
    known_until: str
    warnings: tuple[str, ...] = ()
    lead: str = ""
    """What there is to say in place of figures, or before them."""
    incomparable: str = ""
    """Why no figure of the week before stands beside; else ''."""
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def subject(self) -> str:
        """What it is of, and when: one line."""
        return f"GPU use of {clean(self.team) if self.team else 'the platform'}, {self.period}"

    @property
    def again(self) -> str:
        """The command that prints the same once more."""
        of = f" --team {quote(clean(self.team))}" if self.team else ""
        return (
            f"gpuledger report {self.name}{of} --to {self.period.last_on} "
            f"--snapshot {self.snapshot} --dry-run"
        )
