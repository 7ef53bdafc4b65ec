"""Captures through a fake broker: versions, pages, changes between readings, refusals, and servers that are down."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any, Final

import pytest
from kframe_kafka_wire.admin.broker_requests import directories_of
from kframe_kafka_wire.admin.capture import PASSES_MAX, open_cluster
from kframe_kafka_wire.admin.client import open_admin
from kframe_kafka_wire.protocol.errors import WireError
from kframe_kafka_wire.sandbox.fake_broker import FakeBroker, Received

from kframe import Snapshot
from kframe.errors import ConfigError, SnapshotError, StoreError
from kframe.model.plan import Plan
from kframe.plans.check.report import PlanReport
from kframe.plans.check.resolve import resolve_plan
from kframe.plugin.admin import DirectoryLog, LogDirectory
from verification.zookeeper.servers import free_ports

METADATA, VERSIONS, CONFIGS, REASSIGNMENTS, QUORUM, CLUSTER, PARTITIONS = 3, 18, 32, 46, 55, 60, 75
#: The highest versions of the APIs above, and the finalized features.
Mode = tuple[Mapping[int, int], Mapping[str, int]]
ZOOKEEPER: Final[Mode] = ({METADATA: 9, VERSIONS: 3, CONFIGS: 2, REASSIGNMENTS: 0}, {})
KRAFT: Final[Mode] = (
    {METADATA: 13, VERSIONS: 5, CONFIGS: 4, REASSIGNMENTS: 1, QUORUM: 1, CLUSTER: 2, PARTITIONS: 0},
    {"metadata.version": 25},
)
OF_TOPIC, DEFAULT, STATIC = 1, 5, 4
TOPIC_REFUSED, CLUSTER_REFUSED, NO_LISTENER = 29, 31, 72
HEALTHY: Final = {"error_code": 0, "leader_id": 1, "leader_epoch": 3, "replica_nodes": [1, 2], "isr_nodes": [1, 2]}
#: Replicas in sync and eligible to lead, of a KRaft cluster.
ELIGIBLE: Final = {**HEALTHY, "isr_nodes": [1], "eligible_leader_replicas": [2], "last_known_elr": []}


def quorum(error_code: int = 0) -> dict[str, Any]:
    """Voters 100 to 102, led by 101; with ``error_code`` the node that responds does not know them."""
    voters = [{"replica_id": node_id, "log_end_offset": 5} for node_id in (102, 101, 100)]
    partition = {
        "partition_index": 0,
        "error_code": error_code,
        "leader_id": -1 if error_code else 101,
        "current_voters": [] if error_code else voters,
    }
    return {"topics": [{"topic_name": "__cluster_metadata", "partitions": [partition]}]}


class Broker:
    """Broker 1, controller of a cluster with the partitions ``orders-0`` and ``orders-1``."""

    def __init__(self, fake: FakeBroker, mode: Mode) -> None:
        self.fake = fake
        fake.versions, fake.features = dict(mode[0]), dict(mode[1])
        self.partition: Mapping[str, Any] = HEALTHY
        self.readings = 0
        self.changes = 0
        """Readings of partitions whose leader epoch is another than in the reading before."""
        fake.responses = {
            REASSIGNMENTS: {"topics": []},
            QUORUM: quorum(),
            CLUSTER: {
                "cluster_id": "c",
                "controller_id": 1,
                "brokers": [self.broker("broker_id", 1), {**self.broker("broker_id", 2), "is_fenced": True}],
            },
        }

        fake.response_functions = {METADATA: self.metadata, CONFIGS: self.configs, PARTITIONS: self.page}

    def capture(self) -> Snapshot:
        return open_cluster(f"kafka://127.0.0.1:{self.fake.port}", {}).capture()

    def capture_by_admin(self) -> Snapshot:
        with closing(open_admin(f"kafka://127.0.0.1:{self.fake.port}", {})) as admin:
            return admin.capture()

    def asked(self, api_key: int) -> list[Received]:
        return [request for request in self.fake.others if request.api_key == api_key]

    def broker(self, key: str, broker_id: int) -> dict[str, Any]:
        return {key: broker_id, "host": "127.0.0.1", "port": self.fake.port, "rack": "r1", "is_fenced": False}

    def topic(self, *indexes: int) -> dict[str, Any]:
        epoch = min(self.readings, self.changes + 1)
        partition = {**self.partition, "leader_epoch": epoch}
        return {
            "name": "orders",
            "topic_id": bytes([7] * 16),
            "partitions": [{**partition, "partition_index": index} for index in indexes],
        }

    def metadata(self, request: Received) -> Mapping[str, Any]:
        topics = []
        if request.body["topics"] is None:
            self.readings += 1
            topics = [self.topic(0, 1)]
        return {"cluster_id": "c", "controller_id": 1, "brokers": [self.broker("node_id", 1)], "topics": topics}

    def page(self, request: Received) -> Mapping[str, Any]:
        """One partition in each page."""
        if request.body["cursor"] is None:
            self.readings += 1
            return {"topics": [self.topic(0)], "next_cursor": {"topic_name": "orders", "partition_index": 1}}
        return {"topics": [self.topic(1)], "next_cursor": None}

    def configs(self, request: Received) -> Mapping[str, Any]:
        values = [("retention.ms", "9", OF_TOPIC), ("min.insync.replicas", "2", STATIC), ("segment.ms", "1", DEFAULT)]
        configs = [{"name": name, "value": value, "config_source": source} for name, value, source in values]
        return {
            "results": [
                {**resource, "configs": configs if resource["resource_name"] else [], "error_code": 0}
                for resource in request.body["resources"]
            ]
        }


@pytest.fixture
def make(fakes: Callable[..., FakeBroker]) -> Callable[..., Broker]:
    return lambda mode=ZOOKEEPER: Broker(fakes(), mode)


def test_newest_common_versions_are_used(make: Callable[..., Broker]) -> None:
    broker = make()
    snapshot = broker.capture()
    assert {request.api_version for request in broker.asked(METADATA)} == {9}
    assert {request.api_version for request in broker.asked(CONFIGS)} == {2}
    assert (snapshot.mode, snapshot.controller_id, snapshot.topics.topic_ids) == ("zookeeper", 1, None)
    assert snapshot.topics.configs == {0: {"retention.ms": "9"}}
    assert snapshot.broker_default_configs == {"min.insync.replicas": "2"}
    assert "min.insync.replicas=2 in the configuration of broker 1" in "".join(snapshot.assumptions)
    assert [(facts.broker_id, facts.registered, facts.rack) for facts in snapshot.brokers] == [
        (1, True, "r1"),
        (2, False, None),
    ]


@pytest.mark.parametrize("capture", [Broker.capture, Broker.capture_by_admin], ids=["capture", "admin"])
def test_controller_that_marks_itself_is_no_broker(
    capture: Callable[[Broker], Snapshot], make: Callable[..., Broker]
) -> None:
    """An instance of kframe lists itself, so that clients find the controller."""
    broker = make()
    broker.partition = {**HEALTHY, "leader_id": 2, "replica_nodes": [2], "isr_nodes": [2]}
    assert "1 is controller and has no replica: taken as a broker" in "".join(capture(broker).assumptions)
    broker.fake.responses[VERSIONS] = {
        "api_keys": [{"api_key": key, "max_version": newest} for key, newest in ZOOKEEPER[0].items()],
        "is_controller_only": True,
    }
    snapshot = capture(broker)
    assert (snapshot.controllers, snapshot.controller_id) == ((1,), 1)
    assert [facts.broker_id for facts in snapshot.brokers] == [2]
    assert "is controller" not in "".join(snapshot.assumptions)


def test_kraft_brokers_describe_elr_and_fenced_brokers(make: Callable[..., Broker]) -> None:
    broker = make(KRAFT)
    broker.partition = ELIGIBLE
    snapshot = broker.capture()
    assert [request.body["cursor"] is None for request in broker.asked(PARTITIONS)] == [True, False] * 2
    assert (snapshot.mode, snapshot.controller_id, len(snapshot)) == ("kraft", 101, 2)
    assert snapshot.partitions.elr is not None
    assert [snapshot.partitions.elr[row].tolist() for row in range(2)] == [[2], [2]]
    assert snapshot.kraft is not None
    assert (snapshot.kraft.features, snapshot.kraft.voters) == ({"metadata.version": 25}, (100, 101, 102))
    assert [(facts.broker_id, facts.registered) for facts in snapshot.brokers] == [(1, True), (2, None)]
    assert "brokers.registered unknown of broker 2 (fenced)" in "".join(snapshot.assumptions)


@pytest.mark.parametrize(
    ("response", "note"),
    [
        ({"error_code": CLUSTER_REFUSED}, "DescribeQuorum is refused (CLUSTER_AUTHORIZATION_FAILED)"),
        (quorum(error_code=6), "DescribeQuorum has the error NOT_LEADER_OR_FOLLOWER"),
        (None, None),
    ],
    ids=["refused", "no leader", "Kafka before 3.0"],
)
def test_quorum_that_is_not_described_is_unknown(
    response: Mapping[str, Any] | None, note: str | None, make: Callable[..., Broker]
) -> None:
    broker = make(KRAFT)
    if response is None:
        del broker.fake.versions[QUORUM]
    else:
        broker.fake.responses[QUORUM] = response
    snapshot = broker.capture()
    assert snapshot.kraft is not None
    assert (snapshot.controller_id, snapshot.kraft.voters) == (None, None)
    assert snapshot.provenance.get("cluster.controller_id") == note


@pytest.mark.parametrize(
    ("topics", "actual"),
    [
        ([], "0 partitions"),
        ([{"topic_name": "__cluster_metadata", "partitions": []}], "0 partitions"),
        (2 * quorum()["topics"], "2 partitions"),
        (
            [{"topic_name": "t", "partitions": [{**quorum()["topics"][0]["partitions"][0], "partition_index": 1}]}],
            "1 partition",
        ),
    ],
    ids=["no topic", "no partition", "two topics", "partition 1"],
)
def test_quorum_of_another_partition_is_an_error(
    topics: list[Mapping[str, Any]], actual: str, make: Callable[..., Broker]
) -> None:
    broker = make(KRAFT)
    broker.fake.responses[QUORUM] = {"topics": topics}
    with pytest.raises(WireError, match=f"DescribeQuorum: found {actual}, expected partition 0 of __cluster_metadata"):
        broker.capture()


def test_admin_of_a_kraft_cluster_decides_by_kraft_rules(make: Callable[..., Broker]) -> None:
    """Metadata responses do not have fenced brokers: those with replicas may be registered. A plan may keep them."""
    snapshot = make(KRAFT).capture_by_admin()
    assert (snapshot.mode, snapshot.controller_id) == ("kraft", None)
    assert [(facts.broker_id, facts.registered) for facts in snapshot.brokers] == [(1, True), (2, None)]
    plan = Plan.of([(("orders", 0), (2, 1))])
    report = PlanReport.of(plan, resolve_plan(plan, snapshot))
    assert (report.valid, str(report.document().rules).partition(" ")[0]) == (True, "KRaft"), report.document()


@pytest.mark.parametrize("changes, passes, moved", [(0, 2, 0), (1, 3, 0), (PASSES_MAX, PASSES_MAX, 2)])
def test_partitions_are_read_again_while_they_change(
    changes: int, passes: int, moved: int, make: Callable[..., Broker]
) -> None:
    broker = make()
    broker.changes = changes
    facts = broker.capture().capture
    assert facts is not None
    assert (facts.passes, facts.consistent, facts.moved_count, facts.zxid) == (passes, not moved, moved, None)
    assert facts.moved == (("orders-0", "orders-1") if moved else ())


@pytest.mark.parametrize("capture", [Broker.capture, Broker.capture_by_admin])
def test_isr_excludes_replicas_removed_by_completed_reassignment(
    capture: Callable[[Broker], Snapshot], make: Callable[..., Broker]
) -> None:
    """The controller in ZooKeeper mode announces the new replicas before it shrinks the ISR."""
    broker = make()
    broker.partition = {**HEALTHY, "isr_nodes": [1, 3, 2, 4]}
    snapshot = capture(broker)
    assert snapshot.partitions.isr is not None
    assert [snapshot.partitions.isr[row].tolist() for row in range(2)] == [[1, 2], [1, 2]]
    note = "partitions.isr: without 4 replicas that completed reassignments have just removed"
    assert note in snapshot.assumptions


def test_isr_without_assigned_replica_is_an_error(make: Callable[..., Broker]) -> None:
    broker = make()
    broker.partition = {**HEALTHY, "isr_nodes": [3]}
    with pytest.raises(SnapshotError, match=r"orders-0\) field isr: found broker 3, expected one of the replicas"):
        broker.capture()


@pytest.mark.parametrize(
    "api_key, response, note",
    [
        (
            CONFIGS,
            {"results": [{"error_code": TOPIC_REFUSED, "resource_type": 2, "resource_name": "orders", "configs": []}]},
            "topics.configs unknown (DescribeConfigs of topic orders is refused (TOPIC_AUTHORIZATION_FAILED))",
        ),
        (
            CONFIGS,
            {"results": [{"error_code": CLUSTER_REFUSED, "resource_type": 4, "resource_name": "", "configs": []}]},
            "DescribeConfigs of all brokers is refused (CLUSTER_AUTHORIZATION_FAILED)",
        ),
        (
            REASSIGNMENTS,
            {"error_code": CLUSTER_REFUSED, "topics": []},
            "ListPartitionReassignments is refused (CLUSTER_AUTHORIZATION_FAILED)",
        ),
    ],
    ids=["settings of a topic", "settings of brokers", "reassignments"],
)
def test_refused_requests_are_stated_as_assumptions(
    api_key: int, response: Mapping[str, Any], note: str, make: Callable[..., Broker]
) -> None:
    broker = make()
    broker.fake.responses[api_key] = response
    assert note in "; ".join(broker.capture().assumptions)


@pytest.mark.parametrize("mode", [ZOOKEEPER, KRAFT], ids=["ZooKeeper", "KRaft"])
def test_a_leader_without_the_listener_is_an_error(mode: Mode, make: Callable[..., Broker]) -> None:
    broker = make(mode)
    broker.partition = {**HEALTHY, "error_code": NO_LISTENER}
    with pytest.raises(StoreError, match="partition orders-0: found LISTENER_NOT_FOUND, expected a leader"):
        broker.capture()


def test_a_missing_api_is_named(make: Callable[..., Broker]) -> None:
    broker = make(({METADATA: 9, VERSIONS: 3}, {}))
    with pytest.raises(StoreError, match="has no version of list_partition_reassignments, expected one"):
        broker.capture()


def test_dead_bootstrap_servers_are_named() -> None:
    first, second = free_ports(2)
    names = rf"127.0.0.1:{first} \(Connection refused\), 127.0.0.1:{second} \(Connection refused\)"
    with pytest.raises(StoreError, match=f"no bootstrap server responds: {names}"):
        open_cluster(f"kafka://127.0.0.1:{first},127.0.0.1:{second}", {}).capture()


@pytest.mark.parametrize(
    "url, config, expected",
    [
        ("kafka://broker", {}, "bootstrap servers: found 'broker', expected HOST:PORT"),
        ("kafka://b:9092", {"security.protocol": "TLS"}, "TLS"),
        ("kafka://b:9092", {"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"}, "GSSAPI"),
    ],
)
def test_bad_addresses_and_settings_are_refused_before_connecting(
    url: str, config: dict[str, str], expected: str
) -> None:
    with pytest.raises(ConfigError, match=expected):
        open_cluster(url, config)


def test_operations_that_need_zookeeper_are_refused() -> None:
    cluster = open_cluster("kafka://b:9092", {})
    for call in (cluster.store, cluster.reader, cluster.depose):
        with pytest.raises(ConfigError, match="found kafka://b:9092, expected zookeeper:"):
            call()


# -- responses to DescribeLogDirs


def directory(name: str, *partitions: tuple[int, int, bool], error_code: int = 0) -> dict[str, Any]:
    """A log directory with partitions of topic ``t``: number, size, and whether it is a future replica."""
    keys = ("partition_index", "partition_size", "is_future_key")
    rows = [dict(zip(keys, partition, strict=True)) for partition in partitions]
    topics = [{"name": "t", "partitions": rows}] if rows else []
    return {"log_dir": name, "error_code": error_code, "topics": topics}


def test_directories_have_logs_errors_and_sizes_of_volumes() -> None:
    response = {
        "results": [
            {**directory("/a", (0, 7, False), (1, 3, True)), "total_bytes": 90, "usable_bytes": 70},
            {**directory("/b", (1, 9, False)), "total_bytes": 2**63 - 1, "usable_bytes": -1, "is_cordoned": True},
            directory("/failed", error_code=56),
        ]
    }
    assert directories_of(response) == (
        LogDirectory("/a", [DirectoryLog("t", 0, 7), DirectoryLog("t", 1, 3, True)], None, 90, 70),
        LogDirectory("/b", [DirectoryLog("t", 1, 9)], is_cordoned=True),
        LogDirectory("/failed", [], "KAFKA_STORAGE_ERROR"),
    )


@pytest.mark.parametrize("response", [{"results": []}, {"results": [], "error_code": 31}])
def test_a_refusal_in_any_version_is_an_error(response: dict[str, Any]) -> None:
    with pytest.raises(StoreError, match="CLUSTER_AUTHORIZATION_FAILED"):
        directories_of(response)
