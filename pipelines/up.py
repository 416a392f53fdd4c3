"""The `up` command: scheduler, Dagster UI and dashboard as one process group.

What Dagster runs belongs in `definitions`; here it is only started, and ended.
"""

import os
import runpy
import signal
import subprocess
import sys
import time
from pathlib import Path

import typer

from pipelines.cli_common import HOME_VARIABLE, answering, config_of, home_of, note, stop

SERVE = Path(__file__).parents[1] / "dashboards" / "serve.py"
SETTINGS = "telemetry:\n  enabled: false\n"
GRACE_SECONDS = 10


def dashboard(home: Path, port: int) -> tuple[list[str], dict[str, str]]:
    """The command and the environment that serve the pages, as the dashboard's own file says."""
    serve = runpy.run_path(str(SERVE))
    return serve["command"](home, port), serve["environment"](home)


def up(told: Path | None, port: int, dashboard_port: int) -> None:
    """Start all three, wait, and end all of them when one ends or on Ctrl-C."""
    with answering():
        config_path = config_of(told)[1]
        home = home_of(told)
        home.make()
    folder = home.path / "dagster"
    folder.mkdir(exist_ok=True)
    if not (folder / "dagster.yaml").exists():
        (folder / "dagster.yaml").write_text(SETTINGS, encoding="utf-8")
    pages, more = dashboard(home.path, dashboard_port)
    environment = {
        **os.environ,
        **more,
        "DAGSTER_HOME": str(folder),
        HOME_VARIABLE: str(home.path),
        "GPULEDGER_CONFIG": str(config_path),
    }
    module = ["-m", "pipelines.definitions"]
    ui = [sys.executable, "-m", "dagster_webserver", "-h", "127.0.0.1", "-p", str(port), *module]
    daemon = [sys.executable, "-m", "dagster._daemon", "run", *module]
    commands = {"Dagster UI": ui, "scheduler": daemon, "dashboard": pages}
    note(f"Dagster UI http://127.0.0.1:{port}, dashboard http://127.0.0.1:{dashboard_port}")
    ended = supervise(commands, environment)
    if ended is not None:
        stop(f"the {ended} ended, so the others were ended too", 1)


def supervise(commands: dict[str, list[str]], environment: dict[str, str]) -> str | None:
    """Run the commands as one process group; the name of the first to end, None if interrupted."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    running: dict[str, subprocess.Popen[bytes]] = {}
    group = 0
    try:
        for name, command in commands.items():
            running[name] = subprocess.Popen(command, env=environment, process_group=group)
            group = group or running[name].pid
        while True:
            for name, process in running.items():
                if process.poll() is not None:
                    return name
            time.sleep(0.2)
    except KeyboardInterrupt:
        return None
    finally:
        signal.signal(signal.SIGTERM, before)
        _end(group, list(running.values()))
        typer.echo("all ended", err=True)


def _end(group: int, processes: list[subprocess.Popen[bytes]]) -> None:
    """End the group and all that it started."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(group, sign)
        except (ProcessLookupError, PermissionError):
            break
        until = time.monotonic() + GRACE_SECONDS
        while time.monotonic() < until and any(p.poll() is None for p in processes):
            time.sleep(0.1)
    for process in processes:
        process.wait()
