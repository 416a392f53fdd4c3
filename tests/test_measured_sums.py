"""What becomes of each stored sample, from a real Prometheus to the tables: none lost or doubled.

Counted in the server itself; in one run, in many, in runs that are disturbed, and in such that find
nobody. What the tables say of the GPUs is in test_measured_truth.py.
"""

import threading
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from urllib.parse import parse_qs

import polars as pl
import pytest
import requests

from collectors import prometheus as bulk
from collectors.families import FAMILIES
from collectors.metrics import Reading
from collectors.prometheus_http import Patience
from collectors.prometheus_selectors import Group, Matcher
from lake.home import Home
from lake.read import Door
from simulator.fleet import BEGIN
from tests.measured_fleet import ALONE, BESIDE, Fleet, content, differing, run
from tests.prometheus_server import Proxy, Spoil, breaks_off, resets, says, truncates

CLUSTER = "beta"
HOWS = (ALONE, BESIDE)
SETTLE = timedelta(minutes=1)
"""Younger samples are left for the next run."""
pytestmark = pytest.mark.whole


@pytest.fixture(scope="module")
def fleet(tmp_path_factory, prometheus) -> Iterator[Fleet]:
    fleet = Fleet(tmp_path_factory.mktemp("measured"), prometheus, 7, CLUSTER)
    yield fleet
    fleet.close()


@pytest.fixture(scope="module")
def now() -> datetime:
    """When the last run takes place: after the day."""
    return BEGIN + timedelta(hours=24, minutes=7)


@pytest.fixture(scope="module")
def quiet(fleet, now, tmp_path_factory) -> dict[str, dict[str, pl.DataFrame]]:
    """The tables of one undisturbed run, from Prometheus alone and beside a recorder."""
    found = {}
    for how in HOWS:
        home = Home(tmp_path_factory.mktemp(how))
        outcome = run(home, fleet.config(CLUSTER, how), CLUSTER, now)
        assert (outcome.exit_code, outcome.broken) == (0, [])
        found[how] = content(home)
    return found


@pytest.fixture
def behind(fleet) -> Iterator[Proxy]:
    """A proxy before the server; a test sets what it spoils."""
    proxy = Proxy(fleet.servers[CLUSTER].port, lambda path, number: None)
    yield proxy
    proxy.close()


@pytest.fixture
def hasty(monkeypatch) -> None:
    """Who asks gives up soon: else what never comes is waited for for minutes."""
    short = partial(Patience, attempts=2, first_seconds=0.01)
    monkeypatch.setattr(bulk, "Patience", short)


def end_of(now: datetime) -> datetime:
    """Until when samples are read by then."""
    return min(now - SETTLE, BEGIN + timedelta(days=1))


def coverage(home: Home) -> pl.DataFrame:
    with Door(home) as door:
        return door.query("from raw.metric_coverage order by all").pl()


def place(tables: dict[str, pl.DataFrame], old: str, new: str) -> dict[str, pl.DataFrame]:
    """The tables as if they had been read from another address."""
    return {
        name: frame.with_columns(pl.col("source_ref").str.replace_all(old, new, literal=True))
        if "source_ref" in frame.columns
        else frame
        for name, frame in tables.items()
    }


def in_server(fleet: Fleet, selector: str, until: datetime) -> int:
    """Samples of the series that the server keeps of (begin, until]."""
    span = round((until - BEGIN).total_seconds() * 1000) - 1  # both ends of a range count
    answer = requests.post(
        f"{fleet.servers[CLUSTER].url}/api/v1/query",
        {"query": f"sum(count_over_time({selector}[{span}ms]))", "time": until.timestamp()},
        timeout=60,
    )
    assert answer.status_code == 200, answer.text
    return sum(int(row["value"][1]) for row in answer.json()["data"]["result"])


def asked(proxy: Proxy) -> list[str]:
    """The questions for stored samples."""
    return [form for path, form in proxy.asked if "[" in parse_qs(form).get("query", [""])[0]]


def test_each_stored_sample_is_kept_once_and_counted_as_one_thing(fleet, quiet, now):
    until = end_of(now)
    for tables in quiet.values():
        told = tables["raw.metric_coverage"].filter(pl.col("end_at") <= until)
        assert (told["read_name"] == "complete").all()
        counts = ("reading_count", "copy_count", "rejected_count", "unused_count")
        assert (told["kept_sample_count"] == told.select(pl.sum_horizontal(counts))[:, 0]).all()
        for family in FAMILIES:
            mine = told.filter(pl.col("family_name") == family)
            names = set(",".join(mine["metrics_text"].drop_nulls()).split(","))
            stored = sum(
                in_server(
                    fleet, str(Group((Matcher("__name__", "=", name), *part.matchers))), until
                )
                for part in FAMILIES[family]
                for name in names.intersection(part.metrics)
            )
            assert mine["kept_sample_count"].sum() == stored > 1000, family


@pytest.mark.parametrize("how", HOWS)
def test_a_run_at_once_afterwards_asks_for_no_sample_and_changes_no_table(
    fleet, behind, now, tmp_path, how
):
    home, config = Home(tmp_path), fleet.config(CLUSTER, how, behind.url)
    assert run(home, config, CLUSTER, now).exit_code == 0
    assert asked(behind)
    before, number = content(home), len(asked(behind))
    assert run(home, config, CLUSTER, now).exit_code == 0
    assert asked(behind)[number:] == []
    assert differing(before, content(home)) == []


