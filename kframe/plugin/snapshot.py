"""Snapshots of clusters: their records, and the checks that every snapshot passes."""

from __future__ import annotations

from kframe.model.topic_patterns import topic_pattern
from kframe.snapshot.checks import check_snapshot, check_topic_name
from kframe.snapshot.content import named_brokers
from kframe.snapshot.decode import unique_keys
from kframe.snapshot.directory import write_snapshot
from kframe.snapshot.facts import BrokerFacts, CaptureFacts, PartitionFacts, Source, TopicFacts
from kframe.snapshot.formats import detect_format
from kframe.snapshot.listing import broker_rows, summary_record
from kframe.snapshot.row_types import SnapshotBroker, SummaryRecord
from kframe.snapshot.snapshot import Snapshot

__all__ = [
    "BrokerFacts",
    "CaptureFacts",
    "PartitionFacts",
    "Snapshot",
    "SnapshotBroker",
    "Source",
    "SummaryRecord",
    "TopicFacts",
    "broker_rows",
    "check_snapshot",
    "check_topic_name",
    "detect_format",
    "named_brokers",
    "summary_record",
    "topic_pattern",
    "unique_keys",
    "write_snapshot",
]
