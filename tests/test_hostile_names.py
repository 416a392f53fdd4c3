"""Names from clusters that attack what shows them: a spreadsheet, a browser.

Each way to write a cell or a label is in the tests of its module; here a whole lake of them.
"""

import csv
import io
from pathlib import Path

import polars as pl
import pytest

from dashboards import tables
from lake.home import Home
from lake.read import Door
from pipelines import cli_read
from tests.bad_input import TRACE, added, call, written
from tests.dashboard_page import opened

HOSTILE = "=cmd|' /C calc'!A0"
MARKUP = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory) -> Path:
    """A lake of a trace whose teams and workloads have names that attack what shows them."""
    names = added("given/pods.csv", f"{MARKUP},0,60,90,3690,one,Succeeded,1,{HOSTILE}\n")
    path = written(tmp_path_factory.mktemp("hostile"), TRACE, "site", names)
    answer = call(path.parent / "home", "run", "--config", path)
    assert answer.exit_code == 0, answer.output
    return path.parent / "home"


def test_a_name_that_is_a_formula_is_a_text_in_every_csv(hostile):
    query = "select team_name, team_cost from mart.team_days order by all"
    answer = call(hostile, "query", query, "--format", "csv")
    cells = [cells[0] for cells in csv.reader(io.StringIO(answer.stdout))]
    assert f"'{HOSTILE}" in cells
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))]
    with Door(Home(hostile)) as door:
        page = tables.csv(door.query(query).pl()).decode()
    assert [cells[0] for cells in csv.reader(io.StringIO(page))] == cells


def test_no_text_begins_a_row_of_its_own_in_a_csv(capsys):
    """Readers take a carriage return outside of quotes for the end of a row."""
    texts = ["a\r=1+1", "\r=1+1", "a\r\n=1+1", " =1+1", "\uff1d1+1"]
    cli_read.write(["user_name"], [(text,) for text in texts], "csv")
    page = tables.csv(pl.DataFrame({"user_name": texts})).decode()
    for written_text in (capsys.readouterr().out, page):
        assert "\r" not in written_text
        cells = [row[0] for row in csv.reader(io.StringIO(written_text))]
        assert cells == ["user_name", "a\n=1+1", "'\n=1+1", "a\n=1+1", "' =1+1", "'\uff1d1+1"]


def test_a_name_that_is_markup_is_shown_as_it_is_written(hostile, monkeypatch):
    app = opened(monkeypatch, hostile, "who")
    shown = [table.value for table in app.dataframe]
    assert any(MARKUP in str(frame.to_dict()) for frame in shown)
    rendered = [e.value for kind in (app.markdown, app.caption, app.title) for e in kind]
    assert not [text for text in rendered if "<img" in str(text)]
