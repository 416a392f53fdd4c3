"""The pages in a real browser: what is seen, what scrolls, what the console says, what a URL keeps.

The figures behind them are tested without a browser in test_dashboards.py.
"""

import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, sync_playwright

from dashboards import serve
from lake.home import Home
from lake.read import Door
from models import figures
from tests.dashboard_data import published_home

QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--no-first-run",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
]
PAGES = {
    "": "Where did the GPU-hours",
    "who": "Who spent",
    "used": "Allocated or used",
    "idle": "Which GPUs are idle now",
    "waits": "How long do jobs",
    "startup": "Where does starting go",
    "wrong": "What went wrong",
    "health": "GPU health",
    "blind": "What are we blind to",
}
PATIENCE = 30_000
# The last part of a path may be a page, or where a proxy serves the whole: Streamlit's browser side
# cannot know, and asks there first. Only its own server could tell it, and has no setting for it.
OWN_DETOURS = ("/_stcore/health", "/_stcore/host-config")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Iterator[str]:
    """The dashboard as the commands serve it, over the made-up lake; its address."""
    home, port = published_home(), free_port()
    log = tmp_path_factory.mktemp("site") / "log"
    foreign = log.parent / "models" / "__init__.py"  # where it is started must not matter
    foreign.parent.mkdir()
    foreign.write_text("raise ImportError('a package of somebody else')")
    with log.open("wb") as out:
        process = subprocess.Popen(
            serve.command(home, port),
            env={**os.environ, **serve.environment(home)},
            cwd=log.parent,
            stdout=out,
            stderr=out,
        )
        try:
            address = f"http://127.0.0.1:{port}"
            wait_for(f"{address}/_stcore/health", process, log)
            yield address
        finally:
            process.terminate()
            process.wait(20)


def wait_for(address: str, process: subprocess.Popen, log: Path) -> None:
    for _ in range(300):
        assert process.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(address, timeout=1):
                return
        except OSError:
            time.sleep(0.1)
    pytest.fail(f"no answer from {address}: {log.read_text()}")


@pytest.fixture(scope="module")
def browser(chromium) -> Iterator[BrowserContext]:
    """One for all, so that each page need not load Streamlit's own files anew."""
    with sync_playwright() as play:
        engine = play.chromium.launch(executable_path=chromium, args=QUIET)
        yield engine.new_context(viewport={"width": 1280, "height": 900})
        engine.close()


@pytest.fixture
def page(browser) -> Iterator[Page]:
    tab = browser.new_page()
    tab.set_default_timeout(PATIENCE)
    yield tab
    tab.close()


def visit(page: Page, address: str, mark: str = "[data-testid=stMetricValue]") -> None:
    """Open an address and wait until the page is drawn."""
    page.goto(address)
    settle(page, mark)


def settle(page: Page, mark: str = "[data-testid=stMetricValue]") -> None:
    """Wait until the script has ended and all that it drew is on the screen."""
    page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for()
    page.locator(mark).first.wait_for()
    page.get_by_text("at book price").first.wait_for()
    page.locator("[data-stale=true], [data-testid=stSkeleton]").first.wait_for(state="detached")


def figures_of(page: Page) -> dict[str, str]:
    cards = page.get_by_test_id("stMetric").all()
    return {
        card.get_by_test_id("stMetricLabel").inner_text().strip(): card.get_by_test_id(
            "stMetricValue"
        )
        .inner_text()
        .strip()
        for card in cards
    }


