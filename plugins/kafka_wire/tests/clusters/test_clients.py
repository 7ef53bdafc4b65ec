"""Three client libraries and Kafka's tools on real brokers of each release and inter-broker protocol.

``kframe controller run`` is the controller. Afterwards the brokers are restarted one by one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sized
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from kframe.testing.waiting import PATIENCE_S, until
from verification.kafka_wire.broker_metadata import await_metadata, create, metadata, metadata_of
from verification.kafka_wire.client import CREATE_PARTITIONS, CREATE_TOPICS, DELETE_TOPICS, Client, change_topics
from verification.kafka_wire.client_operations import MAKES, await_settled, check_client_operations, numbered
from verification.kafka_wire.clients import JavaClient, Librdkafka
from verification.kafka_wire.messages import NEVER_WHOLE, WAYS, answers, malformed_frames
from verification.kafka_wire.real_cluster import (
    INTERNAL,
    SETUPS,
    RealCluster,
    Sampler,
    partitions,
    setup_id,
)
from verification.kafka_wire.reassignments import (
    check_cancelled_reassignment,
    check_reassignment_completes,
    check_reassignment_to_broker_with_failed_directory,
)
from verification.kafka_wire.tool_work import check_tools
from verification.kafka_wire.tools import Tools
from verification.support.sampling import every_nth
from verification.zookeeper.kafka import KafkaProcess
from verification.zookeeper.servers import ServerHandle
from verification.zookeeper.tools import ToolProcess

#: kafka-python 3 leaves the socket of a connection that it is making when it ends, and Python warns of it.
CLIENT_MARKS: Final = {
    "kafka-python": (
        pytest.mark.smoke,
        pytest.mark.filterwarnings("ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning"),
    )
}
#: Log lines of brokers for a controlled shutdown, 2.8 and 3.9.
SHUT_DOWN: Final = re.compile("Controlled shutdown (?:succeeded|request returned successfully)")
#: The first is the newest release and protocol; the others are extended.
CLUSTERS: Final = every_nth(len(SETUPS), SETUPS)
CREATE, GROW, DELETE = (CREATE_TOPICS, 7), (CREATE_PARTITIONS, 3), (DELETE_TOPICS, 6)
REQUEST_TIMED_OUT: Final = 7
#: Brokers need seconds to create that many partitions.
PARTITIONS: Final = 120
#: Memory in KiB by which a process may grow through malformed frames.
GROWTH_KIB: Final = 64 * 1024


@pytest.fixture(scope="class")
def cluster(
    request: pytest.FixtureRequest, zookeeper: ServerHandle, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RealCluster]:
    chroot = f"{zookeeper.address}/clients-{setup_id(request.param)}"
    with RealCluster(tmp_path_factory.mktemp("cluster"), chroot, *request.param) as cluster:
        # librdkafka does not retry a broker that listens but does not know the others yet.
        cluster.await_nodes()
        yield cluster


@pytest.fixture(scope="class")
def java(cluster: RealCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaClient]:
    with closing(JavaClient(tmp_path_factory.mktemp("java") / "clients", cluster.address)) as client:
        yield client


@pytest.mark.parametrize("cluster", CLUSTERS, indirect=True, ids=setup_id, scope="class")
class TestOnBrokers:
    """All work of clients and operators."""

    @pytest.mark.smoke
    def test_brokers_apply_leadership_changes(self, cluster: RealCluster) -> None:
        before = set(cluster.kafka.complaints())
        create(cluster.client, "t", [[1, 2, 3], [2, 3, 1], [3, 1, 2], [1, 3, 2]])
        create(cluster.client, "gone", [[3], [2, 1]])
        known = {
            "t-0": (1, [1, 2, 3], [1, 2, 3]),
            "t-1": (2, [2, 3, 1], [2, 3, 1]),
            "t-2": (3, [3, 1, 2], [3, 1, 2]),
            "t-3": (1, [1, 3, 2], [1, 3, 2]),
            "gone-0": (3, [3], [3]),
            "gone-1": (2, [2, 1], [2, 1]),
        }
        assert await_metadata(cluster.kafka, known)

        cluster.kafka.lose(1, cluster.client)
        known |= {
            "t-0": (2, [2, 3], [1, 2, 3]),
            "t-1": (2, [2, 3], [2, 3, 1]),
            "t-2": (3, [3, 2], [3, 1, 2]),
            "t-3": (3, [3, 2], [1, 3, 2]),
            "gone-1": (2, [2], [2, 1]),
        }
        assert await_metadata(cluster.kafka, known, (2, 3))

        cluster.kafka.start()
        cluster.client.create("/admin/delete_topics/gone")
        assert until(lambda: not cluster.assignment("gone"))
        brokers = cluster.kafka.brokers.values()
        # A worker may run other tests of the class before this one, and their topics stay.
        assert until(lambda: not any(name.startswith("gone-") for each in brokers for name in known_to(each)))
        assert all({"t-0", "t-1", "t-2", "t-3"} <= known_to(broker) for broker in brokers)
        assert until(lambda: not any(list((broker.folder / "data").glob("gone-?")) for broker in brokers))
        new = set(cluster.kafka.complaints()) - before
        assert [complaint for complaint in new if complaint.log == "state-change"] == []
        cluster.client.create("/admin/delete_topics/t")
        assert until(lambda: not cluster.assignment("t"))

    def test_change_is_visible_on_every_broker_after_response(self, cluster: RealCluster) -> None:
        brokers = cluster.kafka.brokers.values()

        def counts(topic: str) -> list[int]:
            """The number of partitions of a topic with a leader, by broker."""
            shown = [metadata_of(broker.address)[2].items() for broker in brokers]
            return [sum(name.rpartition("-")[0] == topic and state[0] >= 0 for name, state in known) for known in shown]

        with Client(cluster.kframe.address, patience_s=PATIENCE_S) as client:
            timeout_ms = int(PATIENCE_S * 1000)
            for (api_key, version), count in ((CREATE, PARTITIONS), (GROW, PARTITIONS + 30), (DELETE, 0)):
                assert change_topics(client, api_key, version, {"big": count}, timeout_ms)[0] == [0]
                assert counts("big") == [count] * 3
            assert until(lambda: not cluster.assignment("big"))
            # A deletion need not wait for the creation.
            assert change_topics(client, *CREATE, {"brief": PARTITIONS}, 0)[0] == [REQUEST_TIMED_OUT]
            assert change_topics(client, *DELETE, {"brief": 0}, timeout_ms)[0] == [0]
        assert until(lambda: cluster.client.get_children("/admin/delete_topics") == [])
        assert not cluster.assignment("brief")
        assert counts("brief") == [0] * 3

    @pytest.mark.parametrize("make", [pytest.param(make, marks=CLIENT_MARKS.get(make, ())) for make in MAKES])
    def test_client_operations(self, cluster: RealCluster, java: JavaClient, make: str, tmp_path: Path) -> None:
        if make == "java":
            check_client_operations(cluster, java, java, make, (4, 3))
            return
        kind, needs = MAKES[make]
        pytest.importorskip(needs)
        with closing(kind(tmp_path / "client", cluster.address)) as client:
            check_client_operations(cluster, client, java, make, (4, 3))

    def test_command_line_tools(self, cluster: RealCluster, tool_process: ToolProcess, tmp_path: Path) -> None:
        check_tools(Tools(tool_process, tmp_path, cluster.address), cluster)

    def test_topics_created_by_brokers_have_no_replica_on_the_controller(
        self, cluster: RealCluster, java: JavaClient
    ) -> None:
        check_topics_created_by_brokers(cluster, java)

    def test_a_reassignment_completes_with_the_target_in_sync(self, cluster: RealCluster) -> None:
        check_reassignment_completes(cluster)

    def test_a_broker_with_a_failed_log_directory_gains_a_replica(self, cluster: RealCluster) -> None:
        check_reassignment_to_broker_with_failed_directory(cluster)

    def test_a_cancelled_reassignment_leaves_no_files(self, cluster: RealCluster) -> None:
        check_cancelled_reassignment(cluster)

    def test_malformed_frames_change_nothing(self, cluster: RealCluster) -> None:
        before, largest = observed(cluster), cluster.kframe.memory_kib
        for way in WAYS:
            respond = {api_key for api_key, frame in malformed_frames(way, 7) if answers(cluster.kframe.address, frame)}
            assert not respond or way not in NEVER_WHOLE
        assert observed(cluster) == before
        assert cluster.kframe.memory_kib - largest <= GROWTH_KIB

    def test_rolling_restart_under_a_producer(self, cluster: RealCluster, java: JavaClient, tmp_path: Path) -> None:
        pytest.importorskip("confluent_kafka")
        client = Librdkafka(tmp_path, cluster.address)
        client.create("steady", 6, 3)
        client.configure("steady", "min.insync.replicas", "2")
        await_settled(client, "steady", 6, 3)
        with Sampler(cluster) as sampler, client.producing("steady") as sent:
            for broker in cluster.kafka.brokers.values():
                await_more(sent, 1_000)
                broker.stop()
                assert len(SHUT_DOWN.findall(broker.log("server"))) == 1
                broker.start()
                broker.await_started()
                assert until(lambda: all(whole for *_, whole in partitions(cluster.kframe.address)))
        assert sampler.offline == []
        assert set(sampler.respond) == set(cluster.nodes)
        assert {error for _, error in sent} == {None}
        assert len(sent) > 3_000
        consumed = Counter(value for values in java.all_values("steady").values() for value in values)
        acknowledged = Counter(value for value, _ in sent)
        assert {"lost": acknowledged - consumed, "duplicated": consumed - acknowledged} == {
            "lost": {},
            "duplicated": {},
        }


def known_to(broker: KafkaProcess) -> set[str]:
    """The partitions in a broker's metadata."""
    return set(metadata_of(broker.address)[2])


