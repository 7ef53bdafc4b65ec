"""Compares the controller's columns with plain objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kframe.plugin.kraft import ClusterMetadata, partition_record
from verification.kraft.simulation.expected.brokers import registration_problems
from verification.kraft.simulation.image import Image, PartitionKey, state_of


def differences(metadata: ClusterMetadata, image: Image, keys: Iterable[PartitionKey]) -> Iterator[str]:
    """What topics, brokers and the partitions of some keys have otherwise."""
    topics = {name: metadata.topics.ids[index] for name, index in metadata.topics.index_by_name.items()}
    if topics != image.topics:
        yield f"topics {topics}, the records {image.topics}"
        return
    for key in keys:
        expected, row = image.partitions.get(key), metadata.topics.row_by_id(*key)
        stored = None if row is None else state_of(partition_record(metadata, row))
        if stored != expected:
            yield f"{stored} for {key}, the records {expected}"
    yield from registration_problems(metadata, image)
