"""What every test may ask for: real components, full sizes, and a machine without our lake on it.

Fixtures that only one file needs belong in that file. GPULEDGER_REQUIRE=all, which CI sets, turns
a missing component into a failure and small sizes into full ones.
"""

import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from collectors.faults import Fault
from collectors.recorder import Recorder
from models.kubernetes import Watch
from tests import control_plane_build
from tests.control_plane import ControlPlane
from tests.control_plane_api import nodes

REQUIRE_ALL = os.environ.get("GPULEDGER_REQUIRE") == "all"

# A test must never read or write the lake of whoever runs it.
for name in ("GPULEDGER_CONFIG", "GPULEDGER_HOME", "DAGSTER_HOME"):
    os.environ.pop(name, None)

# Tests share the machine, and most have few rows; what is `long` may have all of it.
os.environ.setdefault("GPULEDGER_THREADS", "1")
if not REQUIRE_ALL:
    os.environ.setdefault("POLARS_MAX_THREADS", "1")

# A busy machine is not a failure.
settings.register_profile("house", deadline=None)
settings.load_profile("house")


LONGEST = (
    *(
        "watch",
        "measured_sums",
        "dashboards_browser",
        "measured_truth",
        "bad_input",
        "house",
        "process",
    ),
    *("dagster", "lake_processes", "properties", "truth", "benchmarks", "cli", "large_input"),
    *("prometheus_server", "report_send", "report_figures", "dashboards", "carry"),
)
"""Files in the order in which they begin, before all others: else one would end alone."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Longest first, and without what only a whole run has, or only who asks for it."""
    is_asked = "cluster" in (config.getoption("-m") or "")
    places = {f"test_{name}.py": place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.name, len(places)))
    for item in items:
        if item.get_closest_marker("whole") and not REQUIRE_ALL:
            item.add_marker(pytest.mark.skip(reason="GPULEDGER_REQUIRE=all runs it"))
        if item.get_closest_marker("cluster") and not is_asked:
            item.add_marker(pytest.mark.skip(reason="`-m cluster` runs it"))


@pytest.fixture(autouse=True)
def of_its_own(request, monkeypatch) -> Iterator[None]:
    """A long test has the machine's threads; none leaves signals as others do not expect them."""
    if REQUIRE_ALL and any(map(request.node.get_closest_marker, ("long", "whole"))):
        monkeypatch.delenv("GPULEDGER_THREADS")
    before = {sign: signal.getsignal(sign) for sign in (signal.SIGINT, signal.SIGTERM)}
    yield
    for sign, handler in before.items():
        # Dagster has a process ignore these once it has run something in it.
        signal.signal(sign, handler)


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


@pytest.fixture(scope="session")
def binaries(require) -> dict[str, Path]:
    """The control plane's processes, by their names; a plain run never builds them."""
    try:
        there = control_plane_build.build() if REQUIRE_ALL else control_plane_build.found()
    except control_plane_build.NotBuilt as problem:
        pytest.fail(str(problem))
    require("the control plane", "built" if there else None, control_plane_build.REMEDY)
    require("openssl", shutil.which("openssl"), "install Debian's package openssl")
    return there or {}


@pytest.fixture(scope="session")
def kueue_binaries(require, binaries) -> dict[str, Path]:
    """Those, and Kueue, JobSet and the Trainer; only `-m cluster` asks for them."""
    wanted = control_plane_build.COMPONENTS + control_plane_build.QUEUEING
    try:
        build = control_plane_build.build if REQUIRE_ALL else control_plane_build.found
        there = build(wanted)
    except control_plane_build.NotBuilt as problem:
        pytest.fail(str(problem))
    remedy = "run `uv run python -m tests.control_plane_build --kueue`"
    require("Kueue", "built" if there else None, remedy)
    require("unshare", shutil.which("unshare"), "install Debian's package util-linux")
    return there or {}


@pytest.fixture(scope="module")
def plane(tmp_path_factory, binaries) -> Iterator[ControlPlane]:
    """A cluster with twelve nodes of eight GPUs."""
    with ControlPlane(tmp_path_factory.mktemp("plane"), binaries) as plane:
        plane.api().create_all(nodes(12))
        yield plane


@pytest.fixture
def recording(tmp_path: Path, plane: ControlPlane) -> Iterator[Callable[..., Recorder]]:
    """Starts a recorder of `plane` in this process; it ends with the test."""
    running: list[tuple[Recorder, threading.Thread]] = []

    def start(kubeconfig: Path | None = None, folder: str = "spool", **told: Any) -> Recorder:
        settings = Watch(kubeconfig=kubeconfig or plane.kubeconfig(), **told)
        said = tmp_path / "said"

        def tell(line: str) -> None:
            with said.open("a") as file:
                file.write(line + "\n")

        recorder = Recorder(settings, tmp_path / folder, tell)

        def run() -> None:
            with suppress(Fault):  # a Lease that is lost; what it says is in the status
                recorder.run()

        thread = threading.Thread(target=run)
        thread.start()
        running.append((recorder, thread))
        return recorder

    yield start
    for recorder, _ in running:
        recorder.stop.set()
    for _, thread in running:
        thread.join(30)
