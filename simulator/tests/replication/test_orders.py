"""Conversion between controller batches and broker messages."""

from __future__ import annotations

from functools import partial

import pytest
import yaml

from kframe.errors import ErrorCode
from kframe.scenario.format import parse_scenario
from kframe.scenario.runner import ScenarioRunner
from kframe_simulator.broker.messages import NO_ID
from kframe_simulator.broker.outgoing import (
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

P = ("t", 0)


def started_runner() -> ScenarioRunner:
    """A runner with an active controller. Broker 1 leads t-0 with ISR 1, 2 and is alone in t-1."""
    scenario = {
        "schema": "kframe.scenario/v1", "name": "s", "brokers": [{"id": 1}, {"id": 2}],
        "topics": [{"name": "t", "partitions": [
            {"partition": 0, "replicas": [1, 2]}, {"partition": 1, "replicas": [1, 2], "leader": 1, "isr": [1]},
        ]}],
        "steps": [{"elect": {}}],
    }  # fmt: skip
    scenario_runner = ScenarioRunner(parse_scenario(yaml.safe_dump(scenario), "s.yaml"))
    scenario_runner.play()
    return scenario_runner


def propose(
    scenario_runner: ScenarioRunner, isr: tuple[int, ...], by_id: bool, broker_epoch: int | None = None
) -> object:
    topic_id = scenario_runner.topic_id("t") if by_id else NO_ID
    epoch = scenario_runner.registrations[1].broker_epoch if broker_epoch is None else broker_epoch
    others = {} if by_id else {("t", 9): ProposedIsr(0, 0, (1,))}
    message = AlterPartition(1, epoch, {P: ProposedIsr(0, 0, isr, 0, topic_id), **others})
    future = scenario_runner.loop.submit(
        partial(alter_partition_event, message),
        lambda response: alter_partition_reply(scenario_runner.loop.controller.cluster, message, response),
    )
    scenario_runner.run_until_idle()
    return future.result(timeout=0)


@pytest.mark.parametrize("by_id", [True, False])
def test_alter_partition_roundtrip(by_id: bool) -> None:
    reply = propose(started_runner(), (1,), by_id)
    assert isinstance(reply, AlterPartitionResponseData)
    partition = reply.partitions[P]
    assert (partition.error, partition.leader, partition.leader_epoch, partition.isr, partition.partition_epoch) == (
        ErrorCode.NONE,
        1,
        0,
        (1,),
        1,
    )
    others = {} if by_id else {("t", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert {key: item.error for key, item in reply.partitions.items() if key != P} == others


@pytest.mark.parametrize(
    "isr, broker_epoch, expected",
    [((1, 7), None, (ErrorCode.NONE, ErrorCode.INELIGIBLE_REPLICA)), ((1,), 0, (ErrorCode.STALE_BROKER_EPOCH, None))],
)
def test_refused_alter_partition_response(
    isr: tuple[int, ...], broker_epoch: int | None, expected: tuple[ErrorCode, ErrorCode | None]
) -> None:
    reply = propose(started_runner(), isr, True, broker_epoch)
    assert isinstance(reply, AlterPartitionResponseData)
    assert (reply.error, reply.partitions[P].error if reply.partitions else None) == expected


@pytest.mark.parametrize(
    "epoch, expected",
    [
        (0, ControlledShutdownResponseData(ErrorCode.NONE, (("t", 1),))),
        (-1, ControlledShutdownResponseData(ErrorCode.STALE_BROKER_EPOCH)),
    ],
)
def test_controlled_shutdown_roundtrip(epoch: int, expected: ControlledShutdownResponseData) -> None:
    """The ISR of t-1 has no other member, so its leader stays."""
    scenario = started_runner()
    message = ControlledShutdown(1, max(scenario.registrations[1].broker_epoch + epoch, 0))
    future = scenario.loop.submit(
        partial(controlled_shutdown_event, message),
        lambda response: controlled_shutdown_reply(scenario.loop.controller.cluster, response),
    )
    scenario.run_until_idle()
    assert future.result(timeout=0) == expected
