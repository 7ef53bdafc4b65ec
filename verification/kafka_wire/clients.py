"""Kafka's Java client and librdkafka, with the same methods as kafka-python in ``kafka_python``.

Constructors raise ImportError if a library is not installed. Errors of the broker raise the library's own exceptions.
``produce`` waits until all in-sync replicas have the values. ``transact`` aborts a transaction, then commits another.
``consume`` returns the next committed values for a member of a group, fewer after a timeout. Each record counts once: a
member that joins its group again before it has committed reads some records twice. ``reassigns`` is false for
librdkafka, which has no reassignments.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from itertools import count as numbers
from pathlib import Path
from typing import Any, Final

from kframe.testing.waiting import PATIENCE_S, until
from verification.zookeeper.kafka import KafkaClients

#: A group reads committed records from the beginning, and commits its offsets explicitly.
GROUP: Final = {"auto.offset.reset": "earliest", "isolation.level": "read_committed", "enable.auto.commit": False}
#: By partition: leader (-1 for none), replicas and ISR, both sorted.
Partitions = Mapping[int, tuple[int, list[int], list[int]]]
#: Partition and offset.
RecordPosition = tuple[int, int]


class JavaClient:
    """Kafka's own client, in a JVM."""

    reassigns = True

    def __init__(self, folder: Path, address: str) -> None:
        self._clients = KafkaClients(folder, address)

    def create(self, topic: str, partitions: int, factor: int) -> None:
        self._clients.request("create", topic=topic, partitions=partitions, factor=factor)

    def describe(self) -> Mapping[str, Partitions]:
        return {
            name: {
                int(number): (state["leader"], state["replicas"], state["isr"]) for number, state in partitions.items()
            }
            for name, partitions in self._clients.request("describe").items()
        }

    def produce(self, topic: str, values: Sequence[str]) -> None:
        assert self._clients.request("produce", topic=topic, values=values) == len(values)

    def transact(self, transactional_id: str, topic: str, values: Sequence[str], aborted: Sequence[str]) -> None:
        self._clients.request("transact", id=transactional_id, topic=topic, values=values, aborted=aborted)

    def consume(self, group: str, topic: str, count: int) -> list[str]:
        return list(self._clients.request("group", group=group, topic=topic, count=count))

    def all_values(self, topic: str) -> Mapping[str, Sequence[str]]:
        """All values by partition, from the first to the last offset. Without a group, none is read twice."""
        values: Mapping[str, Sequence[str]] = self._clients.request("consume", topic=topic)
        return values

    def grow(self, topic: str, partitions: int) -> None:
        self._clients.request("grow", topic=topic, partitions=partitions)

    def reassign(self, topic: str, partition: int, replicas: Sequence[int]) -> None:
        self._clients.request("reassign", topic=topic, partition=partition, replicas=replicas)

    def reassignments(self) -> bool:
        return bool(self._clients.request("reassignments"))

    def elect(self, topic: str, partition: int) -> None:
        self._clients.request("elect", topic=topic, partition=partition)

    def configure(self, topic: str, key: str, value: str) -> None:
        self._clients.request("configure", topic=topic, key=key, value=value)

    def configs(self, topic: str) -> Mapping[str, str]:
        return dict(self._clients.request("configs", topic=topic))

    def delete(self, topic: str) -> None:
        self._clients.request("delete", topic=topic)

    def close(self) -> None:
        self._clients.close()


