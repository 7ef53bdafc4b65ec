"""Kafka's tools have the same output under kframe and Kafka's controller, for every principal and every node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import pytest

from verification.kafka_wire.campaigns.parity import Rounds, compared, normalized
from verification.kafka_wire.campaigns.parity_calls import ANY_NODE, READING, WRITING, ToolCall
from verification.kafka_wire.campaigns.parity_cluster import SETUPS, Setup
from verification.kafka_wire.campaigns.parity_report import INTENDED_DIFFERENCES, ParityComparison, compare, page
from verification.zookeeper.servers import ServerHandle

#: With all clients together, each tool gets responses of the broker and of kframe.
REPEAT = 1


def rendered(comparison: ParityComparison) -> str:
    """The page of a comparison."""
    return page({"machine": "", "commit": "", "command": "", "setups": {"x": asdict(comparison)}})


@pytest.mark.extended
@pytest.mark.parametrize(
    "setup, calls",
    [(SETUPS[0], (*READING, *WRITING)), (SETUPS[3], ANY_NODE)],
    ids=lambda each: each.name if isinstance(each, Setup) else "",
)
def test_tool_outputs_are_equal_under_both_controllers(
    setup: Setup, calls: Sequence[ToolCall], zookeeper: ServerHandle, tmp_path: Path
) -> None:
    connect_string = f"{zookeeper.address}/parity-{setup.name}"
    *_, done = compared(tmp_path, connect_string, setup, 1, Rounds(REPEAT), calls, expected=2)
    assert done.differences == (), rendered(done)
    assert done.runs == done.outputs * REPEAT


def test_varying_output_is_normalized() -> None:
    output = (
        "127.0.0.1:9092 (id: 1)\nb\n\na at 2026-11-23 04:05:06,789\nRequest Request(processor=1) is not authorized."
    )
    assert normalized(output) == "HOST:PORT (id: 1)\nRequest is not authorized.\na at TIME\nb"


def test_undeletable_groups_are_omitted_from_lists_only() -> None:
    listed = "GROUP STATE\nreaders-7 Empty\nreaders-8\nConsumer group 'readers-7' has no active members."
    assert normalized(listed) == "GROUP STATE"
    assert normalized("Not authorized to access group: readers-7") == "Not authorized to access group: READERS"


def test_output_absent_under_kafka_is_a_difference() -> None:
    key = ("kafka on SSL", "kafka-acls --list")
    done = compare("x", {key: Counter({"a": 2})}, {key: Counter({"a": 3, "b": 1})})
    (difference,) = done.differences
    assert (difference.output, difference.count, done.runs) == ("b", 1, 4)
    assert "kafka-acls --list" in rendered(done)


def test_intended_differences_are_listed_separately() -> None:
    key = ("kafka on SSL", "kafka-configs --describe --entity-type brokers")
    output = "exit 0\nDynamic configs for broker 1 are:\nDynamic configs for broker 1000 are:"
    done = compare("x", {key: Counter({output.rpartition("\n")[0]: 1})}, {key: Counter({output: 1})})
    assert (done.differences, sum(done.by_design.values())) == ((), 1)
    assert "None." in rendered(done)
    assert len({rule.reason for rule in INTENDED_DIFFERENCES}) == len(INTENDED_DIFFERENCES)
