"""The table of bad inputs, end to end: what is said of each, and that no wrong number is published.

The fine grain of each is in the tests of its module; the inputs are made in bad_input.py.
"""

import gzip
import re
import shlex
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.bad_input import (
    STREAMS,
    TRACE,
    Damage,
    Files,
    a_node,
    a_pod,
    added,
    both,
    call,
    line,
    lost,
    made,
    published,
    swapped,
    written,
)

CONFIG, MAPPING = "gpuledger.yaml", "given/mapping.yaml"
NODES, PODS = "given/nodes.csv", "given/pods.csv"
NODE_LINES, POD_LINES = "given/nodes.jsonl", "given/pods.jsonl"
NOTHING, SOUND = "nothing", "what the sound part gives"


class Case(NamedTuple):
    """What is wrong, and what must come of it."""

    damage: Damage
    code: int
    says: tuple[str, ...]
    gives: str | dict[str, list[tuple]] = NOTHING
    """What is published: nothing, the figures of the sound base, or what queries give."""
    base: Files = TRACE


def row(text: str) -> Damage:
    return added(PODS, text + "\n")


def config(text: str) -> Damage:
    return added(CONFIG, text + "\n")


def strict(damage: Damage) -> Damage:
    return both(damage, swapped(CONFIG, "max_rejected_ratio: 0.2", "max_rejected_ratio: 0.01"))


CLOCK = both(
    swapped(MAPPING, "{unit: s, epoch: 2026-03-01T00:00:00Z}", "{zone: Europe/Berlin}"),
    swapped(
        MAPPING, "{from: 0, to: 86400}", '{from: "2026-10-25 00:00:00", to: "2026-10-26 00:00:00"}'
    ),
    made(
        PODS,
        lambda old: (
            old.split(b"\n")[0]
            + b"\np-1,2026-10-25 00:30:00,2026-10-25 01:00:00,"
            + b",2026-10-25 04:00:00,one,Succeeded,1,a\n"
        ),
    ),
)
"""The trace in clock times, on a day of 25 hours."""
STATUS = '{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "Unauthorized"}'
INSTALLED = "select sum(gpu_seconds) from core.ledger where cluster_name = '{0}'"
HELD = """select team_name, sum(gpu_seconds) from core.ledger where cluster_name = '{0}'
    and not starts_with(team_name, '__') group by all order by all"""

HOURS_OF_B = """select distinct hour(hour_at) from core.ledger where cluster_name = '{0}'
    and team_name = 'b'"""
BY_NODE = """select node_uid, sum(gpu_seconds) from core.ledger where cluster_name = '{0}'
    group by all order by all"""
UNBOOKED = """select reason_name, sum(gpu_seconds) from core.unbooked where cluster_name = '{0}'
    group by all"""
UNPRICED = "select sum(unpriced_gpu_seconds) from mart.fleet_coverage where cluster_name = '{0}'"
COST = "select sum(ledger_cost) from core.ledger where cluster_name = '{0}'"
COSTS_BEFORE_NOON = """select count(ledger_cost) from core.ledger where cluster_name = '{0}'
    and hour_at < timestamptz '2026-03-01 12:00:00+00'"""

