"""The two ways to use a page: with the mouse, and with keys only. A scenario is written once for both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, TypeAlias

from verification.console.browser import Visit

#: Presses of Tab after which an element is not reached by it.
_TABS_MAX: Final = 500
_IS_FOCUSED: Final = "(element) => element === document.activeElement"
_IS_OPTION: Final = "(element) => element.selectedIndex"


class Hands(Protocol):
    """Does what a user does. ``target`` is a locator of Playwright for one element."""

    def choose(self, target: Any) -> None:
        """Follow a link, press a button, or tick a box."""

    def write(self, target: Any, text: str) -> None:
        """Replace the text of a field."""

    def select(self, target: Any, option: str) -> None:
        """Choose an option of a list by its text."""

    def slide(self, target: Any, steps: int) -> None:
        """Move a slider from its right end to the left, by so many steps."""


class Mouse:
    """Uses a page with the mouse, and types only text."""

    def __init__(self, visit: Visit) -> None:
        self._page = visit.page

    def choose(self, target: Any) -> None:
        """See Hands."""
        target.click()

    def write(self, target: Any, text: str) -> None:
        """See Hands."""
        target.click(click_count=3)
        self._page.keyboard.type(text)

    def select(self, target: Any, option: str) -> None:
        """See Hands."""
        target.select_option(label=option)

    def slide(self, target: Any, steps: int) -> None:
        """See Hands."""
        box = target.bounding_box()
        last = int(target.get_attribute("max"))
        # The thumb is as wide as the slider is high, and stays within it.
        thumb = box["height"]
        x = thumb / 2 + (box["width"] - thumb) * (last - steps) / last
        target.click(position={"x": x, "y": box["height"] / 2})


class Keys:
    """Uses a page with keys only."""

    def __init__(self, visit: Visit) -> None:
        self._page = visit.page

    def choose(self, target: Any) -> None:
        """See Hands."""
        self.focus(target)
        box = target.evaluate("(element) => ['checkbox', 'radio'].includes(element.type)")
        self._page.keyboard.press("Space" if box else "Enter")

    def write(self, target: Any, text: str) -> None:
        """See Hands."""
        self.focus(target)
        self._page.keyboard.press("Control+A")
        self._page.keyboard.type(text)

    def select(self, target: Any, option: str) -> None:
        """See Hands."""
        self.focus(target)
        options = target.locator("option").all_inner_texts()
        steps = options.index(option) - target.evaluate(_IS_OPTION)
        for _ in range(abs(steps)):
            self._page.keyboard.press("ArrowDown" if steps > 0 else "ArrowUp")

    def slide(self, target: Any, steps: int) -> None:
        """See Hands."""
        self.focus(target)
        for _ in range(steps):
            self._page.keyboard.press("ArrowLeft")

    def focus(self, target: Any) -> None:
        """Press Tab until the element has the focus."""
        target.wait_for()
        for _ in range(_TABS_MAX):
            if target.evaluate(_IS_FOCUSED):
                return
            self._page.keyboard.press("Tab")
        raise AssertionError(f"{_TABS_MAX} times Tab do not reach {target}")


HandsOf: TypeAlias = Callable[[Visit], Hands]
HANDS: Final[Mapping[str, HandsOf]] = {"mouse": Mouse, "keys": Keys}


def open_partition(visit: Visit, hands: Hands, topic: str, partition: int, query: str = "") -> None:
    """Go from the navigation to a partition through the tables. Each address ends with ``query``."""
    hands.choose(visit.page.get_by_role("navigation").get_by_role("link", name="Topics"))
    visit.follow(f"/topics{query}")
    hands.choose(visit.cell_link(topic))
    visit.follow(f"/topics/{topic}{query}")
    hands.choose(visit.cell_link(str(partition)))
    visit.follow(f"/topics/{topic}/{partition}{query}")
