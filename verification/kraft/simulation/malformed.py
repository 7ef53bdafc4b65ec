"""Records that no controller writes any longer, and records that contradict the metadata."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from kframe.plugin.kraft import PARTITIONS_MAX, ClusterMetadata, InputError, records, replay
from verification.kraft.simulation.image import Image

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


def _partition(topic_id: UUID, number: int) -> records.PartitionRecord:
    return records.PartitionRecord(
        partition_id=number,
        topic_id=topic_id,
        replicas=(1,),
        isr=(1,),
        removing_replicas=(),
        adding_replicas=(),
        leader=1,
        leader_epoch=0,
        partition_epoch=0,
    )
