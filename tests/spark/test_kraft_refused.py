"""A fleet refuses KRaft clusters, because its stages decide by ZooKeeper rules."""

from __future__ import annotations

from pathlib import Path

from kframe.snapshot import Snapshot, Source, write_snapshot
from kframe.spark.ingest import ingest_source
from kframe.spark.sources import find_sources
from tests.snapshot.test_kraft_metadata import small_cluster


def test_kraft_cluster_is_refused_with_the_reason(tmp_path: Path) -> None:
    snapshot = Snapshot.from_metadata(small_cluster(), source=Source("kraft", "node"))
    write_snapshot(snapshot, tmp_path / "main")
    (source,) = find_sources([str(tmp_path / "main")])
    (row,) = ingest_source(source, tmp_path / "fleet").to_pylist()
    assert row["status"] == "refused"
    assert "found a KRaft cluster, expected a cluster in ZooKeeper mode" in row["reason"]
