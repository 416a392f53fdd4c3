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
from tempfile import TemporaryDirectory

import typer

from pipelines.cli_common import HOME_VARIABLE, answering, config_of, home_of, note, stop

SERVE = Path(__file__).parents[1] / "dashboards" / "serve.py"
MODULE = "pipelines.definitions"
SETTINGS = "telemetry:\n  enabled: false\n"
# What was switched off in the UI is remembered by the location's name, so it stays the same.
WORKSPACE = "load_from: [{{grpc_server: {{socket: {socket}, location_name: gpuledger}}}}]\n"
# One line for each asset, from each process that loads them: see [tool.pytest.ini_options].
QUIET = "ignore:Parameter `backfill_policy`"
GRACE_SECONDS = 10
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""What ends a command in a terminal, from outside, and with its terminal."""


def dashboard(home: Path, port: int) -> tuple[list[str], dict[str, str]]:
    """The command and the environment that serve the pages, as the dashboard's own file says."""
    serve = runpy.run_path(str(SERVE))
    return serve["command"](home, port), serve["environment"](home)


def up(told: Path | None, port: int, dashboard_port: int) -> None:
    """Start all of them, wait, and end all when one ends or on Ctrl-C."""
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
        "PYTHONWARNINGS": ",".join(filter(None, (os.environ.get("PYTHONWARNINGS"), QUIET))),
    }
    python = [sys.executable, "-m"]
    # A socket's path may have some hundred letters only, so it is not in the home.
    with TemporaryDirectory(prefix="gpuledger-") as place:
        socket, workspace = Path(place) / "code", Path(place) / "workspace.yaml"
        # Left to itself, the scheduler would load the code anew every minute.
        server = [*python, "dagster", "api", "grpc", "--socket", str(socket), "-m", MODULE]
        workspace.write_text(WORKSPACE.format(socket=socket), encoding="utf-8")
        code = ["-w", str(workspace)]
        ui = [*python, "dagster_webserver", "-h", "127.0.0.1", "-p", str(port), *code]
        daemon = [*python, "dagster._daemon", "run", *code]
        commands = {"code server": server, "dashboard": pages, "Dagster UI": ui}
        commands["scheduler"] = daemon
        note(f"dashboard http://127.0.0.1:{dashboard_port}, Dagster UI http://127.0.0.1:{port}")
        ended = supervise(commands, environment, folder, socket)
    if ended is not None:
        stop(f"the {ended} ended, so the others were ended too", 1)


def supervise(
    commands: dict[str, list[str]],
    environment: dict[str, str],
    folder: Path,
    awaited: Path | None = None,
) -> str | None:
    """Run the commands as one process group; the name of the first to end, None if interrupted.

    They run in a folder of ours, for Dagster imports what it finds where it is started. `awaited`
    is what the first of them must have made before the others can start.
    """

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = {sign: signal.signal(sign, interrupt) for sign in ENDING}
    running: dict[str, subprocess.Popen[bytes]] = {}
    group = 0
    try:
        for name, command in commands.items():
            process = subprocess.Popen(command, env=environment, cwd=folder, process_group=group)
            running[name] = process
            group = group or process.pid
            while awaited and not awaited.exists() and process.poll() is None:
                time.sleep(0.1)
            if process.poll() is not None:
                return name
        while True:
            for name, process in running.items():
                if process.poll() is not None:
                    return name
            time.sleep(0.2)
    except KeyboardInterrupt:
        return None
    finally:
        for sign in ENDING:  # an impatient second Ctrl-C must not leave half of them running
            signal.signal(sign, signal.SIG_IGN)
        _end(group, list(running.values()))
        for sign, handler in before.items():
            signal.signal(sign, handler)
        typer.echo("all ended", err=True)


def _end(group: int, processes: list[subprocess.Popen[bytes]]) -> None:
    """End the group and all that it started."""
    for sign in (signal.SIGTERM, signal.SIGKILL) if processes else ():
        try:
            os.killpg(group, sign)
        except (ProcessLookupError, PermissionError):
            break
        until = time.monotonic() + GRACE_SECONDS
        while time.monotonic() < until and any(p.poll() is None for p in processes):
            time.sleep(0.1)
    for process in processes:
        process.wait()
    # What they started is not ours to wait for, and takes a moment to be gone once it is killed.
    until = time.monotonic() + 1
    while processes and time.monotonic() < until and _lasts(group):
        time.sleep(0.02)


def _lasts(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
