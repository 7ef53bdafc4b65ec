"""Conversion between controller batches and broker messages."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import yaml

from kframe.errors import ErrorCode
from kframe.model.events import Event, TopicPartition
from kframe.scenario.format import parse_scenario
from kframe.scenario.runner import ScenarioRunner
from kframe_simulator.broker.messages import NO_ID
from kframe_simulator.broker.outgoing import (
    AlteredPartition,
    AlterPartition,
    AlterPartitionResponseData,
    ControlledShutdown,
    ControlledShutdownResponseData,
    ProposedIsr,
)
from kframe_simulator.replication.conversion import (
    alter_partition_event,
    alter_partition_reply,
    controlled_shutdown_event,
    controlled_shutdown_reply,
)

P, Q = ("t", 0), ("t", 9)


def started_runner() -> ScenarioRunner:
    """A runner with an active controller. Broker 1 leads t-0 with ISR 1, 2 and is alone in t-1."""
    scenario = {
        "schema": "kframe.scenario/v1",
        "name": "s",
        "brokers": [{"id": 1}, {"id": 2}],
        "topics": [
            {
                "name": "t",
                "partitions": [
                    {"partition": 0, "replicas": [1, 2]},
                    {"partition": 1, "replicas": [1, 2], "leader": 1, "isr": [1]},
                ],
            }
        ],
        "steps": [{"elect": {}}],
    }
    runner = ScenarioRunner(parse_scenario(yaml.safe_dump(scenario), "s.yaml"))
    runner.play()
    return runner


def submit(runner: ScenarioRunner, event: Callable[[int], Event], read: Callable[[Any], object]) -> object:
    """The response to a broker's request."""
    future = runner.loop.submit(event, read)
    runner.run_until_idle()
    return future.result(timeout=0)


ACCEPTED = AlteredPartition(ErrorCode.NONE, 1, 0, (1,), 0, 1)
INELIGIBLE = AlteredPartition(ErrorCode.INELIGIBLE_REPLICA)
UNKNOWN = AlteredPartition(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


@pytest.mark.parametrize(
    "by_id, epochs_behind, proposals, expected",
    [
        (True, 0, {P: (1,)}, AlterPartitionResponseData(ErrorCode.NONE, {P: ACCEPTED})),
        (False, 0, {P: (1,), Q: (1,)}, AlterPartitionResponseData(ErrorCode.NONE, {P: ACCEPTED, Q: UNKNOWN})),
        (True, 0, {P: (1, 7)}, AlterPartitionResponseData(ErrorCode.NONE, {P: INELIGIBLE})),
        (True, 1, {P: (1,)}, AlterPartitionResponseData(ErrorCode.STALE_BROKER_EPOCH)),
    ],
    ids=["by-topic-id", "by-name", "ineligible", "earlier-registration"],
)
def test_alter_partition_roundtrip(
    by_id: bool, epochs_behind: int, proposals: dict[TopicPartition, tuple[int, ...]], expected: object
) -> None:
    runner = started_runner()
    topic_id, epoch = runner.topic_id("t") if by_id else NO_ID, runner.registrations[1].broker_epoch - epochs_behind
    partitions = {key: ProposedIsr(0, 0, isr, 0, topic_id) for key, isr in proposals.items()}
    message = AlterPartition(1, epoch, partitions)
    read = partial(alter_partition_reply, runner.loop.controller.cluster, message)
    assert submit(runner, partial(alter_partition_event, message), read) == expected


@pytest.mark.parametrize(
    "epochs_behind, expected",
    [
        (0, ControlledShutdownResponseData(ErrorCode.NONE, (("t", 1),))),
        (1, ControlledShutdownResponseData(ErrorCode.STALE_BROKER_EPOCH)),
    ],
)
def test_controlled_shutdown_roundtrip(epochs_behind: int, expected: ControlledShutdownResponseData) -> None:
    """The ISR of t-1 has no other member, so its leader stays."""
    runner = started_runner()
    message = ControlledShutdown(1, runner.registrations[1].broker_epoch - epochs_behind)
    read = partial(controlled_shutdown_reply, runner.loop.controller.cluster)
    assert submit(runner, partial(controlled_shutdown_event, message), read) == expected
