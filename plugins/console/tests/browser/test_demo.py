"""A demo cluster in Chromium: pages show each failure, with the mouse and with keys only."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from verification.console.browser import Open, Visit
from verification.console.hands import HandsOf, Mouse
from verification.console.running import running_console

pytestmark = pytest.mark.real


# Tests name it before their visit, whose window then closes while the demo still runs.
@pytest.fixture(params=["kraft", "zookeeper"])
def demo_port(request: pytest.FixtureRequest) -> Iterator[int]:
    with running_console("--demo", request.param) as console:
        yield console.port


def tile(visit: Visit, broker: int) -> str:
    return visit.text(f".tile[data-broker='{broker}']")


def test_killed_broker_is_seen_at_once_and_starts_again(demo_port: int, visit_port: Open, hands_of: HandsOf) -> None:
    visit = visit_port(demo_port)
    hands, page = hands_of(visit), visit.page
    visit.open("/live")
    visit.until(lambda: re.search(r"[1-9]\d* leaders", tile(visit, 2)))
    if isinstance(hands, Mouse):
        page.locator(".tile[data-broker='2']").click()
        page.get_by_role("button", name="Kill").click()
    else:
        page.keyboard.press("]")
        page.keyboard.press("k")
    visit.until(lambda: " 0 leaders" in tile(visit, 2))
    assert visit.path() == "/live?broker=2"
    visit.until(lambda: re.search(r"\b2\b", visit.text("ol.events")))
    visit.open("/partitions?isr=2")
    assert visit.text("#total") == "0"
    visit.open("/live?broker=2")
    if isinstance(hands, Mouse):
        page.get_by_role("button", name=re.compile("^Start ")).click()
    else:
        page.keyboard.press("s")
    visit.until(lambda: visit.page.locator(".tile[data-broker='2'].state-active").count())


def test_topic_is_created_and_its_table_follows(demo_port: int, visit_port: Open, hands_of: HandsOf) -> None:
    visit = visit_port(demo_port)
    hands, page = hands_of(visit), visit.page
    visit.open("/live")
    hands.write(page.get_by_label("topic", exact=True), "payments")
    hands.choose(page.get_by_role("button", name="Create topic"))
    visit.until(lambda: "payments" in visit.text("ol.events"))
    visit.open("/partitions?topic=payments")
    assert visit.text("#total") == "6"
