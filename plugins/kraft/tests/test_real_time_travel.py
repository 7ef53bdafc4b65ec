"""A real cluster of Kafka 4.4: ``kframe log why`` names what happened, and ``kframe kraft recover`` brings it back.

The two tests share a cluster of two brokers and two controllers; the second one destroys the quorum.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from kframe_kraft.disk import read_history
from kframe_kraft.sources.paths import read_image

from kframe.testing.waiting import wait_until
from verification.kraft.kafka_nodes import KraftCluster, KraftOptions
from verification.kraft.kafka_tools import KafkaTools
from verification.zookeeper.commands import kframe_json

pytestmark = pytest.mark.real

#: The lines that the producer draws its records from, and their number.
RECORDS = [f"record-{number}" for number in range(40)]


class LiveCluster(NamedTuple):
    cluster: KraftCluster
    tools: KafkaTools
    folder: Path

    @property
    def source(self) -> Path:
        """The directory of a controller, which is running."""
        return self.cluster.nodes[3000].log_dirs[0]

    def leader(self, topic: str) -> int:
        metadata = read_image(self.source).metadata
        row = metadata.row(topic, 0)
        return -1 if row is None else metadata.brokers.ids_of([int(metadata.partitions.leader[row])])[0]

    def is_active(self, broker_id: int) -> bool:
        return read_image(self.source).metadata.brokers.is_active(broker_id)

    def isr(self, topic: str) -> set[int]:
        metadata = read_image(self.source).metadata
        row = metadata.row(topic, 0)
        return set() if row is None else set(metadata.brokers.ids_of(metadata.partitions.list_of("isr", row)))

    def why(self, topic: str) -> dict[str, Any]:
        document: dict[str, Any] = kframe_json("log", "why", self.source, f"{topic}-0")
        return document

    def consumed(self, topic: str) -> list[str]:
        output = self.tools.run(
            "kafka-console-consumer",
            "--bootstrap-server",
            self.cluster.address,
            "--topic",
            topic,
            "--partition",
            0,
            "--offset",
            "earliest",
            "--max-messages",
            len(RECORDS),
            "--timeout-ms",
            60_000,
        )
        return [line for line in output.splitlines() if line.startswith("record-")]


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveCluster]:
    folder = tmp_path_factory.mktemp("time-travel")
    settings = {"broker.session.timeout.ms": "6000", "broker.heartbeat.interval.ms": "500"}
    options = KraftOptions(
        brokers=2, controllers=2, combined=False, dynamic_quorum=True, release="4.3", settings=settings
    )
    with KafkaTools(folder / "tools") as tools, KraftCluster(folder, options) as cluster:
        live = LiveCluster(cluster, tools, folder)
        for topic, assignment in (("orders", "1:2"), ("moved", "1"), ("data", "2:1")):
            cluster.admin(tools, "kafka-topics", "--create", "--topic", topic, "--replica-assignment", assignment)
        payload = folder / "payload.txt"
        payload.write_text("\n".join(RECORDS))
        tools.run(
            "kafka-producer-perf-test",
            "--topic",
            "data",
            "--num-records",
            len(RECORDS),
            "--throughput",
            -1,
            "--payload-file",
            payload,
            "--producer-props",
            f"bootstrap.servers={cluster.address}",
            "acks=all",
        )
        yield live


@pytest.mark.extended
def test_why_names_event_of_leader_change(live: LiveCluster) -> None:
    cluster, tools = live.cluster, live.tools
    created = live.why("orders")
    assert created["event"] == "partition created"
    cluster.nodes[1].kill()
    wait_until(lambda: live.leader("orders") == 2)
    failed = live.why("orders")
    assert (failed["event"], failed["leader"]) == ("broker fenced: broker 1", 2)
    assert failed["not_elected"] == {"1": "broker fenced"}
    assert live.why("moved")["leader"] == -1
    cluster.nodes[1].start()
    cluster.nodes[1].await_started()
    wait_until(lambda: live.isr("orders") == {1, 2} and live.leader("moved") == 1)
    assert live.why("moved")["event"] == "broker unfenced: broker 1"
    cluster.admin(tools, "kafka-leader-election", "--election-type", "preferred", "--all-topic-partitions")
    wait_until(lambda: live.leader("orders") == 1)
    assert live.why("orders")["event"] == "preferred election"
    cluster.reassign(tools, "moved", [2], "--execute")
    wait_until(lambda: live.leader("moved") == 2)
    assert live.why("moved")["event"] == "AlterPartition of the leader"
    cluster.nodes[1].stop()
    wait_until(lambda: live.leader("orders") == 2)
    assert live.why("orders")["event"] == "controlled shutdown: broker 1"
    assert kframe_json("log", "why", live.source, "orders-0", "--offset", failed["offset"]) == failed
    changed = kframe_json("log", "diff", live.source, created["offset"], failed["offset"])["rows"]
    assert ["partition", "orders-0", "leader", 1, 2] in [
        [row[name] for name in ("kind", "name", "change", "before", "after")] for row in changed
    ]
    cluster.nodes[1].start()
    cluster.nodes[1].await_started()


def test_recovered_controller_boots_and_brokers_rejoin_with_their_data(live: LiveCluster) -> None:
    cluster, tools = live.cluster, live.tools
    survivor, lost = cluster.nodes[3000], cluster.nodes[3001]
    data = live.consumed("data")
    assert len(data) == len(RECORDS)
    for node in (lost, survivor):
        node.kill()
    compared = kframe_json("kraft", "compare", survivor.log_dirs[0], lost.log_dirs[0])["rows"]
    assert {row["state"] for row in compared} <= {"reference", "equal", "behind"}
    expected = read_image(survivor.log_dirs[0])
    out = live.folder / "recovered"
    plan = kframe_json("kraft", "recover", survivor.log_dirs[0], "--out", out)
    assert (plan["former_voters"], plan["partitions"]) == ([3000, 3001], 3)
    survivor.log_dirs[0].rename(live.folder / "former")
    out.rename(survivor.log_dirs[0])
    survivor.start()
    survivor.await_started()
    wait_until(lambda: live.is_active(1) and live.is_active(2))
    cluster.nodes[2].kill()
    cluster.nodes[2].start()
    cluster.nodes[2].await_started()
    image = read_image(survivor.log_dirs[0])
    assert image.voters == (3000,)
    assert image.epoch > plan["new_epoch"] > expected.epoch
    assert image.metadata.topics.index_by_id.keys() == expected.metadata.topics.index_by_id.keys()
    assert live.consumed("data") == data
    cluster.admin(tools, "kafka-topics", "--create", "--topic", "later", "--replica-assignment", "1:2")
    assert read_history(survivor.metadata_log).committed.exact