CASES = {
    # Files that cannot be read at all.
    "a folder that is missing": Case(
        swapped(CONFIG, "path: given,", "path: gone,"),
        3,
        ("gone is missing: mend the source's path",),
    ),
    "a file that is missing": Case(
        lost(PODS), 1, ("pods.csv: is not there; the mapping names it", "nothing published")
    ),
    "a mapping that is missing": Case(lost(MAPPING), 2, ("mapping.yaml: cannot be read",)),
    "an empty file": Case(made(PODS, b""), 1, ("pods.csv", "empty")),
    "a file that is not UTF-8": Case(
        added(PODS, "p-6,0,1,2,3,one,Running,1,caf\u00e9\n".encode("latin-1")),
        1,
        ("pods.csv", "UTF-8"),
    ),
    "a line with too many cells": Case(row("p-6,0,1,2,3,one,Running,1,a,b,c"), 1, ("pods.csv",)),
    "a header that names a column twice": Case(
        swapped(PODS, "uid,made,placed", "uid,made,made"), 2, ("pods.csv", "made")
    ),
    "a parquet file that is none": Case(
        both(swapped(MAPPING, "pods.csv", "pods.parquet"), made("given/pods.parquet", b"PAR1")),
        1,
        ("pods.parquet",),
    ),
    # Other ways to write the same.
    "a byte order mark and Windows line ends": Case(
        made(PODS, lambda old: b"\xef\xbb\xbf" + old.replace(b"\n", b"\r\n")), 0, (), SOUND
    ),
    "a compressed file": Case(made(PODS, gzip.compress), 0, (), SOUND),
    # Columns and units.
    "a column that is not there": Case(
        swapped(MAPPING, "ended: gone", "ended: gonne"),
        2,
        (
            "mapping.yaml: pods.columns.ended: pods.csv has no column gonne",
            "the nearest one is gone",
        ),
    ),
    "a unit of another quantity": Case(
        swapped(MAPPING, "ended: gone", "ended: {column: gone, unit: gib}"),
        2,
        ("pods.columns.ended.unit: gib does not fit", "ms"),
    ),
    "thousandths of a GPU read as GPUs": Case(
        row("p-6,0,1,2,3,one,Succeeded,500,a"), 0, ("absurd_quantity", "pods.csv:7 p-6"), SOUND
    ),
    "GPUs read as thousandths": Case(
        swapped(
            MAPPING,
            "phase: phase, gpu_count: gpus",
            "phase: phase, gpu_count: {column: gpus, unit: milli_gpu}",
        ),
        1,
        ("5 x absurd_quantity", "pods.csv:2 p-1"),
    ),
    "milliseconds read as seconds": Case(
        row("p-6,100000000,160000000,190000000,,one,Running,1,a"),
        0,
        ("outside_window", "pods.csv:7 p-6"),
        SOUND,
    ),
    "seconds read as milliseconds in one column": Case(
        swapped(MAPPING, "ended: gone", "ended: {column: gone, unit: ms}"),
        1,
        ("negative_duration", "pods.csv:2 p-1"),
    ),
    "numbers that are none": Case(
        both(
            *(
                row(f"p-{n},0,1,2,3,one,Running,{gpus},a")
                for n, gpus in enumerate(("inf", "1e30", "x", "0.0001"), 6)
            ),
            config("import: {max_rejected_ratio: 0.9}"),
            swapped(CONFIG, "import: {max_rejected_ratio: 0.2}\n", ""),
        ),
        0,
        ("bad_column_value", "pods.csv:7 p-6: gpu_count", "4"),
        SOUND,
    ),
    "fewer GPUs than none": Case(
        row("p-6,0,1,2,3,one,Running,-1,a"), 0, ("negative_quantity", "pods.csv:7 p-6"), SOUND
    ),
    "times that are none": Case(
        both(row("p-6,1e30,,,,one,Running,1,a"), row("p-7,0,soon,,,one,Running,1,a")),
        0,
        ("bad_column_value", "pods.csv:7 p-6: created"),
        SOUND,
    ),
    "a time before there were clusters": Case(
        row("p-6,-1700000000,1,2,3,one,Running,1,a"), 0, ("absurd_instant", "pods.csv:7 p-6"), SOUND
    ),
    # Rows that contradict themselves or others.
    "a pod that ends before it begins": Case(
        row("p-6,0,60,90,30,one,Succeeded,1,a"), 0, ("negative_duration", "pods.csv:7 p-6"), SOUND
    ),
    "a pod given twice": Case(
        row("p-1,0,60,90,9999,one,Succeeded,8,b"),
        0,
        ("duplicate_uid", "pods.csv:7 p-1", "make its id unique"),
        SOUND,
    ),
    "a node given twice": Case(
        added(NODES, "n-1,one,8,V100M32\n"), 0, ("duplicate_uid", "nodes.csv:4 n-1"), SOUND
    ),
    "a name that two nodes have at once": Case(
        added(NODES, "n-3,one,8,V100M32\n"), 0, ("nodes.csv:4 n-3",), SOUND
    ),
    "more bad rows than are allowed": Case(
        strict(row("p-6,0,60,90,30,one,Succeeded,1,a")),
        1,
        (
            "more than import.max_rejected_ratio 0.01",
            "1 x negative_duration at pods.csv (pods.csv:7 p-6)",
        ),
    ),
    "one whole GPU held twice": Case(
        row("p-6,100,100,130,1900,one,Succeeded,8,b"),
        0,
        ("9,800 GPU-seconds", "overlap", "core.unbooked"),
        {
            UNBOOKED: [("overlap", Decimal(9800))],
            "select sum(gpu_seconds) from core.ledger where cluster_name = '{0}'": [
                (Decimal(12 * 86400),)
            ],
        },
    ),
    # Clock times.
    "a clock time that comes twice": Case(
        both(CLOCK, row("p-2,2026-10-25 02:30:00,,,2026-10-25 05:00:00,,Pending,1,b")),
        0,
        ("bad_column_value", "pods.csv:3 p-2: created", "came twice"),
        {HELD: [("a", Decimal(4 * 3600))], INSTALLED: [(Decimal(25 * 12 * 3600),)]},
    ),
    "a clock time that says that it is of another zone": Case(
        both(
            CLOCK,
            row("p-2,2026-10-25T10:00:00Z,2026-10-25T10:00:00Z,,2026-10-25T11:00:00Z,two,,1,b"),
        ),
        0,
        (),
        {HELD: [("a", Decimal(4 * 3600)), ("b", Decimal(3600))], HOURS_OF_B: [(10,)]},
    ),
    # Recordings.
    "a folder with nothing in it": Case(
        both(lost(NODE_LINES, POD_LINES), added("given/nothing.txt", "")),
        1,
        ("know no pods or nodes", "kubectl get"),
        base=STREAMS,
    ),
    "an answer that is an error": Case(
        both(lost(NODE_LINES, POD_LINES), added("given/pods.json", STATUS)),
        1,
        ("know no pods or nodes", "kubectl get"),
        base=STREAMS,
    ),
    "an error beside good answers": Case(
        added("given/pods.json", STATUS),
        0,
        ("1 x unknown_kind in pods.json", "Not used"),
        SOUND,
        STREAMS,
    ),
    "a line that is cut off": Case(
        added(POD_LINES, '{"observed_at": "2026-03-01T10:5'),
        0,
        ("bad_json", "pods.jsonl", "cut off"),
        SOUND,
        STREAMS,
    ),
    "a compressed stream that is cut off": Case(
        made("given/more.jsonl.gz", gzip.compress(line(1, "ADDED", a_pod("p-9")).encode())[:-20]),
        0,
        ("file_broken", "more.jsonl.gz", "copy it again"),
        SOUND,
        STREAMS,
    ),
    "a line without an instant": Case(
        added(
            POD_LINES,
            line(40, "ADDED", a_pod("p-9")).replace("2026-03-01T10:40:30.000000Z", "1e30"),
        ),
        0,
        ("bad_instant", "pods.jsonl:5 1e30"),
        SOUND,
        STREAMS,
    ),
    "a pod that asks for fewer GPUs than none": Case(
        added(POD_LINES, line(40, "ADDED", a_pod("p-9", -1))),
        0,
        ("negative_quantity", "pods.jsonl:5"),
        SOUND,
        STREAMS,
    ),
    "a pod from before there were clusters": Case(
        added(POD_LINES, line(40, "ADDED", a_pod("p-9", creationTimestamp="1970-01-01T00:00:00Z"))),
        0,
        ("absurd_instant", "pods.jsonl:5"),
        SOUND,
        STREAMS,
    ),
    "a node name that is used again": Case(
        added(
            NODE_LINES,
            line(30, "DELETED", a_node())
            + line(36, "ADDED", a_node("n-3", creationTimestamp="2026-03-01T10:35:00Z")),
        ),
        0,
        (),
        {
            BY_NODE: [
                ("n-1", Decimal(8 * 1800)),
                ("n-2", Decimal(4 * 3000)),
                ("n-3", Decimal(8 * 930)),
            ],
        },
        STREAMS,
    ),
    # Money.
    "hours without a price": Case(
        swapped(CONFIG, "2026-01-01", "2026-03-01T12:00:00Z"),
        0,
        ("518,400 GPU-seconds", "no price"),
        {
            UNPRICED: [(Decimal(518400),)],
            COSTS_BEFORE_NOON: [(0,)],
            COST: [(Decimal("172.8"),)],
        },
    ),
    "two prices of one rank": Case(
        swapped(
            CONFIG,
            "prices:",
            'prices:\n  - {valid_from: 2026-01-01, gpu_model: V100M32, per_gpu_hour: "9"}',
        ),
        2,
        (
            "prices[1]: covers the same from the same instant on as prices[0]",
            "v100-32gb",
        ),
    ),
    "a price that is a binary fraction": Case(
        swapped(CONFIG, '"1.20"', "1.20"), 2, ("prices[0].per_gpu_hour", "write it in quotes")
    ),
    # Configuration.
    "an unknown key": Case(
        config("polices: {}"), 2, ("polices: unknown key; the nearest valid one is policies",)
    ),
    "a key given twice": Case(config("teams: []"), 2, ("the key teams is given twice", "line")),
    "a tab": Case(config("policies:\n\tprovisional_days: 3"), 2, ("is not valid YAML", "line")),
    "a list where a map belongs": Case(
        config("policies: [3]"), 2, ("policies: must be a mapping of keys",)
    ),
    "a configuration that is missing": Case(lost(CONFIG), 2, ("gpuledger.yaml: cannot be read",)),
    "a rule that another one hides": Case(
        swapped(CONFIG, "namespace: ml-a}", "namespace: ml-*}\n  - {team: b, namespace: ml-b}"),
        2,
        ("rule 2 can never match, because rule 1",),
    ),
}


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def sound(home, tmp_path_factory) -> dict[int, list[list[tuple]] | None]:
    """The figures of each base."""
    found = {}
    for number, base in enumerate((TRACE, STREAMS)):
        cluster = f"sound-{number}"
        path = written(tmp_path_factory.mktemp("sound"), base, cluster)
        answer = call(home, "run", "--config", path)
        assert answer.exit_code == 0, answer.output
        assert "refused" not in answer.output
        found[id(base)] = published(home, cluster)
    return found


# In the plain suite each third one: what a module says of its own input is tested there, too.
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.whole] if number % 3 else [])
        for number, name in enumerate(CASES)
    ],
)
def test_bad_input_is_told_and_gives_no_wrong_number(name, home, sound, tmp_path):
    case, cluster = CASES[name], re.sub("[^a-z]+", "-", name.lower()).strip("-")
    path = written(tmp_path, case.base, cluster, case.damage)
    answer = call(home, "run", "--config", path)
    said = answer.output
    if hint := re.search("gpuledger (query .*raw.rejections.*)", said):
        said += call(home, *shlex.split(hint[1]), "--config", path).output
    assert answer.exit_code == case.code, said
    assert [words for words in case.says if words not in said] == [], said
    if case.gives == NOTHING:
        assert published(home, cluster) is None
    elif isinstance(case.gives, str):
        assert published(home, cluster) == sound[id(case.base)]
    else:
        for query, rows in case.gives.items():
            assert published(home, cluster, query) == [rows], query
