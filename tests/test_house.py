"""The tools of the house: format, lint, types, SQL style and the lock, each as one test.

What a tool cannot know is in test_imports.py (who may import what) and test_documents.py.
"""

import itertools
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests import lock

ROOT = Path(__file__).parents[1]
FOLDERS = (
    "models collectors lake sql pipelines dashboards simulator tests benchmarks deploy examples"
)
PRESENT = [folder for folder in FOLDERS.split() if (ROOT / folder).is_dir()]

TOOLS = {
    "ruff check": ["ruff", "check", "--quiet", *PRESENT],
    "ruff format": ["ruff", "format", "--diff", "--quiet", *PRESENT],
    "basedpyright": ["basedpyright", "--level", "error", "--pythonpath", sys.executable, *PRESENT],
    "sqlfluff": ["sqlfluff", "lint", "--disable-progress-bar", "--processes", "2", "sql"],
}
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PLATFORMS = ("linux", "darwin", "win32")


def pins(lines: list[str], python: str, platform: str) -> set[str]:
    """What these requirement lines install on one kind of machine."""
    machine = {
        "python_version": python,
        "python_full_version": f"{python}.0",
        "sys_platform": platform,
    }
    found = [Requirement(line) for line in lines]
    return {f"{r.name}{r.specifier}" for r in found if not r.marker or r.marker.evaluate(machine)}


@pytest.mark.parametrize("tool", TOOLS)
def test_the_tool_finds_nothing(tool):
    answer = subprocess.run(
        [sys.executable, "-m", *TOOLS[tool]], cwd=ROOT, capture_output=True, text=True
    )
    assert answer.returncode == 0, f"{tool}:\n{answer.stdout}{answer.stderr}"


def test_every_dependency_is_locked_as_uv_resolves_it():
    # uv words a marker differently from version to version, so compare what gets installed.
    locked, resolved = lock.locked(), lock.exported("--locked")
    for machine in itertools.product(PYTHONS, PLATFORMS):
        hint = f"{machine}: run `uv run python -m tests.lock`"
        assert pins(locked, *machine) == pins(resolved, *machine), hint


def test_the_lock_pins_each_package_to_one_version():
    for pin in map(Requirement, lock.locked()):
        assert [part.operator for part in pin.specifier] == ["=="], pin
