"""Directories, files and dumps of KRaft nodes as snapshots, and the errors of damaged ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

import pytest
from click.testing import CliRunner
from kframe_kraft.batches import BatchPosition, encode_control_batch, encode_data_batch
from kframe_kraft.disk import SnapshotId, read_checkpoint
from kframe_kraft.encoding.checkpoint import write_checkpoint
from kframe_kraft.sources.detection import LOG_DIRECTORY
from kframe_kraft.sources.paths import read_image

from kframe import read_snapshot
from kframe.cli.app import cli
from kframe.plugin.kraft import LogError, RecordAndVersion, control, records, replay, to_json
from verification.kraft.metadata_facts import metadata_facts
from verification.support.pipes import written_pipe

TOPIC_ID = UUID(int=1 << 99)
CREATION = [
    RecordAndVersion(records.FeatureLevelRecord(name="metadata.version", feature_level=25), 0),
    RecordAndVersion(records.TopicRecord(name="orders", topic_id=TOPIC_ID), 0),
    RecordAndVersion(
        records.PartitionRecord(
            partition_id=0,
            topic_id=TOPIC_ID,
            replicas=(1, 2),
            isr=(1, 2),
            removing_replicas=(),
            adding_replicas=(),
            leader=1,
            leader_epoch=0,
            partition_epoch=0,
            directories=(UUID(int=200), UUID(int=201)),
        ),
        2,
    ),
]
CHANGE = RecordAndVersion(records.PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, isr=(2,), leader=2), 2)


def leader_change(epoch: int, offset: int) -> bytes:
    voters = (control.LeaderChangeVoter(voter_id=7),)
    return encode_control_batch(
        [control.LeaderChangeMessage(leader_id=7, voters=voters)], BatchPosition(offset, epoch, 900)
    )


LOG = (
    leader_change(3, 0)
    + encode_data_batch(CREATION, BatchPosition(1, 3, 1_000))
    + encode_data_batch([CHANGE], BatchPosition(4, 3, 2_000))
)


def dump_of(content: Sequence[RecordAndVersion]) -> bytes:
    return "".join(json.dumps(to_json(*record), separators=(",", ":")) + "\n" for record in content).encode()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A log directory with one segment."""
    log = tmp_path / "data" / LOG_DIRECTORY
    log.mkdir(parents=True)
    (log / f"{0:020}.log").write_bytes(LOG)
    return log


def test_log_is_read_to_its_end_or_to_an_offset(directory: Path) -> None:
    for path in (directory.parent, directory, directory / f"{0:020}.log"):
        image = read_image(path)
        assert (image.offset, image.epoch, image.timestamp, image.leader_id) == (5, 3, 2_000, 7)
        assert (image.voters, image.committed.offset, image.committed.exact) == ((7,), 5, True)
        kraft = read_snapshot(path).kraft
        assert kraft is not None
        assert kraft.voters == (7,)
        (before,) = metadata_facts(read_image(path, 4).metadata)["partitions"].values()
        (after,) = metadata_facts(image.metadata)["partitions"].values()
        assert [(state.leader, state.isr, state.partition_epoch) for state in (before, after)] == [
            (1, (1, 2), 0),
            (2, (2,), 1),
        ]


def test_voters_are_those_at_the_offset(directory: Path) -> None:
    changed = control.VotersRecord(
        voters=tuple(control.Voter(voter_id=id, voter_directory_id=TOPIC_ID) for id in (7, 8))
    )
    content = LOG + encode_control_batch([changed], BatchPosition(5, 3, 3_000))
    (directory / f"{0:020}.log").write_bytes(content)
    assert [read_image(directory, end).voters for end in (5, 6)] == [(7,), (7, 8)]


def test_log_ends_before_an_incomplete_batch(directory: Path) -> None:
    (directory / f"{0:020}.log").write_bytes(LOG[:-1])
    assert read_image(directory).offset == 4


@pytest.mark.parametrize("content", [LOG, dump_of([*CREATION, CHANGE])], ids=["segment", "dump"])
def test_pipe_is_read(tmp_path: Path, content: bytes) -> None:
    pipe = tmp_path / "pipe"
    with written_pipe(pipe, content):
        image = read_image(pipe)
    assert [(state.leader, state.isr) for state in metadata_facts(image.metadata)["partitions"].values()] == [(2, (2,))]


