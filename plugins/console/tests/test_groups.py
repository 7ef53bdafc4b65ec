"""The consumer groups of a topic: from a live cluster, and from sources without groups."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from kframe_console.pages import groups
from kframe_console.sources.live import LiveSource
from starlette.testclient import TestClient

from kframe.plugin import StoreError
from kframe.plugin.snapshot import Snapshot
from verification.console.client import ConsoleClient, console_of
from verification.console.doubles import FakeGroups, FakeReader


@pytest.fixture
def cluster() -> FakeGroups:
    return FakeGroups()


@pytest.fixture
def console(cluster: FakeGroups, kraft_snapshot: Snapshot) -> Iterator[ConsoleClient]:
    source = LiveSource("kafka://b:9092", FakeReader(kraft_snapshot), lambda snapshot: snapshot, 3600, cluster)
    with console_of(source) as console:
        yield console


@pytest.fixture
def topic(kraft_snapshot: Snapshot) -> str:
    return kraft_snapshot.topics.names[0]


def rows(console: ConsoleClient, **parameters: str) -> list[dict[str, Any]]:
    return list(console.json("/groups", **parameters)["rows"])


def test_groups_have_states_members_and_lags(console: ConsoleClient, topic: str) -> None:
    problem, billing, other = rows(console, topic=topic)
    assert problem["problem"] == "groups of broker 3: it does not respond"
    assert billing == {
        "group": "billing", "state": "Stable", "members": 2, "partition": 0, "lag": 10, "committed": 90, "end": 100,
        "client": "app /h", "problem": None,
    }  # fmt: skip
    assert (other["lag"], other["committed"]) == (None, None)
    assert [row["group"] for row in rows(console, topic=topic, lag=">5")] == ["billing"]
    assert [row["group"] for row in rows(console, topic=topic, partition="1")] == ["x"]
    assert topic in console.client.get("/groups", params={"topic": topic}).text


def test_topic_and_partition_link_to_their_groups(console: ConsoleClient, cluster: FakeGroups, topic: str) -> None:
    assert f'href="/groups?topic={topic}"' in console.client.get(f"/topics/{topic}").text
    assert f'href="/groups?topic={topic}&amp;partition=0"' in console.client.get(f"/topics/{topic}/0").text
    assert cluster.requests == 0


def test_page_shows_progress_while_brokers_are_asked(console: ConsoleClient, cluster: FakeGroups, topic: str) -> None:
    cluster.may_respond.clear()
    try:
        assert console.client.get("/groups", params={"topic": topic}).status_code == 202
        assert console.client.get("/topics").status_code == 200
    finally:
        cluster.may_respond.set()
    assert len(rows(console, topic=topic)) == 3
    assert cluster.requests == 1


def test_brokers_are_asked_again_after_a_while(
    console: ConsoleClient, cluster: FakeGroups, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows(console, topic=topic)
    monkeypatch.setattr(groups, "_VALID", timedelta(0))
    rows(console, topic=topic)
    assert cluster.requests >= 2


def test_failure_is_shown_and_tried_again(console: ConsoleClient, cluster: FakeGroups, topic: str) -> None:
    cluster.failure = StoreError("no controller can be reached")
    console.refuses("/groups", "no controller can be reached", 502, topic=topic)
    cluster.failure = None
    assert len(rows(console, topic=topic)) == 3


@pytest.mark.parametrize("name", ["none", ""])
def test_unknown_topic_is_refused(console: ConsoleClient, name: str) -> None:
    console.refuses("/groups", "topic: found", topic=name)


def test_other_sources_say_that_they_do_not_know(client: TestClient, snapshot: Snapshot) -> None:
    console, name = ConsoleClient(client), snapshot.topics.names[0]
    for path in (f"/topics/{name}", f"/topics/{name}/0"):
        assert "This source does not know which consumer groups depend on it" in client.get(path).text
    message = "consumer groups: found a source that does not show them, expected kafka://"
    console.refuses("/groups", message, topic=name)
