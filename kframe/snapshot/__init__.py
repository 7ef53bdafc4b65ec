"""Snapshots of clusters: read them from what operators have, keep them as Parquet, make synthetic ones.

``read_snapshot`` takes a ZooKeeper dump, ``kafka-topics --describe`` text, ``kcat -L -J`` JSON, a reassignment or a
snapshot directory; ``write_snapshot`` writes the last; ``generate`` makes a seeded cluster of any size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kframe.lazy import load_at_access

if TYPE_CHECKING:
    from kframe.snapshot.directory import write_directory as write_snapshot
    from kframe.snapshot.facts import BrokerFacts as BrokerFacts
    from kframe.snapshot.facts import KraftFacts as KraftFacts
    from kframe.snapshot.facts import PartitionFacts as PartitionFacts
    from kframe.snapshot.facts import Source as Source
    from kframe.snapshot.facts import TopicFacts as TopicFacts
    from kframe.snapshot.formats import FORMATS as FORMATS
    from kframe.snapshot.formats import detect_format as detect_format
    from kframe.snapshot.formats import read_snapshot as read_snapshot
    from kframe.snapshot.generate import Health as Health
    from kframe.snapshot.generate import generate as generate
    from kframe.snapshot.reassignment import Assignment as Assignment
    from kframe.snapshot.reassignment import Reassignment as Reassignment
    from kframe.snapshot.reassignment import read_reassignment as read_reassignment
    from kframe.snapshot.snapshot import Snapshot as Snapshot
    from kframe.snapshot.summary import Summary as Summary
    from kframe.snapshot.summary import summarize as summarize

load_at_access(__name__, {
    "kframe.snapshot.directory": ("write_snapshot=write_directory",),
    "kframe.snapshot.facts": ("BrokerFacts", "KraftFacts", "PartitionFacts", "Source", "TopicFacts"),
    "kframe.snapshot.formats": ("FORMATS", "detect_format", "read_snapshot"),
    "kframe.snapshot.generate": ("Health", "generate"),
    "kframe.snapshot.reassignment": ("Assignment", "Reassignment", "read_reassignment"),
    "kframe.snapshot.snapshot": ("Snapshot",),
    "kframe.snapshot.summary": ("Summary", "summarize"),
})  # fmt: skip

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
