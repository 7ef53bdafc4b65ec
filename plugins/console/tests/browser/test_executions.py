"""A plan is executed, paused, continued, aborted and rolled back in Chromium, with the mouse and with keys only."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from verification.console.browser import Open, Visit
from verification.console.embedded import SharedAdmin, executing_application
from verification.console.hands import Hands, HandsOf
from verification.console.served import served

pytestmark = pytest.mark.real


class ExecutingConsole(NamedTuple):
    """A console that may execute: its port, its cluster, and the folder of its journals and audit log."""

    port: int
    admin: SharedAdmin
    folder: Path


@pytest.fixture
def console(tmp_path: Path) -> Iterator[ExecutingConsole]:
    with executing_application(tmp_path) as (app, admin), served(app) as port:
        yield ExecutingConsole(port, admin, tmp_path)


def choose_link(visit: Visit, hands: Hands, name: str) -> None:
    hands.choose(visit.page.get_by_role("main").get_by_role("link", name=name))


def confirm(visit: Visit, hands: Hands) -> None:
    """Confirm on the page that asks for it, and wait for the execution."""
    visit.until(lambda: visit.page.locator("#confirm").count())
    hands.choose(visit.page.locator("#confirm"))
    visit.until(lambda: visit.path().startswith("/executions/") and visit.path().count("/") == 2)
    visit.await_content()


def begin(visit: Visit, hands: Hands, **limits: str) -> None:
    """Generate the plan that empties broker 3, which has two replicas, and execute it."""
    visit.open("/plans")
    hands.write(visit.page.get_by_label("remove brokers", exact=True), "3")
    hands.choose(visit.page.get_by_role("button", name="Generate"))
    visit.until(lambda: visit.path().startswith("/plans/"))
    visit.await_content()
    hands.choose(visit.page.get_by_role("navigation", name="Plan").get_by_role("link", name="Execute"))
    visit.until(lambda: visit.path().partition("?")[0].endswith("/execute"))
    visit.await_content()
    for label, text in limits.items():
        hands.write(visit.page.get_by_label(label, exact=True), text)
    if limits:
        hands.choose(visit.page.get_by_role("button", name="Show with these limits"))
        visit.until(lambda: all(f"{label}={text}" in visit.path() for label, text in limits.items()))
        visit.await_content()
    assert "What it does" in visit.text()
    assert "Execute: move 2 partitions" in visit.text()
    confirm(visit, hands)


def change(visit: Visit, hands: Hands, name: str) -> None:
    """Follow a link of the execution to the page that asks for a confirmation, and confirm."""
    choose_link(visit, hands, f"{name}…")
    visit.until(lambda: visit.text("h1").startswith(f"{name} execution"))
    confirm(visit, hands)


def summary(visit: Visit) -> str:
    return visit.text("#live .summary")


def test_plan_is_executed_and_rolled_back(console: ExecutingConsole, visit_port: Open, hands_of: HandsOf) -> None:
    visit = visit_port(console.port)
    hands = hands_of(visit)
    begin(visit, hands)
    visit.until(lambda: "2 in flight" in visit.text("#live"))
    console.admin.copies.set()
    visit.until(lambda: "completed" in summary(visit))
    assert "2 of 2 partitions" in visit.text("#live")
    assert not any(3 in console.admin.replicas("t", number) for number in range(3))
    change(visit, hands, "Roll back")
    visit.until(lambda: "rolled back" in summary(visit))
    assert [console.admin.replicas("t", number) for number in (1, 2)] == [(2, 3), (3, 1)]
    choose_link(visit, hands, "Executions")
    visit.follow("/executions")
    assert "rolled back" in visit.text("table.rows")
    audit = [json.loads(line) for line in (console.folder / "audit.jsonl").read_text().splitlines()]
    assert [line["event"] for line in audit] == ["begin", "done", "begin", "done"]


def test_execution_is_paused_continued_and_aborted(
    console: ExecutingConsole, visit_port: Open, hands_of: HandsOf
) -> None:
    visit = visit_port(console.port)
    hands = hands_of(visit)
    begin(visit, hands, concurrency="1")
    visit.until(lambda: "1 in flight" in visit.text("#live"))
    change(visit, hands, "Pause")
    visit.until(lambda: "goal pause" in summary(visit))
    console.admin.copies.set()
    visit.until(lambda: "paused" in summary(visit))
    assert "1 of 2 partitions" in visit.text("#live")
    console.admin.copies.clear()
    change(visit, hands, "Continue")
    visit.until(lambda: "1 in flight" in visit.text("#live"))
    change(visit, hands, "Abort")
    visit.until(lambda: "aborted" in summary(visit))
    assert console.admin.reassignments() == {}
    assert sum(3 in console.admin.replicas("t", number) for number in (1, 2)) == 1
