"""A user at random, in Chromium: goes to pages, sorts, filters and scrolls. Measures from the input to the paint.

The time of an action is from its last input event to the paint of the last change that followed. Nothing has changed
for a while then; that wait is not part of the time.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from verification.console.browser import Visit, visiting

#: The script that notes inputs and paints.
PROBE: Final = Path(__file__).with_name("probe.js").read_text(encoding="utf-8")
#: An action has ended when nothing is awaited, and nothing has changed for so long.
_QUIET_MS: Final = 250
#: An action that changes nothing visible, such as a second click on the same link, has ended after so long.
_UNCHANGED_MS: Final = 1_500
_STATE: Final = f"""([before, isNewPage]) => {{
  const probe = window.kframeProbe;
  if (!probe || document.readyState !== "complete" || (isNewPage && performance.timeOrigin < before)) return null;
  const now = performance.timeOrigin + performance.now();
  const table = document.querySelector("regular-table");
  if (table && !table.querySelector("tbody td") && document.getElementById("total")?.textContent !== "0") return null;
  if (probe.pending || now - probe.changed < {_QUIET_MS} || probe.painted < probe.changed) return null;
  if (probe.changed < before && now - before < {_UNCHANGED_MS}) return null;
  const input = Number(sessionStorage.getItem("kframe-probe-input"));
  return {{ input, painted: probe.painted, delays: probe.delays.splice(0), longTasks: probe.longTasks.splice(0) }};
}}"""
_NOW: Final = "() => performance.timeOrigin + performance.now()"
_PAINTS: Final = """() => Object.fromEntries(
  performance.getEntriesByType("paint").map((entry) => [entry.name.replaceAll("-", "_") + "_ms", entry.startTime]))"""
_PAINTED: Final = "() => window.kframeProbe.painted - performance.timeOrigin"
#: Pages of the navigation that only show the cluster. Others compute, and show their progress.
_PAGES: Final = ("Overview", "Brokers", "Topics", "Partitions")
#: Texts of filters by column. Repeated filters are rare, as those of users are.
_FILTERS: Final[Mapping[str, Callable[[random.Random], str]]] = {
    "topic": lambda chance: str(chance.randrange(1_000)),
    "partition": lambda chance: f">{chance.randrange(90)}",
    "leader": lambda chance: str(chance.randrange(100)),
    "replicas": lambda chance: f"{chance.randrange(100)},{chance.randrange(100)}",
    "isr": lambda chance: str(chance.randrange(100)),
    "health": lambda chance: chance.choice(["under_replicated", "preferred_replica_imbalance", "none"]),
    "broker_id": lambda chance: f"<{chance.randrange(100)}",
    "rack": lambda chance: str(chance.randrange(3)),
}
_WHEEL_PIXELS: Final = (300, 3_000, 1_000_000)

Row: TypeAlias = dict[str, Any]


class Action(NamedTuple):
    """What a user did, and whether it leads to another page."""

    what: str
    is_new_page: bool = False


class RandomUser:
    """Acts in a visit, in the same way for the same seed."""

    def __init__(self, visit: Visit, seed: int) -> None:
        self._visit, self._page = visit, visit.page
        self._chance = random.Random(seed)
        self._acts: Mapping[str, Callable[[], Action]] = {
            "page": self._follow,
            "sort": self._sort,
            "filter": self._filter,
            "scroll": self._scroll,
        }

    def perform(self, count: int) -> Iterator[Row]:
        """A row for each of so many actions: its kind, what it was, and its milliseconds; None if nothing changed."""
        self._visit.open("/partitions")
        self._settle(0.0, is_new_page=False)
        for _ in range(count):
            kind = self._chance.choice(list(self._acts))
            if not self._page.locator("regular-table").count():
                kind = "page"
            yield {"kind": kind, **self._measure(self._acts[kind])}

    def _measure(self, act: Callable[[], Action]) -> Row:
        before = self._page.evaluate(_NOW)
        what, is_new_page = act()
        state = self._settle(before, is_new_page)
        return {
            "what": what,
            "ms": round(state["painted"] - state["input"], 1) if state["painted"] > state["input"] else None,
            "input_delay_ms": round(max(state["delays"], default=0.0), 1),
            "long_task_ms": round(max(state["longTasks"], default=0.0), 1),
        }

    def _settle(self, before: float, is_new_page: bool) -> dict[str, Any]:
        def read() -> dict[str, Any] | None:
            self._page.wait_for_load_state()
            state: dict[str, Any] | None = self._page.evaluate(_STATE, [before, is_new_page])
            return state

        state = self._visit.until(read)
        assert state is not None
        return state

    def _follow(self) -> Action:
        rows = self._page.locator("regular-table tbody a")
        if rows.count() and self._chance.random() < 0.5:
            link = rows.nth(self._chance.randrange(min(rows.count(), 20)))
        else:
            link = self._page.get_by_role("navigation").get_by_role("link", name=self._chance.choice(_PAGES))
        target = str(link.get_attribute("href"))
        with self._page.expect_navigation():
            link.click()
        return Action(f"to {target}", is_new_page=True)

    def _sort(self) -> Action:
        heads = self._page.locator("regular-table thead th")
        head = heads.nth(self._chance.randrange(min(heads.count(), 8)))
        name = head.inner_text()
        head.click()
        return Action(f"by {name}")

    def _filter(self) -> Action:
        fields = self._page.locator("form.filters label > input:visible")
        names = [name for name in fields.evaluate_all("(fields) => fields.map(({ name }) => name)") if name in _FILTERS]
        if not names:  # The table of a topic's page has no form.
            return self._sort()
        name = self._chance.choice(names)
        field = self._page.locator(f'form.filters input[name="{name}"]')
        field.click(click_count=3)
        if field.input_value():
            self._page.keyboard.press("Delete")
            return Action(f"all of {name}")
        text = _FILTERS[name](self._chance)
        self._page.keyboard.type(text)
        return Action(f"{name}={text}")

    def _scroll(self) -> Action:
        self._page.locator("regular-table").hover()
        pixels = self._chance.choice(_WHEEL_PIXELS) * self._chance.choice([-1, 1, 1])
        self._page.mouse.wheel(0, pixels)
        return Action(f"by {pixels} pixels")


def first_paints(browser: Any, port: int, paths: Sequence[str], runs: int) -> Iterator[Row]:
    """The first contentful paint of pages, each ``runs`` times in a new profile, and when all was painted."""
    for run in range(runs):
        for path in paths:
            with visiting(browser, port) as visit:
                visit.page.add_init_script(PROBE)
                visit.open(path)
                RandomUser(visit, 0)._settle(0.0, is_new_page=False)
                paints = visit.page.evaluate(_PAINTS)
                yield {"run": run, "path": path, **paints, "all_painted_ms": visit.page.evaluate(_PAINTED)}


def random_actions(browser: Any, port: int, count: int, seed: int) -> Iterator[Row]:
    """The rows of a random user."""
    with visiting(browser, port) as visit:
        visit.allow("status of 400")  # Filters of a column that the source lacks.
        visit.page.add_init_script(PROBE)
        yield from RandomUser(visit, seed).perform(count)
