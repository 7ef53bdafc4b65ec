"""The steps of a scenario that send a request to the controller, as a broker or a client does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from kframe.core.operations.alter_partition import AlterPartitionResponse
from kframe.core.operations.controlled_shutdown import ControlledShutdownResponse
from kframe.core.operations.elect_leaders import ElectionResponse
from kframe.errors import ErrorCode
from kframe.model.columns import Ragged
from kframe.model.events import (
    AlterPartitionRequested,
    ControlledShutdownRequested,
    ElectionRequested,
    ElectionType,
    TopicPartition,
)
from kframe.model.ids import NO_BROKER_EPOCH, NO_LEADER, NO_STATE
from kframe.model.tables import RequestedPartitions
from kframe.scenario.format import topic_partition
from kframe.scenario.state import Action, ScenarioState
from kframe.scenario.step_types import ElectLeadersStep, ScenarioIsr

_ELECTIONS: Final = {"preferred": ElectionType.PREFERRED, "unclean": ElectionType.UNCLEAN}
#: Fields of a proposal that may differ from the stored state.
_PROPOSED: Final = ("sender", "leader_epoch", "partition_epoch", "leader_recovery_state")
#: The version of AlterPartition that scenarios send.
_ALTER_PARTITION_VERSION: Final = 3


def read_controlled_shutdown(_where: str, broker_id: int) -> Action:
    """Step ``controlled_shutdown``: a broker requests controlled shutdown."""
    return partial(_shut_down, broker_id=broker_id)


def _shut_down(runner: ScenarioState, broker_id: int) -> dict[str, Any]:
    registration = runner.registrations.get(broker_id)
    broker_epoch = registration.broker_epoch if registration else NO_BROKER_EPOCH
    response: ControlledShutdownResponse = runner.call(partial(ControlledShutdownRequested, broker_id, broker_epoch))
    names = [runner.loop.controller.cluster.name(int(row)) for row in response.remaining]
    return {"error": response.error.name, "remaining": sorted(names, key=by_partition)}


@dataclass(frozen=True, slots=True)
class Proposal:
    """An ISR that a leader proposes, with the fields that differ from the stored state."""

    isr: tuple[int, ...]
    stated: Mapping[str, int]

    def with_stored_fields(self, runner: ScenarioState, key: TopicPartition) -> dict[str, int]:
        """The proposal's other fields: as stated, else as stored, else 0."""
        stored = runner.stored(key)
        with_stored_fields = dict.fromkeys(_PROPOSED, 0)
        if stored is not None and stored.partition_epoch != NO_STATE:
            with_stored_fields = {
                "sender": NO_LEADER if stored.leader is None else stored.leader,
                "leader_epoch": stored.leader_epoch,
                "partition_epoch": stored.partition_epoch,
                "leader_recovery_state": int(stored.recovery),
            }
        return with_stored_fields | dict(self.stated)


def read_alter_partition(where: str, content: Mapping[str, ScenarioIsr]) -> Action:
    """Step ``alter_partition``: leaders propose ISRs."""
    read = {topic_partition(f"{where}.{name}", name): _proposal(proposal) for name, proposal in content.items()}
    return partial(_alter_partition, proposals=read)


def _proposal(proposal: ScenarioIsr) -> Proposal:
    stated = {name: getattr(proposal, name) for name in _PROPOSED}
    return Proposal(proposal.isr, {name: value for name, value in stated.items() if value is not None})


def _alter_partition(runner: ScenarioState, proposals: dict[TopicPartition, Proposal]) -> dict[str, str]:
    """One request per sender, in the order in which the step first names the senders."""
    by_sender: dict[int, dict[TopicPartition, Proposal]] = {}
    for key, proposal in proposals.items():
        by_sender.setdefault(proposal.with_stored_fields(runner, key)["sender"], {})[key] = proposal
    codes_by_partition: dict[TopicPartition, ErrorCode] = {}
    for sender, sent in by_sender.items():
        response: AlterPartitionResponse = runner.call(_request(runner, sender, sent))
        codes = response.codes.tolist() if response.error is ErrorCode.NONE else [response.error] * len(sent)
        codes_by_partition.update(zip(sent, (ErrorCode(code) for code in codes), strict=True))
    return {f"{topic}-{partition}": codes_by_partition[topic, partition].name for topic, partition in proposals}


def _request(
    runner: ScenarioState, sender: int, proposals: Mapping[TopicPartition, Proposal]
) -> Callable[[int], AlterPartitionRequested]:
    """The request of ``sender``. A sender that never registered sends broker epoch 0."""
    registration = runner.registrations.get(sender)
    isr = Ragged.of([proposal.isr for proposal in proposals.values()])
    epochs = [
        entry.broker_epoch if (entry := runner.registrations.get(int(member))) else NO_BROKER_EPOCH
        for member in isr.values
    ]
    complete = [proposal.with_stored_fields(runner, key) for key, proposal in proposals.items()]
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


def read_elect_leaders(where: str, content: ElectLeadersStep) -> Action:
    """Step ``elect_leaders``: a client requests elections."""
    partitions = None
    if content.partitions is not None:
        partitions = tuple(topic_partition(f"{where}.partitions", name) for name in content.partitions)
    return partial(_elect_leaders, election=_ELECTIONS[content.election], partitions=partitions)


def _elect_leaders(
    runner: ScenarioState, election: ElectionType, partitions: tuple[TopicPartition, ...] | None
) -> dict[str, str]:
    response: ElectionResponse = runner.call(partial(ElectionRequested, election, partitions))
    cluster = runner.loop.controller.cluster
    codes = {
        cluster.name(int(row)): ErrorCode(int(code)) for row, code in zip(response.rows, response.codes, strict=True)
    }
    codes |= {f"{topic}-{partition}": code for (topic, partition), code in response.unknown}
    return {name: codes[name].name for name in sorted(codes, key=by_partition)}


def by_partition(name: str) -> tuple[str, int]:
    """Sort key of ``topic-partition``: by topic, then by number."""
    topic, _, partition = name.rpartition("-")
    return topic, int(partition)