def test_written_checkpoint_has_the_same_metadata(directory: Path, tmp_path: Path) -> None:
    image = read_image(directory)
    snapshot_id = SnapshotId(image.offset, image.epoch)
    path = write_checkpoint(image.metadata, tmp_path / snapshot_id.file_name, snapshot_id, timestamp=2_000, now=3_000)
    copy = read_image(path)
    assert metadata_facts(copy.metadata) == metadata_facts(image.metadata)
    assert (copy.offset, copy.epoch, copy.timestamp) == (5, 3, 2_000)


def test_snapshot_has_a_last_known_leader_without_a_broker(directory: Path, tmp_path: Path) -> None:
    """Kafka 4.0 stores -1 where an ISR becomes empty without a leader."""
    metadata = read_image(directory).metadata
    features = {"metadata.version": 25, "eligible.leader.replicas.version": 1}
    for name, level in features.items():
        replay(metadata, records.FeatureLevelRecord(name=name, feature_level=level), 5)
    topic_id = metadata.topics.ids[0]
    change = records.PartitionChangeRecord(
        partition_id=0, topic_id=topic_id, isr=(), leader=-1, eligible_leader_replicas=(2,), last_known_elr=(-1,)
    )
    replay(metadata, change, 7)
    path = write_checkpoint(metadata, tmp_path / "0.checkpoint", SnapshotId(8, 3), timestamp=2_000, now=3_000)
    (stored,) = [each for each in read_checkpoint(path).records() if isinstance(each.record, records.PartitionRecord)]
    assert isinstance(stored.record, records.PartitionRecord)
    assert (stored.record.leader, stored.record.last_known_elr) == (-1, (-1,))


def test_lines_of_json_are_a_dump(tmp_path: Path, directory: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_bytes(dump_of([*CREATION, CHANGE]))
    assert metadata_facts(read_image(path).metadata) == metadata_facts(read_image(directory).metadata)
    assert read_snapshot(path).source.format == "kraft"


@pytest.mark.parametrize(
    "name, content, reason",
    [
        ("00000000000000000005.log", leader_change(3, 5), "a segment from offset 5, expected a segment from offset 0"),
        ("x.txt", b'{"type":"TOPIC_RECORD","version":0,"data":{}}\n', "x.txt:1"),
        ("x.txt", b"Dumping /d/00000000000000000000.log\n", "found no record"),
        ("00000000000000000005-0000000003.checkpoint", LOG[:70], "found a batch of"),
    ],
)
def test_damaged_source_is_refused(tmp_path: Path, name: str, content: bytes, reason: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(LogError, match=reason):
        read_image(path)


def test_convert_writes_checkpoint_that_show_reads(directory: Path, tmp_path: Path) -> None:
    runner, out = CliRunner(), tmp_path / f"{9:020}-{4:010}.checkpoint"
    assert runner.invoke(cli, ["snapshot", "convert", str(directory), str(out)]).exit_code == 0
    repeated = runner.invoke(cli, ["snapshot", "convert", str(directory), str(out)])
    assert repeated.exit_code == 2
    assert "an existing file, expected a new one, or --force" in repeated.output
    assert read_image(out).offset == 9
    summary = runner.invoke(cli, ["snapshot", "show", "--from", "kraft", str(out), "-o", "json"])
    assert json.loads(summary.stdout)["partitions"] == 1
    unknown = runner.invoke(cli, ["snapshot", "show", "--from", "xml", str(out)])
    assert "'kraft'" in unknown.output


def test_directories_of_nodes_are_clusters_of_a_fleet(directory: Path, tmp_path: Path) -> None:
    """A node's directory and a log directory; a damaged log is refused."""
    pytest.importorskip("pyarrow")
    from kframe.spark.ingest import ingest_source
    from kframe.spark.inputs import ClusterInput
    from kframe.spark.sources import find_sources

    (node,) = find_sources([str(tmp_path)])
    (log,) = find_sources([str(directory)], "log")
    assert [(node.cluster, node.path), log.path] == [("data", str(directory.parent)), str(directory)]
    (row,) = ingest_source(node, tmp_path / "fleet").to_pylist()
    assert (row["status"], row["mode"], row["partitions"]) == ("ingested", "kraft", 1)
    assert ClusterInput.of_source(log).snapshot().digest() == read_snapshot(directory).digest()
    (directory / f"{0:020}.log").write_bytes(LOG[:30] + b"?" + LOG[31:])
    (row,) = ingest_source(node, tmp_path / "fleet").to_pylist()
    assert (row["status"], row["mode"]) == ("rejected", None)
