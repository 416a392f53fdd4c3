"""Homes and lakes that cannot be used, and mappings that one cluster of several cannot use.

What may be wrong with the input itself is in test_bad_input.py.
"""

import shutil

import pytest

from lake.home import Home
from lake.writer import writer
from tests.bad_input import TRACE, call, published, swapped, written

MAPPING = "given/mapping.yaml"


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lake")
    answer = call(folder / "home", "run", "--config", written(folder, TRACE, "site"))
    assert answer.exit_code == 0, answer.output
    return folder / "home"


@pytest.mark.parametrize("words", [("run",), ("query", "select 1"), ("status",), ("doctor",)])
def test_a_home_that_cannot_be_used_is_told(words, tmp_path):
    path = written(tmp_path, TRACE, "site")
    home = tmp_path / "home"
    home.write_text("a file, where a folder belongs")
    answer = call(home, *words, "--config", path)
    assert str(home) in answer.output
    assert answer.exit_code == 2, answer.output


@pytest.mark.parametrize("words", [("run",), ("query", "select 1"), ("status",), ("doctor",)])
def test_a_lake_of_a_newer_gpuledger_is_left_alone(words, lake, tmp_path):
    newer = shutil.copytree(lake, tmp_path / "home")
    with writer(Home(newer)) as con:
        con.execute("update lake.meta.lake set schema_number = 99")
    answer = call(newer, *words, "--config", written(tmp_path, TRACE, "site"))
    assert "schema 99, newer than this gpuledger's" in answer.output
    assert "upgrade gpuledger" in answer.output
    assert answer.exit_code in (1, 2)


def test_a_mapping_that_does_not_fit_stops_its_own_cluster_only(tmp_path):
    path = written(tmp_path, TRACE, "bad", swapped(MAPPING, "ended: gone", "ended: gonne"))
    other = "{kind: table, path: given, mapping: given/good.yaml}"
    path.write_text(
        path.read_text().replace("teams:", f"  - {{name: good, sources: [{other}]}}\nteams:")
    )
    (tmp_path / "given/good.yaml").write_bytes(TRACE[MAPPING])
    answer = call(tmp_path / "home", "run", "--config", path)
    assert answer.exit_code == 2, answer.output
    assert "no column gonne" in answer.output
    assert published(tmp_path / "home", "bad") is None
    assert published(tmp_path / "home", "good") is not None
