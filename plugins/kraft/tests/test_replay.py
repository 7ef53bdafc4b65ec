"""Replay in bulk. The result is that of one record after another."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from kframe_kraft.batches import BatchPosition, encode_data_batch, read_batch
from kframe_kraft.disk import LogHistory, SnapshotId
from kframe_kraft.disk.segments import ListedBatches, MetadataLog
from kframe_kraft.kernels import _id_index
from kframe_kraft.replay.image import image_of

from kframe.plugin.kraft import ClusterMetadata, LogError, RecordAndVersion, records, replay
from verification.kraft.metadata_facts import metadata_facts
from verification.reference import id_index as reference_ids

pytestmark = pytest.mark.kernel


class RandomLog:
    """Valid records of a changing cluster."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.topics: dict[UUID, int] = {}
        self.names: dict[UUID, str] = {}
        self.records: list[RecordAndVersion] = []

    def uuid(self) -> UUID:
        return UUID(int=self.random.getrandbits(128) | 1 << 100)

    def brokers(self, count_max: int) -> tuple[int, ...]:
        return tuple(self.random.sample([*range(9), 70_000, 2**31 - 1], self.random.randint(0, count_max)))

    def add(self, record: records.MetadataRecord, version: int = 0) -> None:
        self.records.append(RecordAndVersion(record, version))

    def create_topic(self) -> None:
        topic_id = self.uuid()
        name = self.random.choice(["t", "long" * 40]) + f"-{len(self.records)}"
        if self.random.random() < 0.3:
            self.add(records.ConfigRecord(resource_type=2, resource_name=name, name="min.insync.replicas", value="2"))
        self.add(records.TopicRecord(name=name, topic_id=topic_id))
        self.topics[topic_id], self.names[topic_id] = self.random.choice([1, 2, 40]), name
        numbers = list(range(self.topics[topic_id]))
        if self.random.random() < 0.3:
            self.random.shuffle(numbers)
        for number in numbers:
            self.add_partition(topic_id, number)

    def add_partition(self, topic_id: UUID, number: int) -> None:
        replicas, elr = self.brokers(4), self.random.random() < 0.3
        self.add(
            records.PartitionRecord(
                partition_id=number,
                topic_id=topic_id,
                replicas=replicas,
                isr=self.brokers(4),
                removing_replicas=self.brokers(1),
                adding_replicas=self.brokers(1),
                leader=self.random.choice([-1, 3, 70_000]),
                leader_recovery_state=self.random.randint(0, 1),
                leader_epoch=self.random.randint(0, 9),
                partition_epoch=self.random.randint(0, 9),
                directories=self.random.choice([(), tuple(UUID(int=200 + id % 5) for id in replicas)]),
                eligible_leader_replicas=self.brokers(2) if elr else None,
                last_known_elr=self.brokers(1) if elr else None,
            ),
            2,
        )
        self.sizes[topic_id, number] = len(replicas)

    def change(self, replaces_replicas: bool) -> None:
        topic_id = self.random.choice(list(self.topics))
        number = self.random.randrange(self.topics[topic_id])
        fields: dict[str, Any] = {"replicas": self.brokers(5)} if replaces_replicas else {}
        size = len(fields["replicas"]) if replaces_replicas else self.sizes[topic_id, number]
        if replaces_replicas or self.random.random() < 0.3:
            fields["directories"] = tuple(UUID(int=self.random.randint(300, 305)) for _ in range(size))
        for name, count_max in (
            ("isr", 4),
            ("eligible_leader_replicas", 3),
            ("last_known_elr", 2),
            ("removing_replicas", 2),
            ("adding_replicas", 2),
        ):
            if self.random.random() < 0.3:
                fields[name] = self.brokers(count_max)
        if self.random.random() < 0.5:
            fields["leader"] = self.random.choice([-1, 2, 2**31 - 1])
        if self.random.random() < 0.2:
            fields["leader_recovery_state"] = self.random.randint(0, 1)
        self.add(records.PartitionChangeRecord(partition_id=number, topic_id=topic_id, **fields), 2)
        self.sizes[topic_id, number] = size

    def remove_topic(self) -> None:
        topic_id = self.random.choice(list(self.topics))
        self.add(records.RemoveTopicRecord(topic_id=topic_id))
        del self.topics[topic_id]

    sizes: dict[tuple[UUID, int], int]

    def generate(self, count: int, replaces_replicas: bool) -> list[RecordAndVersion]:
        self.sizes = {}
        self.create_topic()
        while len(self.records) < count:
            step = self.random.random()
            if step < 0.1 or len(self.topics) < 3:
                self.create_topic()
            elif step < 0.105:
                self.remove_topic()
            elif step < 0.11:
                self.add(records.ClearElrRecord(topic_name=self.names[self.random.choice(list(self.topics))]))
            elif step < 0.115:
                topic_id = self.random.choice(list(self.topics))
                self.add_partition(topic_id, self.random.randrange(self.topics[topic_id]))
            elif step < 0.15:
                self.add(records.NoOpRecord())
            else:
                self.change(replaces_replicas and self.random.random() < 0.02)
        return self.records


