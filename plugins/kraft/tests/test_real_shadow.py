"""``kframe controller shadow`` beside the controller of four real Kafka 4.4 brokers, without and with ELR.

It predicts each batch that faults and requests write, and reports the difference if a rule is altered.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pytest
from kframe_kraft.replay.image import MetadataImage
from kframe_kraft.sources.paths import read_image

from kframe.core.kraft.replication.leader_selection import BuiltinSelection, Candidates
from kframe.model.arrays import Int32, UInt8
from kframe.model.ids import NO_LEADER
from kframe.plugin.kraft import ClusterMetadata, partition_record, records
from kframe.testing.waiting import wait_until
from verification.kraft.kafka_nodes import KraftCluster, KraftOptions
from verification.kraft.kafka_tools import KafkaTools
from verification.zookeeper.commands import RunningCommand, invoke

pytestmark = pytest.mark.real

SETTINGS: Final = {
    "broker.session.timeout.ms": "6000",
    "broker.heartbeat.interval.ms": "500",
    # A broker notices soon that it cannot write to a log directory.
    "replica.high.watermark.checkpoint.interval.ms": "500",
}
#: Topics and the replicas of their partitions.
TOPICS: Final = {
    "orders": "1:2:3,2:3:4,3:4:1,4:1:2,2:1:4,3:1:2,4:3:2",
    "moved": "1:2",
    "pending": "1:2",
    "offline": "2:3",
    "clicks": "2:3",
}
CONFIGS: Final = {"orders": "min.insync.replicas=2", "clicks": "unclean.leader.election.enable=true"}
#: Events of each run, and those with ELR only.
EVENTS: Final = {
    "AlterPartition of the leader",
    "broker fenced",
    "broker unfenced",
    "configurations changed",
    "controlled shutdown",
    "directories assigned",
    "directory failed",
    "partitions created",
    "preferred election",
    "reassignment cancelled",
    "reassignment started",
    "topic created",
    "topic deleted",
    "unclean election",
}
ELR_EVENTS: Final = {"broker restarted after a clean stop", "broker restarted after an unclean stop"}


class ShadowedCluster(NamedTuple):
    cluster: KraftCluster
    tools: KafkaTools

    @property
    def url(self) -> str:
        return f"kraft://{self.cluster.nodes[3000].controller_address}"

    @property
    def image(self) -> MetadataImage:
        return read_image(self.cluster.nodes[3000].log_dirs[0])

    @property
    def metadata(self) -> ClusterMetadata:
        return self.image.metadata

    def admin(self, script: str, *arguments: object) -> None:
        self.cluster.admin(self.tools, script, *arguments)

    def create(self, topic: str, replicas: str, *arguments: object) -> None:
        self.admin("kafka-topics", "--create", "--topic", topic, "--replica-assignment", replicas, *arguments)

    def configure(self, kind: str, name: str, *arguments: object) -> None:
        self.admin("kafka-configs", "--alter", "--entity-type", kind, "--entity-name", name, *arguments)

    def reassign(self, topic: str, replicas: list[int], *action: str) -> None:
        self.cluster.reassign(self.tools, topic, replicas, *action)

    def partition(self, topic: str) -> records.PartitionRecord:
        """The state of partition 0."""
        metadata = self.metadata
        row = metadata.row(topic, 0)
        assert row is not None
        return partition_record(metadata, row)

    def await_in_sync(self) -> None:
        """Return when each ISR has all replicas."""

        def is_in_sync() -> bool:
            partitions = self.metadata.partitions
            return bool((partitions.isr_count == partitions.replica_count).all())

        wait_until(is_in_sync)


class LogShadowing(RunningCommand):
    """A ``kframe controller shadow`` process, with its lines."""

    def __init__(self, url: str, folder: Path) -> None:
        super().__init__(folder, "controller", "shadow", url, "-o", "jsonl", "--metrics-listen", "0")
        self.start()
        wait_until(lambda: self.page("/readyz")[0] == 200 or self.pid is None, lambda: self.log)

    def end(self, offset: int) -> list[dict[str, Any]]:
        """Stop it when it has compared all records below ``offset``. Returns its lines."""
        wait_until(lambda: json.loads(self.page("/readyz")[1])["end"] >= offset, lambda: self.log)
        assert self.stop(number=signal.SIGINT) == 0, self.log
        return [json.loads(line) for line in self.log.splitlines() if line.startswith("{")]


@pytest.fixture(scope="module")
def shadowed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ShadowedCluster]:
    folder = tmp_path_factory.mktemp("shadowed")
    options = KraftOptions(brokers=4, combined=False, log_dirs=2, release="4.3", elr=False, settings=SETTINGS)
    with KafkaTools(folder / "tools") as tools, KraftCluster(folder, options) as cluster:
        yield ShadowedCluster(cluster, tools)


@pytest.mark.extended
@pytest.mark.parametrize("elr", [False, True], ids=["no elr", "elr"])
def test_shadow_predicts_records_of_faults_and_requests(shadowed: ShadowedCluster, elr: bool, tmp_path: Path) -> None:
    shadow = LogShadowing(shadowed.url, tmp_path / "shadow")
    try:
        if shadowed.metadata.elr_enabled != elr:
            feature = ("--feature", f"eligible.leader.replicas.version={int(elr)}")
            shadowed.admin("kafka-features", "upgrade" if elr else "downgrade", *feature)
        change_topics(shadowed)
        fail_brokers(shadowed)
        bring_brokers_back(shadowed)
        lines = shadow.end(shadowed.image.offset)
    finally:
        shadow.kill()
    assert [line for line in lines if line["outcome"] != "equal"] == []
    events = {event.split(":")[0] for line in lines for event in line["events"]}
    assert events >= EVENTS | (ELR_EVENTS if elr else {"broker registered"})


def change_topics(shadowed: ShadowedCluster) -> None:
    """Create topics, add partitions, change configurations, and complete a reassignment."""
    for topic, replicas in TOPICS.items():
        shadowed.create(topic, replicas, *(("--config", CONFIGS[topic]) if topic in CONFIGS else ()))
    shadowed.cluster.await_topics(TOPICS)
    shadowed.admin("kafka-topics", "--alter", "--topic", "orders", "--partitions", 9)
    shadowed.configure("topics", "orders", "--add-config", "retention.ms=70000,min.insync.replicas=1")
    shadowed.configure("topics", "orders", "--delete-config", "retention.ms,min.insync.replicas")
    shadowed.configure("topics", "orders", "--add-config", "min.insync.replicas=2")
    shadowed.configure("brokers", "1", "--add-config", "log.cleaner.threads=2")
    shadowed.await_in_sync()
    shadowed.reassign("moved", [2, 4], "--execute")
    wait_until(lambda: shadowed.partition("moved").replicas == (2, 4))


def fail_brokers(shadowed: ShadowedCluster) -> None:
    """Fail a directory, kill a broker to which a partition is being reassigned, cancel that, and stop a broker."""
    nodes = shadowed.cluster.nodes
    failed = nodes[4].log_dirs[1]
    failed.rename(failed.with_name("former"))
    failed.write_text("not a directory")
    wait_until(lambda: len(shadowed.metadata.brokers.registrations[4].directories) == 1)
    nodes[3].kill()
    # The tool refuses brokers that are fenced, so it runs before the session of the broker ends.
    shadowed.reassign("pending", [1, 3], "--execute")
    wait_until(lambda: shadowed.metadata.brokers.registrations[3].fenced)
    assert shadowed.partition("pending").adding_replicas == (3,)
    shadowed.reassign("pending", [1, 3], "--cancel", "--preserve-throttles")
    nodes[2].stop()
    assert [shadowed.partition(topic).leader for topic in ("offline", "clicks")] == [NO_LEADER, NO_LEADER]


def bring_brokers_back(shadowed: ShadowedCluster) -> None:
    """Start the brokers again, elect leaders, repair the directory, and delete the topics."""
    nodes = shadowed.cluster.nodes
    nodes[3].start()
    nodes[3].await_started()
    assert [shadowed.partition(topic).leader for topic in ("offline", "clicks")] == [NO_LEADER, 3]
    partition = ("--topic", "offline", "--partition", 0)
    shadowed.admin("kafka-leader-election", "--election-type", "unclean", *partition)
    assert shadowed.partition("offline").leader == 3
    nodes[4].stop()
    failed = nodes[4].log_dirs[1]
    failed.unlink()
    failed.with_name("former").rename(failed)
    shadowed.cluster.start()
    shadowed.await_in_sync()
    shadowed.admin("kafka-leader-election", "--election-type", "preferred", "--all-topic-partitions")
    for topic in TOPICS:
        shadowed.admin("kafka-topics", "--delete", "--topic", topic)


def test_shadow_reports_altered_rule(shadowed: ShadowedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """The altered rule elects no leader."""

    def choose_none(_self: BuiltinSelection, _: ClusterMetadata, candidates: Candidates) -> tuple[Int32, UInt8]:
        count = len(candidates.rows)
        return np.full(count, NO_LEADER, np.int32), np.zeros(count, np.uint8)

    shadowed.create("altered", "2:3:4")
    offset = shadowed.image.offset
    shadowed.cluster.nodes[2].stop()
    wait_until(lambda: shadowed.partition("altered").leader == 3)
    shadowed.cluster.start()
    command = ("controller", "shadow", shadowed.url, "--from-start", "--for", "0", "-o", "jsonl")
    assert invoke(*command).returncode == 0
    monkeypatch.setattr(BuiltinSelection, "choose", choose_none)
    altered = invoke(*command)
    assert altered.returncode == 3
    expected = {
        "event": "controlled shutdown: broker 2",
        "type": "PartitionChange",
        "key": "altered-0",
        "field": "leader",
        "predicted": NO_LEADER,
        "committed": 3,
    }
    (difference,) = (
        difference
        for line in map(json.loads, altered.stdout.splitlines())
        for difference in line["differences"]
        if expected.items() <= difference.items()
    )
    assert difference["offset"] >= offset