@pytest.mark.parametrize("how", HOWS)
def test_runs_hour_by_hour_give_the_tables_of_one_run_and_read_each_sample_about_once(
    fleet, quiet, now, tmp_path, monkeypatch, how
):
    home, config, read = Home(tmp_path), fleet.config(CLUSTER, how), []
    counted = Reading.counted

    def noted(self, fetched, counts):
        read.append(fetched.read_count)
        counted(self, fetched, counts)

    monkeypatch.setattr(Reading, "counted", noted)
    moment = BEGIN + timedelta(minutes=52)
    while moment < now:
        assert run(home, config, CLUSTER, moment).exit_code == 0
        # Fewer are enough of a day, and where the hours are those of the other way.
        moment += timedelta(hours=4 * (1 + HOWS.index(how)))
    assert run(home, config, CLUSTER, now).exit_code == 0
    assert differing(quiet[how], content(home)) == []
    assert sum(read) <= 1.1 * int(coverage(home)["kept_sample_count"].sum())


def test_no_sample_is_lost_where_answers_are_spoilt_and_the_server_is_killed_meanwhile(
    fleet, quiet, behind, now, tmp_path
):
    server = fleet.servers[CLUSTER]
    spoils: dict[int, Spoil] = {
        3: says(503),
        5: truncates,
        6: says(429, Retry_After="1"),
        8: resets,
        9: breaks_off,
        12: says(500),
        14: says(422, "query processing would load too many samples", "execution"),
    }
    restarts: list[threading.Thread] = []

    def choose(path: str, number: int) -> Spoil | None:
        if number == 10:
            server.kill()
            restarts.append(threading.Thread(target=server.restart))
            restarts[0].start()
        return spoils.get(number)

    behind.choose = choose
    home = Home(tmp_path)
    outcome = run(home, fleet.config(CLUSTER, ALONE, behind.url), CLUSTER, now)
    restarts[0].join()
    assert (outcome.exit_code, outcome.broken) == (0, [])
    assert set(coverage(home)["read_name"]) <= {"complete", "open"}
    assert differing(quiet[ALONE], place(content(home), behind.url, server.url)) == []


def test_an_hour_that_cannot_be_had_is_missing_and_comes_with_the_next_run(
    fleet, quiet, behind, now, tmp_path, hasty
):
    begin, end = (BEGIN + timedelta(hours=h) for h in (1, 2))

    def choose(path: str, number: int) -> Spoil | None:
        told = parse_qs(behind.asked[number][1])
        is_sample = "[" in told.get("query", [""])[0]
        is_inside = is_sample and begin.timestamp() < float(told["time"][0]) <= end.timestamp()
        return says(503) if is_inside else None

    behind.choose = choose
    home, config = Home(tmp_path), fleet.config(CLUSTER, ALONE, behind.url)
    outcome = run(home, config, CLUSTER, now)
    assert outcome.broken == [] and outcome.snapshot is not None
    told = coverage(home).filter(pl.col("end_at") <= end_of(now))
    lost = told.filter(pl.col("read_name") != "complete")
    assert set(lost["family_name"]) == set(FAMILIES)
    assert (lost["begin_at"].min(), lost["end_at"].max()) == (begin, end)
    assert lost["reason_text"].str.contains("503").all()
    blind = content(home)
    states = blind["core.gpu_states"].filter(
        (pl.col("begin_at") >= begin + timedelta(minutes=2)) & (pl.col("end_at") <= end)
    )
    assert states.height and set(states["activity_name"]) <= {"unobserved", "broken"}
    seen = [
        tables["mart.metric_sight"].filter(pl.col("metric_name") == "any")["told_seconds"].sum()
        for tables in (quiet[ALONE], blind)
    ]
    assert seen[1] < seen[0]

    behind.choose = lambda path, number: None
    assert run(home, config, CLUSTER, now + timedelta(minutes=10)).exit_code == 0
    mended = run_at(fleet, tmp_path / "whole", now + timedelta(minutes=10))
    server = fleet.servers[CLUSTER]
    assert differing(mended, place(content(home), behind.url, server.url)) == []


def test_where_nobody_answers_the_rows_stay_and_the_next_run_goes_on(
    fleet, quiet, now, tmp_path, hasty
):
    server, home = fleet.servers[CLUSTER], Home(tmp_path)
    config, half = fleet.config(CLUSTER, ALONE), BEGIN + (now - BEGIN) / 2
    server.kill()
    try:
        first = run(home, config, CLUSTER, half)
        assert (first.exit_code, first.snapshot) == (3, None)
        server.start(*server.flags)
        assert run(home, config, CLUSTER, half).exit_code == 0
        before = content(home)
        server.kill()
        outcome = run(home, config, CLUSTER, now)
        assert (outcome.exit_code, outcome.broken) == (3, [])
    finally:
        server.restart()
    after = content(home)
    for name in ("raw.gpu_samples", "raw.gpu_series", "raw.pod_samples", "raw.pod_versions"):
        assert before[name].height and after[name].equals(before[name])
    later = now + timedelta(minutes=10)
    assert run(home, config, CLUSTER, later).exit_code == 0
    assert differing(run_at(fleet, tmp_path / "whole", later), content(home)) == []


def run_at(fleet: Fleet, folder, now: datetime) -> dict[str, pl.DataFrame]:
    """The tables of one undisturbed run at another time."""
    home = Home(folder)
    assert run(home, fleet.config(CLUSTER, ALONE), CLUSTER, now).exit_code == 0
    return content(home)
