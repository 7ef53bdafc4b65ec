"""A fleet and the consumer groups of a live cluster in Chromium, with the mouse and with keys only."""

from __future__ import annotations

import pytest

from verification.console.browser import Open
from verification.console.hands import HandsOf, Keys, open_partition

pytestmark = pytest.mark.real


def test_fleet_leads_to_the_pages_of_a_cluster_and_back(visit_port: Open, fleet_port: int, hands_of: HandsOf) -> None:
    visit = visit_port(fleet_port)
    hands, page = hands_of(visit), visit.page
    visit.open("/")
    assert [row[0] for row in visit.rows()] == ["east", "refused", "west=1"]
    if isinstance(hands, Keys):
        hands.focus(visit.cell_link("east"))
        page.keyboard.press("ArrowDown")
        assert page.evaluate("document.activeElement.textContent") == "refused"
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
    else:
        visit.cell_link("west=1").click()
    visit.follow("/overview?at=west=1")
    assert "west=1" in visit.text("header .source")
    assert "metadata.version" in visit.text()
    open_partition(visit, hands, "clicks", 4, "?at=west=1")
    assert "Why is this the leader?" in visit.text()
    if isinstance(hands, Keys):
        for path in ("/topics/clicks?at=west=1", "/topics?at=west=1", "/"):
            page.keyboard.press("u")
            visit.follow(path)
    else:
        page.get_by_role("navigation").get_by_role("link", name="Clusters").click()
    visit.follow("/")
    hands.choose(visit.cell_link("east"))
    visit.follow("/overview?at=east")
    assert "unregistered" in visit.text()


def test_fleet_is_filtered_and_counts_lead_to_partitions(visit_port: Open, fleet_port: int, hands_of: HandsOf) -> None:
    visit = visit_port(fleet_port)
    hands = hands_of(visit)
    visit.open("/")
    hands.write(visit.page.get_by_label("cluster", exact=True), "east")
    rows = visit.until(visit.rows, lambda rows: len(rows) == 1)
    titles = visit.page.locator("regular-table thead th").all_inner_texts()
    count = rows[0][titles.index("at min isr")]
    hands.choose(visit.page.locator("tbody tr td").nth(titles.index("at min isr")).get_by_role("link"))
    visit.follow("/partitions?health=at_min_isr&at=east")
    assert visit.text("#total") == count


def test_topic_leads_to_its_consumer_groups_and_back(visit_port: Open, groups_port: int, hands_of: HandsOf) -> None:
    visit = visit_port(groups_port)
    hands = hands_of(visit)
    visit.open("/topics")
    hands.choose(visit.cell_link("clicks"))
    visit.follow("/topics/clicks")
    hands.choose(visit.page.get_by_role("link", name="Consumer groups"))
    visit.follow("/groups?topic=clicks")
    assert [row[0] for row in visit.rows()] == ["–", "billing", "x"]
    assert "it does not respond" in visit.text("tbody")
    hands.write(visit.page.get_by_label("group", exact=True), "billing")
    visit.until(lambda: visit.text("#total") == "1")
    hands.choose(visit.cell_link("0"))
    visit.follow("/topics/clicks/0")
    hands.choose(visit.page.get_by_role("link", name="Consumer groups"))
    visit.follow("/groups?topic=clicks&partition=0")
    assert [row[0] for row in visit.rows()] == ["billing"]
