"""A topic of a snapshot, its partitions, and a snapshot of it alone, at a cost that does not grow with the cluster."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace

import numpy as np

from kframe.plugin import ParameterError
from kframe.plugin.settings import short_repr
from kframe.plugin.snapshot import Snapshot


def topic_index(snapshot: Snapshot, topic: str) -> int:
    """The index of a topic. Raises ParameterError for an unknown name."""
    names = snapshot.topics.names
    index = bisect_left(names, topic)
    if index == len(names) or names[index] != topic:
        raise ParameterError("topic", short_repr(topic), "the name of a topic of the cluster")
    return index


def partition_row(snapshot: Snapshot, topic: str, partition: int) -> int:
    """The row of a partition. Raises ParameterError for an unknown one."""
    index, topics = topic_index(snapshot, topic), snapshot.topics
    first, count = int(topics.first_rows[index]), int(topics.partition_counts[index])
    rows = np.flatnonzero(topics.partition_of_rows()[first : first + count] == partition)
    if not len(rows):
        raise ParameterError("partition", str(partition), f"a partition of topic {topic}, which has {count}")
    return first + int(rows[0])


def topic_snapshot(snapshot: Snapshot, topic: str) -> Snapshot:
    """The snapshot with all brokers and a single topic, whose elections depend on no other topic."""
    index = topic_index(snapshot, topic)
    first, count = int(snapshot.topics.first_rows[index]), int(snapshot.topics.partition_counts[index])
    mask = np.zeros(len(snapshot), np.bool_)
    mask[first : first + count] = True
    topics = snapshot.topics.take(np.array([index]))
    return replace(snapshot, topics=topics, partitions=snapshot.partitions.take(mask))
