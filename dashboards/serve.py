"""How the dashboard is started: the command and its environment; starting it belongs to the CLI."""

import sys
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
    return [sys.executable, "-m", "streamlit", "run", str(APP), f"--server.port={port}", *options]


def environment(home: Path) -> dict[str, str]:
    """What the command needs beside the environment that it inherits."""
    return {"GPULEDGER_HOME": str(home), "STREAMLIT_BROWSER_GATHER_USAGE_STATS": "false"}
