"""A folder of recorded metrics, beside or instead of lists, becomes the rows of a cluster."""

import gzip
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from collectors import recording
from collectors.folders import kinds
from collectors.source import Settings
from lake.home import Home
from lake.read import Door
from pipelines.cli import app
from tests.doctor_fleet import sound
from tests.kube_objects import container, node, pod

LISTED = datetime(2026, 3, 1, 10, 30, tzinfo=UTC)
TIME = int(LISTED.timestamp())
UNNOTED = "select count(*) from raw.rejections where reason_name = 'other_file'"
SAMPLES = "select count(*) from raw.gpu_samples"
HOLDS = "select count(*) from core.holds"


def text(keep=lambda series: series, is_timed=True) -> str:
    """The sound fleet's metrics."""
    kept = [new for series in sound() if (new := keep(series))]
    lines = [line for series in kept for line in series.lines(TIME)]
    if not is_timed:
        lines = list(dict.fromkeys(line.rsplit(" ", 1)[0] + "\n" for line in lines))
    return "".join(lines) + "# EOF\n"


def listed() -> str:
    """The same nodes and pods as lists."""
    items = []
    for name in ("node-a", "node-b"):
        machine = node(capacity={"nvidia.com/gpu": "2"})
        machine["metadata"] |= {"name": name, "uid": f"n-{name}"}
        holder = pod([container(gpus=2)], node=name, name=f"train-{name}", uid=f"u-{name}")
        items += [machine, holder]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def call(home: Path, *words: object):
    env = {"GPULEDGER_HOME": str(home)}
    answer = CliRunner().invoke(app, [str(word) for word in words], env=env)
    assert answer.exit_code == 0, answer.output
    return answer


def told(home: Path, *queries: str) -> list[int]:
    with Door(Home(home)) as door:
        return [door.query(query).fetchall()[0][0] for query in queries]


@pytest.fixture
def folder(tmp_path) -> Path:
    path = tmp_path / "recorded"
    path.mkdir()
    return path


def test_metrics_alone_are_a_cluster_and_text_without_times_is_of_the_moment_told(folder, tmp_path):
    with gzip.open(folder / "all.om.gz", "wt") as file:
        file.write(text())
    (folder / "later.prom").write_text(text(is_timed=False))
    later = datetime.fromtimestamp(TIME + 30, UTC)
    words = ("import", folder, "--cluster", "m", "--observed-at", later.isoformat())
    call(tmp_path / "home", *words)
    last = "select epoch(max(sampled_at))::bigint from raw.gpu_samples"
    found = told(tmp_path / "home", SAMPLES, HOLDS, UNNOTED, last)
    assert found == [4 * 62, 2, 0, TIME + 30]


def test_lists_and_metrics_of_one_folder_meet_and_neither_is_noted(folder, tmp_path):
    (folder / "all.json").write_text(listed())
    (folder / "dcgm.om").write_text(text(lambda s: s if s.metric.startswith("DCGM") else None))
    (folder / "README.md").write_text("Recorded by hand.")
    assert kinds(folder) == ["kubernetes", "prometheus"]
    words = ("import", folder, "--cluster", "m", "--observed-at", LISTED.isoformat())
    call(tmp_path / "home", *words)
    owned = "select count(distinct gpu_uuid) from raw.gpu_series where pod_name = 'train-node-a'"
    assert told(tmp_path / "home", SAMPLES, HOLDS, UNNOTED, owned) == [4 * 61, 2, 0, 2]


def test_a_cluster_with_both_kinds_in_one_folder_gives_the_same_when_run_again(folder, tmp_path):
    (folder / "all.json").write_text(listed())
    (folder / "answers.json").write_text(answers())
    config = tmp_path / "gpuledger.yaml"
    at = f"observed_at: {LISTED:%Y-%m-%dT%H:%MZ}"
    config.write_text(
        "clusters: [{name: m, sources: ["
        f"{{kind: kubernetes, path: recorded, {at}}}, {{kind: prometheus, path: recorded}}]}}]"
    )
    found = []
    for _ in range(2):
        call(tmp_path / "home", "run", "--config", config)
        found.append(told(tmp_path / "home", SAMPLES, HOLDS, UNNOTED))
    assert found == [[1, 2, 0]] * 2


def answers() -> str:
    """One answer of /api/v1/query."""
    labels = {"__name__": "DCGM_FI_DEV_GPU_UTIL", "UUID": "GPU-1", "Hostname": "node-a"}
    result = [{"metric": labels, "value": [TIME, "1"]}]
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}})


def test_a_file_of_metrics_is_noted_where_no_source_reads_it(folder):
    (folder / "all.json").write_text(listed())
    (folder / "answers.json").write_text(answers())
    alone = Settings("m", observed_at=LISTED)
    both = replace(alone, metrics_folders=frozenset([folder]))
    tables = [{b.table for b in recording.collect(folder, each)} for each in (alone, both)]
    assert tables[0] - tables[1] == {"raw.rejections"}


def test_a_kind_is_known_by_what_a_file_says_and_not_by_its_name_alone(folder):
    (folder / "notes.txt").write_text("Recorded on Monday, by hand.\n")
    assert kinds(folder) == ["kubernetes"]
    (folder / "metrics.txt").write_text("up 1 1772361000\n")
    assert kinds(folder) == ["prometheus"]
    (folder / "pods.jsonl").write_text('{"observed_at": "2026-03-01T10:00:00Z", "type": "ADDED"}')
    assert kinds(folder) == ["kubernetes", "prometheus"]
