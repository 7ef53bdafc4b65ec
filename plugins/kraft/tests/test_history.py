"""The history that a log offers to other plugins is that of ``kframe log``."""

from __future__ import annotations

import pytest
from kframe_kraft.errors import LogError

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


def test_partition_that_does_not_exist_yet_is_refused(history: ClusterHistory) -> None:
    with pytest.raises(LogError, match="partition: found clicks-0, expected a partition that exists at offset"):
        history.partition_records("clicks", 0, history.points(2)[0], 1)


def test_snapshot_of_a_node_has_no_history() -> None:
    (checkpoint,) = (LOG / "__cluster_metadata-0").glob("*1041*.checkpoint")
    assert open_history(checkpoint) is None
    assert open_history(ROOT / "examples" / "clusters" / "kafka-3.9.1-six-brokers" / "healthy.kcat.json.gz") is None
