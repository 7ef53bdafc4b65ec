"""Records that no controller writes any longer, and records that contradict the metadata."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from uuid import UUID

from kframe.plugin.kraft import (
    PARTITIONS_MAX,
    ClusterMetadata,
    InputError,
    directory_ids,
    partition_record,
    records,
    replay,
)
from verification.kraft.simulation.image import Image, state_of

_UNKNOWN = UUID(int=1 << 80)


def replay_problems(metadata: ClusterMetadata, image: Image) -> Iterator[str]:
    """Replay them. ``metadata`` has the records of ``image``, and may be changed."""
    for record, message in _malformed(image):
        try:
            replay(metadata, record, 0)
        except InputError as error:
            if message not in str(error):
                yield f"{record} is refused with {str(error)!r}, expected {message!r}"
        else:
            yield f"{record} is replayed, although it contradicts the metadata"
    for broker_id, broker in image.brokers.items():
        for type_, fenced in ((records.UnfenceBrokerRecord, False), (records.FenceBrokerRecord, True)):
            replay(metadata, type_(id=broker_id, epoch=broker.broker_epoch), 0)
            registration = metadata.brokers.registrations[broker_id]
            if registration.fenced != fenced or metadata.brokers.is_active(broker_id) == (fenced or broker.in_shutdown):
                yield f"{type_.__name__} leaves {registration}"
    yield from _partition_problems(metadata, image)


def _partition_problems(metadata: ClusterMetadata, image: Image) -> Iterator[str]:
    """Records with the whole state of partitions: of one that exists, and of a new one without directories."""
    for topic_id in image.topics.values():
        numbers = [number for _, number in image.partitions_of(topic_id)]
        for number, count in ((numbers[-1], 3), (len(numbers), 2)):
            record = _partition(topic_id, number, count)
            replay(metadata, record, 0)
            row = metadata.topics.row_by_id(topic_id, number)
            stored = None if row is None else state_of(partition_record(metadata, row))
            expected = state_of(record)
            if not record.directories:
                expected = replace(expected, directories=(directory_ids.MIGRATING,) * count)
            if stored != expected:
                yield f"{record} leaves {stored}"


def _malformed(image: Image) -> Iterator[tuple[records.MetadataRecord, str]]:
    """Each with a part of the error."""
    for broker_id, broker in image.brokers.items():
        for other in (-1, 1):
            epoch = broker.broker_epoch + other
            message = f"found broker {broker_id}, epoch {epoch}, expected epoch {broker.broker_epoch}"
            yield records.UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=epoch), message
            yield records.FenceBrokerRecord(id=broker_id, epoch=epoch), message
    yield records.UnregisterBrokerRecord(broker_id=99, broker_epoch=0), "expected a registered broker"
    yield records.UnregisterControllerRecord(controller_id=99), "found controller 99, expected a registered controller"
    for below in (0, 1):
        next_id = image.next_producer_id - below
        record = records.ProducerIdsRecord(broker_id=1, broker_epoch=1, next_producer_id=next_id)
        yield record, f"found {next_id}, expected more than {image.next_producer_id}"
    yield records.RemoveTopicRecord(topic_id=_UNKNOWN), "expected a topic that exists"
    for name, topic_id in image.topics.items():
        yield records.TopicRecord(name=name, topic_id=_UNKNOWN), "expected a new topic"
        yield records.TopicRecord(name="unknown", topic_id=topic_id), "expected a new topic"
        for number in (-1, PARTITIONS_MAX):
            yield _partition(topic_id, number), f"found partition {number}, expected 0 to {PARTITIONS_MAX - 1}"
    yield _partition(_UNKNOWN, 0), "expected a topic that exists"


def _partition(topic_id: UUID, number: int, count: int = 1) -> records.PartitionRecord:
    """A record of a partition whose fields differ from each other. Without directories if there are two replicas."""
    brokers = range(1, count + 1)
    return records.PartitionRecord(
        partition_id=number,
        topic_id=topic_id,
        replicas=tuple(brokers),
        isr=(1,),
        removing_replicas=(1,),
        adding_replicas=(count,),
        leader=1,
        leader_recovery_state=1,
        leader_epoch=3,
        partition_epoch=4,
        directories=() if count == 2 else tuple(UUID(int=1000 * broker_id + 100) for broker_id in brokers),
        eligible_leader_replicas=tuple(brokers[1:]),
        last_known_elr=tuple(brokers[:1]),
    )
