"""Pages of a console in Chromium that show the end of a broker, and when each does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Final

from verification.console.browser import Visit, visiting
from verification.console.live.clusters import WatchedCluster
from verification.console.running import running_console

#: What shows the end of a broker: the page, and a function of its id in JavaScript.
MARKS: Final[Mapping[str, tuple[str, str]]] = {
    "overview": (
        "/",
        '(id) => [...document.querySelectorAll(".broker.down a")].some((link) => parseInt(link.textContent) === id)',
    ),
    "brokers": (
        "/brokers",
        """(id) => {
          const names = [...document.querySelectorAll("regular-table thead th")].map((cell) => cell.textContent.trim());
          for (const row of document.querySelectorAll("regular-table tbody tr")) {
            const cells = [...row.querySelectorAll("td")].map((cell) => cell.textContent.trim());
            const value = (name) => cells[names.indexOf(name)];
            if (value("broker id") === String(id)) return value("registered") === "no" || value("fenced") === "yes";
          }
          return false;
        }""",
    ),
    "events": (
        "/live",
        """(id) => {
          const texts = [...document.querySelectorAll("ol.events li span")].map((event) => event.textContent);
          const newest = texts.find((text) => text.startsWith(`broker ${id} is `));
          return /(fenced|unregistered)$/.test(newest ?? "");
        }""",
    ),
    "controller": (
        "/live",
        """() => [...document.querySelectorAll("#now .facts li")].some(
          (fact) => fact.textContent.trim().replace(/\\s+/g, " ") === "active brokers 2")""",
    ),
}
#: Writes the time at which the mark holds into the page, in milliseconds since 1970.
_WATCH: Final = """(id) => {
  const holds = HOLDS;
  const check = () => (holds(id) ? (window.shownAt.MARK = Date.now()) : setTimeout(check, 10));
  window.shownAt = { ...window.shownAt, MARK: null };
  check();
}"""


class WatchingConsole:
    """A console of a cluster, and windows on its pages that stay open."""

    def __init__(self, cluster: WatchedCluster, visits: Mapping[str, Visit]) -> None:
        self._cluster = cluster
        self._visits = visits

    def kill(self, broker_id: int) -> dict[str, float]:
        """Kill a broker, and start it again once all pages have shown it.

        Returns the seconds from the time at which the controller knew it, for each mark. A source that the controller
        learns from, such as ZooKeeper, may make them negative.
        """
        marks = [name for name in MARKS if name != "controller" or self._cluster.has_metrics]
        for name in marks:
            self._watch(name, broker_id)
        known_s = self._cluster.kill(broker_id)()
        delays = {name: round(self._shown_s(name) - known_s, 3) for name in marks}
        self._cluster.restart(broker_id)
        return delays

    def _watch(self, mark: str, broker_id: int) -> None:
        """Watch for a mark, once the page no longer shows it for an earlier end of the broker."""
        path, holds = MARKS[mark]
        visit = self._visits[path]
        visit.until(lambda: not visit.page.evaluate(holds, broker_id))
        visit.page.evaluate(_WATCH.replace("HOLDS", holds).replace("MARK", mark), broker_id)

    def _shown_s(self, mark: str) -> float:
        visit = self._visits[MARKS[mark][0]]
        milliseconds = visit.until(lambda: visit.page.evaluate(f"window.shownAt.{mark}"))
        return float(milliseconds) / 1000


@contextmanager
def watching_console(browser: Any, cluster: WatchedCluster, source: str) -> Iterator[WatchingConsole]:
    """A console with its defaults. ``source`` is one of ``cluster.sources``."""
    with running_console(*cluster.sources[source]) as console, ExitStack() as stack:
        visits = {}
        for path, _ in MARKS.values():
            if path not in visits:
                visits[path] = stack.enter_context(visiting(browser, console.port))
                visits[path].open(path)
        yield WatchingConsole(cluster, visits)
