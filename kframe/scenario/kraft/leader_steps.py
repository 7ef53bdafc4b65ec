"""The steps of partition leaders and replicas: proposed ISRs, assigned directories and producer ids."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from kframe.core.kraft.brokers.producer_ids import allocate_producer_ids
from kframe.core.kraft.controller_result import RequestRefused
from kframe.core.kraft.replication.alter_partition import IsrResult, KraftIsrProposal, alter_partitions
from kframe.core.kraft.replication.directories import DirectoryAssignment, assign_directories
from kframe.errors import ErrorCode
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.views import partition_record
from kframe.scenario.fields import Empty, split_partition
from kframe.scenario.kraft.arguments import DirectoryAssignments, IsrChange
from kframe.scenario.kraft.names import RESERVED
from kframe.scenario.kraft.playing import KraftRun
from kframe.scenario.kraft.quorum_run import QuorumRun


def by_partition(responses: dict[str, Any]) -> dict[str, Any]:
    """Responses in the order of topics and partitions."""
    return dict(sorted(responses.items(), key=lambda item: split_partition(item[0])))


def assign(run: QuorumRun, argument: DirectoryAssignments) -> dict[str, Any]:
    """AssignReplicasToDirs. Assignments to one directory are together in the request."""
    broker_id, epoch = argument.broker, assigning_epoch(run, argument)
    assignments = [each for group in assignments_by_directory(run, argument).values() for each in group]
    error, results = run.submit("error", lambda context: assign_directories(context, broker_id, epoch, assignments))
    if results is None:
        return {"error": error}
    return by_partition(
        {
            f"{run.names.topic(result.assignment.topic_id)}-{result.assignment.partition}": result.error.name
            for result in results
        }
    )


def assigning_epoch(run: KraftRun, argument: DirectoryAssignments) -> int:
    """The broker epoch in the request."""
    return run.brokers.get(argument.broker).epoch if argument.epoch is None else argument.epoch


def assignments_by_directory(run: KraftRun, argument: DirectoryAssignments) -> dict[UUID, list[DirectoryAssignment]]:
    """The assignments to each directory, in the order in which directories are first named."""
    groups: dict[UUID, list[DirectoryAssignment]] = {}
    for name, symbol in argument.partitions.items():
        topic, partition = split_partition(name)
        directory = RESERVED.get(symbol) or run.names.directory(f"{argument.broker}.{symbol}")
        assignment = DirectoryAssignment(directory, topic_id_of(run, topic), partition)
        groups.setdefault(directory, []).append(assignment)
    return groups


def topic_id_of(run: KraftRun, name: str) -> UUID:
    """The id of a topic by name; a new id for an unknown topic."""
    topics = run.metadata.topics
    index = topics.index_by_name.get(name)
    return run.names.topic_id(name) if index is None else topics.ids[index]


def alter_partition(run: QuorumRun, argument: dict[str, IsrChange]) -> dict[str, Any]:
    """One AlterPartition request for each sender, in the order in which the senders are first named."""
    responses: dict[str, Any] = {}
    for sender, epoch, proposals in proposals_by_sender(run, argument):
        responses |= _alter(run, sender, epoch, proposals)
    return {name: responses.get(name) for name in argument}


def proposals_by_sender(
    run: KraftRun, argument: dict[str, IsrChange]
) -> list[tuple[int, int, dict[str, KraftIsrProposal]]]:
    """Sender, broker epoch and proposals of each request, in the order in which the senders are first named."""
    requests: dict[tuple[int, int | None], dict[str, KraftIsrProposal]] = {}
    for name, change in argument.items():
        sender, proposal = _proposal(run, name, change)
        requests.setdefault((sender, change.sender_epoch), {})[name] = proposal
    epochs = {broker_id: broker.epoch for broker_id, broker in run.brokers.by_id.items()}
    return [
        (sender, epochs.get(sender, 0) if named_epoch is None else named_epoch, proposals)
        for (sender, named_epoch), proposals in requests.items()
    ]


def _alter(run: QuorumRun, sender: int, epoch: int, proposals: dict[str, KraftIsrProposal]) -> dict[str, Any]:
    try:
        results: list[IsrResult] = run.quorum.submit(
            lambda context: alter_partitions(context, sender, epoch, list(proposals.values()))
        )
    except RequestRefused as refusal:
        return {name: {"error": refusal.error.name} for name in proposals}
    return {name: altered(result) for name, result in zip(proposals, results, strict=True)}


def altered(result: IsrResult) -> dict[str, Any]:
    """The result of a proposal in the form of a trace."""
    if result.error is not ErrorCode.NONE:
        return {"error": result.error.name}
    return {
        "error": "NONE",
        "leader": result.leader,
        "leader_epoch": result.leader_epoch,
        "isr": list(result.isr),
        "leader_recovery_state": int(result.recovery),
        "partition_epoch": result.partition_epoch,
    }


def _proposal(run: KraftRun, name: str, change: IsrChange) -> tuple[int, KraftIsrProposal]:
    topic, partition = split_partition(name)
    row = run.metadata.row(topic, partition)
    stored = None if row is None else partition_record(run.metadata, row)
    leader, leader_epoch, partition_epoch, recovery = (
        (-1, 0, 0, 0)
        if stored is None
        else (stored.leader, stored.leader_epoch, stored.partition_epoch, stored.leader_recovery_state)
    )
    epochs = {broker_id: broker.epoch for broker_id, broker in run.brokers.by_id.items()} | change.broker_epochs
    return leader if change.sender is None else change.sender, KraftIsrProposal(
        topic_id=topic_id_of(run, topic),
        partition=partition,
        isr=tuple((member, epochs.get(member, -1)) for member in change.isr),
        leader_epoch=leader_epoch if change.leader_epoch is None else change.leader_epoch,
        partition_epoch=partition_epoch if change.partition_epoch is None else change.partition_epoch,
        recovery=recovery if change.leader_recovery_state is None else change.leader_recovery_state,
    )


def catch_up(run: QuorumRun, argument: list[str] | Empty) -> dict[str, int]:
    """Each leader proposes its ISR with all replicas that are active. Returns the number of partitions by error."""
    return count_errors(alter_partition(run, joining_replicas(run.metadata, argument)))


def joining_replicas(metadata: ClusterMetadata, argument: list[str] | Empty) -> dict[str, IsrChange]:
    """The ISR of each led partition that active replicas can join, with them; of some topics or of all."""
    proposals = {}
    for name, index in sorted(metadata.topics.index_by_name.items()):
        if isinstance(argument, list) and argument and name not in argument:
            continue
        for row in sorted(metadata.topics.rows_of(index).tolist()):
            record = partition_record(metadata, row)
            joining = [id for id in record.replicas if id not in record.isr and metadata.brokers.is_active(id)]
            if record.leader >= 0 and joining:
                proposals[f"{name}-{record.partition_id}"] = IsrChange([*record.isr, *joining])
    return proposals


def count_errors(responses: dict[str, dict[str, Any]]) -> dict[str, int]:
    """The number of partitions by error."""
    errors = [response["error"] for response in responses.values()]
    return {error: errors.count(error) for error in sorted(set(errors))}


def allocate_ids(run: QuorumRun, argument: int) -> dict[str, Any]:
    """AllocateProducerIds of a broker."""
    epoch = run.brokers.get(argument).epoch
    error, block = run.submit("error", lambda context: allocate_producer_ids(context, argument, epoch))
    return {"error": error} if block is None else {"error": error, "start": block.start, "length": block.length}
