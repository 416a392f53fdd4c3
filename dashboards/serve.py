"""How the dashboard is started: the command, its environment, and what its process does first.

When it is started belongs to the CLI, which runs this file by its path.
"""

import sys
import threading
from contextlib import suppress
from pathlib import Path

APP = Path(__file__).with_name("app.py")
OPTIONS = {
    "server.address": "127.0.0.1",
    "server.headless": "true",
    "server.fileWatcherType": "none",
    "browser.gatherUsageStats": "false",
    "runner.magicEnabled": "false",
    "client.toolbarMode": "minimal",
    "client.showErrorDetails": "none",
    "theme.base": "light",
    "theme.primaryColor": "#2B5784",
    "theme.textColor": "#1F2933",
}


def command(home: Path, port: int) -> list[str]:
    """What serves the lake of that home on this machine's loopback; see `environment`."""
    if not home.is_absolute():
        raise ValueError(f"the home {home} must be an absolute path")
    options = [f"--{name}={value}" for name, value in OPTIONS.items()]
    # -P: the folder that it is started in may hold a `models` of its own.
    python = [sys.executable, "-P", "-m", "dashboards.serve"]
    return [*python, "run", str(APP), f"--server.port={port}", *options]


def environment(home: Path) -> dict[str, str]:
    """What the command needs beside the environment that it inherits."""
    return {"GPULEDGER_HOME": str(home), "STREAMLIT_BROWSER_GATHER_USAGE_STATS": "false"}


def warm(over: threading.Event) -> None:
    """Load what pages need as soon as the server is up, so that no first visitor waits for it."""
    from streamlit import runtime

    while not runtime.exists():  # before that, Streamlit warns about every cache
        if over.wait(0.05):
            return
    import plotly.graph_objects as go

    from dashboards import (  # noqa: F401
        charts,
        data,
        filters,
        headlines,
        heat,
        idling,
        tables,
        trust,
        use,
        waiting,
    )

    go.Figure(go.Bar(x=[1], y=[1])).update_layout(template="gpuledger").to_json()
    with suppress(data.LakeError):  # the pages will say so
        if data.exists() and (found := data.snapshot()):
            data.opened(found)


def main() -> None:
    """Serve: `python -m dashboards.serve run …`, as `streamlit` would be called."""
    from streamlit.web import cli

    over = threading.Event()
    threading.Thread(target=warm, args=[over]).start()  # no daemon: cut short, it would abort
    try:
        cli.main(prog_name="streamlit")
    finally:
        over.set()


if __name__ == "__main__":
    main()