def check_topics_created_by_brokers(cluster: RealCluster, java: JavaClient) -> None:
    """Brokers count the controller as a node, so they would assign it replicas of most partitions."""
    java.produce("made-by-a-broker", numbered("a", 4))
    java.transact("builder", "made-by-a-broker", numbered("b", 4), numbered("never", 4))
    assert sorted(java.consume("makers", "made-by-a-broker", 8)) == [*numbered("a", 4), *numbered("b", 4)]
    partition_counts = {"made-by-a-broker": 4, "__consumer_offsets": INTERNAL, "__transaction_state": INTERNAL}
    names = {f"{topic}-{number}" for topic, count in partition_counts.items() for number in range(count)}

    def whole(address: str) -> bool:
        return names <= {name for name, leader, in_sync in partitions(address) if leader >= 0 and in_sync}

    for address in (cluster.kframe.address, *cluster.addresses):
        assert until(partial(whole, address)), partitions(address)
    for topic, count in partition_counts.items():
        stored = cluster.assignment(topic)
        assert len(stored) == count
        assert all(set(replicas) == {1, 2, 3} for replicas in stored.values()), stored
        assert all(set(cluster.state(topic, number)["isr"]) == {1, 2, 3} for number in stored)
    # The node that a client asks creates an internal topic: a broker, or the controller, which assigns brokers only.
    assert not re.search(r"were assigned to ids of no broker; [1-9]\d* get fewer replicas", cluster.kframe.log)


def observed(cluster: RealCluster) -> tuple[object, ...]:
    """The controller's znode, each node's controller id, and all assignments."""
    topics = sorted(cluster.client.get_children("/brokers/topics"))
    assignments = [(topic, cluster.assignment(topic)) for topic in topics]
    controllers = [metadata(node)["controller_id"] for node in cluster.nodes]
    return cluster.client.get("/controller")[1].czxid, controllers, assignments


def await_more(sent: Sized, count: int) -> None:
    enough = len(sent) + count
    assert until(lambda: len(sent) >= enough)
