"""The metadata cache of a broker (Kafka 3.9 ``ZkMetadataCache``)."""

from __future__ import annotations

from kframe.model.events import TopicPartition
from kframe.model.ids import LEADER_DURING_DELETE
from kframe_simulator.broker.messages import UNDEFINED, PartitionMetadata, UpdateMetadata


class MetadataCache:
    """Live brokers, the controller, and partition leaders."""

    __slots__ = ("controller_id", "live_brokers", "partitions", "topic_ids")

    def __init__(self) -> None:
        self.controller_id = UNDEFINED
        self.live_brokers: frozenset[int] = frozenset()
        self.partitions: dict[TopicPartition, PartitionMetadata] = {}
        self.topic_ids: dict[str, bytes] = {}

    def update(self, request: UpdateMetadata) -> None:
        """Apply a request: replace the live brokers, add or remove partitions."""
        self.controller_id = request.controller_id
        self.live_brokers = frozenset(request.live_brokers)
        self.topic_ids.update(request.topic_ids)
        for key, metadata in request.partitions.items():
            if metadata.leader == LEADER_DURING_DELETE:
                self.partitions.pop(key, None)
            else:
                self.partitions[key] = metadata
        if any(metadata.leader == LEADER_DURING_DELETE for metadata in request.partitions.values()):
            left = {topic for topic, _ in self.partitions}
            self.topic_ids = {topic: item for topic, item in self.topic_ids.items() if topic in left}
