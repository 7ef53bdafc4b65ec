"""The page for the reviewer of a plan in a real browser: what it shows, and that it loads nothing else."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar, Final

import pytest

from tests.cli.running import HEALTHY, kframe
from tests.plans.generate.review_page import ReviewPage
from tests.tools import ToolMissing, headless_browser

pytestmark = pytest.mark.real

#: Root has no sandbox, and nothing but the loopback address is resolved.
OPTIONS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
#: Seconds for a page.
LIMIT_S: Final = 120
#: The bars of loads after the plan.
BLUE: Final = (47, 111, 143)


class Requests(SimpleHTTPRequestHandler):
    """Serves a folder, and lists what is requested."""

    paths: ClassVar[list[str]] = []

    def log_message(self, format: str, *args: object) -> None:
        self.paths.append(self.path)


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


@pytest.fixture
def address(page: Path) -> Iterator[str]:
    """The address of the page on a loopback server."""
    Requests.paths.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Requests, directory=str(page.parent)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/{page.name}"
    server.shutdown()
    thread.join()
    server.server_close()


def browser_output(browser: Path, address: str, *options: str) -> str:
    command = [str(browser), *OPTIONS, *options, address]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=LIMIT_S).stdout


def test_browser_shows_tables_and_loads_no_other_resource(browser: Path, page: Path, address: str) -> None:
    displayed, written = ReviewPage(browser_output(browser, address, "--dump-dom")), ReviewPage(page.read_text())
    assert displayed.rows == written.rows
    assert len(displayed.records("brokers")) == 6
    assert set(Requests.paths) <= {f"/{page.name}", "/favicon.ico"}


def test_browser_draws_broker_chart(browser: Path, page: Path, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    target = tmp_path / "page.png"
    browser_output(browser, page.as_uri(), f"--screenshot={target}", "--window-size=1200,1600")
    with image.open(target) as picture:
        assert picture.size == (1200, 1600)
        colours = {colour[:3]: count for count, colour in picture.convert("RGB").getcolors(1 << 24)}
    assert colours[BLUE] > 10_000
