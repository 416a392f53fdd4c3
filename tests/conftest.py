"""What every test may ask for: real components, full sizes, and a machine without our lake on it.

Fixtures that only one file needs belong in that file. GPULEDGER_REQUIRE=all, which CI sets, turns
a missing component into a failure and small sizes into full ones.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

REQUIRE_ALL = os.environ.get("GPULEDGER_REQUIRE") == "all"

# A test must never read or write the lake of whoever runs it.
for name in ("GPULEDGER_CONFIG", "GPULEDGER_HOME", "DAGSTER_HOME"):
    os.environ.pop(name, None)

# A busy machine is not a failure.
settings.register_profile("house", deadline=None)
settings.load_profile("house")


@pytest.fixture(scope="session")
def require() -> Callable[[str, str | None, str], str]:
    """Hands back where a component is; where it is missing, the test skips, or in CI fails."""

    def required(component: str, found: str | None, remedy: str) -> str:
        if found:
            return found
        message = f"{component} is missing: {remedy}"
        if REQUIRE_ALL:
            pytest.fail(message)
        pytest.skip(message)

    return required


@pytest.fixture(scope="session")
def full_size() -> bool:
    """Whether a `long` test runs at the size that the design promises, or at a small one."""
    return REQUIRE_ALL


@pytest.fixture(scope="session")
def traces(require) -> Path:
    """The folder of recorded clusters and public traces, which are too large to ship."""
    told = os.environ.get("GPULEDGER_TRACES", "")
    found = told if told and Path(told).is_dir() else None
    return Path(require("traces", found, "set GPULEDGER_TRACES to their folder")).resolve()


@pytest.fixture(scope="session")
def chromium(require) -> str:
    """The browser that draws the pages, as playwright's `executable_path`."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    return require("chromium", found, "install Debian's package chromium")


@pytest.fixture(scope="session")
def prometheus(require) -> tuple[str, str]:
    """The server that keeps metrics, and the tool that writes what it keeps."""
    remedy = "install Debian's package prometheus"
    server = require("prometheus", shutil.which("prometheus"), remedy)
    return server, require("promtool", shutil.which("promtool"), remedy)
