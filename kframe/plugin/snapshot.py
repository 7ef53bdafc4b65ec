"""Snapshots of clusters: their records, and the checks that every snapshot passes."""

from __future__ import annotations

from kframe.snapshot.checks import check_snapshot, check_topic_name
from kframe.snapshot.content import named_brokers
from kframe.snapshot.facts import BrokerFacts, CaptureFacts, PartitionFacts, Source, TopicFacts
from kframe.snapshot.snapshot import Snapshot

__all__ = [
    "BrokerFacts",
    "CaptureFacts",
    "PartitionFacts",
    "Snapshot",
    "Source",
    "TopicFacts",
    "check_snapshot",
    "check_topic_name",
    "named_brokers",
]
