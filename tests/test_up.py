"""Several processes as one: what `up` and `demo` start ends with them, whoever ends first.

What Dagster runs is tested in test_dagster.py, what the dashboard shows in test_dashboards.py.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipelines.schedule import hourly, nightly
from pipelines.up import supervise

STARTS = "sleep 60 & echo $! > {}; wait"
"""A child that starts a process of its own and tells its number."""
SUPERVISOR = """
import sys
from pathlib import Path
from pipelines.up import supervise
print(supervise({"one": ["sh", "-c", sys.argv[1]], "two": ["sleep", "60"]}, {}, Path.cwd()))
"""


def told(path: Path) -> int:
    """The number that a process writes into a file."""
    for _ in range(300):
        if path.exists() and path.read_text().strip():
            return int(path.read_text())
        time.sleep(0.1)
    pytest.fail(f"nothing was written into {path}")


def is_alive(number: int) -> bool:
    """Whether a process runs; one that nobody has waited for yet does not."""
    try:
        os.kill(number, 0)
        return "State:\tZ" not in Path(f"/proc/{number}/status").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_all_that_was_started_and_is_no_error(sign, tmp_path):
    started = tmp_path / "started"
    words = [sys.executable, "-c", SUPERVISOR, STARTS.format(started)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    number = told(started)
    process.send_signal(sign)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out.strip()) == (0, "None"), err
    assert "Traceback" not in err
    assert not is_alive(number)


def test_one_that_ends_is_named_and_ends_the_others(tmp_path):
    started = tmp_path / "started"
    lasting = ["sh", "-c", STARTS.format(started)]
    short = ["sh", "-c", f"until test -s {started}; do sleep 0.1; done; exit 3"]
    assert supervise({"lasting": lasting, "short": short}, {}, tmp_path) == "short"
    assert not is_alive(told(started))


def test_the_others_wait_for_what_the_first_must_make(tmp_path):
    made = tmp_path / "made"
    first = ["sh", "-c", f"sleep 0.5; touch {made}; sleep 60"]
    second = ["sh", "-c", f"test -e {made} && touch {tmp_path}/seen"]
    assert supervise({"first": first, "second": second}, {}, tmp_path, made) == "second"
    assert (tmp_path / "seen").exists()


def test_a_first_one_that_fails_is_named_and_nothing_else_starts(tmp_path):
    commands = {"first": ["false"], "second": ["touch", str(tmp_path / "seen")]}
    assert supervise(commands, {}, tmp_path, tmp_path / "made") == "first"
    assert not (tmp_path / "seen").exists()


def test_the_schedules_are_on_without_a_click():
    assert {each.default_status.value for each in (hourly, nightly)} == {"RUNNING"}
