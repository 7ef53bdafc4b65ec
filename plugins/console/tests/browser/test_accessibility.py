"""Every page: axe-core finds nothing serious in both themes, and nothing is covered or cut off at 100 % and 200 %."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest
from kframe_console.pages.page import ActionPage
from kframe_console.routes import PAGES

from tests.tools import ToolMissing
from verification.console.accessibility import layout_problems, serious_findings
from verification.console.browser import Visit

pytestmark = pytest.mark.real

Open = Callable[..., Visit]

#: Addresses of each page, with which it shows all of its parts.
ADDRESSES: Final = {
    "overview": ["/"],
    "brokers": ["/brokers"],
    "topics": ["/topics?sort=-partition_count"],
    "partitions": ["/partitions?sort=-leader_epoch&health=at_min_isr"],
    "topic": ["/topics/clicks"],
    "partition": ["/topics/clicks/4?fail=3"],
}
CASES: Final = [address for addresses in ADDRESSES.values() for address in addresses]


def ready(visit: Visit, address: str) -> None:
    """Open a page, and wait for its table."""
    visit.open(address)
    if visit.page.locator("regular-table").count():
        visit.rows()


def test_every_page_has_a_case() -> None:
    assert set(ADDRESSES) == {page.name for page in PAGES if not isinstance(page, ActionPage)}


def test_checks_find_what_they_look_for(visit_port: Open, kraft_port: int) -> None:
    visit = visit_port(kraft_port)
    visit.open("/brokers")
    visit.page.evaluate("document.querySelector('main').append(document.createElement('button'))")
    visit.page.evaluate("document.querySelector('main').style.minWidth = '200vw'")
    visit.page.evaluate("document.querySelector('header').style.position = 'relative'")
    visit.page.evaluate("document.querySelector('main').style.marginTop = '-4rem'")
    visit.page.evaluate("document.querySelector('main').style.position = 'relative'")
    (finding,) = findings_or_skip(visit)
    assert finding.startswith("button-name: ")
    wide, *covered = layout_problems(visit)
    assert wide.startswith('too wide: <main id="main"')
    assert any('covered: <a class="brand"' in each for each in covered)


def findings_or_skip(visit: Visit) -> list[str]:
    try:
        return serious_findings(visit)
    except ToolMissing as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("address", CASES)
def test_axe_finds_nothing_serious(visit_port: Open, kraft_port: int, address: str, scheme: str) -> None:
    visit = visit_port(kraft_port, color_scheme=scheme)
    ready(visit, address)
    assert findings_or_skip(visit) == []


# A page at 200 % has half as many CSS pixels, of twice the size.
@pytest.mark.parametrize("zoom", [1, 2])
@pytest.mark.parametrize("address", CASES)
def test_nothing_is_covered_or_cut_off(visit_port: Open, kraft_port: int, address: str, zoom: int) -> None:
    window = {"width": 1280 // zoom, "height": 800 // zoom}
    visit = visit_port(kraft_port, viewport=window, device_scale_factor=zoom)
    ready(visit, address)
    assert layout_problems(visit) == []
