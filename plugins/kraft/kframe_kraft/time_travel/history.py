"""The history of a cluster from its metadata log, for other plugins (``kframe.plugin.live.ClusterHistory``)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from kframe.plugin.live import ClusterHistory, Difference, HistoryPoint, HistoryRecord, LeaderCause
from kframe.plugin.snapshot import Snapshot
from kframe_kraft.errors import LogError
from kframe_kraft.sources.paths import NodeSource, read_source
from kframe_kraft.sources.snapshots import snapshot_of
from kframe_kraft.time_travel.causes import leader_cause
from kframe_kraft.time_travel.differences import differences
from kframe_kraft.time_travel.entries import EntryFilter, EntryLister
from kframe_kraft.time_travel.positions import BatchIndex
from kframe_kraft.time_travel.timelines import RetainedTimelines


def open_history(path: Any) -> ClusterHistory | None:
    """The history in the files of a node, from its oldest offset. None for a snapshot, which has none.

    Raises LogError if it is damaged.
    """
    source = read_source(path, from_oldest=True)
    return None if source.history.log.last is None else MetadataHistory(source, path.name)


class MetadataHistory:
    """The log of a node. Calls share the index of its batches, and copies of clusters at some offsets."""

    def __init__(self, source: NodeSource, name: str) -> None:
        self._source = source
        self._name = name
        self._index = BatchIndex(source.history)
        self._timelines = RetainedTimelines(source.history, self._index)

    def points(self, count_max: int) -> Sequence[HistoryPoint]:
        """See ClusterHistory. Positions are the ends of batches of data."""
        history = self._source.history
        points = self._index.points()
        if history.snapshot is not None or not points:
            points.insert(0, self._point(history.snapshot_id.offset))
        if len(points) <= count_max:
            return points
        return [points[number * (len(points) - 1) // (count_max - 1)] for number in range(count_max)]

    def point(self, position: str) -> HistoryPoint:
        """See ClusterHistory. An offset stands for its whole batch."""
        return self._point(self._index.end_of(position))

    def snapshot(self, point: HistoryPoint) -> Snapshot:
        """See ClusterHistory."""
        return snapshot_of(self._source, self._name, point.end, self._timelines.at(point.end))

    def partition_records(self, topic: str, partition: int, point: HistoryPoint, count_max: int) -> list[HistoryRecord]:
        """See ClusterHistory. Batches that do not have the id of the topic are not decoded."""
        history = self._source.history
        metadata = self._timelines.at(point.end).metadata
        if metadata.row(topic, partition) is None:
            raise LogError("partition", f"{topic}-{partition}", f"a partition that exists at offset {point.end - 1}")
        topic_id = metadata.topics.ids[metadata.topics.index_by_name[topic]].bytes
        lister = EntryLister(EntryFilter(end=point.end))
        lister.add_snapshot_names(history.snapshot)
        records: deque[HistoryRecord] = deque(maxlen=count_max)
        for batch in history.log.batches:
            if batch.header.base_offset >= point.end:
                break
            if batch.header.is_control or topic_id not in batch.payload.tobytes():
                continue
            for row in lister.rows(batch, history.committed):
                if row["key"] == f"{topic}-{partition}":
                    records.appendleft(
                        HistoryRecord(row["offset"], row["time"], row["type"], row["key"], row["summary"])
                    )
        return list(records)

    def leader_cause(self, topic: str, partition: int, point: HistoryPoint) -> LeaderCause:
        """See ClusterHistory."""
        return leader_cause(self._source.history, f"{topic}-{partition}", point.end)

    def differences(self, before: HistoryPoint, after: HistoryPoint) -> Iterator[Difference]:
        """See ClusterHistory."""
        earlier, later = (self._timelines.at(point.end).metadata for point in (before, after))
        return differences(earlier, later)

    def _point(self, end: int) -> HistoryPoint:
        return HistoryPoint(end, self._index.time_before(end))
