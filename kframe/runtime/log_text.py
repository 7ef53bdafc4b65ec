"""Templates of log lines, and values written as Kafka's logs write them (Scala's and Java's ``toString``)."""

from __future__ import annotations

import base64
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kframe.core.event_log import NAMES_LOGGED
from kframe.model.brokers import Registration
from kframe.model.ids import PartitionState, RecoveryState, ReplicaFlag
from kframe.model.log_entries import LogEntry, PartitionNames, PartitionSample, TopicAssignments, TopicNames

#: The states of a partition by Kafka's names.
PARTITION_STATES: Final = {
    PartitionState.NEW: "NewPartition",
    PartitionState.ONLINE: "OnlinePartition",
    PartitionState.OFFLINE: "OfflinePartition",
    PartitionState.NON_EXISTENT: "NonExistentPartition",
}


@dataclass(frozen=True, slots=True)
class Template:
    """The text of a message, formatted with the values of a log entry.

    ``prefix`` may use ``{id}`` and ``{epoch}`` of the controller.
    """

    level: int
    text: str
    prefix: str = "[Controller id={id}] "
    summary: str = ""
    """For a message with a line per partition of a ``sample``: what happened to all of them."""


def line_of(template: Template, entry: LogEntry, controller_id: int) -> str:
    """The line of an entry with a single line."""
    return _prefix(template, entry, controller_id) + _FORMAT.vformat(template.text, (), _values(entry, controller_id))


def lines_of_topics(template: Template, entry: LogEntry, controller_id: int) -> Iterator[str]:
    """A line for each topic of ``each_topic``, and a line that counts the others."""
    topics: Any = entry.values["each_topic"]
    prefix = _prefix(template, entry, controller_id)
    for topic in topics.names:
        yield prefix + template.text.format(topic=topic)
    if omitted := topics.count - len(topics.names):
        yield prefix + template.text.format(topic=f"(and {omitted} more)")


