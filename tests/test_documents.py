"""The documents and the code say the same: docstrings, sizes, commands, links, the dictionary.

That each public function and class has a docstring is ruff's work (D1, in test_house.py).
"""

import ast
import re
from pathlib import Path

import pytest
import typer

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
FOLDERS = (
    "models collectors lake sql pipelines dashboards simulator tests benchmarks deploy examples"
)
MODULES = sorted(path for folder in FOLDERS.split() for path in (ROOT / folder).rglob("*.py"))
DOCUMENTS = [README, *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [*DOCUMENTS, *(p for f in ("deploy", "examples") for p in sorted((ROOT / f).rglob("*.md")))]

MOST_LINES = 400
LONGER: dict[str, str] = {}  # path: why it is better in one piece

FENCE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)[^)]*\)")
# A command stands where a line, a code span or a chain of commands begins; prose does not.
COMMAND = re.compile(r"(?:^\s*|`|\$ |uv run |&& |; )gpuledger ([a-z][a-z-]*)", re.MULTILINE)


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def code_of(text: str) -> str:
    """The fenced blocks and the code spans of a page."""
    fences = FENCE.findall(text)
    spans = re.findall(r"`[^`\n]+`", FENCE.sub("", text))
    return "\n".join([*fences, *spans])


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as code hosts make them."""
    titles = re.findall(r"^#+ +(.+?) *$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def commands() -> dict[str, bool]:
    """The commands of the command line, and whether each is shown to people."""
    from pipelines.cli import app

    found = vars(typer.main.get_command(app))["commands"]
    return {name: not command.hidden for name, command in found.items()}


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_a_module_opens_by_saying_what_belongs_in_it(path):
    assert ast.get_docstring(ast.parse(path.read_text())), f"{name(path)} has no docstring"


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_a_file_is_short_enough_to_read(path):
    lines = path.read_text().count("\n")
    if name(path) in LONGER:
        assert lines > MOST_LINES, f"{name(path)} needs no exception any more"
    else:
        assert lines <= MOST_LINES, f"{name(path)} has {lines} lines"


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_every_command_that_a_page_names_exists(path):
    named = set(COMMAND.findall(code_of(path.read_text())))
    assert named <= commands().keys()


def test_every_command_is_documented():
    named = {c for page in DOCUMENTS for c in COMMAND.findall(code_of(page.read_text()))}
    assert {command for command, shown in commands().items() if shown} <= named


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_every_relative_link_leads_somewhere(path):
    for link in LINK.findall(FENCE.sub("", path.read_text())):
        if re.match(r"[a-z]+:", link):
            continue
        target, _, anchor = link.partition("#")
        there = (path.parent / target).resolve() if target else path
        assert there.exists(), f"{name(path)} links to {link}"
        if anchor and there.suffix == ".md":
            assert anchor in anchors(there.read_text()), f"{name(path)} links to {link}"


@pytest.mark.parametrize("words", ["pip install uv && uv run gpuledger demo", "uv run pytest"])
def test_the_first_screen_of_the_readme_says_how_to_begin(words):
    assert words in "\n".join(README.read_text().splitlines()[:40])


def test_the_dictionary_is_what_the_contracts_say_now():
    from models import dictionary

    assert (ROOT / "docs/dictionary.md").read_text() == dictionary.render()