@pytest.mark.parametrize(
    "path", [pytest.param(path, marks=[pytest.mark.whole] if path else []) for path in PAGES]
)
def test_a_page_opens_without_error_scrolling_a_foreign_server_or_a_hostile_name(page, site, path):
    ran: list[str] = []
    page.on("dialog", lambda dialog: (ran.append(dialog.message), dialog.dismiss()))
    complaints: list[str] = []
    asked: list[str] = []
    page.on("console", lambda m: complaints.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("response", lambda r: asked.append(r.url) if r.status >= 400 else None)
    foreign: list[str] = []
    page.on("request", lambda r: foreign.append(r.url) if is_foreign(r.url, site) else None)
    visit(page, f"{site}/{path}")
    assert PAGES[path] in page.locator("h1").inner_text()
    page.wait_for_timeout(500)
    assert not [url for url in asked if not url.endswith(OWN_DETOURS)]
    assert not [text for text in complaints if "Failed to load resource" not in text]
    assert not foreign
    assert page.locator("a[href*='evil.example'], img[src='x']").count() == 0
    assert not ran
    main = page.get_by_test_id("stMain")
    assert main.evaluate("e => e.scrollWidth <= e.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def is_foreign(url: str, site: str) -> bool:
    return not url.startswith((site, site.replace("http", "ws", 1), "data:", "blob:"))


@pytest.mark.whole
def test_the_figures_on_the_screen_are_the_marts_sums(page, site):
    visit(page, f"{site}/who?team=vision&period=7+days")
    with Door(Home(published_home())) as door:
        [(cost, held)] = (
            door.query(
                "select sum(team_cost), sum(gpu_seconds) from mart.team_days "
                "where team_name = 'vision' and day_on >= '2026-11-23'"
            )
            .pl()
            .iter_rows()
        )
    found = figures_of(page)
    assert found["Cost of teams"] == figures.money(cost, "USD")
    assert found["Held by teams"] == figures.hours(held)


def test_an_address_opens_on_one_workload_and_a_click_leads_back_to_all(page, site):
    visit(page, f"{site}/idle?workload=alpha%2Fvision%2Fsweep-17&period=7+days")
    assert page.get_by_text("Only the workload sweep-17").is_visible()
    assert figures_of(page)["Idle GPUs"] == "3"
    assert page.get_by_test_id("stCode").get_by_text("3 of 8 GPUs idle since").is_visible()
    page.get_by_role("button", name="All workloads").click()
    page.wait_for_url(lambda address: "workload" not in address)
    settle(page)
    assert figures_of(page)["Idle GPUs"] == "17"
    assert "period=7" in page.url


@pytest.mark.whole
def test_a_message_to_an_owner_can_be_copied_with_its_address(page, site):
    visit(page, f"{site}/idle?workload=alpha%2Fvision%2Fsweep-17")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_test_id("stCode").hover()
    page.get_by_role("button", name="Copy to clipboard").click()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("To: oncall@example.com")
    assert f"{site}/idle?workload=alpha%2Fvision%2Fsweep-17" in copied


@pytest.mark.whole
def test_a_node_of_the_map_opens_into_its_gpus(page, site):
    visit(page, f"{site}/used?cluster=alpha&period=7+days&node=h100-01")
    maps = page.locator(".js-plotly-plot .heatmaplayer")
    assert maps.count() == 2
    labels = page.locator(".js-plotly-plot").last.locator(".ytick text").all_text_contents()
    assert len(labels) == 8
    assert all(label.startswith("GPU ") for label in labels)


@pytest.mark.whole
def test_a_filter_survives_a_reload_and_another_page(page, site):
    visit(page, f"{site}/who")
    page.get_by_text("7 days", exact=True).click()
    page.wait_for_url("**period=7*")
    page.get_by_text("2026-11-23 to 2026-11-29").first.wait_for()
    settle(page)
    before = figures_of(page)
    page.reload()
    settle(page)
    assert page.get_by_text("2026-11-23 to 2026-11-29").first.is_visible()
    assert figures_of(page) == before
    page.get_by_role("button", name="Jobs").click()
    page.get_by_text("How long do jobs wait?", exact=True).click()
    page.get_by_role("heading", name="How long do jobs wait?").wait_for()
    settle(page)
    assert "period=7" in page.url
    assert page.get_by_text("2026-11-23 to 2026-11-29").first.is_visible()


@pytest.mark.whole
def test_a_period_without_data_says_what_to_do(page, site):
    visit(page, f"{site}/?period=dates&dates=2026-01-01&dates=2026-01-31", mark="h3")
    assert page.get_by_text("No data published for this period").is_visible()


@pytest.mark.whole
def test_only_the_safe_download_is_offered(page, site):
    visit(page, f"{site}/who")
    table = page.get_by_test_id("stDataFrame").first
    table.hover()
    assert not page.get_by_role("button", name="Download as CSV").first.is_visible()
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV", exact=False).first.click()
    rows = Path(download.value.path()).read_text().splitlines()
    assert "snapshot-" in download.value.suggested_filename
    assert [row for row in rows if row.startswith("\"'=HYPERLINK")]
