"""All work of Kafka's command-line tools on three brokers that kframe leads, compared with kframe's metadata.

Broker 1 is in a rack, brokers 2 and 3 are in another; each has two log directories. Methods raise AssertionError and
ToolError.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kframe.plugin.kraft import ClusterMetadata
from kframe.testing.waiting import wait_until
from verification.kraft.kafka_nodes import KraftNode
from verification.kraft.kafka_tools import KafkaTools
from verification.kraft.led_cluster import LedCluster

RACKS: Final[Mapping[int, str]] = {1: "a", 2: "b", 3: "b"}
ALL: Final = {1, 2, 3}
_RECORDS: Final = 100
#: The entities of ``kafka-configs``: arguments, a setting, and the resource in the metadata.
_ENTITIES: Final = (
    (("topics", "--entity-name", "work"), "max.message.bytes=54321", (2, "work")),
    (("brokers", "--entity-name", "1"), "message.max.bytes=2000000", (4, "1")),
    (("brokers", "--entity-default"), "message.max.bytes=3000000", (4, "")),
    (("client-metrics", "--entity-name", "seen"), "interval.ms=1000", (16, "seen")),
    (("groups", "--entity-name", "readers"), "consumer.session.timeout.ms=50000", (32, "readers")),
)


@dataclass(frozen=True, slots=True)
class ToolWork:
    """A cluster, and the tools for it."""

    cluster: LedCluster
    tools: KafkaTools

    def admin(self, script: str, *arguments: object) -> str:
        """The output of a tool."""
        return self.cluster.kafka.admin(self.tools, script, *arguments)

    def all_of(self, version: tuple[int, int]) -> None:
        """All that brokers of a release can do."""
        self.topics()
        self.records()
        if version >= (4, 2):
            self.share_groups()
        self.settings()
        self.users()
        self.elections()
        self.reassignments()
        self.log_directories()
        if version >= (4, 3):
            self.cordoned_directories()
        self.registrations()
        self.quorum()

    def topics(self) -> None:
        """Created by numbers and by hand, with settings, grown, deleted, and created again."""
        self.create("counts", "--partitions", 4, "--replication-factor", 2, "--config", "retention.ms=3600000")
        first = self.described("counts", r"PartitionCount: 4\s+ReplicationFactor: 2\s+Configs: .*retention.ms=3600000")
        assert all(1 in replicas and len(replicas) == 2 for replicas in self.cluster.assignment("counts").values())
        self.create("manual", "--replica-assignment", "1:2,2:3,3:1")
        assert self.cluster.assignment("manual") == {0: [1, 2], 1: [2, 3], 2: [3, 1]}
        self.admin("kafka-topics", "--alter", "--topic", "counts", "--partitions", 6)
        self.described("counts", "PartitionCount: 6")
        self.admin("kafka-topics", "--delete", "--topic", "counts")
        assert not self.cluster.assignment("counts")
        self.create("counts", "--partitions", 1, "--replication-factor", 3)
        second = self.described("counts", "PartitionCount: 1")
        assert topic_id(first) != topic_id(second)
        self.create("work", "--replica-assignment", "1:2,2:3")

    def records(self) -> None:
        """Written by idempotent and transactional producers, read by groups of both protocols."""
        self.produce("work", _RECORDS, 10)
        self.produce("work", _RECORDS, 10, "--transactional-id", "work", "--transaction-duration-ms", 60_000)
        for protocol in ("classic", "consumer"):
            properties = ("--consumer-property", f"group.protocol={protocol}", "--isolation-level", "read_committed")
            limits = ("--max-messages", 2 * _RECORDS, "--timeout-ms", 120_000, "--from-beginning")
            group = f"{protocol}-group"
            output = self.admin("kafka-console-consumer", "--topic", "work", "--group", group, *limits, *properties)
            assert output.count("\n") >= 2 * _RECORDS, output
            assert group in self.admin("kafka-consumer-groups", "--list")

    def share_groups(self) -> None:
        """A share group reads what was written."""
        self.alter(("groups", "--entity-name", "shared"), "share.auto.offset.reset=earliest")
        limits = ("--max-messages", _RECORDS, "--timeout-ms", 120_000)
        output = self.admin("kafka-console-share-consumer", "--topic", "work", "--group", "shared", *limits)
        assert output.count("\n") >= _RECORDS, output

    def settings(self) -> None:
        """Set and deleted, of each kind of entity."""
        for entity, setting, resource in _ENTITIES:
            key, _, value = setting.partition("=")
            self.alter(entity, setting)
            assert self.metadata.configs[resource][key] == value
            wait_until(lambda entity=entity, text=setting: text in self.settings_of(entity))  # type: ignore[misc]
            self.alter(entity, key, "--delete-config")
            assert key not in self.metadata.configs.get(resource, {})

    def users(self) -> None:
        """Quotas of a user and a client, and SCRAM credentials."""
        user = ("users", "--entity-name", "ann")
        self.alter(user, "producer_byte_rate=1024")
        assert self.metadata.quotas[("user", "ann"),] == {"producer_byte_rate": 1024.0}
        wait_until(lambda: "producer_byte_rate=1024" in self.settings_of(user))
        self.alter(user, "producer_byte_rate", "--delete-config")
        assert not self.metadata.quotas
        self.alter(user, "SCRAM-SHA-256=[iterations=4096,password=secret]")
        wait_until(lambda: "SCRAM-SHA-256=iterations=4096" in self.settings_of(user))
        self.alter(user, "SCRAM-SHA-256", "--delete-config")
        assert not self.metadata.scram

    def elections(self) -> None:
        """A preferred leader, and a leader outside the ISR."""
        self.create("elected", "--replica-assignment", "1:2")
        first, second, _ = self.cluster.brokers
        restart(first)
        self.await_states("elected", lambda leader, isr: leader == 2 and isr == {1, 2})
        election = ("--topic", "elected", "--partition", 0, "--election-type")
        self.admin("kafka-leader-election", *election, "preferred")
        self.await_states("elected", lambda leader, isr: leader == 1)
        second.stop()
        self.await_states("elected", lambda leader, isr: isr == {1})
        first.kill()
        self.await_states("elected", lambda leader, isr: leader == -1)
        second.start()
        second.await_started()
        assert self.cluster.leader("elected", 0) == -1
        self.admin("kafka-leader-election", *election, "unclean")
        self.await_states("elected", lambda leader, isr: leader == 2)
        first.start()
        first.await_started()
        self.await_states("elected", lambda leader, isr: isr == {1, 2})

    def reassignments(self) -> None:
        """With a throttle, cancelled on its way, and to another replication factor."""
        self.reassign("work", [3, 1], "--execute", "--throttle", 10_000_000)
        assert self.metadata.configs[4, "1"]["leader.replication.throttled.rate"] == "10000000"
        self.await_reassigned("work", [3, 1])
        assert "leader.replication.throttled.rate" not in self.metadata.configs.get((4, "1"), {})
        self.create("slow", "--replica-assignment", "1:2")
        self.produce("slow", 8_000, 1_000)
        # At this rate it would take more than an hour.
        self.reassign("slow", [3, 2], "--execute", "--throttle", 1_000)
        assert self.cluster.assignment("slow")[0] == [3, 2, 1]
        assert "slow-0" in self.admin("kafka-reassign-partitions", "--list")
        self.reassign("slow", [3, 2], "--cancel")
        # As in Kafka, the order before the reassignment is lost.
        assert self.cluster.assignment("slow")[0] == [2, 1]
        self.reassign("slow", [1, 2, 3], "--execute")
        self.await_reassigned("slow", [1, 2, 3])
        self.await_states("slow", lambda leader, isr: isr == ALL)

    def log_directories(self) -> None:
        """A replica moves to the other directory of its broker, which then fails, and returns."""
        first, *_ = self.cluster.brokers
        _, directory = first.log_dirs
        self.create("directed", "--replica-assignment", "1:2")
        self.reassign("directed", [1, 2], "--execute", log_dirs=[str(directory), "any"])
        wait_until((directory / "directed-0").is_dir)
        assert str(directory) in self.admin("kafka-log-dirs", "--describe", "--topic-list", "directed")
        saved = directory.with_suffix(".saved")
        first.stop()
        directory.rename(saved)
        directory.write_text("no directory\n")
        first.start()
        first.await_started()
        self.await_states("directed", lambda leader, isr: leader == 2 and isr == {2})
        first.stop()
        directory.unlink()
        saved.rename(directory)
        first.start()
        first.await_started()
        self.await_states("directed", lambda leader, isr: isr == {1, 2})

    def cordoned_directories(self) -> None:
        """A broker whose directories are all cordoned receives no replica."""
        broker = self.cluster.brokers[2]
        entity = ("brokers", "--entity-name", str(broker.id))
        self.alter(entity, f"cordoned.log.dirs=[{','.join(map(str, broker.log_dirs))}]")
        wait_until(lambda: not self.metadata.brokers.registrations[broker.id].has_uncordoned_directory)
        self.create("uncordoned", "--partitions", 6, "--replication-factor", 2)
        assert all(broker.id not in replicas for replicas in self.cluster.assignment("uncordoned").values())
        self.alter(entity, "cordoned.log.dirs", "--delete-config")
        wait_until(lambda: self.metadata.brokers.registrations[broker.id].has_uncordoned_directory)

    def registrations(self) -> None:
        """A broker is fenced, unregistered, and returns."""
        *_, third = self.cluster.brokers
        third.kill()
        wait_until(lambda: self.metadata.brokers.registrations[third.id].fenced)
        address = self.cluster.kafka.address
        self.tools.run("kafka-cluster", "unregister", "--bootstrap-server", address, "--id", third.id)
        assert third.id not in self.metadata.brokers.registrations
        third.start()
        third.await_started()
        self.await_states("manual", lambda leader, isr: len(isr) == 2, 3)

    def quorum(self) -> None:
        """The quorum is described: its leader, and the brokers as observers."""
        assert self.cluster.controller is not None
        status = self.admin("kafka-metadata-quorum", "describe", "--status")
        assert f"LeaderId: {self.cluster.controller.node_id}" in " ".join(status.split())
        replication = self.admin("kafka-metadata-quorum", "describe", "--replication")
        assert len(re.findall("Observer", replication)) == len(self.cluster.brokers)

    @property
    def metadata(self) -> ClusterMetadata:
        """The metadata in the memory of kframe."""
        return self.cluster.metadata

    def create(self, topic: str, *arguments: object) -> None:
        """Create a topic, and wait until brokers know it."""
        self.admin("kafka-topics", "--create", "--topic", topic, *arguments)
        self.cluster.kafka.await_topics({topic})

    def described(self, topic: str, pattern: str) -> str:
        """The description of a topic, once it matches: brokers follow the log."""
        wait_until(lambda: re.search(pattern, self.admin("kafka-topics", "--describe", "--topic", topic)) is not None)
        return self.admin("kafka-topics", "--describe", "--topic", topic)

    def produce(self, topic: str, count: int, size: int, *arguments: object) -> None:
        """Write records, which all in-sync replicas acknowledge."""
        limits = ("--num-records", count, "--record-size", size, "--throughput", -1)
        properties = (f"bootstrap.servers={self.cluster.kafka.address}", "acks=all", "enable.idempotence=true")
        words = ("--topic", topic, *limits, *arguments, "--producer-props", *properties)
        output = self.tools.run("kafka-producer-perf-test", *words)
        assert f"{count} records sent" in output, output

    def alter(self, entity: Sequence[str], setting: str, action: str = "--add-config") -> None:
        """Change a setting."""
        self.admin("kafka-configs", "--alter", "--entity-type", *entity, action, setting)

    def settings_of(self, entity: Sequence[str]) -> str:
        """What ``kafka-configs`` prints of an entity."""
        return self.admin("kafka-configs", "--describe", "--entity-type", *entity)

    def await_states(self, topic: str, holds: Any, count: int = 1) -> None:
        """Wait for leader and ISR of all partitions, as brokers know them."""
        self.cluster.until_all(self.tools, topic, count, holds)

    def reassign(
        self, topic: str, replicas: Sequence[int], *action: object, log_dirs: Sequence[str] | None = None
    ) -> str:
        """Run an action of ``kafka-reassign-partitions`` on partition 0."""
        path = self.plan(topic, replicas, log_dirs)
        return self.admin("kafka-reassign-partitions", *action, "--reassignment-json-file", path)

    def await_reassigned(self, topic: str, replicas: Sequence[int]) -> None:
        """Wait until the tool finds partition 0 reassigned; it then removes throttles."""
        done = f"Reassignment of partition {topic}-0 is completed."
        wait_until(lambda: done in self.reassign(topic, replicas, "--verify"))
        assert self.cluster.assignment(topic)[0] == [*replicas]

    def plan(self, topic: str, replicas: Sequence[int], log_dirs: Sequence[str] | None) -> Path:
        """Write a plan for partition 0."""
        path = self.cluster.kafka.folder / "plan.json"
        partition: dict[str, Any] = {"topic": topic, "partition": 0, "replicas": [*replicas]}
        if log_dirs is not None:
            partition["log_dirs"] = [*log_dirs]
        path.write_text(json.dumps({"version": 1, "partitions": [partition]}))
        return path


def topic_id(description: str) -> str:
    """The id in the description of a topic."""
    match = re.search(r"TopicId: (\S+)", description)
    assert match is not None
    return match[1]


def restart(broker: KraftNode) -> None:
    """Stop a broker, and start it again."""
    broker.stop()
    broker.start()
    broker.await_started()