def history(versioned: Sequence[RecordAndVersion], random: Random) -> LogHistory:
    """A log of these records in batches of random sizes."""
    batches, first = bytearray(), 0
    while first < len(versioned):
        last = first + random.choice([1, 10, 500])
        batches += encode_data_batch(versioned[first:last], BatchPosition(first, 1, 5))
        first = last
    data, read, position = np.frombuffer(bytes(batches), np.uint8), [], 0
    while position < len(data):
        read.append(read_batch(data, position, "log"))
        position += read[-1].header.size
    return LogHistory(SnapshotId(0, 0), None, MetadataLog(0, len(versioned), ListedBatches(read)))


@pytest.mark.parametrize("seed", range(12))
def test_bulk_replay_equals_replay_of_each_record(seed: int) -> None:
    versioned = RandomLog(seed).generate(2_000, replaces_replicas=seed % 2 == 1)
    expected = ClusterMetadata()
    for offset, (record, _) in enumerate(versioned):
        replay(expected, record, offset)
    image = image_of(history(versioned, Random(seed)))
    assert metadata_facts(image.metadata) == metadata_facts(expected)
    assert image.offset == len(versioned)


TOPIC_ID = UUID(int=1 << 99)
TOPIC = RecordAndVersion(records.TopicRecord(name="orders", topic_id=TOPIC_ID), 0)


def partition(number: int, **fields: Any) -> RecordAndVersion:
    values: dict[str, Any] = {
        "replicas": (1,),
        "isr": (1,),
        "removing_replicas": (),
        "adding_replicas": (),
        "directories": (UUID(int=200),),
    }
    return RecordAndVersion(
        records.PartitionRecord(partition_id=number, topic_id=TOPIC_ID, **values | fields), fields.pop("version", 2)
    )


def change(number: int, topic_id: UUID = TOPIC_ID, **fields: Any) -> RecordAndVersion:
    return RecordAndVersion(records.PartitionChangeRecord(partition_id=number, topic_id=topic_id, **fields), 2)


PARTITIONS = [partition(number) for number in range(40)]


@pytest.mark.parametrize(
    "added, reason",
    [
        ([TOPIC], "topic orders with id"),
        ([partition(-1)], "partition -1, expected 0 to"),
        ([partition(1 << 22)], "partition 4194304, expected 0 to"),
        ([partition(40, directories=(UUID(int=200),) * 2)], "2 directories, expected 1 as replicas"),
        ([change(40, leader=1)], "partition 40, expected a partition of the topic"),
        ([change(0, UUID(int=5), leader=1)], "topic id AAAAAAAAAAAAAAAAAAAABQ"),
        ([change(0, directories=(UUID(int=200),) * 3)], "3 directories, expected 1 as replicas"),
    ],
)
def test_invalid_record_is_refused_with_its_offset(added: list[RecordAndVersion], reason: str) -> None:
    versioned = [TOPIC, *PARTITIONS, *(change(number % 40, leader=1) for number in range(40)), *added]
    with pytest.raises(LogError, match=f"offset {len(versioned) - 1}.*{reason}"):
        image_of(history(versioned, Random(1)))


def test_id_index_kernel_equals_its_reference() -> None:
    random = np.random.default_rng(3)
    ids = random.integers(0, 256, (40, 16), np.uint8)
    ids[20:30] = ids[:10]
    requested = np.concatenate([ids, random.integers(0, 256, (9, 16), np.uint8), ids[:3].repeat(2, 0)])
    results = []
    for module in (_id_index, reference_ids):
        keys, values = np.zeros((64, 16), np.uint8), np.full(64, -1, np.int32)
        module.insert_ids(ids, np.arange(40, dtype=np.int32), keys, values)
        out = np.empty(len(requested), np.int32)
        results.append((module.find_ids(requested, keys, values, out), out.tolist()))
    assert results[0] == results[1]
    assert results[0][0] == 9
