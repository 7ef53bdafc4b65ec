"""The history that a log offers to other plugins is that of ``kframe log``."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from kframe_kraft.disk import batch_files
from kframe_kraft.disk.segments import ListedBatches, LogBatches
from kframe_kraft.errors import LogError
from kframe_kraft.replay.image import Timeline
from kframe_kraft.sources.paths import read_source
from kframe_kraft.sources.snapshots import snapshot_of
from kframe_kraft.time_travel import timelines
from kframe_kraft.time_travel.partitions import partition_pattern
from kframe_kraft.time_travel.positions import BatchIndex
from kframe_kraft.time_travel.timelines import RetainedTimelines

from kframe.plugin.live import ClusterHistory
from kframe.plugin.snapshot import open_history, read_snapshot, summary_record
from tests.architecture.source import ROOT

LOG = ROOT / "examples" / "clusters" / "kafka-4.4-broker-failure"


@pytest.fixture(scope="module")
def history() -> ClusterHistory:
    history = open_history(LOG)
    assert history is not None
    return history


@pytest.mark.parametrize("count_max", [2, 3, 10, 100_000])
def test_points_are_ascending_ends_of_batches(history: ClusterHistory, count_max: int) -> None:
    points = history.points(count_max)
    assert 2 <= len(points) <= count_max
    assert [point.end for point in points] == sorted({point.end for point in points})
    assert [history.point(str(point.end - 1)) for point in points] == list(points)
    assert points[-1] == history.point("end")


def test_end_of_the_history_is_the_snapshot_of_the_directory(history: ClusterHistory) -> None:
    # That of the directory begins with a snapshot, which has the offset of no registration.
    ended, read = history.snapshot(history.point("end")), read_snapshot(LOG)
    assert summary_record(ended) == summary_record(read)
    assert ended.to_arrow().equals(read.to_arrow())


def test_records_of_a_partition_are_the_newest_first(history: ClusterHistory) -> None:
    end = history.point("end")
    records = history.partition_records("clicks", 0, end, 100)
    assert [record.type for record in records][-1] == "Partition"
    assert history.partition_records("clicks", 0, end, 2) == records[:2]
    earlier = history.point(str(records[1].offset))
    assert history.partition_records("clicks", 0, earlier, 100) == records[1:]


@pytest.mark.parametrize("seed", range(3))
def test_cluster_is_the_same_in_any_order_of_positions(seed: int) -> None:
    history, source = open_history(LOG), read_source(LOG, from_oldest=True)
    assert history is not None
    points = [*history.points(10_000)]
    random.Random(seed).shuffle(points)
    for point in points[:40]:
        assert history.snapshot(point).digest() == snapshot_of(source, LOG.name, point.end).digest()


def test_replay_begins_at_the_nearest_retained_timeline() -> None:
    history = read_source(LOG, from_oldest=True).history
    retained = RetainedTimelines(history)
    retained.at(history.log.end)
    ends = retained.offsets
    assert 2 < len(ends) <= timelines.TIMELINES_MAX
    assert ends[-1] == history.log.end
    assert [retained.at(end).offset for end in ends] == ends
    assert retained.offsets == ends


@pytest.mark.parametrize("convert", [lambda batches: batches, ListedBatches])
def test_batches_after_an_offset(convert: Callable[[LogBatches], LogBatches]) -> None:
    history = read_source(LOG, from_oldest=True).history
    history = replace(history, log=replace(history.log, batches=convert(history.log.batches)))
    index, offsets = BatchIndex(history), [header.base_offset for header in history.log.batches.headers()]
    for number, offset in enumerate(offsets):
        assert [batch.header.base_offset for batch in index.following(offset)] == offsets[number:]


@pytest.mark.parametrize("convert", [lambda batches: batches, ListedBatches])
def test_batches_with_a_pattern(convert: Callable[[LogBatches], LogBatches], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_files, "PART_BYTES", 50)
    history = read_source(LOG, from_oldest=True).history
    history = replace(history, log=replace(history.log, batches=convert(history.log.batches)))
    index, batches = BatchIndex(history), [*history.log.batches]
    metadata = Timeline(history).advance()
    for topic_id in metadata.topics.index_by_id:
        pattern = partition_pattern(topic_id, 0)
        expected = [number for number, batch in enumerate(batches) if pattern in batch.payload.tobytes()]
        assert index.find(pattern, history.log.end) == expected
        assert expected
        assert index.find(pattern, batches[expected[-1]].header.base_offset) == expected[:-1]


def test_large_clusters_have_fewer_retained_timelines(monkeypatch: pytest.MonkeyPatch) -> None:
    history = read_source(LOG, from_oldest=True).history
    partitions = len(Timeline(history).advance().partitions)
    monkeypatch.setattr(timelines, "PARTITIONS_MAX", 3 * partitions)
    retained = RetainedTimelines(history)
    metadata = retained.at(history.log.end).metadata
    assert len(metadata.partitions) == partitions
    sizes = [len(retained.at(offset).metadata.partitions) for offset in retained.offsets]
    assert 2 * partitions < sum(sizes) <= 3 * partitions


def test_partition_that_does_not_exist_yet_is_refused(history: ClusterHistory) -> None:
    with pytest.raises(LogError, match="partition: found clicks-0, expected a partition that exists at offset"):
        history.partition_records("clicks", 0, history.points(2)[0], 1)


def test_snapshot_of_a_node_has_no_history() -> None:
    (checkpoint,) = (LOG / "__cluster_metadata-0").glob("*1041*.checkpoint")
    assert open_history(checkpoint) is None
    assert open_history(ROOT / "examples" / "clusters" / "kafka-3.9.1-six-brokers" / "healthy.kcat.json.gz") is None
