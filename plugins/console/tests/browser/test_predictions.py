"""Predicting in Chromium, with the mouse and with keys only: what-ifs by pointing, the heat map, restarts, plans."""

from __future__ import annotations

import pytest

from verification.console.browser import Open
from verification.console.hands import HandsOf, Mouse

pytestmark = pytest.mark.real


def test_pointing_at_brokers_predicts_their_failure(visit_port: Open, healthy_port: int, hands_of: HandsOf) -> None:
    visit = visit_port(healthy_port)
    hands, keyboard = hands_of(visit), visit.page.keyboard
    visit.open("/")
    hands.choose(visit.page.get_by_role("navigation").get_by_role("link", name="What if"))
    visit.follow("/whatif")
    hands.choose(visit.page.locator(".tabs").get_by_role("link").first)
    visit.follow("/whatif?operation=fail")
    boxes = visit.page.locator(".cluster input[data-broker]")
    chosen = [str(boxes.nth(index).get_attribute("data-broker")) for index in (0, 1)]
    if isinstance(hands, Mouse):
        boxes.nth(0).click()
        boxes.nth(1).click()
        visit.page.get_by_role("button", name="Predict").click()
    else:
        keyboard.press("b")
        while not boxes.nth(0).evaluate("(box) => box === document.activeElement"):
            keyboard.press("ArrowRight")
        for key in ("Space", "ArrowRight", "Space", "Enter"):
            keyboard.press(key)
    visit.follow(f"/whatif?operation=fail&brokers={','.join(chosen)}")
    impact = visit.text("ul[aria-label=Impact]")
    assert "newly offline" in impact
    hands.choose(visit.page.get_by_role("list", name="Impact").get_by_role("link", name="newly offline"))
    visit.until(lambda: visit.path().startswith("/whatif/partitions?"))
    visit.await_content()
    assert visit.text("#total") in impact.replace(",", "")


def test_heat_map_leads_to_a_pair_and_its_partitions(visit_port: Open, healthy_port: int, hands_of: HandsOf) -> None:
    visit = visit_port(healthy_port)
    hands, page = hands_of(visit), visit.page
    visit.open("/sweep")
    heat = page.locator("#heat")
    visit.until(lambda: heat.evaluate("(canvas) => canvas.height") > 200)
    if isinstance(hands, Mouse):
        box = heat.bounding_box()
        side = (box["width"] - 64) / 6 if box["width"] < 64 + 6 * 56 else 56
        heat.click(position={"x": 64 + 1.5 * side, "y": 64 + 0.5 * side})
    else:
        page.keyboard.press("h")
        page.keyboard.press("ArrowRight")
        assert "and" in visit.text("#heat-cell")
        page.keyboard.press("Enter")
    visit.until(lambda: visit.path().startswith("/whatif?operation=fail&brokers="))
    assert visit.path().count(",") == 1
    visit.await_content()
    assert "data at risk" in visit.text("ul[aria-label=Impact]")
    assert visit.rows()


def test_restarts_lead_to_the_what_if_of_a_batch(visit_port: Open, healthy_port: int, hands_of: HandsOf) -> None:
    visit = visit_port(healthy_port)
    hands = hands_of(visit)
    visit.open("/restarts")
    assert "there is no batch" in visit.text()
    hands.choose(visit.page.get_by_label("allow unavoidable"))
    hands.choose(visit.page.get_by_role("button", name="Plan"))
    visit.until(lambda: "allow_unavoidable=true" in visit.path())
    visit.await_content()
    hands.choose(visit.page.locator("table tbody").get_by_role("link", name="bounced").first)
    visit.until(lambda: visit.path().startswith("/whatif?operation=restart&brokers="))
    visit.await_content()
    assert "Nothing changes" not in visit.text()


def test_plans_are_generated_compared_and_staged(visit_port: Open, healthy_port: int, hands_of: HandsOf) -> None:
    visit = visit_port(healthy_port)
    hands, page = hands_of(visit), visit.page
    plans = []
    for brokers in ("3", "4"):
        visit.open("/plans")
        hands.write(page.get_by_label("remove brokers", exact=True), brokers)
        hands.choose(page.get_by_role("button", name="Generate"))
        visit.until(lambda: visit.path() != "/plans")
        visit.await_content()
        plans.append(visit.text("h1"))
    assert plans[0] != plans[1]
    visit.open("/plans")
    hands.choose(page.get_by_role("button", name="Compare"))
    visit.until(lambda: visit.path().startswith("/plans/compare?"))
    visit.await_content()
    assert "Two plans side by side" in visit.text()
    hands.choose(page.get_by_role("link", name="left: "))
    visit.until(lambda: "/plans/compare" not in visit.path())
    visit.await_content()
    hands.choose(page.get_by_role("navigation", name="Plan").get_by_role("link", name="Stages"))
    visit.until(lambda: visit.path().partition("?")[0].endswith("/stages"))
    visit.await_content()
    hands.choose(page.locator("table.rows tbody").get_by_role("link", name="1", exact=True))
    visit.until(lambda: "/stages/1" in visit.path())
    visit.await_content()
    assert "stage 1" in visit.text().lower()
