"""Generated clusters that commands of benchmarks read."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kframe.snapshot import Snapshot, generate, write_snapshot
from kframe.snapshot.content import Mode

MODES: Final[tuple[Mode, ...]] = ("zookeeper", "kraft")


def generated(source: Path, partitions: int, brokers: int, mode: Mode, *, racks: int = 0, seed: int = 0) -> Path:
    """``source``, a directory of Parquet files. A cluster is generated and saved unless it exists."""
    if not source.exists():
        source.parent.mkdir(parents=True, exist_ok=True)
        write_snapshot(_in_mode(generate(partitions, brokers, racks=racks, seed=seed), mode), source)
    return source


def generated_in(folder: Path, partitions: int, brokers: int, mode: Mode) -> Path:
    """The cluster of this size and mode in ``folder``, generated unless it exists."""
    return generated(folder / f"{mode}-{partitions}-{brokers}", partitions, brokers, mode)


def _in_mode(snapshot: Snapshot, mode: Mode) -> Snapshot:
    """A generated cluster, in KRaft mode as its metadata log has it."""
    if mode == "zookeeper":
        return snapshot
    metadata = snapshot.with_mode("kraft").to_metadata()
    return Snapshot.from_metadata(metadata, source=snapshot.source, cluster_id=snapshot.cluster_id)
