"""What `doctor` says of a Prometheus itself: who answers, its clock, its memory, its refusals."""

import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from models.prometheus import PrometheusSource
from pipelines.cli import app
from pipelines.doctor_prometheus import kept_days
from tests.doctor_fleet import faults, sound, started, without
from tests.prometheus_server import Proxy, free_port, says, source, warns

SECRET = "s3cr3t-T0ken"


@pytest.fixture
def fleet(prometheus, tmp_path):
    with started(prometheus, tmp_path) as made:
        yield made


def test_no_samples_of_late_ask_for_another_tenant(fleet):
    [found] = fleet.faults(lambda s: replace(s, ahead=-30 * 86_400))
    assert "no metrics of the last 3 days" in found.what
    assert "tenant:" in found.mend
    assert found.code == 1


@pytest.mark.parametrize(
    ("days", "words"), [("7d", "retention: it keeps 7 days:"), ("30d", "raw_retention_days 90")]
)
def test_a_server_that_forgets_soon_is_told_of(fleet, days, words):
    [found] = fleet.faults(lambda s: s, f"--storage.tsdb.retention.time={days}")
    assert words in found.what
    assert "--storage.tsdb.retention.time=" in found.mend


@pytest.mark.parametrize(
    ("flags", "days"),
    [
        ({"storage.tsdb.retention.time": "0s", "storage.tsdb.retention": "0s"}, 15),
        ({"storage.tsdb.retention.time": "0s", "storage.tsdb.retention": "10d"}, 10),
        ({"storage.tsdb.retention.time": "1w2d12h"}, 9.5),
        ({"storage.tsdb.retention.time": "0s", "storage.tsdb.retention.size": "10GB"}, None),
    ],
)
def test_retention_is_read_as_prometheus_writes_it(flags, days):
    assert kept_days(flags) == days


@pytest.fixture(scope="module")
def port(prometheus, tmp_path_factory):
    """Where a sound server listens."""
    with started(prometheus, tmp_path_factory.mktemp("sound")) as made:
        yield made.server().port


@pytest.fixture
def behind(port):
    """The findings of a sound server through a proxy that spoils what a function chooses."""
    made = []

    def make(choose, **keys):
        made.append(Proxy(port, choose))
        return faults(source(made[-1].url, **keys))

    yield make
    for proxy in made:
        proxy.close()


@pytest.mark.parametrize(("seconds", "words"), [(120, "ahead of ours"), (-90, "behind ours")])
def test_a_clock_that_differs_from_ours_is_told_with_the_way_to_mend_it(behind, seconds, words):
    def shifted(handler, body):
        at = time.time() + seconds
        told = f'{{"status":"success","data":{{"resultType":"scalar","result":[{at},"{at}"]}}}}'
        handler.give(200, told.encode())

    found = behind(lambda path, _: shifted if "time%28%29" in path else None)
    assert "clock skew: its clock is" in found[0].what
    assert f"{abs(seconds)} s {words}" in found[0].what
    assert "NTP" in found[0].mend


def test_warnings_in_answers_are_told_once(behind):
    found = behind(lambda path, _: warns if path.startswith("/api/v1/query") else None)
    [warned] = [finding for finding in found if "warning" in finding.what]
    assert "store-2: no such host" in warned.what
    assert "partial" in warned.what


@pytest.mark.parametrize(
    ("build", "flags", "words"),
    [
        ('{"application":"Grafana Mimir","version":"2.4.0"}', "{}", "Grafana Mimir 2.4.0"),
        ('{"version":"0.34.0"}', '{"query.replica-label":"[]"}', "Thanos 0.34.0"),
        ('{"version":"2.24.0"}', None, "VictoriaMetrics"),
    ],
)
def test_what_is_no_prometheus_is_said_not_to_have_been_run(behind, build, flags, words):
    def tells(text):
        body = f'{{"status":"success","data":{text}}}'.encode()
        return says(404) if text is None else lambda handler, _: handler.give(200, body)

    [found] = behind(
        lambda path, _: (
            tells(build if "buildinfo" in path else flags) if "/status" in path else None
        )
    )
    assert words in found.what
    assert "was not run" in found.what


