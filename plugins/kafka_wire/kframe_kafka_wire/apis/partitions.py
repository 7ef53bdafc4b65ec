"""Reassignments, elections and AlterPartition (``docs/reference/controller/wire.md`` sections 7, 12 and 13)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from kframe.plugin import ErrorCode
from kframe.plugin.cluster import NO_BROKER_EPOCH, ElectionType, RecoveryState, TopicPartition
from kframe.plugin.controller import IsrProposal
from kframe.plugin.server import AclOperation
from kframe_kafka_wire.apis.calls import Call, reason
from kframe_kafka_wire.protocol.codec import Fields

_DENIED: Final = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def _grouped(partitions: Iterable[tuple[str, Fields]]) -> Iterator[tuple[str, list[Fields]]]:
    """Entries grouped by topic. Topics are in order of first occurrence."""
    topics: dict[str, list[Fields]] = {}
    for topic, entry in partitions:
        topics.setdefault(topic, []).append(entry)
    return iter(topics.items())


async def alter_reassignments(call: Call) -> Fields:
    """Answer when the reassignments have started."""
    targets: dict[TopicPartition, tuple[int, ...] | None] = {}
    invalid = []
    for topic in call.body["topics"]:
        for partition in topic["partitions"]:
            name, replicas = (topic["name"], partition["partition_index"]), partition["replicas"]
            if replicas is not None and call.context.node.broker_id in replicas:
                invalid.append(name)  # The controller is no broker, so it cannot have replicas.
            else:
                targets[name] = None if replicas is None else tuple(replicas)
    result = await call.context.wait(call.context.controller.reassign(targets))
    if result.error is not ErrorCode.NONE:
        return {"error_code": result.error, "error_message": reason(call, result.error, "the request")}
    codes: dict[TopicPartition, int] = dict(result.by_partition())
    codes |= dict.fromkeys(invalid, ErrorCode.INVALID_REPLICA_ASSIGNMENT)
    entries = (
        (
            topic,
            {"partition_index": number, "error_code": code, "error_message": reason(call, code, f"{topic}-{number}")},
        )
        for (topic, number), code in codes.items()
    )
    return {"responses": [{"name": topic, "partitions": results} for topic, results in _grouped(entries)]}


async def list_reassignments(call: Call) -> Fields:
    """The requested partitions with a reassignment."""
    topics = call.body["topics"]
    requested = None
    if topics is not None:
        requested = [(topic["name"], number) for topic in topics for number in topic["partition_indexes"]]
    result = await call.context.wait(call.context.controller.list_reassignments(requested))
    if result.error is not ErrorCode.NONE:
        return {"error_code": result.error, "error_message": reason(call, result.error, "the request")}
    lists = (result.replicas, result.adding_replicas, result.removing_replicas)
    entries = (
        (
            topic,
            {
                "partition_index": number,
                "replicas": lists[0][position].tolist(),
                "adding_replicas": lists[1][position].tolist(),
                "removing_replicas": lists[2][position].tolist(),
            },
        )
        for position, (topic, number) in enumerate(result.partitions)
    )
    return {"topics": [{"name": topic, "partitions": results} for topic, results in _grouped(entries)]}


async def elect_leaders(call: Call) -> Fields:
    """If all partitions (null) are requested, the response has only those that needed an election."""
    listed = call.body["topic_partitions"]
    requested = None
    if listed is not None:
        requested = [(entry["topic"], number) for entry in listed for number in entry["partitions"]]
    kind = call.body.get("election_type", ElectionType.PREFERRED)
    if not call.is_authorized(AclOperation.ALTER):
        return _elected(call, _DENIED, dict.fromkeys(requested or (), _DENIED))
    if kind not in (ElectionType.PREFERRED, ElectionType.UNCLEAN):
        return _elected(call, ErrorCode.INVALID_REQUEST, dict.fromkeys(requested or (), ErrorCode.INVALID_REQUEST))
    result = await call.context.wait(call.context.controller.elect_leaders(ElectionType(kind), requested))
    codes: dict[TopicPartition, int] = dict(result.by_partition())
    if result.error is not ErrorCode.NONE:
        # Kafka repeats the error for each partition. Clients of version 0 need this.
        return _elected(call, ErrorCode.NONE, dict.fromkeys(requested or (), result.error) | codes, result.error)
    return _elected(call, ErrorCode.NONE, codes)


def _elected(call: Call, error: int, codes: Mapping[TopicPartition, int], refusal: int = ErrorCode.NONE) -> Fields:
    entries = (
        (topic, {"partition_id": number, "error_code": code, "error_message": reason(call, code, f"{topic}-{number}")})
        for (topic, number), code in codes.items()
    )
    results = [{"topic": topic, "partition_result": results} for topic, results in _grouped(entries)]
    return {"error_code": error or (refusal if not codes else 0), "replica_election_results": results}


async def alter_partition(call: Call) -> Fields:
    """A leader proposes ISRs."""
    by_id = call.version >= 2
    proposals = [
        _proposal(topic["topic_id"] if by_id else topic["topic_name"], partition)
        for topic in call.body["topics"]
        for partition in topic["partitions"]
    ]
    future = call.context.controller.alter_partition(
        call.body["broker_id"], call.body["broker_epoch"], proposals, call.version
    )
    result = await call.context.wait(future)
    if result.error is not ErrorCode.NONE:
        return {"error_code": result.error}
    topics: dict[str | bytes, list[Fields]] = {}
    for position, proposal in enumerate(proposals):
        entry: dict[str, Any] = {"partition_index": proposal.partition, "error_code": int(result.codes[position])}
        if not entry["error_code"] and result.known[position]:
            entry |= {
                "leader_id": int(result.leader[position]),
                "leader_epoch": int(result.leader_epoch[position]),
                "isr": result.isr[position].tolist(),
                "leader_recovery_state": int(result.recovery[position]),
                "partition_epoch": int(result.partition_epoch[position]),
            }
        topics.setdefault(proposal.topic, []).append(entry)
    key = "topic_id" if by_id else "topic_name"
    return {"topics": [{key: topic, "partitions": results} for topic, results in topics.items()]}


def _proposal(topic: str | bytes, partition: Fields) -> IsrProposal:
    members = partition.get("new_isr_with_epochs")
    isr = partition["new_isr"] if members is None else [member["broker_id"] for member in members]
    epochs = () if members is None else tuple(member["broker_epoch"] for member in members)
    return IsrProposal(
        topic,
        partition["partition_index"],
        partition["leader_epoch"],
        partition["partition_epoch"],
        tuple(isr),
        RecoveryState.RECOVERING if partition.get("leader_recovery_state") else RecoveryState.RECOVERED,
        epochs if any(epoch != NO_BROKER_EPOCH for epoch in epochs) else None,
    )
