"""What pages read: the marts at the published snapshot, in the period and scope of the filters.

Every rule about money and time is in sql/; a view only sums marts. Drawing belongs to the views.
The snapshot's number is part of every cache key, so a new publication is seen at once.
"""

import os
import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import streamlit as st

from lake.errors import LakeError
from lake.home import Home
from lake.read import Door, published

PARAMETER = re.compile(r"\$([a-z_]+)")
Value = str | bool | int | float | date | tuple[str, ...]


@dataclass(frozen=True)
class Period:
    """The days [begin_on, end_on)."""

    begin_on: date
    end_on: date

    @property
    def days(self) -> int:
        """How many."""
        return (self.end_on - self.begin_on).days

    @property
    def last_on(self) -> date:
        """The last of them."""
        return self.end_on - timedelta(days=1)

    @property
    def before(self) -> "Period":
        """As many days, just before."""
        return Period(self.begin_on - timedelta(days=self.days), self.begin_on)

    def __str__(self) -> str:
        return f"{self.begin_on} to {self.last_on}"


@dataclass(frozen=True)
class Snapshot:
    """The published state of the lake that a page is drawn from."""

    home: str
    number: int
    committed_at: datetime


@dataclass(frozen=True)
class Reading:
    """What one page reads: snapshot, period, clusters and teams; no team chosen means all."""

    snapshot: Snapshot
    currency: str
    zone: str
    period: Period
    clusters: tuple[str, ...]
    teams: tuple[str, ...]
    first_on: date
    """First day published of the chosen clusters: before it there is nothing to compare with."""
    last_on: date

    def rows(self, query: str, *, before: bool = False, **more: Value) -> pl.DataFrame:
        """The answer for the period, or for the one before it; `more` are further parameters."""
        period = self.period.before if before else self.period
        given: dict[str, Value] = {
            "begin_on": period.begin_on,
            "end_on": period.end_on,
            "clusters": self.clusters,
            "teams": self.teams,
            **more,
        }
        return answer(self.snapshot, query, given)

    @property
    def earlier(self) -> str:
        """Whether the period before can be compared with: 'whole', 'part' or 'none'."""
        before = self.period.before
        if self.first_on <= before.begin_on:
            return "whole"
        return "part" if self.first_on < before.end_on else "none"

    def file(self, name: str) -> str:
        """The name of a download: what it holds, of which days, at which snapshot."""
        period = self.period
        return f"{name}_{period.begin_on}_{period.last_on}_snapshot-{self.snapshot.number}"


def home() -> Path:
    """The folder of the lake to show."""
    return Path(os.environ.get("GPULEDGER_HOME", ".gpuledger")).absolute()


def exists() -> bool:
    """Whether there is a lake, published or not."""
    return Home(home()).catalog.exists()


def snapshot() -> Snapshot | None:
    """The newest published snapshot, None where nothing is published; LakeError as the lake's."""
    found = published(Home(home()))
    return None if found is None else Snapshot(str(home()), found.number, found.committed_at)


@st.cache_resource(max_entries=2, show_spinner=False)
def opened(snapshot: Snapshot) -> Door:
    """The door to one snapshot; two are kept, for pages that were opened before a publication."""
    return Door(Home(Path(snapshot.home)), snapshot=snapshot.number)


def answer(snapshot: Snapshot, query: str, given: dict[str, Value]) -> pl.DataFrame:
    """The rows of a query; of the parameters given it gets those that it names."""
    named = sorted(set(PARAMETER.findall(query)))
    return cached(snapshot, query, tuple((name, given[name]) for name in named))


@st.cache_data(max_entries=500, ttl="1h", show_spinner="Reading the ledger …")
def cached(snapshot: Snapshot, query: str, given: tuple[tuple[str, Value], ...]) -> pl.DataFrame:
    """The rows of a query, remembered for each snapshot and its parameters."""
    params: dict[str, Any] = {k: list(v) if isinstance(v, tuple) else v for k, v in given}
    return opened(snapshot).query(query, params or None).pl()


@st.cache_data(max_entries=20, ttl="30s", show_spinner=False)
def stale(snapshot: Snapshot) -> pl.DataFrame:
    """The clusters whose last run was not published: since when, and why; as of now."""
    return opened(snapshot).stale()


__all__ = [
    "LakeError",
    "Period",
    "Reading",
    "Snapshot",
    "answer",
    "exists",
    "home",
    "snapshot",
    "stale",
]
