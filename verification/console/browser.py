"""Debian's Chromium for tests and benchmarks of the console, driven by Playwright.

A ``Visit`` is a window of a new profile. When it ends, it fails for each error in the console of the browser, each
violation of the Content-Security-Policy, and each request to another host.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeAlias, TypeVar
from urllib.parse import unquote_plus, urlsplit

from tests import tools

Value = TypeVar("Value")

#: Root has no sandbox. Nothing is fetched in the background, and no name but this machine's is resolved.
OPTIONS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1",
)
#: Seconds for a page and for whatever a test awaits. Only a failing test takes so long, also on a busy machine.
LIMIT_S: Final = 60
#: Size of a window in CSS pixels.
WINDOW: Final = {"width": 1280, "height": 800}
_LOCAL_SCHEMES: Final = ("data", "blob", "about")
_CELLS: Final = "(rows) => rows.map((row) => [...row.querySelectorAll('td')].map((cell) => cell.textContent.trim()))"
_VIOLATIONS: Final = """
addEventListener("securitypolicyviolation", (event) =>
  console.error(`Content-Security-Policy: ${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}`));
"""


@contextmanager
def chromium(options: Sequence[str] = ()) -> Iterator[Any]:
    """A running Chromium, as a ``Browser`` of Playwright. Raises ToolMissing."""
    modules, path = str(tools.group_modules("browser")), tools.headless_browser()
    if modules not in sys.path:
        sys.path.append(modules)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(path), args=[*OPTIONS, *options])
        try:
            yield browser
        finally:
            browser.close()


class Visit:
    """A window on a console, and what it must not do."""

    def __init__(self, context: Any, url: str) -> None:
        self.url, self.problems = url, list[str]()
        self._allowed: list[re.Pattern[str]] = []
        self._hosts = {urlsplit(url).netloc}
        context.add_init_script(_VIOLATIONS)
        context.on("request", self._check_host)
        self.page = context.new_page()
        self.page.set_default_timeout(1_000 * LIMIT_S)
        self.page.on("console", self._check_message)
        self.page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))

    def open(self, path: str) -> None:
        """Go to a page of the console by its address. Wait for its computation and its table."""
        self.page.goto(path)
        self.await_content()

    def await_content(self) -> None:
        """Wait until the page shows a result instead of a progress, and the rows of its table."""
        self.page.wait_for_load_state()
        self.until(lambda: not self.page.locator("section#job").count())
        if self.page.locator("regular-table").count() and self.text("#total") != "0":
            self.rows()

    def allow(self, expression: str) -> None:
        """Accept errors in the console of the browser that match."""
        self._allowed.append(re.compile(expression))

    def allow_host(self, url: str) -> None:
        """Accept requests to the host and port of a URL."""
        self._hosts.add(urlsplit(url).netloc)

    def text(self, selector: str = "main") -> str:
        """The text that an element shows."""
        return str(self.page.locator(selector).first.inner_text())

    def rows(self) -> list[list[str]]:
        """The cells in view of the table on the page, once it has some."""
        return self.until(self.cells)

    def cells(self) -> list[list[str]]:
        """The cells in view of the table on the page."""
        self.page.wait_for_load_state()
        cells: list[list[str]] = self.page.locator("regular-table tbody tr").evaluate_all(_CELLS)
        return [row for row in cells if row]

    def cell_link(self, text: str) -> Any:
        """The first link with this text in the table on the page, once it has rows."""
        self.rows()
        return self.page.locator("tbody").get_by_role("link", name=text, exact=True).first

    def path(self) -> str:
        """The address of the page without the host, with its parameters as they are read."""
        parts = urlsplit(self.page.url)
        return unquote_plus(f"{parts.path}?{parts.query}" if parts.query else parts.path)

    def until(self, read: Callable[[], Value], accept: Callable[[Value], bool] = bool) -> Value:
        """What ``read`` returns as soon as it is accepted. Raises TimeoutError with the last value."""
        end = time.monotonic() + LIMIT_S
        while not accept(value := read()):
            if time.monotonic() > end:
                raise TimeoutError(f"after {LIMIT_S} s on {self.path()}: found {value!r}")
            self.page.wait_for_timeout(20)
        return value

    def follow(self, path: str) -> None:
        """Wait until the page has this address and its content."""
        self.until(self.path, path.__eq__)
        self.await_content()

    def _check_host(self, request: Any) -> None:
        parts = urlsplit(request.url)
        if parts.scheme not in _LOCAL_SCHEMES and parts.netloc not in self._hosts:
            self.problems.append(f"request to another host: {request.url}")

    def _check_message(self, message: Any) -> None:
        if message.type in ("error", "warning") and not any(each.search(message.text) for each in self._allowed):
            self.problems.append(f"{message.type} in the console of the browser: {message.text}")


#: Opens a console on a port of this machine. Keyword arguments are options of a context of Playwright.
Open: TypeAlias = Callable[..., Visit]


@contextmanager
def visiting(browser: Any, port: int, scheme: str = "http", **options: Any) -> Iterator[Visit]:
    """A visit of the console on a port of this machine; ``options`` are those of a context of Playwright."""
    url = f"{scheme}://127.0.0.1:{port}"
    context = browser.new_context(**{"base_url": url, "viewport": WINDOW, "color_scheme": "light", **options})
    try:
        visit = Visit(context, url)
        yield visit
    finally:
        context.close()
    if visit.problems:
        raise AssertionError("; ".join(visit.problems))
