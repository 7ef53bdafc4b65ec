"""A source with a history: the cluster at any offset, what changed, and the history of partitions."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest
from kframe_console.command import example
from kframe_console.sources.logged import LoggedSource

from kframe.plugin.live import ClusterHistory
from kframe.plugin.snapshot import open_history, summary_record
from verification.console.client import ConsoleClient, console_of


@pytest.fixture(scope="module")
def history() -> ClusterHistory:
    history = open_history(example())
    assert history is not None
    return history


@pytest.fixture
def logged(history: ClusterHistory) -> Iterator[ConsoleClient]:
    with console_of(LoggedSource("log", history, lambda snapshot: snapshot)) as console:
        yield console


def test_each_position_shows_the_cluster_there(logged: ConsoleClient, history: ClusterHistory) -> None:
    summaries = []
    for point in history.points(6)[1:]:
        content = logged.json("/", at=str(point.end - 1))
        assert content["summary"] == msgspec.to_builtins(summary_record(history.snapshot(point)))
        summaries.append(content["summary"])
    assert len({summary["partitions"] for summary in summaries}) > 1
    assert logged.json("/")["summary"] == summaries[-1]


@pytest.mark.parametrize("at", ["1204", "2026-11-28T07:50:02.935Z", "end", " 1204 "])
def test_position_is_an_offset_or_a_time(logged: ConsoleClient, at: str) -> None:
    assert logged.json("/", at=at)["summary"]["offset"] == 1204


@pytest.mark.parametrize("at", ["9999", "-1", "yesterday", "2026-01-01T00:00:00Z", "x" * 500])
def test_unknown_position_is_refused(logged: ConsoleClient, at: str) -> None:
    logged.refuses("/", "at: found", at=at)


def test_changes_are_the_differences_of_the_log(logged: ConsoleClient, history: ClusterHistory) -> None:
    changes = logged.json("/", at="634")["changes"]
    points = history.points(2)
    differences = list(history.differences(points[0], history.point("634")))
    assert sum(changes["counts"].values()) == len(differences) > 0
    assert changes["examples"] == msgspec.json.decode(msgspec.json.encode(differences[:50]))


def test_partition_has_its_history_and_the_cause_of_its_leader(logged: ConsoleClient) -> None:
    content = logged.json("/topics/clicks/0")
    offsets = [record["offset"] for record in content["history"]]
    assert offsets == sorted(offsets, reverse=True)
    assert {record["key"] for record in content["history"]} == {"clicks-0"}
    assert content["history"][-1]["type"] == "Partition", "the record that created it"
    assert content["cause"]["leader"] == content["partition"]["leader"]
    assert content["cause"]["offset"] in offsets
    page = logged.client.get("/topics/clicks/0?at=700").text
    assert 'href="/topics/clicks/0?at=635"' in page


def test_links_keep_the_position(logged: ConsoleClient) -> None:
    text = logged.client.get("/?at=634").text
    assert 'href="/partitions?at=634"' in text
    assert 'href="/partitions?health=offline&amp;at=634"' in text
