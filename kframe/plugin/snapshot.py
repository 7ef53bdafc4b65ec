"""Snapshots of clusters: their records, and the checks that every snapshot passes."""

from __future__ import annotations

from kframe.model.topic_patterns import topic_pattern
from kframe.snapshot.checks import check_snapshot, check_topic_name
from kframe.snapshot.content import named_brokers
from kframe.snapshot.decode import unique_keys
from kframe.snapshot.directory import write_snapshot
from kframe.snapshot.facts import BrokerFacts, CaptureFacts, PartitionFacts, Source, TopicFacts
from kframe.snapshot.formats import detect_format, open_history, read_snapshot
from kframe.snapshot.listing import broker_rows, summary_record, topic_rows
from kframe.snapshot.row_types import SnapshotBroker, SnapshotPartition, SnapshotTopic, SummaryRecord
from kframe.snapshot.snapshot import Snapshot
from kframe.snapshot.summary import (
    BrokerBytes,
    Conditions,
    Loads,
    Summary,
    bytes_of_brokers,
    conditions_of,
    loads_of,
    skew_of,
    summarize,
)

__all__ = [
    "BrokerBytes",
    "BrokerFacts",
    "CaptureFacts",
    "Conditions",
    "Loads",
    "PartitionFacts",
    "Snapshot",
    "SnapshotBroker",
    "SnapshotPartition",
    "SnapshotTopic",
    "Source",
    "Summary",
    "SummaryRecord",
    "TopicFacts",
    "broker_rows",
    "bytes_of_brokers",
    "check_snapshot",
    "check_topic_name",
    "conditions_of",
    "detect_format",
    "loads_of",
    "named_brokers",
    "open_history",
    "read_snapshot",
    "skew_of",
    "summarize",
    "summary_record",
    "topic_pattern",
    "topic_rows",
    "unique_keys",
    "write_snapshot",
]
