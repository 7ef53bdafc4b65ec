"""Snapshots of clusters: read them from what operators have, keep them as Parquet, make synthetic ones.

``read_snapshot`` takes a ZooKeeper dump, ``kafka-topics --describe`` text, ``kcat -L -J`` JSON, a reassignment or a
snapshot directory; ``write_snapshot`` writes the last; ``generate`` makes a seeded cluster of any size.
"""

from __future__ import annotations

from kframe.lazy import load_at_access

load_at_access(__name__)
