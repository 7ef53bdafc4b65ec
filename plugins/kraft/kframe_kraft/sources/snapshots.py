"""Snapshots of kframe from the files of a KRaft node, and as a ``.checkpoint`` that Kafka reads."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Literal

from kframe.plugin.kraft import KRAFT_VERSION, LogError
from kframe.plugin.snapshot import Snapshot, Source, check_snapshot, check_topic_name
from kframe_kraft.disk import SnapshotId
from kframe_kraft.disk.names import SNAPSHOT_NAME
from kframe_kraft.encoding.checkpoint import write_checkpoint
from kframe_kraft.replay.image import Timeline, image_of
from kframe_kraft.sources.paths import NodeSource, read_source

FORMAT: Final = "kraft"


def read_snapshot(path: Any, _progress: object, _faults: object) -> Snapshot:
    """Return the cluster at the end of a log. Raises LogError also for a single damaged record."""
    source = read_source(path)
    return snapshot_of(source, path.name)


def snapshot_of(source: NodeSource, name: str, end: int | None = None, timeline: Timeline | None = None) -> Snapshot:
    """Return the cluster at the end of a log, or below offset ``end``. ``name`` is that of the source.

    With a ``timeline`` of the log, records below its offset are not read again; its metadata are taken.
    Raises LogError for a source with control records only: it does not show that the cluster is empty. Raises
    SnapshotError for a state that no KRaft controller writes, such as a leader that is no replica.
    """
    history = source.history
    has_snapshot = history.snapshot is not None and any(True for _ in history.snapshot.batches)
    if not has_snapshot and all(header.is_control for header in history.log.batches.headers()):
        raise LogError(name, "no metadata record", "the log of a quorum that has a leader, at least metadata.version")
    image = image_of(history, end, timeline)
    if image.kraft_version:  # Kafka's brokers list it among the finalized features, too.
        image.metadata.features[KRAFT_VERSION] = image.kraft_version
    for feature, level in image.metadata.features.items():
        if level < 0:
            raise LogError(f"{name}, feature {feature}", f"level {level}", "0 or more")
    snapshot = Snapshot.from_metadata(
        image.metadata,
        source=Source(FORMAT, name),
        cluster_id=source.properties.cluster_id if source.properties else None,
        controller_id=image.leader_id,
        controller_epoch=image.epoch,
        offset=image.offset - 1 if image.offset else None,
        voters=tuple(sorted(image.voters)) or None,
    )
    topics = snapshot.topics
    for topic in topics.names:
        check_topic_name(topic, name)

    def locate(kind: Literal["topic", "row"], index: int, column: str) -> str:
        owner = topics.names[index] if kind == "topic" else topics.name_of_row(index)
        return f"{name} ({owner}) field {column}"

    checked = check_snapshot(snapshot, locate)
    return replace(checked, provenance={**checked.provenance, **history.absent}) if history.absent else checked


def write_snapshot(snapshot: Snapshot, path: Path, force: bool) -> None:
    """Write the snapshot of a KRaft cluster as a file of ``__cluster_metadata-0``, with a static quorum.

    A name of Kafka's form states offset and epoch; another name leaves those of ``snapshot``. Raises InputError for a
    cluster in ZooKeeper mode, LogError if the file exists and ``force`` is false.
    """
    if path.exists() and not force:
        raise LogError(str(path), "an existing file", "a new one, or --force")
    metadata = snapshot.to_metadata()
    offset = snapshot.kraft.offset if snapshot.kraft else None
    snapshot_id = SnapshotId(1 if offset is None else offset + 1, snapshot.controller_epoch or 1)
    if match := SNAPSHOT_NAME.fullmatch(path.name):
        snapshot_id = SnapshotId(int(match[1]), int(match[2]))
    now = time.time_ns() // 1_000_000
    write_checkpoint(metadata, path, snapshot_id, timestamp=now, now=now)
