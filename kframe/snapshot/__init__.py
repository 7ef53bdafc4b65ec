"""Snapshots of clusters: read them from what operators have, keep them as Parquet, make synthetic ones.

``read_snapshot`` takes a ZooKeeper dump, ``kafka-topics --describe`` text, ``kcat -L -J`` JSON, a reassignment or a
snapshot directory; ``write_snapshot`` writes the last; ``generate`` makes a seeded cluster of any size.
"""

from __future__ import annotations

from kframe.snapshot.directory import write_directory as write_snapshot
from kframe.snapshot.facts import BrokerFacts, KraftFacts, PartitionFacts, Source, TopicFacts
from kframe.snapshot.formats import FORMATS, detect_format, read_snapshot
from kframe.snapshot.generate import Health, generate
from kframe.snapshot.reassignment import Assignment, Reassignment, read_reassignment
from kframe.snapshot.snapshot import Snapshot
from kframe.snapshot.summary import Summary, summarize

__all__ = [
    "FORMATS",
    "Assignment",
    "BrokerFacts",
    "Health",
    "KraftFacts",
    "PartitionFacts",
    "Reassignment",
    "Snapshot",
    "Source",
    "Summary",
    "TopicFacts",
    "detect_format",
    "generate",
    "read_reassignment",
    "read_snapshot",
    "summarize",
    "write_snapshot",
]
