"""Read the output of ``kcat -L -J``: the response to one Metadata request, as one JSON document.

It lists the live brokers, without racks, epochs or configs. A topic with an error has no partitions in it and is left
out, with a note.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import msgspec
import numpy as np

from kframe.errors import SnapshotError
from kframe.model.brokers import Endpoint
from kframe.model.texts import short_repr
from kframe.ports.progress import Progress, ignore_progress
from kframe.snapshot.assemble import Assembled, Assembly
from kframe.snapshot.checks import check_snapshot
from kframe.snapshot.content import named_brokers
from kframe.snapshot.controllers import controller_note
from kframe.snapshot.decode import Count, LeaderField, check_unique_keys, decode, topic_of
from kframe.snapshot.facts import BrokerFacts, PartitionFacts, Source, TopicFacts, absent_columns
from kframe.snapshot.faults import REFUSE, Faults
from kframe.snapshot.files import InputFile, read_blocks, read_document
from kframe.snapshot.kcat_topics import read_topics
from kframe.snapshot.snapshot import Snapshot

_PROVENANCE: Final = absent_columns(
    "not in kcat -L -J",
    "brokers.registered",
    "brokers.endpoints",
    "partitions.leader",
    "partitions.isr",
    "cluster.controller_id",
)
#: What kcat prints without ``-J``.
KCAT_TEXT: Final = re.compile(rb"\s*Metadata for [^\n]* \(from broker ")
_ADDRESS: Final = re.compile(r"\[?([^\]/]*)\]?:([0-9]{1,5})")


#: The query of a request for all topics.
_ALL_TOPICS: Final = "*"


class _Replica(msgspec.Struct):
    id: Count


class _Partition(msgspec.Struct):
    partition: Count
    leader: LeaderField
    replicas: list[_Replica]
    isrs: list[_Replica]


class _Topic(msgspec.Struct):
    topic: str
    partitions: list[_Partition]
    error: str | None = None


class _Broker(msgspec.Struct):
    id: Count
    name: str


class _Query(msgspec.Struct):
    topic: str = _ALL_TOPICS


class _Metadata(msgspec.Struct):
    brokers: list[_Broker]
    topics: list[_Topic]
    controllerid: LeaderField = -1
    query: _Query | None = None


class _Outline(msgspec.Struct):
    """A response whose topics are decoded one by one."""

    brokers: list[_Broker]
    topics: list[msgspec.Raw]
    controllerid: LeaderField = -1
    query: _Query | None = None


class _Partitions(msgspec.Struct):
    partitions: list[msgspec.Raw]


_METADATA: Final = msgspec.json.Decoder(_Metadata)
_OUTLINE: Final = msgspec.json.Decoder(_Outline)
_TOPIC: Final = msgspec.json.Decoder(_Topic)
_PARTITIONS: Final = msgspec.json.Decoder(_Partitions)


def read_kcat(path: InputFile, progress: Progress = ignore_progress, faults: Faults = REFUSE) -> Snapshot:
    """Read one response. Raises SnapshotError, always for an incomplete JSON document.

    msgspec decodes a document that is not in the form that kcat writes, and one with a fault, which it locates.
    """
    with suppress(SnapshotError):
        assembly = _assembly(path)
        if (topics := read_topics(read_blocks(path, progress), assembly)) is not None:
            outline = decode(_METADATA, topics.outline, str(path))
            _check_keys(topics.outline, outline, str(path))
            failed = [topics.names[number] for number in np.flatnonzero(topics.failed)]
            return _snapshot(assembly.finish(), outline, failed, path, REFUSE)
    document = read_document(path)
    if KCAT_TEXT.match(document):
        raise SnapshotError(str(path), "the text of kcat -L", "its JSON: use kcat -L -J")
    try:
        metadata = decode(_METADATA, document, str(path))
        _check_keys(document, metadata, str(path))
    except SnapshotError:
        if faults is REFUSE:
            raise
        metadata = _decode_each_topic(document, path, faults)
    progress(len(document), len(document))
    failed = [topic.topic for topic in metadata.topics if topic.error is not None and not topic.partitions]
    return _snapshot(_assembled(metadata, path, faults), metadata, failed, path, faults)


def _check_keys(document: bytes, metadata: _Metadata, where: str) -> None:
    """Raise SnapshotError for a key that occurs twice in an object."""
    topics, partitions = len(metadata.topics), [row for topic in metadata.topics for row in topic.partitions]
    ids = sum(len(row.replicas) + len(row.isrs) for row in partitions) + len(metadata.brokers) + 1
    check_unique_keys(
        document,
        where,
        {
            **dict.fromkeys((b"brokers", b"topics", b"controllerid", b"query"), 1),
            b"topic": topics + 1,
            b"partitions": topics,
            **dict.fromkeys((b"partition", b"leader", b"replicas", b"isrs"), len(partitions)),
            b"id": ids,
            b"name": len(metadata.brokers) + 1,
        },
    )


def _snapshot(
    assembled: Assembled, metadata: _Metadata, failed: Sequence[str], path: InputFile, faults: Faults
) -> Snapshot:
    """The snapshot, checked, with brokers and controller of the metadata. ``failed`` topics have no partitions."""
    query = metadata.query or _Query()
    if not assembled.topics.names and not faults.topics:
        _check_empty(metadata, query, failed, path)
    partitions = PartitionFacts(
        replicas=assembled.replicas, leader=assembled.numbers["leader"], isr=assembled.lists["isr"]
    )
    provenance = dict(_PROVENANCE)
    if failed:
        names = ", ".join(failed[:5])
        provenance["topics.topic"] = f"{len(failed)} left out that the broker answered with an error: {names}"
    provenance["brokers.endpoints"] = "kcat prints host and port; the listener is taken to be PLAINTEXT"
    if query.topic != _ALL_TOPICS:
        provenance["topics.partition_count"] = f"kcat was asked for topic {query.topic} only: others may exist"
    if metadata.controllerid < 0:
        provenance["cluster.controller_id"] = "the broker knew no controller"
    controller_id = metadata.controllerid if metadata.controllerid >= 0 else None
    provenance |= controller_note(controller_id, partitions)
    snapshot = Snapshot(
        _brokers(metadata, partitions, path),
        TopicFacts(assembled.topics.names, assembled.topics.partition_counts),
        partitions,
        Source("kcat", path.name),
        controller_id=controller_id,
        provenance=provenance,
    )
    return check_snapshot(snapshot, assembled.locate, faults)


def _check_empty(metadata: _Metadata, query: _Query, failed: Sequence[str], path: InputFile) -> None:
    """Raise SnapshotError unless a response without readable topics shows that the cluster has none."""
    expected = "a topic, or a response of a broker to a request for all topics"
    if failed:
        raise SnapshotError(str(path), f"only topics with errors: {', '.join(failed[:5])}", "a topic without an error")
    if not metadata.brokers or query.topic != _ALL_TOPICS:
        raise SnapshotError(str(path), "no topic" if metadata.brokers else "no broker and no topic", expected)


def _decode_each_topic(document: bytes, path: InputFile, faults: Faults) -> _Metadata:
    """A response with unreadable topics, which become topics with an error and without partitions."""
    outline = decode(_OUTLINE, document, str(path))
    topics = []
    for number, raw in enumerate(outline.topics):
        try:
            topics.append(decode(_TOPIC, bytes(raw), f"{path} topics[{number}]"))
        except SnapshotError as fault:
            name = topic_of(bytes(raw))
            faults(fault, name, _partition_count(bytes(raw)))
            topics.append(_Topic(name or "", [], str(fault)))
    return _Metadata(outline.brokers, topics, outline.controllerid, outline.query)


def _partition_count(raw: bytes) -> int | None:
    """The number of partitions of an unreadable topic; None if unknown."""
    try:
        return len(_PARTITIONS.decode(raw).partitions)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _assembly(path: InputFile) -> Assembly:
    return Assembly(lambda number: f"{path} topics[{number}]", ("leader",), ("isr",))


def _assembled(metadata: _Metadata, path: InputFile, faults: Faults) -> Assembled:
    assembly = _assembly(path)
    for number, topic in enumerate(metadata.topics):
        if topic.error is not None and not topic.partitions:
            continue
        try:
            ordinal = assembly.topic(topic.topic, number)
        except SnapshotError as fault:
            faults(fault, topic.topic, len(topic.partitions))
            continue
        for partition in topic.partitions:
            replicas = [replica.id for replica in partition.replicas]
            isr = [replica.id for replica in partition.isrs]
            assembly.partition(ordinal, partition.partition, number, replicas, leader=partition.leader, isr=isr)
    return assembly.finish(faults)


def _brokers(metadata: _Metadata, partitions: PartitionFacts, path: InputFile) -> tuple[BrokerFacts, ...]:
    """The brokers listed, and as not registered those that only partitions name."""
    brokers: dict[int, BrokerFacts] = {}
    for number, broker in enumerate(metadata.brokers):
        where = f"{path} brokers[{number}]"
        if broker.id in brokers:
            raise SnapshotError(where, f"broker id {broker.id} again", "each broker once")
        brokers[broker.id] = BrokerFacts(broker.id, True, endpoints=(_endpoint(broker.name, where),))
    for broker_id in named_brokers(partitions).tolist():
        brokers.setdefault(broker_id, BrokerFacts(broker_id, registered=False))
    return tuple(brokers[broker_id] for broker_id in sorted(brokers))


def _endpoint(name: str, where: str) -> Endpoint:
    parts = _ADDRESS.fullmatch(name)
    if parts is None or int(parts[2]) > 65_535:
        raise SnapshotError(f"{where} field name", short_repr(name), "host:port")
    return Endpoint("PLAINTEXT", parts[1], int(parts[2]))
