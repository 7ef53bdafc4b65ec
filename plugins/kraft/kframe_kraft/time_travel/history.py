"""The history of a cluster from its metadata log, for other plugins (``kframe.plugin.live.ClusterHistory``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from kframe.plugin.kraft import records
from kframe.plugin.live import ClusterHistory, Difference, HistoryPoint, HistoryRecord, LeaderCause
from kframe.plugin.snapshot import Snapshot
from kframe_kraft.disk.following import DirectoryFollower, extended_history
from kframe_kraft.disk.names import segments_in
from kframe_kraft.errors import LogError
from kframe_kraft.sources.paths import NodeSource, find_log_directory, read_source
from kframe_kraft.sources.snapshots import snapshot_of
from kframe_kraft.time_travel.causes import leader_cause
from kframe_kraft.time_travel.differences import differences
from kframe_kraft.time_travel.partitions import partition_pattern, partition_rows
from kframe_kraft.time_travel.positions import time_text
from kframe_kraft.time_travel.summaries import describe
from kframe_kraft.time_travel.timelines import RetainedTimelines


def open_history(path: Any) -> ClusterHistory | None:
    """The history in the files of a node, from its oldest offset. None for a snapshot, which has none.

    Raises LogError if it is damaged.
    """
    source = read_source(path, from_oldest=True)
    if source.history.log.last is None:
        return None
    directory = find_log_directory(path) if isinstance(path, Path) and path.is_dir() else None
    return MetadataHistory(source, path.name, directory)


class MetadataHistory:
    """The log of a node. Calls share the index of its batches, and copies of clusters at some offsets."""

    def __init__(
        self, source: NodeSource, name: str, directory: Path | None, timelines: RetainedTimelines | None = None
    ) -> None:
        """``directory`` is the log's, None for a file."""
        self._source = source
        self._name = name
        self._directory = directory
        self._follower: DirectoryFollower | None = None
        self._timelines = timelines or RetainedTimelines(source.history)
        self._index = self._timelines.index

    def extended(self) -> MetadataHistory | None:
        """See ClusterHistory. A call reads and checks new batches of POLL_BYTES_MAX bytes at most; a file has none."""
        if self._directory is None:
            return self
        history = self._source.history
        self._follower = self._follower or DirectoryFollower(self._directory, history)
        new = self._follower.poll()
        end = new.batches[-1].header.next_offset if new.batches else history.log.end
        is_shorter = min(segments_in(self._directory), default=None) != history.log.start
        if new.replaced or is_shorter or self._follower.end != end:
            return None
        if not new.batches:
            return self
        longer = extended_history(history, new)
        timelines = self._timelines.extended(longer, [batch.header for batch in new.batches])
        result = MetadataHistory(replace(self._source, history=longer), self._name, self._directory, timelines)
        result._follower = self._follower
        return result

    def points(self, count_max: int) -> Sequence[HistoryPoint]:
        """See ClusterHistory. Positions are the ends of batches of data."""
        return self._index.points(count_max)

    def point(self, position: str) -> HistoryPoint:
        """See ClusterHistory. An offset stands for its whole batch."""
        return self._point(self._index.end_of(position))

    def snapshot(self, point: HistoryPoint) -> Snapshot:
        """See ClusterHistory."""
        return snapshot_of(self._source, self._name, point.end, self._timelines.at(point.end))

    def partition_records(self, topic: str, partition: int, point: HistoryPoint, count_max: int) -> list[HistoryRecord]:
        """See ClusterHistory. Batches without the bytes of the partition are not decoded."""
        metadata = self._timelines.at(point.end).metadata
        name = f"{topic}-{partition}"
        if metadata.row(topic, partition) is None:
            raise LogError("partition", name, f"a partition that exists at offset {point.end - 1}")
        topic_id = metadata.topics.ids[metadata.topics.index_by_name[topic]]
        rows = (
            HistoryRecord(
                batch.offset(row),
                time_text(batch.header.max_timestamp),
                records.record_name(type(record)),
                name,
                describe(record, {})[1],
            )
            for number in reversed(self._index.find(partition_pattern(topic_id, partition), point.end))
            for batch in self._index.batches(number, number + 1)
            for row, record in partition_rows(batch, topic_id, partition)
        )
        return [*islice(rows, count_max)]

    def leader_cause(self, topic: str, partition: int, point: HistoryPoint) -> LeaderCause:
        """See ClusterHistory."""
        return leader_cause(self._timelines, f"{topic}-{partition}", point.end)

    def differences(self, before: HistoryPoint, after: HistoryPoint) -> Iterator[Difference]:
        """See ClusterHistory."""
        earlier, later = (self._timelines.at(point.end).metadata for point in (before, after))
        return differences(earlier, later)

    def _point(self, end: int) -> HistoryPoint:
        return HistoryPoint(end, self._index.time_before(end))