class Librdkafka:
    """librdkafka, through confluent-kafka."""

    reassigns = False

    def __init__(self, folder: Path, address: str) -> None:
        self._lib: Any = import_module("confluent_kafka")
        self._names: Any = import_module("confluent_kafka.admin")
        self._own = {"bootstrap.servers": address, "log_level": 0}
        self._admin: Any = self._names.AdminClient(self._own)

    def create(self, topic: str, partitions: int, factor: int) -> None:
        new = self._names.NewTopic(topic, num_partitions=partitions, replication_factor=factor)
        self._admin.create_topics([new])[topic].result(PATIENCE_S)

    def describe(self) -> Mapping[str, Partitions]:
        return {
            name: {
                number: (partition.leader, partition.replicas, partition.isrs)
                for number, partition in topic.partitions.items()
            }
            for name, topic in self._admin.list_topics(timeout=PATIENCE_S).topics.items()
        }

    def produce(self, topic: str, values: Sequence[str]) -> None:
        _send(self._lib.Producer({**self._own, "enable.idempotence": True}), topic, values)

    def transact(self, transactional_id: str, topic: str, values: Sequence[str], aborted: Sequence[str]) -> None:
        producer = self._lib.Producer({**self._own, "transactional.id": transactional_id})
        producer.init_transactions(PATIENCE_S)
        producer.begin_transaction()
        _send(producer, topic, aborted)
        producer.abort_transaction(PATIENCE_S)
        producer.begin_transaction()
        _send(producer, topic, values)
        producer.commit_transaction(PATIENCE_S)

    def consume(self, group: str, topic: str, count: int) -> list[str]:
        consumer = self._lib.Consumer({**self._own, **GROUP, "group.id": group})
        consumer.subscribe([topic])

        def fetch(_lacking: bool) -> dict[RecordPosition, str]:
            batches = [record for record in consumer.consume(num_messages=1000, timeout=0.2) if record.error() is None]
            return {(record.partition(), record.offset()): _text(record) for record in batches}

        def commit(next_offsets: Mapping[int, int]) -> bool:
            with suppress(self._lib.KafkaException):  # The group may be joining again by now.
                positions = [self._lib.TopicPartition(topic, *position) for position in next_offsets.items()]
                return all(
                    position.error is None for position in consumer.commit(offsets=positions, asynchronous=False)
                )
            return False

        try:
            return gathered(count, fetch, commit)
        finally:
            consumer.close()

    def grow(self, topic: str, partitions: int) -> None:
        self._admin.create_partitions([self._names.NewPartitions(topic, partitions)])[topic].result(PATIENCE_S)

    def reassign(self, topic: str, partition: int, replicas: Sequence[int]) -> None:
        """Not supported by librdkafka. Raises NotImplementedError."""
        raise NotImplementedError

    def reassignments(self) -> bool:
        """Not supported by librdkafka. Raises NotImplementedError."""
        raise NotImplementedError

    def elect(self, topic: str, partition: int) -> None:
        topic_partition = self._lib.TopicPartition(topic, partition)
        futures = self._admin.elect_leaders(self._lib.ElectionType.PREFERRED, [topic_partition])
        ((_, error),) = futures.result(PATIENCE_S).items()
        if error is not None:
            raise self._lib.KafkaException(error)

    def configure(self, topic: str, key: str, value: str) -> None:
        change = self._names.ConfigEntry(key, value, incremental_operation=self._names.AlterConfigOpType.SET)
        resource = self._names.ConfigResource(self._names.ResourceType.TOPIC, topic, incremental_configs=[change])
        self._admin.incremental_alter_configs([resource])[resource].result(PATIENCE_S)

    def configs(self, topic: str) -> Mapping[str, str]:
        resource = self._names.ConfigResource(self._names.ResourceType.TOPIC, topic)
        response = self._admin.describe_configs([resource])[resource].result(PATIENCE_S)
        return {name: entry.value for name, entry in response.items()}

    def delete(self, topic: str) -> None:
        self._admin.delete_topics([topic])[topic].result(PATIENCE_S)

    def close(self) -> None:
        """Nothing to close: the client ends with its last reference."""

    @contextmanager
    def producing(self, topic: str) -> Iterator[list[tuple[str, Any]]]:
        """Produce idempotently while the block runs. At its end each record is delivered or has failed.

        The list receives each value with its error, or None if it was delivered.
        """
        done: list[tuple[str, Any]] = []
        producer = self._lib.Producer({**self._own, "enable.idempotence": True, "linger.ms": 100})
        ended = threading.Event()

        def run() -> None:
            for number in numbers():
                if ended.is_set():
                    return
                value = f"{number:08}"
                producer.produce(topic, value.encode(), on_delivery=lambda error, it: done.append((_text(it), error)))
                producer.poll(0.001)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield done
        finally:
            ended.set()
            thread.join()
            assert producer.flush(PATIENCE_S) == 0


def _text(message: Any) -> str:
    return str(message.value().decode())


def _send(producer: Any, topic: str, values: Sequence[str]) -> None:
    errors: list[Any] = []
    for value in values:
        producer.produce(topic, value.encode(), on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(PATIENCE_S) == 0
    assert errors == [None] * len(values)


def gathered(
    count: int, fetch: Callable[[bool], Mapping[RecordPosition, str]], commit: Callable[[Mapping[int, int]], bool]
) -> list[str]:
    """The next ``count`` values, whose offsets are committed; fewer after a timeout.

    ``fetch`` receives whether records are missing, and returns new ones. ``commit`` receives offsets by partition, and
    returns its success. It fails after the group has rebalanced, and the same records are read again.
    """
    texts: dict[RecordPosition, str] = {}

    def done() -> bool:
        texts.update(fetch(len(texts) < count))
        next_offsets: dict[int, int] = {}
        for partition, offset in texts:
            next_offsets[partition] = max(next_offsets.get(partition, 0), offset + 1)
        return len(texts) >= count and commit(next_offsets)

    until(done)
    return list(texts.values())
