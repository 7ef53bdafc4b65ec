"""The steps of a scenario that send requests, as a broker or a client does: to the controller, or to leaders."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import numpy as np

from kframe.core.operations.alter_partition import AlterPartitionResponse
from kframe.core.operations.controlled_shutdown import ControlledShutdownResponse
from kframe.core.operations.elect_leaders import ElectionResponse
from kframe.errors import ErrorCode, ScenarioError
from kframe.model.arrays import Ragged
from kframe.model.events import (
    AlterPartitionRequested,
    ControlledShutdownRequested,
    ElectionRequested,
    ElectionType,
    TopicPartition,
)
from kframe.model.ids import NO_BROKER_EPOCH, NO_LEADER, NO_STATE
from kframe.model.tables import RequestedPartitions
from kframe.model.topic_partitions import parse_topic_partition
from kframe.scenario import checks
from kframe.scenario.fields import split_partition
from kframe.scenario.state import ScenarioState
from kframe.scenario.step_types import ElectLeadersStep, ProducedRecords, ScenarioIsr

#: Fields of a proposal that may differ from the stored state.
_PROPOSED: Final = ("sender", "leader_epoch", "partition_epoch", "leader_recovery_state")
_ACKS: Final = {None: -1, "all": -1, -1: -1, 0: 0, 1: 1}
#: The version of AlterPartition that scenarios send.
_ALTER_PARTITION_VERSION: Final = 3


def controlled_shutdown(runner: ScenarioState, where: str, broker_id: int) -> dict[str, Any]:
    """Step ``controlled_shutdown``: a broker requests controlled shutdown."""
    registration = runner.registrations.get(broker_id)
    epoch = registration.broker_epoch if registration else NO_BROKER_EPOCH
    response: ControlledShutdownResponse = runner.call(partial(ControlledShutdownRequested, broker_id, epoch))
    names = [runner.loop.controller.cluster.name(int(row)) for row in response.remaining]
    return {"error": response.error.name, "remaining": sorted(names, key=split_partition)}


def _with_stored_fields(runner: ScenarioState, key: TopicPartition, proposal: ScenarioIsr) -> dict[str, int]:
    """The proposal's fields other than the ISR: as stated, else as stored, else 0."""
    stored = runner.stored(key)
    fields = dict.fromkeys(_PROPOSED, 0)
    if stored is not None and stored.partition_epoch != NO_STATE:
        fields = {
            "sender": NO_LEADER if stored.leader is None else stored.leader,
            "leader_epoch": stored.leader_epoch,
            "partition_epoch": stored.partition_epoch,
            "leader_recovery_state": int(stored.recovery),
        }
    return fields | {name: value for name in _PROPOSED if (value := getattr(proposal, name)) is not None}


def alter_partition(runner: ScenarioState, where: str, content: Mapping[str, ScenarioIsr]) -> dict[str, str]:
    """Step ``alter_partition``: leaders propose ISRs, each in one request, in the order in which the step first names
    the senders."""
    proposals = {parse_topic_partition(f"{where}.{name}", name): proposal for name, proposal in content.items()}
    by_sender: dict[int, dict[TopicPartition, ScenarioIsr]] = {}
    for key, proposal in proposals.items():
        by_sender.setdefault(_with_stored_fields(runner, key, proposal)["sender"], {})[key] = proposal
    codes_by_partition: dict[TopicPartition, ErrorCode] = {}
    for sender, sent in by_sender.items():
        response: AlterPartitionResponse = runner.call(_request(runner, sender, sent))
        codes = response.codes.tolist() if response.error is ErrorCode.NONE else [response.error] * len(sent)
        codes_by_partition.update(zip(sent, (ErrorCode(code) for code in codes), strict=True))
    return {f"{topic}-{partition}": codes_by_partition[topic, partition].name for topic, partition in proposals}


def _request(
    runner: ScenarioState, sender: int, proposals: Mapping[TopicPartition, ScenarioIsr]
) -> Callable[[int], AlterPartitionRequested]:
    """The request of ``sender``. A sender that never registered sends broker epoch 0."""
    registration = runner.registrations.get(sender)
    isr = Ragged.of([proposal.isr for proposal in proposals.values()])
    epochs = [
        entry.broker_epoch if (entry := runner.registrations.get(int(member))) else NO_BROKER_EPOCH
        for member in isr.values
    ]
    complete = [_with_stored_fields(runner, key, proposal) for key, proposal in proposals.items()]
    return partial(
        AlterPartitionRequested,
        sender,
        registration.broker_epoch if registration else 0,
        _ALTER_PARTITION_VERSION,
        RequestedPartitions.of((runner.topic_id(topic), partition) for topic, partition in proposals),
        np.array([proposal["leader_epoch"] for proposal in complete], np.int32),
        np.array([proposal["partition_epoch"] for proposal in complete], np.int32),
        np.array([proposal["leader_recovery_state"] for proposal in complete], np.uint8),
        isr,
        isr_epochs=np.array(epochs, np.int64),
    )


def elect_leaders(runner: ScenarioState, where: str, content: ElectLeadersStep) -> dict[str, str]:
    """Step ``elect_leaders``: a client requests elections."""
    partitions = None
    if content.partitions is not None:
        partitions = tuple(parse_topic_partition(f"{where}.partitions", name) for name in content.partitions)
    election = ElectionType[content.election.upper()]
    response: ElectionResponse = runner.call(partial(ElectionRequested, election, partitions))
    name = runner.loop.controller.cluster.name
    codes = {name(int(row)): ErrorCode(int(code)) for row, code in zip(response.rows, response.codes, strict=True)}
    codes |= {f"{topic}-{partition}": code for (topic, partition), code in response.unknown}
    return {partition: codes[partition].name for partition in sorted(codes, key=split_partition)}


def produce(runner: ScenarioState, where: str, content: Mapping[str, ProducedRecords]) -> dict[str, str]:
    """Step ``produce``: clients write records to brokers that replicate, ``{t-0: {records: 3, acks: all}}``."""
    partitions = {parse_topic_partition(f"{where}.{name}", name): produced for name, produced in content.items()}
    if runner.replication is None:
        raise ScenarioError(where, "brokers that do not replicate", "brokers_replicate: true")
    checks.require_partitions(runner, where, partitions)
    return {
        f"{key[0]}-{key[1]}": runner.replication.produce(key, produced.records, _ACKS[produced.acks])
        for key, produced in partitions.items()
    }
