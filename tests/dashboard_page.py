"""A page opened without a browser, and what it shows: for all tests of pages.

What it must show is said in the tests.
"""

import sys
from functools import cache
from pathlib import Path

import pytest
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest

from tests.dashboard_data import published_home

APP = Path(__file__).parents[1] / "dashboards" / "app.py"

# Each AppTest would look through all installed packages for components anew.
manifest_scanner.scan_component_manifests = cache(manifest_scanner.scan_component_manifests)


def opened(monkeypatch, home: Path, page: str = "where", **query: str | list[str]) -> AppTest:
    """A page, drawn for a lake and a URL."""
    # AppTest puts the page in the place of `__main__`, which a spawned process would then run.
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    monkeypatch.setenv("GPULEDGER_HOME", str(home))
    app = AppTest.from_file(str(APP), default_timeout=60)
    for name, value in query.items():
        app.query_params[name] = value
    if page != "where":
        app.switch_page(f"views/{page}.py")
    app.run()
    assert not app.exception, app.exception
    return app


@cache
def usual(page: str, **query: str | tuple[str, ...]) -> AppTest:
    """A page of the made-up fleet, drawn once: for tests that only look at it."""
    told = {name: list(v) if isinstance(v, tuple) else v for name, v in query.items()}
    with pytest.MonkeyPatch.context() as patch:
        return opened(patch, published_home(), page, **told)


def shown(app: AppTest) -> dict[str, str]:
    """The headlines: name and figure."""
    return {metric.label: metric.value for metric in app.metric}


def words(app: AppTest) -> str:
    """All that the page says in text of its own."""
    kinds = (app.title, app.subheader, app.markdown, app.caption, app.text, app.code)
    return "\n".join(str(element.value) for kind in kinds for element in kind)


def table(app: AppTest, column: str, place: int = 0) -> list[dict]:
    """The rows of the n-th table that has that column, shown or in its CSV."""
    found = [each.value for each in app.dataframe if column in each.value.columns]
    return found[place].to_dict("records")
