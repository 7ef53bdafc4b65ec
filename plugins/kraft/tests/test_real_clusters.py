"""Real clusters of several releases: kframe reads what Kafka's own tools print, and Kafka boots from what it writes.

Tests of older releases are extended.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from kframe_kraft.disk import SnapshotId, read_history
from kframe_kraft.encoding.checkpoint import write_checkpoint
from kframe_kraft.replay.image import MetadataImage
from kframe_kraft.sources.detection import LOG_DIRECTORY
from kframe_kraft.sources.paths import read_image

from verification.kraft.kafka_nodes import CLUSTER_ID, RELEASES, KraftCluster
from verification.kraft.kafka_tools import KafkaTools, print_snapshot
from verification.kraft.metadata_facts import metadata_facts
from verification.kraft.rich_cluster import fill, newest_snapshot, rich_options
from verification.kraft.shell_tree import metadata_leaves, printed_leaves
from verification.zookeeper.commands import invoke, kframe_json

pytestmark = pytest.mark.real

EACH_RELEASE = [
    pytest.param(release, marks=() if release == RELEASES[-1] else pytest.mark.extended) for release in RELEASES
]


class RichCluster(NamedTuple):
    cluster: KraftCluster
    tools: KafkaTools
    live: MetadataImage
    folder: Path

    @property
    def log(self) -> Path:
        """The log of the controller, which is stopped."""
        return self.cluster.nodes[1].metadata_log

    def dump(self, path: Path) -> Path:
        """The output of kafka-dump-log for a file."""
        out = self.folder / f"{path.name}.txt"
        out.write_text(self.tools.run("kafka-dump-log", "--cluster-metadata-decoder", "--files", path))
        return out


@pytest.fixture(scope="module", params=EACH_RELEASE)
def rich(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RichCluster]:
    folder = tmp_path_factory.mktemp(f"kraft-{request.param}")
    with KafkaTools(folder / "tools") as tools, KraftCluster(folder, rich_options(request.param)) as cluster:
        fill(cluster, tools)
        live = read_image(cluster.nodes[1].log_dirs[0])
        cluster.kill()
        yield RichCluster(cluster, tools, live, folder)


def test_image_equals_output_of_metadata_shell(rich: RichCluster) -> None:
    snapshot = newest_snapshot(rich.log)
    leaves = metadata_leaves(read_image(snapshot).metadata)
    assert leaves == printed_leaves(print_snapshot(snapshot))
    assert len(leaves) > 65


def test_log_snapshot_and_dumps_have_the_same_metadata(rich: RichCluster, tmp_path: Path) -> None:
    snapshot = newest_snapshot(rich.log)
    image = read_image(snapshot)
    expected = metadata_facts(image.metadata, offsets=False)
    segments = sorted(rich.log.glob("*.log"))
    only_log = tmp_path / LOG_DIRECTORY
    only_log.mkdir()
    for segment in segments:
        shutil.copy(segment, only_log)
    assert metadata_facts(read_image(tmp_path, image.offset).metadata, offsets=False) == expected
    assert metadata_facts(read_image(rich.dump(snapshot)).metadata, offsets=False) == expected
    whole = read_image(segments[0])
    from_dump = read_image(rich.dump(segments[0]))
    assert metadata_facts(from_dump.metadata) == metadata_facts(whole.metadata)
    assert (from_dump.offset, from_dump.epoch, from_dump.timestamp) == (whole.offset, whole.epoch, whole.timestamp)


def test_running_node_is_read_to_its_end(rich: RichCluster) -> None:
    assert rich.live.offset >= read_history(rich.log).snapshot_id.offset
    assert rich.live.leader_id == 1
    assert rich.live.committed.exact
    assert rich.live.metadata.brokers.registrations[3].fenced


def test_commands_read_every_source(rich: RichCluster, tmp_path: Path) -> None:
    snapshot = newest_snapshot(rich.log)
    node = rich.cluster.nodes[1].log_dirs[0]
    summaries = [
        kframe_json("snapshot", "show", source)
        for source in (node, rich.log, snapshot, rich.dump(snapshot), sorted(rich.log.glob("*.log"))[0])
    ]
    assert {summary["mode"] for summary in summaries} == {"kraft"}
    assert {summary["partitions"] for summary in summaries} == {15}
    assert summaries[0]["cluster_id"] == CLUSTER_ID
    outcome = invoke("whatif", "fail", node, "--brokers", "2")
    assert outcome.stdout.startswith("mode: KRaft (Kafka "), outcome.stderr


def test_written_checkpoint_is_read_by_the_shell(rich: RichCluster, tmp_path: Path) -> None:
    snapshot = newest_snapshot(rich.log)
    image = read_image(snapshot)
    path = tmp_path / SnapshotId(image.offset, image.epoch).file_name
    write_checkpoint(
        image.metadata,
        path,
        SnapshotId(image.offset, image.epoch),
        timestamp=1,
        now=2,
        kraft_version=image.kraft_version,
        voters=image.voters_record,
    )
    assert printed_leaves(print_snapshot(path)) == printed_leaves(print_snapshot(snapshot))
    assert metadata_facts(read_image(rich.dump(path)).metadata, offsets=False) == metadata_facts(
        image.metadata, offsets=False
    )


def test_controller_boots_from_a_written_checkpoint_and_brokers_rejoin(rich: RichCluster) -> None:
    controller = rich.cluster.nodes[1]
    image = read_image(controller.log_dirs[0])
    shutil.rmtree(controller.metadata_log)
    controller.metadata_log.mkdir()
    snapshot_id = SnapshotId(image.offset, image.epoch)
    write_checkpoint(
        image.metadata,
        controller.metadata_log / snapshot_id.file_name,
        snapshot_id,
        timestamp=1,
        now=2,
        kraft_version=image.kraft_version,
        voters=image.voters_record,
    )
    rich.cluster.start()
    described = rich.cluster.admin(rich.tools, "kafka-topics", "--describe", "--topic", "orders")
    assert "PartitionCount: 6" in described
    after = read_image(controller.log_dirs[0])
    assert after.offset > image.offset
    assert {broker_id for broker_id, broker in after.metadata.brokers.registrations.items() if not broker.fenced} == {
        1,
        2,
        3,
    }
    rich.cluster.kill()
