"""Topics by name and pattern, alike in every command."""

from __future__ import annotations

import json

import pytest

from kframe.errors import InputError
from kframe.model.topic_patterns import matching_topics
from tests.cli.running import HEALTHY, document, kframe

NAMES = ("orders", "orders-eu", "order1", "audit", "a.b")


@pytest.mark.parametrize(
    ("texts", "matches"),
    [
        (["orders"], ["orders"]),
        (["orders*"], ["orders", "orders-eu"]),
        (["order?"], ["orders", "order1"]),
        (["audit", "*"], ["audit", "orders", "orders-eu", "order1", "a.b"]),
        (["a?b"], ["a.b"]),
        ([], []),
    ],
)
def test_patterns(texts: list[str], matches: list[str]) -> None:
    assert matching_topics(NAMES, texts, "--topics") == matches


@pytest.mark.parametrize("text", ["order", "Orders", "a..b", "x*", ""])
def test_pattern_without_a_match_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"--topics: found .*, expected the name of a topic"):
        matching_topics(NAMES, [text], "--topics")


def listed_topics(*options: str) -> set[str]:
    lines = kframe("snapshot", "show", HEALTHY, "--list", "partitions", *options, "-o", "jsonl").stdout.splitlines()
    return {json.loads(line)["topic"] for line in lines}


def test_commands_select_the_same_topics() -> None:
    names = listed_topics()
    chosen = sorted(names - {"__consumer_offsets"})[:2]
    pattern = "__consumer_off*"
    assert listed_topics("--topics", pattern) == {"__consumer_offsets"}
    assert listed_topics("--topics", ",".join(chosen), "--topics", pattern) == {*chosen, "__consumer_offsets"}
    deleted = document("delete", HEALTHY, pattern, chosen[0])
    assert {topic["topic"] for topic in deleted["topics"]} == {"__consumer_offsets", chosen[0]}
    planned = kframe(
        "plan", "generate", HEALTHY, "--replication-factor", "*=2", "--topics", f"{pattern},{chosen[0]}", "--out", "-"
    )
    assert {entry["topic"] for entry in json.loads(planned.stdout)["partitions"]} <= {"__consumer_offsets", chosen[0]}
