"""Writes the metadata of a cluster as a snapshot, in the order of Kafka's ``MetadataImage.write``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from kframe.plugin import NO_LEADER
from kframe.plugin.columns import Int32, Int64, Ragged
from kframe.plugin.kraft import (
    ClusterMetadata,
    RecordAndVersion,
    control,
    feature_records,
    newest_version,
    records,
    setting_records,
)
from kframe_kraft.columns.partitions import (
    DirectoryLists,
    IdLists,
    PartitionColumns,
    directory_id_bytes,
    encode_rows,
)
from kframe_kraft.disk import CheckpointWriter, SnapshotId
from kframe_kraft.records import encode_record, record_version

_LISTS = {
    "replicas": "replica",
    "isr": "isr",
    "removing_replicas": "removing",
    "adding_replicas": "adding",
    "eligible_leader_replicas": "elr",
    "last_known_elr": "last_known_elr",
}
_ELR = ("eligible_leader_replicas", "last_known_elr")


def write_checkpoint(
    metadata: ClusterMetadata,
    path: Path,
    snapshot_id: SnapshotId,
    *,
    timestamp: int,
    now: int,
    kraft_version: int = 0,
    voters: control.VotersRecord | None = None,
) -> Path:
    """Write the snapshot; it is durable on return. Arguments are those of ``CheckpointWriter``.

    Raises RecordError if the cluster's ``metadata.version`` cannot carry the metadata.
    """
    path.unlink(missing_ok=True)
    with CheckpointWriter(
        path, snapshot_id, timestamp=timestamp, now=now, kraft_version=kraft_version, voters=voters
    ) as writer:
        # As few batches as possible: kafka-metadata-shell may print the image before it has read the second one.
        before = _values(_versioned(metadata, _before_topics(metadata)))
        after = _values(_versioned(metadata, setting_records(metadata)))
        topics, topic_lengths = _topic_values(metadata)
        lengths = np.concatenate([_lengths(before), topic_lengths, _lengths(after)])
        value_start: Int64 = np.zeros(len(lengths) + 1, np.int64)
        np.cumsum(lengths, out=value_start[1:])
        writer.add_values(np.frombuffer(b"".join([*before, *topics, *after]), np.uint8), value_start)
        return writer.finish()


def _versioned(metadata: ClusterMetadata, content: Iterator[records.MetadataRecord]) -> list[RecordAndVersion]:
    level = metadata.metadata_version
    return [RecordAndVersion(record, record_version(record, level)) for record in content]


def _before_topics(metadata: ClusterMetadata) -> Iterator[records.MetadataRecord]:
    yield from feature_records(metadata)
    for _, broker in sorted(metadata.brokers.registrations.items()):
        yield broker.record()
    for _, controller in sorted(metadata.controllers.items()):
        yield controller


def _topic_values(metadata: ClusterMetadata) -> tuple[list[bytes], Int64]:
    """The records of each topic, followed by those of its partitions; and the length of each record."""
    topics = metadata.topics
    indexes = sorted(topics.index_by_name.values())
    if not indexes:
        return [], np.empty(0, np.int64)
    topic_values = _values(
        [
            RecordAndVersion(records.TopicRecord(name=topics.names[index], topic_id=topics.ids[index]), 0)
            for index in indexes
        ]
    )
    rows_by_topic = [topics.rows_of(index) for index in indexes]
    rows = np.concatenate(rows_by_topic)
    version = newest_version(records.PartitionRecord, metadata.metadata_version)
    values, value_start = encode_rows(_columns(metadata, rows, version), version)
    # A topic's record is before its partitions: interleave lengths, then bytes.
    before = np.repeat(np.arange(len(indexes)), [len(part) for part in rows_by_topic])
    order = np.argsort(np.concatenate([2 * np.arange(len(indexes)), 2 * before + 1]), kind="stable")
    lengths: Int64 = np.concatenate([_lengths(topic_values), np.diff(value_start)])[order]
    parts: list[bytes] = []
    raw, first = values.tobytes(), 0
    for value, part in zip(topic_values, rows_by_topic, strict=True):
        last = first + len(part)
        parts += [value, raw[value_start[first] : value_start[last]]]
        first = last
    return parts, lengths


def _columns(metadata: ClusterMetadata, rows: Int32, version: int) -> PartitionColumns:
    partitions = metadata.partitions
    ids = np.append(metadata.brokers.ids, np.int32(NO_LEADER))  # Index -1: Kafka 4.0 stores it as a last-known leader.
    present = np.ones(len(rows), np.bool_)
    lists: dict[str, IdLists] = {}
    for field, name in _LISTS.items():
        members = partitions.lists(name, rows)
        has = members.counts > 0 if field in _ELR else present
        lists[field] = IdLists(Ragged(members.offsets, ids[members.values].astype(np.int32)), has)
    directories = partitions.lists("directory", rows)
    known = directory_id_bytes(metadata)[directories.values]
    directory_lists = DirectoryLists(directories.offsets, known, present)
    if version == 0:
        directory_lists = DirectoryLists(np.zeros(len(rows) + 1, np.int32), np.empty((0, 16), np.uint8), ~present)
    return PartitionColumns(
        partitions.partition[rows],
        metadata.topics.id_bytes[partitions.topic[rows]],
        ids[partitions.leader[rows]].astype(np.int32),
        partitions.recovery[rows].astype(np.int8),
        partitions.leader_epoch[rows],
        partitions.partition_epoch[rows],
        lists,
        directory_lists,
    )


def _values(versioned: list[RecordAndVersion]) -> list[bytes]:
    return [encode_record(*record) for record in versioned]


def _lengths(values: list[bytes]) -> Int64:
    return np.array([len(value) for value in values], np.int64)