@pytest.mark.parametrize(
    ("answer", "keys", "mend"),
    [
        (says(401, "no org id"), {}, "tenant: name the tenant to ask"),
        (says(404, "no such tenant"), {"tenant": "x"}, "tenant: name another tenant"),
        (says(401, "unauthorized"), {}, "auth: give bearer or basic"),
        (says(403, "no"), {"auth": {"bearer": {"env": "TOKEN"}}}, "auth.bearer: it is refused"),
        (says(404, "nothing here"), {}, "the path before /api/v1"),
        (says(302, Location="https://login.example.com/x"), {}, "give the address that it names"),
        (says(500, "overloaded"), {}, "the server's own log"),
    ],
)
def test_a_refusal_names_the_key_to_change_and_no_secret(behind, monkeypatch, answer, keys, mend):
    monkeypatch.setenv("TOKEN", SECRET)
    [found] = behind(lambda path, _: answer, **keys)
    assert mend in found.mend
    assert found.code == 3
    assert SECRET not in str(found)


RIGHT = "$2b$04$DQW/Z0LQ2g10Dq1/QifBO.7rDnrXy1eyg5fRHAIYm/ePdOsbDERq2"
"""The hash of `right`."""


def test_a_server_that_asks_for_a_password_refuses_a_wrong_one(fleet, tmp_path, monkeypatch):
    web = tmp_path / "web.yml"
    web.write_text(f"basic_auth_users: {{me: '{RIGHT}'}}\n")
    url = fleet.server(lambda s: s, f"--web.config.file={web}").url
    monkeypatch.setenv("WRONG", SECRET)
    monkeypatch.setenv("RIGHT", "right")

    def asked(name):
        return faults(source(url, auth={"basic": {"user": "me", "password": {"env": name}}}))

    assert asked("RIGHT") == []
    for found, mend in ((asked("WRONG"), "auth.basic: it is refused"),
                        (faults(source(url)), "auth: give bearer or basic")):  # fmt: skip
        [refused] = found
        assert mend in refused.mend
        assert refused.code == 3
        assert SECRET not in str(refused)
    [lost] = asked("NOWHERE")
    assert "let the file or the variable be there" in lost.mend


def doctor(tmp_path: Path, text: str):
    path = tmp_path / "gpuledger.yaml"
    path.write_text(f"clusters: [{{name: c, sources: [{text}]}}]")
    return CliRunner().invoke(app, ["doctor", "--config", str(path)])


def test_the_command_looks_at_a_server_by_its_url_and_ends_with_the_worst_code(fleet, tmp_path):
    server = fleet.server(without("DCGM"))
    answer = doctor(tmp_path, f"{{kind: prometheus, url: '{server.url}'}}")
    assert answer.exit_code == 0, answer.output
    assert "note  c: no DCGM metrics" in answer.stdout
    answer = doctor(tmp_path, f"{{kind: prometheus, url: 'http://127.0.0.1:{free_port()}'}}")
    assert answer.exit_code == 3
    assert "FAIL  c: prometheus http://127.0.0.1:" in answer.stdout
    assert "mend: url: correct it, or see that the server runs" in answer.stdout


def test_a_folder_of_recorded_metrics_is_looked_at_likewise(tmp_path):
    folder = tmp_path / "recorded"
    folder.mkdir()
    told = PrometheusSource.model_validate({"kind": "prometheus", "path": folder})
    [empty] = faults(told)
    assert "holds no samples" in empty.what
    now = int(time.time()) - 90 * 86_400  # a recording may be old
    lines = [line for series in sound() for line in series.lines(now)]
    (folder / "all.om").write_text("".join(lines) + "# EOF\n")
    assert faults(told) == []
    kept = [line for line in lines if not line.startswith("DCGM_FI_PROF")]
    (folder / "all.om").write_text("".join(kept) + "# EOF\n")
    [found] = faults(told)
    assert "PROF metrics are off on all GPUs" in found.what
    shutil.rmtree(folder)
    [gone] = faults(told)
    assert gone.code == 3
