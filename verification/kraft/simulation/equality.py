"""Compares the controller's columns with plain objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kframe.plugin.kraft import ClusterMetadata, partition_record
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
    registrations = metadata.brokers.registrations
    if registrations.keys() != image.brokers.keys():
        yield f"brokers {sorted(registrations)}, the records {sorted(image.brokers)}"
        return
    for broker_id, broker in image.brokers.items():
        each = registrations[broker_id]
        known = each.broker_epoch, each.incarnation_id, each.directories, each.fenced, each.in_controlled_shutdown
        if known != (
            broker.broker_epoch,
            broker.incarnation_id,
            broker.directories,
            broker.fenced,
            broker.in_shutdown,
        ):
            yield f"{known} for broker {broker_id}, the records {broker}"
        if metadata.brokers.is_active(broker_id) != broker.is_active:
            yield f"broker {broker_id} active: {not broker.is_active}, the records {broker}"
