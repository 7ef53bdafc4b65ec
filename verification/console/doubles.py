"""Doubles of what a console shows, for tests: a cluster with consumer groups, a reader, and a fleet on Parquet."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

from kframe.plugin import StoreError
from kframe.plugin.live import GroupPartition, Progress, TopicGroups, ignore_progress
from kframe.plugin.snapshot import Snapshot
from kframe.spark.fleet import ClusterRecord, finish, put_cluster
from kframe.spark.rows import rows_of
from kframe.spark.schema import CLUSTER_TABLES


class FakeGroups:
    """A cluster whose topics have one group."""

    def __init__(self) -> None:
        self.requests = 0
        self.may_respond = threading.Event()
        self.may_respond.set()
        self.failure: StoreError | None = None

    def topic_groups(self, topic: str, progress: Progress = ignore_progress) -> TopicGroups:
        """See GroupedCluster."""
        self.requests += 1
        assert self.may_respond.wait(30)
        if self.failure is not None:
            raise self.failure
        rows = [
            GroupPartition("billing", "Stable", 2, 0, 90, 100, "app /h"),
            GroupPartition("x", "", 0, 1, None, None, None),
        ]
        return TopicGroups(rows, ["groups of broker 3: it does not respond"])


class FakeReader:
    """A reader of a cluster that stays as it is. Implements ``LiveReader``."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot: Snapshot | None = snapshot

    def read(self) -> Snapshot | None:
        """See LiveReader."""
        snapshot, self.snapshot = self.snapshot, None
        return snapshot

    def close(self) -> None:
        """See LiveReader."""


def put_fleet(root: Path, snapshots: Mapping[str, Snapshot | None]) -> Path:
    """Write clusters by name as ``kframe spark ingest`` does; those without a snapshot are rejected. Returns root."""
    for cluster, snapshot in snapshots.items():
        tables = {} if snapshot is None else {table: rows_of(snapshot, cluster, table) for table in CLUSTER_TABLES}
        outputs = put_cluster(root, cluster, tables)
        record = ClusterRecord(
            cluster=cluster,
            source=cluster,
            inputs={},
            outputs=outputs,
            partitions=0 if snapshot is None else len(snapshot),
            topics=0 if snapshot is None else len(snapshot.topics),
            brokers=0 if snapshot is None else len(snapshot.brokers),
            quarantined=0,
            rejected="a truncated file" if snapshot is None else None,
            mode="zookeeper" if snapshot is None else snapshot.mode,
        )
        finish(root, record)
    return root
