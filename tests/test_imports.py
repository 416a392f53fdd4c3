"""The import law: who may import what, third parties included, and what may not load Dagster.

A folder that needs one more package gets it here, where the change is seen; what a module says
about itself is in test_documents.py.
"""

import ast
import inspect
import json
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MAY_IMPORT = {
    "models": {"polars", "pydantic", "yaml"},
    "collectors": {
        *("models", "filelock", "orjson", "polars", "pyarrow", "yaml"),
        *("kubernetes", "prometheus_api_client", "requests", "urllib3"),
    },
    "lake": {"models", "sql", "duckdb", "duckdb_extension*", "filelock", "polars", "pyarrow"},
    "sql": {"duckdb"},
    "pipelines": {
        *("collectors", "lake", "models", "simulator", "sql"),
        *("dagster", "duckdb", "filelock", "polars", "pydantic", "rich", "typer", "yaml"),
    },
    "dashboards": {"lake", "models", "sql", "plotly", "polars", "streamlit"},
    "simulator": {"yaml"},  # independent of the rest, or its truth would prove nothing
    "examples": set(),
    # Its peer is prometheus_api_client, its server the one that the tests start.
    "benchmarks": {"collectors", "lake", "models", "pipelines", "tests", "duckdb", "polars"}
    | {"orjson", "prometheus_api_client", "requests"},
}
LIGHT_COMMANDS = {
    "query": ["query", "select 1"],
    "explain": ["explain", "mart.team_days", "held_gpu_seconds", "team_name=a"],
    "status": ["status"],
    "report": ["report", "weekly", "--dry-run"],
}


def files(layer: str) -> list[Path]:
    return sorted((ROOT / layer).rglob("*.py"))


def imported(tree: ast.AST) -> set[str]:
    """Every name that the code imports at any depth, also by `import_module("literal")`."""
    names = set()
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                names |= {alias.name for alias in node.names}
            case ast.ImportFrom(module=str(module), level=0):
                names |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
            case ast.Call(
                func=ast.Name(id="__import__" | "import_module")
                | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(module)), *_],
            ):
                names.add(module)
    return names


def sources(name: str) -> list[Path]:
    """Our own files that importing a dotted name runs: the module, and the packages around it."""
    parts = name.split(".")
    if parts[0] not in MAY_IMPORT:
        return []
    stems = [ROOT.joinpath(*parts[:depth]) for depth in range(1, len(parts) + 1)]
    tried = [path for stem in stems for path in (stem / "__init__.py", stem.with_suffix(".py"))]
    return [path for path in tried if path.exists()]


def reachable(names: set[str]) -> set[str]:
    """All that may be imported from these names on, through our own files, lazy imports too."""
    seen: set[str] = set()
    while names - seen:
        name = (names - seen).pop()
        seen.add(name)
        for path in sources(name):
            names = names | imported(ast.parse(path.read_text()))
    return seen


def roots(names: set[str]) -> set[str]:
    return {name.split(".")[0] for name in names}


def loaded_by(code: str, folder: Path) -> set[str]:
    """The modules in memory after a fresh interpreter ran the code, to its end or its error."""
    report = folder / "modules.json"
    tail = (
        "\nfinally:\n    import json, pathlib, sys"
        f"\n    pathlib.Path({str(report)!r}).write_text(json.dumps(list(sys.modules)))"
    )
    subprocess.run(
        [sys.executable, "-c", "try:\n    " + code.replace("\n", "\n    ") + tail],
        cwd=folder,
        capture_output=True,
        timeout=60,
    )
    return set(json.loads(report.read_text()))


@pytest.mark.parametrize("layer", MAY_IMPORT)
def test_a_layer_imports_only_what_it_may(layer):
    allowed = {layer, *MAY_IMPORT[layer]}
    for path in files(layer):
        found = roots(imported(ast.parse(path.read_text()))) - sys.stdlib_module_names
        strangers = {name for name in found if not any(fnmatch(name, a) for a in allowed)}
        assert not strangers, f"{path.relative_to(ROOT)} imports {sorted(strangers)}"


@pytest.mark.parametrize(
    ("package", "home"),
    [("dagster", "pipelines"), ("streamlit", "dashboards"), ("duckdb_extension*", "lake")],
)
def test_the_package_is_known_to_one_folder_only(package, home):
    assert [layer for layer, allowed in MAY_IMPORT.items() if package in allowed] == [home]


def test_only_the_lake_names_ducklake():
    for path in (path for layer in MAY_IMPORT if layer != "lake" for path in files(layer)):
        tree = ast.parse(path.read_text())
        prose = {
            id(node.value)  # docstrings, also those of attributes
            for node in ast.walk(tree)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and id(node) not in prose:
                where = f"{path.relative_to(ROOT)}:{node.lineno}"
                assert "ducklake" not in str(node.value).lower(), where


def test_the_command_line_starts_without_dagster(tmp_path):
    loaded = loaded_by("import pipelines.cli", tmp_path)
    assert "pipelines.cli" in loaded
    assert not loaded & {"dagster"}


@pytest.mark.parametrize("command", LIGHT_COMMANDS)
def test_nothing_that_a_light_command_can_reach_imports_dagster(command):
    from pipelines.cli import app

    registered = {
        info.name or info.callback.__name__: info.callback
        for info in app.registered_commands
        if info.callback
    }
    body = ast.parse(inspect.cleandoc(inspect.getsource(registered[command])))
    lazily = reachable(imported(body))
    module = registered[command].__module__
    assert "dagster" not in roots(lazily), f"{module}: {command} reaches Dagster"


@pytest.mark.parametrize("command", LIGHT_COMMANDS)
def test_a_light_command_runs_without_dagster(command, tmp_path):
    argv = ["gpuledger", *LIGHT_COMMANDS[command]]
    code = f"import sys\nsys.argv = {argv!r}\nfrom pipelines.cli import main\nmain()"
    loaded = loaded_by(code, tmp_path)
    assert "pipelines.cli" in loaded
    assert not loaded & {"dagster"}
