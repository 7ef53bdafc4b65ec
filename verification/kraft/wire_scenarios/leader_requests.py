"""The steps of partition leaders and replicas over the wire: ISRs, directories and producer ids."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from kframe.errors import ErrorCode
from kframe.model.kraft.views import partition_record
from kframe.scenario.fields import Empty, split_partition
from kframe.scenario.kraft.arguments import DirectoryAssignments, IsrChange
from kframe.scenario.kraft.leader_steps import by_partition, count_errors, joining_replicas, topic_id_of
from kframe.scenario.kraft.names import RESERVED
from verification.kraft.wire_scenarios.wire_run import WireRun

ALTER_PARTITION: Final = 56
ALLOCATE_PRODUCER_IDS: Final = 67
ASSIGN_REPLICAS_TO_DIRS: Final = 73
#: The fields of an accepted proposal.
_STATE: Final = ("leader_id", "leader_epoch", "isr", "leader_recovery_state", "partition_epoch")


def alter_partition(run: WireRun, argument: dict[str, IsrChange]) -> dict[str, Any]:
    """One AlterPartition request for each sender, in the order in which the senders are first named."""
    requests: dict[tuple[int, int | None], dict[bytes, dict[str, dict[str, Any]]]] = {}
    for name, change in argument.items():
        topic, _ = split_partition(name)
        sender, partition = _proposal(run, name, change)
        topics = requests.setdefault((sender, change.sender_epoch), {})
        topics.setdefault(topic_id_of(run, topic).bytes, {})[name] = partition
    responses: dict[str, Any] = {}
    for (sender, named_epoch), topics in requests.items():
        known_epoch = run.brokers.by_id[sender].epoch if sender in run.brokers.by_id else 0
        responses |= _alter(run, sender, known_epoch if named_epoch is None else named_epoch, topics)
    return {name: responses.get(name) for name in argument}


def _alter(run: WireRun, sender: int, epoch: int, topics: dict[bytes, dict[str, dict[str, Any]]]) -> dict[str, Any]:
    requested = [{"topic_id": topic_id, "partitions": list(named.values())} for topic_id, named in topics.items()]
    response = run.ask(ALTER_PARTITION, {"broker_id": sender, "broker_epoch": epoch, "topics": requested})
    if response["error_code"]:
        refused = {"error": ErrorCode(response["error_code"]).name}
        return {name: refused for named in topics.values() for name in named}
    answered = {
        (topic["topic_id"], partition["partition_index"]): partition
        for topic in response["topics"]
        for partition in topic["partitions"]
    }
    return {
        name: _altered(answered[topic_id, partition["partition_index"]])
        for topic_id, named in topics.items()
        for name, partition in named.items()
    }


def _altered(partition: dict[str, Any]) -> dict[str, Any]:
    error = ErrorCode(partition["error_code"])
    if error is not ErrorCode.NONE:
        return {"error": error.name}
    leader, leader_epoch, isr, recovery, partition_epoch = (partition[field] for field in _STATE)
    return {
        "error": error.name,
        "leader": leader,
        "leader_epoch": leader_epoch,
        "isr": list(isr),
        "leader_recovery_state": recovery,
        "partition_epoch": partition_epoch,
    }


def _proposal(run: WireRun, name: str, change: IsrChange) -> tuple[int, dict[str, Any]]:
    """The sender, and the fields of a partition in AlterPartition."""
    topic, index = split_partition(name)
    row = run.metadata.row(topic, index)
    stored = None if row is None else partition_record(run.metadata, row)
    leader, leader_epoch, partition_epoch, recovery = (
        (-1, 0, 0, 0)
        if stored is None
        else (stored.leader, stored.leader_epoch, stored.partition_epoch, stored.leader_recovery_state)
    )
    epochs = {broker_id: broker.epoch for broker_id, broker in run.brokers.by_id.items()} | change.broker_epochs
    return leader if change.sender is None else change.sender, {
        "partition_index": index,
        "leader_epoch": leader_epoch if change.leader_epoch is None else change.leader_epoch,
        "new_isr_with_epochs": [{"broker_id": member, "broker_epoch": epochs.get(member, -1)} for member in change.isr],
        "leader_recovery_state": recovery if change.leader_recovery_state is None else change.leader_recovery_state,
        "partition_epoch": partition_epoch if change.partition_epoch is None else change.partition_epoch,
    }


def catch_up(run: WireRun, argument: list[str] | Empty) -> dict[str, int]:
    """Each leader proposes its ISR with all replicas that are active. Returns the number of partitions by error."""
    return count_errors(alter_partition(run, joining_replicas(run.metadata, argument)))


def assign(run: WireRun, argument: DirectoryAssignments) -> dict[str, Any]:
    """AssignReplicasToDirs. Assignments to one directory are together in the request."""
    broker = run.brokers.get(argument.broker)
    directories: dict[UUID, dict[UUID, list[dict[str, int]]]] = {}
    for name, symbol in argument.partitions.items():
        topic, index = split_partition(name)
        directory = RESERVED.get(symbol) or run.names.directory(f"{broker.broker_id}.{symbol}")
        topics = directories.setdefault(directory, {})
        topics.setdefault(topic_id_of(run, topic), []).append({"partition_index": index})
    requested = [
        {
            "id_": directory.bytes,
            "topics": [{"topic_id": topic_id.bytes, "partitions": indexes} for topic_id, indexes in topics.items()],
        }
        for directory, topics in directories.items()
    ]
    epoch = broker.epoch if argument.epoch is None else argument.epoch
    fields = {"broker_id": broker.broker_id, "broker_epoch": epoch, "directories": requested}
    response = run.ask(ASSIGN_REPLICAS_TO_DIRS, fields)
    if response["error_code"]:
        return {"error": ErrorCode(response["error_code"]).name}
    return by_partition(
        {
            f"{run.names.topic(UUID(bytes=topic['topic_id']))}-{partition['partition_index']}": ErrorCode(
                partition["error_code"]
            ).name
            for directory in response["directories"]
            for topic in directory["topics"]
            for partition in topic["partitions"]
        }
    )


def allocate_ids(run: WireRun, argument: int) -> dict[str, Any]:
    """AllocateProducerIds of a broker."""
    epoch = run.brokers.get(argument).epoch
    response = run.ask(ALLOCATE_PRODUCER_IDS, {"broker_id": argument, "broker_epoch": epoch})
    error = ErrorCode(response["error_code"]).name
    if error != ErrorCode.NONE.name:
        return {"error": error}
    return {"error": error, "start": response["producer_id_start"], "length": response["producer_id_len"]}
