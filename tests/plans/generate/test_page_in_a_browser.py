"""The page for the reviewer of a plan in a real browser: what it shows."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.cli.running import HEALTHY, kframe
from tests.plans.generate.review_page import ReviewPage
from tests.tools import ToolMissing, headless_browser

pytestmark = pytest.mark.real

#: Root has no sandbox, and no name is resolved.
OPTIONS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--host-resolver-rules=MAP * ~NOTFOUND",
)
#: Seconds for a page.
LIMIT_S: Final = 120
#: The bars of loads after the plan.
BLUE: Final = (47, 111, 143)


@pytest.fixture(scope="module")
def browser() -> Path:
    try:
        return headless_browser()
    except ToolMissing as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    plan = kframe(
        "plan", "generate", HEALTHY, "--rebalance", "--out", folder / "plan.json", "--report", folder / "p.html"
    )
    assert plan.exit_code == 0
    return folder / "p.html"


def browser_output(browser: Path, address: str, *options: str) -> str:
    command = [str(browser), *OPTIONS, *options, address]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=LIMIT_S).stdout


def test_browser_shows_all_tables(browser: Path, page: Path) -> None:
    displayed, written = ReviewPage(browser_output(browser, page.as_uri(), "--dump-dom")), ReviewPage(page.read_text())
    assert displayed.rows == written.rows
    assert len(displayed.records("brokers")) == 6


def test_browser_draws_broker_chart(browser: Path, page: Path, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    target = tmp_path / "page.png"
    browser_output(browser, page.as_uri(), f"--screenshot={target}", "--window-size=1200,1600")
    with image.open(target) as picture:
        assert picture.size == (1200, 1600)
        colours = {colour[:3]: count for count, colour in picture.convert("RGB").getcolors(1 << 24)}
    assert colours[BLUE] > 10_000
