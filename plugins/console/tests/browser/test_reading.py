"""Reading a cluster in Chromium, with the mouse and with keys only: overview, tables, explanations, history."""

from __future__ import annotations

import pytest

from verification.console.browser import Open, Visit
from verification.console.hands import HandsOf, Mouse, open_partition

pytestmark = pytest.mark.real


def column(visit: Visit, index: int) -> list[str]:
    return [row[index] for row in visit.rows()]


@pytest.mark.smoke
def test_overview_leads_to_the_partitions_of_a_broker(visit_port: Open, zookeeper_port: int, hands_of: HandsOf) -> None:
    visit = visit_port(zookeeper_port)
    hands = hands_of(visit)
    visit.open("/")
    assert "unregistered" in visit.text()
    hands.choose(visit.page.locator(".broker a").nth(1))
    visit.follow("/partitions?leader=2")
    assert set(column(visit, 2)) == {"2"}
    assert visit.page.get_by_label("leader", exact=True).input_value() == "2"


def test_table_sorts_and_its_address_has_the_state(visit_port: Open, zookeeper_port: int, hands_of: HandsOf) -> None:
    visit = visit_port(zookeeper_port)
    hands = hands_of(visit)
    visit.open("/partitions")
    unsorted = visit.rows()
    if isinstance(hands, Mouse):
        visit.page.locator("thead th").get_by_text("leader epoch").click()
        visit.until(lambda: "sort=leader_epoch" in visit.path())
        visit.page.locator("thead th").get_by_text("leader epoch").click()
    else:
        visit.page.keyboard.press("s")
        visit.page.keyboard.type("-leader_epoch")
        visit.page.keyboard.press("Enter")
    visit.follow("/partitions?sort=-leader_epoch")
    rows = visit.until(visit.rows, lambda rows: rows != unsorted)
    epochs = [int(row[6]) for row in rows]
    assert epochs == sorted(epochs, reverse=True)
    hands.write(visit.page.get_by_label("topic", exact=True), "orders")
    visit.follow("/partitions?topic=orders&sort=-leader_epoch")
    filtered = visit.until(visit.rows, lambda rows: all("orders" in row[0] for row in rows))
    visit.page.reload()
    assert visit.rows()[:10] == filtered[:10]


def test_filters_without_rows_and_bad_ones_say_so(visit_port: Open, zookeeper_port: int, hands_of: HandsOf) -> None:
    visit = visit_port(zookeeper_port)
    visit.allow("status of 400")
    hands = hands_of(visit)
    visit.open("/partitions")
    visit.rows()
    hands.write(visit.page.get_by_label("topic", exact=True), "no-such-topic")
    visit.until(lambda: visit.text("#total") == "0")
    hands.write(visit.page.get_by_label("leader", exact=True), "first")
    visit.until(lambda: "leader: found 'first', expected a number" in visit.text("#problem"))


def test_topic_leads_to_the_explanation_of_a_leader(visit_port: Open, kraft_port: int, hands_of: HandsOf) -> None:
    visit = visit_port(kraft_port)
    hands = hands_of(visit)
    visit.open("/")
    open_partition(visit, hands, "clicks", 4)
    assert "Why is this the leader?" in visit.text()
    hands.write(visit.page.get_by_label("if these brokers fail together"), "3")
    hands.choose(visit.page.get_by_role("button", name="Explain"))
    visit.follow("/topics/clicks/4?fail=3")
    assert "Final state: led by broker 2, ISR 2." in visit.text()


def test_slider_moves_through_the_history(visit_port: Open, kraft_port: int, hands_of: HandsOf) -> None:
    visit = visit_port(kraft_port)
    hands = hands_of(visit)
    visit.open("/partitions")
    before = visit.rows()
    hands.slide(visit.page.get_by_role("slider"), 1)
    visit.until(lambda: "at=" in visit.path())
    visit.page.wait_for_load_state()
    position = visit.until(lambda: visit.text("#position-label"))
    visit.rows()
    hands.choose(visit.page.get_by_role("navigation").get_by_role("link", name="Overview"))
    visit.until(lambda: visit.path().startswith("/?at="))
    assert visit.until(lambda: visit.text("#position-label")) == position
    assert before


def test_question_mark_lists_keys_that_work(visit_port: Open, zookeeper_port: int) -> None:
    visit = visit_port(zookeeper_port)
    visit.open("/")
    keyboard = visit.page.keyboard
    keyboard.press("?")
    listed = visit.page.locator("#keys-list").inner_text()
    assert "show the keys" in listed
    assert "switch between dark and light" in listed
    keyboard.press("Escape")
    keyboard.press("4")
    visit.follow("/partitions")
    visit.rows()
    keyboard.press("f")
    assert visit.page.evaluate("document.activeElement.name") == "topic"
    keyboard.press("Escape")
    keyboard.press("t")
    assert visit.page.evaluate("document.activeElement.localName") == "regular-table"
    keyboard.press("u")
    visit.follow("/")


def ground(visit: Visit) -> str:
    return str(visit.page.evaluate("getComputedStyle(document.body).backgroundColor"))


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_theme_follows_the_system_until_it_is_switched(visit_port: Open, zookeeper_port: int, scheme: str) -> None:
    visit = visit_port(zookeeper_port, color_scheme=scheme)
    visit.open("/")
    dark, light = "rgb(20, 24, 27)", "rgb(255, 255, 255)"
    by_system, switched = (dark, light) if scheme == "dark" else (light, dark)
    assert ground(visit) == by_system
    visit.page.keyboard.press("d")
    assert ground(visit) == switched
    visit.open("/partitions")
    assert ground(visit) == switched
    visit.page.get_by_role("button", name="Switch between dark and light").click()
    assert ground(visit) == by_system