def lines_of_partitions(template: Template, entry: LogEntry, controller_id: int, lines_max: int) -> Iterator[str]:
    """A line for each of at most ``lines_max`` partitions of the ``sample``, evenly spaced, then a line that counts
    the others."""
    sample: Any = entry.values["sample"]
    prefix, count = _prefix(template, entry, controller_id), min(len(sample), lines_max)
    values = _values(entry, controller_id)
    for number in range(count):
        fields = _SampledPartition(sample, number * len(sample) // count, values)
        yield prefix + _FORMAT.vformat(template.text, (), fields)
    if omitted := sample.names.count - count:
        yield f"{prefix}{sample.names.count} {template.summary}: {omitted} of them are left out of this log"


def _values(entry: LogEntry, controller_id: int) -> dict[str, object]:
    return {"id": controller_id, "epoch": entry.controller_epoch, **entry.values}


def _prefix(template: Template, entry: LogEntry, controller_id: int) -> str:
    return template.prefix.format(id=controller_id, epoch=entry.controller_epoch)


class _Formatter(string.Formatter):
    """``{value}`` joins lists by commas, as Scala's ``mkString(",")``. ``{value:Set}`` writes a Scala collection."""

    def format_field(self, value: Any, format_spec: str) -> str:
        items, omitted = _items(value)
        if items is None:
            return str(value)
        if format_spec:
            ellipsis = [f"... {omitted} more"] if omitted else []
            return f"{format_spec}({', '.join([*items, *ellipsis])})"
        return ",".join(items) + (f" and {omitted} more" if omitted else "")


_FORMAT: Final = _Formatter()


def _items(value: Any) -> tuple[list[str] | None, int]:
    """At most NAMES_LOGGED items of a value that has several, and how many are left out. None for a single value."""
    match value:
        case TopicNames():
            return list(value.names), value.count - len(value.names)
        case PartitionNames():
            return [value.name(index) for index in range(len(value))], value.count - len(value)
        case PartitionSample(names=names):
            pairs = [f"{names.name(index)} -> {_assignment(value, index)}" for index in range(len(value))]
            return pairs, names.count - len(value)
        case TopicAssignments():
            return _topics_assigned(value), value.sample.names.count - len(value.sample)
        case Mapping():
            pairs = [f"{key} -> {item}" for key, item in list(value.items())[:NAMES_LOGGED]]
            return pairs, len(value) - len(pairs)
        case str() | bytes():
            return None, 0
        case Sequence():
            shown = [str(item) for item in value[:NAMES_LOGGED]]
            return shown, len(value) - len(shown)
    return (None, 0) if not isinstance(value, Registration) else ([_registration(value)], 0)


def _topics_assigned(assignments: TopicAssignments) -> list[str]:
    """Kafka 3.9 ``TopicIdReplicaAssignment.toString`` of each topic, in the order of the sample."""
    partitions: dict[str, list[str]] = {}
    names = assignments.sample.names
    for index in range(len(names)):
        partition = f"{names.name(index)} -> {_assignment(assignments.sample, index)}"
        partitions.setdefault(names.topics[names.topic[index]], []).append(partition)
    return [
        f"TopicIdReplicaAssignment({topic},{_topic_id(assignments.topic_ids.get(topic))},Map({', '.join(listed)}))"
        for topic, listed in partitions.items()
    ]


def _topic_id(topic_id: bytes | None) -> str:
    """A Scala ``Option`` of Kafka's ``Uuid``."""
    return "None" if topic_id is None else f"Some({base64.urlsafe_b64encode(topic_id).rstrip(b'=').decode()})"


def _registration(registration: Registration) -> str:
    endpoints = ", ".join(
        f"{endpoint.listener}://{endpoint.host}:{endpoint.port}" for endpoint in registration.endpoints
    )
    return f"{registration.broker_id} : {endpoints} : {registration.rack}"


class _SampledPartition(Mapping[str, object]):
    """The fields of a partition of a sample, computed on access, and the values of its entry."""

    def __init__(self, sample: PartitionSample, index: int, values: Mapping[str, object]) -> None:
        self._sample, self._index, self._values = sample, index, values

    def __getitem__(self, key: str) -> object:
        make = _FIELDS.get(key)
        value = self._values[key] if make is None else make(self._sample, self._index)
        return PARTITION_STATES[value] if isinstance(value, PartitionState) else value

    def __iter__(self) -> Iterator[str]:
        return iter((*_FIELDS, *self._values))

    def __len__(self) -> int:
        return len(_FIELDS) + len(self._values)


def _brokers(sample: PartitionSample, index: int, *, isr: bool) -> list[int]:
    lists = sample.isr if isr else sample.replicas
    listed: list[int] = lists.values[lists.offsets[index] : lists.offsets[index + 1]].tolist()
    return listed


def _targets(sample: PartitionSample, index: int) -> list[int]:
    """Replicas that are not being removed."""
    flags = sample.flags[sample.replicas.offsets[index] : sample.replicas.offsets[index + 1]].tolist()
    listed = zip(_brokers(sample, index, isr=False), flags, strict=True)
    return [broker for broker, bits in listed if not bits & ReplicaFlag.REMOVING]


def _leader_and_isr(sample: PartitionSample, index: int) -> str:
    """Kafka 3.9 ``LeaderAndIsr.toString``. Broker epochs of members are not stored in ZooKeeper."""
    isr = ", ".join(f"BrokerState(brokerId={broker}, brokerEpoch=-1)" for broker in _brokers(sample, index, isr=True))
    return (
        f"LeaderAndIsr(leader={sample.leader[index]}, leaderEpoch={sample.leader_epoch[index]}, "
        f"isrWithBrokerEpoch=List({isr}), leaderRecoveryState={RecoveryState(int(sample.recovery[index])).name}, "
        f"partitionEpoch={sample.partition_epoch[index]})"
    )


def _leadership(sample: PartitionSample, index: int) -> str:
    """Kafka 3.9 ``LeaderIsrAndControllerEpoch.toString``."""
    isr = ",".join(map(str, _brokers(sample, index, isr=True)))
    return (
        f"(Leader:{sample.leader[index]},ISR:{isr},"
        f"LeaderRecoveryState:{RecoveryState(int(sample.recovery[index])).name},"
        f"LeaderEpoch:{sample.leader_epoch[index]},ZkVersion:{sample.partition_epoch[index]},"
        f"ControllerEpoch:{sample.controller_epoch[index]})"
    )


def _assignment(sample: PartitionSample, index: int) -> str:
    """Kafka 3.9 ``ReplicaAssignment.toString``."""
    replicas = _brokers(sample, index, isr=False)
    flags = sample.flags[sample.replicas.offsets[index] : sample.replicas.offsets[index + 1]].tolist()

    def flagged(flag: ReplicaFlag) -> str:
        return ",".join(str(broker) for broker, bits in zip(replicas, flags, strict=True) if bits & flag)

    return (
        f"ReplicaAssignment(replicas={','.join(map(str, replicas))}, addingReplicas={flagged(ReplicaFlag.ADDING)}, "
        f"removingReplicas={flagged(ReplicaFlag.REMOVING)})"
    )


#: The fields of each partition in templates.
_FIELDS: Final[Mapping[str, Callable[[PartitionSample, int], object]]] = {
    "partition": lambda sample, index: sample.names.name(index),
    "before": lambda sample, index: PartitionState(int(sample.before[index])),
    "state": _leader_and_isr,
    "leadership": _leadership,
    "assignment": _assignment,
    "replicas": lambda sample, index: _brokers(sample, index, isr=False),
    "preferred": lambda sample, index: _brokers(sample, index, isr=False)[0],
    "targets": _targets,
    "leader": lambda sample, index: int(sample.leader[index]),
    "leader_epoch": lambda sample, index: int(sample.leader_epoch[index]),
    "partition_epoch": lambda sample, index: int(sample.partition_epoch[index]),
}
