"""Partitions written as ``topic-partition``."""

from __future__ import annotations

from kframe.errors import ScenarioError
from kframe.model.events import TopicPartition
from kframe.model.texts import short_repr
from kframe.model.whole_numbers import parse_whole


def parse_topic_partition(where: str, text: str) -> TopicPartition:
    """Topic and partition of a text from outside. Raises ScenarioError naming ``where``."""
    topic, dash, partition = text.rpartition("-")
    number = parse_whole(partition)
    if not (topic and dash) or number is None:
        raise ScenarioError(where, short_repr(text), "a partition written topic-partition, such as orders-0")
    return topic, number


def topic_partition(name: str) -> TopicPartition:
    """Topic and partition of a name that ``ClusterState.name`` made."""
    topic, _, partition = name.rpartition("-")
    return topic, int(partition)
