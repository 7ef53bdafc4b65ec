"""The client library kafka-python, behind the interface of the other clients."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from kframe.testing.waiting import PATIENCE_S, until
from verification.kafka_wire.clients import GROUP, Partitions, RecordPosition, gathered


class KafkaPython:
    """kafka-python."""

    reassigns = True

    def __init__(self, folder: Path, address: str) -> None:
        with warnings.catch_warnings():  # It reads its message files by a deprecated function of Python.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._lib: Any = import_module("kafka")
        self._names: Any = import_module("kafka.admin")
        self._errors: Any = import_module("kafka.errors")
        self._offset_class: Any = import_module("kafka.structs").OffsetAndMetadata
        self._own = {"bootstrap_servers": address.split(",")}
        self._admin: Any = self._lib.KafkaAdminClient(**self._own)

    def create(self, topic: str, partitions: int, factor: int) -> None:
        self._admin.create_topics([self._names.NewTopic(topic, partitions, factor)])

    def describe(self) -> Mapping[str, Partitions]:
        return {
            topic["name"]: {
                partition["partition_index"]: (
                    partition["leader_id"],
                    partition["replica_nodes"],
                    partition["isr_nodes"],
                )
                for partition in topic["partitions"]
            }
            for topic in self._admin.describe_topics()
        }

    def produce(self, topic: str, values: Sequence[str]) -> None:
        producer = self._lib.KafkaProducer(**self._own)
        try:
            for sent in [producer.send(topic, value.encode()) for value in values]:
                sent.get(PATIENCE_S)
        finally:
            producer.close()

    def transact(self, transactional_id: str, topic: str, values: Sequence[str], aborted: Sequence[str]) -> None:
        producer = self._lib.KafkaProducer(**self._own, transactional_id=transactional_id)
        try:
            producer.init_transactions()
            producer.begin_transaction()
            for sent in [producer.send(topic, value.encode()) for value in aborted]:
                sent.get(PATIENCE_S)
            producer.abort_transaction()
            producer.begin_transaction()
            for value in values:
                producer.send(topic, value.encode())
            producer.commit_transaction()
        finally:
            producer.close()

    def consume(self, group: str, topic: str, count: int) -> list[str]:
        settings = {key.replace(".", "_"): value for key, value in GROUP.items()}
        consumer = self._lib.KafkaConsumer(**self._own, **settings, group_id=group)

        def fetch(lacking: bool) -> dict[RecordPosition, str]:
            # A poll must not end while the client joins the group.
            batches = consumer.poll(1000 * PATIENCE_S if lacking else 1000).values()
            return {
                (record.partition, record.offset): record.value.decode() for records in batches for record in records
            }

        def commit(next_offsets: Mapping[int, int]) -> bool:
            positions = {
                self._lib.TopicPartition(topic, partition): self._offset_class(offset, "", -1)
                for partition, offset in next_offsets.items()
            }
            with suppress(self._errors.CommitFailedError, self._errors.RebalanceInProgressError):
                consumer.commit(positions)
                return True
            return False

        try:
            # A member whose metadata change while it joins its group may lose its assignment.
            assert until(lambda: bool(consumer.partitions_for_topic(topic)))
            consumer.subscribe([topic])
            return gathered(count, fetch, commit)
        finally:
            consumer.close()

    def grow(self, topic: str, partitions: int) -> None:
        self._admin.create_partitions({topic: partitions})

    def reassign(self, topic: str, partition: int, replicas: Sequence[int]) -> None:
        topic_partition = self._lib.TopicPartition(topic, partition)
        assert self._admin.alter_partition_reassignments({topic_partition: list(replicas)}) == {topic_partition: None}

    def reassignments(self) -> bool:
        return bool(self._admin.list_partition_reassignments())

    def elect(self, topic: str, partition: int) -> None:
        self._admin.elect_leaders(0, {topic: [partition]})

    def configure(self, topic: str, key: str, value: str) -> None:
        kind = self._names.ConfigResourceType.TOPIC
        self._admin.alter_configs([self._names.ConfigResource(kind, topic, configs={key: value})])

    def configs(self, topic: str) -> Mapping[str, str]:
        kind = self._names.ConfigResourceType.TOPIC
        response = self._admin.describe_configs([self._names.ConfigResource(kind, topic)])
        return {"response": str(response)}

    def delete(self, topic: str) -> None:
        self._admin.delete_topics([topic])

    def close(self) -> None:
        self._admin.close()
