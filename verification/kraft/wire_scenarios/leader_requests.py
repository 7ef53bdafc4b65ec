"""The steps of partition leaders and replicas over the wire: ISRs, directories and producer ids."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final
from uuid import UUID

from kframe.core.kraft.replication.alter_partition import IsrResult, KraftIsrProposal
from kframe.core.kraft.replication.directories import DirectoryAssignment
from kframe.errors import ErrorCode
from kframe.scenario.fields import Empty
from kframe.scenario.kraft.arguments import DirectoryAssignments, IsrChange
from kframe.scenario.kraft.leader_steps import (
    altered,
    assigning_epoch,
    assignments_by_directory,
    by_partition,
    count_errors,
    joining_replicas,
    proposals_by_sender,
)
from verification.kraft.wire_scenarios.wire_run import WireRun

ALTER_PARTITION: Final = 56
ALLOCATE_PRODUCER_IDS: Final = 67
ASSIGN_REPLICAS_TO_DIRS: Final = 73


def alter_partition(run: WireRun, argument: dict[str, IsrChange]) -> dict[str, Any]:
    """One AlterPartition request for each sender, in the order in which the senders are first named."""
    responses: dict[str, Any] = {}
    for sender, epoch, proposals in proposals_by_sender(run, argument):
        responses |= _alter(run, sender, epoch, proposals)
    return {name: responses.get(name) for name in argument}


def _alter(run: WireRun, sender: int, epoch: int, proposals: dict[str, KraftIsrProposal]) -> dict[str, Any]:
    topics: dict[UUID, list[dict[str, Any]]] = {}
    for proposal in proposals.values():
        topics.setdefault(proposal.topic_id, []).append(_partition(proposal))
    requested = [{"topic_id": topic_id.bytes, "partitions": partitions} for topic_id, partitions in topics.items()]
    response = run.ask(ALTER_PARTITION, {"broker_id": sender, "broker_epoch": epoch, "topics": requested})
    if response["error_code"]:
        return {name: {"error": ErrorCode(response["error_code"]).name} for name in proposals}
    results = {
        (topic["topic_id"], partition["partition_index"]): _result(topic, partition)
        for topic in response["topics"]
        for partition in topic["partitions"]
    }
    return {name: altered(results[proposal.topic_id.bytes, proposal.partition]) for name, proposal in proposals.items()}


def _partition(proposal: KraftIsrProposal) -> dict[str, Any]:
    return {
        "partition_index": proposal.partition,
        "leader_epoch": proposal.leader_epoch,
        "new_isr_with_epochs": [
            {"broker_id": broker_id, "broker_epoch": broker_epoch} for broker_id, broker_epoch in proposal.isr
        ],
        "leader_recovery_state": proposal.recovery,
        "partition_epoch": proposal.partition_epoch,
    }


def _result(topic: dict[str, Any], partition: dict[str, Any]) -> IsrResult:
    return IsrResult(
        UUID(bytes=topic["topic_id"]),
        partition["partition_index"],
        ErrorCode(partition["error_code"]),
        leader=partition["leader_id"],
        isr=tuple(partition["isr"]),
        leader_epoch=partition["leader_epoch"],
        partition_epoch=partition["partition_epoch"],
        recovery=partition["leader_recovery_state"],
    )


def catch_up(run: WireRun, argument: list[str] | Empty) -> dict[str, int]:
    """Each leader proposes its ISR with all replicas that are active. Returns the number of partitions by error."""
    return count_errors(alter_partition(run, joining_replicas(run.metadata, argument)))


def assign(run: WireRun, argument: DirectoryAssignments) -> dict[str, Any]:
    """AssignReplicasToDirs. Assignments to one directory are together in the request."""
    directories = [
        {"id_": directory.bytes, "topics": list(_topics(group))}
        for directory, group in assignments_by_directory(run, argument).items()
    ]
    epoch = assigning_epoch(run, argument)
    fields = {"broker_id": argument.broker, "broker_epoch": epoch, "directories": directories}
    response = run.ask(ASSIGN_REPLICAS_TO_DIRS, fields)
    if response["error_code"]:
        return {"error": ErrorCode(response["error_code"]).name}
    errors = {
        f"{run.names.topic(UUID(bytes=topic['topic_id']))}-{partition['partition_index']}": partition["error_code"]
        for directory in response["directories"]
        for topic in directory["topics"]
        for partition in topic["partitions"]
    }
    return by_partition({name: ErrorCode(code).name for name, code in errors.items()})


def _topics(assignments: Iterable[DirectoryAssignment]) -> Iterable[dict[str, Any]]:
    topics: dict[UUID, list[dict[str, int]]] = {}
    for assignment in assignments:
        topics.setdefault(assignment.topic_id, []).append({"partition_index": assignment.partition})
    return ({"topic_id": topic_id.bytes, "partitions": partitions} for topic_id, partitions in topics.items())


def allocate_ids(run: WireRun, argument: int) -> dict[str, Any]:
    """AllocateProducerIds of a broker."""
    epoch = run.brokers.get(argument).epoch
    response = run.ask(ALLOCATE_PRODUCER_IDS, {"broker_id": argument, "broker_epoch": epoch})
    error = ErrorCode(response["error_code"]).name
    if error != ErrorCode.NONE.name:
        return {"error": error}
    return {"error": error, "start": response["producer_id_start"], "length": response["producer_id_len"]}
